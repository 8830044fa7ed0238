//! What real clients did with real answers before a shell call: hooks are heard no milder, and our replies do there what
//! they mean.

use std::time::Duration;

use ollm_protocol::dialect;
use ollm_protocol::dialect::agents::AgentDialect;
use ollm_protocol::{Dialect, End, Event, EventKind, Flow, Reply, Request, Verdict};
use serde_json::{Map, Value, json};

use crate::{HOOK, json, said_at};

/// What became of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Ran,
    Blocked,
    Rewritten,
    /// Blocked because the arguments are none of the tool.
    Invalid,
}
use Seen::{Blocked, Invalid, Ran, Rewritten};

/// The clients that were watched, in the order of the cells below; Copilot once for each casing.
const CLIENTS: [(&str, &str); 9] = [
    ("gemini", "BeforeTool"),
    ("codex", "PreToolUse"),
    ("qwen", "PreToolUse"),
    ("opencode", "tool.execute.before"),
    ("claude", "PreToolUse"),
    ("copilot", "PreToolUse"),
    ("copilot", "preToolUse"),
    ("droid", "PreToolUse"),
    ("cline", "tool_call"),
];

const REWRITE: &str = "echo rewritten";

/// In place of the exit status of a hook that was not waited for.
const LATE: i32 = -1;

/// An answer to a shell call, and what each client did; nothing where it was not tried.
struct Answered {
    what: &'static str,
    stdout: String,
    stderr: &'static str,
    end: End,
    cells: [Option<Seen>; 9],
}

fn cell(letter: char) -> Option<Seen> {
    match letter {
        'r' => Some(Ran),
        'b' => Some(Blocked),
        'w' => Some(Rewritten),
        'i' => Some(Invalid),
        _ => None,
    }
}

/// What was seen: status, standard output, standard error, and a letter for each client (ran, blocked, rewritten).
#[expect(clippy::too_many_lines, reason = "one row for each answer that was tried")]
fn seen() -> Vec<Answered> {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}});
    let block = json!({"decision": "block", "reason": "no"});
    let nested = |fields: Value| json!({ "hookSpecificOutput": fields });
    let args = json!({ "command": REWRITE });
    let rows = [
        ("silence", 0, String::new(), "", "rrrrrrrrr"),
        ("a deny after the timeout", LATE, deny.to_string(), "", "rrr-rrrrr"),
        (
            "updatedInput without a required key",
            0,
            nested(json!({"hookEventName": "PreToolUse", "updatedInput": {"description": "x"}})).to_string(),
            "",
            "----iirrr",
        ),
        (
            "nested tool_input without a required key",
            0,
            nested(json!({"hookEventName": "BeforeTool", "tool_input": {"description": "x"}})).to_string(),
            "",
            "i--------",
        ),
        ("assigned args", 0, json!({"output": {"args": args}}).to_string(), "", "---w-----"),
        ("status 2 with a reason", 2, String::new(), "no", "bbbbbbbbr"),
        ("decision block", 0, block.to_string(), "", "bbbbbrrrr"),
        ("nested deny", 0, deny.to_string(), "", "rbbbbbrbr"),
        (
            "flat deny",
            0,
            json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}).to_string(),
            "",
            "----rbbrr",
        ),
        ("decision deny", 0, json!({"decision": "deny", "reason": "no"}).to_string(), "", "brb-rrrrr"),
        ("decision block without a reason", 0, json!({"decision": "block"}).to_string(), "", "brb-brrrr"),
        (
            "decision block and an unknown key",
            0,
            json!({"decision": "block", "reason": "no", "x_rule": 7}).to_string(),
            "",
            "brb-brrrr",
        ),
        ("continue false", 0, json!({"continue": false, "stopReason": "no"}).to_string(), "", "brb-rrrbr"),
        (
            "continue false and a deny",
            0,
            {
                let mut both = deny.clone();
                both["continue"] = false.into();
                both["stopReason"] = "no".into();
                both.to_string()
            },
            "",
            "-r--bbrbr",
        ),
        (
            "nested ask",
            0,
            nested(
                json!({"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "no"}),
            )
            .to_string(),
            "",
            "rrb-bbrrr",
        ),
        ("decision ask", 0, json!({"decision": "ask", "reason": "no"}).to_string(), "", "-rb-rrrrr"),
        ("cancel", 0, json!({"cancel": true}).to_string(), "", "----rrrrb"),
        ("status 1 and a refusal", 1, block.to_string(), "", "brb------"),
        ("status 1 and a nested deny", 1, deny.to_string(), "", "----bbbrr"),
        ("status 1 and text", 1, String::new(), "broken", "rrr-rbbrr"),
        ("status 3 and text", 3, String::new(), "broken", "brr-rbbbr"),
        ("status 2 and nothing", 2, String::new(), "", "rrr-bbbbr"),
        ("status 2 and a reason on standard output", 2, "no".to_owned(), "", "brr-bbbbr"),
        ("status 2 and an empty object", 2, "{}".to_owned(), "no", "rbb-bbbbr"),
        ("a log line, then a refusal", 0, format!("starting\n{deny}"), "", "----rrrrr"),
        ("a log line, then decision block", 0, format!("starting\n{block}"), "", "rrr------"),
        (
            "nested allow and updatedInput",
            0,
            nested(json!({"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": args}))
                .to_string(),
            "",
            "rwrwwwrwr",
        ),
        (
            "updatedInput alone",
            0,
            nested(json!({"hookEventName": "PreToolUse", "updatedInput": args})).to_string(),
            "",
            "-r--wwrwr",
        ),
        ("modifiedArgs", 0, json!({ "modifiedArgs": args }).to_string(), "", "----rwwrr"),
        (
            "nested tool_input",
            0,
            nested(json!({"hookEventName": "BeforeTool", "tool_input": args})).to_string(),
            "",
            "wrr-rrrrr",
        ),
        ("overrideInput", 0, json!({"overrideInput": {"commands": [REWRITE]}}).to_string(), "", "--------w"),
    ];
    let end = |exit| if exit == LATE { End::TimedOut(Duration::from_secs(10)) } else { End::Exited(exit) };
    let answered = |(what, exit, stdout, stderr, letters): (_, i32, String, _, &str)| Answered {
        what,
        stdout,
        stderr,
        end: end(exit),
        cells: letters.chars().map(cell).collect::<Vec<_>>().try_into().unwrap(),
    };
    rows.into_iter().map(answered).collect()
}

