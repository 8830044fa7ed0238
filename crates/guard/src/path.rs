//! Paths as text: joined, tidied, and folded so that look-alikes are alike.

use std::{
    borrow::Cow,
    collections::HashMap,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use ollm_protocol::pattern::wildcard;

use crate::text::is_hidden;

/// The last part of a command word, in lower case.
pub(crate) fn base_name(word: &str) -> Cow<'_, str> {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    if name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name.strip_suffix(".exe").unwrap_or(name));
    }
    let name = name.to_lowercase();
    Cow::Owned(name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name))
}

/// A path as seen from a folder, without `.`, `..` and doubled slashes.
pub(crate) fn join(folder: &Path, path: &str) -> PathBuf {
    tidied(folder.join(path))
}

/// Whether two tidy paths are the same, by their texts.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one.as_os_str() == other.as_os_str()
}

/// Whether text is the name of something in a folder, without wildcards, dots in front and marks that some systems skip.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b',' | b'=' | b'%');
    let (Some(first), Some(last)) = (text.bytes().next(), text.bytes().next_back()) else { return false };
    first.is_ascii_alphanumeric() && last != b'.' && text.bytes().all(usual)
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
    for sign in ["~", "$HOME", "${HOME}", "%USERPROFILE%"] {
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

fn tidied(path: PathBuf) -> PathBuf {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if path.to_str().and_then(|path| path.strip_prefix('/')).is_some_and(|path| path.split('/').all(is_plain)) {
        return path;
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

/// No path of the system is longer.
const LONGEST: usize = 4096;

/// Resolves many paths that share their folders, asking the system about each folder once.
#[derive(Default)]
pub(crate) struct Resolver {
    /// What a path resolves to, if it exists.
    seen: HashMap<OsString, Option<PathBuf>>,
    /// The folder of the last path, what it resolves to, and whether it exists: many files of one folder are asked about.
    last: Option<(PathBuf, PathBuf, bool)>,
}

impl Resolver {
    /// A tidy path with the links in it resolved, as far as it exists, and whether it does.
    pub(crate) fn look(&mut self, path: &Path) -> (PathBuf, bool) {
        if path.as_os_str().len() > LONGEST {
            return (path.to_owned(), false);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return (path.to_owned(), true) };
        if self.last.as_ref().is_none_or(|(last, ..)| last.as_os_str() != folder.as_os_str()) {
            let (real, exists) = self.walk(folder);
            self.last = Some((folder.to_owned(), real, exists));
        }
        let Some((_, real, exists)) = &self.last else { return (path.to_owned(), false) };
        let place = real.join(name);
        if !exists {
            return (place, false);
        }
        let seen = match self.seen.get(path.as_os_str()) {
            Some(seen) => seen.clone(),
            None => self.seen.entry(path.into()).or_insert(found(&place)).clone(),
        };
        seen.map_or((place, false), |real| (real, true))
    }

    /// Whether a tidy folder has something of this name in it.
    pub(crate) fn has(&mut self, folder: &Path, name: &str) -> bool {
        let known = self.last.as_ref().filter(|(last, ..)| is_same(last, folder)).map(|(.., exists)| *exists);
        known.unwrap_or(true) && self.look(&folder.join(name)).1
    }

    fn walk(&mut self, path: &Path) -> (PathBuf, bool) {
        let mut real = PathBuf::new();
        let mut parts = path.components();
        let mut prefix = PathBuf::new();
        while let Some(part) = parts.next() {
            prefix.push(part);
            real.push(part);
            if !matches!(part, Component::Normal(_)) {
                continue;
            }
            if !self.seen.contains_key(prefix.as_os_str()) {
                self.seen.insert(prefix.clone().into_os_string(), found(&real));
            }
            let Some(Some(found)) = self.seen.get(prefix.as_os_str()) else {
                let rest = parts.as_path();
                return (if rest.as_os_str().is_empty() { real } else { real.join(rest) }, false);
            };
            real.clone_from(found);
        }
        (real, true)
    }
}

/// What is at a place whose folder has no links, if anything is.
fn found(place: &Path) -> Option<PathBuf> {
    let found = std::fs::symlink_metadata(place).ok()?;
    Some(if found.file_type().is_symlink() { follow(place) } else { place.to_owned() })
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
    match path.to_str().and_then(|text| text.strip_prefix('/')).filter(|text| is_plain(text)) {
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
fn is_plain(path: &str) -> bool {
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
    // As in a shell, wildcards do not reach hidden names.
    if name.starts_with('.') && pattern.starts_with(['*', '?', '[']) {
        return false;
    }
    fits_hidden(pattern, name)
}

/// The same, hidden names included.
pub(crate) fn fits_hidden(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.find(['*', '?', '[']) else { return pattern == name };
    // Most names differ in what stands before the first wildcard or behind the last one.
    let last = pattern.rfind(['*', '?', '[', ']']).map_or(first, |last| last + 1);
    let ends = |name: &str| pattern.get(last..).is_some_and(|end| name.ends_with(end));
    if !pattern.get(..first).is_some_and(|begin| name.starts_with(begin)) || !ends(name) {
        return false;
    }
    let name: Vec<char> = name.chars().collect();
    wildcard(&simple_sets(pattern), &name, |part| *part == '*', |part, letter| *part == '?' || part == letter)
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
