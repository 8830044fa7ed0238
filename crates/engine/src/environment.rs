//! The environment of a hook: an allow-list of variables, the variables it declared, and data about the event.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ollm_protocol::dialect::agent_named;
use ollm_protocol::{Event, Hook};
use ollm_store::{Hidden, is_shared_variable, looks_secret};
use ollm_trust::TrustContext;

use crate::background::Launcher;
use crate::narrow::Surroundings;

/// The variable that holds the name of the event, for the hook's processes.
pub const EVENT_VARIABLE: &str = "OLLM_EVENT";
/// The variable that holds the hook's id, for the hook's processes.
pub const HOOK_VARIABLE: &str = "OLLM_HOOK_ID";
/// The variable that holds the name of the hook's extension, for the hook's processes.
pub const EXTENSION_VARIABLE: &str = "OLLM_EXTENSION";
/// The variable that holds the depth of nested events: an event that a hook sends is one deeper.
pub const DEPTH_VARIABLE: &str = "OLLM_EVENT_DEPTH";

/// The surroundings of the engine, as values. The engine itself reads no environment.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The variables of the process that embeds the engine.
    pub variables: Vec<(OsString, OsString)>,
    /// The folder hooks run in when neither hook nor event names one.
    pub cwd: PathBuf,
    /// The root of the project at hand, if there is one.
    pub project: Option<PathBuf>,
    /// The user's home, if it is known.
    pub home: Option<PathBuf>,
    /// Hosts, addresses and networks that `http` hooks may reach though they are not public, or not over TLS.
    pub http_allow: Vec<String>,
    /// The certificate authorities for the servers of `http` hooks, and the proxies to them.
    #[cfg(feature = "http")]
    pub network: ollm_net::Network,
    /// The program that takes over async hooks when our process is about to end. Without it, threads of the engine run
    /// these hooks.
    pub background: Option<Launcher>,
    /// Whether hooks' programs run in a box that only reads and has no network.
    pub read_only: bool,
    /// Whether reports list everything that hooks do in their boxes, or only the refusals.
    pub watch_boxes: bool,
    /// Further values to hide, such as values that servers of other programs were given.
    pub hidden: Hidden,
}

impl Environment {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_os_str())
    }

    /// The values that approval depends on.
    pub fn trust_context(&self) -> TrustContext<'_> {
        TrustContext {
            variables: &self.variables,
            project: self.project.as_deref(),
            home: self.home.as_deref(),
            folder: None,
        }
    }

    /// The search path for programs.
    pub(crate) fn path(&self) -> &OsStr {
        self.trust_context().search_path()
    }

    /// The values to hide: those of variables with a secret-looking name, and those in `hidden`.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let secret = self.variables.iter().filter(|(name, _)| name.to_str().is_some_and(looks_secret));
        let secret = secret.filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
        secret.chain(self.hidden.list())
    }

    /// The variables that other programs may see: an allow-list, and the sign that an agent started them.
    pub fn common(&self) -> Vec<(OsString, OsString)> {
        let passed = |name: &OsStr| name != "OLLM_AGENT" && is_shared_variable(name.to_str().unwrap_or_default());
        let mut seen: Vec<(OsString, OsString)> =
            self.variables.iter().filter(|(name, _)| passed(name)).cloned().collect();
        seen.push(("OLLM_AGENT".into(), "ollm".into()));
        seen
    }

    /// The variables of one hook. The error says why one of its settings is not available.
    pub(crate) fn for_hook(&self, hook: &Hook, event: &Event) -> Result<Vec<(OsString, OsString)>, String> {
        let passed = |name: &OsStr| {
            let name = name.to_str().unwrap_or_default();
            is_shared_variable(name) || hook.spec.pass_env.iter().any(|passed| passed == name)
        };
        // The capacity leaves room for the variables that we, the agent and the hook add; growing would move all
        // entries.
        let mut seen = Vec::with_capacity(32);
        seen.extend(self.variables.iter().filter(|(name, _)| passed(name)).cloned());
        let mut set = |name: &str, value: OsString| {
            seen.retain(|(seen, _)| seen != name);
            seen.push((name.into(), value));
        };
        set("OLLM_AGENT", "ollm".into());
        set(EVENT_VARIABLE, event.kind.name().into());
        set(HOOK_VARIABLE, hook.id().into());
        if let Some(folder) = hook.spec.origin.file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            set("OLLM_HOOK_DIR", folder.into());
        }
        let project = hook.spec.project.as_ref().or(self.project.as_ref());
        if let Some(project) = project {
            set("OLLM_PROJECT_DIR", project.into());
        }
        // Hooks written for another agent look for the project under that agent's variables. For that agent, every
        // folder is a project.
        let others = agent_named(hook.dialect.name()).map_or(&[][..], |agent| agent.home.project_variables);
        for name in others {
            set(name, project.cloned().unwrap_or_else(|| self.here(event)).into());
        }
        for setting in &hook.settings {
            set(&setting.name, setting.value.get()?.into());
        }
        for (name, value) in &hook.spec.env {
            set(name, value.into());
        }
        set(DEPTH_VARIABLE, self.depth().saturating_add(1).to_string().into());
        seen.retain(|(name, _)| name != EXTENSION_VARIABLE);
        seen.extend(hook.spec.extension.as_ref().map(|name| (EXTENSION_VARIABLE.into(), name.into())));
        Ok(seen)
    }

    /// The depth of nested events that our own process is in.
    fn depth(&self) -> u32 {
        self.get(DEPTH_VARIABLE).and_then(|depth| depth.to_str()?.parse().ok()).unwrap_or(0)
    }

    /// The surroundings that patterns and conditions see.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let readable = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let seen = readable.filter(|(name, _)| is_shared_variable(name));
        Surroundings {
            cwd: self.cwd.display().to_string(),
            root: self.project.as_ref().unwrap_or(&self.cwd).display().to_string(),
            variables: seen.map(|(name, value)| (name.to_owned(), value.into())).collect(),
        }
    }

    /// The folder of an event. If that folder is gone, the guards must still run, so they run in our own folder.
    fn here(&self, event: &Event) -> PathBuf {
        let told = event.text("cwd").map(|cwd| self.cwd.join(cwd)).filter(|cwd| cwd.is_dir());
        told.unwrap_or_else(|| self.cwd.clone())
    }

    /// The folder one hook runs in.
    pub(crate) fn folder(&self, hook: &Hook, event: &Event) -> PathBuf {
        let here = self.here(event);
        hook.spec.cwd.as_ref().map_or_else(|| here.clone(), |cwd| here.join(cwd))
    }
}
