//! The numbered properties of extensions that need live servers: one chat lives through all cases of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::SystemTime;

use ollm_store::{Switch, set_switches};
use ollm_trust::{ExtensionFolder, Term, Trust, TrustContext};
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Value, json};
use testkit::mcp_server;

use super::Chat;
use crate::lab::{Lab, eventually};

const NAMES: [&str; 3] = ["aa", "bb", "cc"];

/// What a chat shows of the hooks, the servers that are ready, and the tools.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    hooks: BTreeSet<String>,
    servers: BTreeSet<String>,
    /// The servers that have tools.
    tools: BTreeSet<String>,
}

/// An approved extension with so many hooks and servers.
fn furnish(lab: &Lab, name: &str, hooks: usize, servers: usize) {
    let root = lab.home.join(".ollm/extensions").join(name);
    let hooks: Vec<Value> = (0..hooks)
        .map(|index| json!({"name": format!("{name}-{index}"), "command": "sh", "args": ["run.sh"]}))
        .collect();
    let served = |index: usize| {
        (format!("{name}{index}"), json!({"command": mcp_server(), "args": ["--log", lab.root.join("asked")]}))
    };
    let manifest = json!({
        "name": name, "version": "1.0.0", "description": "d", "hooks": {"before_tool": hooks},
        "mcpServers": (0..servers).map(served).collect::<serde_json::Map<String, Value>>(),
        "settings": [{"name": "x", "description": "d", "default": name}],
    });
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(root.join("run.sh"), "").unwrap();
    let trust = Trust::new(lab.home.join(".ollm/trusted-hooks.json"), SystemTime::now);
    let (folder, context) = (ExtensionFolder::new(name, &root), TrustContext::default());
    let proposal = trust.propose(&folder, &context).unwrap();
    trust.approve(&folder, &proposal, Term::Always, &context).unwrap();
}

/// What there must be of such an extension.
fn expected<'a>(extensions: impl IntoIterator<Item = (&'a str, usize, usize)>) -> Seen {
    let mut seen = Seen::default();
    for (name, hooks, servers) in extensions {
        seen.hooks.extend((0..hooks).map(|index| format!("user:{name}:before_tool:{name}-{index}")));
        seen.servers.extend((0..servers).map(|index| format!("{name}{index}")));
    }
    seen.tools.clone_from(&seen.servers);
    seen
}

fn look(chat: &mut Chat) -> Seen {
    let mut seen = Seen::default();
    for name in chat.names("/mcp") {
        if name != "NAME" && chat.server(&name).0 == "ready" {
            seen.servers.insert(name);
        }
    }
    let hooks = chat.say("/hooks list --long");
    seen.hooks = hooks.split_whitespace().filter(|id| id.starts_with("user:")).map(str::to_owned).collect();
    let tools = chat.names("/tools");
    let server_of = |tool: &String| tool.strip_prefix("mcp__")?.strip_suffix("__echo").map(str::to_owned);
    seen.tools = tools.iter().filter_map(server_of).collect();
    seen
}

/// The chat shows this, and soon there are as many processes as servers: a process takes a moment to appear and to end.
fn shows(lab: &Lab, chat: &mut Chat, wanted: &Seen) -> Result<(), TestCaseError> {
    prop_assert_eq!(&look(chat), wanted);
    let running = || lab.processes().iter().filter(|line| line.contains("--log")).count();
    eventually("as many processes as servers", || running() == wanted.servers.len());
    Ok(())
}

fn switch(lab: &Lab, on: [bool; 3]) {
    let change = |(name, on): (&&str, bool)| (format!("extension:{name}"), Some(Switch { on, until: None }));
    let changes: Vec<_> = NAMES.iter().zip(on).map(change).collect();
    set_switches(&lab.home.join(".ollm/state/switches.json"), &changes, SystemTime::now()).unwrap();
}

/// The three extensions: one with a hook and a server, one with servers only, one with hooks only.
const SHAPES: [(usize, usize); 3] = [(1, 1), (0, 2), (2, 0)];

fn three(on: [bool; 3]) -> Seen {
    let all = NAMES.iter().zip(SHAPES).zip(on).filter(|(_, on)| *on);
    expected(all.map(|((name, (hooks, servers)), _)| (*name, hooks, servers)))
}

/// Runs cases one after the other against one chat.
fn in_one_chat<T: std::fmt::Debug>(
    lab: &Lab,
    cases: impl Strategy<Value = T>,
    mut law: impl FnMut(&mut Chat, T) -> Result<(), TestCaseError>,
) {
    let chat = std::cell::RefCell::new(Chat::new(lab, &[]));
    let law = std::cell::RefCell::new(&mut law);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) };
    let result = TestRunner::new(config).run(&cases, |case| (law.borrow_mut())(&mut chat.borrow_mut(), case));
    if let Err(error) = result {
        panic!("{error}\n{}", chat.borrow().told());
    }
    chat.into_inner().end();
    lab.assert_nobody_is_left();
}

/// Which are on, and one of them.
fn states() -> impl Strategy<Value = ([bool; 3], usize)> {
    (any::<[bool; 3]>(), 0_usize..3)
}

#[test]
fn property_14_hooks_servers_and_settings_of_what_is_loaded_are_registered() {
    let lab = Lab::new();
    let found = btree_map("[a-e]{2}", (0_usize..3, 0_usize..3), 0..3);
    in_one_chat(&lab, found, |chat, found: BTreeMap<String, (usize, usize)>| {
        let _ = fs::remove_dir_all(lab.home.join(".ollm/extensions"));
        for (name, (hooks, servers)) in &found {
            furnish(&lab, name, *hooks, *servers);
        }
        let wanted = expected(found.iter().map(|(name, (hooks, servers))| (name.as_str(), *hooks, *servers)));
        shows(&lab, chat, &wanted)?;
        let shown = lab.run(&["config", "show", "--json"]).stdout;
        for name in found.keys() {
            prop_assert!(shown.contains(&format!("extensions.settings.{name}.x")), "{}", shown);
        }
        Ok(())
    });
}

#[test]
fn property_17_disabling_takes_hooks_servers_and_tools_away_and_leaves_the_others_alone() {
    let lab = Lab::new();
    NAMES.iter().zip(SHAPES).for_each(|(name, (hooks, servers))| furnish(&lab, name, hooks, servers));
    in_one_chat(&lab, states(), |chat, (mut on, which)| {
        on[which] = true;
        switch(&lab, on);
        chat.say("");
        on[which] = false;
        switch(&lab, on);
        shows(&lab, chat, &three(on))
    });
}

#[test]
fn property_18_enabling_brings_hooks_servers_and_tools_and_leaves_the_others_alone() {
    let lab = Lab::new();
    NAMES.iter().zip(SHAPES).for_each(|(name, (hooks, servers))| furnish(&lab, name, hooks, servers));
    in_one_chat(&lab, states(), |chat, (mut on, which)| {
        on[which] = false;
        switch(&lab, on);
        chat.say("");
        on[which] = true;
        switch(&lab, on);
        shows(&lab, chat, &three(on))
    });
}
