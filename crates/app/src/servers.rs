//! The wiring of MCP servers: what the catalog found, what a person approved, and the live ones.
//!
//! Nothing here starts a runtime until a [`Live`] is made.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_catalog::{
    Address, McpSettings, Problem, ServerSpec, Severity, Transport, configuration, expand_with, load_servers,
};
use ollm_engine::Environment;
use ollm_mcp::{Cache, Endpoint, Labels, Offers, ReadyServer, ServerMemory};
use ollm_process::Limits;
use ollm_protocol::{Code, LimitsSpec, Remedy, Source, did_you_mean};
use ollm_store::{Digest, looks_secret};
use ollm_trust::{
    Approvable, ExtensionFolder, Identity, ProgramBox, Refusal, RefusalReason, Standing, Trust, Trusted,
    fetches_packages,
};

use crate::app_context::AppContext;
use crate::error::AppError;
use crate::port::Notices;

mod bundled;
mod failures;
mod gate;
mod live;
mod loaded;
mod mcp_tools;
mod names;
mod server_set;
mod tool_review;
mod wait;

pub use bundled::Bundled;
use bundled::Joined;
pub use failures::{LastFailure, last_failures};
pub use live::Live;
pub use mcp_tools::McpTools;
pub use server_set::{log_file, reason, remarks, taken, told};
pub(crate) use tool_review::file as reviewed_tools;
pub use tool_review::{ToolReview, WaitingTool, waiting_digest};

/// Where the configuration declares servers.
pub const DECLARED: &str = "mcp.servers";

/// All servers that are declared.
#[derive(Debug)]
pub struct Servers<'w> {
    /// Where they were looked for.
    pub context: &'w AppContext,
    /// Each once, nearest to the user first.
    pub all: Vec<ServerEntry>,
    /// What the configuration says about all of them.
    pub settings: McpSettings,
    /// What the names of their tools begin with.
    pub labels: Labels,
    /// What is wrong with the configuration.
    general: Vec<Problem>,
    /// What is wrong with the folders of extensions, their switches and their secrets.
    around: Vec<Problem>,
    /// What is wrong with the declarations.
    problems: Vec<Problem>,
    /// Where extensions are looked for.
    directories: Vec<PathBuf>,
    /// The manifests that cannot be read.
    broken: Vec<PathBuf>,
    /// Who is trusted.
    pub trust: Trust,
}

/// An entry of that list: the declaration, with what is known of it here.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    /// As it was declared.
    pub spec: Arc<ServerSpec>,
    /// Whether it may be started.
    pub trust: Standing,
    /// What an approval is bound to.
    pub digest: Option<Digest>,
    /// What it said is remembered under.
    pub key: Option<Digest>,
    /// The extension it came with.
    pub bundle: Option<Arc<Bundled>>,
    /// The program that would be started; why there is none.
    pub program: Result<Option<PathBuf>, String>,
    /// What it said last.
    pub cached: Option<ServerMemory>,
    /// What the names of its tools begin with.
    pub label: String,
    /// Which of its tools a person knows, if that matters.
    review: Option<ToolReview>,
}

