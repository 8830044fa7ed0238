//! Reads a streamed answer: bytes to events, events to an answer. The protocol interprets each event.

use serde_json::Value;

use super::client::Client;
use super::draft::Draft;
use super::http::Reply;
use super::lines::Lines;
use super::refusal::{complaint, plain};
use super::sse::Sse;
use super::{ModelAnswer, ModelError, Piece};

/// How many bytes of a stream without events are kept for the error message.
const LONGEST_BEGINNING: usize = 4 << 10;

/// How events are separated.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events(Sse),
    /// One JSON value on each line.
    Lines(Lines),
}

/// What an event means for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStep {
    /// More events must follow.
    More,
    /// The answer is complete; token counts may follow.
    Finished,
    /// No event follows.
    Last,
}

/// Adds one event to an answer.
pub(crate) type Take<'a> = dyn FnMut(&mut Draft, &Value, &mut dyn FnMut(Piece<'_>)) -> StreamStep + 'a;

impl Framing {
    pub(crate) fn events() -> Framing {
        Framing::Events(Sse::default())
    }

    pub(crate) fn lines() -> Framing {
        Framing::Lines(Lines::default())
    }

    /// The events that the next bytes complete; with `None`, those that the end of the stream completes.
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
    ) -> Result<ModelAnswer, ModelError> {
        let mut draft = Draft::new(most);
        let (mut whole, mut came, mut beginning) = (StreamStep::More, false, Vec::new());
        while whole != StreamStep::Last && !draft.is_full() {
            let bytes = reply.chunk(hear)?;
            if !came && beginning.len() < LONGEST_BEGINNING {
                beginning.extend_from_slice(bytes.as_deref().unwrap_or_default());
            }
            for event in framing.push(bytes.as_deref()).map_err(|why| self.malformed(&why))? {
                came = true;
                whole = match self.event(&event)? {
                    None => StreamStep::Last,
                    Some(event) => match take(&mut draft, &event, hear) {
                        StreamStep::More => whole,
                        taken => taken,
                    },
                };
            }
            if bytes.is_none() {
                break;
            }
        }
        // A stream without events counts as an empty answer: this is how some servers show that they cannot take the
        // question.
        if came && whole == StreamStep::More && !draft.is_full() {
            return Err(self.dropped("the stream ended before the answer did"));
        }
        if let (false, Some(said)) = (came, no_events(&beginning)) {
            return Err(self.malformed(&format!("it holds no events, but {said}")));
        }
        if whole == StreamStep::Last {
            reply.finish();
        }
        Ok(draft.finish(hear))
    }

    /// Reads an answer that comes at once, as one event.
    pub(crate) fn read_whole(
        &self,
        mut reply: Reply<'_>,
        most: usize,
        hear: &mut dyn FnMut(Piece<'_>),
        take: &mut Take<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let body = reply.body(most.saturating_mul(2).saturating_add(1 << 20))?;
        let whole: Value = serde_json::from_slice(&body).map_err(|error| {
            let page = body.starts_with(b"<").then(|| format!("it is no JSON, but {}", plain(&body)));
            self.malformed(&page.unwrap_or_else(|| error.to_string()))
        })?;
        if let Some(complaint) = complaint(&whole) {
            return Err(self.dropped(&complaint));
        }
        let mut draft = Draft::new(most);
        take(&mut draft, &whole, hear);
        Ok(draft.finish(hear))
    }

    /// The value of an event; `None` for the final marker of a stream.
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

/// The text of a stream without events, if it has any: comments only keep the connection alive.
fn no_events(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let fields = ["data:", "event:", "id:", "retry:", ":"];
    let is_foreign = |line: &str| !line.trim().is_empty() && !fields.iter().any(|field| line.starts_with(field));
    text.lines().any(is_foreign).then(|| plain(bytes))
}
