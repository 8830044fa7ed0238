//! Paths as text: joined, tidied, and folded so that look-alikes are alike.

mod resolver;

use std::{
    borrow::Cow,
    path::{Component, Path, PathBuf},
};

use ollm_protocol::pattern::wildcard;

use crate::text::is_hidden;
pub(crate) use resolver::Resolver;

/// The last part of a command word, in lower case.
pub(crate) fn base_name(word: &str) -> Cow<'_, str> {
    let (mut start, mut is_small) = (0, true);
    for (at, byte) in word.bytes().enumerate().rev() {
        if matches!(byte, b'/' | b'\\') {
            start = at + 1;
            break;
        }
        is_small &= byte.is_ascii() && !byte.is_ascii_uppercase();
    }
    let name = word.get(start..).unwrap_or(word);
    if is_small {
        return Cow::Borrowed(name.strip_suffix(".exe").unwrap_or(name));
    }
    let name = name.to_lowercase();
    Cow::Owned(name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name))
}

/// A path as seen from a folder, without `.`, `..` and doubled slashes.
pub(crate) fn join(folder: &Path, path: &str) -> PathBuf {
    tidied(in_folder(folder, path))
}

/// A path seen from a folder, in its own spelling. Room for both is made at once.
pub(crate) fn in_folder(folder: &Path, path: &str) -> PathBuf {
    let mut joined = PathBuf::with_capacity(folder.as_os_str().len() + 1 + path.len());
    joined.push(folder);
    joined.push(path);
    joined
}

/// Whether two tidy paths are the same, by their texts.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one.as_os_str() == other.as_os_str()
}

/// Whether a part of an absolute path is hidden.
pub(crate) fn has_hidden_part(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().windows(2).any(|part| part == b"/.")
}

/// Whether text is a relative path that means what it says: letters, digits and a few marks, and no part that is hidden
/// or that some systems read as another.
pub(crate) fn is_plain(text: &str) -> bool {
    let mut before = b'/';
    for byte in text.bytes() {
        let fits = match byte {
            b'/' => !matches!(before, b'/' | b'.'),
            b'_' | b'-' | b'.' | b'+' | b',' | b'=' | b'%' => before != b'/',
            _ => byte.is_ascii_alphanumeric(),
        };
        if !fits {
            return false;
        }
        before = byte;
    }
    !text.is_empty() && before != b'.'
}

/// Whether a tidy path is this folder or lies in it, by their texts.
pub(crate) fn is_in_folder(path: &Path, folder: &Path) -> bool {
    let [path, folder] = [path, folder].map(|path| path.as_os_str().as_encoded_bytes());
    let next = path.strip_prefix(folder).map(<[u8]>::first);
    next.is_some_and(|next| next.is_none_or(|next| std::path::is_separator(char::from(*next))) || folder == b"/")
}

/// A path as tools spell it: an address, or with the home written out.
pub(crate) fn spelled(file: &str, home: Option<&Path>) -> String {
    let file = file.trim();
    let decoded = file.strip_prefix("file://").map(|rest| decode(rest.strip_prefix("localhost").unwrap_or(rest)));
    let file = decoded.unwrap_or_else(|| file.to_owned());
    let Some(home) = home.and_then(Path::to_str) else { return file };
    for sign in ["~", "$HOME", "${HOME}", "$ENV{HOME}", "%USERPROFILE%"] {
        if let Some(rest) = file.strip_prefix(sign).filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\'])) {
            return format!("{home}{rest}");
        }
    }
    file
}

/// Text with `%2e` and the like written out.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&next, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| next == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(next));
        rest = behind.get(if code.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A path without `.`, `..` and doubled slashes, by its text alone.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    tidied(path.to_owned())
}

/// The same of a path that is not needed any more.
pub(crate) fn tidied(path: PathBuf) -> PathBuf {
    if is_tidy(path.as_os_str().as_encoded_bytes()) {
        return path;
    }
    // A folder joined with `.`, as most searches begin.
    let folder = path.to_str().and_then(|text| text.strip_suffix("/."));
    if let Some(folder) = folder.filter(|folder| is_tidy(folder.as_bytes())) {
        return PathBuf::from(folder);
    }
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    tidied
}

/// Whether a path begins at the root and has no part that is empty, `.` or `..`.
fn is_tidy(path: &[u8]) -> bool {
    let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    let mut start = 1;
    for (at, _) in path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
        if !path.get(start..at).is_some_and(is_plain) {
            return false;
        }
        start = at + 1;
    }
    path.starts_with(b"/") && path.get(start..).is_some_and(is_plain)
}

