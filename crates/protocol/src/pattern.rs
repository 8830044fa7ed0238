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
//! Patterns are read in order, and the last one that matches decides. A list that begins with `!` starts out with every
//! file taken in, so that `["!*.md"]` means everything but these. Case counts. A path outside the project is looked at by
//! its base name, and by patterns without `/` only.
//!
//! Braces are written out when a pattern is read, into a bounded number of alternatives, so that matching takes at worst
//! the pattern's length times the path's for each of them.

mod glob;

pub use glob::wildcard;
use glob::{Glob, Room};

/// Longer patterns are refused, in bytes.
const LONGEST: usize = 1024;

/// How many patterns one hook may have, and how many all their braces may be written out to.
const MOST: usize = 256;

/// How long they may be together.
const WORDS: usize = 16 * 1024;

/// Longer paths are not looked at, in bytes: no system opens a file by one.
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
    /// Takes away instead of taking in.
    excludes: bool,
    /// Looks at the whole path instead of the base name.
    whole: bool,
    alternatives: Vec<Glob>,
}

/// A file pattern that cannot mean what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("file pattern `{pattern}` {problem}")]
pub struct PatternError {
    /// The pattern, shortened.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: PatternProblem,
}

/// What can be wrong with a file pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternProblem {
    /// Nothing is left to match.
    #[error("is empty; write `*` for every file")]
    Empty,
    /// A pattern of unreasonable length.
    #[error("has {0} bytes, more than {LONGEST}; write several shorter ones")]
    TooLong(usize),
    /// Too many patterns, or too many alternatives in braces.
    #[error(
        "makes too many patterns when all braces are written out: a hook has at most {MOST}, of bounded length and \
         nesting; use `*` instead of some of them"
    )]
    TooMany,
    /// An opening sign without its closing one.
    #[error("opens `{sign}` at column {column} and never closes it; write `\\{sign}` for the character itself")]
    Unclosed {
        /// The opening sign.
        sign: char,
        /// Where it stands, counted from 1 in characters.
        column: usize,
    },
    /// A set whose range runs backwards.
    #[error("has the range `{from}-{to}` at column {column}, which holds nothing; write `{to}-{from}`")]
    Backwards {
        /// The first character.
        from: char,
        /// The last character.
        to: char,
        /// Where the set begins, counted from 1 in characters.
        column: usize,
    },
    /// A backslash with nothing behind it.
    #[error("ends with a backslash; write `\\\\` for the character itself, and `/` between folders")]
    Backslash,
    /// A pattern that leads out of the project.
    #[error("holds a `..` segment, which no path from the project root has; leave it out")]
    Parent,
}

impl FilePatterns {
    /// Reads the patterns of a hook.
    pub fn parse(texts: &[String]) -> Result<FilePatterns, PatternError> {
        let mut room = Room { globs: MOST, words: WORDS };
        let patterns = texts.iter().map(|text| pattern(text, &mut room)).collect::<Result<_, _>>()?;
        Ok(FilePatterns { patterns })
    }

    /// Whether a path is taken in: relative to the project root with `/` between its parts, or absolute if it lies
    /// outside. No patterns take in nothing. A path of unreasonable length is taken in, because a hook that runs
    /// needlessly is better than a guard that does not.
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

    /// A path that is taken in, if a simple one can be made up.
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

    /// The patterns as they were written.
    pub fn text(&self) -> Vec<&str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str()).collect()
    }

    /// Whether there is no pattern at all.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}

/// Whether a name has a shape in which `*` stands for any characters, also none, and nothing else has a meaning.
///
/// ```
/// use ollm_protocol::pattern::fits_name;
/// assert!(fits_name("delete_*", "delete_file") && fits_name("*file*", "delete_file") && fits_name("[a]?", "[a]?"));
/// assert!(!fits_name("delete_*", "undelete_file"));
/// ```
pub fn fits_name(pattern: &str, name: &str) -> bool {
    glob::stars(pattern, name)
}

/// A path as [`FilePatterns::matches`] wants it: from the project root if it lies inside, else absolute. A relative path
/// starts at `cwd`. Only the names are looked at, so links are not followed.
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

/// The names of an absolute path, `.` and `..` carried out.
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

fn pattern(text: &str, room: &mut Room) -> Result<Pattern, PatternError> {
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
    let alternatives = glob::read(globbed, skipped, room).map_err(refused)?;
    let whole = rooted.is_some() || globbed.contains('/');
    Ok(Pattern { text: text.to_owned(), excludes, whole, alternatives })
}
