//! Properties 27 and 35 to 38 of the specification through the binary. Each turn, or each call, is a case of its own: one
//! process that lives through many of them is as good as many processes, and far quicker.

use std::collections::BTreeMap;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use testkit::mcp_server;

use super::{call, lab, run, saved, talk, task, text};
use crate::lab::{Lab, finish};

const CASES: usize = 256;

fn cases<S: Strategy>(strategy: &S) -> Vec<S::Value> {
    let mut runner = TestRunner::default();
    (0..CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// A chat in which these prompts are said.
fn chat(lab: &Lab, prompts: impl Iterator<Item = String>) {
    let input: String = prompts.flat_map(|prompt| [prompt, "\n".to_owned()]).collect();
    let ran = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]), input.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A hook that writes down what it is told.
const WITNESS: &str = "cat >> ../seen; echo >> ../seen; echo '{\"continue\": true}'";

/// What witnesses wrote down.
fn seen(lab: &Lab) -> Vec<Value> {
    let text = fs::read_to_string(lab.root.join("seen")).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn property_27_every_event_of_a_turn_tells_hooks_what_happens_in_it() {
    let turns = cases(&("[a-zé]{1,12}", "[a-z]{1,12}", "[a-zé ]{0,20}", any::<bool>()));
    let mut answers = Vec::new();
    for (at, (_, file, content, fails)) in turns.iter().enumerate() {
        let path = if *fails { format!("../{file}") } else { format!("{file}-{at}") };
        answers.push(call("write_file", json!({"path": path, "content": content})));
        answers.push(json!({"content": format!("answer {at}"), "usage": {"total_tokens": at + 1}}));
    }
    let lab = lab(&answers);
    let fields: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("session_start", &["session"][..]),
        ("before_agent", &["prompt", "config"]),
        ("before_tool_selection", &["available_tools"]),
        ("before_model", &["messages", "model", "prompt"]),
        ("after_model", &["response"]),
        ("before_tool", &["tool_name", "args", "call_id"]),
        ("after_tool", &["tool_name", "args", "call_id", "metrics", "execution_time"]),
        ("after_agent", &["response", "tool_calls", "prompt", "metrics", "conversation_length", "attempt"]),
        ("session_end", &["messages", "session"]),
    ]);
    for event in fields.keys() {
        lab.user_hook(event, &event.replace('_', "-"), WITNESS, "");
    }
    chat(&lab, turns.iter().map(|(prompt, ..)| prompt.clone()));
    let mut of: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in seen(&lab) {
        let (name, data) = (event["event"].as_str().unwrap().to_owned(), event["data"].clone());
        let common = ["session_id", "sessionId", "cwd", "timestamp", "session", "agent"];
        for field in fields[name.as_str()].iter().chain(&common) {
            assert!(!data[field].is_null(), "{name} has no {field}: {data:#}");
        }
        of.entry(name).or_default().push(data);
    }
    assert_eq!(of["session_end"][0]["session"]["messageCount"], json!(4 * CASES + 1));
    for (at, (prompt, file, content, fails)) in turns.iter().enumerate() {
        assert_eq!(
            (&of["before_agent"][at]["prompt"], &of["before_agent"][at]["user_input"]),
            (&json!(prompt), &json!(prompt))
        );
        let (before, after) = (&of["before_tool"][at], &of["after_tool"][at]);
        assert_eq!(before["args"]["content"], json!(content));
        assert_eq!(before["args"]["path"], before["args"]["file_path"]);
        assert!(before["args"]["path"].as_str().unwrap().contains(file.as_str()));
        assert_eq!((&before["args"], &before["call_id"]), (&after["args"], &after["call_id"]));
        assert_eq!((after["error"].is_string(), after["result"].is_null()), (*fails, *fails), "{after:#}");
        assert_eq!(after["metrics"]["success"], json!(!fails));
        let last = &of["after_model"][2 * at + 1];
        assert_eq!((&last["response"], &last["tokens"]), (&json!(format!("answer {at}")), &json!(at + 1)));
        let end = &of["after_agent"][at];
        assert_eq!((&end["response"], &end["prompt"]), (&json!(format!("answer {at}")), &json!(prompt)));
        assert_eq!(end["tool_calls"].as_array().unwrap().len(), 1);
    }
}

/// A hook that does what the prompt says after its name.
fn obedient(name: &str) -> String {
    format!(
        r#"prompt=$(sed 's/.*"prompt":"\([^"]*\)".*/\1/')
case $prompt in
  *{name}:block*) printf '{{"continue": false, "systemMessage": "{name} refuses %s"}}' "${{prompt%% *}}" ;;
  *{name}:note*) printf '{{"continue": true, "systemMessage": "{name} notes %s"}}' "${{prompt%% *}}" ;;
  *) printf '{{"continue": true}}' ;;
esac
"#
    )
}

