//! The rule for unknown programs: their arguments may run.
//!
//! An argument that reads as a command line counts as one, and so do the last arguments from any word on that is the
//! name of a program which does harm. What is found this way is left to a person, because nothing says that it runs.
//! Every word is guessed at once: what runs from a later word on is part of the same guess.

mod code;
mod inert;
mod worded;

use std::{borrow::Cow, sync::Arc};

use ollm_shell::{OTHER_SHELLS, POSIX_SHELLS, parse, wrapper};
use serde_json::Value;

use super::{Feed, Scene, Walker, carrier};
use crate::{
    field::{Field, Tail, Variables},
    names::Names,
    path,
    program::{self, Arguments, Program, VerbArguments},
    text,
};
use code::takes_code;
pub(super) use inert::{is_inert, is_inert_text, varies_inertly};

/// How deep a guess within a guess is followed.
const MOST_GUESSES: usize = 8;

/// How many words of one command are taken for the beginning of another.
const MOST_COMMANDS: usize = 8;

/// How long a word may be that names a program, with its folder.
const LONGEST_WORD: usize = 256;

/// What may stand before a command inside an argument: `--exec=rm …`, `+!rm …`, `{"run":"rm …"}`.
const MARKS: &[char] = &['=', '!', '|', ':', ',', '+', '\'', '"', '`', '(', '{', '['];

/// How the names of variables and options end whose value is a command, in any program.
#[rustfmt::skip]
const RUN_WORDS: &[&str] = &[
    "askpass", "browser", "command", "diff", "editor", "exec", "hook", "open", "pager", "pre", "program", "rsh",
    "runner", "shell", "ssh", "visual", "wrapper",
];

/// Builtins that set variables for programs to find.
const DECLARERS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

impl Walker {
    /// What a program may do with its arguments.
    pub(super) fn guess_run(&mut self, name: &str, fields: &Tail, feed: &Feed, depth: usize) {
        self.guess_by(Program::of(name), name, fields, feed, depth);
    }

    /// The same, for a program that was looked up.
    pub(super) fn guess_by(&mut self, program: Program, name: &str, fields: &Tail, feed: &Feed, depth: usize) {
        let verb = program::verb(name, fields.get(1..).unwrap_or_default()).map(|at| at + 1);
        let said = verb.and_then(|at| fields.get(at)).map(|verb| program::behind_verb(name, &verb.text));
        match program.arguments {
            _ if said == Some(VerbArguments::Commands) => {}
            Arguments::Data => return self.guess_named_values(name, fields, depth),
            Arguments::Code => {
                let files = fields.iter().skip(1).filter_map(|file| self.written_text(file));
                for code in files.collect::<Vec<_>>() {
                    self.guess_code(name, &[], &Feed::Text(Some(code)), depth);
                }
                return self.guess_code(name, fields, feed, depth);
            }
            Arguments::MayRun if self.covered => return,
            Arguments::MayRun => {}
        }
        let (fields, names) = match (verb, said) {
            (Some(verb), Some(VerbArguments::Messages)) => {
                self.guess_named_values(name, &fields.skip(verb), depth);
                (&fields.head(verb), false)
            }
            (_, said) => (fields, said == Some(VerbArguments::Names)),
        };
        // It may be code in an unknown language.
        let is_code = |pair: &[Field]| match pair {
            [before, field] => {
                let own = field.text.split([':', '=']).next().unwrap_or_default();
                let is_told = takes_code(&before.text) || takes_code(own);
                field.text.contains('(') && (field.text.contains(['"', '\'']) || is_told)
            }
            _ => false,
        };
        // Most arguments are neither lines nor names of programs that do harm.
        let given = fields.iter().skip(1);
        let marked = given.clone().any(|field| has_mark(&field.text));
        if marked && fields.windows(2).any(is_code) {
            self.guess_code(name, fields, feed, depth);
        }
        let may_run = |field: &Field| (marked && is_line(&field.text)) || does_harm(&path::base_name(&field.text));
        let is_list =
            |field: &Field| marked && (field.text.starts_with(['[', '{']) || listed_words(&field.text).is_some());
        if !matches!(feed, Feed::Text(Some(_))) && !given.clone().any(|field| is_list(field) || may_run(field)) {
            return;
        }
        self.guessed(|walker| {
            for name in fields.iter().filter_map(|field| assigned_name(&field.text)) {
                walker.outer.taint(name);
            }
            for field in given.filter(|_| marked) {
                walker.guess_argument(&field.text, depth);
            }
            if !names {
                walker.guess_words(name, fields, feed, depth);
            }
            if let Feed::Text(Some(text)) = feed
                && said != Some(VerbArguments::Messages)
            {
                walker.guess_input(name, text, depth);
            }
        });
    }

