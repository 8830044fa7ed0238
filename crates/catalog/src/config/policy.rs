//! The machine's policy: settings that no file of a user or project, no variable and no command line can loosen.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ollm_protocol::Code;
use ollm_store::{Owners, Why};
use serde_json::Value;

use super::key::{Project, SetBy};
use super::kind::ConfigKind;
use super::layer::{self, lacks};
use super::written;
use super::{Config, Origin, Setting};
use crate::file::{Finding, whole_file};
use crate::place::{Places, PolicyFile};
use crate::problem::{Problem, Severity};

/// The id of no group: no group may write to the policy.
const NO_GROUP: u32 = u32::MAX;

/// Reads the policy, if there is one. A policy that is unsafe or invalid is fatal: without it, everything would be
/// looser.
pub(super) fn read(places: &Places, config: &mut Config, problems: &mut Vec<Problem>) {
    let Some(policy) = &places.policy else { return };
    let path = &policy.path;
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return;
    }
    if let Some(problem) = unsafe_place(policy, path) {
        return problems.push(problem);
    }
    let mut is_read = false;
    layer::parse(path, Severity::Fatal, problems, |document, root| {
        is_read = true;
        let (said, mut findings) = written::read(root, Severity::Fatal);
        let origin = |file: PathBuf, line, column| Origin::Policy { file, line, column };
        for (setting, said) in layer::settings(document, said, &origin) {
            if setting.key.kind == ConfigKind::Server {
                findings.push(no_servers(&setting, said.spot));
            } else if setting.path != "version" {
                config.policy.push(setting.clone());
                config.put(setting);
            }
        }
        findings
    });
    if !is_read && problems.iter().all(|problem| problem.file != *path) {
        let message = "it leads to nothing; nothing runs until it is corrected".to_owned();
        problems.push(whole_file(Code::UnsafePolicy, Severity::Fatal, path, message));
    }
}

/// Why a user other than root could have written a file of the policy.
pub(crate) fn unsafe_place(policy: &PolicyFile, path: &Path) -> Option<Problem> {
    let folder = policy.folder();
    let why = Owners::new(policy.owner, NO_GROUP).check(path, folder).err()?;
    let what = match why.why {
        Why::Writable => format!("is writable by others (mode {:04o})", why.mode),
        Why::Foreign => format!("belongs to uid {}", why.owner),
        _ => "cannot be inspected".to_owned(),
    };
    let message = format!(
        "the policy cannot be relied on, because {} {what}; nothing runs until it is corrected",
        why.path.display()
    );
    let folder = folder.display();
    let help = format!(
        "it and its folder must belong to root alone: `sudo chown -R root: {folder} && sudo chmod -R go-w {folder}`"
    );
    Some(Problem { help: Some(help), ..whole_file(Code::UnsafePolicy, Severity::Fatal, path, message) })
}

fn no_servers(setting: &Setting, spot: crate::node::Spot) -> Finding {
    Finding {
        code: Code::Ignored,
        severity: Severity::Error,
        value: None,
        message: format!("`{}` is ignored: a policy declares no servers", setting.path),
        help: Some("declare it in a user's config.yaml".to_owned()),
        spot: Some(spot),
        remedy: None,
    }
}

/// Why the policy overrides a value from another source; the text names the file.
pub(super) fn objection(config: &Config, setting: &Setting) -> Option<String> {
    if setting.key.set_by == SetBy::Policy {
        return Some("only the machine's policy sets it".to_owned());
    }
    let Some(fixed) = config.fixed(&setting.path) else {
        let key = config.fixed("hooks.approvalKey").filter(|_| setting.path == "hooks.trustWorkspace")?;
        let why = || format!("{} demands signed approvals, and does not set it", key.origin.shown(None));
        return (setting.value != false).then(why);
    };
    let (value, bound) = (&setting.value, &fixed.value);
    let is_as_strict = match setting.key.project {
        _ if value == bound => true,
        Project::Only(only, _) => serde_json::from_str::<Value>(only).is_ok_and(|only| only == *value),
        Project::Lower | Project::OwnLower => value.as_f64() <= bound.as_f64(),
        Project::More(_) => !lacks(value, Some(bound)),
        Project::Never(_) | Project::New(_) | Project::Any => false,
    };
    (!is_as_strict).then(|| format!("the machine's policy sets it to {bound} ({})", fixed.origin.shown(None)))
}

impl Config {
    /// The policy's value of a setting.
    pub fn fixed(&self, path: &str) -> Option<&Setting> {
        self.policy.iter().find(|fixed| fixed.path == path)
    }

    /// The configuration with only the policy's values.
    pub(crate) fn of_policy(&self) -> Config {
        Config { said: self.policy.clone(), ..Config::default() }
    }

    /// All values of the policy.
    pub fn policy(&self) -> &[Setting] {
        &self.policy
    }
}
