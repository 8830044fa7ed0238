//! The throwaway home and project of the demo.

use std::fs;
use std::io;
use std::path::Path;

use ollm_app::{App, AppContext};
use ollm_protocol::Code;
use ollm_trust::{ContentStore, ExtensionFolder, Term};
use serde_json::json;
use tempfile::TempDir;

use crate::error::Failure;
use crate::output::shown;

/// The extension that a person has approved before the story begins.
const EXTENSION: &str = "house-rules";

const HOOKS: &[(&str, &str)] = &[
    ("demo.json", include_str!("hooks.json")),
    ("dry-run.sh", include_str!("dry-run.sh")),
    ("keep-out.sh", include_str!("keep-out.sh")),
    ("slow-log.sh", include_str!("slow-log.sh")),
    ("tally.sh", include_str!("tally.sh")),
];
const EXTENSION_FILES: &[(&str, &str)] = &[
    ("manifest.json", include_str!("manifest.json")),
    ("greet.sh", include_str!("greet.sh")),
    ("no-force-push.sh", include_str!("no-force-push.sh")),
];
const REPOSITORY_HOOKS: &[(&str, &str)] =
    &[("demo.json", include_str!("repository.json")), ("surprise.sh", "touch surprise\n")];
const REPOSITORY: &[(&str, &str)] = &[("greet.sh", "echo 'Helo, world'\n")];
const SECRETS: &[(&str, &str)] = &[("key", "s3cret\n")];
const TALK: &[(&str, &str)] = &[("talk.jsonl", include_str!("talk.jsonl"))];

/// The temporary folder, removed with everything in it.
pub(super) struct Throwaway(TempDir);

impl Throwaway {
    pub(super) fn new() -> io::Result<Throwaway> {
        Ok(Throwaway(tempfile::tempdir()?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Throwaway {
    /// Approved copies are read-only, and only the store can remove them.
    fn drop(&mut self) {
        ContentStore::new(self.path().join("home/.ollm/store")).sweep(&|_| false);
    }
}

/// Makes a home for the demo, and a project beside it.
pub(super) fn furnish(root: &Path, context: &AppContext) -> io::Result<AppContext> {
    let (home, project) = (root.join("home"), root.join("project"));
    write(&home.join(".ollm/hooks"), HOOKS)?;
    write(&home.join(".ollm/extensions").join(EXTENSION), EXTENSION_FILES)?;
    let servers =
        json!({"mcpServers": {"tickets": {"command": context.program.as_deref().map(shown), "args": ["demo", "server"]}}}).to_string();
    write(&home.join(".ollm/settings"), &[("mcp.json", &servers)])?;
    write(&project, REPOSITORY)?;
    write(&project.join("secrets"), SECRETS)?;
    write(&project.join(".ollm/hooks"), REPOSITORY_HOOKS)?;
    write(root, TALK)?;
    let mut variables = context.variables.clone();
    variables.retain(|(name, _)| {
        !name.to_str().is_some_and(|name| name == "HOME" || name.contains("HOOKS_") || name.starts_with("OLLM_"))
    });
    variables.push(("HOME".into(), home.clone().into()));
    let mut furnished = AppContext::new(variables, project, Some(home));
    furnished.program.clone_from(&context.program);
    furnished.commands = context.commands;
    Ok(furnished)
}

fn write(folder: &Path, files: &[(&str, &str)]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))
}

/// Approves the extension as a whole, as `ollm ext trust` does when a person says yes.
pub(super) fn approve(app: &App) -> Result<(), Failure> {
    let unapproved =
        |why: &str| Failure::new(Code::DemoFailed, format!("the demo's extension cannot be approved: {why}"));
    let extension = app.extensions.get(EXTENSION).ok_or_else(|| unapproved("it is not there"))?;
    let trust = &app.engine.trust;
    let context = app.engine.environment().trust_context();
    let folder = ExtensionFolder::new(&extension.name, &extension.root);
    let whole = trust.propose(&folder, &context).map_err(|why| unapproved(&why.to_string()))?;
    let approval = trust.approval_of(&folder, &whole, Term::Always, &context);
    let mut approvals = vec![approval.map_err(|why| unapproved(&why.to_string()))?];
    for hook in app.hooks().into_iter().filter(|hook| hook.spec.extension.as_deref() == Some(EXTENSION)) {
        let part = trust.propose_part(&whole, &*hook, &context).map_err(|why| unapproved(&why.to_string()))?;
        let approval = trust.approval_of(&*hook, &part, Term::Always, &context);
        approvals.push(approval.map_err(|why| unapproved(&why.to_string()))?);
    }
    trust.approve_together(approvals).map_err(|why| unapproved(&why.to_string()))
}
