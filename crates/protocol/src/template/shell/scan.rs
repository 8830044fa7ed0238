//! Reads a script command by command: which word is the command, which an argument, a pattern, a target.
//!
//! It follows the grammar only as far as positions depend on it. A script that no shell would accept may pass; the
//! shell then stops at the same place. A script that shells accept with different meanings does not pass.

use std::collections::BTreeMap;

use super::command::{self, Command};
use super::word::Word;
use crate::template::{Position, Spot, TemplateError, parse};

const MAX_DEPTH: usize = 100;

/// A variable that was met, named in the error if it turns out to stand in a bad place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) variable: String,
    pub(super) at: Spot,
}

impl Mark {
    pub(super) fn refuse(&self, position: Position) -> TemplateError {
        TemplateError::Position { variable: self.variable.clone(), at: self.at, position }
    }
}

pub(super) struct Scanner<'a> {
    pub(super) source: &'a str,
    pub(super) at: usize,
    pub(super) out: String,
    /// The paths of the variables, in the order of their environment names.
    pub(super) paths: Vec<String>,
    /// Every use of a variable so far, direct or through a shell variable.
    pub(super) marks: Vec<Mark>,
    /// Shell variables that hold a value.
    pub(super) tainted: BTreeMap<String, Mark>,
    /// Set while no variable may appear.
    pub(super) forbidden: Option<Position>,
    /// How many `$(` are open.
    pub(super) substitutions: usize,
    documents: Vec<Document>,
    depth: usize,
}

/// A here-document whose body is still to come.
struct Document {
    end: String,
    strip_tabs: bool,
    expands: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closer {
    End,
    Parenthesis,
}

/// What the next word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Command,
    Argument,
    /// Only a redirection, an operator, or a closing keyword.
    Nothing,
    LoopName,
    LoopIn,
    LoopItem,
    CaseSubject,
    CaseIn,
    PatternStart,
    Pattern,
}

