//! Builds an answer from a server's data, within limits.

use serde_json::Value;

use super::{CutReason, ModelAnswer, Piece, tokens};
use crate::message::{Arguments, Call};

/// The most calls that are read from one answer; the host allows far fewer.
const MOST_CALLS: usize = 1000;
/// The most bytes of reasoning that are read, and that are kept.
const MOST_THOUGHTS: usize = 16 << 20;
const KEPT_THOUGHTS: usize = 1 << 20;
/// The marks around reasoning that comes as the beginning of the answer.
const THINK: (&str, &str) = ("<think>", "</think>");

/// An answer under construction.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) answer: ModelAnswer,
    parts: Vec<Part>,
    most: usize,
    /// The bytes of reasoning so far.
    thoughts: usize,
    opening: AnswerOpening,
}

/// The beginning of an answer.
#[derive(Debug, PartialEq, Eq)]
enum AnswerOpening {
    /// With this text, which may still turn out to be reasoning.
    Unclear(String),
    /// With reasoning, and this text may be part of its end mark.
    Thinks(String),
    /// The answer's text has begun.
    Speaks,
}

impl Default for AnswerOpening {
    fn default() -> AnswerOpening {
        AnswerOpening::Unclear(String::new())
    }
}

/// A piece of a call.
#[derive(Debug, Default)]
pub(crate) struct Fragment<'a> {
    /// The index of its call in the answer.
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// The next part of the arguments as text, or all of them as an object.
    pub(crate) arguments: Option<&'a Value>,
}

/// A call under construction.
#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Part {
    /// Whether a fragment with this id may belong to it.
    fn goes_on(&self, id: &str) -> bool {
        let is_other = !id.is_empty() && !self.id.is_empty() && self.id != id;
        !is_other || serde_json::from_str::<Value>(&self.arguments).is_err()
    }
}

impl Draft {
    /// An answer of which `most` bytes are kept.
    pub(crate) fn new(most: usize) -> Draft {
        Draft { most, ..Draft::default() }
    }