impl<'w> Servers<'w> {
    /// Where extensions are looked for.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The files in which more is kept of servers than their declarations.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        vec![failures::file(self.context), tokens(self.context), cache_file(self.context)]
    }

    /// Reads everything; a security setting that cannot be read stops us here.
    pub fn load(context: &'w AppContext) -> Result<Servers<'w>, AppError> {
        let env = |name: &str| context.variable(name);
        let (config, mut general) = configuration(&context.places, &env, &context.overrides);
        if let Some(fatal) = general.iter().find(|problem| problem.severity == Severity::Fatal) {
            return Err(AppError::from(fatal).hint("correct the value or remove it"));
        }
        // The servers of the configuration are read again, with those of the other files, by one reader.
        general.retain(|problem| !problem.field.starts_with(DECLARED));
        let general = context.told(general);
        let (specs, mut problems) = load_servers(&context.places);
        let settings = config.mcp();
        let with_box = |spec| ServerSpec { default_box: settings.default_box, ..spec };
        let trust = context.trust(&config);
        let Joined { servers, broken, around } = bundled::join(context, &config, &trust, &mut problems);
        if let Some(trouble) = trust.trouble() {
            let message = format!("no server is approved: {trouble}");
            problems.push(Problem::of_file(Code::BrokenApprovals, Severity::Error, &context.approvals(), message));
        }
        let cache = cache(context).all();
        let own = specs.into_iter().map(|spec| ServerEntry::of(with_box(spec), context, &trust, &cache));
        let bundled = servers
            .into_iter()
            .map(|(spec, bundle)| ServerEntry::bundled(with_box(spec), bundle, context, &trust, &cache));
        let mut all = names::settle(own.chain(bundled).collect(), &mut problems);
        // Guards know the tools of servers by their names: nothing that is farther from the user changes those.
        let labels = Labels::ranked(all.iter().map(|known| (names::rank(known), known.spec.name.as_str())));
        for known in &mut all {
            labels.of(&known.spec.name).unwrap_or_default().clone_into(&mut known.label);
        }
        let directories = config.extensions(&context.places).directories;
        Ok(Servers { context, all, settings, labels, general, around, problems, directories, broken, trust })
    }

    /// Tells the person what is wrong with the files.
    pub fn tell_problems(&self, notices: &mut dyn Notices) {
        self.context.tell_notices(notices);
        for problem in self.problems() {
            notices.tell(&problem.to_string());
        }
    }

    /// Tells the person what is wrong with one server, and with whole files.
    pub fn tell_problems_of(&self, name: &str, notices: &mut dyn Notices) {
        self.context.tell_notices(notices);
        for problem in self.problems().filter(|problem| concerns(problem, name)) {
            notices.tell(&problem.to_string());
        }
    }

    /// What is wrong with the files.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.general.iter().chain(&self.around).chain(&self.problems)
    }

    /// What is wrong with the configuration, so that some of it does not apply.
    fn wrong_configuration(&self) -> Option<String> {
        self.general.iter().find(|problem| problem.severity <= Severity::Error).map(ToString::to_string)
    }

    /// Whether servers that were declared in a file go on as they were, because it cannot be read now. Those of an
    /// extension go on only while some state of it is approved.
    fn stay(&self, file: &Path, extension: Option<&str>) -> bool {
        let wrong = |problem: &Problem| problem.severity <= Severity::Error && problem.file == file;
        let broken = self.broken.iter().any(|broken| broken == file) || self.problems().any(wrong);
        let root = file.parent().unwrap_or(Path::new(""));
        let approved = |name: &str| self.trust.approval(&ExtensionFolder::new(name, root)).is_some();
        self.settings.enabled && file.is_file() && broken && extension.is_none_or(approved)
    }

    /// A declaration, or a whole file of them, that is not loaded.
    pub fn unloaded(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Error)
    }

    /// The server of a name.
    pub fn find(&self, name: &str) -> Result<&ServerEntry, AppError> {
        self.all.iter().find(|known| known.spec.name == name).ok_or_else(|| self.unknown(name))
    }

    /// The servers of these names; all without one.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&ServerEntry>, AppError> {
        match names {
            [] => Ok(self.all.iter().collect()),
            names => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    /// Why a server may not be started, if it may not.
    pub fn refusal(&self, known: &ServerEntry) -> Option<AppError> {
        let (code, why) = self.obstacle(known)?;
        Some(AppError::new(code, format!("{} is not started: {why}", known.spec.label())))
    }

    /// What stands between a server and its start.
    pub fn obstacle(&self, known: &ServerEntry) -> Option<(Code, String)> {
        if !self.settings.enabled {
            return Some((Code::NotLoaded, "mcp.enabled is false".to_owned()));
        }
        if let Some(obstacle) = known.bundle.as_ref().and_then(|bundle| bundle.obstacle.clone()) {
            return Some(obstacle);
        }
        if !known.spec.enabled {
            return Some((Code::NotLoaded, format!("it is disabled in {}", known.spec.origin.file.display())));
        }
        match (known.untrusted(self.context), known.program.as_ref().err()) {
            // Nobody can approve what cannot be looked at.
            (Some(_), Some(why)) if known.bundle.is_none() => {
                Some((Code::MissingProgram, format!("{why}; it can be approved after that")))
            }
            (Some(why), _) => Some((Code::NotApproved, why)),
            (None, why) => why.map(|why| (Code::MissingProgram, why.clone())),
        }
    }

    fn unknown(&self, name: &str) -> AppError {
        let code = if self.unloaded().is_some() { Code::NotLoaded } else { Code::UnknownServer };
        let failure = AppError::new(code, format!("there is no server `{name}`"));
        let failure = self.unloaded().into_iter().fold(failure, |failure, problem| failure.hint(problem.to_string()));
        let names = self.all.iter().map(|known| known.spec.name.as_str());
        failure.hint(did_you_mean(name, names).unwrap_or_else(|| self.context.tell(&Remedy::ListServers)))
    }
}

