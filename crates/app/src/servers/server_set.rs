//! The servers of one command, and the data about them that is saved afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::SystemTime;

use ollm_catalog::{Problem, Severity};
use ollm_mcp::{
    BlockingClient, Cache, CallError, CallErrorKind, CheckedResult, ClientContext, Offers, Ports, Progress, Root,
    Server, Settings, Spill, Tokens, read_error, read_result,
};
use ollm_process::Children;
use ollm_protocol::{Code, ToolSchema};
use ollm_store::{UpdateError, write_atomic};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::Value;

use super::failures;
use super::gate::Gate;
use super::{DeclaredServer, Servers, cache, now, tokens};
use crate::app_context::AppContext;
use crate::error::AppError;

/// Longer logs are cut when saved.
const LARGEST_LOG: usize = 256 << 10;
/// Further remarks on the tools of one server are only counted.
const MOST_REMARKS: usize = 20;

/// The servers of one command; dropping it ends them.
#[derive(Debug)]
pub(super) struct ServerSet {
    fleet: BlockingClient,
    /// Checks servers of projects and extensions again at each start.
    gate: Arc<Gate>,
    /// The declarations of the servers.
    members: RwLock<BTreeMap<String, DeclaredServer>>,
    cache: Cache,
    /// The folder with the logs of last runs.
    logs: PathBuf,
    /// The file with their last failures.
    failures: PathBuf,
    /// Whether there is a home to save data in.
    keeps: bool,
}

/// The changes of servers after a reload of their declarations.
#[derive(Debug, Default)]
pub(super) struct ServerChanges {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Servers whose declaration can no longer be read; they stay unchanged.
    pub(super) kept: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

impl ServerSet {
    /// Prepares these servers for their start; all of them may be started. Reports missing values in their
    /// declarations.
    pub(super) fn gather(
        servers: &Servers<'_>,
        chosen: &[&DeclaredServer],
        ports: Ports,
    ) -> Result<(ServerSet, Vec<Problem>), AppError> {
        let tokens = Arc::new(Tokens::new(&tokens(servers.context), servers.context.network.clone(), SystemTime::now));
        let gate = Arc::new(Gate::new(servers.context));
        let ports = Ports { authorize: Some(tokens), admit: Some(gate.clone()), ..ports };
        let fleet =
            BlockingClient::new(Arc::new(ClientContext::new(settings(servers), ports, Arc::new(Children::new()))))
                .map_err(|error| AppError::new(Code::ServerFailed, format!("no server can be started: {error}")))?;
        let (cache, keeps) = (cache(servers.context), servers.context.own_home().is_some());
        let (members, logs) = (RwLock::default(), logs(servers.context));
        let failures = failures::file(servers.context);
        let server_set = ServerSet { fleet, gate, members, cache, logs, failures, keeps };
        let ServerChanges { problems, .. } = server_set.renew(servers, chosen);
        Ok((server_set, problems))
    }

    /// Replaces the servers by these. Removed servers end. Servers with an unchanged declaration keep running. Servers
    /// whose declaration can no longer be read stay unchanged.
    pub(super) fn renew(&self, servers: &Servers<'_>, chosen: &[&DeclaredServer]) -> ServerChanges {
        let mut changes = ServerChanges::default();
        self.gate.enter(servers.context);
        for name in self.names() {
            let now = chosen.iter().find(|known| known.spec.name == name).map(|known| &known.spec.origin.file);
            let looked_at = |member: &DeclaredServer| {
                let file = &member.spec.origin.file;
                (now == Some(file), servers.stay(file, member.spec.extension.as_deref()))
            };
            let (same, stays) = self.read(&name, looked_at).unwrap_or_default();
            // A server that cannot be read for a while keeps its name.
            if stays && !same {
                changes.kept.push(name);
            } else if now.is_none() {
                self.remove(&name);
                changes.removed.push(name);
            }
        }
        for known in chosen.iter().filter(|known| !changes.kept.contains(&known.spec.name)) {
            let name = &known.spec.name;
            self.gate.watch(known);
            let (ready, mut missing) = match known.ready(servers) {
                Ok(found) => found,
                Err(why) => {
                    let message = format!("{} is not started: {why}", known.spec.label());
                    changes.problems.push(Problem::of_file(
                        Code::NotLoaded,
                        Severity::Error,
                        &known.spec.origin.file,
                        message,
                    ));
                    continue;
                }
            };
            let before = self.fleet.server(name).ok();
            // A server that was approved again after its refusal is tried again.
            let again = self.gate.refused(name);
            let same = before.as_ref().is_some_and(|server| *server.ready() == ready);
            if again || !same {
                if before.is_some() {
                    self.remove(name);
                }
                self.fleet.add(ready, known.cached.clone().unwrap_or_default());
                let list = if before.is_some() { &mut changes.changed } else { &mut changes.added };
                list.push(name.clone());
                changes.problems.append(&mut missing);
            }
            self.write().insert(name.clone(), (*known).clone());
        }
        changes
    }

    /// Ends a server after saving its data.
    fn remove(&self, name: &str) {
        if let Ok(server) = self.fleet.server(name) {
            self.keep_one(&server);
        }
        let _ = self.fleet.remove(name);
        self.write().remove(name);
    }

    /// The server's name in a message, with its extension.
    pub(super) fn label(&self, name: &str) -> String {
        self.read(name, |member| member.spec.label()).unwrap_or_else(|| format!("server `{name}`"))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.fleet.servers().iter().map(|server| server.name().to_owned()).collect()
    }

    fn read<T>(&self, name: &str, look: impl FnOnce(&DeclaredServer) -> T) -> Option<T> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(name).map(look)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, DeclaredServer>> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client of the running servers.
    pub(super) fn fleet(&self) -> &BlockingClient {
        &self.fleet
    }

