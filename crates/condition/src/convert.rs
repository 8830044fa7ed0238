//! Conversions between types. `None` means that the types have no conversion; a fault means that this value has none.

use crate::error::Fault;
use crate::fuel::Fuel;
use crate::value::{CelKind, CelValue};

type Converted<'a> = Result<Option<CelValue<'a>>, Fault>;

pub(crate) fn to_bool<'a>(value: &CelValue<'a>) -> Converted<'a> {
    Ok(Some(CelValue::Bool(match value {
        CelValue::Bool(value) => *value,
        CelValue::Text(text) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "false" | "FALSE" | "False" => false,
            _ => return Err(refused(value, CelKind::Bool)),
        },
        _ => return Ok(None),
    })))
}

pub(crate) fn to_int<'a>(value: &CelValue<'a>) -> Converted<'a> {
    let int = match value {
        CelValue::Int(value) => Some(*value),
        CelValue::Uint(value) => i64::try_from(*value).ok(),
        // The smallest int as a double also stands for lower numbers, so the specification excludes it.
        CelValue::Double(value) => {
            truncated(*value).and_then(|value| i64::try_from(value).ok()).filter(|value| *value != i64::MIN)
        }
        CelValue::Text(text) => text.parse().ok(),
        _ => return Ok(None),
    };
    int.map(|int| Some(CelValue::Int(int))).ok_or_else(|| refused(value, CelKind::Int))
}

pub(crate) fn to_uint<'a>(value: &CelValue<'a>) -> Converted<'a> {
    let uint = match value {
        CelValue::Int(value) => u64::try_from(*value).ok(),
        CelValue::Uint(value) => Some(*value),
        CelValue::Double(value) if *value < 0.0 => None,
        CelValue::Double(value) => truncated(*value).and_then(|value| u64::try_from(value).ok()),
        CelValue::Text(text) => Some(text).filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok()),
        _ => return Ok(None),
    };
    uint.map(|uint| Some(CelValue::Uint(uint))).ok_or_else(|| refused(value, CelKind::Uint))
}

pub(crate) fn to_double<'a>(value: &CelValue<'a>) -> Converted<'a> {
    #[expect(clippy::cast_precision_loss, reason = "a double is the nearest number by definition")]
    let double = match value {
        CelValue::Int(value) => Some(*value as f64),
        CelValue::Uint(value) => Some(*value as f64),
        CelValue::Double(value) => Some(*value),
        CelValue::Text(text) => text.parse().ok(),
        _ => return Ok(None),
    };
    double.map(|double| Some(CelValue::Double(double))).ok_or_else(|| refused(value, CelKind::Double))
}

pub(crate) fn to_text<'a>(value: &CelValue<'a>, fuel: &mut Fuel) -> Converted<'a> {
    fuel.take(1)?;
    let text = match value {
        CelValue::Text(_) => return Ok(Some(value.clone())),
        CelValue::Bool(value) => value.to_string(),
        CelValue::Int(value) => value.to_string(),
        CelValue::Uint(value) => value.to_string(),
        CelValue::Double(value) => value.to_string(),
        CelValue::Bytes(bytes) => {
            fuel.build(bytes.len())?;
            String::from_utf8(bytes.to_vec()).map_err(|_| refused(value, CelKind::Text))?
        }
        _ => return Ok(None),
    };
    Ok(Some(CelValue::text(text)))
}

pub(crate) fn to_bytes<'a>(value: &CelValue<'a>, fuel: &mut Fuel) -> Converted<'a> {
    match value {
        CelValue::Bytes(_) => Ok(Some(value.clone())),
        CelValue::Text(text) => {
            fuel.build(text.len())?;
            Ok(Some(CelValue::bytes(text.as_bytes().to_vec())))
        }
        _ => Ok(None),
    }
}

/// The whole part of a double that is not far outside the range of 64-bit numbers.
fn truncated(value: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (value.abs() < 1e20).then_some(value as i128)
}

/// The fault of a failed conversion. It shows no text, because texts may be secrets and faults are logged.
fn refused(value: &CelValue<'_>, wanted: CelKind) -> Fault {
    let value = match value {
        CelValue::Int(value) => value.to_string(),
        CelValue::Uint(value) => value.to_string(),
        CelValue::Double(value) => value.to_string(),
        CelValue::Bytes(_) => "what these bytes hold".to_owned(),
        other => format!("this {}", other.kind().name()),
    };
    Fault::NoConversion { value, wanted: wanted.name() }
}