impl ServerEntry {
    fn of(spec: ServerSpec, context: &AppContext, trust: &Trust, cache: &[(Digest, ServerMemory)]) -> ServerEntry {
        let (program, identity) = looked_up(&spec, context, trust);
        let standing = trust.standing(&spec, identity.as_ref());
        // Without its program it cannot be approved, but it can be told from others.
        let declared = || spec.definition().map(|definition| definition.hasher.finish());
        let digest = identity.map(|identity| identity.digest).or_else(declared);
        ServerEntry { trust: standing, digest, program, ..ServerEntry::known_by(digest, spec, None, context, cache) }
    }

    /// A server of an extension. All its files are part of what is approved, and of the names of the copies they are in.
    fn bundled(
        spec: ServerSpec,
        bundle: Arc<Bundled>,
        context: &AppContext,
        trust: &Trust,
        cache: &[(Digest, ServerMemory)],
    ) -> ServerEntry {
        let (program, identity) = looked_up(&spec, context, trust);
        let (standing, digest) = (bundle.trust, bundle.digest);
        let key = identity.map(|identity| identity.digest);
        let known = ServerEntry::known_by(key, spec, Some(bundle), context, cache);
        ServerEntry { trust: standing, digest, program, ..known }
    }

    /// One that is not looked at yet, with what is remembered of it.
    fn known_by(
        key: Option<Digest>,
        spec: ServerSpec,
        bundle: Option<Arc<Bundled>>,
        context: &AppContext,
        cache: &[(Digest, ServerMemory)],
    ) -> ServerEntry {
        let cached = cache.iter().find(|(known, _)| Some(known) == key.as_ref()).map(|(_, memory)| memory.clone());
        let is_own = spec.source == Source::User && bundle.is_none();
        let review = key.filter(|_| !is_own).and_then(|key| ToolReview::new(&spec.name, key, context));
        let (trust, label, program) = (Standing::Unknown, String::new(), Ok(None));
        ServerEntry { spec: Arc::new(spec), trust, digest: None, key, bundle, program, cached, label, review }
    }

    /// The tools of its list, under the names models use, without those that a person has yet to look at.
    pub fn offers(&self, listed: &[serde_json::Value]) -> Offers {
        // Without a label of its own, its tools could be taken for those of another server.
        if self.label.is_empty() {
            return Offers::default();
        }
        let mut offers = Offers::read(&self.label, listed, &self.spec.tools);
        if let Some(review) = &self.review {
            review.withhold(&mut offers, listed);
        }
        offers
    }

    /// Which of its tools a person knows; nothing where that does not matter.
    pub fn review(&self) -> Option<&ToolReview> {
        self.review.as_ref()
    }

