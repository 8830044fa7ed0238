//! The common test set-up of several modules.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_protocol::hook::action::{CommandSpec, ShellSpec};
use ollm_protocol::{ActionSpec, Hook, HookSpec, Origin, Rules, Source};
use ollm_store::digest_bytes;
use tempfile::TempDir;

use crate::{Approval, Proposal, Refusal, Term, Trust, TrustContext, Trusted};

/// A time from which all files count as quiet for a while.
pub(crate) fn tomorrow() -> SystemTime {
    SystemTime::now() + Duration::from_hours(24)
}

pub(crate) fn approval(source: &str) -> Approval {
    Approval {
        source: source.to_owned(),
        id: "id".to_owned(),
        hash: digest_bytes(source.as_bytes()),
        approved_at: "2026-01-15T10:30:00Z".to_owned(),
        approved_by: "user".to_owned(),
        digest: digest_bytes(b"everything"),
        term: Term::Always,
        copy: None,
        program: None,
    }
}

/// A project, and the home of the person who works on it.
pub(crate) struct Project {
    folder: TempDir,
    pub(crate) root: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

impl Project {
    pub(crate) fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("hooks.json"), "{}").unwrap();
        let path = format!("{}/first:/usr/bin:/bin", top.display());
        Project { folder, root, variables: vec![("PATH".into(), path.into())] }
    }

    /// A path beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    /// Writes a file of the project with this text.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn approvals(&self) -> PathBuf {
        self.folder.path().join("home/trusted-hooks.json")
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::new(self.approvals(), tomorrow)
    }

    pub(crate) fn context(&self) -> TrustContext<'_> {
        let project = Some(&*self.root);
        TrustContext { variables: &self.variables, project, folder: project, ..TrustContext::default() }
    }

    pub(crate) fn hook(&self, action: ActionSpec, inputs: &[&Path]) -> Arc<Hook> {
        let spec = HookSpec {
            source: Source::Workspace,
            project: Some(self.root.clone()),
            origin: Origin { file: self.root.join("hooks.json"), line: 1, column: 1 },
            inputs: inputs.iter().copied().map(Path::to_owned).collect(),
            ..HookSpec::new("guard", "before_tool", action)
        };
        let mut rules = Rules::default();
        rules.whitelist.extend(["ruby", "deno", "python3.9", "python3.12"].map(str::to_owned));
        let shells = [ollm_shell::POSIX_SHELLS, ollm_shell::OTHER_SHELLS, &["ksh93", "bash-5.2"]].concat();
        rules.whitelist.extend(shells.into_iter().map(str::to_owned));
        Arc::new(Hook::new(spec, &rules).unwrap())
    }

    pub(crate) fn line(&self, line: &str) -> Arc<Hook> {
        self.hook(ActionSpec::Shell(ShellSpec { script: line.to_owned() }), &[])
    }

    pub(crate) fn command(&self, command: &str, args: &[&str]) -> Arc<Hook> {
        let (command, args) = (command.to_owned(), args.iter().map(|arg| (*arg).to_owned()).collect());
        self.hook(ActionSpec::Command(CommandSpec { command, args, script: None }), &[])
    }

    pub(crate) fn proposal(&self, hook: &Hook) -> Proposal {
        self.trust().propose(hook, &self.context()).unwrap()
    }

    pub(crate) fn approve(&self, hook: &Hook) {
        let proposal = self.proposal(hook).accept_uncovered();
        self.trust().approve(hook, &proposal, Term::Always, &self.context()).unwrap();
    }

    pub(crate) fn check(&self, trust: &Trust, hook: &Arc<Hook>) -> Result<Trusted<Hook>, Refusal> {
        trust.trust(hook, &self.context(), None)
    }
}
