//! Recognises tokens by their shape alone.
//!
//! Scanned by hand: a shape is decided after at most a few dozen bytes (two kilobytes for a JSON Web Token). The rest
//! of a long token is then read byte by byte.

use super::{End, NeedsMore};

/// How many bytes before a position are inspected.
pub(super) const LOOK_BEHIND: usize = 32;

/// A token that begins at the inspected position.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) label: &'static str,
    /// The end of the certain part; the tail may continue from here.
    pub(super) end: usize,
    pub(super) tail: Option<Tail>,
}

/// How a token continues after its certain part.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tail {
    While(Class),
    /// Inside a private key, before its last line.
    Key,
    /// In the last line of a private key, with the number of bytes since `-----END `.
    LastLine(usize),
    Over,
}

/// A kind of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits.
    Plain,
    /// Also underscores.
    Word,
    /// Also dashes.
    Dashed,
    /// Also dots.
    Dotted,
    /// Also the other characters that HTTP allows in a token.
    Header,
    Capital,
}

struct Prefix {
    text: &'static [u8],
    label: &'static str,
    class: Class,
    length: Length,
}

enum Length {
    AtLeast(usize),
    Exactly(usize),
}

const fn open(text: &'static [u8], label: &'static str, class: Class, min: usize) -> Prefix {
    Prefix { text, label, class, length: Length::AtLeast(min) }
}

const fn fixed(text: &'static [u8], label: &'static str, class: Class, length: usize) -> Prefix {
    Prefix { text, label, class, length: Length::Exactly(length) }
}

const PREFIXES: [Prefix; 23] = [
    open(b"sk-", "api-key", Class::Dashed, 20),
    open(b"sk_live_", "api-key", Class::Word, 16),
    open(b"sk_test_", "api-key", Class::Word, 16),
    open(b"rk_live_", "api-key", Class::Word, 16),
    open(b"ghp_", "github-token", Class::Plain, 20),
    open(b"gho_", "github-token", Class::Plain, 20),
    open(b"ghu_", "github-token", Class::Plain, 20),
    open(b"ghs_", "github-token", Class::Plain, 20),
    open(b"ghr_", "github-token", Class::Plain, 20),
    open(b"github_pat_", "github-token", Class::Word, 20),
    open(b"glpat-", "gitlab-token", Class::Dashed, 20),
    open(b"npm_", "npm-token", Class::Plain, 36),
    open(b"pypi-", "pypi-token", Class::Dashed, 50),
    open(b"hf_", "api-key", Class::Plain, 30),
    fixed(b"AKIA", "aws-key", Class::Capital, 16),
    fixed(b"ASIA", "aws-key", Class::Capital, 16),
    fixed(b"AIza", "api-key", Class::Dashed, 35),
    open(b"xoxa-", "slack-token", Class::Dashed, 10),
    open(b"xoxb-", "slack-token", Class::Dashed, 10),
    open(b"xoxe-", "slack-token", Class::Dashed, 10),
    open(b"xoxp-", "slack-token", Class::Dashed, 10),
    open(b"xoxr-", "slack-token", Class::Dashed, 10),
    open(b"xoxs-", "slack-token", Class::Dashed, 10),
];

const KEY_BEGIN: &[u8] = b"-----BEGIN ";
const KEY_END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
const WEB_TOKEN: &[u8] = b"eyJ";

/// A random-looking word after one of these is a token.
const WORDS: [(&[u8], &str); 2] = [(b"bearer ", "bearer-token"), (b"authorization: basic ", "basic-auth")];

/// The first two bytes of every shape.
pub(super) fn starts() -> impl Iterator<Item = [u8; 2]> {
    let all = PREFIXES.iter().map(|prefix| prefix.text).chain([KEY_BEGIN, WEB_TOKEN]);
    all.filter_map(|text| text.first_chunk().copied())
}

/// A quick test: whether a position may follow an announcement of a secret, that is one of the words, or the scheme of
/// a URL.
pub(super) fn may_follow(hay: &[u8], at: usize) -> bool {
    may_follow_word(hay, at) || follows_scheme(hay, at)
}

fn may_follow_word(hay: &[u8], at: usize) -> bool {
    at >= 7 && matches!(hay.get(at - 2..at), Some([b'r' | b'R' | b'c' | b'C', b' ']))
}

/// After `://`, also in its escaped JSON form.
fn follows_scheme(hay: &[u8], at: usize) -> bool {
    let before = hay.get(..at).unwrap_or_default();
    before.ends_with(b"://") || before.ends_with(br":\/\/")
}

