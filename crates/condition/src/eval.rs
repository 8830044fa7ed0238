//! Asking a condition about an event.

use crate::error::{Failure, Fault, quoted};
use crate::fuel::Fuel;
use crate::operate::{binary, mismatch, unary};
use crate::regex::Pattern;
use crate::scope::ConditionScope;
use crate::syntax::{Body, Expr, Link, Macro, Node, Step, StepKind, Variable};
use crate::value::{List, Map, Value, equal};

/// One question: what it can see, what it may still cost.
pub(crate) struct Run<'a> {
    patterns: &'a [Pattern],
    scope: &'a ConditionScope<'a>,
    fuel: Fuel,
    /// The values of the macro variables around this place.
    locals: Vec<Value<'a>>,
}

type Answer<'a> = Result<Value<'a>, Failure>;

impl<'a> Run<'a> {
    pub(crate) fn new(patterns: &'a [Pattern], scope: &'a ConditionScope<'a>) -> Run<'a> {
        Run { patterns, scope, fuel: Fuel::full(), locals: Vec::new() }
    }

    /// The answer of a whole condition.
    pub(crate) fn holds(&mut self, expr: &'a Expr) -> Result<bool, Failure> {
        match self.eval(expr)? {
            Value::Bool(answer) => Ok(answer),
            other => Err(Failure { at: expr.at, fault: Fault::NotBool(other.kind().name()) }),
        }
    }

    fn eval(&mut self, expr: &'a Expr) -> Answer<'a> {
        let at = expr.at;
        self.fuel.take(1).map_err(placed(at))?;
        match &expr.node {
            Node::Literal(literal) => Ok(literal.into()),
            Node::Variable(variable) => Ok(self.variable(*variable)),
            Node::Local(index) => Ok(self.locals.get(*index).cloned().unwrap_or(Value::Null)),
            Node::Type(kind) => Ok(Value::Type(*kind)),
            Node::List(elements) => self.list(at, elements),
            Node::Map(entries) => self.map(at, entries),
            Node::Unary(sign, operand) => unary(*sign, &self.eval(operand)?).map_err(placed(at)),
            Node::Any(operands) => self.joined(operands, Tally::any("||")),
            Node::All(operands) => self.joined(operands, Tally::all("&&")),
            Node::Chain(first, links) => self.chain(first, links),
            Node::Choice(parts) => self.choice(parts),
            Node::Path(base, steps) => self.path(base, steps),
            Node::Has(object, name) => self.has(at, object, name),
        }
    }

    fn variable(&self, variable: Variable) -> Value<'a> {
        let scope = self.scope;
        match variable {
            Variable::Event => Value::borrowed(scope.event),
            Variable::Data => Value::Map(Map::Json(scope.data)),
            Variable::Session => Value::from(scope.session()),
            Variable::Cwd => Value::borrowed(scope.cwd),
            Variable::Env => Value::Map(Map::Json(scope.env)),
            Variable::Source => Value::borrowed(scope.source),
        }
    }

    fn list(&mut self, at: usize, elements: &'a [Expr]) -> Answer<'a> {
        let elements = elements.iter().map(|element| self.eval(element)).collect::<Result<Vec<_>, _>>()?;
        Value::list(elements).map_err(placed(at))
    }

    fn map(&mut self, at: usize, entries: &'a [(Expr, Expr)]) -> Answer<'a> {
        let mut made: Vec<(Value<'a>, Value<'a>)> = Vec::new();
        for (key, value) in entries {
            let key_at = key.at;
            let key = self.eval(key)?;
            if !matches!(key, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Text(_)) {
                return Err(Failure { at: key_at, fault: mismatch("{…}", &[&key]) });
            }
            for (other, _) in &made {
                if equal(other, &key, &mut self.fuel).map_err(placed(key_at))? {
                    return Err(Failure { at: key_at, fault: Fault::DoubledKey(shown(&key)) });
                }
            }
            made.push((key, self.eval(value)?));
        }
        Value::map(made).map_err(placed(at))
    }

    fn joined(&mut self, operands: &'a [Expr], mut tally: Tally) -> Answer<'a> {
        for operand in operands {
            if tally.settles(operand.at, self.eval(operand))? {
                break;
            }
        }
        tally.answer()
    }

    fn chain(&mut self, first: &'a Expr, links: &'a [Link]) -> Answer<'a> {
        let mut value = self.eval(first)?;
        for link in links {
            let right = self.eval(&link.right)?;
            self.fuel.take(1).map_err(placed(link.at))?;
            value = binary(link.operator, &value, &right, &mut self.fuel).map_err(placed(link.at))?;
        }
        Ok(value)
    }

    fn choice(&mut self, parts: &'a [Expr; 3]) -> Answer<'a> {
        let [condition, yes, no] = parts;
        match self.eval(condition)? {
            Value::Bool(true) => self.eval(yes),
            Value::Bool(false) => self.eval(no),
            other => Err(Failure { at: condition.at, fault: mismatch("? :", &[&other]) }),
        }
    }

    fn has(&mut self, at: usize, object: &'a Expr, name: &str) -> Answer<'a> {
        match self.eval(object)? {
            Value::Map(map) => {
                let found = map.field(name, &mut self.fuel).map_err(placed(at))?;
                Ok(Value::Bool(found.is_some()))
            }
            other => Err(Failure { at, fault: mismatch("has", &[&other]) }),
        }
    }

    fn path(&mut self, base: &'a Expr, steps: &'a [Step]) -> Answer<'a> {
        let mut value = self.eval(base)?;
        for step in steps {
            self.fuel.take(1).map_err(placed(step.at))?;
            value = self.step(value, step)?;
        }
        Ok(value)
    }

    fn step(&mut self, value: Value<'a>, step: &'a Step) -> Answer<'a> {
        let at = step.at;
        match &step.kind {
            StepKind::Field(name) => self.field(&value, name).map_err(placed(at)),
            StepKind::Index(index) => {
                let index = self.eval(index)?;
                self.index(&value, &index).map_err(placed(at))
            }
            StepKind::Call(function, args) => {
                let mut values = vec![value];
                for arg in args {
                    values.push(self.eval(arg)?);
                }
                function.call(&values, &mut self.fuel).map_err(placed(at))
            }
            StepKind::Matches(pattern) => self.matches(&value, *pattern).map_err(placed(at)),
            StepKind::Each(which, body) => self.each(at, *which, body, value),
        }
    }

    fn field(&mut self, value: &Value<'a>, name: &str) -> Result<Value<'a>, Fault> {
        match value {
            Value::Map(map) => map.field(name, &mut self.fuel)?.ok_or_else(|| Fault::NoKey(name.to_owned())),
            other => Err(mismatch(".", &[other])),
        }
    }

    fn index(&mut self, value: &Value<'a>, index: &Value<'a>) -> Result<Value<'a>, Fault> {
        match (value, index) {
            (Value::List(list), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => element(list, index),
            (Value::Map(map), index) if index.is_key() => {
                map.get(index, &mut self.fuel)?.ok_or_else(|| Fault::NoKey(shown(index)))
            }
            _ => Err(mismatch("[…]", &[value, index])),
        }
    }

    fn matches(&mut self, value: &Value<'a>, pattern: usize) -> Result<Value<'a>, Fault> {
        match (value, self.patterns.get(pattern)) {
            (Value::Text(text), Some(pattern)) => pattern.matches(text, &mut self.fuel).map(Value::Bool),
            _ => Err(mismatch("matches", &[value])),
        }
    }

    fn each(&mut self, at: usize, which: Macro, body: &'a Body, range: Value<'a>) -> Answer<'a> {
        let items = match range {
            Value::List(list) => list,
            Value::Map(map) => {
                self.fuel.take(map.len()).map_err(placed(at))?;
                let keys = Value::list(map.keys()).map_err(placed(at))?;
                return self.each(at, which, body, keys);
            }
            other => return Err(Failure { at, fault: mismatch(which.name(), &[&other]) }),
        };
        match which {
            Macro::All => self.tested(at, body, &items, Tally::all("all")),
            Macro::Exists => self.tested(at, body, &items, Tally::any("exists")),
            Macro::ExistsOne => {
                let mut count = 0;
                for item in items.iter() {
                    count += usize::from(self.passes(at, which, body, &item)?);
                }
                Ok(Value::Bool(count == 1))
            }
            Macro::Map | Macro::Filter => self.collect(at, which, body, &items),
        }
    }

    fn tested(&mut self, at: usize, body: &'a Body, items: &List<'a>, mut tally: Tally) -> Answer<'a> {
        for item in items.iter() {
            if tally.settles(at, self.test(at, body, item))? {
                break;
            }
        }
        tally.answer()
    }

    /// The elements that pass the test, changed if the body says so.
    fn collect(&mut self, at: usize, which: Macro, body: &'a Body, items: &List<'a>) -> Answer<'a> {
        let mut made = Vec::new();
        for item in items.iter() {
            if !self.passes(at, which, body, &item)? {
                continue;
            }
            made.push(match &body.result {
                Some(result) => self.with(item, result)?,
                None => item,
            });
        }
        Value::list(made).map_err(placed(at))
    }

    fn passes(&mut self, at: usize, which: Macro, body: &'a Body, item: &Value<'a>) -> Result<bool, Failure> {
        match self.test(at, body, item.clone())? {
            Value::Bool(passes) => Ok(passes),
            other => Err(Failure { at, fault: mismatch(which.name(), &[&other]) }),
        }
    }

    fn test(&mut self, at: usize, body: &'a Body, item: Value<'a>) -> Answer<'a> {
        self.fuel.take(1).map_err(placed(at))?;
        body.test.as_ref().map_or(Ok(Value::Bool(true)), |test| self.with(item, test))
    }

    /// Evaluates with one more variable.
    fn with(&mut self, local: Value<'a>, expr: &'a Expr) -> Answer<'a> {
        self.locals.push(local);
        let answer = self.eval(expr);
        self.locals.pop();
        answer
    }
}

