//! Parses words into an expression, by the grammar of CEL.
//!
//! Names are looked up at once: an unknown variable, function or macro is an error of the condition, not of the event.

mod names;

use crate::DEEPEST;
use crate::error::{ConditionError, Text, quoted};
use crate::function::{Form, Function};
use crate::lexer::{self, Token, Word};
use crate::regex::Pattern;
use crate::syntax::{Body, Expr, Link, Literal, Macro, Node, Operator, Step, StepKind, Unary, Variable};
use crate::value::CelKind;

/// Operators by precedence, the lowest first; `||` and `&&` are lower than all of them.
const RANKS: &[&[(&str, Operator)]] = &[
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterEqual),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("in", Operator::In),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

/// The expression of a text, and the literal patterns in it.
pub(crate) fn parse(text: &str) -> Result<(Expr, Vec<Pattern>), ConditionError> {
    let words = lexer::words(text)?;
    let mut parser = Parser { text: Text(text), words, next: 0, depth: 0, locals: Vec::new(), patterns: Vec::new() };
    if parser.peek() == &Token::End {
        return Err(parser.text.error(0, "the condition is empty", "write one such as `data.tool_name == 'shell'`"));
    }
    let expr = parser.expr()?;
    if parser.peek() != &Token::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    Ok((expr, parser.patterns))
}

struct Parser<'t> {
    text: Text<'t>,
    words: Vec<Word<'t>>,
    next: usize,
    depth: usize,
    /// The variables of the enclosing macros.
    locals: Vec<&'t str>,
    patterns: Vec<Pattern>,
}

type ParseResult = Result<Expr, ConditionError>;

