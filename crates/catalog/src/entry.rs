//! Reads one hook as declared: the keys of an entry, which are the same in every form.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use ollm_protocol::hook::action::{ActionType, CommandSpec, ShellSpec};
use ollm_protocol::hook::key::{self, HOOK_KEYS, HookKey, KeyKind, Text, TextForm, Unknown};
use ollm_protocol::{ActionSpec, Code, HookSpec, Needs, placeholders};
use ollm_shell::split;

use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node, Part};
use crate::path;
use crate::value;

mod action;
mod reader;
mod schema;

use action::left;
use reader::{COUNT, FLAG, PAUSE, POSITIVE, SERVICES, SIZE, SPAN, TIME};
pub(crate) use reader::{EntryReader, MANY, canonical, meant, not_loaded};
pub(crate) use schema::{by_event, snake};
pub use schema::{hook_file_schema, hook_schema};

/// The type of an action that posts the event.
pub(crate) const HTTP: &str = "http";

/// The names of the keys of an entry.
static KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| names(HOOK_KEYS));

/// The names of these keys, as far as entries can have them.
fn names(keys: &'static [HookKey]) -> Vec<&'static str> {
    keys.iter().filter(|key| key.is_written()).map(|key| key.name).collect()
}

/// All keys of an entry and of its parts. The keys of an action come with its type.
pub(crate) fn keys() -> impl Iterator<Item = (String, Vec<&'static str>)> {
    let sections = HOOK_KEYS.iter().filter_map(|key| match key.kind {
        KeyKind::Section(keys) => Some((format!("hooks.{}", key.name), names(keys))),
        _ => None,
    });
    let actions = ActionType::of_files().map(|kind| (kind.name.to_owned(), names(kind.keys)));
    std::iter::once(("hooks".to_owned(), KEYS.clone())).chain(sections).chain(actions)
}

/// The content of an entry, before its files are located.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The values of its keys; unset keys are empty.
    pub(crate) spec: HookSpec,
    /// The values of an action that has its keys beside the others.
    pub(crate) action: Option<ActionSpec>,
}

/// Reads a form's own keys; returns whether it took the key.
pub(crate) type OwnKeys = fn(&mut EntryReader<'_>, &mut Draft, &str, &Cursor<'_>) -> bool;

/// A form whose entries have no keys of their own.
pub(crate) fn no_own(_: &mut EntryReader<'_>, _: &mut Draft, _: &str, _: &Cursor<'_>) -> bool {
    false
}

/// Reads the keys of an `http` action that are beside the other keys of an entry.
pub(crate) fn own_http(reader: &mut EntryReader<'_>, draft: &mut Draft, key: &str, at: &Cursor<'_>) -> bool {
    let kind = ActionType::of_files().find(|kind| kind.name == HTTP);
    let Some((kind, blank)) = kind.and_then(|kind| Some((kind, kind.blank?))) else { return false };
    if key == "type" {
        draft.action.get_or_insert_with(blank);
        return true;
    }
    let Some(row) = key::find(kind.keys, key) else { return false };
    let mut spec = HookSpec::new("", "", draft.action.take().unwrap_or_else(blank));
    reader.row(row, &mut spec, at);
    draft.action = Some(spec.action);
    true
}

/// Reads the keys of an entry. `None` if the hook cannot be loaded; the findings say why.
pub(crate) fn read(
    entry: &Cursor<'_>,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    own: OwnKeys,
) -> Option<Draft> {
    let mut reader = EntryReader { context, findings, sound: true };
    let draft = reader.draft(entry, own);
    reader.sound.then_some(draft)
}

/// What can be read of an entry that cannot be loaded, without its action.
pub(crate) fn read_in_part(entry: &Cursor<'_>, context: &Context<'_>) -> HookSpec {
    EntryReader { context, findings: &mut Vec::new(), sound: true }.draft(entry, no_own).spec
}

impl Draft {
    /// A draft with only a name.
    pub(crate) fn named(name: Option<String>) -> Draft {
        let mut spec = HookSpec::new("", "", ActionSpec::Command(CommandSpec::default()));
        spec.name = name.unwrap_or_default();
        spec.events = Vec::new();
        Draft { spec, action: None }
    }

    /// The id in the entry, if it has one.
    pub(crate) fn id(&self) -> Option<&str> {
        Some(self.spec.id.as_str()).filter(|id| !id.is_empty())
    }

    /// The action as written, which identifies a hook without a name.
    pub(crate) fn line(&self) -> String {
        self.spec.action.descriptor().words().join("\0")
    }

    /// The declared hook, with its own action.
    pub(crate) fn spec(self, id: String, event: &str, action: ActionSpec, context: &Context<'_>) -> HookSpec {
        let mut spec = self.spec;
        if spec.events.is_empty() {
            spec.events = vec![event.to_owned()];
        }
        if spec.name.is_empty() {
            spec.name = action.descriptor().title();
        }
        HookSpec {
            id,
            action,
            source: context.source,
            layer: context.layer,
            group: context.group.map(str::to_owned),
            extension: context.extension.map(str::to_owned),
            read_from: context.agent.map(|agent| agent.name),
            tree: context.extension.map(|_| context.folder.to_owned()),
            ..spec
        }
    }