/// The answers of `||`, `&&` and their macros: one that settles the matter wins over the faults of all others.
struct Tally {
    operation: &'static str,
    settling: bool,
    settled: bool,
    failure: Option<Failure>,
}

impl Tally {
    fn any(operation: &'static str) -> Tally {
        Tally { operation, settling: true, settled: false, failure: None }
    }

    fn all(operation: &'static str) -> Tally {
        Tally { operation, settling: false, settled: false, failure: None }
    }

    /// Takes one more answer, and says whether the matter is settled. Running out of steps is final.
    fn settles(&mut self, at: usize, answer: Answer<'_>) -> Result<bool, Failure> {
        match answer {
            Ok(Value::Bool(answer)) => self.settled = answer == self.settling,
            Ok(other) => self.fail(Failure { at, fault: mismatch(self.operation, &[&other]) }),
            Err(spent) if spent.fault == Fault::Exhausted => return Err(spent),
            Err(failure) => self.fail(failure),
        }
        Ok(self.settled)
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn answer<'a>(self) -> Answer<'a> {
        match self.failure {
            Some(failure) if !self.settled => Err(failure),
            _ => Ok(Value::Bool(self.settled == self.settling)),
        }
    }
}

fn placed(at: usize) -> impl Fn(Fault) -> Failure {
    move |fault| Failure { at, fault }
}

fn element<'a>(list: &List<'a>, index: &Value<'_>) -> Result<Value<'a>, Fault> {
    let wanted = match index {
        Value::Int(index) => usize::try_from(*index).ok(),
        Value::Uint(index) => usize::try_from(*index).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number in this range fits"
        )]
        Value::Double(index) if index.fract() == 0.0 && (0.0..1e15).contains(index) => Some(*index as usize),
        _ => None,
    };
    wanted.and_then(|wanted| list.get(wanted)).ok_or_else(|| Fault::NoIndex { index: shown(index), size: list.len() })
}

/// A key or index, for a message.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => format!("{value}u"),
        Value::Double(value) => value.to_string(),
        Value::Text(text) => quoted(text).trim_matches('`').to_owned(),
        other => other.kind().name().to_owned(),
    }
}
