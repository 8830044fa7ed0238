//! From shell text to its commands, in one pass and without backtracking.
//!
//! The grammar is bash's, read strictly: whatever is unusual, unbalanced or ambiguous is an error, and an error means
//! that a person is asked. Nesting is counted, so that no input can exhaust the stack, and the only look-ahead (is
//! `((` arithmetic?) has a budget, so that time grows with the length of the text.

mod lexer;
mod word;

use crate::syntax::{Assign, Body, Command, Joint, List, Piece, Step, Word, bare};
use lexer::Lexer;

/// How deep commands, substitutions and expansions may nest.
const DEEPEST: usize = 100;

/// Why a text could not be read as shell commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It nests deeper than any sensible script.
    TooDeep,
    /// It is not shell grammar, or a corner of it that shells disagree about.
    Syntax,
}

type Parsed<T> = Result<T, Unreadable>;

/// All commands of a script that stands so many levels deep in another one.
pub(crate) fn parse_at(text: &str, depth: usize) -> Parsed<List> {
    let mut lexer = Lexer::new(text, depth);
    let list = lexer.list(&[])?;
    if lexer.at_end() && lexer.documents_read() { Ok(list) } else { Err(Unreadable::Syntax) }
}

/// Words that only mean themselves where a command may begin.
const KEYWORDS: &[&str] = &[
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "case", "esac", "in",
    "function", "{", "}", "!", "[[", "]]", "time", "coproc",
];

