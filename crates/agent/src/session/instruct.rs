//! A project's own instructions enter the conversation: those around the folder at the start, others when a tool goes there.

use ollm_protocol::tool::{CallEffect, effects_of};
use serde_json::{Map, Value};

use super::Session;
use crate::instructions::Found;
use crate::message::Message;

/// The share of the window that the instructions of one folder may take.
const SHARE: u64 = 8;

impl Session<'_> {
    /// Reads the instructions around the folder; a conversation that goes on has them already.
    pub(super) fn read_instructions(&mut self, is_new: bool) {
        let folders = self.settings.instructions.clone();
        if !is_new {
            for folder in &folders {
                self.instructions.skip(folder);
            }
            return;
        }
        if folders.is_empty() {
            return;
        }
        let most = self.longest_instructions();
        for folder in folders {
            if let Some(found) = self.instructions.read(&folder, most) {
                self.tell_instructions(&found);
                self.push(Message::System(guidance(&found)));
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
        let most = self.longest_instructions();
        for path in resolved {
            for found in self.instructions.on_the_way(self.workspace.root(), &path, most) {
                self.tell_instructions(&found);
                self.talk.wait(Message::System(guidance(&found)));
            }
        }
    }

    fn tell_instructions(&mut self, found: &Found) {
        let part = if found.cut { "the beginning of " } else { "" };
        self.status(&format!("{part}{} is read as instructions for the model", found.path.display()));
    }

    fn longest_instructions(&self) -> usize {
        self.meter.bytes(self.meter.window() / SHARE)
    }
}

fn guidance(found: &Found) -> String {
    let cut = if found.cut { "\n[cut here]" } else { "" };
    format!("Instructions of the project, from {}:\n{}{cut}", found.path.display(), found.text)
}
