//! The table of cases: what must not pass, and what must.
//!
//! Every case is the command of a shell call in a project below the home. `cargo test -p ollm-guard cases -- --nocapture`
//! prints the rates.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::HashMap;

use ollm_protocol::{Flow, Verdict};

use super::{first, second};

/// The commands of one kind.
fn commands(kind: &str) -> Vec<String> {
    let mut cases: HashMap<String, Vec<String>> = serde_json::from_str(include_str!("cases.json")).unwrap();
    cases.remove(kind).unwrap()
}

/// What both guards say together.
pub(crate) fn both(command: &str) -> Verdict {
    let (first, second) = (first(command), second(command));
    if first.flow >= second.flow { first } else { second }
}

/// At least so many per cent of a kind are judged as they should be.
#[expect(clippy::print_stdout, reason = "the rates are to be seen")]
fn rate(kind: &str, least: usize, right: impl Fn(Flow) -> bool) {
    let commands = commands(kind);
    let wrong: Vec<String> = commands
        .iter()
        .map(|command| (command, both(command)))
        .filter(|(_, verdict)| !right(verdict.flow))
        .map(|(command, verdict)| format!("{command:?} is {} {:?}", verdict.flow.name(), verdict.reasons))
        .collect();
    let held = commands.len() - wrong.len();
    println!("{kind}: {held} of {}", commands.len());
    assert!(held * 100 >= commands.len() * least, "{kind}: {held} of {}\n{}", commands.len(), wrong.join("\n"));
}

#[test]
fn every_destructive_case_is_refused_or_asked_about() {
    rate("destructive", 100, |flow| flow >= Flow::Ask);
}

#[test]
fn every_tampering_case_is_refused_or_asked_about() {
    rate("tampering", 100, |flow| flow >= Flow::Ask);
}

#[test]
fn ordinary_cases_pass_without_a_question() {
    rate("ordinary", 100, |flow| flow < Flow::Ask);
}
