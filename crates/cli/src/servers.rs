//! The wiring of MCP servers: what the catalog found, what a person approved, and the live ones.
//!
//! Nothing here starts a runtime until a [`Live`] is made.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_catalog::{
    Address, McpSettings, Positions, Problem, ServerSpec, Severity, Transport, configuration, load_servers,
    server_digest,
};
use ollm_engine::Environment;
use ollm_mcp::{Cache, Declaration, Endpoint, Entry, Filter, Labels, Offers};
use ollm_process::{Limits, find_program};
use ollm_protocol::{LimitsSpec, Source, shell_word};
use ollm_store::{Approvals, Digest, Standing};

use crate::error::{Failure, Kind, OK};
use crate::output::Output;
use crate::world::World;

mod crew;
mod live;
mod toolbox;

pub(crate) use crew::{log_file, taken, told};
pub(crate) use live::Live;
pub(crate) use toolbox::Toolbox;

/// Where the configuration declares servers.
pub(crate) const DECLARED: &str = "mcp.servers";

/// All servers that are declared.
#[derive(Debug)]
pub(crate) struct Servers<'w> {
    pub(crate) world: &'w World,
    pub(crate) all: Vec<Known>,
    pub(crate) settings: McpSettings,
    pub(crate) labels: Labels,
    /// What is wrong with the configuration.
    general: Vec<Problem>,
    /// What is wrong with the declarations.
    problems: Vec<Problem>,
}

/// One server that is declared.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) spec: ServerSpec,
    pub(crate) trust: Standing,
    pub(crate) digest: Option<Digest>,
    /// The program that would be started; why there is none.
    pub(crate) program: Result<Option<PathBuf>, String>,
    /// What it said last.
    pub(crate) cached: Option<Entry>,
}

impl<'w> Servers<'w> {
    /// Reads everything; a security setting that cannot be read stops us here.
    pub(crate) fn load(world: &'w World) -> Result<Servers<'w>, Failure> {
        let env = |name: &str| world.variable(name);
        let (config, mut general) = configuration(&world.places, &env, &world.overrides, Positions::Always);
        if let Some(fatal) = general.iter().find(|problem| problem.severity == Severity::Fatal) {
            return Err(Failure::new(Kind::Configuration, fatal.to_string()).hint("correct the value or remove it"));
        }
        // The servers of the configuration are read again, with those of the other files, by one reader.
        general.retain(|problem| !problem.field.starts_with(DECLARED));
        let (specs, mut problems) = load_servers(&world.places);
        let (approvals, trouble) = Approvals::load(&world.approvals());
        if let Some(trouble) = trouble {
            let message = format!("no server is approved: {trouble}");
            problems.push(whole_file(&world.approvals(), message));
        }
        let cache = cache(world).all();
        let all: Vec<Known> = specs.into_iter().map(|spec| Known::of(spec, world, &approvals, &cache)).collect();
        let labels = Labels::new(all.iter().map(|known| known.spec.name.as_str()));
        Ok(Servers { world, all, settings: config.mcp(), labels, general, problems })
    }

    /// Tells the person what is wrong with the files.
    pub(crate) fn tell_problems(&self, output: &mut Output) {
        self.world.tell_notices(output);
        for problem in self.problems() {
            output.tell(&problem.to_string());
        }
    }

    /// What is wrong with the files.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.general.iter().chain(&self.problems)
    }

    /// The exit code of a look at all servers: files that cannot be understood are no success.
    pub(crate) fn code(&self) -> u8 {
        if self.broken().is_some() { Kind::Configuration as u8 } else { OK }
    }

