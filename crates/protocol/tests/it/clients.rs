//! What real clients did with real answers before a shell call: hooks are heard no milder, and our replies do there what
//! they mean.

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
}
use Seen::{Blocked, Ran, Rewritten};

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

/// An answer to a shell call, and what each client did; nothing where it was not tried.
struct Answered {
    what: &'static str,
    stdout: String,
    stderr: &'static str,
    exit: i32,
    cells: [Option<Seen>; 9],
}

fn cell(letter: char) -> Option<Seen> {
    match letter {
        'r' => Some(Ran),
        'b' => Some(Blocked),
        'w' => Some(Rewritten),
        _ => None,
    }
}

/// What was seen: status, standard output, standard error, and a letter for each client (ran, blocked, rewritten).
fn seen() -> Vec<Answered> {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}});
    let block = json!({"decision": "block", "reason": "no"});
    let nested = |fields: Value| json!({ "hookSpecificOutput": fields });
    let args = json!({ "command": REWRITE });
    let rows = [
        ("silence", 0, String::new(), "", "rrrrrrrrr"),
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
    let answered = |(what, exit, stdout, stderr, letters): (_, i32, String, _, &str)| Answered {
        what,
        stdout,
        stderr,
        exit,
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
            let answer = said_at(
                agent(name),
                EventKind::BeforeTool,
                End::Exited(row.exit),
                row.stdout.as_bytes(),
                row.stderr.as_bytes(),
            );
            let verdict = answer.verdict;
            match cell {
                Some(Blocked) => assert!(verdict.flow >= Flow::Ask, "{name}: {}: {verdict:?}", row.what),
                Some(Rewritten) => {
                    assert!(verdict.flow.continues(), "{name}: {}: {verdict:?}", row.what);
                    let command = verdict.patch.get("command").or_else(|| verdict.patch["commands"].get(0));
                    assert_eq!(command, Some(&json!(REWRITE)), "{name}: {}", row.what);
                }
                // A refusal that the client fails to read is one for us all the same.
                Some(Ran) => {
                    let words = ["\"block\"", "\"deny\"", "\"ask\"", "\"cancel\"", "false"];
                    let says_no = row.exit == 2 || words.iter().any(|word| row.stdout.contains(word));
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
            // The plugin of opencode assigns what stands in `output`, as opencode documents it.
            if *name == "opencode" && reply.stdout.starts_with(b"{\"output\"") {
                assert_eq!(
                    (what, json(&reply.stdout)["output"]["args"]["command"].as_str()),
                    ("modify", Some(REWRITE))
                );
                continue;
            }
            let row = row_of(&reply);
            let cell = table.iter().find(|answered| answered.what == row).unwrap().cells[at];
            assert!(
                cell.is_some_and(|cell| meant.contains(&cell)),
                "{name} {event}: {what} is answered by {row}: {cell:?}"
            );
        }
    }
}
