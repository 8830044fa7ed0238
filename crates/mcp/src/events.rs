//! Events in a byte stream (`text/event-stream`), none larger than allowed.

use std::mem;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) id: Option<String>,
    /// Milliseconds before one should come again.
    pub(crate) retry: Option<u64>,
}

/// An event larger than allowed.
#[derive(Debug, thiserror::Error)]
#[error("it sent an event of more than {0} bytes")]
pub(crate) struct TooLarge(usize);

/// Finds events in bytes.
#[derive(Debug)]
pub(crate) struct Events {
    line: Vec<u8>,
    event: Event,
    /// Bytes of the event so far, its current line included.
    size: usize,
    cap: usize,
    /// Whether the last byte was a carriage return, so that a line feed is its other half.
    returned: bool,
    /// Whether the stream has begun; a byte order mark may stand before.
    begun: bool,
}

impl Events {
    pub(crate) fn new(cap: usize) -> Self {
        Self { line: Vec::new(), event: Event::default(), size: 0, cap, returned: false, begun: false }
    }

    /// Takes some bytes; the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
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
                    self.line.push(*byte);
                    self.size += 1;
                    if self.size > self.cap {
                        return Err(TooLarge(self.cap));
                    }
                }
            }
        }
        Ok(found)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if mem::replace(&mut self.begun, true) { &*line } else { line.trim_start_matches('\u{feff}') };
        if line.is_empty() {
            self.size = 0;
            return Some(mem::take(&mut self.event)).filter(|event| *event != Event::default());
        }
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
            // Comments have no name, and unknown fields no meaning.
            _ => {}
        }
        None
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
    fn an_event_that_grows_without_end_is_cut_off() {
        let mut events = Events::new(100);
        let error = (0..100).find_map(|_| events.push(b"data: xxxxxx\n").err()).unwrap();
        assert_eq!(error.to_string(), "it sent an event of more than 100 bytes");
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