    /// A declaration, or a whole file of them, that is not loaded.
    fn broken(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Error)
    }

    /// The server of a name.
    pub(crate) fn find(&self, name: &str) -> Result<&Known, Failure> {
        self.all.iter().find(|known| known.spec.name == name).ok_or_else(|| self.unknown(name))
    }

    /// The servers of these names; all without one.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<&Known>, Failure> {
        match names {
            [] => Ok(self.all.iter().collect()),
            names => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    /// Why a server may not be started, if it may not.
    pub(crate) fn refusal(&self, known: &Known) -> Option<Failure> {
        let (kind, why) = self.obstacle(known)?;
        Some(Failure::new(kind, format!("server `{}` is not started: {why}", known.spec.name)))
    }

    /// What stands between a server and its start.
    pub(crate) fn obstacle(&self, known: &Known) -> Option<(Kind, String)> {
        if !self.settings.enabled {
            return Some((Kind::Configuration, "mcp.enabled is false".to_owned()));
        }
        if !known.spec.enabled {
            return Some((Kind::Configuration, format!("it is disabled in {}", known.spec.origin.file.display())));
        }
        let untrusted = known.untrusted().map(|why| (Kind::Untrusted, why));
        untrusted.or_else(|| known.program.as_ref().err().map(|why| (Kind::Environment, why.clone())))
    }

    /// The tools of a server's list, under the names models use.
    pub(crate) fn offers(&self, known: &Known, listed: &[serde_json::Value]) -> Offers {
        let filter = filter(&known.spec);
        self.labels.of(&known.spec.name).map(|label| Offers::read(label, listed, &filter)).unwrap_or_default()
    }

    fn unknown(&self, name: &str) -> Failure {
        let kind = if self.broken().is_some() { Kind::Configuration } else { Kind::Usage };
        let failure = Failure::new(kind, format!("there is no server `{name}`"));
        let failure = self.broken().into_iter().fold(failure, |failure, problem| failure.hint(problem.to_string()));
        let names = self.all.iter().map(|known| known.spec.name.as_str());
        let nearest = names.map(|known| (strsim::damerau_levenshtein(name, known), known)).min();
        match nearest.filter(|(distance, known)| *distance <= known.len() / 3) {
            Some((_, known)) => failure.hint(format!("did you mean `{known}`?")),
            None => failure.hint("`ollm mcp list` shows the servers there are"),
        }
    }
}

impl Known {
    fn of(spec: ServerSpec, world: &World, approvals: &Approvals, cache: &[(Digest, Entry)]) -> Known {
        let program = program(&spec, world);
        let found = program.as_ref().ok().and_then(|program| program.as_deref());
        let (digest, program) =
            match server_digest(&spec, found, came_with(&spec, world).as_deref(), &|name| world.variable(name)) {
                Ok(digest) => (Some(digest), program),
                Err(why) => (None, Err(why.to_string())),
            };
        let trust = match (&spec.source, &digest) {
            (Source::User, _) => Standing::Approved,
            (_, Some(digest)) => approvals.check(&source(&spec), &id(&spec), digest, digest),
            (_, None) => Standing::Unknown,
        };
        let cached = cache.iter().find(|(key, _)| Some(key) == digest.as_ref()).map(|(_, entry)| entry.clone());
        Known { spec, trust, digest, program, cached }
    }

    /// The word for whether it may be started.
    pub(crate) fn trust(&self) -> &'static str {
        match self.trust {
            Standing::Approved | Standing::Limited => "trusted",
            Standing::Modified => "modified",
            Standing::Unknown => "untrusted",
        }
    }

    /// Why nobody may start it.
    pub(crate) fn untrusted(&self) -> Option<String> {
        let way_out = format!("review and approve it with `ollm mcp trust {}`", shell_word(&self.spec.name));
        match self.trust {
            Standing::Approved | Standing::Limited => None,
            Standing::Modified => Some(format!("it changed since it was approved; {way_out}")),
            Standing::Unknown => Some(format!("it is not approved; {way_out}")),
        }
    }

    /// How to reach it, with everything filled in, and what is missing for that.
    pub(crate) fn declaration(&self, servers: &Servers<'_>) -> (Declaration, Vec<Problem>) {
        let world = servers.world;
        let (spec, problems) = ollm_catalog::expand(&self.spec, &|name| world.variable(name));
        let program = self.program.as_ref().ok().cloned().flatten();
        let declaration = Declaration {
            endpoint: endpoint(&spec, program, world),
            connect_timeout: spec.timeout.unwrap_or(servers.settings.connection_timeout),
            tool_timeout: spec.tool_timeout.unwrap_or(servers.settings.tool_timeout),
            enabled: spec.enabled,
            lazy: spec.lazy.unwrap_or(true),
            auto_restart: spec.auto_restart.unwrap_or(servers.settings.auto_restart),
            tools: filter(&spec),
            name: spec.name,
        };
        (declaration, problems)
    }
}

