//! Parses shell text into its commands, in one pass and without backtracking.
//!
//! The grammar is bash's, read strictly: everything unusual, unbalanced or ambiguous is an error. Text that bash and
//! other shells read differently is noted separately from the tree. Nesting is counted, so that no input can exhaust
//! the stack. The only look-ahead (is `((` arithmetic?) has a budget, so that time grows with the length of the text.

mod lexer;
mod literal;
mod word;

use std::ops::Range;

use crate::tree::{Assign, Body, Command, Elements, List, ListOperator, Piece, Step, Word, bare};
pub(crate) use lexer::Lexer;
use lexer::is_name;
pub(crate) use literal::LineEnd;

/// How deep commands, substitutions and expansions may nest.
pub const DEEPEST: usize = 100;

/// Why a text could not be read as shell commands; each offset is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// It nests deeper than any sensible script.
    TooDeep {
        /// The offset where the limit was exceeded.
        at: usize,
    },
    /// Something is never closed.
    Unclosed {
        /// What was opened.
        opened: &'static str,
        /// Where it was opened.
        at: usize,
    },
    /// It is not shell grammar, or a detail that shells interpret differently.
    Syntax {
        /// The construct found there.
        construct: &'static str,
        /// Its offset.
        at: usize,
    },
}

impl ParseError {
    /// The offset in bytes.
    pub fn at(&self) -> usize {
        match *self {
            ParseError::TooDeep { at } | ParseError::Unclosed { at, .. } | ParseError::Syntax { at, .. } => at,
        }
    }
}

pub(crate) type ParseResult<T> = Result<T, ParseError>;

/// How the text around a hole is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// Not at all.
    None,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// In double quotes, in the pattern of a `${name#pattern}`.
    Pattern,
}

/// The position of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// In a word, quoted like this.
    Word(Quoting),
    Comment,
    Arithmetic,
    Backticks,
    HereDocument,
    /// After a backslash.
    Escaped,
    AfterDollar,
    /// In the name or the operator of a `${…}`.
    ParameterName,
    /// In an unquoted `${name=…}`.
    UnquotedDefault,
    /// In a `${…}` within the pattern of another.
    NestedPattern,
    /// In the name of the variable of a loop.
    LoopName,
}

/// Results of parsing other than the tree.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The first construct that shells read differently, and its offset.
    pub(crate) unclear: Option<(&'static str, usize)>,
    /// The context of each hole; `None` if parsing stopped before it.
    pub(crate) contexts: Vec<Option<Context>>,
}

impl Findings {
    fn new(holes: usize) -> Findings {
        Findings { unclear: None, contexts: vec![None; holes] }
    }

    /// The first context found for a hole counts. Text inside backticks or a here-document is parsed again separately.
    fn place(&mut self, hole: usize, context: Context) {
        if let Some(known) = self.contexts.get_mut(hole) {
            known.get_or_insert(context);
        }
    }
}

/// All commands of a script that is nested this many levels deep in another one.
///
/// ```
/// use ollm_shell::{Body, bare, parse};
/// let list = parse("cd /tmp && ls -l", 0).unwrap();
/// let Body::Simple { words, .. } = &list[1].pipeline[0].body else { panic!() };
/// assert_eq!(words.iter().map(|word| bare(word)).collect::<Vec<_>>(), [Some("ls"), Some("-l")]);
/// assert!(parse("echo 'never closed", 0).is_err());
/// ```
pub fn parse(text: &str, depth: usize) -> Result<List, ParseError> {
    Lexer::new(text, &[], depth).script()
}

/// Whether other words may replace these, given in the order of the text. They must not be in backticks, here-documents
/// and similar places, where quotes have another meaning.
///
/// ```
/// use ollm_shell::replaceable;
/// assert_eq!(replaceable("sh a; `b`", &[3..4, 7..8]), [true, false]);
/// ```
pub fn replaceable(text: &str, words: &[Range<usize>]) -> Vec<bool> {
    let (_, findings) = parse_with_holes(text, words);
    findings.contexts.iter().map(|context| *context == Some(Context::Word(Quoting::None))).collect()
}

