//! The parts of the scope that a condition uses.

use serde_json::{Value, json};

use crate::scope::ConditionScope;
use crate::syntax::{Body, Expr, Literal, Node, Step, StepKind, Variable};

/// A part of the scope, with its name in the condition.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenValue {
    /// Its name, as in `data.args.command`.
    pub name: String,
    /// Its value for the event; `None` if the part does not exist.
    pub value: Option<Value>,
}

/// The parts that an expression uses, each once, in the order of the text.
pub(crate) fn seen(expr: &Expr, scope: &ConditionScope<'_>) -> Vec<SeenValue> {
    let mut walk = Walk { scope, seen: Vec::new() };
    walk.expr(expr);
    walk.seen
}

struct Walk<'a> {
    scope: &'a ConditionScope<'a>,
    seen: Vec<SeenValue>,
}

impl Walk<'_> {
    fn expr(&mut self, expr: &Expr) {
        match &expr.node {
            Node::Literal(_) | Node::Local(_) | Node::Type(_) => {}
            Node::Variable(variable) => self.part(*variable, &[], None),
            Node::List(items) | Node::Any(items) | Node::All(items) => items.iter().for_each(|item| self.expr(item)),
            Node::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.expr(key);
                self.expr(value);
            }),
            Node::Unary(_, operand) => self.expr(operand),
            Node::Chain(first, links) => {
                self.expr(first);
                for link in links {
                    self.expr(&link.right);
                }
            }
            Node::Choice(parts) => parts.iter().for_each(|part| self.expr(part)),
            Node::Path(base, steps) => self.path(base, steps),
            Node::Has(object, name) => match &object.node {
                Node::Variable(variable) => self.part(*variable, &[], Some(name)),
                Node::Path(base, steps) => match base.node {
                    Node::Variable(variable) => self.part(variable, steps, Some(name)),
                    _ => self.path(base, steps),
                },
                _ => self.expr(object),
            },
        }
    }

    fn path(&mut self, base: &Expr, steps: &[Step]) {
        match base.node {
            Node::Variable(variable) => self.part(variable, steps, None),
            _ => self.expr(base),
        }
        for step in steps {
            match &step.kind {
                StepKind::Field(_) | StepKind::Matches(_) => {}
                StepKind::Index(index) => self.expr(index),
                StepKind::Call(_, arguments) => arguments.iter().for_each(|argument| self.expr(argument)),
                StepKind::Each(_, Body { test, result }) => {
                    [test, result].into_iter().flatten().for_each(|part| self.expr(part));
                }
            }
        }
    }

    /// Adds the part that a variable and the plain field steps after it name, and `last` as one more field.
    fn part(&mut self, variable: Variable, steps: &[Step], last: Option<&str>) {
        let names = Variable::NAMES.iter().find(|(_, known)| *known == variable);
        let mut name = names.map_or_else(String::new, |(name, _)| (*name).to_owned());
        let mut value = Some(self.variable(variable));
        for field in steps.iter().map_while(field).chain(last) {
            name.push('.');
            name.push_str(field);
            value = value.as_ref().and_then(|value| value.get(field)).cloned();
        }
        if self.seen.iter().all(|known| known.name != name) {
            self.seen.push(SeenValue { name, value });
        }
    }

    fn variable(&self, variable: Variable) -> Value {
        let scope = self.scope;
        match variable {
            Variable::Event => json!(scope.event),
            Variable::Data => json!(scope.data),
            Variable::Session => scope.session().clone(),
            Variable::Cwd => json!(scope.cwd),
            Variable::Env => json!(scope.env),
            Variable::Source => json!(scope.source),
        }
    }
}

/// The field name of a step, if the step is `.name` or `["name"]`.
fn field(step: &Step) -> Option<&str> {
    match &step.kind {
        StepKind::Field(name) | StepKind::Index(Expr { node: Node::Literal(Literal::Text(name)), .. }) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::Condition;

    #[test]
    fn a_condition_names_each_part_that_it_looks_at_once() {
        let data = json!({"args": {"command": "ls", "n": [1, 2]}, "session_id": "s"});
        let (Value::Object(data), env) = (data, Map::from_iter([("CI".to_owned(), "1".into())])) else { return };
        let scope = ConditionScope::new("before_tool", &data, "/work", &env, "user");
        let text = "data.args.command == 'x' || data['args'].command.startsWith(cwd) && has(data.result) \
                    || data.args.n.exists(i, i > 1 && env.CI == '1') || [source, session.id].size() > (event == 'y' ? 1 : 2)";
        let seen = Condition::parse(text).unwrap().values(&scope);
        let seen: Vec<(&str, Option<Value>)> = seen.iter().map(|one| (one.name.as_str(), one.value.clone())).collect();
        assert_eq!(
            seen,
            [
                ("data.args.command", Some(json!("ls"))),
                ("cwd", Some(json!("/work"))),
                ("data.result", None),
                ("data.args.n", Some(json!([1, 2]))),
                ("env.CI", Some(json!("1"))),
                ("source", Some(json!("user"))),
                ("session.id", Some(json!("s"))),
                ("event", Some(json!("before_tool"))),
            ]
        );
    }
}
