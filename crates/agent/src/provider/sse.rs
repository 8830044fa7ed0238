//! Splits a stream of bytes into server-sent events.

/// The longest line; no model sends a longer event.
const LONGEST: usize = 16 << 20;

/// Collects bytes until they make an event.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last byte was a carriage return; a newline may belong to it.
    returned: bool,
}

/// A line longer than any event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the stream has more than {LONGEST} bytes")]
pub(crate) struct TooLong;

impl Sse {
    /// Takes the next bytes; returns the data of every event that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if self.returned => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            self.returned = byte == b'\r';
            if self.line.len() + self.data.len() > LONGEST {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// The event that the end of the stream completes, because some servers omit the last empty line.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let ended = self.end_line();
        ended.or_else(|| self.end_line())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let whole = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then(|| String::from_utf8_lossy(&whole).into_owned());
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
        }
        // Comments keep the connection alive; names, ids and retry times are not used.
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(chunks: &[&[u8]]) -> Vec<String> {
        let mut sse = Sse::default();
        let mut events: Vec<String> = chunks.iter().flat_map(|chunk| sse.push(chunk).unwrap()).collect();
        events.extend(sse.finish());
        events
    }

    #[test]
    fn comments_names_and_empty_events_are_skipped() {
        let text = b": hello\n\nevent: x\nid: 3\ndata: a\n\n\n\ndata:b\ndata:  c\n\n";
        assert_eq!(whole(&[text]), ["a", "b\n c"]);
    }

    #[test]
    fn a_last_event_without_its_empty_line_counts() {
        assert_eq!(whole(&[b"data: a\n\ndata: [DONE]"]), ["a", "[DONE]"]);
        assert_eq!(whole(&[b"data: a\n"]), ["a"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut sse = Sse::default();
        assert_eq!(sse.push(&vec![b'x'; LONGEST + 1]), Err(TooLong));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn the_edges_of_chunks_do_not_matter(
            lines in prop::collection::vec("(data: ?[aé\u{1f600}]{0,5}|: x|event: y|)", 0..20),
            end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in prop::collection::vec(0usize..300, 0..10),
        ) {
            let text = lines.iter().flat_map(|line| [line.as_str(), end]).collect::<String>().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                chunks.push(&text[from..cut]);
                from = cut;
            }
            prop_assert_eq!(whole(&chunks), whole(&[&text]));
        }
    }
}
