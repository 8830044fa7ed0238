//! One record in full, for people.

use std::fmt::Write;

use ollm_app::trace::{Record, at};
use ollm_store::{escape_for_json, one_line};
use serde_json::Value;

use crate::timeline::{BOLD, DIM, GREEN, PLAIN, RED, colour_of};

pub(crate) fn text(record: &Record) -> String {
    let mut text = format!("{BOLD}{}{PLAIN}  {}\n", one_line(record.id()), one_line(record.text("time")));
    head(record, &mut text);
    section("plan", record.list("plan"), &mut text, stage);
    section("hooks", record.list("hooks"), &mut text, hook);
    section("notes", record.list("notes"), &mut text, shown);
    section("not run", record.list("skipped"), &mut text, skip);
    data(record, &mut text);
    text
}

fn head(record: &Record, text: &mut String) {
    let named = |field: &str, before: &str, after: &str| match record.text(field) {
        "" => String::new(),
        value => format!("{before}{}{after}", one_line(value)),
    };
    let event =
        format!("{}{}{}", named("event", "", ""), named("subject", " (", ")"), named("session", ", session ", ""));
    let reason = record.verdict("reason").as_str().map(|reason| format!(": {}", one_line(reason)));
    let changed = if record.verdict("modifiedArgs") == true { ", arguments changed" } else { "" };
    let colour = if record.continues() { GREEN } else { RED };
    let verdict = format!("{colour}{}{PLAIN}{changed}{}", shown(record.verdict("flow")), reason.unwrap_or_default());
    let took = format!("{} ms, by ollm {}", shown(at(&record.value, "durationMs")), named("binary", "", ""));
    let only_where_said = |name, value: String| (!value.is_empty()).then_some((name, value));
    let answered = only_where_said("answered", named("answeredBy", "by the run of ", ""));
    let off = only_where_said("off", named("off", "", ""));
    let unheard = only_where_said("unheard", named("unheard", "", ""));
    let rows = [("event", event), ("folder", named("cwd", "", "")), ("verdict", verdict), ("took", took)];
    for (name, value) in rows.into_iter().chain(unheard).chain(answered).chain(off) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<9}{value}");
    }
}

fn section(name: &str, entries: &[Value], text: &mut String, line: fn(&Value) -> String) {
    if !entries.is_empty() {
        let _ = writeln!(text, "  {BOLD}{name}{PLAIN}");
    }
    for entry in entries {
        // A text among them says that there were more.
        let shown = entry.as_str().map_or_else(|| line(entry), one_line);
        let _ = writeln!(text, "    {shown}");
    }
}

fn stage(ids: &Value) -> String {
    let ids = ids.as_array().map(Vec::as_slice).unwrap_or_default();
    ids.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn hook(hook: &Value) -> String {
    let field = |name: &str| shown(at(hook, name));
    let leaky = if at(hook, "leaky") == true { ", leaky" } else { "" };
    let (id, status, end, flow) = (field("id"), field("status"), end(hook), field("flow"));
    let (start, took) = (field("startMs"), field("durationMs"));
    let colour = colour_of(&status);
    let mut text =
        format!("{id}  {colour}{status}{PLAIN}{end}{leaky}, {flow}, from {start} ms for {took} ms{}", bytes(hook));
    text.push_str(&error(hook));
    if at(hook, "async") == true {
        let _ = write!(text, "\n      async: {}", late(hook.get("late")));
    }
    for warning in at(hook, "warnings").as_array().into_iter().flatten() {
        let _ = write!(text, "\n      warning: {}", shown(warning));
    }
    text
}

/// What came of a background hook.
fn late(late: Option<&Value>) -> String {
    let Some(late) = late else { return "it ran in the background and has left no record yet".to_owned() };
    let (status, took) = (shown(at(late, "status")), shown(at(late, "durationMs")));
    format!("{status}{}, for {took} ms{}{}", end(late), bytes(late), error(late))
}

fn end(hook: &Value) -> String {
    match (at(hook, "exit"), at(hook, "signal")) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, signal) => format!(", signal {}", shown(signal)),
        (exit, _) => format!(", exit {}", shown(exit)),
    }
}

fn bytes(hook: &Value) -> String {
    let field = |name: &str| shown(at(hook, name));
    match at(hook, "bytesIn") {
        Value::Null => String::new(),
        given => format!("; bytes: {} in, {} out, {} err", shown(given), field("bytesOut"), field("bytesErr")),
    }
}

fn error(hook: &Value) -> String {
    at(hook, "error").as_str().map(|error| format!("\n      error: {}", one_line(error))).unwrap_or_default()
}

fn skip(skip: &Value) -> String {
    format!("{DIM}{}  {}: {}{PLAIN}", shown(at(skip, "id")), shown(at(skip, "reason")), shown(at(skip, "detail")))
}

fn data(record: &Record, text: &mut String) {
    let data = at(&record.value, "data");
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        let json = format!("{data:#}");
        let _ = writeln!(text, "  data\n    {}", escape_for_json(&json).replace('\n', "\n    "));
    }
}

/// A value as a person reads it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), one_line)
}
