//! Reads a file of settings as `git` does, to the letter: what is a comment here and a setting there would be missed.

use std::iter::Peekable;
use std::str::Chars;

/// The key of text that `git` refuses, with all that follows it.
pub(super) const UNREADABLE: &str = "unreadable";

/// Every key with its value; the key is written as `section.part.name`, in small letters but for the part.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut rest = text.chars().peekable();
    let (mut section, mut pairs) = (String::new(), Vec::new());
    loop {
        let here = rest.clone();
        match next(&mut rest, &mut section) {
            Some(Entry::Setting(key, value)) => pairs.push((key, value)),
            Some(Entry::Section) => {}
            Some(Entry::End) => return pairs,
            None => {
                pairs.push((UNREADABLE.to_owned(), here.collect()));
                return pairs;
            }
        }
    }
}

enum Entry {
    Setting(String, String),
    Section,
    End,
}

/// What comes next; nothing if `git` would refuse it.
fn next(rest: &mut Peekable<Chars<'_>>, section: &mut String) -> Option<Entry> {
    while let Some(character) = rest.next() {
        match character {
            '#' | ';' => skip_line(rest),
            '[' => {
                *section = header(rest)?;
                return Some(Entry::Section);
            }
            _ if is_space(character) => {}
            _ if character.is_ascii_alphabetic() => {
                let name = format!("{character}{}", word(rest));
                while rest.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
                let value = match rest.next() {
                    None | Some('\n') => "true".to_owned(),
                    Some('=') => value(rest)?,
                    Some(_) => return None,
                };
                return Some(Entry::Setting(format!("{section}.{}", name.to_ascii_lowercase()), value));
            }
            _ => return None,
        }
    }
    Some(Entry::End)
}

/// The name of a section, behind its bracket.
fn header(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut name = String::new();
    loop {
        match rest.next()? {
            ']' => return Some(name),
            '.' => name.push('.'),
            character if is_key(character) => name.push(character.to_ascii_lowercase()),
            ' ' | '\t' => break,
            _ => return None,
        }
    }
    while rest.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
    rest.next().filter(|quote| *quote == '"')?;
    name.push('.');
    loop {
        match rest.next()? {
            '\n' => return None,
            '"' => break,
            '\\' => name.push(rest.next().filter(|character| *character != '\n')?),
            character => name.push(character),
        }
    }
    rest.next().filter(|end| *end == ']')?;
    Some(name)
}

/// A value, up to the end of its line: quotes are taken off, a line that ends in a backslash goes on in the next one.
fn value(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let (mut value, mut spaces, mut quoted) = (String::new(), String::new(), false);
    loop {
        let character = match rest.next() {
            None | Some('\n') => return (!quoted).then_some(value),
            Some('#' | ';') if !quoted => {
                skip_line(rest);
                return Some(value);
            }
            Some(space) if is_space(space) && !quoted => {
                spaces.extend((!value.is_empty()).then_some(space));
                continue;
            }
            Some('"') => {
                quoted = !quoted;
                continue;
            }
            Some('\\') => match rest.next()? {
                '\n' => continue,
                't' => '\t',
                'b' => '\u{8}',
                'n' => '\n',
                plain @ ('\\' | '"') => plain,
                _ => return None,
            },
            Some(character) => character,
        };
        value.push_str(&spaces);
        spaces.clear();
        value.push(character);
    }
}

fn word(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(character) = rest.next_if(|next| is_key(*next)) {
        word.push(character);
    }
    word
}

/// A comment ends with its line, whatever the line ends in.
fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    while rest.next().is_some_and(|character| character != '\n') {}
}

fn is_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        pairs(text).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    #[test]
    fn what_git_reads_as_a_setting_is_one_here() {
        for (text, wanted) in [
            ("[core]\n\tbare = false\n[Remote \"Ab\"]Url=x y\n", "core.bare=false remote.Ab.url=x y"),
            ("[core]\n# x \\\n fsmonitor = e\n", "core.fsmonitor=e"),
            ("[core]\n bare = no ; x \\\n fsmonitor = e\n", "core.bare=no core.fsmonitor=e"),
            ("[filter \"a]b\"] clean = e\n", "filter.a]b.clean=e"),
            ("[filter \"a\\\"] x\"] clean = e\n", "filter.a\"] x.clean=e"),
            ("[core]\n fsmonitor = tr\\\nue-evil # x\n", "core.fsmonitor=true-evil"),
            ("[core]\r\n fsmonitor = a\\\r\nb\r\n", "core.fsmonitor=ab"),
            ("[a.B]\n c\n d = \" x \\\" # y\" z\n", "a.b.c=true a.b.d= x \" # y z"),
            ("[core]\n x = a\n!\n y = b\n", "core.x=a unreadable=!\n y = b\n"),
            ("[core]\n x = \"a\n y = b\n", "unreadable=\n x = \"a\n y = b\n"),
            ("", ""),
        ] {
            assert_eq!(read(text).join(" "), wanted.trim_start_matches(' '), "{text}");
        }
    }
}
