//! Hides secrets: known values in their usual encodings, tokens of well-known shape, and the login part of URLs.
//!
//! Every occurrence counts, also one that overlaps another: the bytes of overlapping occurrences together become one
//! `[redacted:NAME]`. A text that comes in pieces gives the same result as the whole text.
//!
//! It does not find values that are split by other text, compressed, or encoded twice (except JSON in JSON). Nor does
//! it find values that were changed from small to capital letters, or the first half of a value whose second half was
//! cut off before.

use std::borrow::Cow;
use std::ops::Range;

mod assignments;
mod forms;
mod hidden;
mod names;
mod shapes;

pub use assignments::hide_assignments;
pub use hidden::Hidden;
pub use names::looks_secret;
use shapes::{LOOK_BEHIND, Shape, Tail};

/// Holds the secrets to hide.
///
/// ```
/// use ollm_store::Redactor;
/// let redactor = Redactor::new([("DB_PASSWORD", "hunter2-hunter2")]);
/// assert_eq!(redactor.redact_str("pw=hunter2-hunter2;"), "pw=[redacted:DB_PASSWORD];");
/// ```
pub struct Redactor {
    /// Sorted by bytes, without duplicates.
    needles: Vec<Needle>,
    names: Vec<String>,
    /// One bit for each pair of bytes that some needle or shape begins with.
    starts: Vec<u64>,
}

/// One form of one secret.
struct Needle {
    bytes: Vec<u8>,
    /// Whether line breaks may occur inside.
    wraps: bool,
    name: usize,
}

impl Default for Redactor {
    /// Hides well-known token shapes only.
    fn default() -> Self {
        Self::new(std::iter::empty::<(String, String)>())
    }
}

impl std::fmt::Debug for Redactor {
    /// Never shows the values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Shorter values are not hidden: they occur by chance, and hiding them would damage the text.
    pub const SHORTEST: usize = 6;

    /// Hides these values wherever they appear: plain, escaped for JSON or URLs, in base64 or hexadecimal.
    ///
    /// White space around a value is ignored, and so are values of fewer than [`Redactor::SHORTEST`] bytes. The
    /// password inside a URL (`scheme://user:password@host`) is also hidden separately.
    pub fn new<N, V>(secrets: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: AsRef<[u8]>,
    {
        let mut redactor = Self { needles: Vec::new(), names: Vec::new(), starts: vec![0; 1024] };
        for (name, value) in secrets {
            redactor.add(name.into(), value.as_ref().trim_ascii());
        }
        redactor.needles.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        redactor.needles.dedup_by(|later, first| later.bytes == first.bytes);
        redactor.mark_starts();
        redactor
    }

    /// Hides the secrets in a whole text of any bytes.
    pub fn redact<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut scan = Scan::default();
        let mut out = Vec::new();
        scan.run(self, text, End::Here, &mut out);
        if out.is_empty() && scan.region.is_none() {
            return Cow::Borrowed(text);
        }
        scan.close(self, text, &mut out);
        Cow::Owned(out)
    }

