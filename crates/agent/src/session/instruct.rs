//! Adds a project's own instructions to the conversation: those around the folder at the start, others when a tool
//! enters their folder.

use std::path::{Path, PathBuf};

use ollm_protocol::tool::{Effect, effects_of};
use ollm_shell::commands;
use serde_json::{Map, Value};

use super::Session;
use crate::conversation::{CUT, INSTRUCTIONS};
use crate::instructions::{InstructionFile, Instructions};
use crate::message::Message;

/// The most words of one shell text that are looked at.
const MOST_WORDS: usize = 256;

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
        let paths = effects.iter().flat_map(|found| match (found.effect, found.text()) {
            (effect, Some(path)) if effect.names_path() => vec![PathBuf::from(path)],
            (Effect::RunsShell, Some(text)) => shell_paths(text),
            _ => Vec::new(),
        });
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

/// The words of a shell text, any of which may name a file, each in the folder that `cd` led to before.
fn shell_paths(text: &str) -> Vec<PathBuf> {
    let mut folder = PathBuf::new();
    let mut found = Vec::new();
    for words in commands(text) {
        found.extend(words.iter().filter(|word| !word.starts_with('-')).map(|word| folder.join(word)));
        if let [program, to] = words.as_slice()
            && program == "cd"
        {
            folder.push(to);
        }
    }
    found.truncate(MOST_WORDS);
    found
}

fn guidance(found: &InstructionFile) -> String {
    let cut = if found.cut { CUT } else { "" };
    format!("{INSTRUCTIONS}{}:\n{}{cut}", found.path.display(), found.text)
}