    /// Text in a file that a program is given.
    pub(super) fn guess_file(&mut self, fields: &Tail, text: &Feed, depth: usize) {
        let Feed::Text(Some(code)) = text else { return };
        let name = fields.first().map(|first| path::base_name(&first.text)).unwrap_or_default();
        let verb = program::verb(&name, fields.get(1..).unwrap_or_default()).and_then(|at| fields.get(at + 1));
        let program = Program::of(&name);
        let reads = program.only_reads && !DECLARERS.contains(&name.as_ref());
        if matches!(&*name, "at" | "batch" | "crontab") {
            self.scheduled(fields, text, depth);
        } else if program.arguments == Arguments::Code {
            self.guess_code(&name, &[], text, depth);
        } else if !reads && verb.is_none_or(|verb| program::behind_verb(&name, &verb.text) != VerbArguments::Messages) {
            self.guessed(|walker| {
                walker.guess_argument(code, depth);
                // `shell rm …`, and the lines of a makefile.
                for line in code.lines().skip(1).chain(code.lines().filter_map(|line| Some(line.split_once(' ')?.1))) {
                    walker.guess_text(line, depth);
                }
            });
        }
    }

    /// Text on the standard input, once for each place: every command in a loop or in the text itself may find it there.
    fn guess_input(&mut self, name: &str, text: &Arc<str>, depth: usize) {
        let seen = self.guessed_inputs.insert(text.as_ptr(), (Arc::clone(text), self.place.clone()));
        if seen.is_some_and(|(_, place)| place == self.place) {
            return;
        }
        self.guess_text(text, depth);
        // The program may be an interpreter of a language that no table has.
        if text.contains('(') && text.contains(['"', '\'']) {
            self.guess_code(name, &[], &Feed::Text(Some(Arc::clone(text))), depth);
        }
    }

    /// Does something of which it is not known that it happens.
    fn guessed(&mut self, look: impl FnOnce(&mut Walker)) {
        if self.guesses >= MOST_GUESSES {
            return self.unknown("too many commands within commands");
        }
        let (place, outer, input) = (self.place.clone(), self.outer.clone(), self.input.clone());
        self.guesses += 1;
        look(self);
        self.guesses -= 1;
        (self.place, self.outer, self.input) = (place, outer, input);
    }

    /// An argument that holds a command line, perhaps behind an option's name.
    fn guess_argument(&mut self, text: &str, depth: usize) {
        // A list of words, perhaps within others: `["rm", "-rf", "/"]`, `{"run": ["rm", "-rf", "/"]}`.
        if text.starts_with(['[', '{'])
            && let Ok(value) = serde_json::from_str(text)
        {
            for words in lists_of_words(&value) {
                self.run(words.into_iter().map(Field::literal).collect(), &Feed::Nothing, depth + 1);
            }
        }
        // `--exec=rm,-rf,/`
        if let Some(words) = listed_words(text) {
            self.run(words.map(Field::literal).collect(), &Feed::Nothing, depth + 1);
        }
        if !is_line(text) {
            return;
        }
        let mut rest = text;
        if let Some(option) = text.strip_prefix('-') {
            // `-eCOMMAND`
            let attached = option.get(1..).filter(|_| !option.starts_with('-') && !option.contains('='));
            if let Some(attached) = attached {
                self.guess_text(attached, depth);
            }
        } else {
            self.guess_text(text, depth);
        }
        // `--action=exec=COMMAND`
        while let Some((_, value)) = rest.split_once('=').filter(|(name, _)| is_name(name)) {
            self.guess_text(value, depth);
            rest = value;
        }
        for line in marked_lines(text) {
            self.guess_text(line, depth);
        }
        // Keys as programs write them that type for others.
        if ["\\n", "\\r", "^M"].iter().any(|key| text.ends_with(key)) {
            let typed = text.trim_end_matches("^M").trim_end_matches("\\n").trim_end_matches("\\r");
            self.guess_text(typed, depth);
        }
    }

