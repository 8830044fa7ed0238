//! Makes a declared server ready to start: approved, with every value filled in.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_catalog::{Address, McpSettings, Problem, ServerSpec, Transport, expand_with};
use ollm_engine::Environment;
use ollm_mcp::{Endpoint, ReadyServer};
use ollm_process::Limits;
use ollm_protocol::{LimitsSpec, Source};
use ollm_store::looks_secret;
use ollm_trust::{ProgramBox, Refusal, RefusalReason, Trusted, fetches_packages};

use super::{BundleContext, DeclaredServer, Servers, last_failures};
use crate::app_context::AppContext;

/// How long a server's first answer may take if it must be downloaded first.
const DOWNLOAD: Duration = Duration::from_mins(2);

/// Names that other programs use for folders; they are no variables.
const PLACES: [&str; 2] = ["workspaceFolder", "userHome"];

impl DeclaredServer {
    /// How to reach it, with all values filled in, and the problems with missing values. An error says why it may not
    /// be started.
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
        problems.extend(bundle.map(BundleContext::withheld).unwrap_or_default());
        let secrets = bundle.map(BundleContext::hidden).unwrap_or_default();
        // The trace and the log may contain its words, and do not say whose words these are.
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

    /// The declaration with all values filled in, and the problems with missing values.
    pub fn expanded(&self, servers: &Servers<'_>) -> (ServerSpec, Vec<Problem>) {
        let bundle = self.bundle.as_deref();
        let of_bundle = |name: &str| bundle.and_then(|bundle| bundle.variable(name));
        self.filled(&|name| of_bundle(name).or_else(|| variable(servers.context, name)), servers.context)
    }

    fn filled(&self, value: &dyn Fn(&str) -> Option<String>, context: &AppContext) -> (ServerSpec, Vec<Problem>) {
        expand_with(&self.spec, value, &|name| self.bundle.as_deref()?.way_to_set(name, context))
    }

    /// How long its first answer may take, if its declaration does not say so.
    fn patience(&self, servers: &Servers<'_>) -> Duration {
        let usual = servers.settings.connection_timeout;
        if self.may_download(servers.context) { usual.max(DOWNLOAD) } else { usual }
    }

    /// Whether it may have to be downloaded first: its program downloads packages, and its tools are not known yet, or
    /// it failed the last time.
    fn may_download(&self, context: &AppContext) -> bool {
        let Address::Command { command, .. } = &self.spec.address else { return false };
        self.spec.timeout.is_none() && fetches_packages(command) && (self.cached.is_none() || self.has_failed(context))
    }

    fn has_failed(&self, context: &AppContext) -> bool {
        self.key.is_some_and(|key| last_failures(context).contains_key(&key.to_string()))
    }

    /// A note for the person before a start that may take long.
    pub fn download_note(&self, context: &AppContext) -> Option<String> {
        let Address::Command { command, .. } = &self.spec.address else { return None };
        let minutes = DOWNLOAD.as_secs() / 60;
        self.may_download(context).then(|| {
            format!("{}: `{command}` may have to download it first; it has {minutes} minutes", self.spec.label())
        })
    }

    /// The server, if it may be started in its present state.
    pub(super) fn trusted(&self, servers: &Servers<'_>) -> Result<Trusted<ServerSpec>, String> {
        let context = servers.context.trust_context();
        match self.bundle.as_deref() {
            None => servers.trust.trust(&self.spec, &context, None).map_err(told_refusal),
            Some(bundle) => {
                let whole = bundle.trusted.as_ref().ok_or_else(|| "its extension is not approved".to_owned())?;
                whole.part(&self.spec, &context).map_err(|why| why.to_string())
            }
        }
    }
}

/// The value of a name in a declaration: of a variable or a folder.
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

