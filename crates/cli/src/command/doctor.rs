//! `ollm doctor`: shows what is set up, and what does not work.

use std::fmt::Write;

use ollm_app::doctor::{Area, Examination, Finding, Weight, examine, mend};
use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::Problem;
use ollm_protocol::Code;
use ollm_store::escape_for_people;
use serde_json::{Map, Value, json};

use crate::arguments::DoctorArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::{Output, shown_width};
use crate::problem;
use crate::timeline::{BOLD, GREEN, PLAIN, RED, YELLOW};

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

/// The hint for findings that need no decision.
const FIXED: &str = "`ollm doctor --fix` mends it";

/// Applies all fixes that need no decision, and reports each.
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
        let (mark, colour) = match (findings().any(|finding| finding.weight == Weight::Fault), looked_at) {
            (true, _) => ("!", RED),
            (false, None) if findings().next().is_none() => ("?", YELLOW),
            (false, _) => (" ", GREEN),
        };
        let what = looked_at.unwrap_or(if mark == "?" { "not looked at" } else { "" });
        let (name, what) = (area.name(), escape_for_people(what));
        let line = format!(
            "{colour}{mark}{PLAIN} {BOLD}{name}{PLAIN}{} {what}",
            " ".repeat(10_usize.saturating_sub(name.len()))
        );
        let _ = writeln!(text, "{}", line.trim_end());
        for Finding { weight, code, what, way_out, fix, problem, .. } in findings() {
            if let (Some(problem), Some(width)) = (problem, shown_width()) {
                let problem = Problem { help: way_out.clone(), remedy: None, ..Problem::clone(problem) };
                text.extend(
                    problem::render(&problem, width.saturating_sub(4)).lines().flat_map(|line| ["    ", line, "\n"]),
                );
                continue;
            }
            let code = code.map(|code| format!("[{code}]")).unwrap_or_default();
            let colour = if *weight == Weight::Fault { RED } else { YELLOW };
            let _ = writeln!(text, "    {colour}{}{code}{PLAIN}: {}", weight.name(), escape_for_people(what));
            if let Some(way_out) = way_out {
                let _ = writeln!(text, "      {}", escape_for_people(way_out));
            }
            if fix.is_some() {
                let _ = writeln!(text, "      {FIXED}");
            }
        }
    }
    text
}

fn to_json(found: &Examination, mended: &[String]) -> Value {
    let findings = found.findings.iter().map(|Finding { area, weight, code, what, way_out, fix, .. }| {
        let fixable = fix.is_some();
        let way_out = way_out.as_deref().or(fixable.then_some(FIXED));
        json!({"area": area.name(), "weight": weight.name(), "code": code.map(Code::id), "what": what, "help": way_out, "fixable": fixable})
    });
    let looked_at: Map<String, Value> =
        found.looked_at.iter().map(|(area, what)| (area.name().to_owned(), json!(what))).collect();
    json!({"findings": findings.collect::<Vec<_>>(), "lookedAt": looked_at, "mended": mended})
}
