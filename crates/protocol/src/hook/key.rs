//! Describes each key of a hook entry in one row. The rows are beside the fields they belong to. They are the source
//! for the reader, the JSON Schema, the reference, the approved definition, and the comparison of twins.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

pub use super::spec::HOOK_KEYS;
use super::{Hook, HookSpec, Needs, Timeout};
use crate::nearest;

/// A key of a hook entry.
#[derive(Clone, Copy, Debug)]
pub struct HookKey {
    /// Its name; the snake_case spelling is also read.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Its description, in one sentence.
    pub about: &'static str,
    /// The text about its default.
    pub default: &'static str,
    /// Whether it is required.
    pub required: bool,
    /// The form of its value, and the field for it.
    pub kind: KeyKind,
    /// Why this version ignores it, if it does; a message says so where it is set.
    pub unhonoured: Option<&'static str>,
    /// Whether an approval is bound to it.
    pub approved: ApprovedPart,
    /// Whether two hooks that differ in it are twins.
    pub same: SameRule,
    /// The treatment of an unknown key that is similar to this one, or is in its section.
    pub unknown: Unknown,
    /// Whether it applies to a hook with these needs. If not, a message says so where it is set.
    pub suits: fn(Needs<'_>) -> bool,
}

/// The form of a key's value, and the field for it.
#[derive(Clone, Copy, Debug)]
pub enum KeyKind {
    /// Not a key of an entry: the value comes from the entry's place.
    Place,
    /// The action of the hook: a map with a type, and the keys of that type.
    Action,
    /// A key without effect that other agents write.
    CommandType,
    /// Text.
    Text(Text, fn(&mut HookSpec, String)),
    /// True or false.
    Flag(fn(&mut HookSpec, bool)),
    /// A list of texts, with a phrase for messages.
    Texts(&'static str, fn(&mut HookSpec, Vec<String>)),
    /// A list of services, each as host and port.
    Services(fn(&mut HookSpec, Vec<String>)),
    /// Patterns of files, at least one.
    Patterns(fn(&mut HookSpec, Vec<String>)),
    /// A line that is split into words without a shell, and its words.
    Line(fn(&mut HookSpec, String, Vec<String>)),
    /// Variables and their values.
    Variables(fn(&mut HookSpec, Vec<(String, String)>)),
    /// Headers and their values.
    Headers(fn(&mut HookSpec, Vec<(String, String)>)),
    /// A map with any keys.
    Object(fn(&mut HookSpec, Map<String, Value>)),
    /// Files in the hook's folder.
    Files(fn(&mut HookSpec, Vec<PathBuf>)),
    /// A number in the unit of the dialect, or text with a unit.
    Time(fn(&mut HookSpec, Timeout)),
    /// Text with a unit of time.
    Span(fn(&mut HookSpec, Duration)),
    /// A number of milliseconds, or text with a unit; may be zero.
    Pause(fn(&mut HookSpec, Duration)),
    /// A number of bytes, or text with a unit.
    Size(fn(&mut HookSpec, u64)),
    /// A whole number.
    Count(fn(&mut HookSpec, u64)),
    /// A whole number above zero.
    Positive(fn(&mut HookSpec, u32)),
    /// One of these words; the function returns whether it accepted the word.
    Choice(fn() -> Vec<&'static str>, fn(&mut HookSpec, &str) -> bool),
    /// A map with keys of its own.
    Section(&'static [HookKey]),
}

/// A text value.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The expected value, for messages about any other.
    pub expected: &'static str,
    /// The accepted forms.
    pub form: TextForm,
    /// Whether the text is only for people. If so, a wrong value causes a warning and does not reject the hook.
    pub for_people: bool,
}

/// The accepted forms of a text.
#[derive(Clone, Copy, Debug)]
pub enum TextForm {
    /// Any text, or a value that can be read as text.
    Any,
    /// Non-empty text, or a value that can be read as such.
    Word,
    /// Text only.
    Plain,
    /// Non-empty text only; its meaning is checked later.
    Expression,
    /// Text only, out of these words; that is checked later.
    OneOf(fn() -> Vec<&'static str>),
}

/// The treatment of an unknown key, similar to a key or in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It is ignored with a warning.
    Warned,
    /// The entry around it is not loaded, because the key may stand for a limit or a gate.
    Refused,
}

/// Whether an approval is bound to a key.
#[derive(Clone, Copy, Debug)]
pub enum ApprovedPart {
    /// It is, by this value.
    Part(fn(&Hook) -> Value),
    /// It is, if it is set. So approvals from before this key stay valid.
    PartIfSet(fn(&Hook) -> Option<Value>),
    /// It is part of the action, which has a row of its own.
    InAction,
    /// It is not: the key does not change what the hook does.
    No,
}

/// Whether two hooks that differ in a key are twins.
#[derive(Clone, Copy, Debug)]
pub enum SameRule {
    /// The key does not matter, or is compared elsewhere.
    Anyway,
    /// They are if this function returns true.
    If(fn(&Hook, &Hook) -> bool),
}

impl HookKey {
    /// The key of an entry with this name or alias.
    pub fn find(name: &str) -> Option<&'static HookKey> {
        find(HOOK_KEYS, name)
    }

    /// The key that is similar to an unknown one, if it is a limit or a gate.
    pub fn promised(unknown: &str) -> Option<&'static HookKey> {
        if HookKey::find(unknown).is_some() {
            return None;
        }
        let written = HOOK_KEYS.iter().filter(|row| row.is_written()).map(|row| row.name);
        nearest(unknown, written).and_then(HookKey::find).filter(|row| row.unknown == Unknown::Refused)
    }

    /// Whether files can have it.
    pub fn is_written(&self) -> bool {
        !matches!(self.kind, KeyKind::Place)
    }

    /// Whether two hooks may be twins by this key.
    pub fn is_same(&self, one: &Hook, other: &Hook) -> bool {
        match self.same {
            SameRule::Anyway => true,
            SameRule::If(same) => same(one, other),
        }
    }

    /// The approved value of this key.
    pub fn part(&self, hook: &Hook) -> Option<Value> {
        match self.approved {
            ApprovedPart::Part(part) => Some(part(hook)),
            ApprovedPart::PartIfSet(part) => part(hook),
            ApprovedPart::InAction | ApprovedPart::No => None,
        }
    }
}

/// The key with this name or alias.
pub fn find(keys: &'static [HookKey], name: &str) -> Option<&'static HookKey> {
    keys.iter().find(|key| key.name == name || key.aliases.contains(&name))
}

/// A row that only affects people.
pub(super) const ROW: HookKey = HookKey {
    name: "",
    aliases: &[],
    about: "",
    default: "none",
    required: false,
    kind: KeyKind::Place,
    unhonoured: None,
    approved: ApprovedPart::No,
    same: SameRule::Anyway,
    unknown: Unknown::Warned,
    suits: |_| true,
};

/// A row about a hook's program, without meaning for hooks that run none.
pub(super) const OF_PROGRAM: HookKey = HookKey { suits: |needs| needs.is_program(), ..ROW };

/// The approved values of a section's keys.
pub(super) fn parts(keys: &[HookKey], hook: &Hook) -> Map<String, Value> {
    keys.iter().filter_map(|key| Some((key.name.to_owned(), key.part(hook)?))).collect()
}

pub(super) const fn text(expected: &'static str, form: TextForm) -> Text {
    Text { expected, form, for_people: false }
}

pub(super) const fn remark(expected: &'static str, form: TextForm) -> Text {
    Text { expected, form, for_people: true }
}
