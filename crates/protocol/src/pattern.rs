//! File patterns of hooks (`filePatterns`): globs over the paths an event is about.
//!
//! | written | matches |
//! |---|---|
//! | `*.rs` | without `/`: the base name, at any depth |
//! | `src/*.rs`, `/build.rs`, `./build.rs` | with `/`: the path from the project root |
//! | `*`, `?` | any characters, one character, but no `/` |
//! | `docs/` | everything below that folder |
//! | `**` as a whole segment | any number of segments, none included; at the end at least one |
//! | `[a-z]`, `[!a-z]`, `[^a-z]` | one character of the set, or none of it, but no `/` |
//! | `{a,b}` | one of the alternatives, which may hold patterns and braces |
//! | `\*` | the character itself |
//! | `!*.md` | takes away what patterns before it took in |
//!
//! Patterns are read in order, and the last one that matches decides. If a list begins with `!`, it starts with every
//! file included, so `["!*.md"]` means every file but these. Case matters. A path outside the project is matched by its
//! base name, and only by patterns without `/`.
//!
//! When a pattern is read, its braces are expanded into a bounded number of alternatives. So the time of matching is at
//! most the pattern's length times the path's, for each alternative.

mod glob;

pub use glob::wildcard;
use glob::{Glob, GlobBudget};

/// The longest pattern, in bytes.
const LONGEST: usize = 1024;

/// The most patterns of one hook, and the most alternatives of all their braces together.
const MOST: usize = 256;

/// The most words of all patterns together.
const WORDS: usize = 16 * 1024;

/// The longest path that is matched, in bytes; no system opens a file by a longer one.
const LONGEST_PATH: usize = 8 * 1024;

/// The file patterns of a hook, in order.
///
/// ```
/// use ollm_protocol::FilePatterns;
///
/// let patterns = FilePatterns::parse(&["src/**/*.{rs,toml}".into(), "!*_test.rs".into()]).unwrap();
/// assert!(patterns.matches("src/a/b.rs"));
/// assert!(!patterns.matches("src/a/b_test.rs"));
/// assert!(!patterns.matches("build.rs"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FilePatterns {
    patterns: Vec<Pattern>,
}

/// One pattern of the list.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    text: String,
    /// Whether it excludes files instead of including them.
    excludes: bool,
    /// Whether it matches the whole path instead of the base name.
    whole: bool,
    alternatives: Vec<Glob>,
}

/// A file pattern without a valid meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("file pattern `{pattern}` {problem}")]
pub struct PatternError {
    /// The pattern, shortened.
    pub pattern: String,
    /// The fault of the pattern.
    pub problem: PatternProblem,
}

/// A fault of a file pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternProblem {
    /// The pattern has nothing to match.
    #[error("is empty; write `*` for every file")]
    Empty,
    /// The pattern is too long.
    #[error("has {0} bytes, more than {LONGEST}; write several shorter ones")]
    TooLong(usize),
    /// Too many patterns, or too many alternatives in braces.
    #[error(
        "makes too many patterns when all braces are written out: a hook has at most {MOST}, of bounded length and \
         nesting; use `*` instead of some of them"
    )]
    TooMany,
    /// An opening sign without a closing one.
    #[error("opens `{sign}` at column {column} and never closes it; write `\\{sign}` for the character itself")]
    Unclosed {
        /// The opening sign.
        sign: char,
        /// Its column, counted from 1 in characters.
        column: usize,
    },
    /// A range in a set that runs backwards.
    #[error("has the range `{from}-{to}` at column {column}, which holds nothing; write `{to}-{from}`")]
    Backwards {
        /// The first character.
        from: char,
        /// The last character.
        to: char,
        /// The column of the set, counted from 1 in characters.
        column: usize,
    },
    /// A backslash at the end.
    #[error("ends with a backslash; write `\\\\` for the character itself, and `/` between folders")]
    Backslash,
    /// A pattern that leads out of the project.
    #[error("holds a `..` segment, which no path from the project root has; leave it out")]
    Parent,
}

impl FilePatterns {
    /// Reads the patterns of a hook.
    pub fn parse(texts: &[String]) -> Result<FilePatterns, PatternError> {
        let mut budget = GlobBudget { globs: MOST, words: WORDS };
        let patterns = texts.iter().map(|text| pattern(text, &mut budget)).collect::<Result<_, _>>()?;
        Ok(FilePatterns { patterns })
    }

