//! Parses the events of a byte stream (`text/event-stream`), each up to a size limit.

use std::mem;

use crate::batch::HEAD;
use crate::error::bytes;

/// How many oversized events in a row may be skipped.
pub(crate) const PATIENCE: usize = 2;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) id: Option<String>,
    /// Milliseconds to wait before reconnecting.
    pub(crate) retry: Option<u64>,
    /// The size limit, if the event exceeded it; then its data holds only the beginning.
    pub(crate) cut: Option<usize>,
}

/// An event without end.
#[derive(Debug, thiserror::Error)]
#[error("it sent an event of more than {}", bytes(*.0))]
pub(crate) struct EndlessEvent(usize);

/// Finds events in bytes.
#[derive(Debug)]
pub(crate) struct Events {
    line: Vec<u8>,
    event: Event,
    /// Bytes of the event so far, its current line included.
    size: usize,
    cap: usize,
    /// Whether the current line of a cut event has content.
    skipped: bool,
    /// Whether the last byte was a carriage return; a line feed after it belongs to the same line end.
    returned: bool,
    /// Whether the stream has begun; only its beginning may hold a byte order mark.
    begun: bool,
}

impl Events {
    pub(crate) fn new(cap: usize) -> Self {
        let event = Event::default();
        Self { line: Vec::new(), event, size: 0, cap, skipped: false, returned: false, begun: false }
    }

    /// Takes some bytes, and returns the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, EndlessEvent> {
        let mut found = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' if mem::take(&mut self.returned) => {}
                b'\n' | b'\r' => {
                    self.returned = *byte == b'\r';
                    found.extend(self.end_line());
                }
                _ => {
                    self.returned = false;
                    self.add(*byte)?;
                }
            }
        }
        Ok(found)
    }

    fn add(&mut self, byte: u8) -> Result<(), EndlessEvent> {
        self.size += 1;
        if self.event.cut.is_some() {
            self.skipped = true;
        } else if self.size <= self.cap {
            self.line.push(byte);
        } else {
            self.cut();
        }
        if self.size > self.cap.saturating_mul(PATIENCE) { Err(EndlessEvent(self.cap)) } else { Ok(()) }
    }

    /// Drops the rest of an event that is too large. Its beginning is kept, because it shows which request the event
    /// answers.
    fn cut(&mut self) {
        if self.event.data.is_none() {
            self.line.truncate(2 * HEAD);
            self.end_line();
        }
        self.line = Vec::new();
        let head = self.event.data.as_deref().unwrap_or_default();
        let head = head.get(..head.floor_char_boundary(HEAD)).unwrap_or_default().to_owned();
        (self.event.data, self.event.cut, self.skipped) = (Some(head), Some(self.cap), true);
    }

    fn end_line(&mut self) -> Option<Event> {
        if self.event.cut.is_some() && mem::take(&mut self.skipped) {
            return None;
        }
        let line = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if mem::replace(&mut self.begun, true) { &*line } else { line.trim_start_matches('\u{feff}') };
        if line.is_empty() {
            self.size = 0;
            return Some(mem::take(&mut self.event)).filter(|event| *event != Event::default());
        }
        self.field(line);
        None
    }

    fn field(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.kind = Some(value.to_owned()),
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok().or(self.event.retry),
            // Lines without a name are comments; unknown fields are ignored.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(text: &str) -> Event {
        Event { data: Some(text.to_owned()), ..Event::default() }
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let text = "\u{feff}: hello\r\nevent: endpoint\rdata:/messages\n\nid: 7\nretry: 500\ndata: a\ndata\ndata:  b\nx: y\n\n\n";
        let events = Events::new(1000).push(text.as_bytes()).unwrap();
        let endpoint = Event { kind: Some("endpoint".into()), ..data("/messages") };
        let message = Event { id: Some("7".into()), retry: Some(500), ..data("a\n\n b") };
        assert_eq!(events, [endpoint, message]);
    }

    #[test]
    fn an_event_that_is_too_large_is_cut_and_the_next_one_is_whole() {
        for text in [format!("data: {}\n\n", "x".repeat(130)), "data: xx\n".repeat(14) + "\n"] {
            let mut events = Events::new(100);
            let found = events.push(format!("{text}data: next\n\n").as_bytes()).unwrap();
            assert!(
                found[0].cut == Some(100) && found[0].data.as_deref().is_some_and(|data| data.starts_with("xx")),
                "{found:?}"
            );
            assert_eq!(found[1..], [data("next")]);
        }
    }

    #[test]
    fn an_event_that_grows_without_end_is_given_up() {
        for text in ["data: xxxxxx\n", "data: xxxxxx", ": xxxxxx"] {
            let mut events = Events::new(100);
            let error = (0..100).find_map(|_| events.push(text.as_bytes()).err()).unwrap();
            assert_eq!(error.to_string(), "it sent an event of more than 100 bytes");
            assert!(events.line.len() <= 100);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn events_are_the_same_however_the_bytes_come(
            texts in prop::collection::vec("[a-zé ]{0,8}(\n[a-z]{0,8})?", 1..8), cut in 1_usize..9, end in "\n|\r|\r\n"
        ) {
            let lines = texts.iter().map(|text| {
                let fields: Vec<_> = text.split('\n').map(|line| format!("data: {line}{end}")).collect();
                fields.concat() + &end
            });
            let bytes = lines.collect::<String>().into_bytes();
            let mut events = Events::new(1000);
            let found: Vec<_> = bytes.chunks(cut).flat_map(|piece| events.push(piece).unwrap()).collect();
            prop_assert_eq!(found, texts.iter().map(|text| data(text)).collect::<Vec<_>>());
        }
    }
}