    /// The tools that a server offers now, under their names for models.
    pub(super) fn offers(&self, name: &str) -> Offers {
        let Ok(server) = self.fleet.server(name) else { return Offers::default() };
        self.read(name, |member| member.offers(&server.tools())).unwrap_or_default()
    }

    /// The remarks on a server's tools: on omitted ones, and on problems of tools that are not offered.
    pub(super) fn remarks(&self, name: &str) -> Vec<String> {
        let warnings = self.fleet.server(name).map(|server| server.status().warnings).unwrap_or_default();
        remarks(&self.label(name), &warnings, &self.offers(name))
    }

    /// The tools that a server offered until it crashed.
    pub(super) fn lapsed(&self, name: &str) -> Offers {
        let Ok(server) = self.fleet.server(name) else { return Offers::default() };
        self.read(name, |member| member.offers(&server.lapsed())).unwrap_or_default()
    }

    /// The prefix of a server's tool names.
    pub(super) fn prefix(&self, name: &str) -> String {
        let label = self.read(name, |member| member.label.clone()).unwrap_or_else(|| name.to_owned());
        format!("mcp__{label}__")
    }

    /// Saves the servers' data, and returns the failures to do so.
    pub(super) fn keep(&self) -> Vec<String> {
        let mut troubles: Vec<String> =
            self.fleet.servers().iter().filter_map(|server| self.keep_one(server)).collect();
        troubles.dedup();
        troubles
    }

    fn keep_one(&self, server: &Server) -> Option<String> {
        self.read(server.name(), |member| {
            let memory = server.memory();
            let mut trouble = None;
            if let Some(key) = member.key.as_ref().filter(|_| memory.tools.is_some())
                && self.keeps
                && member.cached.as_ref() != Some(&memory)
                && let Err(error) = self.cache.put(key, &memory, member.declared_in(), now())
            {
                trouble = Some(format!("what servers list is not remembered: {}", reason(&error)));
            }
            if let Some(key) = member.key.as_ref().filter(|_| self.keeps) {
                // Failures are only shown to people, so an error here is ignored.
                let _ = failures::remember(&self.failures, key, member.declared_in(), &server.status().state, now());
            }
            let (lines, _) = server.log(0);
            let text = lines.join("\n") + "\n";
            let start = text.ceil_char_boundary(text.len().saturating_sub(LARGEST_LOG));
            if self.keeps && !lines.is_empty() {
                // Logs are only a help, so an error here is ignored.
                let _ =
                    write_atomic(&log_in(&self.logs, &member.label), text.get(start..).unwrap_or_default().as_bytes());
            }
            trouble
        })
        .flatten()
    }

    /// The files for results of a server that are too large to show.
    pub(super) fn spill(&self, context: &AppContext, name: &str) -> Spill {
        let redactor = self.fleet.server(name).map(|server| server.redactor()).unwrap_or_default();
        Spill::new(context.state().join("mcp-results"), redactor)
    }

    /// Ends all servers and the processes that they left behind.
    pub(super) fn close(self) {
        self.fleet.close();
    }
}

/// The reason why data was not saved.
pub fn reason(error: &UpdateError) -> String {
    match error {
        UpdateError::Refused(trouble) => trouble.to_string(),
        UpdateError::File(error) => error.to_string(),
    }
}

/// The file with the log of a server's last run.
pub fn log_file(context: &AppContext, known: &DeclaredServer) -> PathBuf {
    log_in(&logs(context), &known.label)
}

pub(super) fn logs(context: &AppContext) -> PathBuf {
    context.state().join("mcp-logs")
}

pub(super) fn log_in(folder: &Path, label: &str) -> PathBuf {
    folder.join(format!("{label}.log"))
}

/// The messages about an incomplete list of tools; a hundred bad tools do not give a hundred lines.
pub fn remarks(label: &str, warnings: &[String], offers: &Offers) -> Vec<String> {
    let lists = warnings.iter().map(|warning| format!("{label}: {warning}"));
    let tools = offers.remarks.iter().map(|remark| format!("{label}, tool `{}`: {}", remark.tool, remark.why));
    let mut all: Vec<String> = lists.chain(tools).collect();
    let more = all.len().saturating_sub(MOST_REMARKS);
    if more > 0 {
        all.truncate(MOST_REMARKS);
        all.push(format!("{label}: {more} further tools are not offered as it lists them"));
    }
    all
}

/// The result of a call; a failure that the server reports is a result too.
pub fn taken(answer: Result<Value, CallError>, promised: Option<&ToolSchema>) -> Result<CheckedResult, CallError> {
    match answer {
        Ok(answer) => Ok(read_result(&answer, promised)),
        Err(error) => match &error.kind {
            CallErrorKind::Refused { code, message, data } => {
                let result = read_error((*code).into(), message, data.as_deref());
                Ok(CheckedResult { result, notes: vec![error.reason()] })
            }
            _ => Err(error),
        },
    }
}

/// The progress of a call, in a few words.
pub fn told(step: &Progress) -> String {
    let total = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let text = step.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("progress {}{total}{text}", step.done)
}

fn settings(servers: &Servers<'_>) -> Settings {
    let context = servers.context;
    Settings {
        enabled: servers.settings.enabled,
        name: "ollm".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roots: roots(context.places.project.as_deref().unwrap_or(&context.cwd)),
        network: context.network.clone(),
        commands: context.commands,
        ..Settings::default()
    }
}

fn roots(folder: &Path) -> Vec<Root> {
    /// All characters except those that a path may contain unescaped.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let escaped = percent_encode(folder.as_os_str().as_encoded_bytes(), ESCAPED);
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    vec![Root { uri: format!("file://{escaped}"), name }]
}