/// The commands of a text with holes, and the other findings.
pub(crate) fn parse_with_holes(text: &str, holes: &[Range<usize>]) -> (ParseResult<List>, Findings) {
    let mut lexer = Lexer::new(text, holes, 0);
    let list = lexer.script();
    (list, lexer.findings)
}

/// Words that are keywords only where a command may begin.
const KEYWORDS: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "case", "esac", "in",
    "function", "{", "}", "!", "[[", "]]", "time", "coproc",
];

/// Builtins whose arguments are assignments.
const DECLARERS: &[&str] = &["export", "readonly", "local"];

/// Keywords that may follow the end of a compound command without an operator.
const CLOSING: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

impl Lexer {
    /// The commands of the whole text.
    fn script(&mut self) -> ParseResult<List> {
        let list = self.list(&[])?;
        if !self.at_end() {
            return self.wrong("an operator");
        }
        self.read_documents()?;
        Ok(list)
    }

    /// Steps up to one of `ends` (keywords), a closing parenthesis, `;;` or the end of the text.
    fn list(&mut self, ends: &[&str]) -> ParseResult<List> {
        self.nest(|lexer| {
            // Most lists are in substitutions and have one step.
            let mut steps = Vec::with_capacity(1);
            loop {
                lexer.skip_lines()?;
                if lexer.ends_list(ends) {
                    return Ok(steps);
                }
                let pipeline = lexer.pipeline()?;
                let joint = lexer.joint(&pipeline)?;
                steps.push(Step { pipeline, joint });
                if matches!(joint, ListOperator::And | ListOperator::Or) {
                    lexer.skip_lines()?;
                    if lexer.ends_list(ends) {
                        return lexer.wrong("an operator");
                    }
                }
            }
        })
    }

    fn ends_list(&mut self, ends: &[&str]) -> bool {
        self.skip_blanks();
        self.at_end()
            || self.at(0) == ')'
            || self.ahead(";;")
            || self.ahead(";&")
            || ends.iter().any(|end| self.sees(end))
    }

    fn joint(&mut self, pipeline: &[Command]) -> ParseResult<ListOperator> {
        self.skip_blanks();
        if self.eat("&&") {
            return Ok(ListOperator::And);
        }
        if self.eat("||") {
            return Ok(ListOperator::Or);
        }
        if self.ahead(";;") || self.ahead(";&") || self.at(0) == ')' || self.at_end() {
            return Ok(ListOperator::Then);
        }
        if self.eat("&") {
            return Ok(ListOperator::Background);
        }
        if self.eat(";") || self.at(0) == '\n' {
            return Ok(ListOperator::Then);
        }
        let compound = pipeline.last().is_some_and(|command| !matches!(command.body, Body::Simple { .. }));
        if compound && CLOSING.iter().any(|keyword| self.sees(keyword)) {
            return Ok(ListOperator::Then);
        }
        self.wrong("a word after the end of a command")
    }

    fn pipeline(&mut self) -> ParseResult<Vec<Command>> {
        loop {
            self.skip_blanks();
            if !matches!(self.at(0), 't' | '!') {
                break;
            }
            if self.eat_keyword("time") {
                while self.eat_keyword("-p") || self.eat_keyword("--") {}
                if self.at(0) == '-' || self.at(0) == '(' || KEYWORDS.iter().any(|keyword| self.sees(keyword)) {
                    self.unclear("an option or a keyword after `time`");
                }
            } else if !self.eat_keyword("!") {
                break;
            }
        }
        // Most pipelines have one command.
        let mut commands = Vec::with_capacity(1);
        loop {
            if !self.ends_command() {
                commands.push(self.command()?);
            }
            self.skip_blanks();
            if self.ahead("|&") {
                self.unclear("`&>`, `|&` or `;&`");
            }
            if self.ahead("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(commands);
            }
            self.skip_lines()?;
        }
    }

