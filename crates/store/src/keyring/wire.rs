//! Encodes and decodes D-Bus messages: little-endian, each value aligned to its size.
//!
//! It covers only the shapes that the Secret Service uses. Reading checks all bounds: a message whose lengths do not
//! match its bytes is rejected.

/// The longest message that is read.
const LARGEST: usize = 1 << 20;
/// The length of the fixed start of every message, up to the length of its header fields.
pub(super) const FIXED: usize = 16;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Return,
    Error,
    Signal,
    Other,
}

/// A method to call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) to: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) signature: &'a str,
}

/// A message that came in.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: MessageKind,
    /// The call it answers.
    pub(super) answers: Option<u32>,
    pub(super) path: String,
    pub(super) member: String,
    /// The name of an error.
    pub(super) error: String,
    pub(super) body: Vec<u8>,
}

/// The bytes of a call.
pub(super) fn write(call: &Call<'_>, serial: u32, body: &[u8]) -> Vec<u8> {
    const CALL: u8 = 1;
    let mut out = Writer::default();
    out.bytes.extend([b'l', CALL, 0, 1]);
    out.number(u32::try_from(body.len()).unwrap_or(u32::MAX));
    out.number(serial);
    out.list(8, |out| {
        let fields = [(1, "o", call.path), (2, "s", call.interface), (3, "s", call.member), (6, "s", call.to)];
        for (code, kind, value) in fields {
            out.field(code, kind);
            out.text(value);
        }
        if !call.signature.is_empty() {
            out.field(8, "g");
            out.signature(call.signature);
        }
    });
    out.align(8);
    out.bytes.extend(body);
    out.bytes
}

/// The length of a message, by its first bytes; `None` if it is invalid or too long.
pub(super) fn length(fixed: &[u8; FIXED]) -> Option<usize> {
    let [b'l', _, _, 1, rest @ ..] = fixed else { return None };
    let number = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let (body, fields) = (number(0)? as usize, number(8)? as usize);
    let header = FIXED.checked_add(fields)?.checked_next_multiple_of(8)?;
    header.checked_add(body).filter(|length| *length <= LARGEST)
}

/// Reads a whole message.
pub(super) fn read(bytes: &[u8]) -> Option<Message> {
    let kind = match bytes.get(1)? {
        2 => MessageKind::Return,
        3 => MessageKind::Error,
        4 => MessageKind::Signal,
        _ => MessageKind::Other,
    };
    let mut message = Message {
        kind,
        answers: None,
        path: String::new(),
        member: String::new(),
        error: String::new(),
        body: Vec::new(),
    };
    let mut reader = WireReader { bytes, at: 12 };
    let end = reader.number()? as usize + FIXED;
    while reader.at < end {
        reader.align(8)?;
        let code = reader.byte()?;
        match (code, reader.signature()?.as_str()) {
            (1, "o") => message.path = reader.text()?,
            (3, "s") => message.member = reader.text()?,
            (4, "s") => message.error = reader.text()?,
            (5, "u") => message.answers = Some(reader.number()?),
            (_, "s" | "o") => drop(reader.text()?),
            (_, "g") => drop(reader.signature()?),
            (_, "u") => drop(reader.number()?),
            _ => return None,
        }
    }
    reader.align(8)?;
    message.body = bytes.get(reader.at..)?.to_vec();
    Some(message)
}

/// Writes values one after another.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub(super) fn number(&mut self, value: u32) {
        self.align(4);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A string or an object path.
    pub(super) fn text(&mut self, text: &str) {
        self.data(text.as_bytes());
        self.bytes.push(0);
    }

    /// An array of bytes.
    pub(super) fn data(&mut self, data: &[u8]) {
        self.number(u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.bytes.extend(data);
    }

    pub(super) fn signature(&mut self, signature: &str) {
        self.bytes.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        self.bytes.extend(signature.bytes());
        self.bytes.push(0);
    }

    /// An array whose items are aligned to `to` bytes.
    pub(super) fn list(&mut self, to: usize, items: impl FnOnce(&mut Writer)) {
        self.number(0);
        let length_at = self.bytes.len() - 4;
        self.align(to);
        let start = self.bytes.len();
        items(self);
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// A dictionary from text to text.
    pub(super) fn pairs(&mut self, pairs: &[(&str, &str)]) {
        self.list(8, |out| {
            for (name, value) in pairs {
                out.align(8);
                out.text(name);
                out.text(value);
            }
        });
    }

    fn field(&mut self, code: u8, kind: &str) {
        self.align(8);
        self.bytes.push(code);
        self.signature(kind);
    }
}

/// Reads values one after another.
#[derive(Debug)]
pub(super) struct WireReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> WireReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> WireReader<'a> {
        WireReader { bytes, at: 0 }
    }

    pub(super) fn align(&mut self, to: usize) -> Option<()> {
        self.at = self.at.checked_next_multiple_of(to)?;
        (self.at <= self.bytes.len()).then_some(())
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.align(4)?;
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// A boolean.
    pub(super) fn flag(&mut self) -> Option<bool> {
        Some(self.number()? != 0)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let text = String::from_utf8(self.data()?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    pub(super) fn data(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }

    pub(super) fn signature(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        let text = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    /// An array of texts or object paths.
    pub(super) fn texts(&mut self) -> Option<Vec<String>> {
        let length = self.number()? as usize;
        let end = self.at.checked_add(length)?;
        let mut texts = Vec::new();
        while self.at < end {
            texts.push(self.text()?);
        }
        (self.at == end).then_some(texts)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CALL: Call<'_> = Call { to: "a.b", path: "/c", interface: "d.e", member: "F", signature: "a{ss}" };

    #[test]
    fn what_is_written_says_its_own_length_and_is_read_back() {
        let mut body = Writer::default();
        body.pairs(&[("name", "value"), ("x", "")]);
        let bytes = write(&CALL, 7, &body.bytes);
        let fixed: [u8; FIXED] = bytes[..FIXED].try_into().unwrap();
        assert_eq!(length(&fixed), Some(bytes.len()));
        let message = read(&bytes).unwrap();
        assert_eq!((message.path.as_str(), message.member.as_str(), message.kind), ("/c", "F", MessageKind::Other));
        assert_eq!(message.body, body.bytes);
    }

    #[test]
    fn a_message_that_is_too_long_or_of_another_order_is_none() {
        let mut fixed = [0; FIXED];
        fixed[..4].copy_from_slice(&[b'l', 2, 0, 1]);
        assert_eq!(length(&fixed), Some(FIXED));
        fixed[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(length(&fixed), None);
        assert_eq!(length(&[b'B'; FIXED]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let mut reader = WireReader::new(&bytes);
            let _ = (reader.texts(), reader.data().is_some(), reader.signature(), reader.flag());
        }

        #[test]
        fn no_damage_to_a_message_makes_the_reader_panic(at in 0..200usize, byte in any::<u8>()) {
            let mut bytes = write(&CALL, 7, b"body");
            let length = bytes.len();
            bytes[at % length] = byte;
            let _ = read(&bytes);
        }
    }
}
