//! `ollm doctor`: what is set up, and what keeps it from working.

use std::fmt::Write;

use ollm_app::doctor::{Area, Examination, Finding, Weight, examine, mend};
use ollm_app::{AppContext, refuse_agents};
use ollm_protocol::Code;
use ollm_store::escape_for_people;
use serde_json::{Map, Value, json};

use crate::arguments::DoctorArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(
    DoctorArguments { json, fix }: &DoctorArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    output.busy("looking over what is set up");
    let mut found = examine(context);
    output.idle();
    let mut mended = Vec::new();
    if *fix {
        refuse_agents(context, "mend settings")?;
        mended = mend_all(&found, context, output)?;
        found = examine(context);
    }
    if *json {
        output.pretty_json(&to_json(&found, &mended))?;
    } else {
        output.text(&text(&found))?;
    }
    Ok(if found.has_faults() { FINDING } else { OK })
}

/// Mends what needs no decision, and tells of each.
fn mend_all(found: &Examination, context: &AppContext, output: &mut Output) -> Result<Vec<String>, Failure> {
    let mut mended = Vec::new();
    for finding in &found.findings {
        mended.extend(mend(finding, context)?);
    }
    if mended.is_empty() {
        output.tell("there is nothing that can be mended without you");
    }
    for line in &mended {
        output.tell(line);
    }
    Ok(mended)
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
        for Finding { weight, code, what, way_out, fix, .. } in findings() {
            let code = code.map(|code| format!("[{code}]")).unwrap_or_default();
            let _ = writeln!(text, "    {}{code}: {}", weight.name(), escape_for_people(what));
            if let Some(way_out) = way_out {
                let _ = writeln!(text, "      {}", escape_for_people(way_out));
            }
            if fix.is_some() {
                let _ = writeln!(text, "      `ollm doctor --fix` mends it");
            }
        }
    }
    text
}

fn to_json(found: &Examination, mended: &[String]) -> Value {
    let findings = found.findings.iter().map(|Finding { area, weight, code, what, way_out, fix, .. }| {
        let fixable = fix.is_some();
        json!({"area": area.name(), "weight": weight.name(), "code": code.map(Code::id), "what": what, "help": way_out, "fixable": fixable})
    });
    let looked_at: Map<String, Value> =
        found.looked_at.iter().map(|(area, what)| (area.name().to_owned(), json!(what))).collect();
    json!({"findings": findings.collect::<Vec<_>>(), "lookedAt": looked_at, "mended": mended})
}
