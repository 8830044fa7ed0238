//! One glob: parses it into words, expands its braces, and matches it segment by segment.

use super::PatternProblem;

/// The deepest nesting of braces.
const DEEPEST: usize = 16;

/// The remaining budget for the patterns of one hook.
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobBudget {
    pub(super) globs: usize,
    /// The words of all globs together.
    pub(super) words: usize,
}

/// A glob without braces.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Glob {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq)]
enum Segment {
    /// `**`: any number of segments.
    Deep,
    /// One segment of this shape.
    Shape(Vec<Word>),
}

/// The smallest part of a glob.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Char(char),
    /// `?`
    One,
    /// `*`
    Star,
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    Separator,
    Open(usize),
    Comma,
    Close,
}

/// The alternatives of a pattern, within the budget. `skipped` is the number of characters before it, for columns.
pub(super) fn read(text: &str, skipped: usize, budget: &mut GlobBudget) -> Result<Vec<Glob>, PatternProblem> {
    let words = GlobReader { chars: text.chars().collect(), at: 0, skipped }.words()?;
    let branches = Expansion { words: words.into_iter(), budget: *budget }.branches(None, 0)?;
    budget.globs -= branches.len();
    budget.words -= count(&branches);
    branches.iter().map(|words| glob(words)).collect()
}

fn glob(words: &[Word]) -> Result<Glob, PatternProblem> {
    let mut segments: Vec<Segment> = words.split(|word| *word == Word::Separator).map(segment).collect();
    if segments.contains(&Segment::Shape(vec![Word::Char('.'), Word::Char('.')])) {
        return Err(PatternProblem::Parent);
    }
    // A trailing `/` means everything below, and everything below has a name.
    if segments.len() > 1 && segments.last() == Some(&Segment::Shape(Vec::new())) {
        segments.pop();
        segments.push(Segment::Deep);
    }
    if segments.last() == Some(&Segment::Deep) {
        segments.push(Segment::Shape(vec![Word::Star]));
    }
    Ok(Glob { segments })
}

fn segment(words: &[Word]) -> Segment {
    if words == [Word::Star, Word::Star] { Segment::Deep } else { Segment::Shape(words.to_vec()) }
}

impl Glob {
    /// Whether a path matches. After a `**`, the shortest match is as good as any other, so only the last `**` is ever
    /// tried again.
    pub(super) fn matches(&self, path: &[char]) -> bool {
        let parts: Vec<&[char]> = path.split(|c| *c == '/').collect();
        let fits = |segment: &Segment, part: &&[char]| match segment {
            Segment::Deep => false,
            Segment::Shape(words) => wildcard(words, part, |word| *word == Word::Star, |word, c| word.fits(*c)),
        };
        wildcard(&self.segments, &parts, |segment| *segment == Segment::Deep, fits)
    }
}

impl Glob {
    /// A matching path, as short as possible.
    pub(super) fn example(&self) -> String {
        let shapes = self.segments.iter().filter_map(|segment| match segment {
            Segment::Deep => None,
            Segment::Shape(words) => Some(words.iter().map(Word::example).collect::<String>()),
        });
        shapes.collect::<Vec<_>>().join("/")
    }
}

impl Word {
    /// Characters that this word matches; empty if a set matches no usual character.
    fn example(&self) -> String {
        match self {
            Self::Char(own) => own.to_string(),
            Self::Star => "sample".to_owned(),
            Self::Set { negated: false, ranges } => ranges.first().map(|(low, _)| *low).into_iter().collect(),
            _ => ('a'..='z').chain('0'..='9').find(|c| self.fits(*c)).into_iter().collect(),
        }
    }

    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One => true,
            Self::Set { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
            Self::Star | Self::Separator | Self::Open(_) | Self::Comma | Self::Close => false,
        }
    }
}

/// Whether a text fits a pattern in which `*` means any characters and nothing else is special.
pub(super) fn stars(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    let [pattern, text] = [pattern, text].map(|text| text.chars().collect::<Vec<_>>());
    wildcard(&pattern, &text, |letter| *letter == '*', |own, letter| own == letter)
}

/// Whether a list of items fits a pattern in which some elements match any number of items. Takes at most as many steps
/// as the product of their lengths.
pub fn wildcard<P, T>(pattern: &[P], items: &[T], any: impl Fn(&P) -> bool, fits: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut i) = (0, 0);
    // The last wildcard, and the first item that it has not matched yet.
    let mut last = None;
    while let Some(item) = items.get(i) {
        match pattern.get(p) {
            Some(element) if any(element) => {
                last = Some((p, i));
                p += 1;
                continue;
            }
            Some(element) if fits(element, item) => {
                p += 1;
                i += 1;
                continue;
            }
            _ => {}
        }
        let Some((wild, swallowed)) = last else { return false };
        last = Some((wild, swallowed + 1));
        p = wild + 1;
        i = swallowed + 1;
    }
    pattern.get(p..).unwrap_or_default().iter().all(any)
}

