//! Development of an extension: runs its current hooks for the events of its golden cases, and for nothing else.
//!
//! It writes no approval. Only this process knows that the hooks may run, and it holds a lock meanwhile.

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

/// A person's work on an extension. A lock allows only one at a time.
#[derive(Debug)]
pub struct DevSession {
    /// The extension's folder.
    pub root: PathBuf,
    _lock: File,
}

/// The result of one run over an extension.
#[derive(Debug)]
#[non_exhaustive]
pub struct DevRound {
    /// Its name.
    pub name: String,
    /// Problems with the extension.
    pub problems: Vec<Problem>,
    /// The results of its golden cases.
    pub results: Vec<CaseResult>,
}

/// Approves the extension's hooks, each time anew, and refuses all others.
#[derive(Debug)]
struct OwnHooks(BTreeSet<String>);

impl Approver for OwnHooks {
    fn ask(&self, question: &Question<'_>) -> Choice {
        if self.0.contains(question.id) { Choice::Once } else { Choice::No }
    }
}

impl DevSession {
    /// Begins work on the extension in a folder; fails for an agent.
    pub fn open(folder: &Path, context: &AppContext) -> Result<DevSession, AppError> {
        refuse_agents(context, "run an extension that is not approved")?;
        context.need_home()?;
        let named = context.places.home.join("extensions").join(folder);
        let folder = context.cwd.join(folder);
        let package = |folder: &Path| folder.canonicalize().ok().filter(|root| is_package(root));
        let root = package(&folder).or_else(|| package(&named)).ok_or_else(|| {
            AppError::new(Code::UnknownExtension, format!("there is no extension in {}", folder.display()))
                .hint("name a folder with a manifest.json or a package of another agent, or an extension of your own")
        })?;
        let digest = digest_bytes(root.as_os_str().as_encoded_bytes()).to_string();
        let short: String = digest.trim_start_matches("sha256:").chars().take(16).collect();
        let failed = |error: String| AppError::new(Code::Busy, error);
        let lock = lock_file(&context.state().join("dev").join(format!("{short}.lock")))
            .map_err(|error| failed(error.to_string()))?;
        lock.try_lock().map_err(|_| failed(format!("another process already works on {}", root.display())))?;
        Ok(DevSession { root, _lock: lock })
    }

    /// Reads the extension anew and runs its golden cases.
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