impl<'t> Parser<'t> {
    fn expr(&mut self) -> ParseResult {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("the condition is nested more than {DEEPEST} levels deep");
            return Err(self.text.error(self.at(), what, "take parentheses away, or do the work in the hook itself"));
        }
        let expr = self.choice();
        self.depth -= 1;
        expr
    }

    fn choice(&mut self) -> ParseResult {
        let condition = self.any()?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.any()?;
        self.expect(":")?;
        let no = self.expr()?;
        Ok(Expr { at: condition.at, node: Node::Choice(Box::new([condition, yes, no])) })
    }

    fn any(&mut self) -> ParseResult {
        self.joined("||", Self::all, Node::Any)
    }

    fn all(&mut self) -> ParseResult {
        self.joined("&&", |parser| parser.ranked(RANKS), Node::All)
    }

    fn joined(
        &mut self,
        sign: &str,
        operand: fn(&mut Self) -> ParseResult,
        node: fn(Vec<Expr>) -> Node,
    ) -> ParseResult {
        let first = operand(self)?;
        if self.peek_sign() != Some(sign) {
            return Ok(first);
        }
        let at = first.at;
        let mut operands = vec![first];
        while self.take(sign) {
            operands.push(operand(self)?);
        }
        Ok(Expr { at, node: node(operands) })
    }

    fn ranked(&mut self, ranks: &[&[(&str, Operator)]]) -> ParseResult {
        let Some((rank, tighter)) = ranks.split_first() else { return self.unary() };
        let first = self.ranked(tighter)?;
        let mut links = Vec::new();
        while let Some(operator) = self.operator(rank) {
            let at = self.at();
            self.next += 1;
            links.push(Link { at, operator, right: self.ranked(tighter)? });
        }
        if links.is_empty() {
            return Ok(first);
        }
        Ok(Expr { at: first.at, node: Node::Chain(Box::new(first), links) })
    }

    fn operator(&self, rank: &[(&str, Operator)]) -> Option<Operator> {
        let sign = self.peek_sign()?;
        rank.iter().find(|(name, _)| *name == sign).map(|(_, operator)| *operator)
    }

    fn unary(&mut self) -> ParseResult {
        let at = self.at();
        let nots = self.repeated("!");
        let mut minuses = if nots == 0 { self.repeated("-") } else { 0 };
        let negative = minuses > 0 && self.negative_number();
        minuses -= usize::from(negative);
        let operand = self.member()?;
        let sign = match (nots, minuses) {
            (0, 0) => return Ok(operand),
            (0, count) => Unary::Minus { twice: count % 2 == 0 },
            (count, _) => Unary::Not { twice: count % 2 == 0 },
        };
        Ok(Expr { at, node: Node::Unary(sign, Box::new(operand)) })
    }

    fn repeated(&mut self, sign: &str) -> usize {
        let mut count = 0;
        while self.take(sign) {
            count += 1;
        }
        count
    }

    /// Merges a minus into the number after it, so that the smallest int can be written.
    fn negative_number(&mut self) -> bool {
        let Some(word) = self.words.get_mut(self.next) else { return false };
        let negative = match &word.token {
            Token::Literal(Literal::Int(value)) => Literal::Int(-value),
            Token::Literal(Literal::Double(value)) => Literal::Double(-value),
            Token::Smallest => Literal::Int(i64::MIN),
            _ => return false,
        };
        word.token = Token::Literal(negative);
        true
    }

    fn member(&mut self) -> ParseResult {
        let base = self.primary()?;
        let at = base.at;
        let (base, mut steps) = match base {
            Expr { node: Node::Path(base, steps), .. } => (base, steps),
            base => (Box::new(base), Vec::new()),
        };
        loop {
            let at = self.at();
            let kind = if self.take(".") {
                self.selection()?
            } else if self.take("[") {
                let index = self.expr()?;
                self.expect("]")?;
                StepKind::Index(index)
            } else {
                break;
            };
            steps.push(Step { at, kind });
        }
        if steps.is_empty() {
            return Ok(*base);
        }
        Ok(Expr { at, node: Node::Path(base, steps) })
    }

    /// The part after a dot.
    fn selection(&mut self) -> Result<StepKind, ConditionError> {
        let at = self.at();
        match self.peek().clone() {
            Token::Field(name) => {
                self.next += 1;
                Ok(StepKind::Field(name.to_owned()))
            }
            Token::Name(name) => {
                self.next += 1;
                if self.take("(") { self.method(at, name) } else { Ok(StepKind::Field(name.to_owned())) }
            }
            Token::Literal(Literal::Bool(_) | Literal::Null) | Token::Sign("in") => {
                Err(self.text.error(at, "a word of the language cannot be a field", "write it as `['in']`"))
            }
            _ => Err(self.unexpected("a field name")),
        }
    }

    fn method(&mut self, at: usize, name: &'t str) -> Result<StepKind, ConditionError> {
        if let Some((_, which)) = Macro::NAMES.iter().find(|(known, _)| *known == name) {
            return self.each(at, *which);
        }
        let signature = self.signature(at, name, Form::Method)?;
        let args = self.list(")")?;
        self.check_count(at, signature, args.len() + 1)?;
        Ok(self.call(at, signature.function, args))
    }

    fn call(&mut self, at: usize, function: Function, mut args: Vec<Expr>) -> StepKind {
        if function == Function::Matches
            && let Some(Expr { node: Node::Literal(Literal::Text(pattern)), .. }) = args.first_mut()
        {
            self.patterns.push(Pattern::new(at, std::mem::take(pattern)));
            return StepKind::Matches(self.patterns.len() - 1);
        }
        StepKind::Call(function, args)
    }

    /// The inside of `all(x, …)` and similar macros.
    fn each(&mut self, at: usize, which: Macro) -> Result<StepKind, ConditionError> {
        let Token::Name(name) = *self.peek() else {
            return Err(self.unexpected("the name of a variable, as in `all(x, x > 0)`"));
        };
        self.check_reserved(name)?;
        self.next += 1;
        self.locals.push(name);
        let mut parts = Vec::new();
        while self.take(",") {
            parts.push(Box::new(self.expr()?));
        }
        self.locals.pop();
        self.expect(")")?;
        let mut parts = parts.into_iter();
        let body = match (which, parts.len()) {
            (Macro::Map, 1) => Body { test: None, result: parts.next() },
            (Macro::Map, 2) => Body { test: parts.next(), result: parts.next() },
            (Macro::All | Macro::Exists | Macro::ExistsOne | Macro::Filter, 1) => {
                Body { test: parts.next(), result: None }
            }
            _ => {
                let what = format!("`{}` takes a variable and an expression", which.name());
                return Err(self.text.error(at, what, format!("write it as in `{}(x, x > 0)`", which.name())));
            }
        };
        Ok(StepKind::Each(which, body))
    }

    fn primary(&mut self) -> ParseResult {
        let at = self.at();
        let node = match self.peek().clone() {
            Token::Literal(literal) => {
                self.next += 1;
                Node::Literal(literal)
            }
            Token::Name(name) => {
                self.next += 1;
                return if self.take("(") { self.function(at, name) } else { self.variable(at, name) };
            }
            Token::Sign("(") => {
                self.next += 1;
                let inner = self.expr()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => {
                self.next += 1;
                Node::List(self.list("]")?)
            }
            Token::Sign("{") => {
                self.next += 1;
                Node::Map(self.entries()?)
            }
            Token::Smallest => {
                return Err(self.text.error(at, "this number is no 64-bit number", "write a minus directly before it"));
            }
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Expr { at, node })
    }

    fn variable(&self, at: usize, name: &str) -> ParseResult {
        let node = if let Some(index) = self.locals.iter().rposition(|local| *local == name) {
            Node::Local(index)
        } else if let Some((_, variable)) = Variable::NAMES.iter().find(|(known, _)| *known == name) {
            Node::Variable(*variable)
        } else if let Some(kind) = CelKind::ALL.iter().find(|kind| kind.name() == name) {
            Node::Type(*kind)
        } else {
            return Err(self.unknown_variable(at, name));
        };
        Ok(Expr { at, node })
    }

    /// `f(a, b)`, which is stored as `a.f(b)`, and `has(a.b)`.
    fn function(&mut self, at: usize, name: &'t str) -> ParseResult {
        if name == "has" {
            return self.has(at);
        }
        let signature = self.signature(at, name, Form::Function)?;
        let mut args = self.list(")")?;
        self.check_count(at, signature, args.len())?;
        if args.is_empty() {
            return Err(self.unexpected("a value"));
        }
        let first = args.remove(0);
        let kind = self.call(at, signature.function, args);
        Ok(Expr { at, node: Node::Path(Box::new(first), vec![Step { at, kind }]) })
    }

    fn has(&mut self, at: usize) -> ParseResult {
        let inner = self.expr()?;
        self.expect(")")?;
        if let Expr { at: start, node: Node::Path(base, mut steps) } = inner
            && let Some(Step { kind: StepKind::Field(name), .. }) = steps.pop()
        {
            let object =
                if steps.is_empty() { base } else { Box::new(Expr { at: start, node: Node::Path(base, steps) }) };
            return Ok(Expr { at, node: Node::Has(object, name) });
        }
        Err(self.text.error(at, "`has` takes a field", "write `has(data.name)`, or `'name' in data` for any key"))
    }

    /// Expressions up to a closing sign; a comma after the last one is allowed.
    fn list(&mut self, close: &'static str) -> Result<Vec<Expr>, ConditionError> {
        let mut elements = Vec::new();
        while !self.take(close) {
            elements.push(self.expr()?);
            let comma = self.take(",");
            if comma && close == ")" && self.peek_sign() == Some(close) {
                return Err(self.unexpected("a value"));
            }
            if !comma && self.peek_sign() != Some(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
        Ok(elements)
    }

    fn entries(&mut self) -> Result<Vec<(Expr, Expr)>, ConditionError> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?));
            if !self.take(",") && self.peek_sign() != Some("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        Ok(entries)
    }
}

/// Inspects words, and reports errors about them.
impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        self.words.get(self.next).map_or(&Token::End, |word| &word.token)
    }

    fn peek_sign(&self) -> Option<&'static str> {
        match self.peek() {
            Token::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn at(&self) -> usize {
        self.words.get(self.next).map_or(self.text.0.len(), |word| word.at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.peek_sign() == Some(sign);
        self.next += usize::from(there);
        there
    }

    fn expect(&mut self, sign: &str) -> Result<(), ConditionError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> ConditionError {
        let wanted = match self.peek() {
            Token::Name("and" | "or" | "not") => "`&&` for and, `||` for or, `!` for not",
            _ => wanted,
        };
        let what = match self.peek() {
            Token::End => "the condition ends early".to_owned(),
            Token::Name(name) | Token::Field(name) => format!("unexpected name {}", quoted(name)),
            Token::Literal(_) | Token::Smallest => "unexpected value".to_owned(),
            Token::Sign(sign) => format!("unexpected `{sign}`"),
        };
        self.text.error(self.at(), what, format!("expected {wanted}"))
    }
}
