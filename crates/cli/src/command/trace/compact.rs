//! One line per record.

use ollm_app::trace::Record;
use serde_json::Value;

use crate::table;

const HEAD: [&str; 8] = ["EVENT", "VERDICT", "SUBJECT", "ID", "TIME, UTC", "MS", "RAN", "SKIPPED"];

/// How much of an id tells one record from all others: their beginnings are times, and alike.
const END: usize = 12;

pub(super) fn table(records: &[Record], long: bool) -> String {
    let short = |record: &Record| {
        let mut row = row(record);
        if let [.., id, time, _, _, _] = &mut row
            && !long
        {
            *id = id.get(id.len().saturating_sub(END)..).unwrap_or(id).to_owned();
            *time = moment(time).unwrap_or_else(|| time.clone());
        }
        row
    };
    table::table(HEAD, records.iter().map(short))
}

pub(super) fn line(record: &Record) -> String {
    table::columns(&[row(record)])
}

/// Month, day, and the time to the second.
fn moment(time: &str) -> Option<String> {
    Some(format!("{} {}", time.get(5..10)?, time.get(11..19)?))
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
