//! Code of other languages: its strings are arguments, if it has a call that runs or removes something.

mod bomb;
mod computed;
mod evaluated;
mod removal;
mod strings;
mod writes;

use std::borrow::Cow;

use self::{
    bomb::multiplies,
    computed::{calls_of, joined_lists, runs_what_it_decodes, runs_what_it_fetches},
    evaluated::runs_unwritten_code,
    removal::{REMOVES, calls_harm, removes},
    strings::strings,
    writes::written_files,
};
use super::{
    super::{ScriptAction, carry::show, feed::Split},
    Feed, MOST_COMMANDS, Walker, begins_with_harm, is_line, is_name,
    worded::{WordedLanguage, is_encoded},
};
use crate::{
    field::{Field, Fields},
    filter, path, program, text,
    writes::joined_strings,
};

/// Calls in other languages that run a program.
#[rustfmt::skip]
const RUNS: &[&str] = &[
    "system", "exec", "popen", "spawn", "subprocess", "qx", "shell", "`", "run(", "call(", "%x", "| \"", "|\"", "-|", "getline",
    "passthru", "proc_open", "eval", "cmd(", "command(", "command::new(", "\".!", "\"|", "'|", "process(", "process.start", "processbuilder", "open3", "tiocsti",
];

/// The same in statements of databases, where removal takes away no file.
const CLIENT_DOES: &[&str] = &["from program", "to program", "system", "shell"];

/// What editors and clients write before a command: `:silent !rm …`, `\! rm …`, `.shell rm …`.
const ESCAPES: &[&str] =
    &["call", "exec", "execute", "r", "read", "shell", "silent", "silent!", "spawn", "system", "tcl"];

impl Walker {
    /// What code of another language may run.
    pub(in crate::walk) fn guess_code(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        self.run_data(name, fields, feed, depth);
        let input = match feed {
            Feed::Text(Some(text)) => Some(&**text),
            _ => None,
        };
        let is_code = |at: usize, text: &str| {
            is_line(text)
                || text.contains(['(', '\'', '"'])
                || fields.get(at).is_some_and(|before| takes_code(&before.text))
        };
        let given =
            fields.iter().skip(1).enumerate().map(|(at, field)| (is_code(at, &field.text), field.text.as_str()));
        let worded = WordedLanguage::of(name);
        if worded == Some(WordedLanguage::PowerShell) && fields.iter().any(|field| is_encoded(&field.text)) {
            self.unclear(format!("{name} runs text that is not written out: {}", show(fields)));
        }
        // Words that stand alone are one command to these.
        let joined = worded.filter(|_| input.is_none()).map(|_| {
            let words = fields.iter().skip(1).skip_while(|field| field.text.starts_with(['-', '/']));
            words.map(Field::shown).collect::<Vec<_>>().join(" ")
        });
        let joined = joined.as_deref().filter(|_| fields.len() > 2).map(|text| (is_line(text), text));
        let given: Vec<(bool, &str)> = given.chain(input.map(|text| (true, text))).chain(joined).collect();
        if !given.iter().any(|(is_code, _)| *is_code) {
            return;
        }
        self.guessed(|walker| {
            let mut does = false;
            for (_, code) in given.iter().filter(|(is_code, _)| *is_code) {
                walker.guess_commands(name, code, depth);
                if multiplies(code) {
                    walker.push(ScriptAction::Bomb { name: name.to_owned() });
                }
                if !walker.affords(1 + code.len() / 16) {
                    continue;
                }
                walker.write_files(code);
                if runs_unwritten_code(name, code) {
                    walker.unknown(format!("{name} runs code that is not written out: {}", text::excerpt(code)));
                }
                walker.guess_signals(code, depth);
                // The name of what runs may be put together, too.
                let joined: Vec<String> = joined_strings(code).into_iter().chain(joined_lists(code)).collect();
                if has_deeds(name, code) || joined.iter().any(|joined| has_deeds(name, joined)) {
                    does = true;
                    if runs_what_it_fetches(code) {
                        walker.unknown(format!("{name} runs what it gets from elsewhere"));
                    }
                    if runs_what_it_decodes(code) {
                        walker.unknown(format!("{name} runs text that it puts together: {}", text::excerpt(code)));
                    }
                    walker.guess_strings(code, depth);
                    for joined in &joined {
                        walker.guess_strings(joined, depth);
                    }
                }
            }
            if does {
                walker.guess_given(name, fields, feed, depth);
            }
        });
    }

