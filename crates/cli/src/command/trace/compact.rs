//! One line per record.

use ollm_app::trace::Record;
use serde_json::Value;

use crate::command::hook::columns;

const HEAD: [&str; 8] = ["TIME", "ID", "EVENT", "SUBJECT", "VERDICT", "MS", "RAN", "SKIPPED"];

pub(super) fn table(records: &[Record]) -> String {
    let head = HEAD.map(str::to_owned);
    columns(&std::iter::once(head).chain(records.iter().map(row)).collect::<Vec<_>>())
}

pub(super) fn line(record: &Record) -> String {
    columns(&[row(record)])
}

fn row(record: &Record) -> [String; 8] {
    let subject = Some(record.text("subject")).filter(|subject| !subject.is_empty());
    [
        record.text("time").to_owned(),
        record.id().to_owned(),
        record.text("event").to_owned(),
        subject.unwrap_or("-").to_owned(),
        record.verdict("flow").as_str().unwrap_or("?").to_owned(),
        record.value.get("durationMs").and_then(Value::as_f64).map_or_else(|| "?".to_owned(), |ms| format!("{ms:.1}")),
        record.list("hooks").len().to_string(),
        record.list("skipped").len().to_string(),
    ]
}