    /// A value that a program may run.
    pub(super) fn guess_value(&mut self, text: &str, depth: usize) {
        // It may name a file that holds what runs: `BASH_ENV=x`.
        if let Some(code) = self.written_text(&Field::literal(text)) {
            self.guessed(|walker| walker.guess_text(&code, depth));
        }
        if is_line(text) {
            self.guessed(|walker| walker.guess_argument(text, depth));
        }
    }

    /// The values whose names say that they run, even if the program only prints or stores the rest.
    fn guess_named_values(&mut self, program: &str, fields: &[Field], depth: usize) {
        let declares = DECLARERS.contains(&program);
        let mut before = "";
        for (at, field) in fields.iter().enumerate().take_while(|(_, field)| field.text != "--") {
            let text = field.text.as_str();
            if let Some((name, value)) = text.split_once('=').filter(|_| declares) {
                self.set_for_program(name, field.known().map(|_| value));
            }
            let names = declares || text.starts_with("--") || text.starts_with("-o") || before == "-o";
            let value = match text.split_once('=') {
                Some((name, value)) if names && is_run_name(name) => Some(value),
                // The pager of `git grep`.
                None if text.starts_with("-O") && program == "git" => text.get(2..),
                None if text.starts_with("--") && is_run_name(text) => {
                    fields.get(at + 1).map(|value| value.text.as_str())
                }
                _ => None,
            };
            before = text;
            if let Some(value) = value {
                self.guess_value(value, depth);
            }
        }
    }

