//! Code of other languages: its strings are arguments, if it has a call that runs or removes something.

use std::borrow::Cow;

use super::{
    super::{carry::show, feed::Split},
    Feed, MOST_COMMANDS, Walker, begins_with_harm, is_line,
};
use crate::{
    field::{Field, Fields},
    filter, path, program,
};

/// Calls in other languages that run a program or take a file away.
#[rustfmt::skip]
const DOES: &[&str] = &[
    "system", "exec", "popen", "spawn", "subprocess", "qx", "shell", "rmtree", "rmdir", "rm_rf", "rm_r", "rmsync",
    "unlink", "remove", ".rm(", "rename", "rimraf", "delete", "`", "fileutils", "run(", "call(", "%x", "| \"", "|\"", "-|", "getline",
    "passthru", "proc_open", "eval", "cmd(", "\"|", "'|",
];

/// Calls that take away a folder with all that is in it.
const REMOVES_TREES: &[&str] = &[
    "rmtree",
    "remove_tree",
    "removeall",
    "remove_dir_all",
    "rm_rf",
    "rm_r(",
    "rmsync",
    "rmdirsync",
    ".rm(",
    "rimraf",
    "deltree",
    "remove-item",
];

/// How code names the home without writing it out.
#[rustfmt::skip]
const HOMES: &[&str] = &[
    "homedir()", "path.home()", "dir.home", "env.home", "env{home}", "env['home']", "env[\"home\"]", "environ['home']",
    "environ[\"home\"]", "getenv('home')", "getenv(\"home\")", "environ.get('home')", "environ.get(\"home\")",
];

/// The same in statements of databases, where removal takes away no file.
const CLIENT_DOES: &[&str] = &["from program", "to program", "system", "shell"];

/// What editors and clients write before a command: `:silent !rm …`, `\! rm …`, `.shell rm …`.
const ESCAPES: &[&str] = &["call", "exec", "execute", "r", "read", "shell", "silent", "silent!", "spawn", "system"];

impl Walker {
    /// What code of another language may run.
    pub(in crate::walk) fn guess_code(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        self.run_data(name, fields, feed, depth);
        let input = match feed {
            Feed::Text(Some(text)) => Some(&**text),
            _ => None,
        };
        let codes = fields.iter().skip(1).map(|field| field.text.as_str()).chain(input);
        let codes: Vec<&str> = codes.filter(|code| is_line(code) || code.contains(['(', '\'', '"'])).collect();
        if codes.is_empty() {
            return;
        }
        self.guessed(|walker| {
            for code in codes {
                walker.guess_commands(name, code, depth);
                if walker.affords(1 + code.len() / 16) && has_deeds(name, code) {
                    walker.guess_strings(code, depth);
                }
            }
        });
    }

    /// What `sed` and `awk` run of what they read, where their code says so: nobody wrote that into the code.
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
        // `system("rm " $0)`
        let begins = scripts.iter().flat_map(|script| strings(&script.text));
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

