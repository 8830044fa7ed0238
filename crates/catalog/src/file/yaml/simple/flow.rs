//! Lists and maps in brackets, on one line: JSON without escapes, or plain words.

use super::{LONGEST_KEY, Node, is_name, quoted, scalar};

/// The list or map that a text begins with, and what follows it.
pub(super) fn read(text: &str, depth: usize) -> Option<(Node, &str)> {
    let mut flow = Flow { rest: text };
    let node = flow.value(depth)?;
    Some((node, flow.rest))
}

struct Flow<'a> {
    rest: &'a str,
}

impl<'a> Flow<'a> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        match self.rest.as_bytes().first()? {
            b'[' => self.list(depth.checked_sub(1)?),
            b'{' => self.map(depth.checked_sub(1)?),
            b'"' | b'\'' => self.quoted().map(|text| Node::Text(text.to_owned())),
            _ => scalar(self.word()),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Node> {
        let mut items = Vec::new();
        self.open();
        while !self.close(']', items.is_empty())? {
            items.push(self.value(depth)?);
        }
        Some(Node::List(items))
    }

    fn map(&mut self, depth: usize) -> Option<Node> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        self.open();
        while !self.close('}', entries.is_empty())? {
            let key = self.key().filter(|key| entries.iter().all(|(known, _)| known != key))?;
            entries.push((key.to_owned(), self.value(depth)?));
        }
        Some(Node::Map(entries))
    }

    /// A key and its colon. Behind one without quotes a blank has to follow, or the colon would belong to it.
    fn key(&mut self) -> Option<&'a str> {
        let in_quotes = self.rest.starts_with('"');
        let key = if in_quotes { self.quoted()? } else { Some(self.word()).filter(|word| is_name(word))? };
        self.rest = self.rest.strip_prefix(':')?;
        let before = self.rest.len();
        self.skip();
        (key.len() <= LONGEST_KEY && (in_quotes || self.rest.len() < before)).then_some(key)
    }

    fn open(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.skip();
    }

    /// Whether the bracket closes here; if not, a comma has to be here, unless nothing has come yet.
    fn close(&mut self, bracket: char, first: bool) -> Option<bool> {
        self.skip();
        if let Some(rest) = self.rest.strip_prefix(bracket) {
            self.rest = rest;
            return Some(true);
        }
        if !first {
            self.rest = self.rest.strip_prefix(',')?;
            self.skip();
        }
        Some(false)
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let (text, behind) = quoted(self.rest)?;
        self.rest = behind;
        Some(text)
    }

    fn word(&mut self) -> &'a str {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_./~-".contains(letter);
        let (word, behind) = self.rest.split_at(self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len()));
        self.rest = behind;
        word
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}