/// The values that were filled into a declaration, and the variables it declares. Any of them may be a secret under any
/// name. Variables that every server gets are no secrets.
fn private(spec: &ServerSpec, used: Vec<(String, String)>, context: &AppContext) -> Vec<(String, String)> {
    let common = common_variables(context);
    let declared = match &spec.address {
        Address::Command { env, .. } => env.0.clone(),
        Address::Url { .. } => Vec::new(),
    };
    let secret = spec.oauth.as_ref().and_then(|oauth| oauth.client_secret.clone());
    let all = used.into_iter().chain(declared).chain(secret.map(|secret| ("oauth.clientSecret".to_owned(), secret)));
    let all = all.filter(|(_, value)| !PLACES.iter().any(|name| place(context, name).as_ref() == Some(value)));
    all.filter(|(_, value)| !common.iter().any(|(_, known)| known == value.as_str())).collect()
}

/// How long a server may be unused. A server that starts at once ends only if its declaration says so.
fn idle(spec: &ServerSpec, settings: &McpSettings) -> Option<Duration> {
    let general = settings.idle_timeout.filter(|_| spec.lazy.unwrap_or(true));
    spec.idle_timeout.map_or(general, |own| Some(own).filter(|own| !own.is_zero()))
}

/// The reason why a server may not be started, as a sentence about it.
pub(super) fn told_refusal(refusal: Refusal) -> String {
    match refusal.reason {
        RefusalReason::Modified => format!("it {}", refusal.detail),
        RefusalReason::Untrusted => format!("it is {}", refusal.detail),
        RefusalReason::Missing | RefusalReason::Unsafe => refusal.detail,
    }
}

/// The endpoint of a server. If possible, it runs from the copy of what was approved.
fn endpoint(
    trusted: &Trusted<ServerSpec>,
    spec: &ServerSpec,
    bundle: Option<&BundleContext>,
    context: &AppContext,
) -> Endpoint {
    match &spec.address {
        Address::Command { args, env, cwd, limits, .. } => {
            let base = came_with(spec, context).unwrap_or_else(|| context.cwd.clone());
            let bundled = bundle.map(BundleContext::environment).unwrap_or_default();
            Endpoint::Stdio {
                program: trusted.program(),
                args: args.iter().map(|arg| from_copy(arg, trusted)).collect(),
                env: variables(context, &[bundled, env.0.clone()].concat(), trusted),
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

/// The box of a server's program; `None` if it runs without a box.
fn program_box(
    trusted: &Trusted<ServerSpec>,
    spec: &ServerSpec,
    bundle: Option<&BundleContext>,
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

/// An argument; if it names approved code, the path of that code's copy.
fn from_copy(arg: &str, trusted: &Trusted<ServerSpec>) -> String {
    let copy = trusted.code_argument(arg).and_then(|copy| copy.into_string().ok());
    copy.unwrap_or_else(|| arg.to_owned())
}

/// The folder that a project's server came with. The user's own servers came with no folder, and an extension's server
/// names its files by their paths.
fn came_with(spec: &ServerSpec, context: &AppContext) -> Option<PathBuf> {
    context.places.project.clone().filter(|_| spec.source == Source::Workspace)
}

/// The variables that every server gets.
fn common_variables(context: &AppContext) -> Vec<(OsString, OsString)> {
    Environment { variables: context.variables.clone(), ..Environment::default() }.common()
}

/// The environment of a server: the allowed variables and the declared ones, with the copies of approved files.
fn variables(
    context: &AppContext,
    declared: &[(String, String)],
    trusted: &Trusted<ServerSpec>,
) -> Vec<(String, String)> {
    let mut seen = common_variables(context);
    // A server cannot remove the sign that an agent started it.
    for (name, value) in declared.iter().filter(|(name, _)| name != "OLLM_AGENT") {
        seen.retain(|(seen, _)| seen != name.as_str());
        seen.push((name.into(), value.into()));
    }
    trusted.lead_to_copy(declared, &mut seen);
    let readable = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    seen.into_iter().filter_map(readable).collect()
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