/// A path with the links in it resolved, as far as it exists.
///
/// Like the system, a `..` is followed after the link before it, not by its text.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    let mut missing = false;
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            other => {
                resolved.push(other);
                if !missing && matches!(other, Component::Normal(_)) {
                    match std::fs::symlink_metadata(&resolved) {
                        Ok(found) if found.file_type().is_symlink() => resolved = follow(&resolved),
                        Ok(_) => {}
                        Err(_) => missing = true,
                    }
                }
            }
        }
    }
    resolved
}

/// Where a link leads; a link to nothing still says where a write would go.
fn follow(link: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(link) {
        return real;
    }
    let mut place = link.to_owned();
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&place) else { break };
        place = tidy(&place.parent().unwrap_or(Path::new("/")).join(target));
    }
    place
}

/// The parts of a path, folded: two paths that a person or a file system may take for the same have the same parts.
pub(crate) fn folded(path: &Path) -> Vec<String> {
    if let Some(text) = path.to_str().filter(|text| folds_plainly(text.trim_start_matches('/'))) {
        return text.split('/').filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect();
    }
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(fold(&name.to_string_lossy())),
            _ => None,
        })
        .filter(|part| !part.is_empty())
        .collect()
}

/// The folded parts in one text, each with a slash behind it: a path lies in another if its key begins with the other's.
pub(crate) fn key(path: &Path) -> String {
    match path.to_str().and_then(|text| text.strip_prefix('/')).filter(|text| folds_plainly(text)) {
        // The root lies in nothing, and all lies in it.
        Some("") => String::new(),
        Some(text) => {
            let mut key = String::with_capacity(text.len() + 1);
            key.push_str(text);
            key.make_ascii_lowercase();
            key.push('/');
            key
        }
        None => folded(path).iter().flat_map(|part| [part.as_str(), "/"]).collect(),
    }
}

/// Whether folding the parts of a path only takes them to lower case.
fn folds_plainly(path: &str) -> bool {
    let mut before = b'/';
    for next in path.bytes() {
        let ends = next == b'/' && matches!(before, b'.' | b' ' | b'/');
        if ends || next == b':' || !next.is_ascii() {
            return false;
        }
        before = next;
    }
    !matches!(before, b'.' | b' ' | b'/')
}

/// One name, folded.
pub(crate) fn fold(name: &str) -> String {
    let mut folded = if name.is_ascii() { name.to_ascii_lowercase() } else { plain_letters(name) };
    let stream = folded.find("::$").unwrap_or(folded.len());
    folded.truncate(stream);
    let kept = folded.trim_end_matches(['.', ' ']).len();
    folded.truncate(kept);
    folded
}

/// Text in lower case, without marks and hidden characters, and with wide letters made narrow.
fn plain_letters(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for next in name.chars().filter(|&next| !is_hidden(next) && !is_mark(next)) {
        let wide = match next {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(next) - 0xfee0).unwrap_or(next),
            other => base_letter(other),
        };
        folded.extend(wide.to_lowercase().map(base_letter));
    }
    folded
}

fn is_mark(next: char) -> bool {
    matches!(next, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}

/// The letters of U+00C0 to U+017F without their marks; a dot where there is no plain letter.
const LETTERS: &str = "AAAAAA.CEEEEIIII.NOOOOO.OUUUUY..aaaaaa.ceeeeiiii.nooooo.ouuuuy.yAaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIi..JjKk.LlLlLlLlLlNnNnNnn..OoOoOo..RrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs";

fn base_letter(next: char) -> char {
    let code = u32::from(next);
    if !(0xc0..0x180).contains(&code) {
        return match next {
            'ı' => 'i',
            '\u{212a}' => 'k',
            other => other,
        };
    }
    let letter = usize::try_from(code - 0xc0).ok().and_then(|at| LETTERS.as_bytes().get(at).copied());
    letter.filter(|&letter| letter != b'.').map_or(next, char::from)
}

/// Whether a name fits a pattern with `*`, `?` and `[…]`; a set fits any character.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).fits_as_in_shell(name)
}

/// A pattern with `*`, `?` and `[…]`; a set fits any character, and wildcards fit hidden names too.
pub(crate) struct Pattern<'a> {
    text: &'a str,
    /// What stands before the first wildcard and behind the last one; nothing if there is none.
    ends: Option<(&'a str, &'a str)>,
}