    /// The server, if it may be started as it is now.
    fn trusted(&self, servers: &Servers<'_>) -> Result<Trusted<ServerSpec>, String> {
        let context = servers.context.trust_context();
        match self.bundle.as_deref() {
            None => servers.trust.trust(&self.spec, &context, None).map_err(told_refusal),
            Some(bundle) => {
                let whole = bundle.trusted.as_ref().ok_or_else(|| "its extension is not approved".to_owned())?;
                whole.part(&self.spec, &context).map_err(|why| why.to_string())
            }
        }
    }

    /// The word for whether it may be started.
    pub fn trust(&self) -> &'static str {
        match self.trust {
            Standing::Approved | Standing::Limited => "trusted",
            Standing::Modified => "modified",
            Standing::Unknown => "untrusted",
        }
    }

    /// Whether its declaration lets a tool of it be called.
    pub fn admits(&self, tool: &str) -> bool {
        self.spec.tools.admits(tool)
    }

    fn is_approved(&self) -> bool {
        matches!(self.trust, Standing::Approved | Standing::Limited)
    }

    /// Why nobody may start it.
    fn untrusted(&self, context: &AppContext) -> Option<String> {
        let way_out = context.tell(&self.spec.remedy());
        match self.trust {
            Standing::Approved | Standing::Limited => None,
            Standing::Modified => Some(format!("it changed since it was approved; {way_out}")),
            Standing::Unknown => Some(format!("it is not approved; {way_out}")),
        }
    }

    /// The declaration with everything filled in, and what is missing for that.
    pub fn expanded(&self, servers: &Servers<'_>) -> (ServerSpec, Vec<Problem>) {
        let bundle = self.bundle.as_deref();
        let of_bundle = |name: &str| bundle.and_then(|bundle| bundle.variable(name));
        self.filled(&|name| of_bundle(name).or_else(|| variable(servers.context, name)), servers.context)
    }

    fn filled(&self, value: &dyn Fn(&str) -> Option<String>, context: &AppContext) -> (ServerSpec, Vec<Problem>) {
        expand_with(&self.spec, value, &|name| self.bundle.as_deref()?.way_to_set(name, context))
    }

    /// How long it may take to answer for the first time, where its declaration does not say so.
    fn patience(&self, servers: &Servers<'_>) -> Duration {
        let usual = servers.settings.connection_timeout;
        if self.may_download() { usual.max(DOWNLOAD) } else { usual }
    }

    /// Whether it may have to be downloaded first: its program does that, and nobody has heard of it yet.
    fn may_download(&self) -> bool {
        let Address::Command { command, .. } = &self.spec.address else { return false };
        self.cached.is_none() && self.spec.timeout.is_none() && fetches_packages(command)
    }

    /// What a person should know before it is started for the first time.
    pub fn download_note(&self) -> Option<String> {
        let Address::Command { command, .. } = &self.spec.address else { return None };
        let minutes = DOWNLOAD.as_secs() / 60;
        self.may_download().then(|| {
            format!("{}: `{command}` may have to download it first; it has {minutes} minutes", self.spec.label())
        })
    }

    /// How to reach it, with everything filled in, and what is missing for that; otherwise why it may not be started.
    pub fn ready(&self, servers: &Servers<'_>) -> Result<(ReadyServer, Vec<Problem>), String> {
        let trusted = self.trusted(servers)?;
        let context = servers.context;
        let bundle = self.bundle.as_deref();
        let used = RefCell::new(Vec::new());
        let value = |name: &str| {
            let value = bundle.and_then(|bundle| bundle.variable(name)).or_else(|| variable(context, name));
            used.borrow_mut().extend(value.clone().map(|value| (name.to_owned(), value)));
            value
        };
        let (spec, mut problems) = self.filled(&value, context);
        problems.extend(bundle.map(Bundled::withheld).unwrap_or_default());
        let secrets = bundle.map(Bundled::hidden).unwrap_or_default();
        // What it says may reach the trace and the log, where nobody knows whose words they are.
        context.hidden.add(secrets.iter().cloned());
        let private = private(&spec, used.take(), context);
        let (known, hidden) = private.into_iter().partition(|(name, _)| looks_secret(name));
        let ready = ReadyServer {
            endpoint: endpoint(&trusted, &spec, bundle, context),
            connect_timeout: spec.timeout.unwrap_or_else(|| self.patience(servers)),
            tool_timeout: spec.tool_timeout.unwrap_or(servers.settings.tool_timeout),
            idle: idle(&spec, &servers.settings),
            enabled: spec.enabled,
            lazy: spec.lazy.unwrap_or(true),
            auto_restart: spec.auto_restart.unwrap_or(servers.settings.auto_restart),
            tools: spec.tools,
            oauth: spec.oauth,
            secrets: [secrets, known].concat(),
            hidden,
            extension: spec.extension,
            name: spec.name,
        };
        Ok((ready, problems))
    }
}

