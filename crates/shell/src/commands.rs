//! Every command that a shell text could run, as plain words, for whoever compares commands with patterns.
//!
//! Quotes are gone, and what only a running shell knows stays as it is written. Commands in substitutions, subshells,
//! branches and in the text of `sh -c` stand for themselves. In doubt there is a command too many, never one too few.

use crate::line::split_loosely;
use crate::read::parse;
use crate::tree::{Assign, Body, Command, List, Piece, Redirect, Word};

/// Text of shells within shells is read so many levels deep.
const DEEPEST_SHELL: usize = 4;
/// Further commands are left out; with so many the last one is [`TOO_MANY`].
const MOST: usize = 4096;
/// Stands for the commands that were left out.
const TOO_MANY: &str = "…";

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The commands of a text, each with its words; files of redirections stand among them.
///
/// ```
/// use ollm_shell::commands;
/// let found = commands("cd x && git 'push' --force >log; sh -c 'rm -rf build'");
/// let lines: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
/// assert_eq!(lines, ["cd x", "git push --force log", "sh -c rm -rf build", "rm -rf build"]);
/// ```
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Found { commands: Vec::new(), depth: 0 };
    found.text(text);
    found.commands
}

struct Found {
    commands: Vec<Vec<String>>,
    depth: usize,
}

impl Found {
    fn text(&mut self, text: &str) {
        match parse(text, 0) {
            Ok(list) => self.list(&list),
            // What no shell would read may still be read by something else.
            Err(_) => self.push(split_loosely(text).unwrap_or_else(|_| unquoted(text))),
        }
    }

    fn list(&mut self, list: &List) {
        list.iter().flat_map(|step| &step.pipeline).for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        let files: Vec<&Word> = command.redirects.iter().filter_map(Redirect::word).collect();
        match &command.body {
            Body::Simple { assigns, words } => self.simple(assigns, words, &files),
            Body::Branches { words, lists, .. } => {
                self.simple(&[], words, &files);
                for list in lists {
                    self.list(list);
                }
            }
            Body::Subshell(list) => {
                self.simple(&[], &[], &files);
                self.list(list);
            }
            Body::For { words, list, .. } => {
                self.simple(&[], words.as_deref().unwrap_or_default(), &files);
                self.list(list);
            }
            Body::Function { body, .. } => {
                self.simple(&[], &[], &files);
                self.command(body);
            }
        }
    }

    fn simple(&mut self, assigns: &[Assign], words: &[Word], files: &[&Word]) {
        let values = assigns.iter().flat_map(|assign| assign.value.iter().chain(&assign.others));
        for word in values.chain(words).chain(files.iter().copied()) {
            self.inner(word);
        }
        let mut plain: Vec<String> = Vec::new();
        for word in words.iter().chain(files.iter().copied()) {
            plain.extend(fields(word));
        }
        let inner = inner_text(&plain);
        self.push(plain);
        if let Some(inner) = inner.filter(|_| self.depth < DEEPEST_SHELL) {
            self.depth += 1;
            self.text(&inner);
            self.depth -= 1;
        }
    }

    /// The commands that run so that a word can be made.
    fn inner(&mut self, word: &[Piece]) {
        for piece in word {
            match piece {
                Piece::Output { list, .. } | Piece::Process { list, .. } => self.list(list),
                Piece::Parameter { word, .. } | Piece::Arithmetic(word) | Piece::Opaque(word) => self.inner(word),
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => {}
            }
        }
    }

    fn push(&mut self, words: Vec<String>) {
        match self.commands.len() {
            _ if words.is_empty() => {}
            ..MOST => self.commands.push(words),
            MOST => self.commands.push(vec![TOO_MANY.to_owned()]),
            _ => {}
        }
    }
}

/// The text that a shell among the words is given to run.
fn inner_text(words: &[String]) -> Option<String> {
    let name = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let at = words.iter().position(|word| SHELLS.contains(&name(word).as_str()) || word == "eval")?;
    let rest = words.get(at + 1..)?;
    if words.get(at).is_some_and(|word| word == "eval") {
        return Some(rest.join(" "));
    }
    let code = rest.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'))?;
    rest.get(code + 1).cloned()
}

/// A word as text. An unquoted `$IFS` is a blank, so it makes several of one.
fn fields(word: &[Piece]) -> Vec<String> {
    let mut fields = vec![String::new()];
    for piece in word {
        let Some(last) = fields.last_mut() else { break };
        match piece {
            Piece::Plain(text) | Piece::Quoted(text) => last.push_str(text),
            Piece::Variable { name, quoted: false } if name == "IFS" => fields.push(String::new()),
            Piece::Variable { name, .. } | Piece::Parameter { name, .. } => last.extend(["$", name]),
            Piece::Output { .. } | Piece::Process { .. } => last.push_str("$()"),
            Piece::Arithmetic(_) | Piece::Opaque(_) | Piece::Hole(_) => last.push('$'),
        }
    }
    fields
}

/// The words of a text that cannot be read at all.
fn unquoted(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| word.replace(['"', '\'', '\\'], "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn every_command_stands_for_itself_wherever_it_is_written() {
        for (text, expected) in [
            ("git push \\\n  --force", vec!["git push --force"]),
            ("g'it' \"push\"", vec!["git push"]),
            ("echo $(rm a) `rm b`", vec!["rm a", "rm b", "echo $() $()"]),
            ("if a; then b; else (c); fi", vec!["a", "b", "c"]),
            ("for x in 1 2; do rm $x; done", vec!["1 2", "rm $x"]),
            ("git${IFS}push", vec!["git push"]),
            ("X=$(rm a) true", vec!["rm a", "true"]),
            ("sudo bash -lc 'rm x'", vec!["sudo bash -lc rm x", "rm x"]),
            ("eval rm x", vec!["eval rm x", "rm x"]),
            ("cat <.env >out", vec!["cat .env out"]),
            ("f() { rm x; }; f", vec!["rm x", "f"]),
            ("git push 'never closed", vec!["git push never closed"]),
            ("", vec![]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    #[test]
    fn shells_within_shells_and_endless_lists_end() {
        let nested =
            (0..DEEPEST_SHELL + 2).fold("rm x".to_owned(), |text, _| format!("sh -c {}", crate::single_quoted(&text)));
        assert!(lines(&nested).len() <= DEEPEST_SHELL + 1);
        let many = commands(&"a;".repeat(MOST + 100));
        assert_eq!((many.len(), many.last().unwrap()), (MOST + 1, &vec![TOO_MANY.to_owned()]));
    }
}