    /// The files that calls in code write.
    fn write_files(&mut self, code: &str) {
        let home = self.place.home.clone();
        for file in written_files(code).take(MOST_COMMANDS) {
            let (target, place) = (Field::literal(path::spelled(file, home.as_deref())), self.place.clone());
            self.push(ScriptAction::Write { target, place, appends: false });
        }
    }

    /// The processes that code ends: `os.kill(1, 9)`, `process.kill(-1)`.
    fn guess_signals(&mut self, code: &str, depth: usize) {
        for given in calls_of(code, &["kill"]).take(MOST_COMMANDS) {
            let given = given.trim_start_matches('(').split(')').next().unwrap_or_default();
            let all = given.split(',').any(|number| number.trim() == "-1");
            let first = given.split(',').next().is_some_and(|number| number.trim() == "1");
            if all || first {
                let words = ["kill", "-9", if all { "-1" } else { "1" }];
                self.run(words.map(Field::literal).into_iter().collect(), &Feed::Nothing, depth + 1);
            }
        }
    }

    /// What code that runs or removes something may do with its arguments and its input.
    fn guess_given(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let is_given = |field: &&Field| is_line(&field.text) && !has_deeds(name, &field.text);
        for line in fields.iter().skip(1).filter(is_given) {
            self.guess_text(&line.text, depth);
        }
        let is_path = |field: &&Field| !is_line(&field.text) && !field.text.starts_with('-');
        let paths: Fields = fields.iter().skip(1).filter(is_path).chain(feed.fields()).cloned().collect();
        let input = if let Feed::Text(Some(text)) = feed { text } else { "" };
        let mut codes = fields.iter().skip(1).map(|field| field.text.as_str()).chain([input]);
        if !paths.is_empty() && codes.any(removes) {
            let removal = ["rm", "-r", "-f"].map(Field::literal).into_iter().chain(paths);
            self.run(removal.collect(), &Feed::Nothing, depth + 1);
        }
    }

    /// What `sed` and `awk` run of what they read, where their code says so. That text does not stand in the code.
    fn run_data(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        if !program::is_filter(name) {
            return;
        }
        let scripts = filter::scripts(name, args);
        if scripts.iter().any(|script| filter::runs_data(name, &script.text)) {
            let values: Vec<&str> = filter::awk_values(name, args).collect();
            match feed {
                Feed::Text(Some(text)) => self.guessed(|walker| walker.guess_text(text, depth)),
                Feed::Nothing => {}
                _ => self.unclear(format!("{name} runs whatever it is fed: {}", show(fields))),
            }
            for value in values {
                self.guess_value(value, depth);
            }
        }
        // `system("rm " $0)`, `s/^/rm /e`
        let begins = scripts.iter().flat_map(|script| {
            let made = filter::is_sed(name).then(|| filter::sed_commands(&script.text, begins_with_harm));
            strings(&script.text).into_iter().chain(made.into_iter().flatten().map(Cow::Borrowed))
        });
        let begins: Vec<String> = begins
            .filter(|string| string.ends_with(' ') && begins_with_harm(string))
            .map(Cow::into_owned)
            .take(MOST_COMMANDS)
            .collect();
        for begin in begins {
            let Some(more) = feed.arguments(Split::Words) else { continue };
            let words: Fields = begin.split_whitespace().map(Field::literal).chain(more).collect();
            self.guessed(|walker| walker.run(words.into(), &Feed::Nothing, depth + 1));
        }
    }