    /// Whether a path is included. The path is relative to the project root with `/` between its parts, or absolute if
    /// it lies outside. An empty list includes nothing. A path that is too long is included, because a needless run of
    /// a hook is better than a guard that does not run.
    pub fn matches(&self, path: &str) -> bool {
        if path.len() > LONGEST_PATH {
            return !self.is_empty();
        }
        let path = path.strip_prefix("./").unwrap_or(path);
        let outside = path.starts_with('/') || path.split('/').any(|part| part == "..");
        let base: Vec<char> = path.rsplit('/').next().unwrap_or(path).chars().collect();
        let whole: Vec<char> = path.chars().collect();
        let deciding = self.patterns.iter().rev().find(|pattern| {
            let subject = if pattern.whole { &whole } else { &base };
            !(pattern.whole && outside) && pattern.alternatives.iter().any(|glob| glob.matches(subject))
        });
        match deciding {
            Some(pattern) => !pattern.excludes,
            None => self.patterns.first().is_some_and(|first| first.excludes),
        }
    }

    /// An included path, if a simple one can be constructed.
    ///
    /// ```
    /// use ollm_protocol::FilePatterns;
    ///
    /// let patterns = FilePatterns::parse(&["src/**/*.{rs,toml}".into()]).unwrap();
    /// assert_eq!(patterns.example().as_deref(), Some("src/sample.rs"));
    /// ```
    pub fn example(&self) -> Option<String> {
        let shapes = self.patterns.iter().filter(|pattern| !pattern.excludes).flat_map(|pattern| &pattern.alternatives);
        let made_up = shapes.map(Glob::example).chain(["sample".to_owned(), "sample.txt".to_owned()]);
        made_up.into_iter().find(|path| self.matches(path))
    }

    /// The patterns, as written.
    pub fn text(&self) -> Vec<&str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str()).collect()
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}

/// Whether a name fits a pattern in which `*` means any characters, or none, and nothing else is special.
///
/// ```
/// use ollm_protocol::pattern::fits_name;
/// assert!(fits_name("delete_*", "delete_file") && fits_name("*file*", "delete_file") && fits_name("[a]?", "[a]?"));
/// assert!(!fits_name("delete_*", "undelete_file"));
/// ```
pub fn fits_name(pattern: &str, name: &str) -> bool {
    glob::stars(pattern, name)
}

/// A path for [`FilePatterns::matches`]: relative to the project root if it lies inside, else absolute. A relative path
/// starts at `cwd`. This only reads the names, so links are not followed.
///
/// ```
/// use ollm_protocol::from_root;
///
/// assert_eq!(from_root("../lib/./a.rs", "/project/src", "/project"), "lib/a.rs");
/// assert_eq!(from_root("/etc/hosts", "/project", "/project"), "/etc/hosts");
/// ```
pub fn from_root(path: &str, cwd: &str, root: &str) -> String {
    let path = if path.starts_with('/') { parts(path) } else { parts(&format!("{cwd}/{path}")) };
    let root = parts(root);
    match path.strip_prefix(root.as_slice()) {
        Some(inside) => inside.join("/"),
        None => format!("/{}", path.join("/")),
    }
}

/// The names in an absolute path, with `.` and `..` resolved.
fn parts(path: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            name => parts.push(name.to_owned()),
        }
    }
    parts
}

fn pattern(text: &str, budget: &mut GlobBudget) -> Result<Pattern, PatternError> {
    let refused = |problem| PatternError { pattern: text.chars().take(60).collect(), problem };
    if text.len() > LONGEST {
        return Err(refused(PatternProblem::TooLong(text.len())));
    }
    let (excludes, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let rooted = rest.strip_prefix("./").or_else(|| rest.strip_prefix('/'));
    let globbed = rooted.unwrap_or(rest);
    if globbed.is_empty() {
        return Err(refused(PatternProblem::Empty));
    }
    let skipped = text.chars().count() - globbed.chars().count();
    let alternatives = glob::read(globbed, skipped, budget).map_err(refused)?;
    let whole = rooted.is_some() || globbed.contains('/');
    Ok(Pattern { text: text.to_owned(), excludes, whole, alternatives })
}
