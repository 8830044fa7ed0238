//! What applies to all hooks: `config.yaml` of the user and of the project, the environment, the command line.
//!
//! Later ones win, except that a project may only tighten: whatever it says that could switch a guard off is ignored,
//! visibly.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::Rules;
use ollm_store::{check_owner, current_uid};

use crate::file::{self, Document, Finding, Syntax, whole_file};
use crate::load::Positions;
use crate::node::{Cursor, Node};
use crate::place::{Places, same_place};
use crate::problem::{Problem, Severity};
use crate::value::{self, Reading};

mod written;

use written::{Said, Trust, Written};

/// Larger configuration files are not read.
const LARGEST_FILE: u64 = 1 << 20;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// What applies as `hooks.timeout` where nobody says anything.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// What the command line says; it wins over everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whether hooks run at all.
    pub enabled: Option<bool>,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
}

/// What applies to all hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSettings {
    /// Whether hooks run at all.
    pub enabled: bool,
    /// Who says so: `FILE:LINE:COLUMN`, the name of a variable, `the command line` or `default`.
    pub enabled_from: String,
    /// A timeout for hooks that have none of their own.
    pub timeout: Option<Duration>,
    /// A shorter one for the project's own hooks, which is all a project can ask for: a shorter one for the user's hooks
    /// would let a project switch guards off by never letting them finish.
    pub workspace_timeout: Option<Duration>,
    /// Whether hooks that came with the project need no approval.
    pub trust_workspace: bool,
    /// Whether an unapproved hook that fits blocks the operation.
    pub untrusted_blocks: bool,
    /// The programs a hook may name without a path.
    pub whitelist: Vec<String>,
    /// The built-in guards that are on, out of [`GUARDS`].
    pub guards: Vec<String>,
}

/// The names of the built-in guards.
pub const GUARDS: &[&str] = &["destructive-commands", "self-protection"];

impl Default for HookSettings {
    fn default() -> HookSettings {
        HookSettings {
            enabled: true,
            enabled_from: "default".to_owned(),
            timeout: None,
            workspace_timeout: None,
            trust_workspace: false,
            untrusted_blocks: false,
            whitelist: Rules::default().whitelist,
            guards: GUARDS.iter().map(|&name| name.to_owned()).collect(),
        }
    }
}

impl HookSettings {
    /// What the user's hooks are checked against.
    pub fn rules(&self) -> Rules {
        Rules { whitelist: self.whitelist.clone(), timeout: self.timeout }
    }
}

/// Reads the configuration.
pub(crate) fn load(
    places: &Places,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    positions: Positions,
    problems: &mut Vec<Problem>,
) -> HookSettings {
    let mut settings = HookSettings::default();
    let user = places.home.join("config.yaml");
    let top = places.user_home.as_deref().filter(|home| places.home.starts_with(home)).unwrap_or(&places.home);
    read(&user, top, problems, |document, root| {
        let (written, findings) = Written::read(root, Severity::Fatal);
        apply(&mut settings, written, places, |enabled| said_by(document, enabled, places, positions));
        findings
    });
    if let Some(project) = &places.project {
        let path = project.join(".ollm/config.yaml");
        if !same_place(&path, &user) {
            read(&path, project, problems, |_, root| {
                let (written, mut findings) = Written::read(root, Severity::Warning);
                tighten(&mut settings, written, &mut findings);
                findings
            });
        }
    }
    surround(&mut settings, env, problems);
    if let Some(enabled) = overrides.enabled {
        (settings.enabled, settings.enabled_from) = (enabled, "the command line".to_owned());
    }
    if let Some(timeout) = overrides.timeout {
        (settings.timeout, settings.workspace_timeout) = (Some(timeout), None);
    }
    settings
}

/// Reads a file that nobody else could have written, up to the folder `top`.
fn read(
    path: &Path,
    top: &Path,
    problems: &mut Vec<Problem>,
    take: impl FnOnce(&Document<'_>, &Cursor<'_>) -> Vec<Finding>,
) {
    if path.exists()
        && let Err(why) = check_owner(path, top, current_uid())
    {
        let message = format!("nothing of it applies: {why}");
        return problems.push(file::whole_file(Severity::Error, path, message));
    }
    match file::read(path, Syntax::Yaml, LARGEST_FILE) {
        Ok(None) => {}
        Ok(Some((document, node))) => {
            let findings = take(&document, &Cursor::root(&node));
            problems.append(&mut document.problems(findings));
        }
        Err(mut problem) => {
            problem.message.push_str("; none of its settings apply");
            problems.push(*problem);
        }
    }
}

