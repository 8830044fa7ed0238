//! Servers that run for as long as one command does.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ollm_mcp::{
    CallError, Context, Entry, Fleet, Memory, Notice, Pending, Ports, Root, Settings, State, Status, Watch,
};
use ollm_process::Children;
use ollm_store::write_atomic;
use serde_json::Value;

use super::{Known, Servers, cache, now};
use crate::error::{Failure, Kind};
use crate::output::Output;

/// Whoever waits longer is told for what.
const SILENCE: Duration = Duration::from_secs(2);
/// How often we look for news while we wait.
const GLANCE: Duration = Duration::from_millis(20);
/// More of a log is not kept.
const LARGEST_LOG: usize = 256 << 10;

/// The servers of one command; gone with it.
pub(crate) struct Live<'s> {
    servers: &'s Servers<'s>,
    fleet: Fleet,
    news: Receiver<(String, State)>,
}

/// Passes news on to whoever may print.
struct Messenger(Mutex<Sender<(String, State)>>);

impl Watch for Messenger {
    fn notice(&self, server: &str, notice: &Notice) {
        if let Notice::State(state) = notice {
            let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = sender.send((server.to_owned(), state.clone()));
        }
    }
}

impl<'s> Live<'s> {
    /// Makes these servers ready to be started; all of them may be.
    pub(crate) fn new(servers: &'s Servers<'s>, chosen: &[&Known], output: &mut Output) -> Result<Live<'s>, Failure> {
        let _ = ollm_process::become_subreaper();
        let (sender, news) = channel();
        let ports = Ports { watch: Some(Arc::new(Messenger(Mutex::new(sender)))), ..Ports::default() };
        let world = servers.world;
        let settings = Settings {
            enabled: servers.settings.enabled,
            name: "ollm".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: roots(world.places.project.as_deref().unwrap_or(&world.cwd)),
            proxy: ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
                .iter()
                .find_map(|name| world.variable(name)),
            ..Settings::default()
        };
        let fleet = Fleet::new(Arc::new(Context::new(settings, ports, Arc::new(Children::new()))))
            .map_err(|error| Failure::new(Kind::Environment, format!("no server can be started: {error}")))?;
        for known in chosen {
            let (declaration, problems) = known.declaration(servers);
            for problem in problems {
                output.tell(&problem.to_string());
            }
            let revision = known.cached.as_ref().and_then(|entry| entry.revision.clone());
            fleet.add(declaration, Memory { revision, tools: None });
        }
        Ok(Live { servers, fleet, news })
    }

    /// Starts all of them at once, and tells the person what takes long.
    pub(crate) fn start(&self, output: &mut Output) -> Vec<(Status, Result<(), CallError>)> {
        let names: Vec<String> = self.fleet.servers().iter().map(|server| server.name().to_owned()).collect();
        let fleet = &self.fleet;
        let outcomes = std::thread::scope(|scope| {
            let starting = scope.spawn(|| fleet.start_all(&names));
            let mut quiet = Instant::now();
            while !starting.is_finished() {
                std::thread::sleep(GLANCE);
                self.tell_news(output);
                if quiet.elapsed() > SILENCE {
                    quiet = Instant::now();
                    self.waiting().into_iter().for_each(|text| output.tell(&text));
                }
            }
            starting.join().unwrap_or_default()
        });
        self.tell_news(output);
        let statuses: Vec<Status> =
            names.iter().filter_map(|name| self.fleet.server(name).ok()).map(|server| server.status()).collect();
        statuses.into_iter().zip(outcomes).collect()
    }

    /// Waits for an answer, and tells the person what happens meanwhile.
    pub(crate) fn wait<T>(
        &self,
        pending: Result<Pending<T>, CallError>,
        mut meanwhile: impl FnMut(&mut Output),
        output: &mut Output,
    ) -> Result<T, CallError> {
        let pending = pending?;
        let mut quiet = Instant::now();
        loop {
            let answer = pending.wait_for(GLANCE);
            self.tell_news(output);
            meanwhile(output);
            if let Some(answer) = answer {
                return answer;
            }
            if quiet.elapsed() > SILENCE {
                quiet = Instant::now();
                self.waiting().into_iter().for_each(|text| output.tell(&text));
            }
        }
    }

    /// The live servers themselves.
    pub(crate) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The tools a server lists, as it wrote them.
    pub(crate) fn listed(&self, name: &str) -> Vec<Value> {
        self.fleet.server(name).map(|server| server.memory().tools.unwrap_or_default()).unwrap_or_default()
    }

    /// Remembers what the servers said, and ends them.
    pub(crate) fn close(self, output: &mut Output) {
        let cache = cache(self.servers.world);
        for server in self.fleet.servers() {
            let Ok(known) = self.servers.find(server.name()) else { continue };
            let memory = server.memory();
            if let (Some(digest), Some(tools)) = (&known.digest, memory.tools)
                && let Err(error) = cache.put(digest, &Entry { tools, revision: memory.revision, at: now() })
            {
                output.tell(&format!("the tools of `{}` are not remembered: {error}", server.name()));
            }
            let (lines, _) = server.log(0);
            let path = log_file(self.servers, server.name());
            let text = lines.join("\n") + "\n";
            let start = text.ceil_char_boundary(text.len().saturating_sub(LARGEST_LOG));
            if !lines.is_empty() {
                // A log that is not kept is no reason to fail.
                let _ = write_atomic(&path, text.get(start..).unwrap_or_default().as_bytes());
            }
        }
        self.fleet.close();
    }

    /// Tells what has happened since.
    fn tell_news(&self, output: &mut Output) {
        for (server, state) in self.news.try_iter() {
            if let State::Starting(number @ 2..) = state {
                output.tell(&format!("server `{server}` is started once more (try {number})"));
            }
        }
    }

    /// Who keeps us waiting, if anybody does.
    fn waiting(&self) -> Option<String> {
        let statuses = self.fleet.statuses();
        let starting = statuses.iter().filter(|status| matches!(status.state, State::Starting(_)));
        let names: Vec<&str> = starting.map(|status| status.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("still starting: {}", names.join(", ")))
    }
}

/// Where the log of a server's last run is kept.
pub(crate) fn log_file(servers: &Servers<'_>, name: &str) -> std::path::PathBuf {
    let label = servers.labels.of(name).unwrap_or("server");
    servers.world.state().join("mcp-logs").join(format!("{label}.log"))
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
