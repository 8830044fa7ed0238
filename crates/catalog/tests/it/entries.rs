//! The keys of an entry.

use std::time::Duration;

use ollm_catalog::Severity;
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{
    ActionSpec, Basis, Layer, LimitsSpec, OnFailure, PermissionsSpec, Priority, Setting, Source, Timeout,
};

use crate::world::{World, ids};

#[test]
fn every_key_reaches_the_hook() {
    let world = World::new();
    let guard = world.write("home/.ollm/hooks/guard.py", "");
    let rules = world.write("home/.ollm/hooks/rules.json5", "");
    world.entry(
        r#"{"name": "guard", "description": "d", "command": "python3", "args": ["-u", "guard.py", "--x"], "dialect": "gate",
            "matcher": "shell|mcp__git__*", "timeout": 5000, "onFailure": "ask", "priority": "critical", "parallel": true,
            "env": {"MODE": "strict"}, "passEnv": ["TOKEN"], "cwd": "sub", "inputs": ["rules.json5"],
            "limits": {"time": "5s", "cpu": "2s", "memory": "256MiB", "processes": 32, "files": 256, "fileSize": 1024, "output": "1MiB"},
            "id": "my-guard", "version": "2.0.0", "enabled": false, "type": "command", "async": false, "persistent": false}"#,
    );
    let hook = world.hook();
    let spec = hook.spec;
    assert_eq!((spec.id.as_str(), spec.name.as_str(), spec.version.as_str()), ("my-guard", "guard", "2.0.0"));
    assert_eq!(spec.description.as_deref(), Some("d"));
    let args = vec!["-u".to_owned(), guard.to_string_lossy().into_owned(), "--x".to_owned()];
    assert_eq!(spec.action, ActionSpec::Command(CommandSpec { command: "python3".into(), args, script: Some(guard) }));
    assert_eq!(hook.dialect.name(), "gate");
    assert_eq!(spec.matcher.as_deref(), Some("shell|mcp__git__*"));
    assert_eq!(hook.timeout, Setting { value: Duration::from_secs(5), basis: Basis::Hook });
    assert_eq!(hook.on_failure, Setting { value: OnFailure::Ask, basis: Basis::Hook });
    assert_eq!((spec.priority, spec.parallel, spec.enabled), (Priority::Critical, true, false));
    assert_eq!(spec.env, [("MODE".to_owned(), "strict".to_owned())]);
    assert_eq!(spec.pass_env, ["TOKEN"]);
    assert_eq!(spec.cwd.as_deref(), Some("sub".as_ref()));
    assert_eq!(spec.inputs, [rules]);
    let limits = LimitsSpec {
        time: Some(Timeout::Exact(Duration::from_secs(5))),
        cpu: Some(Duration::from_secs(2)),
        memory: Some(256 << 20),
        processes: Some(32),
        files: Some(256),
        file_size: Some(1024),
        output: Some(1 << 20),
    };
    assert_eq!(spec.limits, limits);
    assert_eq!((spec.source, spec.layer), (Source::User, Layer::User));
    assert_eq!(spec.origin.file, world.path("home/.ollm/hooks/a.json"));
    assert_eq!((spec.origin.line, spec.origin.column), (1, 28));
}

