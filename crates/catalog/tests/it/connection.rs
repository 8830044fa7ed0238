//! Our entries in the settings files of other agents.

use ollm_catalog::connection::{
    ConnectionSpec, MadeParts, asks_us, called_programs, connected, disconnected, own_entries, rejected,
};
use ollm_catalog::{TrailingCommas, json_value};
use ollm_protocol::dialect::agents::home::Form;
use ollm_protocol::dialect::{AGENTS, AgentDialect};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn line(agent: &AgentDialect, event: &str) -> String {
    format!("'/opt/my tools/ollm' hook run {event} --from {}", agent.name)
}

fn connect(text: &str, agent: &AgentDialect) -> Result<(String, MadeParts), String> {
    connected(text, &ConnectionSpec { agent, line: &|event| line(agent, event) }).map(|done| (done.text, done.made))
}

fn in_files() -> impl Iterator<Item = &'static AgentDialect> {
    AGENTS.iter().copied().filter(|agent| !matches!(agent.home.form, Form::Own(_)))
}

fn value(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() { Value::Null } else { json_value(text, TrailingCommas::Allowed).unwrap() }
}

const TEXTS: &[&str] = &[
    "",
    "{}",
    "{\n  \"model\": \"opus\"\n}\n",
    "{\r\n  \"hooks\": {\r\n    \"PreToolUse\": []\r\n  }\r\n}\r\n",
    "\u{feff}{\"hooks\": {\"Stop\": [{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}",
    "{\n\t// mine\n\t\"hooks\": {\n\t\t\"preToolUse\": [{\"command\": \"./check\"},], /* all */\n\t},\n}\n",
];

#[test]
fn an_agent_is_told_once_per_event_and_everything_else_stays() {
    for agent in in_files() {
        for text in TEXTS {
            let (told, made) = connect(text, agent).unwrap();
            let entries = own_entries(&told, agent.name, agent.home.form).unwrap();
            let mut events: Vec<&str> = entries.iter().map(|entry| entry.event.as_str()).collect();
            let mut wanted = agent.home.events.to_vec();
            events.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(events, wanted, "{}: {text:?}", agent.name);
            assert!(entries.iter().all(|entry| entry.command == line(agent, &entry.event)));
            assert_eq!(connect(&told, agent).unwrap().0, told, "a second time changes nothing");
            for kept in ["// mine", "/* all */", "\u{feff}"] {
                assert_eq!(text.contains(kept), told.contains(kept), "{kept:?}");
            }
            let (back, empty) = disconnected(&told, agent.name, agent.home.form, &made).unwrap();
            assert!(own_entries(&back, agent.name, agent.home.form).unwrap().is_empty());
            if text.trim().is_empty() {
                assert!(empty, "{back:?}");
            } else {
                assert_eq!(value(&back), value(text), "{}: {back:?}", agent.name);
                assert_eq!(empty, value(text) == json!({}));
            }
        }
    }
}

#[test]
fn an_entry_of_another_path_is_replaced_and_a_second_one_goes() {
    let claude = AGENTS.iter().copied().find(|agent| agent.name == "claude").unwrap();
    let old = "/old/ollm hook run PreToolUse --from claude";
    let theirs = json!({"type": "command", "command": "echo ollm hook run"});
    let gemini = json!({"type": "command", "command": "/old/ollm hook run PreToolUse --from gemini"});
    let text = json!({"hooks": {
        "PreToolUse": [{"hooks": [{"type": "command", "command": old}, theirs]}, {"hooks": [{"type": "command", "command": old}]}],
        "Elicitation": [{"hooks": [{"type": "command", "command": old}]}],
        "Stop": [{"hooks": [gemini]}],
    }})
    .to_string();
    let (told, made) = connect(&text, claude).unwrap();
    assert!(!told.contains(old), "{told}");
    let found = value(&told);
    assert_eq!(found["hooks"]["PreToolUse"].as_array().unwrap().len(), 2);
    assert_eq!(found["hooks"]["PreToolUse"][0]["hooks"], json!([theirs]));
    assert_eq!(found["hooks"]["Stop"][0]["hooks"], json!([gemini]), "another agent's line is not this one's");
    assert_eq!(found["hooks"]["Elicitation"], json!([]), "a list that was there stays");
    let (back, _) = disconnected(&told, "claude", claude.home.form, &made).unwrap();
    assert_eq!(
        value(&back),
        json!({"hooks": {"PreToolUse": [{"hooks": [theirs]}], "Elicitation": [], "Stop": [{"hooks": [gemini]}]}})
    );
}

