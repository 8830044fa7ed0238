//! What stands in a file that hooks are taken from, and how it is read.

use std::path::Path;

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::home::WrittenForm;

use super::LARGEST_FILE;
use crate::file::{self, Document, Syntax};
use crate::format::{self, HookCollector, agent, in_place};
use crate::node::{Cursor, Node};
use crate::problem::Problem;

/// What stands in a file.
#[derive(Clone, Copy)]
pub(super) enum FileForm {
    /// Hooks in any form of our own.
    Hooks,
    /// The settings of a shell-command agent.
    Settings,
    /// Hooks of another agent, in its own form.
    Agent(&'static AgentDialect),
}

impl FileForm {
    /// Reads a file; `None` when it does not exist. A program is a hook by itself, with any text.
    pub(super) fn read(self, path: &Path, syntax: Syntax) -> Result<Option<(Document<'_>, Node)>, Box<Problem>> {
        if !self.agent().is_some_and(|agent| agent.home.written.form == WrittenForm::Programs) {
            return file::read(path, syntax, LARGEST_FILE);
        }
        let bytes = file::stamped(path, LARGEST_FILE)?;
        Ok(bytes.map(|(bytes, state)| {
            let mut document = Document::new(path, syntax, String::new());
            document.state = Some(state);
            (document, Node::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }))
    }

    /// Takes in every hook of it.
    pub(super) fn take(self, root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
        match self {
            FileForm::Hooks => format::take(root, intake),
            FileForm::Settings => agent::take(root, intake),
            FileForm::Agent(agent) => in_place::take(root, agent, intake),
        }
    }

    /// The agent whose own file it is.
    pub(super) fn agent(self) -> Option<&'static AgentDialect> {
        match self {
            FileForm::Agent(agent) => Some(agent),
            FileForm::Hooks | FileForm::Settings => None,
        }
    }
}
