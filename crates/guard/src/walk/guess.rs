//! One rule for programs that nothing is known about: what they are given may run.
//!
//! An argument that reads as a command line counts as one, and so do the last arguments from any word on that is the
//! name of a program which does harm. What is found this way is left to a person, because nothing says that it runs.

use ollm_shell::parse;

use super::{Feed, Walker, carrier, shells::SHELLS};
use crate::{
    field::{Field, Variables},
    path, program, text,
};

/// How deep a guess within a guess is followed.
const MOST_GUESSES: usize = 3;

/// How many words of one command are taken for the beginning of another.
const MOST_COMMANDS: usize = 16;

/// Calls in other languages that run a program or take a file away.
#[rustfmt::skip]
const DOES: &[&str] = &[
    "system", "exec", "popen", "spawn", "subprocess", "qx", "shell", "rmtree", "rmdir", "rm_rf", "rm_r", "rmsync",
    "unlink", "remove", "rimraf", "delete", "`", "fileutils", "run(", "call(", "%x", "| \"", "|\"", "-|",
];

impl Walker {
    /// What an unknown program may do with its arguments.
    pub(super) fn guess_run(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        match program::arguments(name) {
            program::Arguments::Data => return,
            program::Arguments::Code => return self.guess_code(name, fields, feed, depth),
            program::Arguments::MayRun => {}
        }
        let data = if name == "git" { message_arguments(fields) } else { fields.len() };
        let fields = fields.get(..data).unwrap_or(fields);
        self.guessed(|walker| {
            for name in fields.iter().filter_map(|field| assigned_name(&field.text)) {
                walker.outer.taint(&name);
            }
            for field in fields.iter().skip(1) {
                walker.guess_argument(field, depth);
            }
            walker.guess_words(name, fields, feed, depth);
            if let Feed::Text(Some(text)) = feed {
                walker.guess_text(text, depth);
            }
        });
    }

    /// Does something of which it is not known that it happens.
    fn guessed(&mut self, look: impl FnOnce(&mut Walker)) {
        if self.guesses >= MOST_GUESSES {
            return;
        }
        let (place, outer, input) = (self.place.clone(), self.outer.clone(), self.input.clone());
        self.guesses += 1;
        look(self);
        self.guesses -= 1;
        (self.place, self.outer, self.input) = (place, outer, input);
    }

    /// An argument that holds a command line, perhaps behind an option's name.
    fn guess_argument(&mut self, field: &Field, depth: usize) {
        let whole = field.text.as_str();
        if !whole.contains([' ', '\n', '\t', ';', '|', '&', '`', '>', '<']) && !whole.contains("$(") {
            return;
        }
        let attached = whole.strip_prefix('-').and_then(|option| option.get(1..)).filter(|_| !whole.starts_with("--"));
        let value = whole.split_once('=').map(|(_, value)| value);
        for text in [Some(whole), attached, value].into_iter().flatten() {
            self.guess_text(text, depth);
        }
    }

    /// A value that a program may run.
    pub(super) fn guess_value(&mut self, text: &str, depth: usize) {
        if text.contains(' ') {
            self.guessed(|walker| walker.guess_text(text, depth));
        }
    }

