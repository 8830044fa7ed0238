//! The operators: arithmetic without silent overflow, comparison, membership.

use std::cmp::Ordering;

use crate::error::Fault;
use crate::fuel::Fuel;
use crate::syntax::{Operator, Unary};
use crate::value::{CelValue, List, Order, compare, equal};

/// The result of an operator between two values.
pub(crate) fn binary<'a>(
    operator: Operator,
    left: &CelValue<'a>,
    right: &CelValue<'a>,
    fuel: &mut Fuel,
) -> Result<CelValue<'a>, Fault> {
    let ordered = |fuel: &mut Fuel, wanted: fn(Ordering) -> bool| match compare(left, right, fuel)? {
        Order::Known(order) => Ok(CelValue::Bool(wanted(order))),
        Order::Unordered => Ok(CelValue::Bool(false)),
        Order::None => Err(mismatch(operator.sign(), &[left, right])),
    };
    match operator {
        Operator::Less => ordered(fuel, Ordering::is_lt),
        Operator::LessEqual => ordered(fuel, Ordering::is_le),
        Operator::Greater => ordered(fuel, Ordering::is_gt),
        Operator::GreaterEqual => ordered(fuel, Ordering::is_ge),
        Operator::Equal => equal(left, right, fuel).map(CelValue::Bool),
        Operator::NotEqual => equal(left, right, fuel).map(|equal| CelValue::Bool(!equal)),
        Operator::In => contains(left, right, fuel).map(CelValue::Bool),
        Operator::Add => add(left, right, fuel),
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            arithmetic(operator, left, right)
        }
    }
}

/// The result of `!` or `-` before a value.
pub(crate) fn unary<'a>(sign: Unary, value: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
    match (sign, value) {
        (Unary::Not { twice }, CelValue::Bool(value)) => Ok(CelValue::Bool(*value == twice)),
        (Unary::Minus { twice }, CelValue::Int(value)) => {
            let negative = value.checked_neg().ok_or(Fault::Overflow("-"))?;
            Ok(CelValue::Int(if twice { *value } else { negative }))
        }
        (Unary::Minus { twice }, CelValue::Double(value)) => Ok(CelValue::Double(if twice { *value } else { -value })),
        (Unary::Not { .. }, _) => Err(mismatch("!", &[value])),
        (Unary::Minus { .. }, _) => Err(mismatch("-", &[value])),
    }
}

/// The fault of an operation whose operands have the wrong types.
pub(crate) fn mismatch(operation: &'static str, values: &[&CelValue<'_>]) -> Fault {
    let kinds: Vec<&str> = values.iter().map(|value| value.kind().name()).collect();
    Fault::NoOverload { operation, found: kinds.join(" and ") }
}

fn contains(element: &CelValue<'_>, whole: &CelValue<'_>, fuel: &mut Fuel) -> Result<bool, Fault> {
    match whole {
        CelValue::List(list) => {
            for other in list.iter() {
                if equal(element, &other, fuel)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        CelValue::Map(map) if element.is_key() => Ok(map.get(element, fuel)?.is_some()),
        _ => Err(mismatch("in", &[element, whole])),
    }
}

fn add<'a>(left: &CelValue<'a>, right: &CelValue<'a>, fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
    match (left, right) {
        (CelValue::Text(left), CelValue::Text(right)) => {
            fuel.build(left.len() + right.len())?;
            Ok(CelValue::text([&**left, &**right].concat()))
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            fuel.build(left.len() + right.len())?;
            Ok(CelValue::bytes([&**left, &**right].concat()))
        }
        (CelValue::List(left), CelValue::List(right)) => append(left, right, fuel),
        _ => arithmetic(Operator::Add, left, right),
    }
}

fn append<'a>(left: &List<'a>, right: &List<'a>, fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
    fuel.take(left.len() + right.len())?;
    CelValue::list(left.iter().chain(right.iter()).collect())
}

fn arithmetic<'a>(operator: Operator, left: &CelValue<'a>, right: &CelValue<'a>) -> Result<CelValue<'a>, Fault> {
    let sign = operator.sign();
    let result = match (left, right) {
        (CelValue::Int(left), CelValue::Int(right)) => ints(operator, *left, *right)?.map(CelValue::Int),
        (CelValue::Uint(left), CelValue::Uint(right)) => uints(operator, *left, *right)?.map(CelValue::Uint),
        (CelValue::Double(left), CelValue::Double(right)) if operator != Operator::Remainder => {
            Some(CelValue::Double(doubles(operator, *left, *right)))
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