#[test]
fn working_directory_is_another_word_for_cwd() {
    let world = World::new();
    world.entry(r#"{"command": "/bin/true", "working_directory": "/tmp"}"#);
    assert_eq!(world.hook().spec.cwd.as_deref(), Some("/tmp".as_ref()));
}

#[test]
fn a_bare_timeout_is_in_the_unit_of_the_dialect() {
    for (event, written, expected) in [
        ("before_tool", "250", Duration::from_millis(250)),
        ("pre-tool-call", "250", Duration::from_millis(250)),
        ("PreToolUse", "2", Duration::from_secs(2)),
        ("PreToolUse", "\"250ms\"", Duration::from_millis(250)),
        ("before_tool", "\"5s\"", Duration::from_secs(5)),
        ("before_tool", "0.5", Duration::from_micros(500)),
    ] {
        let world = World::new();
        let text = format!(r#"{{"{event}": [{{"command": "/bin/true", "timeout": {written}}}]}}"#);
        world.write("home/.ollm/hooks/a.json", text);
        assert_eq!(world.hook().timeout.value, expected, "{event} {written}");
    }
}

#[test]
fn the_wrapper_may_be_left_out_when_every_key_is_an_event() {
    let world = World::new();
    let entry = r#"[{"name": "x", "command": "/bin/true"}]"#;
    let text = format!(r#"{{"before_tool": {entry}, "PostToolUse": {entry}, "custom:deploy": {entry}}}"#);
    world.write("home/.ollm/hooks/a.json", text);
    let expected = ["user:a.json:before_tool:x", "user:a.json:PostToolUse:x", "user:a.json:custom:deploy:x"];
    assert_eq!(ids(&world.hooks()), expected);

    world.write("home/.ollm/hooks/a.json", format!(r#"{{"before_tool": {entry}, "befor_tol": {entry}}}"#));
    let (problem, loaded) = world.problem();
    assert_eq!(loaded, 0);
    assert_eq!(problem.message, "it has no `hooks`, and `befor_tol` is not the name of an event; nothing is loaded");
}

#[test]
fn ids_are_scope_file_event_and_name_or_a_hash_and_repeats_are_numbered() {
    let world = World::new();
    let text = r#"{"hooks": {"before_tool": [
        {"name": "n", "command": "/bin/true"}, {"name": "n", "command": "/bin/false"},
        {"command": "/bin/true", "args": ["a"]}, {"command": "/bin/true", "args": ["a"]}, {"command": "/bin/true", "args": ["b"]}]}}"#;
    world.write("home/.ollm/hooks/a.json", text);
    world.write("project/.ollm/hooks/a.json", r#"{"hooks": {"before_tool": [{"name": "n", "command": "/bin/true"}]}}"#);
    let hooks = world.hooks();
    let hash = |line: &str| ollm_store::digest_bytes(line.as_bytes()).hex()[..8].to_owned();
    let (a, b) = (hash("/bin/true\0a"), hash("/bin/true\0b"));
    let expected = [
        "user:a.json:before_tool:n".to_owned(),
        "user:a.json:before_tool:n#2".to_owned(),
        format!("user:a.json:before_tool:{a}"),
        format!("user:a.json:before_tool:{a}#2"),
        format!("user:a.json:before_tool:{b}"),
        "workspace:a.json:before_tool:n".to_owned(),
    ];
    assert_eq!(ids(&hooks), expected);
    assert_eq!(hooks[2].spec.name, "true");
}

#[test]
fn an_id_somebody_chose_twice_is_a_problem_that_names_both_places() {
    let world = World::new();
    let first = world.entry(r#"{"id": "x", "command": "/bin/true"}"#);
    let second = world.write(
        "project/.ollm/hooks/b.json",
        "{\"hooks\": {\"after_tool\": [\n  {\"id\": \"x\", \"command\": \"/bin/false\"}]}}",
    );
    let (problem, loaded) = world.problem();
    assert_eq!(loaded, 1);
    assert_eq!((problem.file, problem.line, problem.column), (second, 2, 10));
    assert_eq!(problem.field, "hooks.after_tool[0].id");
    assert_eq!(
        problem.message,
        format!("id `x` is taken by hooks.before_tool[0] in {}; the hook is not loaded", first.display())
    );
}

#[test]
fn a_project_cannot_vouch_for_itself() {
    let world = World::new();
    let text = r#"{"hooks": {"before_tool": [{"name": "n", "command": "/bin/true", "trusted": true}]}}"#;
    world.write("project/.ollm/hooks/a.json", text);
    let (problem, loaded) = world.problem();
    assert_eq!(loaded, 1);
    assert_eq!(problem.severity, Severity::Warning);
    assert_eq!(problem.field, "hooks.before_tool[0].trusted");
    assert_eq!(problem.message, "`trusted` is ignored: a project cannot vouch for itself");

    let world = World::new();
    world.entry(r#"{"name": "n", "command": "/bin/true", "trusted": true}"#);
    assert_eq!(world.hooks().len(), 1);
}

#[test]
fn permissions_are_read_and_held_only_where_a_program_is_started() {
    let world = World::new();
    world.entry(r#"{"command": "/bin/true", "permissions": {}}, {"command": "/bin/true", "permissions": {"read": ["~/x"], "write": ["out"], "net": true}}"#);
    let permissions: Vec<_> = world.hooks().into_iter().map(|hook| hook.spec.permissions.clone().unwrap()).collect();
    assert_eq!((permissions[0].read.len(), permissions[0].write.len(), permissions[0].net), (0, 0, false));
    assert_eq!(permissions[1].read, ["~/x"]);
    assert_eq!((permissions[1].write.as_slice(), permissions[1].net), (&["out".to_owned()][..], true));
    for entry in [
        r#"{"action": {"type": "askAgent", "prompt": "x"}, "permissions": {}}"#,
        r#"{"command": "/bin/true", "permissions": {"exec": []}}"#,
    ] {
        let world = World::new();
        world.entry(&format!(r#"{entry}, {{"command": "/bin/true"}}"#));
        let (problem, loaded) = world.problem();
        assert_eq!((loaded, problem.severity), (1, Severity::Error), "{entry}");
    }
}

#[test]
fn a_hook_of_a_project_is_held_to_the_least_unless_the_users_file_says_otherwise() {
    let held = |config: &str, entry: &str| {
        let world = World::new();
        world.write("home/.ollm/config.yaml", config);
        world.write("project/.ollm/hooks/a.json", format!(r#"{{"hooks": {{"before_tool": [{entry}]}}}}"#));
        let (catalog, problems) = world.load();
        let [hook] = catalog.hooks.as_slice() else { panic!("{problems:#?}") };
        hook.permissions.clone()
    };
    let plain = r#"{"command": "/bin/true"}"#;
    let declared = r#"{"command": "/bin/true", "async": true, "permissions": {"net": true}}"#;
    let net = PermissionsSpec { net: true, ..PermissionsSpec::default() };
    assert_eq!(held("", plain), Some(PermissionsSpec::default()));
    assert_eq!(held("hooks: {box: declared}\n", plain), None);
    assert_eq!(held("hooks: {box: declared}\n", declared), Some(net.clone()));
    assert_eq!(held("", declared), Some(net));
    assert_eq!(held("", r#"{"action": {"type": "askAgent", "prompt": "x"}}"#), None, "it runs no program");
}

#[test]
fn a_hook_that_may_be_kept_is_another_hook() {
    let definition = |more: &str| {
        let world = World::new();
        world.entry(&format!(r#"{{"command": "/bin/true"{more}}}"#));
        world.load().0.hooks[0].definition()
    };
    let plain = definition("");
    assert_eq!(definition(r#", "persistent": false"#), plain);
    let kept = definition(r#", "persistent": true"#);
    assert_eq!((kept.get("persistent"), plain.get("persistent")), (Some(&true.into()), None));
}

#[test]
fn a_hook_as_programs_register_it_loads_but_does_not_choose_its_source() {
    let world = World::new();
    let text = r#"{"before_model": [{"id": "log-model-calls", "name": "Log Model Calls", "command": "node",
        "args": ["/path/to/hook.js"], "source": "builtin", "sourcePath": "/path/to/hook.js"}]}"#;
    world.write("project/.ollm/hooks/a.json", text);
    let (catalog, problems) = world.load();
    let [hook] = catalog.hooks.as_slice() else { panic!("{problems:#?}") };
    assert_eq!((hook.id(), hook.spec.source), ("log-model-calls", Source::Workspace));
    assert_eq!(hook.spec.script(), Some(&"/path/to/hook.js".into()));
    let told: Vec<_> = problems.iter().map(|problem| (problem.severity, problem.message.as_str())).collect();
    let why = "is ignored: the place of its file says where a hook comes from";
    let expected = [format!("`source` {why}"), format!("`sourcePath` {why}")];
    assert_eq!(told, expected.each_ref().map(|message| (Severity::Warning, message.as_str())));
}

#[test]
fn what_can_be_converted_is_converted_with_a_warning() {
    for (key, value) in [
        ("timeout", "\"5000\""),
        ("parallel", "\"true\""),
        ("enabled", "\"false\""),
        ("args", "\"x\""),
        ("args", "[1]"),
        ("env", "{\"A\": 1}"),
        ("limits", "{\"files\": \"3\"}"),
        ("version", "2"),
        ("description", "7"),
    ] {
        let world = World::new();
        world.entry(&format!(r#"{{"command": "/bin/true", "{key}": {value}}}"#));
        let (problem, loaded) = world.problem();
        assert_eq!((problem.severity, loaded), (Severity::Warning, 1), "{key} {value}: {problem}");
    }
}

#[test]
fn a_doubled_event_key_hides_nothing() {
    let world = World::new();
    let text = r#"{"hooks": {"before_tool": [{"name": "a", "command": "/bin/true"}], "before_tool": [{"name": "b", "command": "/bin/true"}]}}"#;
    world.write("home/.ollm/hooks/a.json", text);
    assert_eq!(ids(&world.hooks()), ["user:a.json:before_tool:a", "user:a.json:before_tool:b"]);
}

#[test]
fn null_means_that_a_key_is_not_set() {
    let world = World::new();
    world.entry(r#"{"command": "/bin/true", "if": null, "timeout": null, "matcher": null}"#);
    assert_eq!(world.hook().timeout.basis, Basis::Dialect);
}