    /// Text that may be a script. Where the whole cannot be read, its lines may be.
    fn guess_text(&mut self, text: &str, depth: usize) {
        if !self.affords(1 + text.len() / 16) {
            return;
        }
        let text = text.trim().trim_start_matches('!');
        if parse(text, depth).is_ok() {
            return self.script(text, depth + 1);
        }
        let mut read = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != text) {
            read = true;
            if parse(line, depth).is_ok() {
                self.script(line, depth + 1);
            } else if names_harm(line) {
                self.unknown(unreadable(line));
            }
        }
        if !read && names_harm(text) {
            self.unknown(unreadable(text));
        }
    }

    /// The last arguments, from any word on that names a program which does harm.
    fn guess_words(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        // What `git` is told to do comes first, and is none of our programs: `git rm`, `git mv`.
        let verb =
            if name == "git" { fields.iter().skip(1).position(|field| !field.text.starts_with('-')) } else { None };
        let mut commands = 0;
        for (at, field) in fields.iter().enumerate().skip(1) {
            if verb.is_some_and(|verb| verb + 1 == at) || !does_harm(&path::base_name(&field.text)) {
                continue;
            }
            commands += 1;
            if commands > MOST_COMMANDS {
                self.unknown("too many commands within commands");
                return;
            }
            if !self.affords(fields.len() - at) {
                return;
            }
            let place = self.place.clone();
            for folder in fields.iter().take(at).filter_map(|field| named_folder(&field.text)) {
                self.place.also(folder);
            }
            let rest = fields.get(at..).unwrap_or_default();
            // A shell and its `-c` are a command wherever they stand.
            let guesses = self.guesses;
            if matches!(rest, [shell, option, ..] if is_shell(shell) && carrier::is_cluster(&option.text, 'c')) {
                self.guesses = 0;
            }
            self.run(rest.to_vec(), feed, depth + 1);
            (self.place, self.guesses) = (place, guesses);
        }
    }

    /// Code of another language: what its strings would do, if it has a call that runs or removes.
    fn guess_code(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let input = match feed {
            Feed::Text(Some(text)) => Some(text.as_str()),
            _ => None,
        };
        let codes: Vec<&str> = fields.iter().skip(1).map(|field| field.text.as_str()).chain(input).collect();
        self.guessed(|walker| {
            for code in codes {
                if name.ends_with("sed") {
                    for command in sed_commands(code) {
                        walker.guess_text(command, depth);
                    }
                }
                // `:!` of editors, or no code at all.
                let command = code.trim_start_matches([':', '+', '!', ' ']);
                if command.split_whitespace().next().is_some_and(|first| does_harm(&path::base_name(first))) {
                    walker.guess_text(command, depth);
                }
                let folded = code.to_lowercase();
                if !walker.affords(1 + code.len() / 16) || !DOES.iter().any(|word| folded.contains(word)) {
                    continue;
                }
                for string in strings(code) {
                    walker.guess_text(string, depth);
                    let removal = ["rm", "-r", "-f", string].map(Field::literal);
                    walker.run(removal.to_vec(), &Feed::Nothing, depth + 1);
                }
                // `rm -rf` and its target as words of a list: `["rm", "-rf", "/"]`.
                let words: Vec<Field> = strings(code).into_iter().map(Field::literal).collect();
                if let Some(at) = words.iter().position(|word| does_harm(&word.text)) {
                    walker.run(words.get(at..).unwrap_or_default().to_vec(), &Feed::Nothing, depth + 1);
                }
            }
        });
    }

    /// The substitutions in text that is quoted, but that a shell may evaluate all the same.
    pub(super) fn substitutions_in(&mut self, text: &str, depth: usize) {
        if !text.contains("$(") && !text.contains('`') {
            return;
        }
        let Some(list) = parse(&format!(": \"{}\"", text.replace('"', "\\\"")), depth).ok() else {
            return self.unclear(format!("a shell may evaluate text that cannot be read: {}", text::excerpt(text)));
        };
        let variables = Variables::of_list(&list);
        let outer = self.outer.clone();
        self.guessed(|walker| {
            super::Scene { walker, variables: &variables, outer: &outer }.list(&list, &Feed::Nothing, depth + 1);
        });
    }
}

fn is_shell(field: &Field) -> bool {
    SHELLS.contains(&path::base_name(&field.text).as_str())
}

/// Where the arguments of `git` begin that are messages or patterns.
fn message_arguments(fields: &[Field]) -> usize {
    const VERBS: &[&str] =
        &["commit", "tag", "log", "grep", "notes", "stash", "merge", "show", "blame", "shortlog", "diff", "rev-list"];
    fields.iter().position(|field| VERBS.contains(&field.text.as_str())).unwrap_or(fields.len())
}

/// A folder in which an option of an unknown program may make it run something.
fn named_folder(text: &str) -> Option<&str> {
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    value.starts_with('/').then_some(value)
}

fn assigned_name(text: &str) -> Option<String> {
    let (name, _) = text.split_once('=').filter(|_| !text.contains([' ', '\n']))?;
    carrier::is_assignment(text).then(|| name.to_owned())
}

/// Whether a program of this name is looked at because of the harm it can do.
fn does_harm(name: &str) -> bool {
    #[rustfmt::skip]
    const HARM: &[&str] = &[
        "rm", "grm", "unlink", "srm", "shred", "wipe", "trash-put", "mv", "chmod", "chown", "chgrp", "dd", "mkfs",
        "mke2fs", "mkswap", "wipefs", "blkdiscard", "truncate", "find", "kill", "killall5", "shutdown", "reboot",
        "halt", "poweroff", "init", "telinit", "fdisk", "sfdisk", "sgdisk", "parted", "cryptsetup", "lvremove",
        "vgremove", "pvremove", "userdel", "deluser", "eval", "exec", "xargs", "env", "sudo", "doas", "git", "rsync",
        "tee", "cp", "ln", "sed", "ollm", "busybox", "crontab",
    ];
    HARM.contains(&name) || SHELLS.contains(&name) || name.starts_with("mkfs.") || carrier::find_carrier(name).is_some()
}

/// Whether text that cannot be read has a word in it that is the name of a program which does harm.
fn names_harm(text: &str) -> bool {
    let mut words = text.split([' ', '\t', ';', '|', '&', '(', ')', '`', '\'', '"', '{', '}']);
    words.any(|word| matches!(path::base_name(word).as_str(), "rm" | "dd" | "shred" | "mkfs" | "unlink" | "ollm"))
}

fn unreadable(text: &str) -> String {
    format!("a program may run text that cannot be read: {}", text::excerpt(text))
}

/// What `sed` would run: the rest of a line behind its command `e`.
fn sed_commands(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("e ").filter_map(|(at, _)| {
        let before = code.get(..at)?.chars().next_back();
        let command = before.is_none_or(|before| !before.is_ascii_alphabetic());
        code.get(at + 2..).filter(|_| command)?.lines().next()
    })
}

/// What stands in quotes, of any kind.
fn strings(code: &str) -> Vec<&str> {
    let mut strings = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (quote, behind) = rest.split_at(start).1.split_at(1);
        let Some((string, after)) = behind.split_once(quote) else { break };
        strings.push(string);
        rest = after;
    }
    strings
}
