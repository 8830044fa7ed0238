//! What answers mean: the answer table row by row, and everything that is not quite an answer.

use std::time::Duration;

use ollm_protocol::dialect::{AGENT, DIALECTS, GATE, OLLM, RPC};
use ollm_protocol::{Dialect, End, EventKind, Flow, HookAnswer, Verdict};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use testkit::{json_value, text};

use crate::{cases, ended, said, said_at};

/// A refusal in the spelling of each dialect.
fn refusals() -> [(&'static dyn Dialect, &'static str); 4] {
    [
        (OLLM, r#"{"continue":false,"systemMessage":"no"}"#),
        (GATE, r#"{"allow":false,"message":"no"}"#),
        (RPC, r#"{"jsonrpc":"2.0","result":{"continue":false,"reason":"no"},"id":1}"#),
        (AGENT, r#"{"decision":"block","reason":"no"}"#),
    ]
}

/// An answer of each dialect that lets the operation go on.
fn consents() -> [(&'static dyn Dialect, &'static str); 4] {
    [
        (OLLM, r#"{"continue":true}"#),
        (GATE, r#"{"allow":true}"#),
        (RPC, r#"{"jsonrpc":"2.0","result":{},"id":1}"#),
        (AGENT, r#"{"decision":"approve"}"#),
    ]
}

fn clean(verdict: Verdict) -> HookAnswer {
    HookAnswer { verdict, ..HookAnswer::default() }
}

fn flow(flow: Flow) -> HookAnswer {
    clean(Verdict { flow, ..Verdict::default() })
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn has_failed(answer: &HookAnswer, why: &str) {
    let failure = answer.failure.as_deref().unwrap_or_default();
    assert!(failure.contains(why), "expected a failure with `{why}`, got {answer:?}");
}

fn is_refused(answer: &HookAnswer, reason: &str) {
    assert_eq!(answer.verdict.flow, Flow::Block, "{answer:?}");
    assert_eq!(answer.verdict.reasons, [reason], "{answer:?}");
}

// The answer table.

#[test]
fn consent_is_no_opinion() {
    assert_eq!(said(OLLM, r#"{"continue":true}"#), flow(Flow::NoOpinion));
    assert_eq!(said(GATE, r#"{"allow":true}"#), flow(Flow::NoOpinion));
    assert_eq!(said(RPC, r#"{"jsonrpc":"2.0","result":{"metadata":{}},"id":1}"#), flow(Flow::NoOpinion));
    assert_eq!(said(AGENT, r#"{"continue":true}"#), flow(Flow::NoOpinion));
    assert_eq!(said(AGENT, ""), flow(Flow::NoOpinion));
    assert_eq!(said(AGENT, "all good\n"), flow(Flow::NoOpinion));
    assert_eq!(said(AGENT, "fn main() {\n"), flow(Flow::NoOpinion));
}

#[test]
fn a_refusal_blocks_with_its_reason() {
    let no = || vec!["no".to_owned()];
    let block = Verdict::block("no");
    assert_eq!(
        said(OLLM, r#"{"continue":false,"systemMessage":"no"}"#),
        clean(Verdict { system_messages: no(), ..block.clone() })
    );
    assert_eq!(said(GATE, r#"{"allow":false,"message":"no"}"#), clean(Verdict { messages: no(), ..block.clone() }));
    for answer in [
        r#"{"continue":false,"reason":"no"}"#,
        r#"{"decision":"block","reason":"no"}"#,
        r#"{"decision":"deny","reason":"no"}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
        r#"{"continue":false,"stopReason":"no"}"#,
    ] {
        assert_eq!(said(AGENT, answer), clean(block.clone()), "{answer}");
    }
    assert_eq!(ended(AGENT, End::Exited(2), "", "no\n"), clean(block));
    assert_eq!(said(OLLM, r#"{"continue":false}"#), flow(Flow::Block));
}

#[test]
fn an_approval_allows_in_the_dialect_that_has_one() {
    for word in ["approve", "allow"] {
        assert_eq!(said(AGENT, &json!({"decision": word}).to_string()), flow(Flow::Allow));
        let nested = json!({"hookSpecificOutput": {"permissionDecision": word}});
        assert_eq!(said(AGENT, &nested.to_string()), flow(Flow::Allow));
    }
}

#[test]
fn a_modification_is_a_patch_without_an_opinion() {
    let patch = object(&json!({"path": "b"}));
    let expected = clean(Verdict { patch, ..Verdict::default() });
    assert_eq!(said(AGENT, r#"{"decision":"modify","modified_args":{"path":"b"}}"#), expected);
    assert_eq!(said(AGENT, r#"{"hookSpecificOutput":{"updatedInput":{"path":"b"}}}"#), expected);
    let late = said_at(AGENT, EventKind::AfterTool, End::Exited(0), br#"{"modified_args":{"path":"b"}}"#, b"");
    assert_eq!(late.verdict, Verdict::default());
    assert_eq!(late.warnings, ["arguments cannot be modified at after_tool; ignored"]);
}

#[test]
fn a_question_is_for_a_person() {
    assert_eq!(said(AGENT, r#"{"decision":"ask","reason":"sure?"}"#), clean(Verdict::ask("sure?")));
    let later = r#"{"hookSpecificOutput":{"permissionDecision":"defer","permissionDecisionReason":"sure?"}}"#;
    assert_eq!(said(AGENT, later), clean(Verdict::ask("sure?")));
}

#[test]
fn a_result_is_replaced_after_the_tool_only() {
    let stdout = br#"{"hookSpecificOutput":{"updatedToolOutput":"***"}}"#;
    let after = said_at(AGENT, EventKind::AfterTool, End::Exited(0), stdout, b"");
    assert_eq!(after, clean(Verdict { result: Some("***".into()), ..Verdict::default() }));
    assert_eq!(said_at(AGENT, EventKind::BeforeTool, End::Exited(0), stdout, b""), flow(Flow::NoOpinion));
}

#[test]
fn a_set_error_is_a_failure_and_the_other_fields_still_count() {
    let answer = said(OLLM, r#"{"continue":false,"systemMessage":"no","data":{"a":1},"error":"disk full"}"#);
    assert_eq!(answer.failure.as_deref(), Some("disk full"));
    is_refused(&answer, "no");
    assert_eq!(answer.verdict.data, object(&json!({"a": 1})));
    let answer = said(OLLM, r#"{"continue":true,"error":{"code":5}}"#);
    assert_eq!((answer.failure.as_deref(), answer.verdict), (Some(r#"{"code":5}"#), Verdict::default()));
    for nothing in [r#"{"continue":true,"error":null}"#, r#"{"continue":true,"error":""}"#] {
        assert_eq!(said(OLLM, nothing), flow(Flow::NoOpinion));
    }
}

#[test]
fn the_tools_that_stay_are_read_where_tools_are_selected() {
    let stdout = br#"{"continue":true,"data":{"available_tools":["a",{"name":"b"},3]}}"#;
    let answer = said_at(OLLM, EventKind::BeforeToolSelection, End::Exited(0), stdout, b"");
    assert_eq!(answer.verdict.tools, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(said_at(OLLM, EventKind::BeforeTool, End::Exited(0), stdout, b"").verdict.tools, None);
}

#[test]
fn messages_for_the_conversation_and_for_the_person_are_kept_apart() {
    let answer = said(OLLM, r#"{"continue":true,"systemMessage":"for the model","message":"for the person"}"#);
    assert_eq!(answer.verdict.system_messages, ["for the model"]);
    assert_eq!(answer.verdict.messages, ["for the person"]);
}

// Silence and noise.

#[test]
fn silence_is_consent_a_failure_or_nothing_by_dialect() {
    for silence in ["", " \n\t", "\u{feff}"] {
        let answer = said(OLLM, silence);
        assert_eq!((answer.failure, answer.warnings), (None, vec!["the hook answered nothing".to_owned()]));
        has_failed(&said(GATE, silence), "the hook answered nothing");
        has_failed(&said(RPC, silence), "the hook answered nothing");
        assert_eq!(said(AGENT, silence), HookAnswer::default());
    }
}

#[test]
fn log_lines_before_the_answer_are_accepted_with_a_warning_but_not_by_gate() {
    let log = "Model call intercepted: llama2 {x}\n[info] done\n";
    for (dialect, consent) in consents().into_iter().filter(|(dialect, _)| dialect.name() != "gate") {
        let noisy = said(dialect, &format!("{log}{consent}"));
        assert_eq!(noisy.failure, None);
        assert_eq!(noisy.warnings, ["there is other text in front of the JSON object"], "{}", dialect.name());
        assert_eq!(noisy.verdict, said(dialect, consent).verdict);
    }
    has_failed(&said(GATE, &format!("{log}{{\"allow\":true}}")), "the answer is not one JSON object");
}

#[test]
fn text_after_the_answer_and_two_answers_are_failures() {
    for (dialect, consent) in consents() {
        for stdout in [
            format!("{consent}\ndone"),
            format!("{consent}\n{consent}"),
            format!("[{consent}]"),
            format!("{consent} }}"),
        ] {
            let answer = said(dialect, &stdout);
            assert!(answer.failure.is_some(), "{}: {stdout}", dialect.name());
            assert_eq!(answer.verdict, Verdict::default(), "{}: {stdout}", dialect.name());
        }
    }
}

#[test]
fn a_refusal_counts_whatever_stands_around_it() {
    for (dialect, refusal) in refusals() {
        for stdout in [
            format!("log\n{refusal}"),
            format!("{refusal}\ndone"),
            format!("{{\"continue\":true}}\n{refusal}"),
            format!("{refusal}\n{{\"decision\":\"approve\",\"continue\":true,\"allow\":true}}"),
            format!("{{\"progress\":1}}\n{refusal}\n}}"),
            format!("{{unfinished {refusal}"),
            format!("{{\"wrapped\": {refusal}"),
        ] {
            is_refused(&said(dialect, &stdout), "no");
        }
        let mut bytes = b"\xff\xfe".to_vec();
        bytes.extend(refusal.as_bytes());
        let lossy = said_at(dialect, EventKind::BeforeTool, End::Exited(0), &bytes, b"");
        is_refused(&lossy, "no");
        for (_, foreign) in refusals() {
            assert_eq!(said(dialect, foreign).verdict.flow, Flow::Block, "{foreign} in {}", dialect.name());
        }
    }
}

#[test]
fn a_refusal_counts_however_the_process_ended() {
    let ends = [
        End::Exited(1),
        End::Exited(2),
        End::Exited(127),
        End::Signalled(9),
        End::TimedOut(Duration::from_secs(5)),
        End::Overflowed(1 << 20),
    ];
    for (dialect, refusal) in refusals() {
        for end in ends {
            let answer = ended(dialect, end, refusal, "");
            is_refused(&answer, "no");
            let by_status = dialect.name() == "agent" && end == End::Exited(2);
            assert_eq!(answer.failure.is_none(), by_status, "{} {end:?}", dialect.name());
        }
    }
}

#[test]
fn an_unclean_end_is_a_failure_with_its_reason() {
    for (dialect, consent) in consents() {
        let end = |end, stderr| ended(dialect, end, consent, stderr).failure.unwrap();
        assert_eq!(end(End::Exited(1), "warming up\nboom\n\n"), "exited with status 1: boom");
        assert_eq!(end(End::Exited(127), ""), "exited with status 127");
        assert_eq!(end(End::Signalled(11), ""), "was killed by signal 11");
        let late = "did not answer within 5s and was stopped";
        assert_eq!(end(End::TimedOut(Duration::from_secs(5)), ""), late);
        assert_eq!(end(End::Overflowed(10), ""), "wrote more than its limit `output` of 10 bytes and was stopped");
        if dialect.name() != "agent" {
            assert!(end(End::Exited(2), "").starts_with("exited with status 2; exit 2 refuses in a hook"));
        }
    }
}

#[test]
fn a_failed_hook_approves_nothing() {
    let approval = r#"{"decision":"approve","reason":"safe"}"#;
    for end in [End::Exited(1), End::Signalled(9), End::TimedOut(Duration::from_secs(1)), End::Overflowed(1)] {
        let answer = ended(AGENT, end, approval, "");
        assert_eq!(answer.verdict.flow, Flow::NoOpinion, "{end:?}");
        assert_eq!(answer.verdict.messages, ["safe"]);
    }
    let half_wrong = said(AGENT, r#"{"decision":"approve","metadata":7}"#);
    assert_eq!(half_wrong.verdict.flow, Flow::NoOpinion);
    has_failed(&half_wrong, "`metadata` is 7, expected an object");
}

#[test]
fn an_approval_inside_a_broken_answer_approves_nothing() {
    for stdout in [
        r#"{"decision":"block","metadata":{"decision":"approve"}"#,
        r#"{"decision":"block","metadata":{"decision":"approve"},}"#,
        r#"{decision:"block","metadata":{"decision":"approve"}}"#,
        r#"{"score":1e999,"decision":"approve"}"#,
        r#"{"score":1e999}{"decision":"approve"}"#,
        r#"{"decision":"approve""#,
    ] {
        let answer = said(AGENT, stdout);
        assert!(answer.failure.is_some(), "{stdout}");
        assert_eq!(answer.verdict.flow, Flow::NoOpinion, "{stdout}");
    }
}

// Exit status 2.

#[test]
fn json_cannot_lift_exit_status_2() {
    for stdout in [
        r#"{"decision":"approve"}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        r#"{"continue":true}"#,
        "fine by me",
        "",
    ] {
        is_refused(&ended(AGENT, End::Exited(2), stdout, "no\n"), "no");
    }
    let contradiction = ended(AGENT, End::Exited(2), r#"{"decision":"approve"}"#, "");
    assert_eq!(contradiction.warnings, ["the answer approves, but exit status 2 refuses"]);
    let patched = ended(AGENT, End::Exited(2), r#"{"decision":"modify","modified_args":{"a":1}}"#, "no");
    assert_eq!(patched.verdict, Verdict::block("no"));
}

#[test]
fn exit_status_2_refuses_also_without_a_word() {
    assert_eq!(ended(AGENT, End::Exited(2), "", ""), flow(Flow::Block));
    assert_eq!(ended(AGENT, End::Exited(2), "", " \n"), flow(Flow::Block));
}

#[test]
fn exit_status_2_means_nothing_in_the_other_dialects() {
    for (dialect, consent) in consents().into_iter().filter(|(dialect, _)| dialect.name() != "agent") {
        let answer = ended(dialect, End::Exited(2), consent, "no");
        assert_eq!(answer.verdict.flow, Flow::NoOpinion, "{}", dialect.name());
        has_failed(&answer, "exited with status 2: no; exit 2 refuses in a hook with \"dialect\": \"agent\", not here");
    }
}

// Half-wrong answers.

#[test]
fn what_can_be_read_of_a_half_wrong_answer_counts() {
    let answer = said(OLLM, r#"{"continue":"yes","systemMessage":"hello","data":{"a":1}}"#);
    has_failed(&answer, "`continue` is \"yes\", expected true or false");
    assert_eq!(answer.verdict.system_messages, ["hello"]);
    assert_eq!(answer.verdict.data, object(&json!({"a": 1})));

    let answer = said(OLLM, r#"{"continue":false,"systemMessage":5,"data":[]}"#);
    has_failed(&answer, "`systemMessage` is 5, expected text; `data` is [], expected an object");
    assert_eq!(answer.verdict, Verdict { flow: Flow::Block, ..Verdict::default() });

    let answer = said(GATE, r#"{"allow":"no","message":"hm"}"#);
    has_failed(&answer, "`allow` is \"no\", expected true or false");
    assert_eq!(answer.verdict.messages, ["hm"]);

    let answer = said(RPC, r#"{"jsonrpc":"2.0","result":{"action":"askAgent","prompt":"p","metadata":3},"id":1}"#);
    has_failed(&answer, "`metadata` is 3, expected an object");
    assert_eq!(answer.verdict.prompts, ["p"]);
}

#[test]
fn a_refusal_written_as_text_refuses() {
    for text in ["false", "False", "FALSE"] {
        for (dialect, field) in [(OLLM, "continue"), (GATE, "allow"), (AGENT, "continue")] {
            let answer = said(dialect, &json!({field: text}).to_string());
            assert_eq!(answer.verdict.flow, Flow::Block, "{text}");
            has_failed(&answer, "expected true or false");
        }
    }
}

#[test]
fn an_answer_without_its_decisive_field_is_a_failure() {
    has_failed(&said(OLLM, r#"{"systemMessage":"hello"}"#), "the answer has no `continue`");
    has_failed(&said(OLLM, "{}"), "the answer has no `continue`");
    has_failed(&said(GATE, r#"{"message":"hello"}"#), "the answer has no `allow`");
    has_failed(&said(GATE, r#"{"continue":true}"#), "the answer has no `allow`");
    has_failed(&said(RPC, r#"{"jsonrpc":"2.0","id":1}"#), "the answer has neither `result` nor `error`");
    has_failed(&said(RPC, r#"{"jsonrpc":"2.0","result":[1],"id":1}"#), "`result` is [1], expected an object");
    assert_eq!(said(AGENT, "{}"), flow(Flow::NoOpinion));
}

#[test]
fn a_decision_in_other_letters_is_a_failure_that_can_only_refuse() {
    for (word, flow) in [
        ("Deny", Flow::Block),
        ("BLOCK", Flow::Block),
        ("Ask", Flow::Ask),
        ("Allow", Flow::NoOpinion),
        ("APPROVE", Flow::NoOpinion),
        ("maybe", Flow::NoOpinion),
        ("", Flow::NoOpinion),
    ] {
        for wire in [json!({"decision": word}), json!({"hookSpecificOutput": {"permissionDecision": word}})] {
            let answer = said(AGENT, &wire.to_string());
            assert_eq!(answer.verdict.flow, flow, "{wire}");
            has_failed(&answer, "expected one of approve, allow, block, deny, ask, modify");
        }
    }
    for wrong in [json!(true), json!(null), json!(["approve"]), json!({"allow": true})] {
        let answer = said(AGENT, &json!({"decision": wrong}).to_string());
        assert_eq!(answer.verdict.flow, Flow::NoOpinion);
        assert!(answer.failure.is_some());
    }
}

#[test]
fn of_a_doubled_key_the_refusing_value_wins() {
    for (dialect, answer) in [
        (OLLM, r#"{"continue":false,"continue":true}"#),
        (OLLM, r#"{"continue":true,"continue":false}"#),
        (GATE, r#"{"allow":false,"allow":true}"#),
        (AGENT, r#"{"decision":"block","decision":"approve"}"#),
        (AGENT, r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecision":"allow"}}"#),
        (
            AGENT,
            r#"{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        ),
        (AGENT, r#"{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":null}"#),
        (RPC, r#"{"result":{"continue":false,"continue":true}}"#),
        (RPC, r#"{"result":{"continue":false},"result":{}}"#),
        (RPC, r#"{"result":{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":{}}}"#),
    ] {
        assert_eq!(said(dialect, answer).verdict.flow, Flow::Block, "{answer}");
    }
}

#[test]
fn two_fields_that_disagree_refuse() {
    for answer in [
        r#"{"continue":true,"decision":"block"}"#,
        r#"{"continue":false,"decision":"approve"}"#,
        r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}"#,
        r#"{"continue":true,"allow":false}"#,
    ] {
        for dialect in [OLLM, AGENT] {
            assert_eq!(said(dialect, answer).verdict.flow, Flow::Block, "{answer} in {}", dialect.name());
        }
    }
}

#[test]
fn a_text_cut_within_a_character_does_not_hide_a_refusal() {
    for (dialect, refusal) in refusals() {
        let cut = refusal.replace(r#""no""#, r#""no \ud83d""#);
        let answer = said(dialect, &cut);
        is_refused(&answer, "no \u{fffd}");
        assert_eq!(answer.failure, None);
        assert!(answer.warnings.contains(&"escapes that stand for no character are replaced".to_owned()));
        let whole = refusal.replace(r#""no""#, r#""no \ud83d\ude00 \\ud83d""#);
        is_refused(&said(dialect, &whole), "no 😀 \\ud83d");
    }
}

#[test]
fn values_nested_too_deeply_do_not_hide_a_refusal() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let very = format!("{}1{}", r#"{"a":"#.repeat(300), "}".repeat(300));
    for (dialect, refusal) in refusals() {
        for nested in [&deep, &very] {
            let stdout = refusal.replacen('{', &format!("{{\"debug\":{nested},"), 1);
            let answer = said(dialect, &stdout);
            is_refused(&answer, "no");
            has_failed(&answer, "nested too deeply");
        }
    }
    let consent = format!("{{\"continue\":true,\"data\":{{\"kept\":1,\"debug\":{deep}}}}}");
    has_failed(&said(OLLM, &consent), "nested too deeply");
}

#[test]
fn a_byte_order_mark_and_nul_and_bad_utf8_are_dealt_with() {
    for (dialect, consent) in consents() {
        let marked = said(dialect, &format!("\u{feff}{consent}"));
        assert_eq!(marked, said(dialect, consent), "{}", dialect.name());
        assert!(said(dialect, &format!("{consent}\0")).failure.is_some(), "{}", dialect.name());
    }
    let bad =
        said_at(OLLM, EventKind::BeforeTool, End::Exited(0), b"{\"continue\":true,\"systemMessage\":\"\xff\"}", b"");
    assert_eq!((bad.failure, bad.verdict.system_messages), (None, vec!["\u{fffd}".to_owned()]));
    assert_eq!(bad.warnings, ["the output is not valid UTF-8"]);
    let strict = said_at(GATE, EventKind::BeforeTool, End::Exited(0), b"{\"allow\":true,\"message\":\"\xff\"}", b"");
    has_failed(&strict, "the answer is not one JSON object");
}

#[test]
fn answers_over_several_lines_are_answers() {
    let pretty = "\n{\n  \"decision\": \"block\",\n  \"reason\": \"no\"\n}\n";
    assert_eq!(said(AGENT, pretty), clean(Verdict::block("no")));
}

// Versions, errors and actions.

#[test]
fn an_unknown_major_version_is_a_failure_and_unknown_fields_are_none() {
    for version in [json!("1.0.0"), json!("1.9"), json!("1"), json!(1)] {
        assert_eq!(
            said(GATE, &json!({"version": version, "allow": true, "other": [1]}).to_string()),
            flow(Flow::NoOpinion)
        );
    }
    for version in [json!("2.0.0"), json!("10.0"), json!(null), json!("")] {
        let answer = said(GATE, &json!({"version": version, "allow": false}).to_string());
        assert_eq!(answer.verdict.flow, Flow::Block);
        has_failed(&answer, "is not supported");
    }
}

#[test]
fn an_rpc_error_is_a_failure_and_does_not_hide_a_refusal() {
    let error = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Hook execution failed","data":{"reason":"Command not found"}},"id":1}"#;
    let answer = said(RPC, error);
    assert_eq!(answer.failure.as_deref(), Some("Hook execution failed: Command not found (code -32603)"));
    assert_eq!(answer.verdict, Verdict::default());
    let both = said(RPC, r#"{"error":{"message":"late"},"result":{"continue":false,"reason":"no"},"id":1}"#);
    is_refused(&both, "no");
    has_failed(&both, "late");
    has_failed(&said(RPC, r#"{"error":"broken","id":1}"#), "broken");
    assert_eq!(said(RPC, r#"{"jsonrpc":"2.0","error":null,"result":{},"id":1}"#), flow(Flow::NoOpinion));
}

#[test]
fn an_answer_to_another_request_is_odd() {
    assert_eq!(said(RPC, r#"{"result":{},"id":2}"#).warnings, ["the answer's `id` is not the request's"]);
}

#[test]
fn an_answer_may_prompt_the_agent_but_not_run_a_command() {
    let answer = said(RPC, r#"{"result":{"action":"askAgent","prompt":"lint it"},"id":1}"#);
    assert_eq!(answer, clean(Verdict { prompts: vec!["lint it".to_owned()], ..Verdict::default() }));
    has_failed(&said(RPC, r#"{"result":{"action":"askAgent"},"id":1}"#), "`prompt` is missing");
    let command = said(RPC, r#"{"result":{"action":"runCommand","command":"rm -rf /"},"id":1}"#);
    has_failed(&command, "may not ask for runCommand");
    assert_eq!(command.verdict, Verdict::default());
    has_failed(&said(RPC, r#"{"result":{"action":"dance"},"id":1}"#), "`action` is \"dance\", expected askAgent");
}

// Fields of other dialects.

#[test]
fn a_field_of_another_dialect_is_accepted_with_a_warning() {
    let warning = |field: &str| vec![format!("`{field}` belongs to another dialect")];
    let answer = said(OLLM, r#"{"allow":false}"#);
    assert_eq!((answer.verdict.flow, answer.failure, answer.warnings), (Flow::Block, None, warning("allow")));
    let answer = said(OLLM, r#"{"decision":"approve"}"#);
    assert_eq!((answer.verdict.flow, answer.failure, answer.warnings), (Flow::NoOpinion, None, warning("decision")));
    let answer = said(OLLM, r#"{"continue":true,"hookSpecificOutput":{"additionalContext":"more"}}"#);
    assert_eq!(answer.verdict.context, ["more"]);
    assert_eq!(answer.warnings, warning("hookSpecificOutput"));
    let answer = said(GATE, r#"{"allow":true,"continue":false}"#);
    assert_eq!((answer.verdict.flow, answer.failure, answer.warnings), (Flow::Block, None, warning("continue")));
    let answer = said(RPC, r#"{"continue":false,"id":1}"#);
    assert_eq!((answer.verdict.flow, answer.failure, answer.warnings), (Flow::Block, None, warning("continue")));
    let answer = said(AGENT, r#"{"allow":false,"message":"no"}"#);
    is_refused(&answer, "no");
    assert_eq!(answer.warnings.len(), 2);
}

/// Fields that belong to a dialect and those that do not.
fn native(dialect: &dyn Dialect) -> &'static [&'static str] {
    match dialect.name() {
        "ollm" => &["continue", "systemMessage", "data", "error"],
        "gate" => &["allow", "message", "metadata", "version"],
        "rpc" => &["action", "prompt", "metadata", "data"],
        _ => &[
            "continue",
            "decision",
            "reason",
            "metadata",
            "modified_args",
            "systemMessage",
            "stopReason",
            "hookSpecificOutput",
        ],
    }
}

/// The value of any field, right or wrong.
fn field() -> impl Strategy<Value = (String, Value)> {
    let names = [
        "continue",
        "allow",
        "decision",
        "reason",
        "stopReason",
        "message",
        "systemMessage",
        "data",
        "metadata",
        "modified_args",
        "hookSpecificOutput",
        "action",
        "prompt",
        "permissionDecision",
    ];
    let decision = prop::sample::select(&["approve", "allow", "block", "deny", "ask", "modify", "Deny", "no"][..]);
    let value = prop_oneof![
        2 => any::<bool>().prop_map(Value::from),
        2 => decision.clone().prop_map(Value::from),
        2 => decision.prop_map(|word| json!({"permissionDecision": word})),
        1 => Just(json!("askAgent")),
        1 => text().prop_map(Value::from),
        1 => json_value(),
    ];
    (prop::sample::select(names.to_vec()).prop_map(str::to_owned), value)
}

fn wire(dialect: &dyn Dialect, fields: Map<String, Value>) -> String {
    match dialect.name() {
        "rpc" => json!({"jsonrpc": "2.0", "result": fields, "id": 1}).to_string(),
        _ => Value::from(fields).to_string(),
    }
}

#[test]
fn a_faulty_field_of_another_dialect_takes_a_consent_back() {
    let consent = json!({"hookSpecificOutput": {"permissionDecision": "approve"}});
    assert_eq!(said(AGENT, &consent.to_string()).verdict.flow, Flow::Allow);
    let mut faulty = consent;
    faulty["action"] = "askAgent".into();
    let answer = said(AGENT, &faulty.to_string());
    assert_eq!(
        (answer.verdict.flow, answer.failure.is_some()),
        (Flow::NoOpinion, true),
        "an `askAgent` without a prompt"
    );
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn fields_of_other_dialects_never_loosen_an_answer(fields in prop::collection::vec(field(), 0..8)) {
        for dialect in DIALECTS {
            let (own, foreign): (Vec<_>, Vec<_>) =
                fields.iter().cloned().partition(|(name, _)| native(*dialect).contains(&name.as_str()));
            let own: Map<String, Value> = own.into_iter().collect();
            let mut all = own.clone();
            all.extend(foreign);
            let before = said(*dialect, &wire(*dialect, own)).verdict;
            let after = said(*dialect, &wire(*dialect, all)).verdict;
            // A consent may be lost, for a faulty answer approves nothing; a refusal may not.
            let withdrawn = before.flow == Flow::Allow && after.flow == Flow::NoOpinion;
            prop_assert!(withdrawn || after.flow >= before.flow, "{}: {before:?} became {after:?}", dialect.name());
            prop_assert!(after.flow != Flow::Allow || before.flow == Flow::Allow);
        }
    }

    #[test]
    fn gate_takes_nothing_but_its_own_consent(fields in prop::collection::vec(field(), 0..8)) {
        let foreign: Map<String, Value> = fields.into_iter().filter(|(name, _)| name != "allow").collect();
        prop_assert!(said(GATE, &Value::from(foreign).to_string()).failure.is_some());
    }
}
