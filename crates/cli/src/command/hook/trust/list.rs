//! `ollm hook trust --list`: what is approved, and whether it still is what was approved.

use ollm_app::{App, AppContext};
use ollm_trust::{Approvable, Approval, Approvals};
use ollm_trust::{Standing, Term};
use serde_json::{Value, json};

use crate::command::ext;
use crate::error::Failure;
use crate::output::Output;
use crate::table::table;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    context.tell_notices(output);
    let (approvals, _) = Approvals::load(&context.approvals(), None);
    if let Some(trouble) = app.engine.trust.trouble() {
        output.tell(&trouble);
    }
    let counting = app.engine.trust.counting();
    let state = |one: &Approval| match counting.find(&one.source, &one.id) {
        Some(_) => state(one, &app),
        None => "unsigned",
    };
    let rows: Vec<(&Approval, &str)> = approvals.list().into_iter().map(|one| (one, state(one))).collect();
    if as_json {
        return output.pretty_json(&rows.iter().map(|(approval, state)| entry(approval, state)).collect());
    }
    if rows.is_empty() {
        return output.line("Nothing is approved.");
    }
    let head = ["ID", "STATE", "FOR", "APPROVED", "BY", "SOURCE"];
    let body = rows.iter().map(|(approval, state)| {
        [
            approval.id.clone(),
            (*state).to_owned(),
            term(&approval.term),
            approval.approved_at.clone(),
            approval.approved_by.clone(),
            approval.source.clone(),
        ]
    });
    output.text(&table(head, body))
}

/// Whether the approved hook is here, and still what was approved.
fn state(approval: &Approval, app: &App) -> &'static str {
    if let Some(standing) = ext::standing(approval, app) {
        return shown(Some(standing));
    }
    let here = app.hooks().into_iter().find(|hook| hook.id() == approval.id && hook.source() == approval.source);
    shown(here.map(|hook| app.standing(&hook)))
}

fn shown(standing: Option<Standing>) -> &'static str {
    match standing {
        None => "elsewhere",
        Some(Standing::Approved | Standing::Limited) => "current",
        Some(Standing::Modified | Standing::Unknown) => "modified",
    }
}

fn entry(approval: &Approval, state: &str) -> Value {
    json!({
        "id": approval.id,
        "source": approval.source,
        "state": state,
        "term": term(&approval.term),
        "approvedAt": approval.approved_at,
        "approvedBy": approval.approved_by,
        "hash": approval.hash.to_string(),
        "digest": approval.digest.to_string(),
    })
}

fn term(term: &Term) -> String {
    match term {
        Term::Always => "always".to_owned(),
        Term::Once => "once".to_owned(),
        Term::Session(None) => "one session".to_owned(),
        Term::Session(Some(session)) => format!("session {session}"),
    }
}
