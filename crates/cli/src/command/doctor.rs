//! `ollm doctor`: what is set up, and what keeps it from working.

use std::fmt::Write;

use ollm_app::AppContext;
use ollm_app::doctor::{Area, Examination, Finding, Weight, examine};
use ollm_store::escape_for_people;
use serde_json::{Map, Value, json};

use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let found = examine(context);
    if as_json {
        output.pretty_json(&to_json(&found))?;
    } else {
        output.text(&text(&found))?;
    }
    Ok(if found.has_faults() { FINDING } else { OK })
}

fn text(found: &Examination) -> String {
    let mut text = String::new();
    for area in Area::ALL {
        let findings = || found.findings.iter().filter(|finding| finding.area == area);
        let looked_at = found.looked_at.iter().find(|(known, _)| *known == area).map(|(_, what)| what.as_str());
        let mark = match (findings().any(|finding| finding.weight == Weight::Fault), looked_at) {
            (true, _) => "!",
            (false, None) if findings().next().is_none() => "?",
            (false, _) => " ",
        };
        let what = looked_at.unwrap_or(if mark == "?" { "not looked at" } else { "" });
        let _ = writeln!(text, "{}", format!("{mark} {:<10} {}", area.name(), escape_for_people(what)).trim_end());
        for Finding { weight, what, way_out, .. } in findings() {
            let _ = writeln!(text, "    {}: {}", weight.name(), escape_for_people(what));
            if let Some(way_out) = way_out {
                let _ = writeln!(text, "      {}", escape_for_people(way_out));
            }
        }
    }
    text
}

fn to_json(found: &Examination) -> Value {
    let findings = found.findings.iter().map(|Finding { area, weight, what, way_out, .. }| {
        json!({"area": area.name(), "weight": weight.name(), "what": what, "help": way_out})
    });
    let looked_at: Map<String, Value> =
        found.looked_at.iter().map(|(area, what)| (area.name().to_owned(), json!(what))).collect();
    json!({"findings": findings.collect::<Vec<_>>(), "lookedAt": looked_at})
}
