//! The operators: arithmetic without silent overflow, comparison, membership.

use std::cmp::Ordering;

use crate::error::Fault;
use crate::fuel::Fuel;
use crate::syntax::{Operator, Unary};
use crate::value::{List, Order, Value, compare, equal};

/// The result of an operator between two values.
pub(crate) fn binary<'a>(
    operator: Operator,
    left: &Value<'a>,
    right: &Value<'a>,
    fuel: &mut Fuel,
) -> Result<Value<'a>, Fault> {
    let ordered = |fuel: &mut Fuel, wanted: fn(Ordering) -> bool| match compare(left, right, fuel)? {
        Order::Known(order) => Ok(Value::Bool(wanted(order))),
        Order::Unordered => Ok(Value::Bool(false)),
        Order::None => Err(mismatch(operator.sign(), &[left, right])),
    };
    match operator {
        Operator::Less => ordered(fuel, Ordering::is_lt),
        Operator::LessEqual => ordered(fuel, Ordering::is_le),
        Operator::Greater => ordered(fuel, Ordering::is_gt),
        Operator::GreaterEqual => ordered(fuel, Ordering::is_ge),
        Operator::Equal => equal(left, right, fuel).map(Value::Bool),
        Operator::NotEqual => equal(left, right, fuel).map(|equal| Value::Bool(!equal)),
        Operator::In => contains(left, right, fuel).map(Value::Bool),
        Operator::Add => add(left, right, fuel),
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            arithmetic(operator, left, right)
        }
    }
}

/// The result of `!` or `-` before a value.
pub(crate) fn unary<'a>(sign: Unary, value: &Value<'a>) -> Result<Value<'a>, Fault> {
    match (sign, value) {
        (Unary::Not { twice }, Value::Bool(value)) => Ok(Value::Bool(*value == twice)),
        (Unary::Minus { twice }, Value::Int(value)) => {
            let negative = value.checked_neg().ok_or(Fault::Overflow("-"))?;
            Ok(Value::Int(if twice { *value } else { negative }))
        }
        (Unary::Minus { twice }, Value::Double(value)) => Ok(Value::Double(if twice { *value } else { -value })),
        (Unary::Not { .. }, _) => Err(mismatch("!", &[value])),
        (Unary::Minus { .. }, _) => Err(mismatch("-", &[value])),
    }
}

/// The fault of an operation on values it does not take.
pub(crate) fn mismatch(operation: &'static str, values: &[&Value<'_>]) -> Fault {
    let kinds: Vec<&str> = values.iter().map(|value| value.kind().name()).collect();
    Fault::NoOverload { operation, found: kinds.join(" and ") }
}

fn contains(element: &Value<'_>, whole: &Value<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    match whole {
        Value::List(list) => {
            for other in list.iter() {
                if equal(element, &other, fuel)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) if element.is_key() => Ok(map.get(element, fuel)?.is_some()),
        _ => Err(mismatch("in", &[element, whole])),
    }
}

fn add<'a>(left: &Value<'a>, right: &Value<'a>, fuel: &mut Fuel) -> Result<Value<'a>, Fault> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            fuel.build(left.len() + right.len())?;
            Ok(Value::text([&**left, &**right].concat()))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            fuel.build(left.len() + right.len())?;
            Ok(Value::bytes([&**left, &**right].concat()))
        }
        (Value::List(left), Value::List(right)) => append(left, right, fuel),
        _ => arithmetic(Operator::Add, left, right),
    }
}

fn append<'a>(left: &List<'a>, right: &List<'a>, fuel: &mut Fuel) -> Result<Value<'a>, Fault> {
    fuel.take(left.len() + right.len())?;
    Value::list(left.iter().chain(right.iter()).collect())
}

fn arithmetic<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Fault> {
    let sign = operator.sign();
    let result = match (left, right) {
        (Value::Int(left), Value::Int(right)) => ints(operator, *left, *right)?.map(Value::Int),
        (Value::Uint(left), Value::Uint(right)) => uints(operator, *left, *right)?.map(Value::Uint),
        (Value::Double(left), Value::Double(right)) if operator != Operator::Remainder => {
            Some(Value::Double(doubles(operator, *left, *right)))
        }
        _ => return Err(mismatch(sign, &[left, right])),
    };
    result.ok_or(Fault::Overflow(sign))
}

fn ints(operator: Operator, left: i64, right: i64) -> Result<Option<i64>, Fault> {
    Ok(match operator {
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(Fault::ByZero(operator.sign())),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => left.checked_add(right),
    })
}

fn uints(operator: Operator, left: u64, right: u64) -> Result<Option<u64>, Fault> {
    Ok(match operator {
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(Fault::ByZero(operator.sign())),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
        _ => left.checked_add(right),
    })
}

fn doubles(operator: Operator, left: f64, right: f64) -> f64 {
    match operator {
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left + right,
    }
}