#[test]
fn a_text_asks_us_where_our_program_is_called_for_that_agent() {
    for (text, program) in [
        ("/opt/ollm hook run --from claude", "/opt/ollm"),
        ("'/my tools/ollm' hook run Stop --from claude --within 600s", "/my tools/ollm"),
        ("const line = \"'/my tools/ollm' hook run --from claude\";\n", "/my tools/ollm"),
        ("X=1 /opt/ollm-next hook run --from=claude", "/opt/ollm-next"),
        ("#!/bin/sh\n/opt/renamed hook run --from claude\n", "/opt/renamed"),
        ("command -v ollm || exit 0; ollm hook run Stop --from claude", "ollm"),
        ("ollm hook run --from gemini; /opt/ollm hook run --from claude", "/opt/ollm"),
        ("{\"command\": \"/opt/ollm hook run --from claude\", \"timeout\": 5}", "/opt/ollm"),
    ] {
        assert_eq!(called_programs(text, "claude").collect::<Vec<_>>(), [program], "{text}");
    }
    for text in [
        "ollm hook run",
        "ollm hook run --from claudette",
        "ollm hook run\n--from claude",
        "ollm hook runner --from claude",
        "husky hook run claude",
        "ollm hook list --from claude",
    ] {
        assert!(!asks_us(text, "claude"), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_understood_is_not_changed() {
    for (text, why) in [
        ("{\"hooks\": ", "JSON"),
        ("[]", "not a JSON object"),
        ("{\"hooks\": []}", "`hooks` is a list, not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` is a map, not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", "`hooks` is in it twice"),
    ] {
        for agent in in_files() {
            let said = connect(text, agent).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}

#[test]
fn what_an_agent_itself_would_not_read_is_known() {
    let of = |id: &str| AGENTS.iter().copied().find(|agent| agent.name == id).unwrap();
    for (id, text, why) in [
        ("claude", "{} // x", Some("comments")),
        ("claude", "{\"a\": [1,]}", Some("comma")),
        ("claude", "\u{feff}{}", None),
        ("codex", "\u{feff}{}", Some("byte order mark")),
        ("codex", "{\"description\": \"x\", \"hooks\": {}, \"model\": \"x\"}", Some("`model`")),
        ("codex", "{\"description\": \"x\", \"hooks\": {}}", None),
        ("claude", "{\"model\": \"x\"}", None),
        ("gemini", "{\"a\": [1,]}", Some("comma")),
        ("gemini", "{} // x", None),
        ("qwen", "{\"a\": [1,]} // x", None),
        ("copilot", "{}\r\n", None),
    ] {
        let found = rejected(text, &of(id).home);
        assert_eq!(found.is_some(), why.is_some(), "{id} {text:?} {found:?}");
        assert!(found.as_deref().unwrap_or_default().contains(why.unwrap_or_default()), "{id} {text:?} {found:?}");
    }
}

#[test]
fn every_event_that_an_agent_is_told_to_ask_at_is_one_of_its_own() {
    for agent in AGENTS {
        for event in agent.home.events {
            assert!(agent.events.iter().any(|known| known.name == *event), "{}: {event}", agent.name);
        }
    }
}

/// Settings as people have them: keys of all kinds, and hooks in groups or flat.
fn settings() -> impl Strategy<Value = Value> {
    let handler = "[a-z ./-]{1,12}".prop_map(|command| json!({"type": "command", "command": command}));
    let group =
        prop::collection::vec(handler.clone(), 0..3).prop_map(|hooks| json!({"matcher": "Bash", "hooks": hooks}));
    let list = prop::collection::vec(prop_oneof![group, handler], 0..3).prop_map(Value::Array);
    let event =
        prop::sample::select(vec!["PreToolUse", "Stop", "preToolUse", "Other", "pre_run_command", "BeforeTool"]);
    let hooks = prop::collection::btree_map(event, list, 0..4)
        .prop_map(|events| Value::Object(events.into_iter().map(|(key, list)| (key.to_owned(), list)).collect()));
    let other = prop::collection::btree_map(
        "[a-g]",
        prop_oneof![Just(json!(1)), Just(json!({"x": []})), Just(json!("t"))],
        0..3,
    );
    (other, prop::option::of(hooks)).prop_map(|(other, hooks)| {
        let mut all: Map<String, Value> = other.into_iter().collect();
        all.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        Value::Object(all)
    })
}

proptest! {
    #[test]
    fn what_was_connected_and_disconnected_is_as_it_was(settings in settings(), pretty: bool, index in 0..AGENTS.len()) {
        let agent = AGENTS[index];
        prop_assume!(!matches!(agent.home.form, Form::Own(_)));
        let text = if pretty { format!("{settings:#}") } else { settings.to_string() };
        let (told, made) = connect(&text, agent).unwrap();
        prop_assert_eq!(own_entries(&told, agent.name, agent.home.form).unwrap().len(), agent.home.events.len());
        let (back, _) = disconnected(&told, agent.name, agent.home.form, &made).unwrap();
        prop_assert_eq!(back, text);
    }
}

#[test]
fn what_somebody_wrote_around_a_call_of_ours_is_theirs() {
    let claude = AGENTS.iter().copied().find(|agent| agent.name == "claude").unwrap();
    let entry = |line: &str| json!({"hooks": [{"type": "command", "command": line}]});
    let theirs = [
        "echo not ollm hook run --from claude",
        "MODE=1 /usr/bin/ollm hook run Stop --from claude",
        "/usr/bin/ollm hook run Stop --from claude | tee log",
        "/usr/bin/ollm hook run Stop --from claude; true",
        "/usr/bin/ollm hook run Stop --from gemini",
        "/opt/renamed hook run Stop --from claude | tee log",
        "/opt/renamed hook run Stop",
    ];
    let ours = [
        "'/opt/my tools/ollm' hook run Stop --from claude --within 30s",
        "ollm hook run --from=claude",
        "/opt/renamed hook run Stop --from claude --within 600s",
    ];
    let lists = |lines: &[&str]| json!({"hooks": {"Stop": lines.iter().map(|line| entry(line)).collect::<Vec<_>>()}});
    let (text, form) = (lists(&[&theirs[..], &ours[..]].concat()).to_string(), claude.home.form);
    assert_eq!(own_entries(&text, "claude", form).unwrap().len(), ours.len());
    let (left, _) = disconnected(&text, "claude", form, &MadeParts::default()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), lists(&theirs));
}

#[test]
fn an_event_that_is_there_twice_is_refused() {
    let claude = AGENTS.iter().copied().find(|agent| agent.name == "claude").unwrap();
    let wish = ConnectionSpec { agent: claude, line: &|event| format!("/bin/ollm hook run {event} --from claude") };
    let refused = connected(r#"{"hooks": {"Stop": [], "Stop": [{"hooks": []}]}}"#, &wish).unwrap_err();
    assert!(refused.contains("`hooks.Stop` is in it twice"), "{refused}");
}