struct Frame {
    expect: Expect,
    command: Command,
    loop_name: String,
    cases: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            out: String::new(),
            paths: Vec::new(),
            marks: Vec::new(),
            tainted: BTreeMap::new(),
            forbidden: None,
            substitutions: 0,
            documents: Vec::new(),
            depth: 0,
        }
    }

    /// The rewritten script, and the paths of its variables.
    pub(super) fn scan(mut self) -> Result<(String, Vec<String>), TemplateError> {
        self.commands(Closer::End)?;
        Ok((self.out, self.paths))
    }

    /// Commands up to and including the parenthesis that closes a `$(`.
    pub(super) fn substitution(&mut self) -> Result<(), TemplateError> {
        self.substitutions += 1;
        self.commands(Closer::Parenthesis)?;
        self.substitutions -= 1;
        Ok(())
    }

    fn commands(&mut self, closer: Closer) -> Result<(), TemplateError> {
        self.deeper()?;
        let opened = self.at;
        let mut frame =
            Frame { expect: Expect::Command, command: Command::default(), loop_name: String::new(), cases: 0 };
        loop {
            self.skip_blanks()?;
            match self.peek() {
                None if closer == Closer::End => break,
                None => return Err(self.unclosed("a parenthesis", opened)),
                Some('#') => self.comment()?,
                Some('\n') => self.newline(&mut frame)?,
                Some('(') => self.open(&mut frame)?,
                Some(')') if self.close(&mut frame, closer)? => break,
                Some(')') => {}
                Some(';' | '&' | '|') => self.operator(&mut frame)?,
                Some('<' | '>') => self.redirection(&mut frame)?,
                Some(_) => self.token(&mut frame)?,
            }
        }
        self.finish(&mut frame)?;
        self.depth -= 1;
        Ok(())
    }

    fn comment(&mut self) -> Result<(), TemplateError> {
        let line = self.rest().split('\n').next().unwrap_or_default();
        // Old shells look for the end of `$(` inside comments, too.
        if self.substitutions > 0 && line.contains(['\'', '"', '`', '\\', '(', ')', '$']) {
            return Err(self.unclear("a comment inside `$(…)`"));
        }
        self.copy(line.len());
        Ok(())
    }

    fn newline(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        if self.substitutions > 0 && self.awaits_document() {
            return Err(self.unclear("a line break inside `$(…)` before a here-document"));
        }
        self.copy(1);
        for document in std::mem::take(&mut self.documents) {
            self.document(&document)?;
        }
        match frame.expect {
            Expect::Command | Expect::Argument | Expect::Nothing | Expect::LoopItem => self.finish(frame),
            Expect::LoopIn | Expect::CaseIn | Expect::PatternStart => Ok(()),
            Expect::LoopName | Expect::CaseSubject | Expect::Pattern => Err(self.unclear("a line break")),
        }
    }

    /// The body of a here-document, up to its end word.
    fn document(&mut self, document: &Document) -> Result<(), TemplateError> {
        while !self.rest().is_empty() {
            let line = self.rest().split('\n').next().unwrap_or_default();
            let text = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
            if text == document.end {
                self.copy(line.len() + 1);
                return Ok(());
            }
            if document.expands && line.ends_with('\\') {
                return Err(self.unclear("a backslash at the end of a line in a here-document"));
            }
            self.copy_plain(line.len(), &Position::HereDocument)?;
            self.copy(1);
        }
        Ok(())
    }

    fn open(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        match frame.expect {
            Expect::PatternStart => {
                self.copy(1);
                frame.expect = Expect::Pattern;
            }
            Expect::Command if frame.command.is_empty() => {
                if self.rest().starts_with("((") {
                    return Err(self.unclear("`((`"));
                }
                self.copy(1);
                self.commands(Closer::Parenthesis)?;
                frame.expect = Expect::Nothing;
            }
            Expect::Argument if frame.command.is_bare_word() => {
                self.copy(1);
                self.skip_blanks()?;
                if self.peek() != Some(')') {
                    return Err(self.unclear("`(`"));
                }
                self.copy(1);
                frame.command = Command::default();
                frame.expect = Expect::Command;
            }
            _ => return Err(self.unclear("`(`")),
        }
        Ok(())
    }

    /// Whether this parenthesis closes the frame, and not just a case pattern.
    fn close(&mut self, frame: &mut Frame, closer: Closer) -> Result<bool, TemplateError> {
        if frame.expect == Expect::Pattern {
            self.copy(1);
            frame.expect = Expect::Command;
            return Ok(false);
        }
        if closer == Closer::End || frame.cases > 0 {
            return Err(self.unclear("`)`"));
        }
        self.copy(1);
        Ok(true)
    }

    fn operator(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        let rest = self.rest();
        if frame.expect == Expect::Pattern && rest.starts_with('|') && !rest.starts_with("||") {
            self.copy(1);
            return Ok(());
        }
        if ["&>", "|&", ";&", ";;&"].iter().any(|operator| rest.starts_with(operator)) {
            return Err(self.unclear("`&>`, `|&` or `;&`"));
        }
        if rest.starts_with(";;") {
            if frame.cases == 0 {
                return Err(self.unclear("`;;`"));
            }
            self.finish(frame)?;
            frame.expect = Expect::PatternStart;
            self.copy(2);
            return Ok(());
        }
        match frame.expect {
            Expect::Command | Expect::Argument | Expect::Nothing | Expect::LoopItem => self.finish(frame)?,
            Expect::LoopIn if rest.starts_with(';') => frame.expect = Expect::Command,
            _ => return Err(self.unclear("an operator")),
        }
        self.copy(if rest.starts_with("&&") || rest.starts_with("||") { 2 } else { 1 });
        Ok(())
    }

    fn redirection(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        let rest = self.rest();
        if !matches!(frame.expect, Expect::Command | Expect::Argument | Expect::Nothing) {
            return Err(self.unclear("a redirection"));
        }
        if ["<<<", "<(", ">("].iter().any(|operator| rest.starts_with(operator)) {
            return Err(self.unclear("`<<<`, `<(…)` or `>(…)`"));
        }
        frame.command.redirected = true;
        // Another descriptor's number stands right before the sign; `name3<` only looks like one, which does no harm.
        let before = self.source.get(..self.at).unwrap_or_default();
        let stdin = !before.ends_with(|c: char| c.is_ascii_digit() && c != '0');
        if rest.starts_with("<<") {
            frame.command.input |= stdin;
            return self.document_end();
        }
        let double = ["<&", ">&", "<>", ">|", ">>"].iter().any(|operator| rest.starts_with(operator));
        self.copy(if double { 2 } else { 1 });
        self.skip_blanks()?;
        let target = self.word()?;
        if target.source.is_empty() {
            return Err(self.unclear("a redirection without a target"));
        }
        if let (true, Some(mark)) = (rest.starts_with("<&") || rest.starts_with(">&"), &target.mark) {
            return Err(mark.refuse(Position::Descriptor));
        }
        if rest.starts_with('<') && frame.expect != Expect::Nothing {
            match target.mark {
                None => frame.command.input |= stdin,
                Some(mark) => frame.command.input_mark = Some(mark),
            }
        }
        Ok(())
    }

    /// `<<` and its end word, which must be a plain or plainly quoted name.
    fn document_end(&mut self) -> Result<(), TemplateError> {
        if self.substitutions > 0 {
            return Err(self.unclear("a here-document inside `$(…)`"));
        }
        let strip_tabs = self.rest().starts_with("<<-");
        self.copy(if strip_tabs { 3 } else { 2 });
        self.skip_blanks()?;
        let start = self.at;
        let word = self.word()?;
        if let Some(mark) = word.mark {
            return Err(mark.refuse(Position::HereDocument));
        }
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if word.text.is_empty() || !word.text.chars().all(name) {
            return Err(self.unclear_at("an unusual here-document end", start));
        }
        self.documents.push(Document { end: word.text, strip_tabs, expands: word.plain });
        Ok(())
    }

    fn token(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        let start = self.at;
        let word = self.word()?;
        if self.rest().starts_with(['<', '>']) {
            if word.source.len() == 1 && word.source.starts_with(|c: char| c.is_ascii_digit()) {
                return Ok(());
            }
            let numeric = word.source.chars().all(|c| c.is_ascii_digit());
            if numeric || word.source.starts_with('{') && word.source.ends_with('}') {
                return Err(self.unclear_at("a redirection of an unusual descriptor", start));
            }
        }
        match frame.expect {
            Expect::Command if frame.command.is_empty() && word.plain => self.keyword(frame, word, start),
            Expect::Nothing if is_closing(&word) => self.keyword(frame, word, start),
            Expect::Nothing => Err(self.unclear_at("a word after the end of a compound command", start)),
            Expect::Command => self.leading(frame, word, start),
            Expect::Argument if is_reserved(&word) && frame.command.is_timed() => {
                Err(self.unclear_at("a keyword after `time`", start))
            }
            Expect::Argument => {
                frame.command.push(word);
                Ok(())
            }
            Expect::LoopName => {
                if let Some(mark) = &word.mark {
                    return Err(mark.refuse(Position::Name("for".to_owned())));
                }
                frame.loop_name = word.text;
                frame.expect = Expect::LoopIn;
                Ok(())
            }
            Expect::LoopIn => self.loop_in(frame, &word, start),
            Expect::LoopItem => {
                if let Some(mark) = word.mark {
                    self.tainted.insert(frame.loop_name.clone(), mark);
                }
                Ok(())
            }
            Expect::CaseSubject => {
                frame.expect = Expect::CaseIn;
                Ok(())
            }
            Expect::CaseIn if word.plain && word.text == "in" => {
                frame.cases += 1;
                frame.expect = Expect::PatternStart;
                Ok(())
            }
            Expect::CaseIn => Err(self.unclear_at("`case` without `in`", start)),
            Expect::PatternStart if word.plain && word.text == "esac" => self.keyword(frame, word, start),
            // Old shells take the parenthesis after a bare pattern for the end of `$(`.
            Expect::PatternStart if self.substitutions > 0 => {
                Err(self.unclear_at("a case pattern without `(` inside `$(…)`", start))
            }
            Expect::PatternStart => {
                frame.expect = Expect::Pattern;
                Ok(())
            }
            Expect::Pattern if word.plain && word.text == "esac" => Err(self.unclear_at("`esac`", start)),
            Expect::Pattern => Ok(()),
        }
    }

    /// A plain word where a keyword may stand.
    fn keyword(&mut self, frame: &mut Frame, word: Word, start: usize) -> Result<(), TemplateError> {
        frame.expect = match word.text.as_str() {
            "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "{" | "!" => Expect::Command,
            "fi" | "done" | "}" => Expect::Nothing,
            "for" => Expect::LoopName,
            "case" => Expect::CaseSubject,
            "esac" if frame.cases > 0 => {
                frame.cases -= 1;
                Expect::Nothing
            }
            "esac" => return Err(self.unclear_at("`esac`", start)),
            "function" | "select" | "coproc" | "[[" => {
                return Err(self.unclear_at("`function`, `select`, `coproc` or `[[`", start));
            }
            _ => return self.leading(frame, word, start),
        };
        Ok(())
    }

    /// An assignment before the command word, or that word itself.
    fn leading(&mut self, frame: &mut Frame, word: Word, start: usize) -> Result<(), TemplateError> {
        if let Some(name) = word.assigned() {
            self.assign(name, word.mark.as_ref())?;
            frame.command.assigns = true;
            return Ok(());
        }
        let name = word.source.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if name.len() < word.source.len() && (name.starts_with('[') || name.starts_with("+=")) {
            return Err(self.unclear_at("an array element or `+=`", start));
        }
        frame.command.push(word);
        frame.expect = Expect::Argument;
        Ok(())
    }

    fn assign(&mut self, name: &str, mark: Option<&Mark>) -> Result<(), TemplateError> {
        let Some(mark) = mark else { return Ok(()) };
        if command::decides_what_runs(name) {
            return Err(mark.refuse(Position::Environment(name.to_owned())));
        }
        self.tainted.insert(name.to_owned(), mark.clone());
        Ok(())
    }

    fn loop_in(&mut self, frame: &mut Frame, word: &Word, start: usize) -> Result<(), TemplateError> {
        frame.expect = match word.text.as_str() {
            "in" if word.plain => Expect::LoopItem,
            "do" if word.plain => Expect::Command,
            _ => return Err(self.unclear_at("`for` without `in`", start)),
        };
        Ok(())
    }

    /// The end of a simple command: now its words can be judged.
    fn finish(&mut self, frame: &mut Frame) -> Result<(), TemplateError> {
        let command = std::mem::take(&mut frame.command);
        frame.expect = Expect::Command;
        if let Some(construct) = command.redefines() {
            return Err(self.unclear(construct));
        }
        command::check(&command, self.marks.last())?;
        // Some shells keep the last argument in `$_`.
        if let Some(mark) = command.words.iter().find_map(|word| word.mark.clone()) {
            self.tainted.insert("_".to_owned(), mark);
        }
        for word in command.declarations() {
            if let Some(name) = word.assigned() {
                self.assign(name, word.mark.as_ref())?;
            }
        }
        Ok(())
    }

    /// Blanks and line continuations between tokens.
    fn skip_blanks(&mut self) -> Result<(), TemplateError> {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t']) {
                self.copy(1);
            } else if let Some(after) = rest.strip_prefix("\\\n") {
                // Glued on both sides it could join two halves of a token.
                let before = self.source.get(..self.at).unwrap_or_default();
                if !(before.is_empty() || before.ends_with([' ', '\t', '\n']) || after.starts_with([' ', '\t'])) {
                    return Err(self.unclear("a line continuation within a word"));
                }
                self.copy(2);
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn deeper(&mut self) -> Result<(), TemplateError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TemplateError::TooDeep { at: Spot::of(self.source, self.at) });
        }
        Ok(())
    }

    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn awaits_document(&self) -> bool {
        !self.documents.is_empty()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Copies so many bytes to the script.
    pub(super) fn copy(&mut self, length: usize) {
        self.out.push_str(self.rest().get(..length).unwrap_or_default());
        self.at += length;
    }

    /// Copies text that must not hold a variable.
    pub(super) fn copy_plain(&mut self, length: usize, position: &Position) -> Result<(), TemplateError> {
        let end = self.at + length;
        while self.at < end {
            if let Some((path, _)) = parse::variable(self.rest()) {
                return Err(self.mark(path).refuse(position.clone()));
            }
            self.copy(self.peek().map_or(1, char::len_utf8));
        }
        Ok(())
    }

    pub(super) fn mark(&self, path: &str) -> Mark {
        Mark { variable: path.to_owned(), at: Spot::of(self.source, self.at) }
    }

    pub(super) fn unclear(&self, construct: &'static str) -> TemplateError {
        self.unclear_at(construct, self.at)
    }

    pub(super) fn unclosed(&self, opened: &'static str, at: usize) -> TemplateError {
        TemplateError::Unclosed { opened, at: Spot::of(self.source, at) }
    }

    fn unclear_at(&self, construct: &'static str, at: usize) -> TemplateError {
        TemplateError::Unclear { construct, at: Spot::of(self.source, at) }
    }
}

fn is_reserved(word: &Word) -> bool {
    let opening = ["if", "while", "until", "for", "case", "{", "!", "function", "select", "coproc", "[["];
    is_closing(word) || word.plain && opening.contains(&word.text.as_str())
}

/// A keyword that may follow the end of a compound command without an operator.
fn is_closing(word: &Word) -> bool {
    let closing = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];
    word.plain && closing.contains(&word.text.as_str())
}