    /// Whether the command ends here, as after a lone `time` or `!`.
    fn ends_command(&mut self) -> bool {
        self.skip_blanks();
        self.at_end() || matches!(self.at(0), '\n' | ';')
    }

    fn command(&mut self) -> ParseResult<Command> {
        self.skip_blanks();
        let body = self.nest(Lexer::body)?;
        let simple = matches!(body, Body::Simple { .. } | Body::Function { .. });
        let mut redirects = std::mem::take(&mut self.redirects);
        while !simple && let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(Command { body, redirects })
    }

    fn body(&mut self) -> ParseResult<Body> {
        let opened = self.offset();
        if self.ahead("((") {
            self.unclear("`((`");
            if let Some(end) = self.arithmetic_end(2)? {
                self.skip(2);
                let words = vec![self.arithmetic(end)?];
                return Ok(Body::Branches { words, lists: Vec::new(), repeats: false });
            }
        }
        if self.eat("(") {
            let list = self.list(&[])?;
            self.close(opened)?;
            return Ok(Body::Subshell(list));
        }
        let keyword = self.keyword();
        if matches!(keyword, Some("function" | "select" | "coproc" | "[[")) {
            self.unclear_at("`function`, `select`, `coproc` or `[[`", opened);
        }
        match keyword {
            Some("{") => {
                let list = self.list(&["}"])?;
                self.need_keyword("}", opened)?;
                Ok(Body::Branches { words: Vec::new(), lists: vec![list], repeats: false })
            }
            Some("if") => self.conditional(opened),
            Some("while" | "until") => {
                let condition = self.list(&["do"])?;
                let lists = vec![condition, self.do_group(opened)?];
                Ok(Body::Branches { words: Vec::new(), lists, repeats: true })
            }
            Some("for" | "select") => self.for_loop(opened),
            Some("case") => self.case(opened),
            Some("[[") => Ok(Body::Branches { words: self.test(opened)?, lists: Vec::new(), repeats: false }),
            Some("function") => {
                let name = self.function_name()?;
                self.skip_blanks();
                let parenthesis = self.offset();
                if self.eat("(") {
                    self.close(parenthesis)?;
                }
                self.function(name)
            }
            Some("coproc") => self.coprocess(),
            Some(_) => self.wrong("a keyword"),
            None => self.simple(),
        }
    }

    fn conditional(&mut self, opened: usize) -> ParseResult<Body> {
        let mut lists = vec![self.list(&["then"])?];
        self.need_keyword("then", opened)?;
        loop {
            lists.push(self.list(&["elif", "else", "fi"])?);
            match self.keyword() {
                Some("elif") => {
                    lists.push(self.list(&["then"])?);
                    self.need_keyword("then", opened)?;
                }
                Some("else") => {}
                Some("fi") => return Ok(Body::Branches { words: Vec::new(), lists, repeats: false }),
                _ if self.at_end() => return Err(ParseError::Unclosed { opened: "a compound command", at: opened }),
                _ => return self.wrong("a keyword"),
            }
        }
    }

    fn do_group(&mut self, opened: usize) -> ParseResult<List> {
        self.skip_lines()?;
        if self.sees("{") {
            self.unclear("a loop without `do`");
        }
        if self.eat_keyword("{") {
            let list = self.list(&["}"])?;
            self.need_keyword("}", opened)?;
            return Ok(list);
        }
        self.need_keyword("do", opened)?;
        let list = self.list(&["done"])?;
        self.need_keyword("done", opened)?;
        Ok(list)
    }

