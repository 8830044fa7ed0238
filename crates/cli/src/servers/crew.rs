//! Servers that live as long as one command, and what is remembered of them afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::Problem;
use ollm_mcp::{
    Authorize, Cache, CallError, Context, Declaration, Endpoint, Entry, Filter, Fleet, Memory, Offers, Ports, Progress,
    Root, Settings, Taken, Tokens, Trouble, read_error, read_result,
};
use ollm_process::Children;
use ollm_protocol::ToolSchema;
use ollm_store::{Digest, write_atomic};
use serde_json::Value;

use super::{Known, Servers, cache, filter, now, proxy, tokens};
use crate::error::{Failure, Kind};

/// More of a log is not kept.
const LARGEST_LOG: usize = 256 << 10;

/// The servers of one command; gone with it.
#[derive(Debug)]
pub(crate) struct Crew {
    fleet: Fleet,
    members: BTreeMap<String, Member>,
    cache: Cache,
}

/// What is known of a server beside how to reach it.
#[derive(Debug)]
struct Member {
    label: String,
    filter: Filter,
    digest: Option<Digest>,
    /// What is remembered of it already.
    cached: Option<Entry>,
    log: PathBuf,
}

impl Crew {
    /// Makes these servers ready to be started, all of which may be; what is missing in their declarations is named.
    pub(crate) fn gather(
        servers: &Servers<'_>,
        chosen: &[&Known],
        ports: Ports,
    ) -> Result<(Crew, Vec<Problem>), Failure> {
        let _ = ollm_process::become_subreaper();
        let mut problems = Vec::new();
        let declared: Vec<(&Known, Declaration)> = chosen
            .iter()
            .map(|known| {
                let (declaration, mut missing) = known.declaration(servers);
                problems.append(&mut missing);
                (*known, declaration)
            })
            .collect();
        let ports = Ports { authorize: authorize(servers, &declared), ..ports };
        let fleet = Fleet::new(Arc::new(Context::new(settings(servers), ports, Arc::new(Children::new()))))
            .map_err(|error| Failure::new(Kind::Environment, format!("no server can be started: {error}")))?;
        let mut members = BTreeMap::new();
        for (known, declaration) in declared {
            let cached = known.cached.as_ref();
            let tools = cached.map(|entry| entry.tools.clone());
            fleet.add(declaration, Memory { revision: cached.and_then(|entry| entry.revision.clone()), tools });
            members.insert(known.spec.name.clone(), Member::of(known, servers));
        }
        Ok((Crew { fleet, members, cache: cache(servers.world) }, problems))
    }

    /// The live servers themselves.
    pub(crate) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The tools a server offers now, under the names models use.
    pub(crate) fn offers(&self, name: &str) -> Offers {
        let (Some(member), Ok(server)) = (self.members.get(name), self.fleet.server(name)) else {
            return Offers::default();
        };
        Offers::read(&member.label, &server.tools(), &member.filter)
    }

    /// What the names of a server's tools begin with.
    pub(crate) fn prefix(&self, name: &str) -> String {
        let label = self.members.get(name).map_or(name, |member| &member.label);
        format!("mcp__{label}__")
    }

    /// Remembers what the servers said while they ran; what could not be remembered is told.
    pub(crate) fn keep(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        for server in self.fleet.servers() {
            let Some(member) = self.members.get(server.name()) else { continue };
            let memory = server.memory();
            if let (Some(digest), Some(tools)) = (&member.digest, memory.tools)
                && !member.knows(&tools, memory.revision.as_deref())
                && let Err(error) = self.cache.put(digest, &Entry { tools, revision: memory.revision, at: now() })
            {
                troubles.push(format!("the tools of `{}` are not remembered: {error}", server.name()));
            }
            let (lines, _) = server.log(0);
            let text = lines.join("\n") + "\n";
            let start = text.ceil_char_boundary(text.len().saturating_sub(LARGEST_LOG));
            if !lines.is_empty() {
                // A log that is not kept is no reason to fail.
                let _ = write_atomic(&member.log, text.get(start..).unwrap_or_default().as_bytes());
            }
        }
        troubles
    }

    /// Ends all of them, and what they left behind.
    pub(crate) fn close(self) {
        self.fleet.close();
    }
}

impl Member {
    fn of(known: &Known, servers: &Servers<'_>) -> Member {
        let name = &known.spec.name;
        Member {
            label: servers.labels.of(name).unwrap_or("server").to_owned(),
            filter: filter(&known.spec),
            digest: known.digest,
            cached: known.cached.clone(),
            log: log_file(servers, name),
        }
    }

    /// Whether it says what is remembered.
    fn knows(&self, tools: &[Value], revision: Option<&str>) -> bool {
        self.cached.as_ref().is_some_and(|entry| entry.tools == tools && entry.revision.as_deref() == revision)
    }
}

/// Where the log of a server's last run is kept.
pub(crate) fn log_file(servers: &Servers<'_>, name: &str) -> PathBuf {
    let label = servers.labels.of(name).unwrap_or("server");
    servers.world.state().join("mcp-logs").join(format!("{label}.log"))
}

/// The result of a call; a failure that the server tells about is one too.
pub(crate) fn taken(answer: Result<Value, CallError>, promised: Option<&ToolSchema>) -> Result<Taken, CallError> {
    match answer {
        Ok(answer) => Ok(read_result(&answer, promised)),
        Err(CallError { kind: Trouble::Refused { code, message, data }, .. }) => {
            Ok(Taken { result: read_error(code.into(), &message, data.as_deref()), notes: Vec::new() })
        }
        Err(error) => Err(error),
    }
}

/// How far a call has come, in a few words.
pub(crate) fn told(step: &Progress) -> String {
    let total = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let text = step.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("progress {}{total}{text}", step.done)
}

fn settings(servers: &Servers<'_>) -> Settings {
    let world = servers.world;
    Settings {
        enabled: servers.settings.enabled,
        name: "ollm".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roots: roots(world.places.project.as_deref().unwrap_or(&world.cwd)),
        proxy: proxy(world),
        ..Settings::default()
    }
}

/// Who knows what was granted by logging in, also while we run; nobody where no server is elsewhere.
fn authorize(servers: &Servers<'_>, declared: &[(&Known, Declaration)]) -> Option<Arc<dyn Authorize>> {
    let file = tokens(servers.world);
    let address = |declaration: &Declaration| match &declaration.endpoint {
        Endpoint::Http { url, .. } | Endpoint::Sse { url, .. } => Some((declaration.name.clone(), url.clone())),
        Endpoint::Stdio { .. } => None,
    };
    let remote: Vec<_> = declared.iter().filter_map(|(_, declaration)| address(declaration)).collect();
    (!remote.is_empty())
        .then(|| Arc::new(Tokens::new(&file, proxy(servers.world), SystemTime::now, remote)) as Arc<dyn Authorize>)
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