/// Whether a problem is one of a server's declaration, of settings for all servers, or of a whole file.
fn concerns(problem: &Problem, name: &str) -> bool {
    let field = problem.field.as_str();
    let declared = ["mcpServers.", "mcp.servers."].iter().find_map(|start| field.strip_prefix(start));
    let own = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    match declared.unwrap_or(field).strip_prefix(name) {
        Some(rest) if own(rest) => true,
        _ => field.is_empty() || (declared.is_none() && field.starts_with("mcp.")),
    }
}

/// How long a server may take that may have to be downloaded first.
const DOWNLOAD: Duration = Duration::from_mins(2);

/// Other programs' names for places, which are no variables.
const PLACES: [&str; 2] = ["workspaceFolder", "userHome"];

/// What fills in a name in a declaration: a variable, or a place.
fn variable(context: &AppContext, name: &str) -> Option<String> {
    context.variable(name).or_else(|| place(context, name))
}

fn place(context: &AppContext, name: &str) -> Option<String> {
    let path = match name {
        "workspaceFolder" => Some(context.places.project.as_ref().unwrap_or(&context.cwd)),
        "userHome" => context.places.user_home.as_ref(),
        _ => None,
    };
    path?.to_str().map(str::to_owned)
}

/// What a declaration was filled in with, and the variables it declares: any of them may be a secret, whatever it is
/// called. What every server sees of the environment is none.
fn private(spec: &ServerSpec, used: Vec<(String, String)>, context: &AppContext) -> Vec<(String, String)> {
    let common = variables(context, &[]);
    let declared = match &spec.address {
        Address::Command { env, .. } => env.0.clone(),
        Address::Url { .. } => Vec::new(),
    };
    let secret = spec.oauth.as_ref().and_then(|oauth| oauth.client_secret.clone());
    let all = used.into_iter().chain(declared).chain(secret.map(|secret| ("oauth.clientSecret".to_owned(), secret)));
    let all = all.filter(|(_, value)| !PLACES.iter().any(|name| place(context, name).as_ref() == Some(value)));
    all.filter(|(_, value)| !common.iter().any(|(_, known)| known == value)).collect()
}

/// How long a server may be unused. One that is to run from the beginning is ended only if its declaration says so.
fn idle(spec: &ServerSpec, settings: &McpSettings) -> Option<Duration> {
    let general = settings.idle_timeout.filter(|_| spec.lazy.unwrap_or(true));
    spec.idle_timeout.map_or(general, |own| Some(own).filter(|own| !own.is_zero()))
}

/// What servers said last.
pub fn cache(context: &AppContext) -> Cache {
    Cache::new(cache_file(context))
}

fn cache_file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-tools.json")
}

/// What was granted by logging in.
pub fn tokens(context: &AppContext) -> PathBuf {
    context.state().join("mcp-tokens.json")
}