/// The user's own word.
fn apply(settings: &mut HookSettings, written: Written, places: &Places, said_by: impl FnOnce(&Said<bool>) -> String) {
    if let Some(enabled) = written.enabled {
        settings.enabled = enabled.value;
        settings.enabled_from = said_by(&enabled);
    }
    if let Some(timeout) = written.timeout {
        settings.timeout = Some(timeout.value);
    }
    if let Some(trust) = written.trust {
        settings.trust_workspace = match trust.value {
            Trust::All(all) => all,
            Trust::Under(paths) => covers(&paths, places),
        };
    }
    if let Some(blocks) = written.blocks {
        settings.untrusted_blocks = blocks.value;
    }
    if let Some(whitelist) = written.whitelist {
        settings.whitelist = whitelist.value;
    }
    if let Some(guards) = written.guards {
        settings.guards = guards.value;
    }
}

/// Whether the project is one of the paths or below one of them, with links resolved.
fn covers(paths: &[String], places: &Places) -> bool {
    let Some(project) = places.project.as_ref().and_then(|project| project.canonicalize().ok()) else {
        return false;
    };
    let expand = |path: &String| match (path.strip_prefix('~'), &places.user_home) {
        (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
        (Some(_), None) => None,
        (None, _) => Some(PathBuf::from(path)),
    };
    paths.iter().filter_map(expand).filter_map(|path| path.canonicalize().ok()).any(|path| project.starts_with(path))
}

/// The project's word: heard where it makes things stricter.
fn tighten(settings: &mut HookSettings, written: Written, findings: &mut Vec<Finding>) {
    if let Some(enabled) = written.enabled
        && enabled.value != settings.enabled
    {
        findings.push(ignored(enabled, "a project cannot switch the user's hooks on or off"));
    }
    if let Some(timeout) = written.timeout {
        let usual = settings.timeout.unwrap_or(USUAL_TIMEOUT);
        if timeout.value > usual {
            findings.push(ignored(timeout, &format!("it may only be shorter than {usual:?}")));
        } else if timeout.value < usual {
            settings.workspace_timeout = Some(timeout.value);
        }
    }
    match written.trust {
        Some(Said { value: Trust::All(false), .. }) => settings.trust_workspace = false,
        Some(trust) => findings.push(ignored(trust, "a project cannot vouch for itself")),
        None => {}
    }
    match written.blocks {
        Some(Said { value: true, .. }) => settings.untrusted_blocks = true,
        Some(skips) => findings.push(ignored(skips, "a project cannot decide that unapproved hooks do not matter")),
        None => {}
    }
    if let Some(whitelist) = written.whitelist {
        findings.push(ignored(whitelist, "only the user decides which programs need no path"));
    }
    if let Some(guards) = written.guards {
        let missing = settings.guards.iter().any(|name| !guards.value.contains(name));
        if missing {
            findings.push(ignored(guards, "a project cannot switch guards off"));
        } else {
            settings.guards = guards.value;
        }
    }
}

fn ignored<T>(said: Said<T>, why: &str) -> Finding {
    let key = said.spot.field.rsplit('.').next().unwrap_or_default();
    Finding {
        severity: Severity::Warning,
        value: Some(said.shown),
        message: format!("`{key}` is ignored in a project: {why}"),
        help: Some("set it in the user's own config.yaml".to_owned()),
        spot: Some(said.spot),
    }
}

/// What the environment says.
fn surround(settings: &mut HookSettings, env: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<Problem>) {
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    for (name, unit) in [("HOOKS_TIMEOUT", SECOND), ("OLLM_HOOKS_TIMEOUT", MILLISECOND)] {
        let Some(value) = set(name) else { continue };
        match value::time(&Node::Text(value.clone()), unit) {
            Reading::Exact(timeout) | Reading::Converted(timeout) => {
                (settings.timeout, settings.workspace_timeout) = (Some(timeout), None);
            }
            Reading::Wrong => problems.push(bad_variable(name, &value, "a positive time such as 5s")),
        }
    }
    for name in ["HOOKS_ENABLED", "OLLM_HOOKS_ENABLED"] {
        let Some(value) = set(name) else { continue };
        match value::flag_word(&value) {
            Some(enabled) => (settings.enabled, settings.enabled_from) = (enabled, name.to_owned()),
            None => problems.push(bad_variable(name, &value, "true or false")),
        }
    }
}

fn bad_variable(name: &str, value: &str, expected: &str) -> Problem {
    let message = format!("the variable must be {expected}; it is ignored");
    Problem {
        field: name.to_owned(),
        value: Some(Node::Text(value.to_owned()).shown()),
        help: Some(format!("correct it or unset {name}")),
        ..whole_file(Severity::Warning, Path::new(name), message)
    }
}

/// The file that decides, and for the answer "off", or on request, the place in it.
fn said_by(document: &Document<'_>, enabled: &Said<bool>, places: &Places, positions: Positions) -> String {
    let below = places.user_home.as_ref().and_then(|home| document.path.strip_prefix(home).ok());
    let file = match below {
        Some(below) => format!("~/{}", below.display()),
        None => document.path.display().to_string(),
    };
    if enabled.value && positions == Positions::OnDemand {
        return file;
    }
    let at = document.locate(std::iter::once(&enabled.spot)).into_iter().next().unwrap_or_default();
    format!("{file}:{}:{}", at.line, at.column)
}