    fn for_loop(&mut self, opened: usize) -> ParseResult<Body> {
        self.skip_blanks();
        if self.ahead("((") {
            self.unclear("`((`");
            let Some(end) = self.arithmetic_end(2)? else { return self.wrong("`((`") };
            self.skip(2);
            let words = vec![self.arithmetic(end)?];
            self.skip_blanks();
            self.eat(";");
            return Ok(Body::Branches { words, lists: vec![self.do_group(opened)?], repeats: true });
        }
        let name = self.name();
        if let Some(hole) = self.hole(0) {
            self.findings.place(hole, Context::LoopName);
        }
        let name = name?;
        self.skip_lines()?;
        let mut words = None;
        if self.eat_keyword("in") {
            let mut values = Vec::new();
            while let Some(word) = self.word()? {
                values.push(word);
            }
            words = Some(values);
        }
        self.skip_blanks();
        self.eat(";");
        let list = self.do_group(opened)?;
        Ok(Body::For { name, words, list })
    }

    fn case(&mut self, opened: usize) -> ParseResult<Body> {
        let mut words = vec![self.needed_word()?];
        let mut lists = Vec::new();
        self.need_keyword("in", opened)?;
        loop {
            self.skip_lines()?;
            if self.eat_keyword("esac") {
                return Ok(Body::Branches { words, lists, repeats: false });
            }
            if self.at_end() {
                return Err(ParseError::Unclosed { opened: "a compound command", at: opened });
            }
            let start = self.offset();
            // Old shells treat the parenthesis after a bare pattern as the end of `$(`.
            if !self.eat("(") && self.substitutions > 0 {
                self.unclear("a case pattern without `(` inside `$(…)`");
            }
            loop {
                let word = self.needed_word()?;
                if bare(&word) == Some("esac") {
                    self.unclear_at("`esac`", word.span.start);
                }
                words.push(word);
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.close(start)?;
            lists.push(self.list(&["esac"])?);
            if self.ahead(";&") || self.ahead(";;&") {
                self.unclear("`&>`, `|&` or `;&`");
            }
            let closed = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            if !closed && !self.sees("esac") && !self.at_end() {
                return self.wrong("an operator");
            }
        }
    }

    fn coprocess(&mut self) -> ParseResult<Body> {
        self.skip_blanks();
        self.skip(self.coprocess_name());
        let command = self.command()?;
        self.skip_blanks();
        // What is no name was read as a command, which ends at the brace.
        if matches!(self.at(0), '{' | '(') {
            return self.wrong("`coproc`");
        }
        // It reads text that the shell writes into it later, so an unknown command stands before it in the pipeline.
        let writer = Command { body: Body::Simple { assigns: Vec::new(), words: Vec::new() }, redirects: Vec::new() };
        let step = Step { pipeline: vec![writer, command], joint: ListOperator::Background };
        Ok(Body::Subshell(vec![step]))
    }

    /// How long the name is in `coproc NAME { …; }` or `coproc NAME (…)`; zero where none stands here.
    fn coprocess_name(&self) -> usize {
        let is_blank = |at: usize| matches!(self.at(at), ' ' | '\t');
        let mut length = 0;
        while is_name(self.at(length), length == 0) {
            length += 1;
        }
        let mut body = length;
        while is_blank(body) {
            body += 1;
        }
        let opens = match self.at(body) {
            '(' => true,
            '{' => is_blank(body + 1) || self.at(body + 1) == '\n',
            _ => false,
        };
        if opens && body > length { length } else { 0 }
    }

    fn function(&mut self, name: String) -> ParseResult<Body> {
        self.skip_lines()?;
        let body = self.command()?;
        if matches!(body.body, Body::Simple { .. }) {
            return self.wrong("a function without a compound command");
        }
        Ok(Body::Function { name, body: Box::new(body) })
    }

    fn simple(&mut self) -> ParseResult<Body> {
        let mut assigns = Vec::new();
        // Few commands have more words, and a small allocation is cheap to free.
        let mut words: Vec<Word> = Vec::with_capacity(3);
        let mut redirects = Vec::new();
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let assigns_more = words.first().and_then(|word| bare(word)).is_none_or(|word| DECLARERS.contains(&word));
            if assigns_more && self.opens_subscript() {
                self.unclear("an array element or `+=`");
            }
            if words.is_empty()
                && let Some(assign) = self.assignment()?
            {
                assigns.push(assign);
                continue;
            }
            let Some(mut word) = self.word()? else { break };
            let text = bare(&word);
            if self.at(0) == '(' && !words.is_empty() && text.is_some_and(|text| text.ends_with('=')) {
                let array = self.array()?;
                word.pieces.push(Piece::Opaque(array.into_iter().fold(Word::default(), joined)));
            }
            self.skip_blanks();
            if self.at(0) == '(' {
                let name = bare(&word).filter(|_| words.is_empty() && assigns.is_empty() && redirects.is_empty());
                let Some(name) = name.map(str::to_owned) else { return self.wrong("`(`") };
                let opened = self.offset();
                self.skip(1);
                self.close(opened)?;
                return self.function(name);
            }
            words.push(word);
        }
        if words.is_empty() && assigns.is_empty() && redirects.is_empty() {
            return self.wrong("an operator");
        }
        self.redirects = redirects;
        Ok(Body::Simple { assigns, words })
    }

