//! Servers that live as long as one command, and what is remembered of them afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::SystemTime;

use ollm_catalog::{Oauth, Problem, Severity};
use ollm_mcp::{
    BlockingClient, Cache, CallError, CallErrorKind, ClientContext, Endpoint, Entry, Filter, Offers, Ports, Progress,
    Root, Server, ServerMemory, Settings, Spill, Taken, Tokens, read_error, read_result,
};
use ollm_process::Children;
use ollm_protocol::ToolSchema;
use ollm_store::{Digest, UpdateError, write_atomic};
use serde_json::Value;

use super::gate::Gate;
use super::{DeclaredServer, Servers, ToolReview, cache, filter, now, offers, tokens};
use crate::error::{AppError, ErrorKind};
use crate::world::World;

/// More of a log is not kept.
const LARGEST_LOG: usize = 256 << 10;
/// More of what is wrong with the tools of one server is not told at once.
const MOST_REMARKS: usize = 20;

/// The servers of one command; gone with it.
#[derive(Debug)]
pub(super) struct ServerSet {
    fleet: BlockingClient,
    /// What was granted by logging in, also while we run.
    tokens: Arc<Tokens>,
    /// Looks at those that came with a project once more whenever they are started.
    gate: Arc<Gate>,
    members: RwLock<BTreeMap<String, ServerEntry>>,
    cache: Cache,
    /// Whether there is a home to remember things in.
    keeps: bool,
}

/// What is known of a server beside how to reach it.
#[derive(Debug)]
struct ServerEntry {
    label: String,
    filter: Filter,
    digest: Option<Digest>,
    /// What is remembered of it already.
    cached: Option<Entry>,
    /// Which of its tools a person knows, if that matters.
    review: Option<ToolReview>,
    log: PathBuf,
    /// Where it is declared.
    file: PathBuf,
    /// The extension it came with.
    extension: Option<String>,
    /// How to log in to it.
    oauth: Option<Oauth>,
}

/// What became of servers whose declarations were read anew.
#[derive(Debug, Default)]
pub(super) struct Turnover {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
    /// Those whose declaration can no longer be read; they are what they were.
    pub(super) kept: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

impl ServerSet {
    /// Makes these servers ready to be started, all of which may be; what is missing in their declarations is named.
    pub(super) fn gather(
        servers: &Servers<'_>,
        chosen: &[&DeclaredServer],
        ports: Ports,
    ) -> Result<(ServerSet, Vec<Problem>), AppError> {
        let tokens = Arc::new(Tokens::new(&tokens(servers.world), servers.world.network.clone(), SystemTime::now));
        let gate = Arc::new(Gate::new(servers.world));
        let ports = Ports { authorize: Some(tokens.clone()), admit: Some(gate.clone()), ..ports };
        let fleet =
            BlockingClient::new(Arc::new(ClientContext::new(settings(servers), ports, Arc::new(Children::new()))))
                .map_err(|error| AppError::new(ErrorKind::Environment, format!("no server can be started: {error}")))?;
        let (cache, keeps) = (cache(servers.world), servers.world.own_home().is_some());
        let server_set = ServerSet { fleet, tokens, gate, members: RwLock::default(), cache, keeps };
        let Turnover { problems, .. } = server_set.renew(servers, chosen);
        Ok((server_set, problems))
    }

