//! Every tool of the table, under every name and with every name of its arguments; and tools that are in no table.

use std::path::Path;

use ollm_guard::{destructive, tampering};
use ollm_protocol::tool::Effect;
use ollm_protocol::tool::table::{FOREIGN, TOOLS};
use ollm_protocol::{Event, Flow};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{HOME, PROJECT, call, shelter};

fn destroys(event: &Event) -> Flow {
    destructive(event, Path::new(PROJECT), Some(Path::new(HOME))).flow
}

fn tampers(event: &Event) -> Flow {
    tampering(event, &shelter()).flow
}

/// Every name of a tool with every name of an argument that its declaration speaks of.
fn spelled() -> Vec<(&'static str, &'static str, Effect)> {
    let own = TOOLS.iter().flat_map(|tool| tool.effects.iter().map(|(arg, effect)| (tool.name, *arg, *effect)));
    let foreign = FOREIGN.iter().flat_map(|row| {
        let renamed = row.args.iter().map(|(theirs, _)| *theirs);
        let args = renamed.chain(row.tool.effects.iter().map(|(arg, _)| *arg));
        args.filter_map(|arg| Some((row.name, arg, row.tool.effect(arg)?)))
    });
    own.chain(foreign).collect()
}

/// The same name as others write it.
fn cased(name: &str, way: usize) -> String {
    match way {
        0 => name.to_owned(),
        1 => name.to_uppercase(),
        2 => name.replace('_', "-"),
        _ => format!("mcp__any__{name}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn a_declared_effect_is_looked_at_in_every_vocabulary(
        (name, arg, effect) in prop::sample::select(spelled()),
        way in 0..4_usize,
        among in prop::collection::vec("[a-z]{12,16}", 0..3),
    ) {
        let with = |value: Value| {
            let mut args: serde_json::Map<_, _> = among.iter().map(|name| (name.clone(), json!("x"))).collect();
            args.insert(arg.to_owned(), value);
            call(&cased(name, way), args.into())
        };
        match effect {
            Effect::RunsShell | Effect::TypesIntoShell => {
                prop_assert_eq!(destroys(&with(json!("true; rm -rf ~"))), Flow::Block);
                prop_assert_eq!(tampers(&with(json!("echo x > ~/.ollm/config.yaml"))), Flow::Block);
            }
            Effect::RunsEach => {
                prop_assert_eq!(destroys(&with(json!(["ls", "rm -rf ~"]))), Flow::Block);
                prop_assert_eq!(tampers(&with(json!(["ls", "echo x > ~/.ollm/config.yaml"]))), Flow::Block);
            }
            Effect::WritesPath | Effect::RemovesPath => {
                prop_assert_eq!(tampers(&with(json!("~/.ollm/config.yaml"))), Flow::Block);
                prop_assert_eq!(tampers(&with(json!(["x", ".ollm/config.yaml"]))), Flow::Block);
            }
            Effect::AppliesPatch => {
                let patch = "*** Begin Patch\n*** Update File: .ollm/config.yaml\n@@\n";
                prop_assert_eq!(tampers(&with(json!(patch))), Flow::Block);
            }
            Effect::ReadsPath if way < 3 => {
                prop_assert_eq!(tampers(&with(json!("~/.ollm/config.yaml"))), Flow::NoOpinion);
            }
            _ => {}
        }
    }

    #[test]
    fn a_tool_nobody_declared_is_refused_or_asked_about(
        name in "(mcp__[a-z]{3}__)?zz[a-z]{0,9}",
        arg in prop::sample::select(vec!["command", "cmd", "script", "code", "input", "text", "chars", "run"]),
    ) {
        let verdict = destroys(&call(&name, json!({arg: "true; rm -rf ~"})));
        prop_assert!(verdict >= Flow::Ask, "{}", verdict.name());
        prop_assert_eq!(destroys(&call(&name, json!({"text": "it's \"odd", "path": "x"}))), Flow::NoOpinion);
        prop_assert_eq!(tampers(&call(&name, json!({"file": "~/.ollm/config.yaml"}))), Flow::Block);
    }
}

#[test]
fn an_argument_that_no_table_knows_may_be_a_command() {
    let judge = |tool: &str, name: &str, value: Value| {
        let mut args = json!({"command": "ls", "file_path": "a.txt", "content": "x"});
        args[name] = value;
        let event = call(tool, args);
        destroys(&event).max(tampers(&event))
    };
    for (tool, name, value) in [
        ("Bash", "pre_command", json!("rm -rf ~")),
        ("shell", "before", json!("true && rm -rf ~")),
        ("run_shell_command", "hooks", json!({"after": ["rm -rf ~"]})),
        ("Bash", "wrap", json!(["rm", "-rf", "/"])),
        ("Bash", "env", json!({"GIT_PAGER": "echo x > ~/.ollm/config.yaml"})),
        ("Write", "post_command", json!("rm -rf ~")),
        ("Edit", "onSaveScript", json!("rm -rf ~")),
    ] {
        assert_eq!(judge(tool, name, value.clone()), Flow::Ask, "{tool} {name} {value}");
    }
    for (tool, name, value) in [
        ("Bash", "description", json!("Explain why `rm -rf ~` is refused")),
        ("Bash", "label", json!("Clean up with rm -rf ~ first")),
        ("Bash", "timeout", json!(5)),
        ("Bash", "env", json!({"CI": "1", "EDITOR": "vim"})),
        ("Bash", "before", json!("npm ci && rm -rf dist")),
        ("Write", "content", json!("rm -rf ~")),
        ("Write", "note", json!("rm -rf ~")),
        ("Edit", "new_string", json!("rm -rf ~")),
    ] {
        assert_eq!(judge(tool, name, value.clone()), Flow::NoOpinion, "{tool} {name} {value}");
    }
}

#[test]
fn a_row_means_one_tool_whatever_else_has_its_name() {
    for row in FOREIGN {
        // Where agents call different tools by one name, the later ones do the work of the first as well.
        let known = ollm_protocol::tool::declared(row.name).unwrap();
        assert!(row.tool.does(known), "{}: {}", row.name, known.name);
        assert!(row.args.iter().all(|(theirs, _)| row.tool.effect(theirs).is_some()), "{}", row.name);
    }
    for tool in TOOLS {
        assert!(tool.also.iter().all(|name| TOOLS.iter().any(|known| known.name == *name)), "{}", tool.name);
    }
}

#[test]
fn a_word_that_only_looks_counts_only_in_tools_that_have_such_words() {
    let file = ".ollm/config.yaml";
    let looks = |tool: &str, verb: &str| tampers(&call(tool, json!({"command": verb, "path": file})));
    assert_eq!(looks("str_replace_based_edit_tool", "view"), Flow::NoOpinion);
    assert_eq!(looks("str_replace_based_edit_tool", "create"), Flow::Block);
    assert_eq!(looks("edit_file", "view"), Flow::Block, "it edits whatever else it is told");
    assert_eq!(looks("mystery", "view"), Flow::Ask, "nobody declared it");
}

#[test]
fn no_name_makes_a_tool_nobody_declared_one_that_only_reads() {
    let file = "~/.ollm/config.yaml";
    for (tool, args, flow) in [
        ("mcp__fs__open", json!({"path": file, "mode": "w", "content": "b"}), Flow::Block),
        ("mcp__fs__open", json!({"path": file, "mode": "w"}), Flow::Block),
        ("mcp__fs__get_file", json!({"path": file, "content": "b"}), Flow::Block),
        ("mcp__fs__find", json!({"path": file, "text": "b"}), Flow::Block),
        ("mcp__web__fetch_to_file", json!({"url": "https://a.example", "output": file}), Flow::Block),
        ("mcp__fs__read_and_destroy", json!({"path": file}), Flow::Ask),
        ("mcp__fs__read_file", json!({"path": file}), Flow::Ask),
        ("mcp__fs__list", json!({"path": "."}), Flow::NoOpinion),
        ("mcp__fs__read_file", json!({"path": "src/main.rs"}), Flow::NoOpinion),
        ("mcp__fs__open", json!({"path": "notes.md", "mode": "w", "content": "b"}), Flow::NoOpinion),
        ("mcp__fs__move_file", json!({"source": "sub/x", "destination": "sub/.git"}), Flow::Ask),
    ] {
        let event = call(tool, args.clone());
        let verdict = tampers(&event).max(destroys(&event));
        let is_right = if flow == Flow::Ask { verdict >= flow } else { verdict == flow };
        assert!(is_right, "{tool} {args} is {}", verdict.name());
    }
}

#[test]
fn what_is_typed_is_refused_if_it_destroys_and_no_matter_otherwise() {
    let typed = |text: &str| destroys(&call("write_stdin", json!({"session_id": 1, "chars": text})));
    assert_eq!(typed("rm -rf ~\n"), Flow::Block);
    assert_eq!(typed("\u{3}"), Flow::NoOpinion);
    assert_eq!(typed("print(\"it's\n"), Flow::NoOpinion);
}

#[test]
fn a_folder_that_an_argument_names_counts_also_below_a_home() {
    let event = call("run_shell_command", json!({"command": "echo x > config.yaml", "directory": "~/.ollm"}));
    assert_eq!(tampers(&event), Flow::Block);
    let event = call("run_shell_command", json!({"command": "cat config.yaml", "directory": "~/.ollm"}));
    assert_eq!(tampers(&event), Flow::NoOpinion);
}
