//! One line per record.

use ollm_app::trace::Record;
use serde_json::Value;

use crate::table;

const HEAD: [&str; 8] = ["EVENT", "VERDICT", "SUBJECT", "ID", "TIME", "MS", "RAN", "SKIPPED"];

/// How much of an id tells one record from all others: their beginnings are times, and alike.
const END: usize = 12;

pub(super) fn table(records: &[Record], long: bool) -> String {
    let short = |record: &Record| {
        let mut row = row(record);
        if let Some(id) = row.get_mut(3).filter(|_| !long) {
            *id = id.get(id.len().saturating_sub(END)..).unwrap_or(id).to_owned();
        }
        row
    };
    table::table(HEAD, records.iter().map(short))
}

pub(super) fn line(record: &Record) -> String {
    table::columns(&[row(record)])
}

fn row(record: &Record) -> [String; 8] {
    let subject = Some(record.text("subject")).filter(|subject| !subject.is_empty());
    [
        record.text("event").to_owned(),
        record.verdict("flow").as_str().unwrap_or("?").to_owned(),
        subject.unwrap_or("-").to_owned(),
        record.id().to_owned(),
        record.text("time").to_owned(),
        record.value.get("durationMs").and_then(Value::as_f64).map_or_else(|| "?".to_owned(), |ms| format!("{ms:.1}")),
        record.list("hooks").len().to_string(),
        record.list("skipped").len().to_string(),
    ]
}