/// Expands braces.
struct Expansion {
    words: std::vec::IntoIter<Word>,
    budget: GlobBudget,
}

impl Expansion {
    /// All ways to read the words up to the end of this group, or of the pattern.
    fn branches(&mut self, opened: Option<usize>, depth: usize) -> Result<Vec<Vec<Word>>, PatternProblem> {
        let mut done = Vec::new();
        let mut current = vec![Vec::new()];
        while let Some(word) = self.words.next() {
            match (word, opened) {
                (Word::Open(_), _) if depth >= DEEPEST => return Err(PatternProblem::TooMany),
                (Word::Open(column), _) => {
                    let inner = self.branches(Some(column), depth + 1)?;
                    current = self.product(&current, &inner)?;
                }
                (Word::Comma, Some(_)) => done.append(&mut std::mem::replace(&mut current, vec![Vec::new()])),
                (Word::Close, Some(_)) => {
                    done.append(&mut current);
                    return self.bounded(done);
                }
                (Word::Comma, None) => append(&mut current, &Word::Char(',')),
                (Word::Close, None) => append(&mut current, &Word::Char('}')),
                (word, _) => append(&mut current, &word),
            }
        }
        match opened {
            Some(column) => Err(PatternProblem::Unclosed { sign: '{', column }),
            None => self.bounded(current),
        }
    }

    fn product(&self, heads: &[Vec<Word>], tails: &[Vec<Word>]) -> Result<Vec<Vec<Word>>, PatternProblem> {
        if heads.len().saturating_mul(tails.len()) > self.budget.globs {
            return Err(PatternProblem::TooMany);
        }
        let joined = heads.iter().flat_map(|head| tails.iter().map(move |tail| [head.as_slice(), tail].concat()));
        self.bounded(joined.collect())
    }

    fn bounded(&self, branches: Vec<Vec<Word>>) -> Result<Vec<Vec<Word>>, PatternProblem> {
        let fits = branches.len() <= self.budget.globs && count(&branches) <= self.budget.words;
        if fits { Ok(branches) } else { Err(PatternProblem::TooMany) }
    }
}

fn count(branches: &[Vec<Word>]) -> usize {
    branches.iter().map(Vec::len).sum()
}

fn append(branches: &mut [Vec<Word>], word: &Word) {
    for branch in branches {
        branch.push(word.clone());
    }
}

/// Parses a pattern into words.
struct GlobReader {
    chars: Vec<char>,
    at: usize,
    skipped: usize,
}

impl GlobReader {
    fn words(mut self) -> Result<Vec<Word>, PatternProblem> {
        let mut words = Vec::new();
        while let Some(c) = self.next() {
            words.push(match c {
                '*' => Word::Star,
                '?' => Word::One,
                '/' => Word::Separator,
                '{' => Word::Open(self.column()),
                ',' => Word::Comma,
                '}' => Word::Close,
                '[' => self.set()?,
                '\\' => Word::Char(self.next().ok_or(PatternProblem::Backslash)?),
                other => Word::Char(other),
            });
        }
        Ok(words)
    }

    /// Reads the inside of `[…]`; a `]` in the first place belongs to the set.
    fn set(&mut self) -> Result<Word, PatternProblem> {
        let column = self.column();
        let unclosed = || PatternProblem::Unclosed { sign: '[', column };
        let negated = matches!(self.peek(), Some('!' | '^'));
        self.at += usize::from(negated);
        let mut ranges = Vec::new();
        loop {
            let from = match self.next().ok_or_else(unclosed)? {
                ']' if !ranges.is_empty() => return Ok(Word::Set { negated, ranges }),
                '\\' => self.next().ok_or_else(unclosed)?,
                other => other,
            };
            let more = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|next| *next != ']');
            let to = if more { self.range_end().ok_or_else(unclosed)? } else { from };
            if from > to {
                return Err(PatternProblem::Backwards { from, to, column });
            }
            ranges.push((from, to));
        }
    }

    fn range_end(&mut self) -> Option<char> {
        self.at += 1;
        match self.next()? {
            '\\' => self.next(),
            other => Some(other),
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// The column of the character that was read last.
    fn column(&self) -> usize {
        self.skipped + self.at
    }
}