fn agent(name: &str) -> &'static AgentDialect {
    dialect::agent_named(name).unwrap()
}

/// The shell call about which each client was asked, as we read it.
fn asked(agent: &AgentDialect, name: &str) -> Request {
    let args = if agent.name == "cline" {
        json!({"commands": ["echo original"]})
    } else {
        json!({"command": "echo original"})
    };
    let tool = match agent.name {
        "cline" => "run_commands",
        "droid" => "Execute",
        "opencode" => "bash",
        _ => "Bash",
    };
    let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", tool.into()), ("args", args)]);
    let mut request = agent.read_event(&agent.write_event(&event, &HOOK)).unwrap();
    name.clone_into(&mut request.spelling.event);
    request
}

#[test]
fn a_hook_is_never_heard_as_milder_than_its_own_client_heard_it() {
    for row in seen() {
        for ((name, _), cell) in CLIENTS.iter().zip(row.cells) {
            let answer =
                said_at(agent(name), EventKind::BeforeTool, row.end, row.stdout.as_bytes(), row.stderr.as_bytes());
            let verdict = answer.verdict;
            match cell {
                Some(Blocked) => assert!(verdict.flow >= Flow::Ask, "{name}: {}: {verdict:?}", row.what),
                Some(Rewritten) => {
                    assert!(verdict.flow.continues(), "{name}: {}: {verdict:?}", row.what);
                    let command = verdict.patch.get("command").or_else(|| verdict.patch["commands"].get(0));
                    assert_eq!(command, Some(&json!(REWRITE)), "{name}: {}", row.what);
                }
                // A change of a part is one: what it does not name stays, so the tool gets its arguments whole.
                Some(Invalid) => {
                    assert_eq!(verdict.patch, json!({"description": "x"}).as_object().unwrap().clone(), "{name}");
                }
                // A refusal that the client fails to read is one for us all the same.
                Some(Ran) => {
                    let words = ["\"block\"", "\"deny\"", "\"ask\"", "\"cancel\"", "false"];
                    let says_no = row.end == End::Exited(2) || words.iter().any(|word| row.stdout.contains(word));
                    assert!(verdict.flow.continues() || says_no, "{name}: {}: {verdict:?}", row.what);
                }
                None => {}
            }
        }
    }
}