    /// Commands that stand in code as they are.
    fn guess_commands(&mut self, name: &str, code: &str, depth: usize) {
        if filter::is_sed(name) {
            let commands: Vec<&str> = filter::sed_commands(code, begins_with_harm).take(MOST_COMMANDS + 1).collect();
            if commands.len() > MOST_COMMANDS {
                return self.unknown("too many commands within commands");
            }
            for command in commands {
                self.guess_text(command, depth);
            }
        } else if matches!(name, "powershell" | "pwsh") {
            for command in code.split([';', '\n', '|', '{', '}']).filter(|command| begins_with_harm(command)) {
                self.guess_text(command, depth);
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
        let home = self.place.home.clone();
        let named = |string: &Cow<'_, str>| Field::literal(path::spelled(string, home.as_deref()));
        let paths = strings.iter().filter(|string| string.contains(['/', '~', '.', '$']) || !is_line(string));
        let bare = self.place.home.as_deref().and_then(|home| home.to_str()).filter(|_| {
            let runs_removal = strings.iter().any(|string| begins_with_harm(string));
            (runs_removal || removes_trees(code)) && names_home(code)
        });
        let removal = ["rm", "-r", "-f"].map(Field::literal).into_iter().chain(bare.map(Field::literal));
        let removal = removal.chain(paths.map(named));
        self.run(removal.collect(), &Feed::Nothing, depth + 1);
        // `rm -rf` and its target as words of a list: `["rm", "-rf", "/"]`.
        if let Some(at) = strings.iter().position(|string| super::does_harm(string)) {
            let words = strings.iter().skip(at).map(|word| Field::literal(word.as_ref()));
            self.run(words.collect(), &Feed::Nothing, depth + 1);
        }
    }
}

/// Whether code has a call that runs a program or removes a file.
fn has_deeds(name: &str, code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let does = if program::is_client(name) { CLIENT_DOES } else { DOES };
    does.iter().any(|word| folded.contains(word))
}

/// Whether code takes folders away.
fn removes_trees(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    REMOVES_TREES.iter().any(|call| folded.contains(call))
}

/// Whether code names the home, and nothing in it.
fn names_home(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let is_bare = |(at, name): (usize, &str)| {
        let before = folded.get(..at).and_then(|before| before.rsplit([';', '\n']).next()).unwrap_or_default();
        let behind = folded.get(at + name.len()..).unwrap_or_default().trim_start_matches(['}', ' ']);
        !before.contains("join") && !behind.starts_with(['/', '+', '.', '&', '\\', '['])
    };
    HOMES.iter().any(|home| folded.match_indices(home).any(is_bare))
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

/// What stands in quotes, of any kind, with `\"` and the like written out.
fn strings(code: &str) -> Vec<Cow<'_, str>> {
    let mut strings = Vec::new();
    let mut rest = code;
    // A quote that ends nowhere is none, and so are those of its kind behind it.
    let mut quotes = vec!['"', '\'', '`'];
    while let Some(start) = rest.find(quotes.as_slice()) {
        let (quote, behind) = rest.split_at(start).1.split_at(1);
        let Some(end) = string_end(behind, quote) else {
            quotes.retain(|kept| !quote.starts_with(*kept));
            rest = behind;
            continue;
        };
        let (string, after) = behind.split_at(end);
        strings.push(unescaped(string));
        rest = after.get(1..).unwrap_or_default();
    }
    strings
}

/// Where the quote stands that ends a string.
fn string_end(text: &str, quote: &str) -> Option<usize> {
    let escapes = |at: usize| {
        text.get(..at).is_some_and(|before| {
            let slashes = before.len() - before.trim_end_matches('\\').len();
            slashes % 2 == 1
        })
    };
    text.match_indices(quote).map(|(at, _)| at).find(|at| !escapes(*at))
}

fn unescaped(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    let mut plain = String::with_capacity(string.len());
    let mut rest = string.chars();
    while let Some(next) = rest.next() {
        match (next, next == '\\') {
            (_, true) => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                escaped => plain.extend(escaped),
            },
            (next, false) => plain.push(next),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::{ESCAPES, escaped, strings};

    #[test]
    fn strings_end_at_their_own_quote() {
        assert_eq!(strings(r#"f("a 'b' \"c\"", 'd')"#), [r#"a 'b' "c""#, "d"]);
        assert_eq!(strings("don't; f(\"x\")"), ["x"]);
    }

    #[test]
    fn commands_of_editors_stand_behind_their_marks() {
        assert!(ESCAPES.is_sorted());
        assert_eq!(escaped(":silent !rm x"), Some("!rm x"));
        assert_eq!(escaped("\\! rm x"), Some("! rm x"));
        assert_eq!(escaped(".shell rm x"), Some("rm x"));
        assert_eq!(escaped("print(1)"), None);
    }
}
