//! The YAML of most configurations, read without a YAML parser: maps of plain words, texts in quotes, and lists and maps in
//! brackets, indented, one entry a line.
//!
//! A program that is started for every event meets the whole parser cold each time. What is not in this small form, or
//! might mean anything else, is left to the parser, which also explains what is wrong with it.

use crate::node::Node;

mod flow;

/// Longer texts are left to the parser.
const LONGEST: usize = 1 << 16;
/// So are deeper ones,
const DEEPEST: usize = 8;
/// those with more values,
const MOST: usize = 4096;
/// and those with longer keys.
const LONGEST_KEY: usize = 128;

/// Words that mean something else than themselves, at least to some readers of YAML.
const RESERVED: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "infinity", "nan"];
const UNITS: &[&str] = &["ms", "s", "m", "h", "KiB", "MiB", "GiB", "kB", "KB", "MB", "GB", "B"];

/// The value of a text in the small form; `None` for any other text.
pub(super) fn parse(text: &str) -> Option<Node> {
    if text.len() > LONGEST || !text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return None;
    }
    // Every value but the first follows one of these.
    if text.bytes().filter(|byte| matches!(byte, b'\n' | b',' | b':' | b'[')).count() > MOST {
        return None;
    }
    let lines: Vec<Line<'_>> = text.split('\n').filter(|line| !is_blank(line)).map(read).collect::<Option<_>>()?;
    let mut rest = lines.into_iter().peekable();
    let root = map(&mut rest, 0, DEEPEST)?;
    rest.next().is_none().then_some(root)
}

/// A line with something on it.
struct Line<'a> {
    indent: usize,
    /// The key; an item of a list has none.
    key: Option<&'a str>,
    behind: Behind,
}

/// What stands behind a key or a dash.
enum Behind {
    Nothing,
    Value(Node),
}

type Lines<'a> = std::iter::Peekable<std::vec::IntoIter<Line<'a>>>;

/// The line without its comment; nothing for one in another form.
fn read(line: &str) -> Option<Line<'_>> {
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    if let Some(item) = body.strip_prefix("- ") {
        return Some(Line { indent, key: None, behind: behind(item)? });
    }
    let (key, rest) = body.split_once(':')?;
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    is_name(key).then_some(Line { indent, key: Some(key), behind: behind(rest)? })
}

fn is_blank(line: &str) -> bool {
    let body = line.trim_start_matches(' ');
    body.is_empty() || body.starts_with('#')
}

/// What stands on the rest of a line; `None` for what is in another form.
fn behind(rest: &str) -> Option<Behind> {
    let rest = rest.trim_start_matches(' ');
    let (node, more) = match rest.as_bytes().first() {
        None | Some(b'#') => return Some(Behind::Nothing),
        Some(b'"' | b'\'') => quoted(rest).map(|(text, more)| (Node::Text(text.to_owned()), more))?,
        Some(b'[' | b'{') => flow::read(rest, DEEPEST)?,
        Some(_) => {
            let (text, more) = rest.split_at(rest.find(" #").unwrap_or(rest.len()));
            (scalar(text.trim_end_matches(' '))?, more)
        }
    };
    is_comment(more).then_some(Behind::Value(node))
}

/// Whether nothing follows a value but blanks, and behind one of them a comment.
fn is_comment(more: &str) -> bool {
    let body = more.trim_start_matches(' ');
    body.is_empty() || (body.len() < more.len() && body.starts_with('#'))
}

/// A text in quotes that stands for itself, and what follows it.
fn quoted(rest: &str) -> Option<(&str, &str)> {
    let quote = rest.chars().next()?;
    let (text, behind) = rest.get(1..)?.split_once(quote)?;
    // A backslash, and a quote that is doubled, are for the parser.
    let plain = if quote == '"' { !text.contains('\\') } else { !behind.starts_with(quote) };
    plain.then_some((text, behind))
}

fn map(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Node> {
    let mut entries: Vec<(String, Node)> = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent >= indent) {
        let key = line.key.filter(|key| line.indent == indent && entries.iter().all(|(known, _)| known != key))?;
        let value = match line.behind {
            Behind::Value(value) => value,
            Behind::Nothing => below(lines, indent, depth)?,
        };
        entries.push((key.to_owned(), value));
    }
    (!entries.is_empty()).then_some(Node::Map(entries))
}

/// What is indented below a key; nothing where nothing is.
fn below(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Node> {
    match lines.peek() {
        Some(next) if next.indent > indent && depth > 0 => {
            let indent = next.indent;
            if next.key.is_some() { map(lines, indent, depth - 1) } else { list(lines, indent) }
        }
        Some(next) if next.indent > indent => None,
        // A list may stand as far left as its key; that is for the parser.
        Some(next) if next.key.is_none() => None,
        _ => Some(Node::Null),
    }
}

fn list(lines: &mut Lines<'_>, indent: usize) -> Option<Node> {
    let mut items = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent >= indent) {
        match line.behind {
            Behind::Value(item) if line.indent == indent && line.key.is_none() => items.push(item),
            _ => return None,
        }
    }
    Some(Node::List(items))
}

/// A word, or several, whose meaning nobody could doubt.
fn scalar(text: &str) -> Option<Node> {
    match text {
        "true" => return Some(Node::Bool(true)),
        "false" => return Some(Node::Bool(false)),
        _ => {}
    }
    let letters = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.len() - letters.len();
    if letters.is_empty() && digits <= 15 && (digits == 1 || !text.starts_with('0')) {
        return text.parse().ok().map(Node::Whole);
    }
    let is_text = if digits > 0 { UNITS.contains(&letters) } else { is_word(text) || is_phrase(text) };
    is_text.then(|| Node::Text(text.to_owned()))
}

/// A name, or a path: `name`, `/a/b`, `~/a`, `.a/b`.
fn is_word(word: &str) -> bool {
    let body = word.strip_prefix('.').unwrap_or(word);
    let starts = match word.strip_prefix('~') {
        Some(rest) => rest.starts_with('/'),
        None => body.starts_with(|first: char| first.is_ascii_alphabetic()) || word.starts_with('/'),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    starts && word.chars().skip(1).all(plain) && !is_reserved(body)
}

/// An address, a variable, or a few words: `https://a.b/c?d=e`, `${A}`, `two words`.
fn is_phrase(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-:@=+?&%~,;${} ".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/' || first == '$')
        && text.chars().all(plain)
        && !text.contains(": ")
        && !text.ends_with(':')
        && !is_reserved(text)
}

fn is_name(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.len() <= LONGEST_KEY
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
        && !is_reserved(key)
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