    /// Whether further text would only be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.answer.cut == Some(CutReason::Bytes)
    }

    /// Adds text; if the answer begins with `<think>`, it is reasoning.
    pub(crate) fn text(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        match std::mem::replace(&mut self.opening, AnswerOpening::Speaks) {
            AnswerOpening::Unclear(before) => {
                let whole = before + text;
                match whole.trim_start() {
                    begin if THINK.0.starts_with(begin) => self.opening = AnswerOpening::Unclear(whole),
                    begin => match begin.strip_prefix(THINK.0) {
                        Some(thoughts) => self.think(thoughts, hear),
                        None => self.words(&whole, hear),
                    },
                }
            }
            AnswerOpening::Thinks(before) => self.think(&(before + text), hear),
            AnswerOpening::Speaks if self.answer.content.is_empty() && self.thoughts > 0 => {
                self.words(text.trim_start(), hear);
            }
            AnswerOpening::Speaks => self.words(text, hear),
        }
    }

    /// Adds reasoning from the text, up to its end mark.
    fn think(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        if let Some((thoughts, words)) = text.split_once(THINK.1) {
            self.thought(thoughts, hear);
            return self.words(words.trim_start(), hear);
        }
        let held =
            (1..THINK.1.len()).rev().find(|length| THINK.1.get(..*length).is_some_and(|part| text.ends_with(part)));
        let (thoughts, held) = text.split_at(text.len() - held.unwrap_or(0));
        self.thought(thoughts, hear);
        self.opening = AnswerOpening::Thinks(held.to_owned());
    }

    fn words(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        let room = self.most.saturating_sub(self.answer.content.len());
        let kept = start_of(text, room);
        if kept.len() < text.len() {
            self.answer.cut = Some(CutReason::Bytes);
        }
        if !kept.is_empty() {
            self.answer.content.push_str(kept);
            hear(Piece::Text(kept));
        }
    }

    /// Separates reasoning without an opening mark: some templates write that mark themselves, so the answer contains
    /// only the closing one.
    fn part_thoughts(&mut self) {
        let content = &self.answer.content;
        let Some((thoughts, words)) = content.split_once(THINK.1).filter(|_| self.thoughts == 0) else { return };
        let is_alone =
            (thoughts.is_empty() || thoughts.ends_with('\n')) && (words.is_empty() || words.starts_with('\n'));
        if is_alone && !thoughts.contains(THINK.0) {
            (self.answer.reasoning, self.answer.content) = (thoughts.to_owned(), words.trim_start().to_owned());
        }
    }

    /// Adds reasoning, which is not part of the answer and has separate limits.
    pub(crate) fn thought(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        self.thoughts += text.len();
        if self.thoughts > MOST_THOUGHTS {
            self.answer.cut = Some(CutReason::Bytes);
        } else if !text.is_empty() {
            self.answer.reasoning.push_str(start_of(text, KEPT_THOUGHTS.saturating_sub(self.answer.reasoning.len())));
            hear(Piece::Thought(text));
        }
    }

    /// Notes that the model reached its token limit.
    pub(crate) fn ran_out(&mut self) {
        self.answer.cut.get_or_insert(CutReason::Length);
    }

    /// Stores the server's token counts.
    pub(crate) fn usage(&mut self, usage: &Value) {
        self.answer.tokens = tokens(usage);
        self.answer.usage = Some(usage.clone());
    }

    /// Adds a fragment of a call. It belongs to the call with its index; without an index, an id or a name begins a new
    /// call. Some servers give all calls one index: then another id with a name begins a new call, if the call before
    /// is complete.
    pub(crate) fn call(&mut self, fragment: &Fragment<'_>) {
        let Fragment { index, id, name, .. } = *fragment;
        let known = match index {
            Some(index) => {
                let at = self.parts.iter().rposition(|part| part.index == Some(index));
                at.filter(|at| name.is_empty() || self.parts.get(*at).is_none_or(|part| part.goes_on(id)))
            }
            None if id.is_empty() && name.is_empty() => self.parts.len().checked_sub(1),
            None => self.parts.iter().position(|part| !id.is_empty() && part.id == id),
        };
        let at = known.unwrap_or(self.parts.len());
        if at == self.parts.len() && at < MOST_CALLS {
            self.parts.push(Part { index, ..Part::default() });
        }
        let Some(part) = self.parts.get_mut(at) else { return };
        if part.id.is_empty() {
            id.clone_into(&mut part.id);
        }
        if part.name.is_empty() {
            name.clone_into(&mut part.name);
        }
        match fragment.arguments {
            Some(Value::String(piece)) if part.arguments.len() + piece.len() <= self.most => {
                part.arguments.push_str(piece);
            }
            Some(Value::String(_)) => self.answer.cut = Some(CutReason::Bytes),
            // Some servers send an object instead of text.
            Some(object @ Value::Object(_)) => part.arguments = object.to_string(),
            _ => {}
        }
    }

    /// The whole answer.
    pub(crate) fn finish(mut self, hear: &mut dyn FnMut(Piece<'_>)) -> ModelAnswer {
        match std::mem::replace(&mut self.opening, AnswerOpening::Speaks) {
            AnswerOpening::Unclear(words) => self.words(&words, hear),
            AnswerOpening::Thinks(thoughts) => self.thought(&thoughts, hear),
            AnswerOpening::Speaks => self.part_thoughts(),
        }
        let numbered = self.parts.into_iter().enumerate().filter(|(_, part)| !part.name.is_empty());
        self.answer.calls = numbered
            .map(|(at, part)| Call {
                id: if part.id.is_empty() { format!("call_{}", at + 1) } else { part.id },
                name: part.name,
                arguments: Arguments::parse(&part.arguments),
            })
            .collect();
        self.answer
    }
}