impl Lexer {
    /// Steps up to one of `ends` (a keyword), a closing parenthesis, `;;` or the end of the text.
    fn list(&mut self, ends: &[&str]) -> Parsed<List> {
        self.nest(|lexer| {
            let mut steps = Vec::new();
            loop {
                lexer.skip_lines()?;
                if lexer.ends_list(ends) {
                    return Ok(steps);
                }
                let pipeline = lexer.pipeline()?;
                let joint = lexer.joint()?;
                steps.push(Step { pipeline, joint });
                if matches!(joint, Joint::And | Joint::Or) {
                    lexer.skip_lines()?;
                    if lexer.ends_list(ends) {
                        return Err(Unreadable::Syntax);
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

    fn joint(&mut self) -> Parsed<Joint> {
        self.skip_blanks();
        if self.eat("&&") {
            return Ok(Joint::And);
        }
        if self.eat("||") {
            return Ok(Joint::Or);
        }
        if self.ahead(";;") || self.ahead(";&") || self.at(0) == ')' || self.at_end() {
            return Ok(Joint::Then);
        }
        if self.eat("&") {
            return Ok(Joint::Background);
        }
        if self.eat(";") || self.at(0) == '\n' {
            return Ok(Joint::Then);
        }
        Err(Unreadable::Syntax)
    }

    fn pipeline(&mut self) -> Parsed<Vec<Command>> {
        loop {
            self.skip_blanks();
            if self.eat_keyword("time") {
                while self.eat_keyword("-p") || self.eat_keyword("--") {}
            } else if !self.eat_keyword("!") {
                break;
            }
        }
        let mut commands = Vec::new();
        loop {
            if !self.ends_command() {
                commands.push(self.command()?);
            }
            self.skip_blanks();
            if self.ahead("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(commands);
            }
            self.skip_lines()?;
        }
    }

    /// Whether nothing follows, as after a lone `time` or `!`.
    fn ends_command(&mut self) -> bool {
        self.skip_blanks();
        self.at_end() || matches!(self.at(0), '\n' | ';')
    }

    fn command(&mut self) -> Parsed<Command> {
        self.skip_blanks();
        let body = self.nest(Lexer::body)?;
        let simple = matches!(body, Body::Simple { .. } | Body::Function { .. });
        let mut redirects = std::mem::take(&mut self.redirects);
        while !simple && let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(Command { body, redirects })
    }

    fn body(&mut self) -> Parsed<Body> {
        if self.ahead("((")
            && let Some(end) = self.arithmetic_end(2)?
        {
            self.skip(2);
            let words = vec![self.arithmetic(end)?];
            return Ok(Body::Branches { words, lists: Vec::new() });
        }
        if self.eat("(") {
            let list = self.list(&[])?;
            self.need(")")?;
            return Ok(Body::Subshell(list));
        }
        match self.keyword() {
            Some("{") => {
                let list = self.list(&["}"])?;
                self.need_keyword("}")?;
                Ok(Body::Branches { words: Vec::new(), lists: vec![list] })
            }
            Some("if") => self.conditional(),
            Some("while" | "until") => {
                let condition = self.list(&["do"])?;
                Ok(Body::Branches { words: Vec::new(), lists: vec![condition, self.do_group()?] })
            }
            Some("for" | "select") => self.for_loop(),
            Some("case") => self.case(),
            Some("[[") => Ok(Body::Branches { words: self.test()?, lists: Vec::new() }),
            Some("function") => {
                let name = self.function_name()?;
                self.skip_blanks();
                if self.eat("(") {
                    self.skip_blanks();
                    self.need(")")?;
                }
                self.function(name)
            }
            Some("coproc") => self.coprocess(),
            Some(_) => Err(Unreadable::Syntax),
            None => self.simple(),
        }
    }

    fn conditional(&mut self) -> Parsed<Body> {
        let mut lists = vec![self.list(&["then"])?];
        self.need_keyword("then")?;
        loop {
            lists.push(self.list(&["elif", "else", "fi"])?);
            match self.keyword() {
                Some("elif") => {
                    lists.push(self.list(&["then"])?);
                    self.need_keyword("then")?;
                }
                Some("else") => {}
                Some("fi") => return Ok(Body::Branches { words: Vec::new(), lists }),
                _ => return Err(Unreadable::Syntax),
            }
        }
    }

    fn do_group(&mut self) -> Parsed<List> {
        self.skip_lines()?;
        if self.eat_keyword("{") {
            let list = self.list(&["}"])?;
            self.need_keyword("}")?;
            return Ok(list);
        }
        self.need_keyword("do")?;
        let list = self.list(&["done"])?;
        self.need_keyword("done")?;
        Ok(list)
    }

    fn for_loop(&mut self) -> Parsed<Body> {
        self.skip_blanks();
        if self.ahead("((") {
            let end = self.arithmetic_end(2)?.ok_or(Unreadable::Syntax)?;
            self.skip(2);
            let words = vec![self.arithmetic(end)?];
            self.skip_blanks();
            self.eat(";");
            return Ok(Body::Branches { words, lists: vec![self.do_group()?] });
        }
        let name = self.name()?;
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
        let list = self.do_group()?;
        Ok(Body::For { name, words, list })
    }

    fn case(&mut self) -> Parsed<Body> {
        let mut words = vec![self.word()?.ok_or(Unreadable::Syntax)?];
        let mut lists = Vec::new();
        self.skip_lines()?;
        self.need_keyword("in")?;
        loop {
            self.skip_lines()?;
            if self.eat_keyword("esac") {
                return Ok(Body::Branches { words, lists });
            }
            self.eat("(");
            loop {
                words.push(self.word()?.ok_or(Unreadable::Syntax)?);
                self.skip_blanks();
                if !self.eat("|") {
                    break;
                }
            }
            self.need(")")?;
            lists.push(self.list(&["esac"])?);
            let closed = self.eat(";;&") || self.eat(";;") || self.eat(";&");
            if !closed && !self.sees("esac") {
                return Err(Unreadable::Syntax);
            }
        }
    }

    fn coprocess(&mut self) -> Parsed<Body> {
        let command = self.command()?;
        self.skip_blanks();
        // `coproc NAME { …; }`: the name was taken for a command, and what follows for its end.
        if matches!(self.at(0), '{' | '(') {
            return Err(Unreadable::Syntax);
        }
        let step = Step { pipeline: vec![command], joint: Joint::Background };
        Ok(Body::Subshell(vec![step]))
    }

    fn function(&mut self, name: String) -> Parsed<Body> {
        self.skip_lines()?;
        let body = self.command()?;
        if matches!(body.body, Body::Simple { .. }) {
            return Err(Unreadable::Syntax);
        }
        Ok(Body::Function { name, body: Box::new(body) })
    }

    fn simple(&mut self) -> Parsed<Body> {
        let mut assigns = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if words.is_empty()
                && let Some(assign) = self.assignment()?
            {
                assigns.push(assign);
                continue;
            }
            let Some(mut word) = self.word()? else { break };
            if self.at(0) == '(' && !words.is_empty() && bare(&word).is_some_and(|text| text.ends_with('=')) {
                self.skip(1);
                word.push(Piece::Opaque(self.array()?.into_iter().flatten().collect()));
            }
            self.skip_blanks();
            if self.at(0) == '(' {
                let name = bare(&word).filter(|_| words.is_empty() && assigns.is_empty() && redirects.is_empty());
                let name = name.ok_or(Unreadable::Syntax)?.to_owned();
                self.skip(1);
                self.skip_blanks();
                self.need(")")?;
                return self.function(name);
            }
            words.push(word);
        }
        if words.is_empty() && assigns.is_empty() && redirects.is_empty() {
            return Err(Unreadable::Syntax);
        }
        self.redirects = redirects;
        Ok(Body::Simple { assigns, words })
    }

    /// `NAME=`, `NAME+=` or `NAME[…]=` and its value, if one begins here.
    fn assignment(&mut self) -> Parsed<Option<Assign>> {
        self.skip_blanks();
        let Some((name, subscript, length)) = self.assigned_name() else { return Ok(None) };
        self.skip(length);
        let mut others = Vec::new();
        if let Some(subscript) = subscript {
            others.push(self.inner(&subscript)?);
        }
        let append = self.eat("+");
        self.need("=")?;
        if self.eat("(") {
            others.extend(self.array()?);
            return Ok(Some(Assign { name, value: None, others }));
        }
        let value = self.attached_word()?;
        if append || !others.is_empty() {
            others.push(value);
            return Ok(Some(Assign { name, value: None, others }));
        }
        Ok(Some(Assign { name, value: Some(value), others }))
    }

    /// The words of `(…)`, its opening parenthesis eaten.
    fn array(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok(words);
            }
            words.push(self.word()?.ok_or(Unreadable::Syntax)?);
        }
    }

    /// The keyword that stands here, eaten.
    fn keyword(&mut self) -> Option<&'static str> {
        self.skip_blanks();
        KEYWORDS.iter().copied().find(|keyword| self.eat_keyword(keyword))
    }
}