    /// Hides the secrets in a text.
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // A hidden secret that is not UTF-8 may have included half a character.
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// Hides the secrets in a text that comes in pieces.
    pub fn stream(&self) -> Stream<'_> {
        Stream { redactor: self, held: Vec::new(), scan: Scan::default() }
    }

    fn add(&mut self, name: String, value: &[u8]) {
        let mut known = false;
        for value in [Some(value), forms::password_of(value)].into_iter().flatten() {
            if value.len() >= Self::SHORTEST {
                known = true;
                let name = self.names.len();
                let needles = forms::of(value).into_iter();
                self.needles.extend(needles.map(|(bytes, wraps)| Needle { bytes, wraps, name }));
            }
        }
        if known {
            self.names.push(name);
        }
    }

    fn mark_starts(&mut self) {
        let needles = self.needles.iter().filter_map(|needle| needle.bytes.first_chunk().copied());
        for [first, second] in needles.chain(shapes::starts()) {
            let (word, bit) = place(first, second);
            if let Some(word) = self.starts.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn may_start(&self, hay: &[u8], at: usize) -> bool {
        match hay.get(at..) {
            Some(&[first, second, ..]) => {
                let (word, bit) = place(first, second);
                self.starts.get(word).is_some_and(|word| word & bit != 0) || shapes::may_follow(hay, at)
            }
            _ => true,
        }
    }

    /// What begins at a position; `Err` if more text is needed to decide.
    fn probe(&self, hay: &[u8], at: usize, end: End) -> Result<Option<Hit>, NeedsMore> {
        let named = self.probe_needles(hay.get(at..).unwrap_or_default(), end)?;
        let named = named.map(|(length, name)| (at + length, name));
        let shapes = shapes::probe(hay, at, end)?;
        if named.is_none() && shapes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Hit { named, shapes }))
    }

    fn probe_needles(&self, text: &[u8], end: End) -> Result<Option<(usize, usize)>, NeedsMore> {
        let [first, second, ..] = *text else {
            return end.or_more().map(|()| None);
        };
        let mut longest: Option<(usize, usize)> = None;
        for needle in self.needles.get(self.beginning_with([first, second])).unwrap_or_default() {
            if let Some(length) = needle.length_in(text, end)?
                && longest.is_none_or(|(known, _)| known < length)
            {
                longest = Some((length, needle.name));
            }
        }
        Ok(longest)
    }

    fn beginning_with(&self, start: [u8; 2]) -> Range<usize> {
        let head = |needle: &Needle| needle.bytes.first_chunk::<2>().copied();
        let from = self.needles.partition_point(|needle| head(needle) < Some(start));
        let to = self.needles.partition_point(|needle| head(needle) <= Some(start));
        from..to
    }

    fn write_label(&self, label: Label, out: &mut Vec<u8>) {
        let name = match label {
            Label::Named(index) => self.names.get(index).map_or("secret", String::as_str),
            Label::Shape(name) => name,
        };
        for part in ["[redacted:", name, "]"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Hides the secrets in a text that comes in pieces, also secrets that cross the boundary of two pieces.
///
/// ```
/// let redactor = ollm_store::Redactor::new([("PIN", "1234567890")]);
/// let mut out = Vec::new();
/// let mut stream = redactor.stream();
/// stream.push(b"my 12345", &mut out);
/// stream.push(b"67890!", &mut out);
/// stream.finish(&mut out);
/// assert_eq!(out, b"my [redacted:PIN]!");
/// ```
#[derive(Debug)]
pub struct Stream<'a> {
    redactor: &'a Redactor,
    /// Text that is not decided yet, and a little text before it.
    held: Vec<u8>,
    scan: Scan,
}

impl Stream<'_> {
    /// Takes the next piece, and appends to `out` the text that is decided by now.
    ///
    /// It holds back about as much as the longest secret (or two kilobytes, for tokens).
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(chunk);
        self.scan.run(self.redactor, &self.held, End::Open, out);
        self.scan.flush(&self.held, out);
        let gone = self.scan.at.saturating_sub(LOOK_BEHIND);
        self.held.drain(..gone);
        self.scan.shift(gone);
    }

    /// Decides and appends the rest.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.scan.run(self.redactor, &self.held, End::Here, out);
        self.scan.close(self.redactor, &self.held, out);
    }
}

/// Whether the text ends here, or more may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Here,
    Open,
}

/// More text is needed to decide.
#[derive(Debug)]
struct NeedsMore;

impl End {
    fn or_more(self) -> Result<(), NeedsMore> {
        match self {
            End::Here => Ok(()),
            End::Open => Err(NeedsMore),
        }
    }
}

/// What begins at one position.
struct Hit {
    /// Where the longest known value ends, and its name.
    named: Option<(usize, usize)>,
    shapes: Vec<Shape>,
}

#[derive(Debug, Clone, Copy)]
enum Label {
    Named(usize),
    Shape(&'static str),
}

/// Secret bytes that overlap or touch.
#[derive(Debug)]
struct Region {
    label: Label,
    end: usize,
    /// Open-ended tokens: each continues while its kind of characters does. The number is the position where the open
    /// end begins.
    tails: Vec<(usize, Tail)>,
}

impl Region {
    fn join(&mut self, hit: Hit) {
        if let Some((end, name)) = hit.named {
            self.end = self.end.max(end);
            if let Label::Shape(_) = self.label {
                self.label = Label::Named(name);
            }
        }
        for shape in hit.shapes {
            self.end = self.end.max(shape.end);
            if let Some(tail) = shape.tail {
                // Of two equal tails the later one lasts longer. Keeping both would let a hostile text pile them up.
                self.tails.retain(|(_, known)| !known.is_like(tail));
                self.tails.push((shape.end, tail));
            }
        }
    }

