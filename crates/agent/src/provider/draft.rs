//! An answer being put together from what a server sends, within bounds.

use serde_json::Value;

use super::{Answer, Cut, Piece, tokens};
use crate::message::{Arguments, Call};

/// The most calls that are read from one answer; the host allows far fewer.
const MOST_CALLS: usize = 1000;

/// An answer being put together.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) answer: Answer,
    parts: Vec<Part>,
    most: usize,
}

/// A piece of a call.
#[derive(Debug, Default)]
pub(crate) struct Fragment<'a> {
    /// Which call of the answer it belongs to.
    pub(crate) index: Option<u64>,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// The next part of the arguments as text, or all of them as an object.
    pub(crate) arguments: Option<&'a Value>,
}

/// A call being put together.
#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Draft {
    /// An answer of which `most` bytes are kept.
    pub(crate) fn new(most: usize) -> Draft {
        Draft { most, ..Draft::default() }
    }

    /// Whether more would only be thrown away.
    pub(crate) fn is_full(&self) -> bool {
        self.answer.cut == Some(Cut::Bytes)
    }

    /// The next words.
    pub(crate) fn text(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        let text = kept(text, self.most, self.answer.content.len(), &mut self.answer.cut);
        if !text.is_empty() {
            self.answer.content.push_str(text);
            hear(Piece::Text(text));
        }
    }

    /// The next thoughts.
    pub(crate) fn thought(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        let text = kept(text, self.most, self.answer.reasoning.len(), &mut self.answer.cut);
        if !text.is_empty() {
            self.answer.reasoning.push_str(text);
            hear(Piece::Thought(text));
        }
    }

    /// The model ran into its limit of tokens.
    pub(crate) fn ran_out(&mut self) {
        self.answer.cut.get_or_insert(Cut::Length);
    }

    /// What the server counted.
    pub(crate) fn usage(&mut self, usage: &Value) {
        self.answer.tokens = tokens(usage);
        self.answer.usage = Some(usage.clone());
    }

    /// A piece of a call: it belongs to the call with its index; without one, an id or a name begins a new call.
    pub(crate) fn call(&mut self, fragment: &Fragment<'_>) {
        let Fragment { index, id, name, .. } = *fragment;
        let known = match index {
            Some(index) => self.parts.iter().position(|part| part.index == Some(index)),
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
            Some(Value::String(_)) => self.answer.cut = Some(Cut::Bytes),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => part.arguments = object.to_string(),
            _ => {}
        }
    }

    /// The whole answer.
    pub(crate) fn finish(mut self) -> Answer {
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

/// As much of a text as there is room for.
fn kept<'a>(text: &'a str, most: usize, have: usize, cut: &mut Option<Cut>) -> &'a str {
    let room = most.saturating_sub(have);
    if text.len() <= room {
        return text;
    }
    *cut = Some(Cut::Bytes);
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
            draft.finish().calls,
            [
                Call { id: "a".into(), name: "x".into(), arguments: arguments("{}") },
                Call { id: "b".into(), name: "y".into(), arguments: arguments("{\"k\":1}") },
            ]
        );
    }

    #[test]
    fn calls_without_index_or_id_are_told_apart() {
        let mut draft = Draft::new(100);
        call(&mut draft, None, ("", "x"), &json!({"a": 1}));
        call(&mut draft, None, ("", "y"), &json!("{"));
        let answer = draft.finish();
        let seen: Vec<_> = answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        assert_eq!(seen, [("call_1", "x"), ("call_2", "y")]);
        assert_eq!(answer.calls[1].arguments, Arguments::Broken("{".into()));
    }

    #[test]
    fn an_endless_answer_is_cut_and_so_are_endless_thoughts() {
        for (text, thought, lengths) in [(60, 0, (100, 0)), (0, 60, (0, 100))] {
            let mut draft = Draft::new(100);
            draft.text(&"é".repeat(text), &mut |_| {});
            draft.thought(&"é".repeat(thought), &mut |_| {});
            assert!(draft.is_full());
            let answer = draft.finish();
            assert_eq!((answer.content.len(), answer.reasoning.len()), lengths);
        }
    }
}