    /// Has exactly these servers from now on. What is no longer among them is ended; what is declared as before goes on
    /// undisturbed; what cannot be read any more stays as it was.
    pub(super) fn renew(&self, servers: &Servers<'_>, chosen: &[&DeclaredServer]) -> Turnover {
        let mut turnover = Turnover::default();
        self.gate.enter(servers.world);
        for name in self.names() {
            let now = chosen.iter().find(|known| known.spec.name == name).map(|known| &known.spec.origin.file);
            let stays = |member: &ServerEntry| servers.stay(&member.file, member.extension.as_deref());
            let (same, stays) =
                self.read(&name, |member| (now == Some(&member.file), stays(member))).unwrap_or_default();
            // Nobody takes the name of one that merely cannot be read for a while.
            if stays && !same {
                turnover.kept.push(name);
            } else if now.is_none() {
                self.remove(&name);
                turnover.removed.push(name);
            }
        }
        for known in chosen.iter().filter(|known| !turnover.kept.contains(&known.spec.name)) {
            let name = &known.spec.name;
            self.gate.watch(known);
            let (ready, mut missing) = match known.ready(servers) {
                Ok(found) => found,
                Err(why) => {
                    let message = format!("server `{name}` is not started: {why}");
                    turnover.problems.push(Problem::of_file(Severity::Error, &known.spec.origin.file, message));
                    continue;
                }
            };
            let before = self.fleet.server(name).ok();
            // One that was approved anew since it was refused is tried again.
            let again = self.gate.refused(name);
            let oauth = known.expanded(servers).0.oauth;
            let logs_in_as_before = self.read(name, |member| member.oauth == oauth).unwrap_or_default();
            let same = before.as_ref().is_some_and(|server| *server.ready() == ready && logs_in_as_before);
            if again || !same {
                if before.is_some() {
                    self.remove(name);
                }
                if let Endpoint::Http { url, .. } | Endpoint::Sse { url, .. } = &ready.endpoint {
                    self.tokens.serve(name, url, client(oauth.as_ref()));
                }
                self.fleet.add(ready, memory(known.cached.as_ref()));
                let list = if before.is_some() { &mut turnover.changed } else { &mut turnover.added };
                list.push(name.clone());
                turnover.problems.append(&mut missing);
            }
            self.write().insert(name.clone(), ServerEntry::of(known, oauth, servers));
        }
        turnover
    }

    /// Ends a server, with what it said remembered.
    fn remove(&self, name: &str) {
        if let Ok(server) = self.fleet.server(name) {
            self.keep_one(&server);
        }
        let _ = self.fleet.remove(name);
        self.write().remove(name);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.fleet.servers().iter().map(|server| server.name().to_owned()).collect()
    }

    fn read<T>(&self, name: &str, look: impl FnOnce(&ServerEntry) -> T) -> Option<T> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(name).map(look)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, ServerEntry>> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The live servers themselves.
    pub(super) fn fleet(&self) -> &BlockingClient {
        &self.fleet
    }

    /// The tools a server offers now, under the names models use.
    pub(super) fn offers(&self, name: &str) -> Offers {
        let Ok(server) = self.fleet.server(name) else { return Offers::default() };
        self.read(name, |member| member.offers(&server.tools())).unwrap_or_default()
    }

    /// What was left out of a server's tools, and what is wrong with those that are not offered.
    pub(super) fn remarks(&self, name: &str) -> Vec<String> {
        let warnings = self.fleet.server(name).map(|server| server.status().warnings).unwrap_or_default();
        remarks(name, &warnings, &self.offers(name))
    }

    /// The tools a server offered until it ended unasked.
    pub(super) fn lapsed(&self, name: &str) -> Offers {
        let Ok(server) = self.fleet.server(name) else { return Offers::default() };
        self.read(name, |member| member.offers(&server.lapsed())).unwrap_or_default()
    }

    /// What the names of a server's tools begin with.
    pub(super) fn prefix(&self, name: &str) -> String {
        let label = self.read(name, |member| member.label.clone()).unwrap_or_else(|| name.to_owned());
        format!("mcp__{label}__")
    }

    /// Remembers what the servers said while they ran; what could not be remembered is told.
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
            let (revision, transport, warnings) = (memory.revision, memory.transport, memory.warnings);
            let said = memory.tools.map(|tools| Entry { tools, warnings, revision, transport, at: now() });
            if let (Some(digest), Some(said)) = (&member.digest, said)
                && self.keeps
                && !member.knows(&said)
                && let Err(error) = self.cache.put(digest, &said)
            {
                trouble = Some(format!("what servers list is not remembered: {}", reason(&error)));
            }
            let (lines, _) = server.log(0);
            let text = lines.join("\n") + "\n";
            let start = text.ceil_char_boundary(text.len().saturating_sub(LARGEST_LOG));
            if self.keeps && !lines.is_empty() {
                // A log that is not kept is no reason to fail.
                let _ = write_atomic(&member.log, text.get(start..).unwrap_or_default().as_bytes());
            }
            trouble
        })
        .flatten()
    }

    /// Where results of a server are kept that are too large to show.
    pub(super) fn spill(&self, world: &World, name: &str) -> Spill {
        let redactor = self.fleet.server(name).map(|server| server.redactor()).unwrap_or_default();
        Spill::new(world.state().join("mcp-results"), redactor)
    }

    /// Ends all of them, and what they left behind.
    pub(super) fn close(self) {
        self.fleet.close();
    }
}