    /// Whether the byte at a position still belongs to the region; called once for each position in turn.
    fn covers(&mut self, hay: &[u8], at: usize) -> bool {
        let end = self.end;
        let mut goes_on = at < end;
        self.tails.retain_mut(|(from, tail)| {
            if at < *from {
                return true;
            }
            let taken = tail.take(hay, at);
            goes_on |= taken;
            taken
        });
        goes_on
    }
}

/// The position in a text.
#[derive(Debug, Default)]
struct Scan {
    at: usize,
    /// Everything before this position is in `out`.
    flushed: usize,
    region: Option<Region>,
}

impl Scan {
    fn run(&mut self, redactor: &Redactor, hay: &[u8], end: End, out: &mut Vec<u8>) {
        while self.at < hay.len() {
            if self.region.is_none() {
                let clean = (self.at..hay.len()).find(|&at| redactor.may_start(hay, at));
                self.at = clean.unwrap_or(hay.len());
            }
            let Ok(hit) = redactor.probe(hay, self.at, end) else {
                return;
            };
            self.step(redactor, hay, hit, out);
        }
    }

    fn step(&mut self, redactor: &Redactor, hay: &[u8], hit: Option<Hit>, out: &mut Vec<u8>) {
        if let Some(region) = &mut self.region
            && !region.covers(hay, self.at)
        {
            redactor.write_label(region.label, out);
            self.region = None;
            self.flushed = self.at;
        }
        if let Some(hit) = hit {
            match &mut self.region {
                Some(region) => region.join(hit),
                None => self.open(hay, hit, out),
            }
        }
        self.at = (self.at + 1).min(hay.len());
    }

    fn open(&mut self, hay: &[u8], hit: Hit, out: &mut Vec<u8>) {
        self.flush(hay, out);
        let label = match (hit.named, hit.shapes.first()) {
            (Some((_, name)), _) => Label::Named(name),
            (None, shape) => Label::Shape(shape.map_or("secret", |shape| shape.label)),
        };
        let mut region = Region { label, end: self.at, tails: Vec::new() };
        region.join(hit);
        self.region = Some(region);
    }

    /// Appends the clean text before the present position to `out`.
    fn flush(&mut self, hay: &[u8], out: &mut Vec<u8>) {
        if self.region.is_none() {
            out.extend_from_slice(hay.get(self.flushed..self.at).unwrap_or_default());
            self.flushed = self.at;
        }
    }

    fn close(&mut self, redactor: &Redactor, hay: &[u8], out: &mut Vec<u8>) {
        match self.region.take() {
            Some(region) => redactor.write_label(region.label, out),
            None => self.flush(hay, out),
        }
    }

    /// Forgets the first bytes of the text.
    fn shift(&mut self, gone: usize) {
        self.at = self.at.saturating_sub(gone);
        self.flushed = self.flushed.saturating_sub(gone);
        if let Some(region) = &mut self.region {
            region.end = region.end.saturating_sub(gone);
            for (from, _) in &mut region.tails {
                *from = from.saturating_sub(gone);
            }
        }
    }
}

impl Needle {
    /// The length of this needle at the beginning of a text, if it occurs there.
    fn length_in(&self, text: &[u8], end: End) -> Result<Option<usize>, NeedsMore> {
        if self.wraps {
            return self.wrapped_length_in(text, end);
        }
        if text.starts_with(&self.bytes) {
            return Ok(Some(self.bytes.len()));
        }
        if self.bytes.starts_with(text) {
            end.or_more()?;
        }
        Ok(None)
    }

    fn wrapped_length_in(&self, text: &[u8], end: End) -> Result<Option<usize>, NeedsMore> {
        let mut at = 0;
        for (index, byte) in self.bytes.iter().enumerate() {
            if index > 0 {
                at += line_break(text.get(at..).unwrap_or_default(), end)?;
            }
            match text.get(at) {
                Some(found) if found == byte => at += 1,
                Some(_) => return Ok(None),
                None => return end.or_more().map(|()| None),
            }
        }
        Ok(Some(at))
    }
}

/// The length of one line break at the beginning of a text, plain or escaped.
fn line_break(text: &[u8], end: End) -> Result<usize, NeedsMore> {
    const BREAKS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
    for line_break in BREAKS {
        if text.starts_with(line_break) {
            return Ok(line_break.len());
        }
        if !text.is_empty() && line_break.starts_with(text) {
            end.or_more()?;
        }
    }
    Ok(0)
}

fn place(first: u8, second: u8) -> (usize, u64) {
    let pair = usize::from(first) << 8 | usize::from(second);
    (pair / 64, 1 << (pair % 64))
}

#[cfg(test)]
mod tests;