    /// Text that may be a script. Where the whole cannot be read, its lines may be.
    fn guess_text(&mut self, text: &str, depth: usize) {
        let marked = text.trim();
        let text = marked.trim_start_matches(['!', '|', '+', ':', ' ']);
        // `+!` and `:!` say that a shell reads the rest.
        let escapes = marked.strip_suffix(text).is_some_and(|marks| marks.contains('!'));
        if text.is_empty() || (is_harmless(text) && self.aliases.is_empty()) || !self.reads(text) {
            return;
        }
        if let Ok(list) = parse(text, depth) {
            return self.walk_list(&list, depth + 1);
        }
        let mut read = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != text) {
            read = true;
            match parse(line, depth) {
                Ok(list) => self.walk_list(&list, depth + 1),
                Err(_) if names_harm(line) => self.unknown(unreadable(line)),
                Err(_) => {}
            }
        }
        if escapes || (!read && names_harm(text)) {
            self.unknown(unreadable(text));
        }
    }

    /// The last arguments, from any word on that names a program which does harm.
    fn guess_words(&mut self, name: &str, fields: &Tail, feed: &Feed, depth: usize) {
        // What `git` is told to do comes first, and is none of our programs: `git rm`, `git mv`.
        let verb = program::verb(name, fields.get(1..).unwrap_or_default()).filter(|_| name == "git");
        let starts =
            fields.iter().enumerate().skip(1).filter(|(at, field)| {
                verb.is_none_or(|verb| verb + 1 != *at) && does_harm(&path::base_name(&field.text))
            });
        let starts: Vec<usize> = starts.map(|(at, _)| at).take(MOST_COMMANDS + 1).collect();
        if starts.len() > MOST_COMMANDS {
            return self.unknown("too many commands within commands");
        }
        if starts.is_empty() {
            return;
        }
        let named = fields.iter().enumerate().map(|(at, field)| (at, named_folder(&field.text)));
        let folders: Vec<(usize, &str)> = named.filter_map(|(at, folder)| Some((at, folder?))).collect();
        let covered = std::mem::replace(&mut self.covered, true);
        let mut tails = Vec::with_capacity(starts.len());
        // The shortest first: what wrappers before it leave is the same command.
        for at in starts.into_iter().rev() {
            if !self.affords(fields.len() - at) {
                break;
            }
            let place = self.place.clone();
            for (_, folder) in folders.iter().filter(|(before, _)| *before < at) {
                self.place.also(folder);
            }
            let rest = fields.skip(at);
            // A shell and its `-c` are a command wherever they stand.
            let guesses = self.guesses;
            if matches!(&*rest, [shell, option, ..] if is_shell(shell) && carrier::is_cluster(&option.text, 'c')) {
                self.guesses = 0;
            }
            self.tails.clone_from(&tails);
            tails.push(rest.len());
            // Some put a mark between a program and its arguments: `--exec rm -- -rf /`.
            if rest.get(1).is_some_and(|mark| mark.text == "--") {
                let words = rest.iter().take(1).chain(rest.iter().skip(2)).cloned().collect();
                self.run(words, feed, depth + 1);
            }
            self.run(rest, feed, depth + 1);
            (self.place, self.guesses) = (place, guesses);
        }
        self.covered = covered;
    }

    /// The substitutions in text that is quoted, but that a shell may evaluate all the same.
    pub(super) fn substitutions_in(&mut self, text: &str, depth: usize) {
        if !text.contains("$(") && !text.contains('`') {
            return;
        }
        if !self.reads(text) {
            return;
        }
        let Some(list) = parse(&format!(": \"{}\"", text.replace('"', "\\\"")), depth).ok() else {
            return self.unclear(format!("a shell may evaluate text that cannot be read: {}", text::excerpt(text)));
        };
        let variables = Variables::of_list(&list);
        let outer = self.outer.clone();
        self.guessed(|walker| {
            Scene { walker, variables: &variables, outer: &outer, writes: Feed::Pipe, function: None }.list(
                &list,
                &Feed::Nothing,
                depth + 1,
            );
        });
    }
}

/// Whether text has a character that no plain word, path or option has: it may be a line, a list or code.
fn has_mark(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/' | b':' | b'=' | b'_');
    !text.bytes().all(is_plain)
}

/// Whether text is more than one word to a shell.
fn is_line(text: &str) -> bool {
    let mut before = b' ';
    text.bytes().any(|byte| {
        let command = before == b'$' && byte == b'(';
        before = byte;
        command || matches!(byte, b' ' | b'\n' | b'\t' | b';' | b'|' | b'&' | b'`' | b'>' | b'<')
    })
}

/// The lists in a value that hold nothing but text.
fn lists_of_words(value: &Value) -> Vec<Vec<&str>> {
    match value {
        Value::Array(items) => match items.iter().map(Value::as_str).collect() {
            Some(words) => vec![words],
            None => items.iter().flat_map(lists_of_words).collect(),
        },
        Value::Object(fields) => fields.values().flat_map(lists_of_words).collect(),
        _ => Vec::new(),
    }
}

/// The words of a command that commas part, behind the name of an option.
fn listed_words(text: &str) -> Option<impl Iterator<Item = &str>> {
    if !text.contains(",-") || is_line(text) {
        return None;
    }
    let words = text.split_once('=').filter(|(name, _)| is_name(name)).map_or(text, |(_, words)| words);
    let first = words.split(',').next()?;
    does_harm(&path::base_name(first)).then(|| words.split(','))
}

/// Whether text is nothing but words, without options, none of which is a path or names a program that does harm.
fn is_harmless(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\n' | b'\t' | b'_' | b'-' | b',');
    let mut words = text.split([' ', '\n', '\t']);
    text.bytes().all(plain) && words.all(|word| !word.starts_with('-') && !does_harm(&path::base_name(word)))
}

