//! Lists every command that a shell text could run, as plain words, for comparison with patterns.
//!
//! Quotes are removed; text that only a running shell can expand stays as written. Some commands are listed separately
//! as well: those in substitutions, subshells and branches, behind wrappers such as `sudo`, in the text of `sh -c`, and
//! in here-documents for a shell. In doubt there is one command too many, never one too few.

use crate::line::split_loosely;
use crate::read::parse;
use crate::shells::{is_shell, program_name};
use crate::tree::{Assign, Body, Command, List, Piece, Redirect, Word};
use crate::wrapper::{is_assignment, wrapper_named};

/// How many levels of shell text within shell text are read.
const DEEPEST_SHELL: usize = 4;
/// The most commands; if there are more, the last one is [`TOO_MANY`].
const MOST: usize = 4096;
/// Stands for the commands that were left out.
const TOO_MANY: &str = "…";

/// The commands of a text, each with its words; files of redirections are among the words.
///
/// ```
/// use ollm_shell::commands;
/// let found = commands("cd x && git 'push' --force >log; sh -c 'rm -rf build'");
/// let lines: Vec<String> = found.iter().map(|words| words.join(" ")).collect();
/// assert_eq!(lines, ["cd x", "git push --force log", "sh -c rm -rf build", "rm -rf build"]);
/// ```
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = FoundCommands { commands: Vec::new(), depth: 0 };
    found.text(text);
    found.commands
}

struct FoundCommands {
    commands: Vec<Vec<String>>,
    depth: usize,
}

impl FoundCommands {
    fn text(&mut self, text: &str) {
        match parse(text, 0) {
            Ok(list) => self.list(&list),
            // Text that no shell would accept may still be read by another program.
            Err(_) => self.push(split_loosely(text).unwrap_or_else(|_| unquoted(text))),
        }
    }

    fn list(&mut self, list: &List) {
        list.iter().flat_map(|step| &step.pipeline).for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &Command) {
        let redirects = command.redirects.as_slice();
        match &command.body {
            Body::Simple { assigns, words } => self.simple(assigns, words, redirects),
            Body::Branches { words, lists, .. } => {
                self.simple(&[], words, redirects);
                for list in lists {
                    self.list(list);
                }
            }
            Body::Subshell(list) => {
                self.simple(&[], &[], redirects);
                self.list(list);
            }
            Body::For { words, list, .. } => {
                self.simple(&[], words.as_deref().unwrap_or_default(), redirects);
                self.list(list);
            }
            Body::Function { body, .. } => {
                self.simple(&[], &[], redirects);
                self.command(body);
            }
        }
    }

    fn simple(&mut self, assigns: &[Assign], words: &[Word], redirects: &[Redirect]) {
        let values = assigns.iter().flat_map(|assign| assign.value.iter().chain(&assign.others));
        let files = redirects.iter().filter_map(Redirect::word);
        for word in values.chain(words).chain(files.clone()) {
            self.inner(word);
        }
        let plain: Vec<String> = words.iter().chain(files).flat_map(|word| fields(word)).collect();
        let inner = inner_text(&plain).or_else(|| fed_text(&plain, redirects));
        let behind = behind_wrappers(&plain).map(<[String]>::to_vec);
        self.push(plain);
        self.push(behind.unwrap_or_default());
        if let Some(inner) = inner.filter(|_| self.depth < DEEPEST_SHELL) {
            self.depth += 1;
            self.text(&inner);
            self.depth -= 1;
        }
    }

    /// The commands that run to produce a word.
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

/// The text that a shell among the words runs from its arguments.
fn inner_text(words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| is_shell(word) || word == "eval")?;
    let rest = words.get(at + 1..)?;
    if words.get(at).is_some_and(|word| word == "eval") {
        return Some(rest.join(" "));
    }
    let code = rest.iter().position(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'))?;
    rest.get(code + 1).cloned()
}

/// The text that a shell among the words reads from a here-document or a here-string.
fn fed_text(words: &[String], redirects: &[Redirect]) -> Option<String> {
    let is_read = words.iter().any(|word| is_shell(word));
    let fed = redirects.iter().find(|redirect| matches!(redirect, Redirect::Text { .. } | Redirect::Document { .. }));
    Some(fields(fed.filter(|_| is_read)?.word()?).join(" "))
}

/// The command after `sudo`, `env`, `timeout` and other wrappers, without their assignments.
fn behind_wrappers(words: &[String]) -> Option<&[String]> {
    let mut rest = words;
    while let Some(wrapper) = rest.first().and_then(|first| wrapper_named(program_name(first))) {
        rest = rest.get(wrapper.carried(rest, |word| (word, false)).at..)?;
        rest = rest.get(rest.iter().take_while(|word| is_assignment(word)).count()..)?;
    }
    (rest.len() < words.len()).then_some(rest)
}

/// A word as text. An unquoted `$IFS` is a blank, so it splits the word.
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

/// The words of an unreadable text.
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
            ("sudo bash -lc 'rm x'", vec!["sudo bash -lc rm x", "bash -lc rm x", "rm x"]),
            ("env A=1 timeout -k 5 10 rm x", vec!["env A=1 timeout -k 5 10 rm x", "rm x"]),
            ("sudo -n", vec!["sudo -n"]),
            ("sh <<E\nrm x\nE", vec!["sh rm x\n", "rm x"]),
            ("ssh host sh <<<'rm x'", vec!["ssh host sh rm x", "sh rm x", "rm x"]),
            ("cat <<E\nrm x\nE", vec!["cat rm x\n"]),
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
