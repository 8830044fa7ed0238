//! Collects arguments with an unknown meaning: any text among them may be a command or a path.

use std::borrow::Cow;

use ollm_protocol::{Event, EventKind, tool};
use serde_json::Value;

/// How far JSON in a text is followed into JSON in it.
const DEEPEST: usize = 3;

/// How many programs and lists of words are put together.
const MOST_PAIRS: usize = 8;

/// The texts among the arguments of a call, wherever they stand.
#[derive(Default)]
pub(crate) struct LooseTexts<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Lists of words, each of which may be a command or the arguments of one.
    lists: Vec<Vec<String>>,
}

/// The texts of a call that is about to happen, as far as nothing is known of them.
pub(crate) fn loose(event: &Event) -> LooseTexts<'_> {
    let mut loose = LooseTexts::default();
    if event.kind != EventKind::BeforeTool {
        return loose;
    }
    let args = event.data.get("args");
    match event.text("tool_name").filter(|name| !name.is_empty()) {
        Some(name) => {
            for value in args.map(|args| tool::unknown_values(name, args)).unwrap_or_default() {
                loose.take(value);
            }
        }
        // Where not even the name of the tool is known, any field may be an argument.
        None => event.data.values().for_each(|value| loose.take(value)),
    }
    loose.unfold();
    loose
}

impl<'a> LooseTexts<'a> {
    fn take(&mut self, value: &'a Value) {
        self.add(value, Cow::Borrowed);
    }

    /// Every text and every list of texts in a value, however deep.
    fn add<'v>(&mut self, value: &'v Value, keep: impl Fn(&'v str) -> Cow<'a, str>) {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => self.texts.push(keep(text)),
                Value::Array(list) => {
                    let words: Option<Vec<String>> = list.iter().map(|word| word.as_str().map(str::to_owned)).collect();
                    self.lists.extend(words.filter(|words| !words.is_empty()));
                    open.extend(list);
                }
                Value::Object(inner) => open.extend(inner.values()),
                _ => {}
            }
        }
    }

    /// Adds what is in texts that are JSON themselves.
    fn unfold(&mut self) {
        let mut from = 0;
        for _ in 0..DEEPEST {
            let is_json = |text: &&Cow<'_, str>| text.trim_start().starts_with(['{', '[']);
            let found = self.texts.iter().skip(from).filter(is_json);
            let values: Vec<Value> = found.filter_map(|text| serde_json::from_str(text).ok()).collect();
            from = self.texts.len();
            for value in &values {
                self.add(value, |text| Cow::Owned(text.to_owned()));
            }
        }
    }

    /// Everything that may be a command: lines, lists of words, and a program with its arguments beside it.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Command<'_>> {
        let lines = self.texts.iter().filter(|text| may_be_line(text)).map(|text| Command::Line(Cow::Borrowed(text)));
        let lists = self.lists.iter().filter(|list| list.len() > 1).map(|list| Command::Words(list.clone()));
        lines.chain(lists).chain(self.pairs())
    }

    fn pairs(&self) -> impl Iterator<Item = Command<'_>> {
        let programs = self.texts.iter().filter(|text| is_program(text)).take(MOST_PAIRS);
        programs.flat_map(|program| {
            let with_list = |list: &Vec<String>| {
                Command::Pair(std::iter::once(program.to_string()).chain(list.iter().cloned()).collect())
            };
            let others = self.texts.iter().filter(move |text| *text != program && text.contains(['-', '/', '~']));
            let with_text = move |text: &Cow<'_, str>| Command::Line(Cow::Owned(format!("{program} {text}")));
            self.lists.iter().take(MOST_PAIRS).map(with_list).chain(others.take(MOST_PAIRS).map(with_text))
        })
    }

    /// Everything that may be a path.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        const LONGEST: usize = 4096;
        let is_path = |text: &&str| text.len() < LONGEST && text.contains(['/', '.', '\\']) && !text.contains('\n');
        self.texts.iter().map(|text| &**text).filter(is_path)
    }
}

/// What may be a command.
pub(crate) enum Command<'a> {
    /// Text with more than one word.
    Line(Cow<'a, str>),
    /// A list of words.
    Words(Vec<String>),
    /// A program and a list of words beside it.
    Pair(Vec<String>),
}

/// Whether text has more than one word to a shell, and is no plain sentence.
fn may_be_line(text: &str) -> bool {
    let mut letters = text.trim_start().chars();
    let sentence = letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase);
    let operates = text.contains([';', '|', '&', '$', '`', '>', '<', '\n']);
    operates || (!sentence && text.contains([' ', '\t', '{']))
}

/// Whether text may name a program: one word, perhaps with its folder.
fn is_program(text: &str) -> bool {
    text.len() < 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_'))
}
