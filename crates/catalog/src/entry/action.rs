//! Reads the action of a hook: `command` and `args`, or an action of another type.

use std::borrow::Cow;

use ollm_protocol::hook::action::{ActionType, CommandSpec};
use ollm_protocol::hook::key;
use ollm_protocol::{ActionSpec, Code, HookSpec};

use super::reader::{EntryReader, meant, not_loaded};
use super::{Draft, canonical, names};
use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node};
use crate::path::{self, CommandRefusal, OutsideFile};

const STAY: &str = "move the file into that folder, or give its absolute path";

impl Draft {
    /// The action with its files located. `holder` is the node with `command` and `args`.
    pub(crate) fn act(
        &mut self,
        holder: &Cursor<'_>,
        context: &Context<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<ActionSpec> {
        let ActionSpec::Command(CommandSpec { command, args, .. }) = &self.spec.action else {
            return Some(self.spec.action.clone());
        };
        match path::command(context.folder, command, args.clone(), &context.rules.whitelist, context.walked) {
            Ok((found, files)) => {
                self.spec.inputs.extend(files);
                self.spec.inputs.dedup();
                Some(ActionSpec::Command(found))
            }
            Err(refused) => {
                findings.push(misplaced(holder, command, args, &refused));
                None
            }
        }
    }
}

fn misplaced(holder: &Cursor<'_>, command: &str, args: &[String], refused: &CommandRefusal) -> Finding {
    let named = holder.get("command");
    let list = holder.get("args");
    let (cursor, (message, help)) = match refused {
        CommandRefusal::Command(outside) => (named, left(command, outside)),
        CommandRefusal::Argument(index, outside) => {
            let item = list.as_ref().and_then(|list| list.items().nth(*index));
            let written = args.get(*index).map_or("", String::as_str);
            (item.or(list), left(written, outside))
        }
        CommandRefusal::Arguments => {
            let message = format!("command `{command}` holds arguments");
            (named, (message, "name the program alone and put the rest into `args`"))
        }
    };
    not_loaded(Code::UnsafePath, &cursor.unwrap_or(*holder), &message, Some(help.to_owned()))
}

impl EntryReader<'_> {
    /// Reads an action: `{"type": …}` and the keys of that type.
    pub(crate) fn action(&mut self, at: &Cursor<'_>) -> Option<ActionSpec> {
        let (kind, blank) = self.kind(at)?;
        let mut spec = HookSpec::new("", "", blank);
        let mut seen = Vec::new();
        self.map(at, |reader, key, at| match key::find(kind.keys, key).filter(|row| row.is_written()) {
            _ if key == "type" => {}
            None => reader.unsuited(at, kind),
            Some(row) => {
                seen.push(row.name);
                reader.row(row, &mut spec, at);
            }
        });
        let needed = || kind.keys.iter().filter(|row| row.required).map(|row| row.name);
        let complete = needed().all(|key| seen.contains(&key));
        if self.sound && !complete {
            let needed: Vec<String> = needed().map(|key| format!("`{key}`")).collect();
            self.refuse(at, &format!("an action of type \"{}\" needs {}", kind.name, needed.join(" and ")), None);
        }
        complete.then_some(spec.action)
    }

    /// The type of an action, with a blank action of that type.
    fn kind(&mut self, at: &Cursor<'_>) -> Option<(&'static ActionType, ActionSpec)> {
        let names: Vec<&str> = ActionType::of_files().map(|kind| kind.name).collect();
        if !matches!(at.node, Node::Map(_)) {
            let key = at.key().unwrap_or_default();
            let help = "write {\"type\": \"askAgent\", \"prompt\": …}, for instance".to_owned();
            self.refuse(at, &format!("`{key}` must be a map, not {}", at.node.kind()), Some(help));
            return None;
        }
        let Some(written) = at.get("type") else {
            let fits = |kind: &&ActionType| kind.keys.iter().any(|row| row.required && at.get(row.name).is_some());
            let help = ActionType::of_files().find(fits).map(|kind| format!("add \"type\": \"{}\"", kind.name));
            self.lacks(at, &format!("an action must have a `type`: one of {}", names.join(", ")), help);
            return None;
        };
        let word = match written.node {
            Node::Text(text) => canonical(text),
            _ => Cow::Borrowed(""),
        };
        let found = ActionType::of_files().find(|kind| kind.name == word);
        let found = found.and_then(|kind| Some((kind, kind.blank?())));
        if found.is_none() {
            let help = meant(&word, &names);
            self.refuse(&written, &format!("`type` must be one of {}", names.join(", ")), help);
        }
        found
    }

    /// Reports a key that this type of action does not have. Dropping it could change what the hook does.
    fn unsuited(&mut self, at: &Cursor<'_>, kind: &ActionType) {
        let key = at.key().unwrap_or_default();
        let beside = super::KEYS.contains(&&*canonical(key));
        let help = meant(key, &names(kind.keys)).or_else(|| beside.then(|| "write it beside the action".to_owned()));
        self.refuse(at, &format!("`{key}` is no part of an action of type \"{}\"", kind.name), help);
    }
}

/// The problem with a file that a hook names, and the remedy.
pub(super) fn left(written: &str, outside: &OutsideFile) -> (String, &'static str) {
    let OutsideFile { path, folder, trouble } = outside;
    match trouble {
        Some(trouble) => (format!("`{written}` cannot be looked at: {}", trouble.why), trouble.help),
        None => {
            (format!("`{written}` leads to {}, out of the hook's folder {}", path.display(), folder.display()), STAY)
        }
    }
}
