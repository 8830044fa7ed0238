//! Laws of the configuration: which origin wins, what a project can never do, and that a change changes nothing else.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

use ollm_catalog::{Catalog, Config, Edit, Setting, change_config};
use ollm_protocol::Layer;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::world::World;

const USER: &str = "home/.ollm/config.yaml";
const PROJECT: &str = "project/.ollm/config.yaml";

/// What the model knows about a setting: its values from the loosest to the strictest, as far as they can be compared.
struct Known {
    path: &'static str,
    variable: Option<&'static str>,
    values: &'static [&'static str],
    default: &'static str,
    project: Rule,
}

/// What a project may do, said once more and differently.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Nothing,
    Anything,
    Only(&'static str),
    Less,
}

const KNOWN: &[Known] = &[
    known("hooks.enabled", Some("OLLM_HOOKS_ENABLED"), &["true", "false"], "true", Rule::Nothing),
    known(
        "hooks.untrusted",
        Some("OLLM_HOOKS_UNTRUSTED"),
        &["\"skip\"", "\"block\""],
        "\"skip\"",
        Rule::Only("\"block\""),
    ),
    known("hooks.trustWorkspace", None, &["true", "false"], "false", Rule::Only("false")),
    known("hooks.rateLimit.perMinute", Some("OLLM_HOOKS_RATE_LIMIT_PER_MINUTE"), &["1", "60"], "null", Rule::Nothing),
    known(
        "hooks.rateLimit.cooldownMs",
        Some("OLLM_HOOKS_RATE_LIMIT_COOLDOWN_MS"),
        &["0", "7", "60000"],
        "0",
        Rule::Nothing,
    ),
    known("extensions.autoEnable", Some("OLLM_EXTENSIONS_AUTO_ENABLE"), &["true", "false"], "true", Rule::Nothing),
    known("mcp.enabled", Some("OLLM_MCP_ENABLED"), &["true", "false"], "true", Rule::Nothing),
    known(
        "mcp.connectionTimeout",
        Some("OLLM_MCP_CONNECTION_TIMEOUT"),
        &["1", "10000", "20000"],
        "10000",
        Rule::Nothing,
    ),
    known("model.baseUrl", Some("OLLM_MODEL_BASE_URL"), &["\"http://a\"", "\"https://b/c\""], "null", Rule::Nothing),
    known("model.temperature", Some("OLLM_MODEL_TEMPERATURE"), &["0.0", "0.5", "2.0"], "null", Rule::Anything),
    known("model.maxTokens", Some("OLLM_MODEL_MAX_TOKENS"), &["1", "10", "100"], "null", Rule::Less),
    known("trace.format", Some("OLLM_TRACE_FORMAT"), &["\"json\"", "\"compact\""], "\"pretty\"", Rule::Anything),
    known("log.level", Some("OLLM_LOG_LEVEL"), &["\"off\"", "\"error\""], "\"warn\"", Rule::Nothing),
];

const fn known(
    path: &'static str,
    variable: Option<&'static str>,
    values: &'static [&'static str],
    default: &'static str,
    project: Rule,
) -> Known {
    Known { path, variable, values, default, project }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// For each known setting perhaps a value.
fn layer() -> impl Strategy<Value = Vec<Option<&'static str>>> {
    let each: Vec<_> = KNOWN.iter().map(|known| prop::option::of(select(known.values))).collect();
    each
}

