//! Adds a project's own instructions to the conversation: those around the folder at the start, others when a tool
//! enters their folder.

use std::path::Path;

use ollm_protocol::tool::{CallEffect, effects_of};
use serde_json::{Map, Value};

use super::Session;
use crate::conversation::{CUT, INSTRUCTIONS};
use crate::instructions::{InstructionFile, Instructions};
use crate::message::Message;

impl Session<'_> {
    /// Reads the instructions around the folder; a resumed conversation already contains them.
    pub(super) fn read_instructions(&mut self, is_new: bool) {
        if !is_new {
            return self.recall_instructions();
        }
        let folders = self.settings.instructions.clone();
        let found: Vec<_> = folders.iter().filter_map(|folder| self.instructions.read(folder)).collect();
        if !found.is_empty() {
            // The window determines how much of them fits.
            self.measure_window();
        }
        // The nearest instructions get space first, and come last.
        let mut messages: Vec<_> = found.into_iter().rev().filter_map(|found| self.instruction(found)).collect();
        while let Some(message) = messages.pop() {
            self.push(message);
        }
    }

    /// Marks the instructions in the conversation, and those around the folder, as read.
    pub(super) fn recall_instructions(&mut self) {
        self.instructions = Instructions::default();
        for folder in &self.settings.instructions {
            self.instructions.skip(folder);
        }
        for message in &self.talk.messages {
            let Message::System(text) = message else { continue };
            let found = text.strip_prefix(INSTRUCTIONS).and_then(|found| found.split_once(":\n"));
            if let Some((path, text)) = found {
                self.instructions.recall(Path::new(path), text.len());
            }
        }
    }

    /// Reads the instructions of the folders that a call went to.
    pub(super) fn follow(&mut self, name: &str, args: &Map<String, Value>) {
        if self.settings.instructions.is_empty() {
            return;
        }
        let effects = effects_of(name, args);
        let paths = effects.iter().filter(|found| found.effect.names_path()).filter_map(CallEffect::text);
        let resolved: Vec<_> = paths.filter_map(|path| self.workspace.resolve(path).ok()).collect();
        for path in resolved {
            for found in self.instructions.on_the_way(self.workspace.root(), &path) {
                if let Some(message) = self.instruction(found) {
                    self.talk.wait(message);
                }
            }
        }
    }

    /// The message with as much of these instructions as fits; if they are cut, the person is told.
    fn instruction(&mut self, found: InstructionFile) -> Option<Message> {
        let found = self.instructions.fit(found, self.share());
        let path = found.path.display();
        self.status(&match (found.text.is_empty(), found.cut) {
            (true, _) => format!("{path} is left out: the model's window has no room for more instructions"),
            (false, true) => format!("the beginning of {path} is read as instructions for the model"),
            (false, false) => format!("{path} is read as instructions for the model"),
        });
        (!found.text.is_empty()).then(|| Message::System(guidance(&found)))
    }
}

fn guidance(found: &InstructionFile) -> String {
    let cut = if found.cut { CUT } else { "" };
    format!("{INSTRUCTIONS}{}:\n{}{cut}", found.path.display(), found.text)
}