impl<'a> Pattern<'a> {
    pub(crate) fn new(text: &'a str) -> Pattern<'a> {
        let is_wild = |byte: &u8| matches!(byte, b'*' | b'?' | b'[');
        let first = text.as_bytes().iter().position(is_wild);
        let last = text.as_bytes().iter().rposition(|byte| is_wild(byte) || *byte == b']');
        let ends = first.zip(last).and_then(|(first, last)| text.get(..first).zip(text.get(last + 1..)));
        Pattern { text, ends }
    }

    /// Whether names of many files fit: `*.json`.
    pub(crate) fn is_vague(&self) -> bool {
        self.text.starts_with('*') && !self.text.contains('/')
    }

    /// Whether it is this name with wildcards around it: `*ollm*`.
    pub(crate) fn is_around(&self, name: &str) -> bool {
        self.text.trim_matches(['*', '.']) == name.trim_matches('.')
    }

    /// The letter with which all that fits ends, small; nothing if it may be any, or a slash is before it.
    pub(crate) fn last_letter(&self) -> Option<u8> {
        let end = self.ends.map_or(self.text, |(_, end)| end);
        end.bytes().next_back().filter(|_| !end.contains('/')).map(|last| last.to_ascii_lowercase())
    }

    /// Whether a path that ends with this part, in letters of either case, may fit.
    pub(crate) fn may_end(&self, part: &str) -> bool {
        let end = self.ends.map_or(self.text, |(_, end)| end).as_bytes();
        let start = part.len().checked_sub(end.len());
        let ends =
            start.and_then(|start| part.as_bytes().get(start..)).is_some_and(|last| last.eq_ignore_ascii_case(end));
        ends || end.contains(&b'/')
    }

    /// Whether it is one of paths, and not of names.
    pub(crate) fn has_folder(&self) -> bool {
        self.text.contains('/')
    }

    /// Whether something in a folder may fit because the pattern names that folder: `*/.ollm/*`.
    pub(crate) fn fits_inside(&self, folder: &str) -> bool {
        let folders = self.text.match_indices('/').filter_map(|(at, _)| self.text.get(..at));
        // A wildcard alone names none.
        let named = |pattern: &&str| pattern.rsplit('/').next().is_some_and(|last| !last.starts_with(['*', '?', '[']));
        folders.filter(named).any(|pattern| Pattern::new(pattern).fits(folder))
    }

    /// Whether a name fits as in a shell, where wildcards do not reach hidden names.
    pub(crate) fn fits_as_in_shell(&self, name: &str) -> bool {
        !(name.starts_with('.') && self.text.starts_with(['*', '?', '['])) && self.fits(name)
    }

    /// Whether a name fits, hidden or not.
    pub(crate) fn fits(&self, name: &str) -> bool {
        let Some((begin, end)) = self.ends else { return self.text == name };
        // Most names differ there.
        if !name.starts_with(begin) || !name.ends_with(end) {
            return false;
        }
        let name: Vec<char> = name.chars().collect();
        wildcard(&simple_sets(self.text), &name, |part| *part == '*', |part, letter| *part == '?' || part == letter)
    }
}

/// A pattern with every set taken for any character: `[a-z]`, `[!x]`, `[[:alpha:]]`.
fn simple_sets(pattern: &str) -> Vec<char> {
    let mut simple = Vec::new();
    let mut rest = pattern.chars();
    while let Some(next) = rest.next() {
        match set_end(rest.as_str()).filter(|_| next == '[') {
            Some(length) => {
                simple.push('?');
                rest = rest.as_str().get(length..).unwrap_or_default().chars();
            }
            None => simple.push(next),
        }
    }
    simple
}

/// Where the set ends whose `[` stands before this text.
fn set_end(text: &str) -> Option<usize> {
    let mut at = text.len() - text.trim_start_matches(['!', '^']).len();
    at += usize::from(text.get(at..)?.starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        let class = [("[:", ":]"), ("[.", ".]"), ("[=", "=]")].iter().find(|(open, _)| rest.starts_with(open));
        let closed = class.and_then(|(_, close)| Some(rest.get(2..)?.find(close)? + 4));
        match (closed, rest.chars().next()?) {
            (Some(length), _) => at += length,
            (None, ']') => return Some(at + 1),
            (None, next) => at += next.len_utf8(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tidy_path_is_the_same_place() {
        for (path, tidy) in [
            ("/a/b", "/a/b"),
            ("/a/b/.", "/a/b"),
            ("/a/./b/", "/a/b"),
            ("/a/b/..", "/a"),
            ("/.", "/"),
            ("/", "/"),
            ("/a/..", "/"),
        ] {
            assert_eq!(tidied(PathBuf::from(path)), Path::new(tidy), "{path}");
        }
    }
}