fn file(values: &[Option<&'static str>]) -> String {
    let mut root = json!({});
    for (known, value) in KNOWN.iter().zip(values) {
        if let Some(value) = value {
            let slot = known.path.split('.').fold(&mut root, |node, name| &mut node[name]);
            *slot = parsed(value);
        }
    }
    root.to_string()
}

/// The slow and obvious way to find what applies.
fn model(known: &Known, user: Option<&str>, project: Option<&str>, variable: Option<&str>) -> Value {
    let mut value = parsed(user.unwrap_or(known.default));
    if let Some(said) = project.map(parsed) {
        let heard = match known.project {
            Rule::Nothing => false,
            Rule::Anything => true,
            Rule::Only(only) => said == parsed(only),
            Rule::Less => value.is_null() || said.as_f64().unwrap() < value.as_f64().unwrap(),
        };
        if heard {
            value = said;
        }
    }
    let strict = match known.path {
        "hooks.enabled" => Some(Value::from(true)),
        "hooks.untrusted" => Some("block".into()),
        _ => None,
    };
    match variable.map(parsed) {
        Some(said) if strict.is_none_or(|strict| said == strict) => said,
        _ => value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_layers_give_what_a_slow_and_obvious_model_gives(user in layer(), project in layer(), variables in layer(), flag in prop::option::of(any::<bool>())) {
        let mut world = World::new();
        world.write(USER, file(&user));
        world.write(PROJECT, file(&project));
        for (known, value) in KNOWN.iter().zip(&variables) {
            if let (Some(name), Some(value)) = (known.variable, value) {
                world.env.insert(name.to_owned(), value.trim_matches('"').to_owned());
            }
        }
        world.overrides.enabled = flag;
        let (Catalog { config, .. }, _) = world.load();
        for (index, known) in KNOWN.iter().enumerate() {
            let variable = known.variable.and(variables[index]);
            let mut expected = model(known, user[index], project[index], variable);
            if let (Some(flag), "hooks.enabled") = (flag, known.path) {
                expected = flag.into();
            }
            prop_assert_eq!(config.get(known.path).unwrap().value, expected, "{}", known.path);
        }
    }
}

/// A line of a project's file: anything that can be said, sensible or not.
fn claim() -> impl Strategy<Value = (&'static str, String)> {
    let path = select(vec![
        "hooks.enabled",
        "hooks.timeout",
        "hooks.trustWorkspace",
        "hooks.untrusted",
        "hooks.whitelist",
        "hooks.guards",
        "hooks.rateLimit.perMinute",
        "hooks.rateLimit.cooldownMs",
        "hooks.http.allow",
        "hooks.signatureKeys",
        "hooks.pins",
        "extensions.enabled",
        "extensions.directories",
        "extensions.autoEnable",
        "extensions.settings.git.token",
        "mcp.enabled",
        "mcp.connectionTimeout",
        "mcp.toolTimeout",
        "mcp.autoRestart",
        "mcp.servers.mine",
        "mcp.servers.new",
        "model.provider",
        "model.name",
        "model.baseUrl",
        "model.apiKeyEnv",
        "model.temperature",
        "model.maxTokens",
        "model.contextWindow",
        "model.other",
        "trace.enabled",
        "trace.maxSize",
        "trace.maxFiles",
        "log.level",
        "hooks.trust_workspace",
        "hooksEnabled",
        "hooks_timeout",
        "trustedWorkspace",
        "mcpServers.mine",
        "version",
    ]);
    let value = prop_oneof![
        select(vec![
            "true",
            "false",
            "\"true\"",
            "\"off\"",
            "0",
            "1",
            "5",
            "60000",
            "\"1ms\"",
            "\"1h\"",
            "-1",
            "0.5",
            "\"skip\"",
            "\"block\"",
            "[]",
            "[\"/\"]",
            "[\"rm\"]",
            "[\"localhost\"]",
            "[\"destructive-commands\"]",
            "{\"command\":\"evil\"}",
            "{\"url\":\"http://evil\"}",
            "\"http://evil\"",
            "\"HOME\"",
            "null",
            "{}",
        ])
        .prop_map(str::to_owned),
        "[a-z/~]{0,6}".prop_map(|text| Value::from(text).to_string()),
    ];
    (path, value)
}

fn claims() -> impl Strategy<Value = String> {
    prop::collection::vec(claim(), 0..12).prop_map(|claims| {
        let mut root = json!({});
        for (path, value) in claims {
            let mut node = &mut root;
            for name in path.split('.') {
                if !node.is_object() {
                    *node = json!({});
                }
                node = &mut node[name];
            }
            *node = parsed(&value);
        }
        root.to_string()
    })
}

/// What the user alone decides, and nothing of a project may change.
fn untouchable(config: &Config) -> Vec<(String, Value)> {
    let free = [
        "version",
        "hooks.trustWorkspace",
        "hooks.untrusted",
        "hooks.guards",
        "model.temperature",
        "model.maxTokens",
        "model.contextWindow",
        "trace.format",
    ];
    let touched = |setting: &Setting| free.contains(&setting.path.as_str()) || setting.path.starts_with("mcp.servers.");
    config
        .settings()
        .into_iter()
        .filter(|setting| !touched(setting))
        .map(|setting| (setting.path, setting.value))
        .collect()
}

/// Whether a number is not larger than another one, where nothing is without bounds.
fn at_most(one: Option<Value>, other: Option<Value>) -> bool {
    match (one.and_then(|value| value.as_f64()), other.and_then(|value| value.as_f64())) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one <= other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_project_never_loosens_anything(user in claims(), project in claims()) {
        let world = World::new();
        world.write(USER, &user);
        let (without, _) = world.load();
        world.write(PROJECT, &project);
        let (with, _) = world.load();
        let (strict, loose) = (&with.settings, &without.settings);
        prop_assert_eq!(untouchable(&with.config), untouchable(&without.config));
        prop_assert!(!strict.trust_workspace || loose.trust_workspace);
        prop_assert!(strict.untrusted_blocks || !loose.untrusted_blocks);
        prop_assert!(loose.guards.iter().all(|guard| strict.guards.contains(guard)));
        let bound = loose.timeout.unwrap_or(Duration::from_secs(30));
        prop_assert!(strict.workspace_timeout.is_none_or(|time| time < bound));
        for path in ["model.maxTokens", "model.contextWindow"] {
            let value = |config: &Config| config.get(path).map(|setting| setting.value).filter(|value| !value.is_null());
            prop_assert!(at_most(value(&with.config), value(&without.config)), "{}", path);
        }
        let servers = |config: &Config| {
            let settings = config.settings().into_iter();
            settings.filter(|setting| setting.path.starts_with("mcp.servers.")).collect::<Vec<_>>()
        };
        let (theirs, mine) = (servers(&with.config), servers(&without.config));
        prop_assert!(mine.iter().all(|server| theirs.contains(server)));
        for server in theirs {
            prop_assert!(mine.contains(&server) || server.origin.layer() == "project", "{:?}", server);
        }
        // What was not heard is said to have been ignored.
        prop_assert!(without.config.ignored.is_empty());
        // A project can never stop the program.
        let fatal = |world: &World| world.load().1.iter().filter(|problem| problem.severity == ollm_catalog::Severity::Fatal).count();
        let both = fatal(&world);
        fs::remove_file(world.path(PROJECT)).unwrap();
        prop_assert_eq!(both, fatal(&world));
    }
}

/// Settings to edit, each with ways to type a value and what that value is then.
fn assignment() -> impl Strategy<Value = (&'static str, String, Value)> {
    let fixed = |path: &'static str, typed: &'static [(&'static str, &'static str)]| {
        select(typed).prop_map(move |(typed, value)| (path, typed.to_owned(), parsed(value)))
    };
    let count =
        |path: &'static str| (1..100_000_u64).prop_map(move |count| (path, count.to_string(), Value::from(count)));
    let text = "[^\\x00]{0,3}\\PC{1,12}".prop_filter("not blank", |text| !text.trim().is_empty());
    prop_oneof![
        fixed("hooks.enabled", &[("true", "true"), ("no", "false")]),
        fixed("hooks.timeout", &[("5s", "5000"), ("1.5 s", "1500"), ("250", "250")]),
        fixed("hooks.untrusted", &[("skip", "\"skip\""), ("block", "\"block\"")]),
        fixed(
            "hooks.whitelist",
            &[("deno", "[\"deno\"]"), ("a,b", "[\"a\",\"b\"]"), ("[]", "[]"), ("[x, y]", "[\"x\",\"y\"]")]
        ),
        fixed(
            "mcp.servers.s",
            &[
                ("{command: x}", "{\"command\":\"x\"}"),
                ("{url: \"http://a\", env: {A: b}}", "{\"url\":\"http://a\",\"env\":{\"A\":\"b\"}}")
            ]
        ),
        count("hooks.rateLimit.perMinute"),
        count("hooks.rateLimit.cooldownMs"),
        count("mcp.toolTimeout"),
        text.prop_map(|text| ("model.name", text.clone(), Value::from(text))),
    ]
}

/// A configuration as people write them: sections in any order, in lines or in braces, with comments between.
fn written() -> impl Strategy<Value = String> {
    let blocks = vec![
        (
            "hooks",
            vec![
                "enabled: true",
                "timeout: 5s",
                "untrusted: skip",
                "whitelist: [sh, node]",
                "rateLimit: {perMinute: 3}",
            ],
        ),
        ("mcp", vec!["enabled: true", "toolTimeout: 60000", "servers: {s: {command: a}}"]),
        ("model", vec!["name: 'it''s'", "temperature: 0.5", "own: [1, {a: b}]", "text: \"a # b: }\""]),
        ("trace", vec!["format: json"]),
    ];
    let section = |(name, lines): (&'static str, Vec<&'static str>)| {
        let count = lines.len();
        (subsequence(lines, 0..=count), 0..4_u8, 0..3_u8)
            .prop_map(move |(lines, style, comments)| spelled(name, &lines, style, comments))
    };
    let sections: Vec<_> = blocks.into_iter().map(section).collect();
    (sections.prop_shuffle(), 0..=4_usize, any::<bool>()).prop_map(|(sections, kept, ends)| {
        let text = sections.into_iter().take(kept).collect::<String>();
        if ends { text } else { text.trim_end().to_owned() }
    })
}

fn spelled(name: &str, lines: &[&str], style: u8, comments: u8) -> String {
    let mut text = if comments > 0 { format!("# about {name}\n") } else { String::new() };
    let indent = if style == 1 { "    " } else { "  " };
    match style {
        2 if !lines.is_empty() => {
            let _ = writeln!(text, "{name}: {{{}}} # {name} in braces", lines.join(", "));
        }
        _ => {
            let _ = writeln!(text, "{name}:");
            for (index, line) in lines.iter().enumerate() {
                if comments > 1 {
                    let _ = writeln!(text, "{indent}# {name} {index}");
                }
                let _ = writeln!(text, "{indent}{line} # the value {index} of {name}");
            }
        }
    }
    if style == 3 { text + "\n" } else { text }
}

fn comments(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.find("# ").map(|at| line[at..].to_owned()))
        .filter(|comment| !comment.contains(['}', '"']))
        .collect()
}

fn said(world: &World) -> BTreeMap<String, Value> {
    let (catalog, problems) = world.load();
    assert_eq!(problems, [], "{}", fs::read_to_string(world.path(USER)).unwrap());
    catalog.config.settings().into_iter().map(|setting| (setting.path, setting.value)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_set_is_there_and_everything_else_stays(text in written(), edits in prop::collection::vec((assignment(), prop::bool::weighted(0.3)), 1..5)) {
        let mut world = World::new();
        world.places.project = None;
        world.write(USER, &text);
        let mut model = said(&world);
        for ((path, typed, value), unset) in edits {
            let before = fs::read_to_string(world.path(USER)).unwrap();
            let edit = if unset { Edit::Unset } else { Edit::Set(&typed) };
            let edited = change_config(&world.places, Layer::User, path, edit);
            let edited = edited.unwrap_or_else(|error| panic!("{before:?} {path} {typed:?}: {error:?}"));
            let after = fs::read_to_string(world.path(USER)).unwrap();
            let found = said(&world);
            if unset {
                let default = ollm_catalog::KEYS.iter().find(|key| key.path == path).map(ollm_catalog::Key::default_value);
                match default {
                    Some(default) => model.insert(path.to_owned(), default),
                    None => model.remove(path),
                };
            } else {
                prop_assert_eq!(edited.value.as_ref(), Some(&value));
                model.insert(path.to_owned(), value);
                prop_assert_eq!(comments(&after), comments(&before), "{:?}\n{:?}", before, after);
            }
            prop_assert_eq!(&found, &model, "{:?}\n{:?}", before, after);
            let most = if path == "mcp.servers.s" { 4 } else { 1 };
            prop_assert!(changed_lines(&before, &after) <= most, "{before:?}\n{after:?}");
        }
    }
}

/// How many lines at one place make way for others; all lines before and behind them are there in the same order.
fn changed_lines(before: &str, after: &str) -> usize {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let alike = |(one, other): &(&&str, &&str)| one == other;
    let front = before.iter().zip(&after).take_while(alike).count();
    let back = before[front..].iter().rev().zip(after[front..].iter().rev()).take_while(alike).count();
    before.len() - front - back
}
