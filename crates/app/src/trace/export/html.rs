//! Exports records as one self-contained page: a timeline of each session, and every event in full.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use ollm_store::escape_for_people;

use crate::trace::record::{HookRun, Record, at};
use crate::trace::stats::{HookStats, TraceStats};

/// The page's look, in light and dark.
const STYLE: &str = include_str!("page.css");
/// Hides the events that do not contain the typed words.
const SCRIPT: &str = include_str!("page.js");
/// The page may load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page for a browser; `made` is its time.
pub fn html(records: &[Record], made: &str) -> String {
    let stats = TraceStats::of(records);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>Trace of hooks</title>\n<style>\n{STYLE}</style></head><body>\n<h1>Trace of hooks</h1>\n"
    );
    summary(&stats, made, &mut page);
    page.push_str("<p><input id=\"words\" type=\"search\" placeholder=\"Show only events with …\" autofocus></p>\n");
    for (session, records) in sessions(records) {
        section(session, &records, &mut page);
    }
    let _ = write!(page, "<script>\n{SCRIPT}</script>\n</body></html>\n");
    page
}

fn summary(stats: &TraceStats, made: &str, page: &mut String) {
    let failed: usize = stats.hooks.values().map(|hook| hook.count("failed") + hook.count("timeout")).sum();
    let runs: usize = stats.hooks.values().map(HookStats::runs).sum();
    let (from, to) = stats.span.clone().unwrap_or_default();
    let _ = writeln!(
        page,
        "<p class=\"summary\">{} events, {} refused; {runs} hook runs, {failed} failed; {} to {}; made {}</p>",
        stats.events,
        stats.refused,
        text(&from),
        text(&to),
        text(made),
    );
}

/// The records of each session, ordered by its first record.
fn sessions(records: &[Record]) -> Vec<(&str, Vec<&Record>)> {
    let mut order: Vec<&str> = Vec::new();
    let mut found: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let session = record.text("session");
        if !found.contains_key(session) {
            order.push(session);
        }
        found.entry(session).or_default().push(record);
    }
    order.into_iter().filter_map(|session| Some((session, found.remove(session)?))).collect()
}

fn section(session: &str, records: &[&Record], page: &mut String) {
    let name = if session.is_empty() { "Events without a session".to_owned() } else { format!("Session {session}") };
    let _ = writeln!(page, "<section><h2>{}</h2>", text(&name));
    timeline(records, page);
    for record in records {
        event(record, page);
    }
    page.push_str("</section>\n");
}

/// Every event of a session as a bar on one line; the width is its duration.
fn timeline(records: &[&Record], page: &mut String) {
    const WHOLE: f64 = 1000.0;
    const NARROWEST: f64 = 6.0;
    let start =
        |record: &Record| record.text("time").parse::<Timestamp>().map_or(0.0, |time| time.as_duration().as_secs_f64());
    let took = |record: &Record| record.millis() / 1e3;
    let first = records.iter().map(|record| start(record)).fold(f64::MAX, f64::min);
    let last = records.iter().map(|record| start(record) + took(record)).fold(f64::MIN, f64::max);
    let scale = WHOLE / (last - first).max(1e-3);
    page.push_str("<svg class=\"line\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"timeline\">");
    for record in records {
        let x = ((start(record) - first) * scale).min(WHOLE - NARROWEST);
        let width = (took(record) * scale).max(NARROWEST);
        let _ = write!(
            page,
            "<rect class=\"{}\" x=\"{x:.1}\" y=\"2\" width=\"{width:.1}\" height=\"20\"><title>{} {}</title></rect>",
            colour(record),
            text(record.text("event")),
            text(record.text("subject")),
        );
    }
    page.push_str("</svg>\n");
}

fn colour(record: &Record) -> &'static str {
    match record.verdict("flow").as_str() {
        Some("block" | "halt") => "block",
        Some("ask") => "ask",
        _ if record.runs().any(|run| matches!(run.status, "failed" | "timeout")) => "fail",
        _ => "ok",
    }
}

fn event(record: &Record, page: &mut String) {
    let flow = record.verdict("flow").as_str().unwrap_or("?");
    let _ = writeln!(
        page,
        "<details class=\"{}\"><summary><time>{}</time> <strong>{}</strong> {} <span class=\"flow\">{}</span> \
         <span class=\"ms\">{:.1} ms</span></summary>",
        colour(record),
        text(record.text("time")),
        text(record.text("event")),
        text(record.text("subject")),
        text(flow),
        record.millis(),
    );
    if let Some(reason) = record.verdict("reason").as_str() {
        let _ = writeln!(page, "<p class=\"reason\">{}</p>", text(reason));
    }
    let whole = record.runs().map(|run| run.start + run.millis).fold(record.millis().max(0.1), f64::max);
    page.push_str("<table>");
    record.runs().for_each(|run| row(&run, whole, page));
    for skip in record.list("skipped").iter().filter(|skip| skip.is_object()) {
        let field = |name| text(at(skip, name).as_str().unwrap_or_default());
        let _ = writeln!(
            page,
            "<tr class=\"skip\"><td>{}</td><td>{}</td><td></td><td>{}</td></tr>",
            field("id"),
            field("reason"),
            field("detail"),
        );
    }
    let data = format!("{:#}", at(&record.value, "data"));
    let _ = writeln!(page, "</table><p class=\"id\">{}</p><pre>{}</pre></details>", text(record.id()), text(&data));
}

fn row(run: &HookRun<'_>, whole: f64, page: &mut String) {
    let _ = writeln!(
        page,
        "<tr class=\"{}\"><td title=\"{}\">{}</td><td>{}</td><td class=\"ms\">{:.1} ms</td>\
         <td class=\"track\"><i style=\"margin-left:{:.1}%;width:{:.1}%\"></i>{}</td></tr>",
        text(run.status),
        text(run.id),
        text(run.name),
        text(run.status),
        run.millis,
        run.start / whole * 100.0,
        (run.millis / whole * 100.0).max(0.3),
        run.error.map(|error| format!("<span>{}</span>", text(error))).unwrap_or_default(),
    );
}

/// Text with HTML's special characters escaped, also for attributes, and without characters that hide or reorder text.
fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in escape_for_people(text).chars() {
        match char {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            char => shown.push(char),
        }
    }
    shown
}