    /// Commands that stand in code without quotes.
    fn guess_commands(&mut self, name: &str, code: &str, depth: usize) {
        if filter::is_sed(name) {
            let commands: Vec<&str> = filter::sed_commands(code, begins_with_harm).take(MOST_COMMANDS + 1).collect();
            if commands.len() > MOST_COMMANDS {
                return self.unknown("too many commands within commands");
            }
            for command in commands {
                self.guess_text(command, depth);
            }
        } else if let Some(language) = WordedLanguage::of(name) {
            let found = language.shell_lines(code);
            if found.is_open {
                self.unknown(format!("{name} runs text that is not written out: {}", text::excerpt(code)));
            }
            let sets =
                |line: &str| line.starts_with("cd ") || line.split_once('=').is_some_and(|(name, _)| is_name(name));
            if found.lines.iter().any(|line| begins_with_harm(line)) {
                let kept = found.lines.iter().map(String::as_str).filter(|line| begins_with_harm(line) || sets(line));
                self.guess_text(&kept.collect::<Vec<_>>().join("\n"), depth);
            }
        } else if !program::is_filter(name) {
            let lines = code.split(['\n', ';']).skip(1).map(str::trim_start);
            for command in std::iter::once(code).chain(lines).filter_map(escaped) {
                self.guess_text(command, depth);
            }
        }
    }

    /// What the strings in code would do, each alone and as words of one command.
    fn guess_strings(&mut self, code: &str, depth: usize) {
        let strings = strings(code);
        for (at, string) in strings.iter().enumerate() {
            let harm = begins_with_harm(string);
            if harm || is_line(string) {
                self.guess_text(string, depth);
            }
            // `"rm -rf " + home`
            if let Some(next) = strings.get(at + 1).filter(|_| harm && string.ends_with(' ')) {
                self.guess_text(&format!("{string}{next}"), depth);
            }
        }
        // Quotes may stand in comments, or be brackets: `%x(rm -rf ~)`.
        for part in code.split(['"', '\'', '`', '(', ')', '{', '}']).filter(|part| is_line(part)) {
            if begins_with_harm(part) && !strings.iter().any(|string| string == part) {
                self.guess_text(part, depth);
            }
        }
        if removes(code) {
            self.guess_removal(code, depth);
        }
        // `rm -rf` and its target as words of a list: `["rm", "-rf", "/"]`.
        if let Some(at) = strings.iter().position(|string| super::does_harm(&path::base_name(string))) {
            let words = strings.iter().skip(at).map(|word| Field::literal(word.as_ref()));
            self.run(words.collect(), &Feed::Nothing, depth + 1);
        }
    }
}

/// Whether the word behind an option is code: `-c`, `-e`, `-nle`, `--eval`.
pub(super) fn takes_code(option: &str) -> bool {
    let short = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    short.is_some_and(|letters| letters.ends_with(['c', 'e', 'E'])) || matches!(option, "--eval" | "--execute" | "eval")
}

/// Whether code has a call that runs a program or removes a file.
fn has_deeds(name: &str, code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    if program::is_client(name) { has(CLIENT_DOES) } else { has(RUNS) || has(REMOVES) || calls_harm(&folded) }
}

/// The command on a line of an editor or a client that lets people run one.
fn escaped(line: &str) -> Option<&str> {
    let is_mark = |next: char| matches!(next, ':' | '+' | '\\' | '.' | '%' | ',' | '$' | ' ') || next.is_ascii_digit();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(is_mark);
        if rest.starts_with('!') || begins_with_harm(rest) {
            return Some(rest);
        }
        (_, rest) = rest.split_once(' ').filter(|(word, _)| ESCAPES.contains(word))?;
    }
}

#[cfg(test)]
mod tests {
    use super::{ESCAPES, escaped};

    #[test]
    fn commands_of_editors_stand_behind_their_marks() {
        assert!(ESCAPES.is_sorted());
        assert_eq!(escaped(":silent !rm x"), Some("!rm x"));
        assert_eq!(escaped("\\! rm x"), Some("! rm x"));
        assert_eq!(escaped(".shell rm x"), Some("rm x"));
        assert_eq!(escaped("print(1)"), None);
    }
}