/// All shapes that begin at a position.
pub(super) fn probe(hay: &[u8], at: usize, end: End) -> Result<Vec<Shape>, NeedsMore> {
    let mut found = Vec::new();
    if at_edge(hay, at) {
        for prefix in &PREFIXES {
            found.extend(prefix.probe(hay, at, end)?);
        }
        found.extend(probe_web_token(hay, at, end)?);
    }
    found.extend(probe_key(hay, at, end)?);
    found.extend(probe_after_word(hay, at, end)?);
    found.extend(probe_login(hay, at, end)?);
    Ok(found)
}

impl Prefix {
    fn probe(&self, hay: &[u8], at: usize, end: End) -> Result<Option<Shape>, NeedsMore> {
        if !text_at(hay, at, self.text, end)? {
            return Ok(None);
        }
        let from = at + self.text.len();
        match self.length {
            Length::Exactly(length) => {
                let token = self.class.run(hay, from, length + 1, end)?;
                let shape = Shape { label: self.label, end: from + length, tail: None };
                Ok((token.len() == length).then_some(shape))
            }
            Length::AtLeast(min) => {
                let token = self.class.run(hay, from, min.max(SAMPLE), end)?;
                let tail = Some(Tail::While(self.class));
                let shape = Shape { label: self.label, end: from + token.len(), tail };
                Ok((token.len() >= min && looks_random(token)).then_some(shape))
            }
        }
    }
}

/// How many bytes of a token are inspected to decide whether it is one.
const SAMPLE: usize = 64;