impl ServerEntry {
    fn of(known: &DeclaredServer, oauth: Option<Oauth>, servers: &Servers<'_>) -> ServerEntry {
        let name = &known.spec.name;
        ServerEntry {
            label: servers.labels.of(name).unwrap_or("server").to_owned(),
            filter: filter(&known.spec),
            digest: known.key,
            cached: known.cached.clone(),
            review: ToolReview::of(known, servers.world),
            log: log_file(servers, name),
            file: known.spec.origin.file.clone(),
            extension: known.spec.extension.clone(),
            oauth,
        }
    }

    fn offers(&self, listed: &[Value]) -> Offers {
        offers(&self.label, listed, &self.filter, self.review.as_ref())
    }

    /// Whether it says what is remembered.
    fn knows(&self, said: &Entry) -> bool {
        self.cached.as_ref().is_some_and(|entry| Entry { at: said.at, ..entry.clone() } == *said)
    }
}

/// Why something was not written down.
pub fn reason(error: &UpdateError) -> String {
    match error {
        UpdateError::Refused(trouble) => trouble.to_string(),
        UpdateError::File(error) => error.to_string(),
    }
}

/// Where the log of a server's last run is kept.
pub fn log_file(servers: &Servers<'_>, name: &str) -> PathBuf {
    let label = servers.labels.of(name).unwrap_or("server");
    servers.world.state().join("mcp-logs").join(format!("{label}.log"))
}

/// What people are told about a list of tools that is not whole; a hundred bad tools are no hundred lines.
pub fn remarks(name: &str, warnings: &[String], offers: &Offers) -> Vec<String> {
    let lists = warnings.iter().map(|warning| format!("server `{name}`: {warning}"));
    let tools = offers.remarks.iter().map(|remark| format!("server `{name}`, tool `{}`: {}", remark.tool, remark.why));
    let mut all: Vec<String> = lists.chain(tools).collect();
    let more = all.len().saturating_sub(MOST_REMARKS);
    if more > 0 {
        all.truncate(MOST_REMARKS);
        all.push(format!("server `{name}`: {more} further tools are not offered as it lists them"));
    }
    all
}

/// The result of a call; a failure that the server tells about is one too.
pub fn taken(answer: Result<Value, CallError>, promised: Option<&ToolSchema>) -> Result<Taken, CallError> {
    match answer {
        Ok(answer) => Ok(read_result(&answer, promised)),
        Err(error) => match &error.kind {
            CallErrorKind::Refused { code, message, data } => {
                let result = read_error((*code).into(), message, data.as_deref());
                Ok(Taken { result, notes: vec![error.reason()] })
            }
            _ => Err(error),
        },
    }
}

/// How far a call has come, in a few words.
pub fn told(step: &Progress) -> String {
    let total = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let text = step.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("progress {}{total}{text}", step.done)
}

/// The client that is declared for a server, and the word that proves it.
fn client(oauth: Option<&Oauth>) -> Option<(String, String)> {
    oauth.and_then(|oauth| oauth.client_id.clone().zip(oauth.client_secret.clone()))
}

fn memory(cached: Option<&Entry>) -> ServerMemory {
    let known = |entry: &Entry| ServerMemory {
        revision: entry.revision.clone(),
        transport: entry.transport.clone(),
        tools: Some(entry.tools.clone()),
        warnings: entry.warnings.clone(),
    };
    cached.map(known).unwrap_or_default()
}

fn settings(servers: &Servers<'_>) -> Settings {
    let world = servers.world;
    Settings {
        enabled: servers.settings.enabled,
        name: "ollm".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roots: roots(world.places.project.as_deref().unwrap_or(&world.cwd)),
        network: world.network.clone(),
        commands: world.commands,
        ..Settings::default()
    }
}

fn roots(folder: &std::path::Path) -> Vec<Root> {
    let escaped: String = folder
        .to_string_lossy()
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    vec![Root { uri: format!("file://{escaped}"), name }]
}