/// The time, in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Why a server may not be started, as a sentence about it.
fn told_refusal(refusal: Refusal) -> String {
    match refusal.reason {
        RefusalReason::Modified => format!("it {}", refusal.detail),
        RefusalReason::Untrusted => format!("it is {}", refusal.detail),
        RefusalReason::Missing | RefusalReason::Unsafe => refusal.detail,
    }
}

/// The program of a server, and what an approval of it is bound to; why there is none.
fn looked_up(
    spec: &ServerSpec,
    context: &AppContext,
    trust: &Trust,
) -> (Result<Option<PathBuf>, String>, Option<Identity>) {
    let context = context.trust_context();
    let found = spec.program(&context).and_then(|program| Ok((program, trust.identity(spec, &context)?)));
    match found {
        Ok((program, identity)) => (Ok(Some(program).filter(|path| !path.as_os_str().is_empty())), Some(identity)),
        Err(why) => (Err(why.to_string()), None),
    }
}

/// Where a server is; one that can leave its place runs from the copy of what was approved.
fn endpoint(
    trusted: &Trusted<ServerSpec>,
    spec: &ServerSpec,
    bundle: Option<&Bundled>,
    context: &AppContext,
) -> Endpoint {
    match &spec.address {
        Address::Command { args, env, cwd, limits, .. } => {
            let base = came_with(spec, context).unwrap_or_else(|| context.cwd.clone());
            let copy = trusted.variables().into_iter();
            let copy = copy.filter_map(|(name, value)| Some((name.to_owned(), value.into_string().ok()?)));
            let bundled = bundle.map(Bundled::environment).unwrap_or_default();
            Endpoint::Stdio {
                program: trusted.program(),
                args: args.iter().map(|arg| from_copy(arg, trusted)).collect(),
                env: variables(context, &[bundled, env.0.clone(), copy.collect()].concat()),
                cwd: Some(cwd.as_ref().map_or_else(|| base.clone(), |cwd| base.join(cwd))),
                limits: bounds(limits),
                program_box: program_box(trusted, spec, bundle, context).map(Box::new),
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

/// What the program of a server is held to; nothing if it runs without a box.
fn program_box(
    trusted: &Trusted<ServerSpec>,
    spec: &ServerSpec,
    bundle: Option<&Bundled>,
    context: &AppContext,
) -> Option<ProgramBox> {
    let permissions = spec.held_to()?;
    let project = context.places.project.as_ref().unwrap_or(&context.cwd);
    let copy = bundle.map(|bundle| bundle.folder.as_path()).or_else(|| trusted.copy_folder());
    Some(ProgramBox {
        permissions,
        declared: spec.permissions.is_some(),
        copy: copy.map(Path::to_owned),
        ..ProgramBox::new(trusted.program(), project, &context.trust_context())
    })
}

/// An argument; where it names code that was approved, the copy of that.
fn from_copy(arg: &str, trusted: &Trusted<ServerSpec>) -> String {
    let copy = trusted.code_argument(arg).and_then(|copy| copy.into_string().ok());
    copy.unwrap_or_else(|| arg.to_owned())
}

/// The folder whose content came with a server, for a project's. The user's own came with nothing, and an extension's
/// names its files by their places.
fn came_with(spec: &ServerSpec, context: &AppContext) -> Option<PathBuf> {
    context.places.project.clone().filter(|_| spec.source == Source::Workspace)
}

/// What a server sees of the environment: an allow-list, and what it declares.
fn variables(context: &AppContext, declared: &[(String, String)]) -> Vec<(String, String)> {
    let environment = Environment { variables: context.variables.clone(), ..Environment::default() };
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut seen: Vec<(String, String)> = environment.common().into_iter().filter_map(readable).collect();
    // The sign of what an agent started cannot be taken off.
    for (name, value) in declared.iter().filter(|(name, _)| name != "OLLM_AGENT") {
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
