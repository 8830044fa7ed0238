//! What is wrong in a hook file is told with file, line, column, field and value; what is right beside it loads.

use ollm_catalog::Severity::{self, Error, Warning};

use crate::world::World;

struct Case {
    /// The entry; the wrong part begins at the mark.
    entry: &'static str,
    severity: Severity,
    field: &'static str,
    value: &'static str,
    message: &'static str,
    help: Option<&'static str>,
}

const fn error(entry: &'static str, field: &'static str, value: &'static str, message: &'static str) -> Case {
    Case { entry, severity: Error, field, value, message, help: None }
}

const LOST: &str = "; the hook is not loaded";

#[test]
fn every_wrong_entry_is_told_with_its_place_and_the_entry_beside_it_loads() {
    #[rustfmt::skip]
    let cases = [
        error(r"§7", "", "7", "a hook must be a map of its keys, not a number"),
        error(r#"§{"name": "x"}"#, "", r#"{"name": "x"}"#, "the hook has no `command`"),
        error(r#"{"command": §["x"]}"#, ".command", r#"["x"]"#, "`command` must be text, not a list"),
        error(r#"{"command": §""}"#, ".command", r#""""#, "`command` is empty"),
        error(r#"{"command": §"a; b"}"#, ".command", r#""a; b""#, "command `a; b` holds shell characters"),
        error(r#"{"command": §"deno"}"#, ".command", r#""deno""#, "command `deno` is neither a path nor one of"),
        error(r#"{"action": {"type": "shell", "command": §"eval {{x}}"}}"#, ".action.command", r#""eval {{x}}""#, "`{{x}}` at column 6 stands inside program text for `eval`"),
        error(r#"{"action": {"type": "shell", "command": §"e 'a {{x}}"}}"#, ".action.command", r#""e 'a {{x}}""#, "a single quote at column 3 is never closed, so the script cannot hold {{variables}}"),
        error(r#"{"command": §"python3", "args": ["-c", "{{ x }}"]}"#, ".command", r#""python3""#, "`{{x}}` at column 17 stands inside program text for `python3`"),
        error(r#"{"command": "npx", "args": §{"a": 1}}"#, ".args", r#"{"a": 1}"#, "`args` must be a list of texts, not a map"),
        error(r#"{"command": "npx", "args": §[["a"]]}"#, ".args", r#"[["a"]]"#, "`args` must be a list of texts"),
        error(r#"{"command": "npx", "dialect": §"olm"}"#, ".dialect", r#""olm""#, "unknown dialect `olm`"),
        error(r#"{"command": "npx", "matcher": §"^x$"}"#, ".matcher", r#""^x$""#, "matcher `^x$` looks like a regular expression"),
        error(r#"{"command": "npx", "matcher": §5}"#, ".matcher", "5", "`matcher` must be text, not a number"),
        error(r#"{"command": "npx", "timeout": §"soon"}"#, ".timeout", r#""soon""#, "`timeout` must be a number, or text with a unit"),
        error(r#"{"command": "npx", "timeout": §-1}"#, ".timeout", "-1", "timeout -1 is not a positive time"),
        error(r#"{"command": "npx", "timeout": §0}"#, ".timeout", "0", "timeout 0 is not a positive time"),
        error(r#"{"command": "npx", "timeout": §true}"#, ".timeout", "true", "`timeout` must be a number"),
        error(r#"{"command": "npx", "parallel": §3}"#, ".parallel", "3", "`parallel` must be true or false, not a number"),
        error(r#"{"command": "npx", "enabled": §"maybe"}"#, ".enabled", r#""maybe""#, "`enabled` must be true or false"),
        error(r#"{"command": "npx", "env": §[]}"#, ".env", "[]", "`env` must be a map of names to text, not a list"),
        error(r#"{"command": "npx", "env": {"A": §[]}}"#, ".env.A", "[]", "`A` must be text, not a list"),
        error(r#"{"command": "npx", "env": {"A=B": §"x"}}"#, ".env.A=B", r#""x""#, "`A=B` cannot be the name of a variable"),
        error(r#"{"command": "npx", "limits": §5}"#, ".limits", "5", "`limits` must be a map, not a number"),
        error(r#"{"command": "npx", "limits": {"cpu": §5}}"#, ".limits.cpu", "5", "`cpu` must be a time with its unit"),
        error(r#"{"command": "npx", "limits": {"memory": §"much"}}"#, ".limits.memory", r#""much""#, "`memory` must be a number of bytes"),
        error(r#"{"command": "npx", "limits": {"files": §-1}}"#, ".limits.files", "-1", "`files` must be a whole number"),
        error(r#"{"command": "npx", "id": §" "}"#, ".id", r#"" ""#, "`id` must be text that is not empty"),
        error(r#"{"command": "npx", "type": §"http"}"#, ".type", r#""http""#, "only hooks of type \"command\""),
        error(r#"{"command": "npx", "id": "a", "command": §"bash"}"#, ".command", r#""bash""#, "`command` is written twice"),
        error(r#"{"matcher": "*", "hooks": §[{"command": "npx"}]}"#, ".hooks", r#"[{"command": "npx"}]"#, "`hooks` inside an entry"),
        Case { help: Some("did you mean `block`?"), ..error(r#"{"command": "npx", "onFailure": §"blok"}"#, ".onFailure", r#""blok""#, "`onFailure` must be one of allow, block, ask") },
        Case { help: Some("did you mean `high`?"), ..error(r#"{"command": "npx", "priority": §"hihg"}"#, ".priority", r#""hihg""#, "`priority` must be one of critical, high, normal, low") },
        Case { severity: Warning, help: Some("did you mean `timeout`?"), ..error(r#"{"command": "npx", §"timout": 5}"#, ".timout", "5", "unknown key `timout` is ignored") },
        Case { severity: Warning, help: None, ..error(r#"{"command": "npx", §"colour": 5}"#, ".colour", "5", "unknown key `colour` is ignored") },
        Case { help: Some("did you mean `memory`?"), ..error(r#"{"command": "npx", "limits": {§"memry": 5}}"#, ".limits.memry", "5", "unknown key `memry`") },
        Case { help: Some("did you mean `perMinute`?"), ..error(r#"{"command": "npx", "rateLimit": {§"perMinut": 5}}"#, ".rateLimit.perMinut", "5", "unknown key `perMinut`") },
        Case { help: Some("did you mean `permissions`?"), ..error(r#"{"command": "npx", §"permission": 5}"#, ".permission", "5", "unknown key `permission`") },
        Case { help: Some("did you mean `matcher`?"), ..error(r#"{"command": "npx", §"mather": 5}"#, ".mather", "5", "unknown key `mather`") },
        Case { help: Some("did you mean `if`?"), ..error(r#"{"command": "npx", §"iff": "true"}"#, ".iff", r#""true""#, "unknown key `iff`") },
        Case { severity: Warning, help: None, ..error(r#"{"command": "npx", "description": §[]}"#, ".description", "[]", "`description` must be text, not a list; it is ignored") },
    ];
    for case in &cases {
        let world = World::new();
        let before = case.entry.split('§').next().unwrap();
        let entry = case.entry.replace('§', "");
        let text = format!(
            "{{\"hooks\": {{\n  \"before_tool\": [\n    {{\"id\": \"ö\", \"command\": \"npx\"}}, {entry}\n]}}}}\n"
        );
        let file = world.write("home/.ollm/hooks/a.json", text);
        let (problem, loaded) = world.problem();
        let column = "    {\"id\": \"ö\", \"command\": \"npx\"}, ".chars().count() + before.chars().count() + 1;
        assert_eq!((problem.line, problem.column), (3, column), "{entry}");
        assert_eq!(problem.file, file);
        assert_eq!(problem.field, format!("hooks.before_tool[1]{}", case.field), "{entry}");
        assert_eq!(problem.value.as_deref(), Some(case.value), "{entry}");
        assert!(problem.message.starts_with(case.message), "{entry}: {}", problem.message);
        assert_eq!(problem.severity, case.severity, "{entry}");
        assert!(problem.snippet.is_some_and(|line| line.text.contains(&entry)));
        // A gate that cannot be loaded stands in the way instead.
        let lost = case.severity == Error && case.field != ".onFailure";
        assert_eq!(problem.message.ends_with(LOST), lost, "{entry}: {}", problem.message);
        assert_eq!(loaded, if lost { 1 } else { 2 }, "{entry}");
        if case.help.is_some() || case.severity == Warning {
            assert_eq!(problem.help.as_deref(), case.help, "{entry}");
        }
    }
}

#[test]
fn every_broken_file_is_told_with_its_place_and_the_file_beside_it_loads() {
    let deep = "[".repeat(10_000);
    let cases: &[(&str, usize, usize, &str, &str)] = &[
        ("", 0, 0, "it is empty", "write {\"hooks\": {}} or remove it"),
        (" \n", 0, 0, "it is empty", "write {\"hooks\": {}} or remove it"),
        ("[]", 1, 1, "a hook file must be a map, not a list", "write {\"hooks\""),
        ("null", 1, 1, "it is empty", "write {\"hooks\""),
        ("{\"hooks\": []}", 1, 11, "a map of events to hooks is needed, not a list", "write {\"hooks\""),
        ("{\"name\": 1}", 1, 1, "it has no `hooks`", "write {\"hooks\""),
        (
            "{\"name\": 1, \"evenType\": 1}",
            1,
            1,
            "it fits no form of hook file; it comes closest to a hook with `eventType` and `action`; nothing is loaded",
            "write {\"name\": …, \"eventType\"",
        ),
        (
            "{\"whn\": {}, \"the\": {}}",
            1,
            1,
            "it fits no form of hook file; it comes closest to a hook with `when` and `then`; nothing is loaded",
            "write {\"name\": …, \"when\"",
        ),
        (
            "{\"command\": \"npx\"}",
            1,
            1,
            "it fits no form of hook file; it comes closest to a hook with `eventType`",
            "write {",
        ),
        ("{\"hooks\": {\"befor_tool\": []}}", 1, 12, "unknown event `befor_tool`", ""),
        (
            "{\"hooks\": {\"before_tool\": {}}}",
            1,
            27,
            "`before_tool` must be a list, not a map",
            "put it in square brackets",
        ),
        ("{\"hooks\": {},\n \"hoks\": 1}", 2, 2, "unknown key `hoks` is ignored", "did you mean `hooks`?"),
        (
            "{ // ö comment\n  \"hooks\" {}}",
            2,
            11,
            "it is not valid JSON: expected a colon",
            "put a colon between the key and its value",
        ),
        ("{\"hooks\": /* x {}}", 1, 11, "it is not valid JSON", "close the comment with */"),
        ("{\"hooks\": {}}\n# x", 2, 1, "it is not valid JSON", "write comments as // or /* */ in JSON"),
        (
            "{\"hooks\": {},}",
            1,
            13,
            "it is not valid JSON: trailing comma",
            "remove the comma before the closing bracket",
        ),
        ("{\"hooks\": 'x'}", 1, 11, "it is not valid JSON", "write text in double quotes"),
        (
            "{\"hooks\": {",
            1,
            11,
            "it is not valid JSON: an object that is not closed",
            "the file ends too early; close every bracket and quote",
        ),
        (
            "{\"ö\": \"\\ud800\"}",
            1,
            0,
            "it is not valid JSON",
            "write the character itself, or both halves of the pair",
        ),
        (
            "{\"a\": \"x\ty\"}",
            1,
            0,
            "it is not valid JSON: a line break or control character inside text",
            "close the quote, or write line breaks and tabs inside text",
        ),
        ("{\"a\": \0}", 1, 7, "it is not valid JSON", "remove it; save the file as UTF-8"),
        (
            "{} {}",
            1,
            4,
            "it is not valid JSON: trailing characters",
            "one file holds one object; remove what follows it",
        ),
        (&deep, 1, 513, "it is not valid JSON: values are nested too deeply", "nest less deeply"),
    ];
    for (text, line, column, message, help) in cases {
        let world = World::new();
        world.write("home/.ollm/hooks/b.json", r#"{"before_tool": [{"command": "npx"}]}"#);
        let file = world.write("home/.ollm/hooks/a.json", text);
        let (problem, loaded) = world.problem();
        let short: String = text.chars().take(40).collect();
        assert_eq!((problem.file, loaded), (file, 1), "{short:?}");
        assert!(problem.message.starts_with(message), "{short:?}: {}", problem.message);
        let told = problem.help.unwrap_or_default();
        assert!(told.starts_with(help) && told.is_empty() == help.is_empty(), "{short:?}: {told}");
        assert_eq!(problem.line, *line, "{short:?}");
        assert!(*column == 0 && *line > 0 || problem.column == *column, "{short:?}: column {}", problem.column);
        assert!(problem.snippet.is_none_or(|line| line.text.chars().count() <= 160));
    }
}

#[test]
fn a_flood_of_warnings_is_cut_short_and_hides_no_error() {
    let world = World::new();
    let odd = r#"{"command": "npx", "odd": 1}, "#.repeat(500);
    world.entry(&format!(r#"{odd} {{"command": ""}}"#));
    let (catalog, problems) = world.load();
    assert_eq!(catalog.hooks.len(), 500);
    assert_eq!(problems.len(), 101);
    assert_eq!(problems.iter().filter(|problem| problem.severity == Error).count(), 1);
    assert_eq!(problems[100].message, "401 more problems in this file are not shown");
}

#[test]
fn a_crowd_of_keys_or_events_costs_no_time_and_is_told() {
    let keys: Vec<String> = (0..100_000).map(|index| format!("\"key{index}\": 1")).collect();
    let crowd = keys.join(", ");
    for (entry, field) in [
        (format!(r#"{{"command": "npx", {crowd}}}"#), "hooks.before_tool[1]"),
        (format!(r#"{{"command": "npx", "env": {{{crowd}}}}}"#), "hooks.before_tool[1].env"),
    ] {
        let world = World::new();
        world.entry(&format!(r#"{{"command": "npx"}}, {entry}"#));
        let (problem, loaded) = world.problem();
        assert_eq!((problem.field.as_str(), loaded), (field, 1));
        assert_eq!(problem.message, "it has more than 1000 keys; the hook is not loaded");
    }
    let world = World::new();
    world.write(
        "home/.ollm/hooks/a.json",
        format!("{{\"hooks\": {{{crowd}, \"before_tool\": [{{\"command\": \"npx\"}}]}}}}"),
    );
    let (catalog, problems) = world.load();
    assert_eq!((catalog.hooks.len(), problems.len()), (1, 101));
}

#[test]
fn a_problem_prints_as_one_line() {
    let world = World::new();
    let file = world.entry(r#"{"command": "npx", "timout": 5}"#);
    let expected = format!(
        "{}:1:47: unknown key `timout` is ignored (hooks.before_tool[0].timout = 5); did you mean `timeout`? [C003]",
        file.display()
    );
    assert_eq!(world.problem().0.to_string(), expected);
}

#[test]
fn a_line_of_run_command_that_cannot_be_split_or_filled_is_told() {
    for (line, message) in [
        ("npx a && rm b", "`&` needs a shell"),
        ("npx 'a", "a single quote is never closed"),
        ("python3 -c {{data.response}}", "`{{data.response}}` at column 17 stands inside program text for `python3`"),
        ("{{data.response}} a", "command `{{data.response}}` holds shell characters"),
    ] {
        let world = World::new();
        let text = serde_json::json!({"hooks": {"agentStop": [{"action": {"type": "runCommand", "command": line}}]}});
        world.write("home/.ollm/hooks/a.json", text.to_string());
        let (problem, loaded) = world.problem();
        assert_eq!((loaded, problem.field.as_str()), (0, "hooks.agentStop[0].action.command"), "{problem:?}");
        assert!(problem.message.starts_with(message), "{}", problem.message);
    }
}

#[test]
fn a_gate_of_the_users_with_a_broken_template_stands_in_the_way() {
    let world = World::new();
    world.entry(r#"{"action": {"type": "shell", "command": "sh -c {{x}}"}, "onFailure": "block"}"#);
    let (catalog, problems) = world.load();
    let why = catalog.hooks[0].broken.as_deref().unwrap();
    assert!(why.contains("`{{x}}` at column 7 stands inside program text for `sh`"), "{why}");
    assert!(problems[0].message.ends_with("until that is mended it refuses whatever it is for"), "{problems:?}");
}

#[test]
fn every_fault_of_an_entry_is_told_at_once() {
    let faults = |entry: &str| -> Vec<String> {
        let world = World::new();
        world.entry(entry);
        let mut fields: Vec<String> = world.load().1.into_iter().map(|problem| problem.field).collect();
        fields.sort();
        fields
    };
    let field = |key: &&str| format!("hooks.before_tool[0].{key}");
    for key in ["comand", "onFailure", "priority", "rateLimit.perMinute"] {
        let written = match key {
            "comand" => r#""comand": "npx""#,
            "onFailure" => r#""command": "npx", "onFailure": "blok""#,
            "priority" => r#""command": "npx", "priority": 7"#,
            _ => r#""command": "npx", "rateLimit": {"perMinute": 0}"#,
        };
        let entry = format!(r#"{{{written}, "matcher": "re:(", "if": "1 +", "timeout": -3}}"#);
        let mut told: Vec<String> = ["if", "matcher", "timeout", key].iter().map(field).collect();
        told.extend((key == "comand").then(|| "hooks.before_tool[0]".to_owned()));
        told.sort();
        assert_eq!(faults(&entry), told, "{entry}");
    }
    let dialect = faults(r#"{"command": "npx", "dialect": "olm", "if": "1 +"}"#);
    assert_eq!(dialect, ["dialect", "if"].iter().map(field).collect::<Vec<_>>());
}