    /// The shell line of an entry.
    pub(crate) fn shell(&mut self) -> ActionSpec {
        let script = match &self.spec.action {
            ActionSpec::Command(line) => line.command.clone(),
            _ => String::new(),
        };
        ActionSpec::Shell(ShellSpec { script })
    }
}

impl EntryReader<'_> {
    fn draft(&mut self, entry: &Cursor<'_>, own: OwnKeys) -> Draft {
        let mut draft = Draft::named(None);
        if !matches!(entry.node, Node::Map(_)) {
            let message = format!("a hook must be a map of its keys, not {}", entry.node.kind());
            self.refuse(entry, &message, Some("write {\"name\": …, \"command\": …}".to_owned()));
            return draft;
        }
        self.keys(entry, |reader, key, value| {
            if !own(reader, &mut draft, key, value) {
                reader.key(&mut draft, key, value);
            }
        });
        self.settle(&mut draft, entry);
        if self.sound {
            self.suited(HOOK_KEYS, draft.spec.action.needs(), entry);
        }
        draft
    }

    /// Determines the action: either `command` or an action.
    fn settle(&mut self, draft: &mut Draft, entry: &Cursor<'_>) {
        let has_command = entry.get("command").is_some_and(|at| !matches!(at.node, Node::Null));
        match draft.action.take() {
            Some(_) if has_command => {
                let help = Some("keep one of them".to_owned());
                self.refuse(entry, "the hook has both a `command` and an action", help);
            }
            Some(_) if matches!(&draft.spec.action, ActionSpec::Command(beside) if !beside.args.is_empty()) => {
                self.refuse(entry, "`args` stands beside an action", Some("put it into the action".to_owned()));
            }
            Some(action) => draft.spec.action = action,
            None if self.sound && !has_command => {
                self.lacks(entry, "the hook has no `command`", Some("name the program to start".to_owned()));
            }
            None => {}
        }
    }

    /// Reports keys that have no effect on this action. A key that promises a limit prevents loading.
    fn suited(&mut self, keys: &'static [HookKey], needs: Needs<'_>, at: &Cursor<'_>) {
        for (written, value) in at.entries().filter(|(_, value)| !value.node.is_nothing()) {
            let Some(row) = key::find(keys, &canonical(written)) else { continue };
            if let KeyKind::Section(inner) = row.kind {
                self.suited(inner, needs, &value);
            }
            if (row.suits)(needs) {
                continue;
            }
            let message = format!("`{}` has no effect: the hook starts no program", row.name);
            match row.unknown {
                Unknown::Refused => self.refuse(&value, &message, Some("remove it".to_owned())),
                Unknown::Warned => self.warn(Code::Ignored, &value, Part::Key, message, Some("remove it".to_owned())),
            }
        }
    }

    fn key(&mut self, draft: &mut Draft, key: &str, at: &Cursor<'_>) {
        match HookKey::find(key).map(|row| (row, row.kind)) {
            Some((_, KeyKind::Action)) => draft.action = self.action(at),
            Some((row, kind)) if !matches!(kind, KeyKind::Place) => self.row(row, &mut draft.spec, at),
            _ => self.other(key, at),
        }
    }

    /// Reads the value of a key according to its row.
    fn row(&mut self, row: &HookKey, spec: &mut HookSpec, at: &Cursor<'_>) {
        if let Some(why) = row.unhonoured.filter(|_| !matches!(at.node, Node::Bool(false))) {
            self.warn(Code::Ignored, at, Part::Key, format!("`{}` has no effect: {why}", row.name), None);
        }
        match row.kind {
            KeyKind::Place | KeyKind::Action => {}
            KeyKind::CommandType => self.command_type(at),
            KeyKind::Text(text, set) => self.text(&text, at).into_iter().for_each(|text| set(spec, text)),
            KeyKind::Flag(set) => {
                self.need(at, value::flag(at.node), FLAG).into_iter().for_each(|flag| set(spec, flag));
            }
            KeyKind::Texts(expected, set) => set(spec, self.texts(at, expected)),
            KeyKind::Services(set) => set(spec, self.texts(at, SERVICES)),
            KeyKind::Patterns(set) => set(spec, self.patterns(at)),
            KeyKind::Line(set) => {
                if let Some((line, words)) = self.line(at) {
                    set(spec, line, words);
                }
            }
            KeyKind::Headers(set) => set(spec, self.texts_by_name(at, "header")),
            KeyKind::Object(set) => set(spec, self.object(at)),
            KeyKind::Variables(set) => {
                set(spec, self.texts_by_name(at, "variable"));
                if let Some((path, message)) = value::relative_entries(at) {
                    self.warn(Code::WrongValue, &path, Part::Value, message, Some(value::MAKE_ABSOLUTE.to_owned()));
                }
            }
            KeyKind::Files(set) => set(spec, self.inputs(at)),
            KeyKind::Time(set) => {
                self.need(at, value::timeout(at.node), TIME).into_iter().for_each(|time| set(spec, time));
            }
            KeyKind::Span(set) => {
                self.need(at, value::span(at.node), SPAN).into_iter().for_each(|span| set(spec, span));
            }
            KeyKind::Pause(set) => {
                let pause = value::pause(at.node, Duration::from_millis(1));
                self.need(at, pause, PAUSE).into_iter().for_each(|pause| set(spec, pause));
            }
            KeyKind::Size(set) => {
                self.need(at, value::size(at.node), SIZE).into_iter().for_each(|size| set(spec, size));
            }
            KeyKind::Count(set) => {
                self.need(at, value::whole(at.node), COUNT).into_iter().for_each(|count| set(spec, count));
            }
            KeyKind::Positive(set) => {
                self.need(at, value::positive(at.node), POSITIVE).into_iter().for_each(|count| set(spec, count));
            }
            KeyKind::Choice(names, set) => self.choice(at, &names(), |name| set(spec, name)),
            KeyKind::Section(keys) => {
                // An empty map allows nothing, which differs from no map at all.
                if row.name == "permissions" {
                    spec.permissions.get_or_insert_default();
                }
                self.section(keys, row.unknown, spec, at);
            }
        }
    }

    fn text(&mut self, text: &Text, at: &Cursor<'_>) -> Option<String> {
        let reading = match text.form {
            TextForm::Any => value::text(at.node),
            TextForm::Word => value::word(at.node),
            TextForm::Plain | TextForm::Expression | TextForm::OneOf(_) => value::plain(at.node),
        };
        if text.for_people { self.want(at, reading, text.expected) } else { self.need(at, reading, text.expected) }
    }

    fn command_type(&mut self, at: &Cursor<'_>) {
        if at.node.as_text() != Some("command") {
            let help = "in a hook file, write what else a hook can do as {\"action\": {\"type\": …}}";
            self.refuse(at, "only hooks of type \"command\" are written like this", Some(help.to_owned()));
        }
    }

    /// A line and its words. Syntax that only a shell understands is refused.
    fn line(&mut self, at: &Cursor<'_>) -> Option<(String, Vec<String>)> {
        let line = self.need(at, value::plain(at.node), "text")?;
        let spans: Vec<_> = placeholders(&line).map(|one| one.span).collect();
        match split(&line, &spans) {
            Ok(words) => Some((line, words)),
            Err(error) => {
                self.refuse(at, &error.to_string(), None);
                None
            }
        }
    }

    fn section(&mut self, keys: &'static [HookKey], unknown: Unknown, spec: &mut HookSpec, at: &Cursor<'_>) {
        self.map(at, |reader, key, at| match (key::find(keys, key), unknown) {
            (Some(row), _) => reader.row(row, spec, at),
            (None, Unknown::Warned) => reader.unknown(at, &names(keys)),
            (None, Unknown::Refused) => reader.refuse_unknown(at, &names(keys)),
        });
    }

    /// Reports keys that are unknown, or that have no effect.
    fn other(&mut self, key: &str, at: &Cursor<'_>) {
        match key {
            "$schema" => {}
            "trusted" => self.trusted(at),
            "source" | "sourcePath" | "extensionName" => {
                let message = format!("`{key}` is ignored: the place of its file says where a hook comes from");
                self.warn(Code::Ignored, at, Part::Key, message, Some("remove it".to_owned()));
            }
            "hooks" => {
                let help = "write `command` beside `matcher`, or put groups into a file of their own";
                self.refuse(at, "`hooks` inside an entry is not known in this form", Some(help.to_owned()));
            }
            "eventType" | "when" | "then" => {
                let help = "such a hook has a file of its own; here the event is the key of the list";
                self.refuse(at, &format!("`{key}` belongs to another form"), Some(help.to_owned()));
            }
            _ if HookKey::promised(key).is_some() => self.refuse_unknown(at, &KEYS),
            _ => self.unknown(at, &KEYS),
        }
    }

    fn inputs(&mut self, at: &Cursor<'_>) -> Vec<PathBuf> {
        let written = self.texts(at, "a list of paths");
        let mut inputs = Vec::with_capacity(written.len());
        for (index, text) in written.iter().enumerate() {
            match path::inside(self.context.folder, text, self.context.walked) {
                Ok(path) => inputs.push(path),
                Err(outside) => {
                    let item = at.items().nth(index).unwrap_or(*at);
                    let (message, help) = left(text, &outside);
                    self.refuse(&item, &message, Some(help.to_owned()));
                }
            }
        }
        inputs
    }
}
