//! Work on an extension: its hooks run as they are at the moment, for the events of its golden cases, and for nothing else.
//!
//! No approval is written. That its hooks may run lives in this process alone, which holds a lock as long as it does.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use ollm_catalog::{Problem, is_package, validate_extension};
use ollm_protocol::Code;
use ollm_store::{digest_bytes, lock_file};
use ollm_trust::{Approver, Choice, Question};

use crate::agent_signs::refuse_agents;
use crate::app_context::AppContext;
use crate::cases;
use crate::error::AppError;
use crate::rehearsal::{CaseResult, Rehearsal};

/// A person who works on an extension. Only one at a time does.
#[derive(Debug)]
pub struct DevSession {
    /// The extension's folder.
    pub root: PathBuf,
    _lock: File,
}

/// What came of one look at an extension.
#[derive(Debug)]
#[non_exhaustive]
pub struct DevRound {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// What came of its golden cases.
    pub results: Vec<CaseResult>,
}

/// Says yes to the hooks of the extension, each time anew, and no to all others.
#[derive(Debug)]
struct OwnHooks(BTreeSet<String>);

impl Approver for OwnHooks {
    fn ask(&self, question: &Question<'_>) -> Choice {
        if self.0.contains(question.id) { Choice::Once } else { Choice::No }
    }
}

impl DevSession {
    /// Begins to work on the extension in a folder; an agent may not.
    pub fn open(folder: &Path, context: &AppContext) -> Result<DevSession, AppError> {
        refuse_agents(context, "run an extension that nobody approved")?;
        context.need_home()?;
        let folder = context.cwd.join(folder);
        let root = folder.canonicalize().ok().filter(|root| is_package(root)).ok_or_else(|| {
            AppError::new(Code::UnknownExtension, format!("there is no extension in {}", folder.display()))
                .hint("name a folder with a manifest.json, or with a package of another agent")
        })?;
        let digest = digest_bytes(root.as_os_str().as_encoded_bytes()).to_string();
        let short: String = digest.trim_start_matches("sha256:").chars().take(16).collect();
        let failed = |error: String| AppError::new(Code::Busy, error);
        let lock = lock_file(&context.state().join("dev").join(format!("{short}.lock")))
            .map_err(|error| failed(error.to_string()))?;
        lock.try_lock().map_err(|_| failed(format!("somebody works on {} already", root.display())))?;
        Ok(DevSession { root, _lock: lock })
    }

    /// Reads the extension anew, and runs its golden cases.
    pub fn round(&self, context: &AppContext) -> Result<DevRound, AppError> {
        let mut stage = Rehearsal::new(context)?;
        let (extension, problems) = validate_extension(&self.root, &stage.app.rules);
        let own = extension.hooks.iter().map(|hook| hook.id().to_owned()).collect();
        stage.app.engine.trust.approver = Some(Box::new(OwnHooks(own)));
        let mut results = Vec::new();
        for hook in &extension.hooks {
            for found in cases::of_hook(hook) {
                results.push(stage.judge_of(&extension, hook, found));
            }
        }
        Ok(DevRound { name: extension.name.clone(), problems, results })
    }
}
