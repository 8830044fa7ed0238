//! Connects the declared MCP servers, the person's approvals and the running servers.
//!
//! Nothing here starts a runtime until a [`LiveServers`] is made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{McpSettings, Problem, ServerSpec, Severity, configuration, load_servers};
use ollm_mcp::{Cache, Labels, Offers, ServerMemory};
use ollm_protocol::{Code, Remedy, Source, did_you_mean};
use ollm_store::Digest;
use ollm_trust::{Approvable, ExtensionFolder, Identity, Standing, Trust};

use crate::app_context::AppContext;
use crate::error::AppError;
use crate::migrate::migrate_on_load;
use crate::port::Notices;
use crate::problems::told_problems;

mod bundled;
mod failures;
mod forget;
mod gate;
mod live;
mod loaded;
mod mcp_tools;
mod names;
mod ready;
mod server_set;
mod tool_review;
mod wait;

pub use bundled::BundleContext;
use bundled::BundledServers;
pub use failures::{LastFailure, last_failures};
pub use live::LiveServers;
pub use mcp_tools::McpTools;
pub use server_set::{log_file, reason, remarks, taken, told};
pub(crate) use tool_review::file as reviewed_tools;
pub use tool_review::{ToolReview, WaitingTool, waiting_digest};

/// The key of the configuration that declares servers.
pub const DECLARED: &str = "mcp.servers";

/// All declared servers.
#[derive(Debug)]
pub struct Servers<'w> {
    /// The context in which they were loaded.
    pub context: &'w AppContext,
    /// The servers, each once, nearest to the user first.
    pub all: Vec<DeclaredServer>,
    /// The configured settings for all servers.
    pub settings: McpSettings,
    /// The prefixes of their tools' names.
    pub labels: Labels,
    /// The line about older names in the user's file that were replaced.
    migrated: Option<String>,
    /// Problems with the configuration.
    general: Vec<Problem>,
    /// Problems with the extension folders, their switches and their secrets.
    around: Vec<Problem>,
    /// Problems with the declarations.
    problems: Vec<Problem>,
    /// The folders that are searched for extensions.
    directories: Vec<PathBuf>,
    /// The manifests that cannot be read.
    broken: Vec<PathBuf>,
    /// Decides which servers may run.
    pub trust: Trust,
}

/// A declared server and our knowledge of it.
#[derive(Clone, Debug)]
pub struct DeclaredServer {
    /// The declaration.
    pub spec: Arc<ServerSpec>,
    /// Whether it may be started.
    pub trust: Standing,
    /// The digest that an approval is bound to.
    pub digest: Option<Digest>,
    /// The key of its cached data.
    pub key: Option<Digest>,
    /// The extension it came with.
    pub bundle: Option<Arc<BundleContext>>,
    /// The program that would be started, or the reason why there is none.
    pub program: Result<Option<PathBuf>, String>,
    /// The cached data from its last run.
    pub cached: Option<ServerMemory>,
    /// The prefix of its tools' names.
    pub label: String,
    /// The tools that a person has reviewed, if the server's tools need a review.
    review: Option<ToolReview>,
}