/// The parts of an argument that begin behind a mark and with a program which does harm.
fn marked_lines(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(MARKS).filter_map(move |(at, mark)| {
        let rest = text.get(at + mark.len()..)?;
        if !begins_with_harm(rest) {
            return None;
        }
        if matches!(mark, "'" | "\"" | "`") { rest.split(mark).next() } else { Some(rest) }
    })
}

/// Whether the first word of text is a program which does harm.
fn begins_with_harm(text: &str) -> bool {
    let text = text.trim_start();
    let ends = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'`' | b'\'' | b'"');
    let mut end = text.len();
    for (at, byte) in text.bytes().enumerate() {
        // What has a mark in it or is longer is no name, and time would grow with the square of it.
        if at > LONGEST_WORD || matches!(byte, b'=' | b',' | b':' | b'!' | b'+' | b'[' | b'{') {
            return false;
        }
        // `unlink("x")` is a call of a language, and no line of a shell.
        if byte == b'(' {
            return false;
        }
        if ends(byte) {
            end = at;
            break;
        }
    }
    text.get(..end).is_some_and(|word| does_harm(&path::base_name(word)))
}

/// Whether a variable or an option is known by its name to hold a command.
pub(super) fn is_run_name(name: &str) -> bool {
    let ends = |word: &&str| {
        let start = name.len().checked_sub(word.len());
        start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    RUN_WORDS.iter().any(ends) && is_name(name)
}

/// Whether text may be the name of a variable, an option or a setting.
fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_shell(field: &Field) -> bool {
    ollm_shell::is_shell(&path::base_name(&field.text))
}

/// A folder in which an option of an unknown program may make it run something.
fn named_folder(text: &str) -> Option<&str> {
    if !text.contains('/') {
        return None;
    }
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    value.starts_with('/').then_some(value)
}

fn assigned_name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('=').filter(|_| !text.contains([' ', '\n']))?;
    wrapper::is_assignment(text).then_some(name)
}

/// Programs that are looked at because of the harm they can do, or because they run others.
#[rustfmt::skip]
const HARM: &[&str] = &[
    "blkdiscard", "busybox", "chgrp", "chmod", "chown", "cp", "crontab", "cryptsetup", "dd", "del-cli", "deluser", "doas",
    "env", "eval", "exec", "fd", "fdisk", "find", "git", "grm", "halt", "init", "kill", "killall5", "ln", "lvremove",
    "mke2fs", "mkfs", "mkswap", "mv", "ollm", "parted", "poweroff", "pvremove", "reboot", "remove-item", "rimraf", "rm",
    "rsync", "sed", "sfdisk", "sgdisk",
    "shred", "shutdown", "srm", "sudo", "tee", "telinit", "trash-put", "truncate", "unlink", "userdel", "vgremove",
    "wipe", "wipefs", "xargs",
];

const HARMFUL: Names<512> = carrier::with_carriers(Names::of(&[HARM, POSIX_SHELLS, OTHER_SHELLS]), 1);

/// Whether a program of this name is looked at because of the harm it can do.
fn does_harm(name: &str) -> bool {
    HARMFUL.tables_with(name) != 0 || name.starts_with("mkfs.")
}

/// Whether text that cannot be read has a word in it that is the name of a program which does harm.
fn names_harm(text: &str) -> bool {
    words(text).any(|word| matches!(word.as_ref(), "rm" | "dd" | "shred" | "mkfs" | "unlink" | "ollm"))
}

/// The same of any program that does harm, for text that a shell reads for sure: prose names many.
pub(super) fn has_harm(text: &str) -> bool {
    words(text).any(|word| does_harm(&word))
}

fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split([' ', '\t', '\n', ';', '|', '&', '(', ')', '`', '\'', '"', '{', '}']).map(path::base_name)
}

fn unreadable(text: &str) -> String {
    format!("a program may run text that cannot be read: {}", text::excerpt(text))
}

#[cfg(test)]
mod tests {
    use super::{HARM, RUN_WORDS};

    #[test]
    fn tables_are_sorted() {
        assert!(HARM.iter().all(|name| super::does_harm(name)));
        assert!(HARM.is_sorted() && RUN_WORDS.is_sorted());
    }
}
