//! An answer as it streams in: bytes to events, events to an answer. How an event is understood is the provider's.

use serde_json::Value;

use super::client::Client;
use super::draft::Draft;
use super::http::Reply;
use super::lines::Lines;
use super::refusal::complaint;
use super::sse::Sse;
use super::{Answer, ModelError, Piece};

/// How events are told apart.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events(Sse),
    /// One JSON value on each line.
    Lines(Lines),
}

/// What an event means for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// More must come.
    More,
    /// The answer is whole; counts may follow.
    Finished,
    /// Nothing follows.
    Last,
}

/// Puts one event into an answer.
pub(crate) type Take<'a> = dyn FnMut(&mut Draft, &Value, &mut dyn FnMut(Piece<'_>)) -> Taken + 'a;

impl Framing {
    pub(crate) fn events() -> Framing {
        Framing::Events(Sse::default())
    }

    pub(crate) fn lines() -> Framing {
        Framing::Lines(Lines::default())
    }

    /// The events that the next bytes complete; at the end, those that it completes.
    fn push(&mut self, bytes: Option<&[u8]>) -> Result<Vec<String>, String> {
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        match (self, bytes) {
            (Framing::Events(sse), Some(bytes)) => sse.push(bytes).map_err(|error| error.to_string()),
            (Framing::Events(sse), None) => Ok(sse.finish().into_iter().collect()),
            (Framing::Lines(lines), Some(bytes)) => {
                let whole = lines.push(bytes).map_err(|error| error.to_string())?;
                Ok(whole.into_iter().map(text).collect())
            }
            (Framing::Lines(lines), None) => Ok(lines.finish().map(text).into_iter().collect()),
        }
    }
}

impl Client {
    /// Reads a stream to the end of its answer, of which `most` bytes are kept.
    pub(crate) fn read(
        &self,
        mut reply: Reply<'_>,
        (mut framing, most): (Framing, usize),
        hear: &mut dyn FnMut(Piece<'_>),
        take: &mut Take<'_>,
    ) -> Result<Answer, ModelError> {
        let mut draft = Draft::new(most);
        let (mut whole, mut came) = (Taken::More, false);
        while whole != Taken::Last && !draft.is_full() {
            let bytes = reply.chunk(hear)?;
            for event in framing.push(bytes.as_deref()).map_err(|why| self.malformed(&why))? {
                came = true;
                whole = match self.event(&event)? {
                    None => Taken::Last,
                    Some(event) => match take(&mut draft, &event, hear) {
                        Taken::More => whole,
                        taken => taken,
                    },
                };
            }
            if bytes.is_none() {
                break;
            }
        }
        // A stream without a word is an answer without one: some servers say so that they cannot take the question.
        if came && whole == Taken::More && !draft.is_full() {
            return Err(self.dropped("the stream ended before the answer did"));
        }
        if whole == Taken::Last {
            reply.finish();
        }
        Ok(draft.finish())
    }

    /// The value of an event; nothing for the last word of a stream.
    fn event(&self, text: &str) -> Result<Option<Value>, ModelError> {
        if text.trim() == "[DONE]" {
            return Ok(None);
        }
        let event: Value = serde_json::from_str(text).map_err(|error| self.malformed(&error.to_string()))?;
        match complaint(&event) {
            Some(complaint) => Err(self.dropped(&complaint)),
            None => Ok(Some(event)),
        }
    }
}