/// What an approval of a server is filed under.
pub(crate) fn source(spec: &ServerSpec) -> String {
    format!("{}#{}", spec.origin.file.display(), id(spec))
}

/// The name of a server among other things that are approved.
pub(crate) fn id(spec: &ServerSpec) -> String {
    format!("mcp:{}", spec.name)
}

/// What servers said last.
pub(crate) fn cache(world: &World) -> Cache {
    Cache::new(world.state().join("mcp-tools.json"))
}

/// What was granted by logging in.
pub(crate) fn tokens(world: &World) -> PathBuf {
    world.state().join("mcp-tokens.json")
}

/// The way to servers that are not on this machine.
pub(crate) fn proxy(world: &World) -> Option<String> {
    let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    names.iter().find_map(|name| world.variable(name)).filter(|proxy| !proxy.is_empty())
}

/// The time, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn filter(spec: &ServerSpec) -> Filter {
    Filter { allow: spec.allow.clone(), deny: spec.deny.clone() }
}

fn program(spec: &ServerSpec, world: &World) -> Result<Option<PathBuf>, String> {
    let Address::Command { command, .. } = &spec.address else { return Ok(None) };
    let path = Path::new(command);
    if path.is_absolute() {
        let there = path.is_file().then(|| Some(path.to_owned()));
        return there.ok_or_else(|| format!("{command} does not exist; restore it, or change the declaration"));
    }
    let search = world.variable("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let found = find_program(command, OsStr::new(&search));
    found.map(Some).ok_or_else(|| format!("`{command}` is not on PATH; install it, or give its absolute path"))
}

fn endpoint(spec: &ServerSpec, program: Option<PathBuf>, world: &World) -> Endpoint {
    match &spec.address {
        Address::Command { args, env, cwd, limits, .. } => {
            let base = came_with(spec, world).unwrap_or_else(|| world.cwd.clone());
            Endpoint::Stdio {
                program: program.unwrap_or_default(),
                args: args.clone(),
                env: variables(world, &env.0),
                cwd: Some(cwd.as_ref().map_or_else(|| base.clone(), |cwd| base.join(cwd))),
                limits: bounds(limits),
            }
        }
        Address::Url { url, headers, transport: Transport::Http } => {
            Endpoint::Http { url: url.clone(), headers: headers.0.clone() }
        }
        Address::Url { url, headers, transport: Transport::Sse } => {
            Endpoint::Sse { url: url.clone(), headers: headers.0.clone() }
        }
    }
}

/// The folder whose content came with a server: the project, or the extension. The user's own came with nothing.
pub(crate) fn came_with(spec: &ServerSpec, world: &World) -> Option<PathBuf> {
    match spec.source {
        Source::Workspace => world.places.project.clone(),
        Source::Extension | Source::Downloaded => spec.origin.file.parent().map(Path::to_owned),
        Source::User | Source::Builtin => None,
    }
}

/// What a server sees of the environment: an allow-list, and what it declares.
fn variables(world: &World, declared: &[(String, String)]) -> Vec<(String, String)> {
    let environment = Environment { variables: world.variables.clone(), ..Environment::default() };
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut seen: Vec<(String, String)> = environment.common().into_iter().filter_map(readable).collect();
    for (name, value) in declared {
        seen.retain(|(seen, _)| seen != name);
        seen.push((name.clone(), value.clone()));
    }
    seen
}

fn bounds(spec: &LimitsSpec) -> Limits {
    Limits {
        cpu: spec.cpu,
        memory: spec.memory,
        processes: spec.processes,
        files: spec.files,
        file_size: spec.file_size,
        ..Limits::default()
    }
}

fn whole_file(file: &Path, message: String) -> Problem {
    Problem {
        severity: Severity::Error,
        file: file.to_owned(),
        line: 0,
        column: 0,
        field: String::new(),
        value: None,
        message,
        help: None,
        snippet: None,
    }
}
