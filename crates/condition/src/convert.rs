//! From one type to another. `None` means that there is no such conversion, a fault that this value has none.

use crate::error::Fault;
use crate::fuel::Fuel;
use crate::value::{Kind, Value};

type Converted<'a> = Result<Option<Value<'a>>, Fault>;

pub(crate) fn to_bool<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(Some(Value::Bool(match value {
        Value::Bool(value) => *value,
        Value::Text(text) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "false" | "FALSE" | "False" => false,
            _ => return Err(refused(value, Kind::Bool)),
        },
        _ => return Ok(None),
    })))
}

pub(crate) fn to_int<'a>(value: &Value<'a>) -> Converted<'a> {
    let int = match value {
        Value::Int(value) => Some(*value),
        Value::Uint(value) => i64::try_from(*value).ok(),
        // The least double stands for everything below it as well, so the specification leaves it out.
        Value::Double(value) => {
            truncated(*value).and_then(|value| i64::try_from(value).ok()).filter(|value| *value != i64::MIN)
        }
        Value::Text(text) => text.parse().ok(),
        _ => return Ok(None),
    };
    int.map(|int| Some(Value::Int(int))).ok_or_else(|| refused(value, Kind::Int))
}

pub(crate) fn to_uint<'a>(value: &Value<'a>) -> Converted<'a> {
    let uint = match value {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Uint(value) => Some(*value),
        Value::Double(value) if *value < 0.0 => None,
        Value::Double(value) => truncated(*value).and_then(|value| u64::try_from(value).ok()),
        Value::Text(text) => Some(text).filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok()),
        _ => return Ok(None),
    };
    uint.map(|uint| Some(Value::Uint(uint))).ok_or_else(|| refused(value, Kind::Uint))
}

pub(crate) fn to_double<'a>(value: &Value<'a>) -> Converted<'a> {
    #[expect(clippy::cast_precision_loss, reason = "a double is the nearest number by definition")]
    let double = match value {
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        Value::Text(text) => text.parse().ok(),
        _ => return Ok(None),
    };
    double.map(|double| Some(Value::Double(double))).ok_or_else(|| refused(value, Kind::Double))
}

pub(crate) fn to_text<'a>(value: &Value<'a>, fuel: &mut Fuel) -> Converted<'a> {
    fuel.take(1)?;
    let text = match value {
        Value::Text(_) => return Ok(Some(value.clone())),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bytes(bytes) => {
            fuel.build(bytes.len())?;
            String::from_utf8(bytes.to_vec()).map_err(|_| refused(value, Kind::Text))?
        }
        _ => return Ok(None),
    };
    Ok(Some(Value::text(text)))
}

pub(crate) fn to_bytes<'a>(value: &Value<'a>, fuel: &mut Fuel) -> Converted<'a> {
    match value {
        Value::Bytes(_) => Ok(Some(value.clone())),
        Value::Text(text) => {
            fuel.build(text.len())?;
            Ok(Some(Value::bytes(text.as_bytes().to_vec())))
        }
        _ => Ok(None),
    }
}

/// The whole part of a double that is anywhere near a 64-bit number.
fn truncated(value: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (value.abs() < 1e20).then_some(value as i128)
}

/// Texts are not shown: they may be secrets, and faults are logged.
fn refused(value: &Value<'_>, wanted: Kind) -> Fault {
    let value = match value {
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bytes(_) => "what these bytes hold".to_owned(),
        other => format!("this {}", other.kind().name()),
    };
    Fault::NoConversion { value, wanted: wanted.name() }
}
