//! What a dialect writes, it reads back: whole, or as the projection stated here.

use ollm_protocol::dialect::{AGENT, GATE, OLLM, RPC};
use ollm_protocol::{Dialect, End, Event, EventKind, Flow, Request, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{event, kind, verdict};

use crate::{HOOK, cases, said_at};

fn trip(dialect: &dyn Dialect, event: &Event) -> Event {
    dialect.read_event(&dialect.write_event(event, &HOOK)).unwrap().event
}

/// `gate` has two places for the session's id, and says by `changes.type` which file event it is.
fn gate_event(mut event: Event) -> Event {
    let inner = event.data.get("session").and_then(|session| session.get("id")).cloned();
    match (event.data.get("session_id").cloned(), inner) {
        (Some(id), None) => event.data.entry("session").or_insert(json!({}))["id"] = id,
        (None, Some(id)) => _ = event.data.insert("session_id".to_owned(), id),
        _ => {}
    }
    let word = match event.kind {
        EventKind::FileCreated => "created",
        EventKind::FileEdited => "edited",
        EventKind::FileDeleted => "deleted",
        _ => return event,
    };
    event.data.entry("changes").or_insert(json!({}))["type"] = word.into();
    event
}

/// `rpc` counts time in whole milliseconds since 1970.
fn rpc_event(mut event: Event) -> Event {
    if let Some(Value::String(timestamp)) = event.data.get_mut("timestamp") {
        let moment: jiff::Timestamp = timestamp.parse().unwrap();
        *timestamp = jiff::Timestamp::from_millisecond(moment.as_millisecond()).unwrap().to_string();
    }
    event
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn an_event_survives_ollm_whole(event in event()) {
        prop_assert_eq!(trip(OLLM, &event), event);
    }

    #[test]
    fn an_event_survives_gate_with_its_session_and_change_filled_in(event in event()) {
        prop_assert_eq!(trip(GATE, &event), gate_event(event));
    }

    #[test]
    fn an_event_survives_rpc_to_the_millisecond(event in event()) {
        prop_assert_eq!(trip(RPC, &event), rpc_event(event));
    }

    #[test]
    fn an_event_survives_agent_whole(event in event()) {
        prop_assert_eq!(trip(AGENT, &event), event);
    }
}

fn answer(dialect: &dyn Dialect, kind: EventKind, verdict: &Verdict) -> Verdict {
    let request = Request { id: 1.into(), ..Request::new(Event::unchecked(kind, [])) };
    let reply = dialect.write_verdict(&request, verdict);
    let answer = said_at(dialect, kind, End::Exited(reply.exit.into()), &reply.stdout, &reply.stderr);
    assert_eq!(answer.failure, None, "{}", String::from_utf8_lossy(&reply.stdout));
    answer.verdict
}

/// A written verdict cannot ask a person or end the turn: everything that does not continue is a refusal.
fn refused_or(verdict: &Verdict, otherwise: Flow) -> Flow {
    if verdict.flow.continues() { otherwise } else { Flow::Block }
}

/// Texts as one, if there is anything in it.
fn one(texts: &[String]) -> Vec<String> {
    let text = texts.join("\n");
    if text.is_empty() { Vec::new() } else { vec![text] }
}

fn data_with_tools(verdict: &Verdict) -> serde_json::Map<String, Value> {
    let mut data = verdict.data.clone();
    data.extend(verdict.tools.clone().map(|tools| ("available_tools".to_owned(), tools.into())));
    data
}

/// The filter is read where tools are being selected.
fn tools(verdict: &Verdict, kind: EventKind) -> Option<Vec<String>> {
    verdict.tools.clone().filter(|_| kind == EventKind::BeforeToolSelection)
}

/// `ollm` keeps whether to continue, one text for the conversation, the data and the tools.
fn ollm_verdict(verdict: &Verdict, kind: EventKind) -> Verdict {
    let refused = !verdict.flow.continues();
    let reasons = if refused { verdict.reasons.as_slice() } else { &[] };
    let mut texts: Vec<String> = Vec::new();
    for text in reasons.iter().chain(&verdict.system_messages).chain(&verdict.context) {
        if !texts.contains(text) {
            texts.push(text.clone());
        }
    }
    Verdict {
        flow: refused_or(verdict, Flow::NoOpinion),
        reasons: if refused { one(&texts) } else { Vec::new() },
        system_messages: one(&texts),
        data: data_with_tools(verdict),
        tools: tools(verdict, kind),
        ..Verdict::default()
    }
}

/// `gate` keeps whether to allow, one message, and the metadata.
fn gate_verdict(verdict: &Verdict) -> Verdict {
    let refused = !verdict.flow.continues();
    Verdict {
        flow: refused_or(verdict, Flow::NoOpinion),
        reasons: if refused { one(&verdict.reasons) } else { Vec::new() },
        messages: one(if refused { &verdict.reasons } else { &verdict.messages }),
        metadata: verdict.metadata.clone(),
        ..Verdict::default()
    }
}

/// `rpc` keeps one prompt, a refusal with its reason, the data with the tools, and the metadata.
fn rpc_verdict(verdict: &Verdict, kind: EventKind) -> Verdict {
    let refused = !verdict.flow.continues();
    Verdict {
        flow: refused_or(verdict, Flow::NoOpinion),
        reasons: if refused { one(&verdict.reasons) } else { Vec::new() },
        prompts: if verdict.prompts.is_empty() { Vec::new() } else { vec![verdict.prompts.join("\n")] },
        data: data_with_tools(verdict),
        tools: tools(verdict, kind),
        metadata: verdict.metadata.clone(),
        ..Verdict::default()
    }
}

/// `agent` refuses with the reason alone, by its exit status; otherwise it keeps the approval or else the patch, one
/// text of each sort, the replaced result, and the metadata.
fn agent_verdict(verdict: &Verdict, kind: EventKind) -> Verdict {
    if !verdict.flow.continues() {
        let given = verdict.reasons.join("\n");
        let reason = if verdict.reasons.is_empty() { "refused by a hook" } else { given.trim() };
        return Verdict { flow: Flow::Block, reasons: one(&[reason.to_owned()]), ..Verdict::default() };
    }
    let patched = !verdict.patch.is_empty();
    let is_changed = matches!(kind, EventKind::BeforeTool | EventKind::ApprovalRequest);
    Verdict {
        flow: if patched { Flow::NoOpinion } else { verdict.flow },
        patch: if is_changed { verdict.patch.clone() } else { serde_json::Map::new() },
        messages: one(&verdict.messages),
        system_messages: one(&verdict.system_messages),
        context: if verdict.context.is_empty() { Vec::new() } else { vec![verdict.context.join("\n")] },
        result: verdict.result.clone().filter(|_| kind == EventKind::AfterTool),
        metadata: verdict.metadata.clone(),
        ..Verdict::default()
    }
}

/// The kinds at which some part of a verdict means something special, as often as all others.
fn telling_kind() -> impl Strategy<Value = EventKind> {
    let special = [EventKind::BeforeTool, EventKind::AfterTool, EventKind::BeforeToolSelection];
    prop_oneof![prop::sample::select(special.to_vec()), kind()]
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn a_verdict_survives_ollm_as_its_projection(verdict in verdict(), kind in telling_kind()) {
        prop_assert_eq!(answer(OLLM, kind, &verdict), ollm_verdict(&verdict, kind));
    }

    #[test]
    fn a_verdict_survives_gate_as_its_projection(verdict in verdict(), kind in telling_kind()) {
        prop_assert_eq!(answer(GATE, kind, &verdict), gate_verdict(&verdict));
    }

    #[test]
    fn a_verdict_survives_rpc_as_its_projection(verdict in verdict(), kind in telling_kind()) {
        prop_assert_eq!(answer(RPC, kind, &verdict), rpc_verdict(&verdict, kind));
    }

    #[test]
    fn a_verdict_survives_agent_as_its_projection(verdict in verdict(), kind in telling_kind()) {
        prop_assert_eq!(answer(AGENT, kind, &verdict), agent_verdict(&verdict, kind));
    }
}

#[test]
fn an_rpc_reply_repeats_the_id_of_its_request() {
    for id in [json!(7), json!("a-b"), Value::Null] {
        let wire = json!({"jsonrpc": "2.0", "method": "execute", "params": {"event": {"type": "agentStop"}}, "id": id});
        let request = RPC.read_event(wire.to_string().as_bytes()).unwrap();
        let reply = RPC.write_verdict(&request, &Verdict::default());
        assert_eq!(crate::json(&reply.stdout), json!({"jsonrpc": "2.0", "result": {}, "id": id}));
    }
}