#[test]
fn property_35_a_refusal_ends_the_turn_and_messages_enter_in_the_order_of_the_hooks() {
    let turns = cases(&[0_u8..6, 0..6, 0..6]);
    let word = |name: &str, byte: u8| match byte {
        0 => format!(" {name}:block"),
        1..=3 => format!(" {name}:note"),
        _ => String::new(),
    };
    let (mut prompts, mut notes, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for (at, bytes) in turns.iter().enumerate() {
        let hooks: Vec<(&str, u8)> = ["a", "b", "c"].into_iter().zip(*bytes).collect();
        let prompt = format!("{at}{}", hooks.iter().map(|(name, byte)| word(name, *byte)).collect::<String>());
        let before: Vec<_> = hooks.iter().take_while(|(_, byte)| *byte != 0).collect();
        let noting = before.iter().filter(|(_, byte)| (1..=3).contains(byte));
        notes.extend(noting.map(|(name, _)| format!("{name} notes {at}")));
        if before.len() == hooks.len() {
            said.push(prompt.clone());
        }
        prompts.push(prompt);
    }
    let answers: Vec<Value> = said.iter().map(|prompt| json!({"content": "ok", "expect": {"last": prompt}})).collect();
    // What a refused last turn left to be told is told with the next one.
    let answers = [answers, vec![text("bye")]].concat();
    let lab = lab(&answers);
    for name in ["a", "b", "c"] {
        lab.user_hook("before_agent", name, &obedient(name), "");
    }
    chat(&lab, prompts.into_iter().chain(["bye".to_owned()]));
    let messages = saved(&lab);
    let of = |role: &str| -> Vec<String> {
        let of_role = messages.iter().filter(|message| message["role"] == role);
        of_role.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("system")[1..], notes);
    assert_eq!(of("user"), [said, vec!["bye".to_owned()]].concat());
}

#[test]
fn property_36_what_hooks_return_the_later_ones_of_the_same_event_see() {
    let turns = cases(&(prop::option::of(any::<u16>()), prop::option::of(any::<u16>())));
    let lab = lab(&vec![text("ok"); CASES]);
    for name in ["a", "b"] {
        let script = format!(
            r#"prompt=$(sed 's/.*"prompt":"\([^"]*\)".*/\1/')
case $prompt in
  *{name}=*) value=${{prompt##*{name}=}}; value=${{value%% *}}
    printf '{{"continue": true, "data": {{"{name}": %s, "both": "{name}%s"}}}}' "$value" "$value" ;;
  *) printf '{{"continue": true}}' ;;
esac
"#
        );
        lab.user_hook("before_agent", name, &script, "");
    }
    lab.user_hook("before_agent", "witness", WITNESS, "");
    let word = |name: &str, value: Option<u16>| value.map(|value| format!(" {name}={value}")).unwrap_or_default();
    chat(&lab, turns.iter().enumerate().map(|(at, (a, b))| format!("turn {at}{}{}", word("a", *a), word("b", *b))));
    let seen = seen(&lab);
    assert_eq!(seen.len(), CASES);
    for ((a, b), event) in turns.iter().zip(seen) {
        let data = &event["data"];
        let last = b.map(|b| format!("b{b}")).or(a.map(|a| format!("a{a}")));
        assert_eq!((&data["a"], &data["b"], &data["both"]), (&json!(a), &json!(b), &json!(last)), "{data:#}");
    }
}

/// Two servers of the user, each of which writes down what it is asked; calls of the second have little time.
fn with_servers(lab: &Lab) {
    let log = |name: &str| lab.root.join(format!("asked-{name}"));
    let server = |name: &str, timeout: u64| json!({"command": mcp_server(), "args": ["--log", log(name)], "toolTimeout": timeout});
    let servers = json!({"mcpServers": {"s": server("s", 60_000), "t": server("t", 2500)}});
    lab.write("home/.ollm/settings/mcp.json", servers.to_string());
}

/// A call, and what the model must read of it.
fn invocation() -> impl Strategy<Value = (Value, String)> {
    let server = prop_oneof![Just("s"), Just("t")];
    let quick = (server, "[a-zA-Z0-9 äß€]{1,40}", 0_u8..8).prop_map(|(server, words, kind)| match kind {
        0 => (call(&format!("mcp__{server}__fail"), json!({})), "error: it did not work".to_owned()),
        1 => (call(&format!("mcp__{server}__error"), json!({})), "something is wrong inside".to_owned()),
        2 => (call(&format!("mcp__{server}__link"), json!({})), "test://text".to_owned()),
        3 => (call(&format!("mcp__{server}__image"), json!({})), "image/png".to_owned()),
        _ => (call(&format!("mcp__{server}__echo"), json!({"text": words})), words),
    });
    let late = Just((call("mcp__t__slow", json!({"ms": 600_000})), "error: ".to_owned()));
    prop_oneof![60 => quick, 1 => late]
}

#[test]
fn property_37_a_call_goes_to_its_server_and_its_result_or_failure_comes_back_in_time() {
    let lab = lab(&[]);
    with_servers(&lab);
    let all = cases(&invocation());
    for some in all.chunks(32) {
        let mut answers: Vec<Value> = some.iter().map(|(call, _)| call.clone()).collect();
        for (number, answer) in answers.iter_mut().enumerate() {
            // The host does not make the very same call again and again.
            answer["tool_calls"][0]["arguments"]["number"] = json!(number);
        }
        answers.push(text("done"));
        for (answer, (_, told)) in answers.iter_mut().skip(1).zip(some) {
            answer["expect"] = json!({"role": "tool", "last": [told]});
        }
        talk(&lab, &answers);
        let ran = run(&lab, &["--approval", "yolo"]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    }
    lab.assert_nobody_is_left();
    for server in ["s", "t"] {
        let prefix = format!("mcp__{server}__");
        let name = |(call, _): &(Value, String)| call["tool_calls"][0]["name"].as_str().unwrap().to_owned();
        let meant = all.iter().filter(|case| name(case).starts_with(&prefix)).count();
        let asked = fs::read_to_string(lab.root.join(format!("asked-{server}"))).unwrap();
        assert_eq!(
            asked.lines().filter(|line| line.contains("tools/call")).count(),
            meant,
            "each call came to its server"
        );
    }
}

#[test]
fn property_38_progress_is_shown_and_structured_data_reaches_hooks_and_model() {
    let lab = lab(&[]);
    with_servers(&lab);
    lab.user_hook("after_tool", "witness", WITNESS, "");
    let all = cases(&prop_oneof![vec(-1000_i32..1000, 2).prop_map(Some), Just(None),]);
    let mut heard = 0;
    for some in all.chunks(32) {
        let mut answers = Vec::new();
        for (number, sum) in some.iter().enumerate() {
            answers.push(match sum {
                Some(parts) => call("mcp__s__add", json!({"a": parts[0], "b": parts[1], "number": number})),
                None => call("mcp__s__progress", json!({"steps": 2, "ms": 1, "number": number})),
            });
        }
        answers.push(text("done"));
        for (answer, sum) in answers.iter_mut().skip(1).zip(some) {
            let told = sum.as_ref().map_or("done".to_owned(), |parts| format!("{{\"sum\":{}.0}}", parts[0] + parts[1]));
            answer["expect"] = json!({"role": "tool", "last": [told]});
        }
        talk(&lab, &answers);
        let ran = run(&lab, &["--approval", "yolo", "--stream-json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let steps: Vec<Value> = lines.filter(|line| line["type"] == "progress").collect();
        assert!(steps.iter().all(|step| step["name"] == "mcp__s__progress"), "{steps:?}");
        heard += steps.len();
    }
    let asked = all.iter().filter(|sum| sum.is_none()).count();
    // The last step of a call may be overtaken by its result; the first one may not.
    assert!((asked..=2 * asked).contains(&heard), "{heard} of {} steps", 2 * asked);
    for (sum, event) in all.iter().zip(seen(&lab)) {
        let expected = sum.as_ref().map_or(json!("done"), |parts| json!({"sum": f64::from(parts[0] + parts[1])}));
        assert_eq!(event["data"]["result"], expected, "{event:#}");
    }
    lab.assert_nobody_is_left();
}

#[test]
fn what_hooks_change_is_shown_as_it_happens_with_their_names() {
    let lab = lab(&[call("read_file", json!({"path": "a"})), text("over")]);
    lab.write("project/b", "b");
    let hooks = json!({"hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "name": "bend", "command":
            "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"updatedInput\": {\"path\": \"b\"}}}'"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "name": "swap", "command":
            "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PostToolUse\", \"updatedToolOutput\": \"other\"}}'"}]}],
    }});
    lab.user("all.json", hooks.to_string());
    lab.user_hook(
        "before_tool_selection",
        "few",
        "echo '{\"continue\": true, \"data\": {\"available_tools\": [\"read_file\"]}}'",
        "",
    );
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "changed the arguments of read_file",
        "replaced the result of read_file",
        "hook `few`: left only these tools on offer: read_file",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:?}");
    }
}

#[test]
fn the_configuration_says_how_often_hooks_keep_a_turn_going() {
    let lab = lab(&vec![text("done"); 9]);
    lab.user_hook("after_agent", "again", "echo \"{\\\"continue\\\": false, \\\"reason\\\": \\\"more $$\\\"}\"", "");
    for (most, answers) in [("2", 3), ("1", 2)] {
        let ran =
            lab.run(&[&["--set", &format!("hooks.maxContinuations={most}")][..], &task(&["--stream-json"])].concat());
        let said = ran.stdout.lines().filter(|line| line.contains("\"type\":\"answer\"")).count();
        assert_eq!((ran.code, said), (0, answers), "{ran:?}");
    }
}