/// Whether a token has a digit or a capital. Words joined by dashes have neither; keys without either hardly exist.
fn looks_random(token: &[u8]) -> bool {
    token.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// A JSON Web Token: `eyJ` (the encoding of `{"`), a dot, and at least a little more.
fn probe_web_token(hay: &[u8], at: usize, end: End) -> Result<Option<Shape>, NeedsMore> {
    const LONGEST_HEADER: usize = 2048;
    const SHORTEST_PART: usize = 8;
    // Otherwise a sequence of `eyJ-eyJ-…` would be read to its end from every position.
    let inside = at > 0 && hay.get(at - 1).is_some_and(|&byte| Class::Dashed.has(byte));
    if (inside && !after_escape(hay, at)) || !text_at(hay, at, WEB_TOKEN, end)? {
        return Ok(None);
    }
    let header = Class::Dashed.run(hay, at, LONGEST_HEADER, end)?;
    let dot = at + header.len();
    if header.len() < WEB_TOKEN.len() + SHORTEST_PART || !text_at(hay, dot, b".", end)? {
        return Ok(None);
    }
    let payload = Class::Dashed.run(hay, dot + 1, SHORTEST_PART, end)?;
    let stop = dot + 1 + payload.len();
    let tail = Some(Tail::While(Class::Dotted));
    let shape = Shape { label: "web-token", end: stop, tail };
    Ok((payload.len() == SHORTEST_PART).then_some(shape))
}

/// A private key: `-----BEGIN … PRIVATE KEY-----` and its content.
fn probe_key(hay: &[u8], at: usize, end: End) -> Result<Option<Shape>, NeedsMore> {
    const LONGEST_KIND: usize = 48;
    if !text_at(hay, at, KEY_BEGIN, end)? {
        return Ok(None);
    }
    let from = at + KEY_BEGIN.len();
    let kind = run(hay, from, LONGEST_KIND, end, is_key_kind)?;
    let stop = from + kind.len();
    let private = kind.ends_with(b"PRIVATE KEY") || kind.ends_with(b"PRIVATE KEY BLOCK");
    if !private || !text_at(hay, stop, DASHES, end)? {
        return Ok(None);
    }
    let stop = stop + DASHES.len();
    Ok(Some(Shape { label: "private-key", end: stop, tail: Some(Tail::Key) }))
}

fn probe_after_word(hay: &[u8], at: usize, end: End) -> Result<Option<Shape>, NeedsMore> {
    const SHORTEST: usize = 16;
    if !may_follow_word(hay, at) {
        return Ok(None);
    }
    for (word, label) in WORDS {
        if follows(hay, at, word) {
            let token = Class::Header.run(hay, at, SAMPLE, end)?;
            let tail = Some(Tail::While(Class::Header));
            let shape = Shape { label, end: at + token.len(), tail };
            return Ok((token.len() >= SHORTEST && looks_random(token)).then_some(shape));
        }
    }
    Ok(None)
}

/// `user:password` of a URL, up to the last `@` before the path, because a password may contain one.
fn probe_login(hay: &[u8], at: usize, end: End) -> Result<Option<Shape>, NeedsMore> {
    const LONGEST_AUTHORITY: usize = 512;
    if !follows_scheme(hay, at) {
        return Ok(None);
    }
    let authority = run(hay, at, LONGEST_AUTHORITY, end, is_authority)?;
    let login = authority.iter().rposition(|&byte| byte == b'@').and_then(|at| authority.get(..at));
    let login = login.filter(|login| login.contains(&b':') && !login.ends_with(b":"));
    Ok(login.map(|login| Shape { label: "url-login", end: at + login.len(), tail: None }))
}

/// Whether a word, in any case, ends right before a position.
fn follows(hay: &[u8], at: usize, word: &[u8]) -> bool {
    let before = at.checked_sub(word.len()).and_then(|start| hay.get(start..at));
    before.is_some_and(|before| before.eq_ignore_ascii_case(word))
}

impl Tail {
    pub(super) fn is_like(self, other: Self) -> bool {
        match (self, other) {
            (Tail::While(one), Tail::While(another)) => one == another,
            (Tail::While(_), _) | (_, Tail::While(_)) => false,
            _ => true,
        }
    }

    /// Whether the byte at a position belongs to the token.
    pub(super) fn take(&mut self, hay: &[u8], at: usize) -> bool {
        let Some(&byte) = hay.get(at) else {
            return false;
        };
        let seen = hay.get(..=at).unwrap_or_default();
        match *self {
            Tail::While(class) => class.has(byte),
            Tail::Key if seen.ends_with(KEY_END) => {
                *self = Tail::LastLine(0);
                true
            }
            Tail::Key => is_key_body(byte),
            Tail::LastLine(length) if length >= DASHES.len() && seen.ends_with(DASHES) => {
                *self = Tail::Over;
                true
            }
            Tail::LastLine(length) => {
                *self = Tail::LastLine(length + 1);
                length < SAMPLE && (is_key_kind(byte) || byte == b'-')
            }
            Tail::Over => false,
        }
    }
}

impl Class {
    fn has(self, byte: u8) -> bool {
        let more: &[u8] = match self {
            Class::Capital => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Class::Plain => b"",
            Class::Word => b"_",
            Class::Dashed => b"_-",
            Class::Dotted => b"_-.",
            Class::Header => b"_-.~+/=",
        };
        byte.is_ascii_alphanumeric() || more.contains(&byte)
    }

    fn run(self, hay: &[u8], from: usize, max: usize, end: End) -> Result<&[u8], NeedsMore> {
        run(hay, from, max, end, |byte| self.has(byte))
    }
}

/// The bytes of one kind from a position on, at most `max` of them.
fn run(hay: &[u8], from: usize, max: usize, end: End, has: impl Fn(u8) -> bool) -> Result<&[u8], NeedsMore> {
    let rest = hay.get(from..).unwrap_or_default();
    let window = rest.get(..max).unwrap_or(rest);
    match window.iter().position(|&byte| !has(byte)) {
        Some(length) => Ok(window.get(..length).unwrap_or_default()),
        None if window.len() == max => Ok(window),
        None => end.or_more().map(|()| window),
    }
}

fn text_at(hay: &[u8], at: usize, text: &[u8], end: End) -> Result<bool, NeedsMore> {
    let rest = hay.get(at..).unwrap_or_default();
    if rest.starts_with(text) {
        return Ok(true);
    }
    if text.starts_with(rest) {
        end.or_more()?;
    }
    Ok(false)
}

/// Whether a token may begin here: not in the middle of a word. The end of an escape does not count as part of a word.
fn at_edge(hay: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| hay.get(index));
    before.is_none_or(|byte| !byte.is_ascii_alphanumeric()) || after_escape(hay, at)
}

/// Whether the position follows `\n` and similar escapes, `\u0022` or `%22`.
fn after_escape(hay: &[u8], at: usize) -> bool {
    let before = hay.get(..at).unwrap_or_default();
    match before {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        _ => match before.last_chunk::<6>() {
            Some([b'\\', b'u', digits @ ..]) => digits.iter().all(u8::is_ascii_hexdigit),
            _ => false,
        },
    }
}

fn is_authority(byte: u8) -> bool {
    byte > b' ' && !b"/?#\"'<>`\\".contains(&byte)
}

fn is_key_kind(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

fn is_key_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-:,\\ \r\n\t".contains(&byte)
}