impl<'w> Servers<'w> {
    /// The folders that are searched for extensions.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The files that hold data about servers besides their declarations.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        vec![failures::file(self.context), tokens(self.context), cache_file(self.context)]
    }

    /// Loads all declarations; fails for a security setting that cannot be read.
    pub fn load(context: &'w AppContext) -> Result<Servers<'w>, AppError> {
        let env = |name: &str| context.variable(name);
        let (config, mut general) = configuration(&context.places, &env, &context.overrides);
        if let Some(fatal) = general.iter().find(|problem| problem.severity == Severity::Fatal) {
            return Err(AppError::from(fatal).hint("correct the value or remove it"));
        }
        let migrated = migrate_on_load(&mut general, context);
        // One reader reads the servers of the configuration again, together with those of the other files.
        general.retain(|problem| !problem.field.starts_with(DECLARED));
        let general = context.told(general);
        let (specs, mut problems) = load_servers(&context.places);
        let settings = config.mcp();
        let with_box = |spec| ServerSpec { default_box: settings.default_box, ..spec };
        let trust = context.trust(&config);
        let BundledServers { servers, broken, around } = bundled::join(context, &config, &trust, &mut problems);
        if let Some(trouble) = trust.trouble() {
            let message = format!("no server is approved: {trouble}");
            problems.push(Problem::of_file(Code::BrokenApprovals, Severity::Error, &context.approvals(), message));
        }
        let cache = cache(context).all();
        let own = specs.into_iter().map(|spec| DeclaredServer::of(with_box(spec), context, &trust, &cache));
        let bundled = servers
            .into_iter()
            .map(|(spec, bundle)| DeclaredServer::bundled(with_box(spec), bundle, context, &trust, &cache));
        let mut all = names::settle(own.chain(bundled).collect(), &mut problems);
        // Guards know the tools of servers by their names, so declarations farther from the user do not change these
        // names.
        let labels = Labels::ranked(all.iter().map(|known| (names::rank(known), known.spec.name.as_str())));
        for known in &mut all {
            labels.of(&known.spec.name).unwrap_or_default().clone_into(&mut known.label);
        }
        let directories = config.extensions(&context.places).directories;
        Ok(Servers { context, all, settings, labels, migrated, general, around, problems, directories, broken, trust })
    }

    /// Tells the person the problems with the files.
    pub fn tell_problems(&self, notices: &mut dyn Notices) {
        self.tell_notices(notices);
        let (problems, more) = told_problems(self.problems());
        for problem in problems {
            notices.tell_problem(problem);
        }
        for line in more {
            notices.tell(&line);
        }
    }

    /// Tells the person the problems with one server, and those with whole files.
    pub fn tell_problems_of(&self, name: &str, notices: &mut dyn Notices) {
        self.tell_notices(notices);
        for problem in self.problems().filter(|problem| concerns(problem, name)) {
            notices.tell_problem(problem);
        }
    }

    fn tell_notices(&self, notices: &mut dyn Notices) {
        self.context.tell_notices(notices);
        self.migrated.iter().for_each(|line| notices.tell(line));
    }

    /// The problems with the files.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.general.iter().chain(&self.around).chain(&self.problems)
    }

    /// The problem with the configuration, if some of it does not apply.
    fn wrong_configuration(&self) -> Option<String> {
        self.general.iter().find(|problem| problem.severity <= Severity::Error).map(ToString::to_string)
    }

    /// Whether the servers of a file go on unchanged, because the file cannot be read now. The servers of an extension
    /// go on only while some state of it is approved.
    fn stay(&self, file: &Path, extension: Option<&str>) -> bool {
        let wrong = |problem: &Problem| problem.severity <= Severity::Error && problem.file == file;
        let broken = self.broken.iter().any(|broken| broken == file) || self.problems().any(wrong);
        let root = file.parent().unwrap_or(Path::new(""));
        let approved = |name: &str| self.trust.approval(&ExtensionFolder::new(name, root)).is_some();
        self.settings.enabled && file.is_file() && broken && extension.is_none_or(approved)
    }

    /// The problem with a declaration, or with a whole file, that is not loaded.
    pub fn unloaded(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| problem.severity == Severity::Error)
    }

    /// The server with this name.
    pub fn find(&self, name: &str) -> Result<&DeclaredServer, AppError> {
        self.all.iter().find(|known| known.spec.name == name).ok_or_else(|| self.unknown(name))
    }

    /// The servers with these names; all if no name is given.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&DeclaredServer>, AppError> {
        match names {
            [] => Ok(self.all.iter().collect()),
            names => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    /// The reason why a server may not be started, if there is one.
    pub fn refusal(&self, known: &DeclaredServer) -> Option<AppError> {
        let (code, why) = self.obstacle(known)?;
        Some(AppError::new(code, format!("{} is not started: {why}", known.spec.label())))
    }

    /// The obstacle to starting a server, if there is one.
    pub fn obstacle(&self, known: &DeclaredServer) -> Option<(Code, String)> {
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
            // A person cannot approve a server that cannot be reviewed.
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

impl DeclaredServer {
    fn of(spec: ServerSpec, context: &AppContext, trust: &Trust, cache: &[(Digest, ServerMemory)]) -> DeclaredServer {
        let (program, identity) = looked_up(&spec, context, trust);
        let standing = trust.standing(&spec, identity.as_ref());
        // Without its program it cannot be approved, but it can be identified.
        let declared = || spec.definition().map(|definition| definition.hasher.finish());
        let digest = identity.map(|identity| identity.digest).or_else(declared);
        DeclaredServer {
            trust: standing,
            digest,
            program,
            ..DeclaredServer::known_by(digest, spec, None, context, cache)
        }
    }

    /// A server of an extension. The approval covers all its files, and the names of their copies depend on them.
    fn bundled(
        spec: ServerSpec,
        bundle: Arc<BundleContext>,
        context: &AppContext,
        trust: &Trust,
        cache: &[(Digest, ServerMemory)],
    ) -> DeclaredServer {
        let (program, identity) = looked_up(&spec, context, trust);
        let (standing, digest) = (bundle.trust, bundle.digest);
        let key = identity.map(|identity| identity.digest);
        let known = DeclaredServer::known_by(key, spec, Some(bundle), context, cache);
        DeclaredServer { trust: standing, digest, program, ..known }
    }

    /// A server that is not examined yet, with its stored data.
    fn known_by(
        key: Option<Digest>,
        spec: ServerSpec,
        bundle: Option<Arc<BundleContext>>,
        context: &AppContext,
        cache: &[(Digest, ServerMemory)],
    ) -> DeclaredServer {
        let cached = cache.iter().find(|(known, _)| Some(known) == key.as_ref()).map(|(_, memory)| memory.clone());
        let is_own = spec.source == Source::User && bundle.is_none();
        let declared_in = declared_in(&spec, bundle.as_deref());
        let review = key.filter(|_| !is_own).and_then(|key| ToolReview::new(&spec.name, declared_in, key, context));
        let (trust, label, program) = (Standing::Unknown, String::new(), Ok(None));
        DeclaredServer { spec: Arc::new(spec), trust, digest: None, key, bundle, program, cached, label, review }
    }

    /// The tools in its list, under their names for models, without those that a person has not reviewed yet.
    pub fn offers(&self, listed: &[serde_json::Value]) -> Offers {
        // Without a label of its own, its tools could be mistaken for those of another server.
        if self.label.is_empty() {
            return Offers::default();
        }
        let mut offers = Offers::read(&self.label, listed, &self.spec.tools);
        if let Some(review) = &self.review {
            review.withhold(&mut offers, listed);
        }
        offers
    }

    /// The file that declares it; for an extension, the manifest in its folder and not in the copy.
    fn declared_in(&self) -> &Path {
        declared_in(&self.spec, self.bundle.as_deref())
    }

    /// The review of its tools; `None` if they need no review.
    pub fn review(&self) -> Option<&ToolReview> {
        self.review.as_ref()
    }

    /// The name of its approval state.
    pub fn trust(&self) -> &'static str {
        match self.trust {
            Standing::Approved | Standing::Limited => "trusted",
            Standing::Modified => "modified",
            Standing::Unknown => "untrusted",
        }
    }

    /// Whether its declaration allows calls of a tool.
    pub fn admits(&self, tool: &str) -> bool {
        self.spec.tools.admits(tool)
    }

    fn is_approved(&self) -> bool {
        matches!(self.trust, Standing::Approved | Standing::Limited)
    }

    /// The reason why it may not be started.
    fn untrusted(&self, context: &AppContext) -> Option<String> {
        let way_out = context.tell(&self.spec.remedy());
        match self.trust {
            Standing::Approved | Standing::Limited => None,
            Standing::Modified => Some(format!("it changed since it was approved; {way_out}")),
            Standing::Unknown => Some(format!("it is not approved; {way_out}")),
        }
    }
}

fn declared_in<'a>(spec: &'a ServerSpec, bundle: Option<&'a BundleContext>) -> &'a Path {
    bundle.map_or(&spec.origin.file, |bundle| &bundle.manifest)
}

/// Whether a problem concerns this server's declaration, the settings for all servers, or a whole file.
fn concerns(problem: &Problem, name: &str) -> bool {
    let field = problem.field.as_str();
    let declared = ["mcpServers.", "mcp.servers."].iter().find_map(|start| field.strip_prefix(start));
    let own = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    match declared.unwrap_or(field).strip_prefix(name) {
        Some(rest) if own(rest) => true,
        _ => field.is_empty() || (declared.is_none() && field.starts_with("mcp.")),
    }
}

/// The cache of what servers said.
pub fn cache(context: &AppContext) -> Cache {
    Cache::new(cache_file(context))
}

fn cache_file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-tools.json")
}

/// The file with the tokens of logins.
pub fn tokens(context: &AppContext) -> PathBuf {
    context.state().join("mcp-tokens.json")
}

/// The time, in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The program of a server, and the digest that its approval is bound to; otherwise the reason why there is none.
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