    /// `NAME=`, `NAME+=` or `NAME[…]=` and its value, if one begins here.
    fn assignment(&mut self) -> ParseResult<Option<Assign>> {
        self.skip_blanks();
        let Some((name, subscript, length)) = self.assigned_name() else { return Ok(None) };
        let start = self.offset();
        self.skip(length);
        let mut others = Vec::new();
        if let Some(subscript) = subscript {
            others.push(self.inner(subscript)?);
        }
        let append = self.eat("+");
        if append || !others.is_empty() {
            self.unclear_at("an array element or `+=`", start);
        }
        self.skip("=".len());
        if self.at(0) == '(' {
            let is_whole = others.is_empty();
            others.extend(self.array()?);
            let plain = is_whole && !others.iter().any(has_key);
            let elements = plain.then_some(if append { Elements::More } else { Elements::All });
            return Ok(Some(Assign { name, value: None, others, elements }));
        }
        let value = self.attached_word()?;
        if append || !others.is_empty() {
            others.push(value);
            return Ok(Some(Assign { name, value: None, others, elements: None }));
        }
        Ok(Some(Assign { name, value: Some(value), others, elements: None }))
    }

    /// The words of `(…)`.
    fn array(&mut self) -> ParseResult<Vec<Word>> {
        let opened = self.offset();
        self.unclear("`(`");
        self.skip(1);
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok(words);
            }
            if self.at_end() {
                return Err(ParseError::Unclosed { opened: "a parenthesis", at: opened });
            }
            words.push(self.needed_word()?);
        }
    }

    fn needed_word(&mut self) -> ParseResult<Word> {
        match self.word()? {
            Some(word) => Ok(word),
            None => self.wrong("an operator"),
        }
    }

    /// Consumes the keyword at this position.
    fn keyword(&mut self) -> Option<&'static str> {
        self.skip_blanks();
        let first = self.at(0);
        // Most commands begin with another letter.
        if !matches!(first, 'c'..='f' | 'i' | 's'..='u' | 'w' | '{' | '}' | '!' | '[' | ']') {
            return None;
        }
        KEYWORDS.iter().copied().find(|keyword| keyword.starts_with(first) && self.eat_keyword(keyword))
    }
}

/// Whether an element of an array says where it stands: `[key]=value`.
fn has_key(word: &Word) -> bool {
    matches!(word.first(), Some(Piece::Plain(text)) if text.starts_with('['))
}

/// Joins two words into one; the boundary between them does not matter.
fn joined(mut word: Word, next: Word) -> Word {
    word.pieces.extend(next.pieces);
    word
}
