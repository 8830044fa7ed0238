//! Evaluates a condition for an event.

use crate::error::{Failure, Fault, quoted};
use crate::fuel::Fuel;
use crate::operate::{binary, mismatch, unary};
use crate::regex::Pattern;
use crate::scope::ConditionScope;
use crate::syntax::{Body, Expr, Link, Macro, Node, Step, StepKind, Variable};
use crate::value::{CelValue, List, Map, equal};

/// One evaluation: the visible values, and the steps that are left.
pub(crate) struct Run<'a> {
    patterns: &'a [Pattern],
    scope: &'a ConditionScope<'a>,
    fuel: Fuel,
    /// The values of the enclosing macro variables.
    locals: Vec<CelValue<'a>>,
}

type EvalResult<'a> = Result<CelValue<'a>, Failure>;

impl<'a> Run<'a> {
    pub(crate) fn new(patterns: &'a [Pattern], scope: &'a ConditionScope<'a>) -> Run<'a> {
        Run { patterns, scope, fuel: Fuel::full(), locals: Vec::new() }
    }

    /// The result of a whole condition.
    pub(crate) fn holds(&mut self, expr: &'a Expr) -> Result<bool, Failure> {
        match self.eval(expr)? {
            CelValue::Bool(answer) => Ok(answer),
            other => Err(Failure { at: expr.at, fault: Fault::NotBool(other.kind().name()) }),
        }
    }

    fn eval(&mut self, expr: &'a Expr) -> EvalResult<'a> {
        let at = expr.at;
        self.fuel.take(1).map_err(placed(at))?;
        match &expr.node {
            Node::Literal(literal) => Ok(literal.into()),
            Node::Variable(variable) => Ok(self.variable(*variable)),
            Node::Local(index) => Ok(self.locals.get(*index).cloned().unwrap_or(CelValue::Null)),
            Node::Type(kind) => Ok(CelValue::Type(*kind)),
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

    fn variable(&self, variable: Variable) -> CelValue<'a> {
        let scope = self.scope;
        match variable {
            Variable::Event => CelValue::borrowed(scope.event),
            Variable::Data => CelValue::Map(Map::Json(scope.data)),
            Variable::Session => CelValue::from(scope.session()),
            Variable::Cwd => CelValue::borrowed(scope.cwd),
            Variable::Env => CelValue::Map(Map::Json(scope.env)),
            Variable::Source => CelValue::borrowed(scope.source),
        }
    }

    fn list(&mut self, at: usize, elements: &'a [Expr]) -> EvalResult<'a> {
        let elements = elements.iter().map(|element| self.eval(element)).collect::<Result<Vec<_>, _>>()?;
        CelValue::list(elements).map_err(placed(at))
    }

    fn map(&mut self, at: usize, entries: &'a [(Expr, Expr)]) -> EvalResult<'a> {
        let mut made: Vec<(CelValue<'a>, CelValue<'a>)> = Vec::new();
        for (key, value) in entries {
            let key_at = key.at;
            let key = self.eval(key)?;
            if !matches!(key, CelValue::Bool(_) | CelValue::Int(_) | CelValue::Uint(_) | CelValue::Text(_)) {
                return Err(Failure { at: key_at, fault: mismatch("{…}", &[&key]) });
            }
            for (other, _) in &made {
                if equal(other, &key, &mut self.fuel).map_err(placed(key_at))? {
                    return Err(Failure { at: key_at, fault: Fault::DoubledKey(shown(&key)) });
                }
            }
            made.push((key, self.eval(value)?));
        }
        CelValue::map(made).map_err(placed(at))
    }

    fn joined(&mut self, operands: &'a [Expr], mut tally: Tally) -> EvalResult<'a> {
        for operand in operands {
            if tally.settles(operand.at, self.eval(operand))? {
                break;
            }
        }
        tally.answer()
    }

    fn chain(&mut self, first: &'a Expr, links: &'a [Link]) -> EvalResult<'a> {
        let mut value = self.eval(first)?;
        for link in links {
            let right = self.eval(&link.right)?;
            self.fuel.take(1).map_err(placed(link.at))?;
            value = binary(link.operator, &value, &right, &mut self.fuel).map_err(placed(link.at))?;
        }
        Ok(value)
    }

    fn choice(&mut self, parts: &'a [Expr; 3]) -> EvalResult<'a> {
        let [condition, yes, no] = parts;
        match self.eval(condition)? {
            CelValue::Bool(true) => self.eval(yes),
            CelValue::Bool(false) => self.eval(no),
            other => Err(Failure { at: condition.at, fault: mismatch("? :", &[&other]) }),
        }
    }

    fn has(&mut self, at: usize, object: &'a Expr, name: &str) -> EvalResult<'a> {
        match self.eval(object)? {
            CelValue::Map(map) => {
                let found = map.field(name, &mut self.fuel).map_err(placed(at))?;
                Ok(CelValue::Bool(found.is_some()))
            }
            other => Err(Failure { at, fault: mismatch("has", &[&other]) }),
        }
    }

    fn path(&mut self, base: &'a Expr, steps: &'a [Step]) -> EvalResult<'a> {
        let mut value = self.eval(base)?;
        for step in steps {
            self.fuel.take(1).map_err(placed(step.at))?;
            value = self.step(value, step)?;
        }
        Ok(value)
    }

    fn step(&mut self, value: CelValue<'a>, step: &'a Step) -> EvalResult<'a> {
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

    fn field(&mut self, value: &CelValue<'a>, name: &str) -> Result<CelValue<'a>, Fault> {
        match value {
            CelValue::Map(map) => map.field(name, &mut self.fuel)?.ok_or_else(|| Fault::NoKey(name.to_owned())),
            other => Err(mismatch(".", &[other])),
        }
    }

    fn index(&mut self, value: &CelValue<'a>, index: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
        match (value, index) {
            (CelValue::List(list), CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_)) => element(list, index),
            (CelValue::Map(map), index) if index.is_key() => {
                map.get(index, &mut self.fuel)?.ok_or_else(|| Fault::NoKey(shown(index)))
            }
            _ => Err(mismatch("[…]", &[value, index])),
        }
    }

    fn matches(&mut self, value: &CelValue<'a>, pattern: usize) -> Result<CelValue<'a>, Fault> {
        match (value, self.patterns.get(pattern)) {
            (CelValue::Text(text), Some(pattern)) => pattern.matches(text, &mut self.fuel).map(CelValue::Bool),
            _ => Err(mismatch("matches", &[value])),
        }
    }

    fn each(&mut self, at: usize, which: Macro, body: &'a Body, range: CelValue<'a>) -> EvalResult<'a> {
        let items = match range {
            CelValue::List(list) => list,
            CelValue::Map(map) => {
                self.fuel.take(map.len()).map_err(placed(at))?;
                let keys = CelValue::list(map.keys()).map_err(placed(at))?;
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
                Ok(CelValue::Bool(count == 1))
            }
            Macro::Map | Macro::Filter => self.collect(at, which, body, &items),
        }
    }

    fn tested(&mut self, at: usize, body: &'a Body, items: &List<'a>, mut tally: Tally) -> EvalResult<'a> {
        for item in items.iter() {
            if tally.settles(at, self.test(at, body, item))? {
                break;
            }
        }
        tally.answer()
    }

    /// The elements that pass the test, transformed if the macro has a transformation.
    fn collect(&mut self, at: usize, which: Macro, body: &'a Body, items: &List<'a>) -> EvalResult<'a> {
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
        CelValue::list(made).map_err(placed(at))
    }

    fn passes(&mut self, at: usize, which: Macro, body: &'a Body, item: &CelValue<'a>) -> Result<bool, Failure> {
        match self.test(at, body, item.clone())? {
            CelValue::Bool(passes) => Ok(passes),
            other => Err(Failure { at, fault: mismatch(which.name(), &[&other]) }),
        }
    }

    fn test(&mut self, at: usize, body: &'a Body, item: CelValue<'a>) -> EvalResult<'a> {
        self.fuel.take(1).map_err(placed(at))?;
        body.test.as_ref().map_or(Ok(CelValue::Bool(true)), |test| self.with(item, test))
    }

    /// Evaluates an expression with one more variable.
    fn with(&mut self, local: CelValue<'a>, expr: &'a Expr) -> EvalResult<'a> {
        self.locals.push(local);
        let answer = self.eval(expr);
        self.locals.pop();
        answer
    }
}

/// Combines the results of `||`, `&&` and their macros: one deciding result wins over the faults of all others.
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

    /// Adds a result, and returns whether the outcome is decided. Running out of steps is a final failure.
    fn settles(&mut self, at: usize, answer: EvalResult<'_>) -> Result<bool, Failure> {
        match answer {
            Ok(CelValue::Bool(answer)) => self.settled = answer == self.settling,
            Ok(other) => self.fail(Failure { at, fault: mismatch(self.operation, &[&other]) }),
            Err(spent) if spent.fault == Fault::Exhausted => return Err(spent),
            Err(failure) => self.fail(failure),
        }
        Ok(self.settled)
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn answer<'a>(self) -> EvalResult<'a> {
        match self.failure {
            Some(failure) if !self.settled => Err(failure),
            _ => Ok(CelValue::Bool(self.settled == self.settling)),
        }
    }
}

fn placed(at: usize) -> impl Fn(Fault) -> Failure {
    move |fault| Failure { at, fault }
}

fn element<'a>(list: &List<'a>, index: &CelValue<'_>) -> Result<CelValue<'a>, Fault> {
    let wanted = match index {
        CelValue::Int(index) => usize::try_from(*index).ok(),
        CelValue::Uint(index) => usize::try_from(*index).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number in this range fits"
        )]
        CelValue::Double(index) if index.fract() == 0.0 && (0.0..1e15).contains(index) => Some(*index as usize),
        _ => None,
    };
    wanted.and_then(|wanted| list.get(wanted)).ok_or_else(|| Fault::NoIndex { index: shown(index), size: list.len() })
}

/// A key or index, for a message.
fn shown(value: &CelValue<'_>) -> String {
    match value {
        CelValue::Bool(value) => value.to_string(),
        CelValue::Int(value) => value.to_string(),
        CelValue::Uint(value) => format!("{value}u"),
        CelValue::Double(value) => value.to_string(),
        CelValue::Text(text) => quoted(text).trim_matches('`').to_owned(),
        other => other.kind().name().to_owned(),
    }
}
