//! Splits a stream of bytes into lines of JSON.

/// The longest line; no model sends a longer one.
const LONGEST: usize = 16 << 20;

/// Collects bytes until they make a line.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

/// A line that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of the stream has more than {LONGEST} bytes")]
pub(crate) struct TooLong;

impl Lines {
    /// Takes the next bytes; returns every line that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.0.extend_from_slice(line);
            lines.extend(self.finish());
            rest = after.get(1..).unwrap_or_default();
        }
        self.0.extend_from_slice(rest);
        if self.0.len() > LONGEST { Err(TooLong) } else { Ok(lines) }
    }

    /// The line that the end of the stream completes.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.0);
        (!line.trim_ascii().is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        for size in 1..9 {
            let mut lines = Lines::default();
            let mut seen: Vec<Vec<u8>> =
                b"{\"a\":1}\n\n{\"b\":2}\r\n{}".chunks(size).flat_map(|piece| lines.push(piece).unwrap()).collect();
            seen.extend(lines.finish());
            assert_eq!(seen, [b"{\"a\":1}".to_vec(), b"{\"b\":2}\r".to_vec(), b"{}".to_vec()]);
        }
        assert_eq!(Lines::default().push(&vec![b'x'; LONGEST + 1]), Err(TooLong));
    }
}