/// The start of a text, as far as it fits.
fn start_of(text: &str, room: usize) -> &str {
    text.get(..text.floor_char_boundary(room)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(draft: &mut Draft, index: Option<u64>, (id, name): (&str, &str), arguments: &Value) {
        draft.call(&Fragment { index, id, name, arguments: Some(arguments) });
    }

    #[test]
    fn fragments_of_calls_find_their_call() {
        let mut draft = Draft::new(100);
        call(&mut draft, Some(0), ("a", "x"), &json!(""));
        call(&mut draft, Some(1), ("b", "y"), &json!("{\"k\""));
        call(&mut draft, Some(0), ("", ""), &json!("{}"));
        call(&mut draft, Some(1), ("", ""), &json!(":1}"));
        let arguments = |text| Arguments::parse(text);
        assert_eq!(
            draft.finish(&mut |_| {}).calls,
            [
                Call { id: "a".into(), name: "x".into(), arguments: arguments("{}") },
                Call { id: "b".into(), name: "y".into(), arguments: arguments("{\"k\":1}") },
            ]
        );
    }

    #[test]
    fn calls_under_one_index_are_told_apart_by_their_ids_once_they_are_whole() {
        let mut draft = Draft::new(100);
        call(&mut draft, Some(0), ("a", "x"), &json!("{\"k\""));
        call(&mut draft, Some(0), ("b", "x"), &json!(":1}"));
        call(&mut draft, Some(0), ("c", "y"), &json!("{"));
        call(&mut draft, Some(0), ("", ""), &json!("}"));
        let answer = draft.finish(&mut |_| {});
        let seen: Vec<_> = answer.calls.iter().map(|call| (call.name.as_str(), call.arguments.text())).collect();
        assert_eq!(seen, [("x", "{\"k\":1}".to_owned()), ("y", "{}".to_owned())]);
    }

    #[test]
    fn thoughts_that_the_template_began_end_with_their_mark() {
        for (text, thoughts, words) in [
            ("hm\n</think>\n\nyes", "hm\n", "yes"),
            ("</think>\nyes", "", "yes"),
            ("hm\n</think>", "hm\n", ""),
            ("the mark </think> ends it", "", "the mark </think> ends it"),
            ("write\n<think>\n</think>\n", "", "write\n<think>\n</think>\n"),
        ] {
            let mut draft = Draft::new(100);
            draft.text(text, &mut |_| {});
            let answer = draft.finish(&mut |_| {});
            assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), (thoughts, words), "{text}");
        }
    }

    #[test]
    fn calls_without_index_or_id_are_told_apart() {
        let mut draft = Draft::new(100);
        call(&mut draft, None, ("", "x"), &json!({"a": 1}));
        call(&mut draft, None, ("", "y"), &json!("{"));
        let answer = draft.finish(&mut |_| {});
        let seen: Vec<_> = answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        assert_eq!(seen, [("call_1", "x"), ("call_2", "y")]);
        assert_eq!(answer.calls[1].arguments, Arguments::Broken("{".into()));
    }

    #[test]
    fn an_endless_answer_is_cut_and_so_are_endless_thoughts() {
        let mut draft = Draft::new(100);
        draft.text(&"é".repeat(60), &mut |_| {});
        assert!(draft.is_full());
        assert_eq!(draft.finish(&mut |_| {}).content.len(), 100);
        let mut draft = Draft::new(100);
        (0..4).for_each(|_| draft.thought(&"é".repeat(1 << 20), &mut |_| {}));
        draft.text("ok", &mut |_| {});
        assert!(!draft.is_full(), "thoughts are no part of the answer");
        (0..5).for_each(|_| draft.thought(&"é".repeat(1 << 20), &mut |_| {}));
        assert!(draft.is_full());
        let answer = draft.finish(&mut |_| {});
        assert_eq!((answer.content.as_str(), answer.reasoning.len()), ("ok", KEPT_THOUGHTS));
    }

    #[test]
    fn thoughts_at_the_beginning_of_the_words_are_thoughts_whatever_the_pieces() {
        for (text, thoughts, words) in [
            ("<think>hm < 3</think>\n\nyes </think>", "hm < 3", "yes </think>"),
            ("\n<think>\nhm</think>yes", "\nhm", "yes"),
            ("<think>only", "only", ""),
            ("<think>only</thi", "only</thi", ""),
            ("<thin", "", "<thin"),
            ("  a <think>b</think>", "", "  a <think>b</think>"),
        ] {
            for size in 1..=text.len() {
                let mut draft = Draft::new(100);
                let (mut heard, mut thought) = (String::new(), String::new());
                let mut hear = |piece: Piece<'_>| match piece {
                    Piece::Text(text) => heard.push_str(text),
                    Piece::Thought(text) => thought.push_str(text),
                    _ => {}
                };
                text.as_bytes().chunks(size).for_each(|part| draft.text(str::from_utf8(part).unwrap(), &mut hear));
                let answer = draft.finish(&mut hear);
                assert_eq!((answer.reasoning.as_str(), answer.content.as_str()), (thoughts, words), "{text} by {size}");
                assert_eq!((thought.as_str(), heard.as_str()), (thoughts, words), "{text} by {size}");
            }
        }
    }
}