/// The row of the table that a reply of ours is.
fn row_of(reply: &Reply) -> &'static str {
    if reply.exit == 2 {
        assert!(reply.stdout.is_empty() && !reply.stderr.trim_ascii().is_empty());
        return "status 2 with a reason";
    }
    assert!(reply.exit == 0 && reply.stderr.is_empty());
    if reply.stdout.is_empty() {
        return "silence";
    }
    let said = json(&reply.stdout);
    let nested = &said["hookSpecificOutput"];
    let halts = said["continue"] == false;
    match (nested["permissionDecision"].as_str(), nested["updatedInput"].is_object()) {
        (Some("deny"), _) if halts => "continue false and a deny",
        (Some("deny"), _) => "nested deny",
        (Some("ask"), _) => "nested ask",
        (Some("allow"), true) => "nested allow and updatedInput",
        (Some("allow"), false) => "silence",
        (_, true) => "updatedInput alone",
        _ if halts => "continue false",
        _ if nested["tool_input"].is_object() => "nested tool_input",
        _ if said["permissionDecision"] == "deny" => "flat deny",
        _ if said["permissionDecision"] == "allow" => "silence",
        _ if said["modifiedArgs"].is_object() => "modifiedArgs",
        _ if said["overrideInput"].is_object() => "overrideInput",
        _ if said["output"]["args"].is_object() => "assigned args",
        _ if said["cancel"] == true => "cancel",
        _ if said["decision"] == "deny" => "decision deny",
        _ if said["decision"] == "block" => "decision block",
        _ => panic!("this answer was never tried: {said}"),
    }
}

#[test]
fn what_we_answer_does_in_the_real_clients_what_it_means() {
    let table = seen();
    let patch = Map::from_iter([("command".to_owned(), Value::from(REWRITE))]);
    let flow = |flow| Verdict { flow, reasons: vec!["no".to_owned()], ..Verdict::default() };
    for (at, (name, event)) in CLIENTS.iter().enumerate() {
        let request = asked(agent(name), event);
        for (what, verdict, meant) in [
            ("no opinion", Verdict::default(), vec![Ran]),
            ("allow", flow(Flow::Allow), vec![Ran]),
            ("block", flow(Flow::Block), vec![Blocked]),
            ("block without a reason", Verdict { flow: Flow::Block, ..Verdict::default() }, vec![Blocked]),
            ("halt", flow(Flow::Halt), vec![Blocked]),
            ("modify", Verdict { patch: patch.clone(), ..Verdict::default() }, vec![Rewritten, Blocked]),
        ] {
            let reply = agent(name).write_verdict(&request, &verdict);
            let row = row_of(&reply);
            let cell = table.iter().find(|answered| answered.what == row).unwrap().cells[at];
            assert!(
                cell.is_some_and(|cell| meant.contains(&cell)),
                "{name} {event}: {what} is answered by {row}: {cell:?}"
            );
        }
    }
}

#[test]
fn a_refusal_of_one_hook_stands_whatever_another_one_allows() {
    let table = seen();
    let deny = table.iter().find(|row| row.what == "nested deny").unwrap();
    let allow =
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}).to_string();
    let claude = agent("claude");
    let heard = |stdout: &str| said_at(claude, EventKind::BeforeTool, End::Exited(0), stdout.as_bytes(), b"").verdict;
    let (deny, allow) = (heard(&deny.stdout), heard(&allow));
    assert_eq!((deny.flow, allow.flow), (Flow::Block, Flow::Allow));
    for (at, (name, event)) in CLIENTS.iter().enumerate() {
        for both in [deny.clone().then(allow.clone()), allow.clone().then(deny.clone())] {
            let row = row_of(&agent(name).write_verdict(&asked(agent(name), event), &both));
            let cell = table.iter().find(|answered| answered.what == row).unwrap().cells[at];
            assert_eq!(cell, Some(Blocked), "{name} {event}: {row}");
        }
    }
    // There an `allow` of ours would cancel what another program's hook denied.
    let qwen = agent("qwen");
    assert!(qwen.write_verdict(&asked(qwen, "PreToolUse"), &allow).stdout.is_empty());
}

#[test]
fn a_change_of_a_part_is_told_with_all_arguments() {
    let patch = json!({"description": "x"}).as_object().unwrap().clone();
    for (name, event) in CLIENTS {
        let reply = agent(name)
            .write_verdict(&asked(agent(name), event), &Verdict { patch: patch.clone(), ..Verdict::default() });
        let text = String::from_utf8(reply.stdout).unwrap();
        let is_refusal = reply.exit == 2 || ["\"deny\"", "\"cancel\""].iter().any(|word| text.contains(word));
        assert!(is_refusal || (text.contains("echo original") && text.contains("\"x\"")), "{name} {event}: {text}");
    }
}

#[test]
fn clients_that_skip_hooks_which_nobody_reviewed_say_how_to_review_them() {
    for (name, has_review) in [("codex", true), ("gemini", true), ("opencode", false), ("cline", true)] {
        assert_eq!(agent(name).home.review.is_some(), has_review, "{name}");
    }
}

#[test]
fn a_client_that_lets_a_late_hook_through_is_told_to_wait_longer_than_our_hooks_may_take() {
    for (name, event) in CLIENTS {
        let wait = agent(name).told_to_wait(event).or(agent(name).timeout);
        assert!(wait.is_none_or(|wait| wait > agent(name).defaults().timeout), "{name} {event}: {wait:?}");
    }
}
