//! Changing hook files: what was asked for changes, everything else stays byte for byte.

use std::fs;

use ollm_catalog::edit::{self, Change, EditError, Owner};
use ollm_catalog::{Form, Syntax};
use ollm_protocol::{Layer, Rules, Source};
use serde_json::{Map, Value, json};

use crate::world::World;

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value}") };
    map
}

const YAML: &str = "\
# my hooks
hooks: # all of them
  before_tool:
    # the first
    - name: a # its name
      command: /bin/true
      # why
      args: [one, \"two # three\"] # both
      description: |
        several
        lines

    - {name: b, command: /bin/true, timeout: 5s}
  after_tool:
  - command: /bin/true # only
    name: c
";

const JSON: &str = r#"{
  // my hooks
  "hooks": {
    "before_tool": [
      // the first
      {"name": "a", "command": "/bin/true", /* why */ "args": ["one"]}, // beside a
      {
        "name": "b", // its name
        "command": "/bin/true",
        "timeout": "5s"
      }
    ]
  }
}
"#;

#[test]
fn a_key_is_set_and_unset_in_yaml_and_nothing_else_moves() {
    let set = |which, key: &str, value| edit::set(YAML, Syntax::Yaml, which, key, &value).unwrap();
    let unset = |which, key: &str| edit::unset(YAML, Syntax::Yaml, which, key).unwrap();
    for (text, from, to) in [
        (set(0, "name", json!("A b")), "name: a # its name", "name: A b # its name"),
        (set(0, "args", json!(["x"])), "args: [one, \"two # three\"] # both", "args: [x] # both"),
        (set(0, "description", json!("one")), "|\n        several\n        lines\n", "one\n"),
        (set(0, "timeout", json!(5)), "        lines\n", "        lines\n      timeout: 5\n"),
        (set(0, "limits.time", json!("1s")), "        lines\n", "        lines\n      limits:\n        time: 1s\n"),
        (set(1, "timeout", json!("6s")), "timeout: 5s", "timeout: 6s"),
        (set(1, "enabled", json!(false)), "timeout: 5s}", "timeout: 5s, enabled: false}"),
        (set(2, "name", json!("d")), "name: c\n", "name: d\n"),
        (unset(0, "args"), "      args: [one, \"two # three\"] # both\n", ""),
        (unset(0, "name"), "- name: a # its name\n", "-  # its name\n"),
        (unset(0, "description"), "      description: |\n        several\n        lines\n", ""),
        (unset(1, "name"), "{name: b, command", "{command"),
        (unset(1, "timeout"), ", timeout: 5s", ""),
        (unset(2, "name"), "    name: c\n", ""),
        (unset(0, "priority"), "", ""),
    ] {
        assert_eq!(text, YAML.replacen(from, to, 1));
    }
}

#[test]
fn hooks_are_added_to_and_removed_from_yaml_and_nothing_else_moves() {
    let entry = map(json!({"name": "new", "command": "python3", "args": ["x.py", "no"], "env": {"A": "1"}}));
    let add = |event| edit::add(YAML, Syntax::Yaml, Form::Events, event, &entry).unwrap();
    let remove = |which| edit::remove(YAML, Syntax::Yaml, which).unwrap();
    let block = "    - name: new\n      command: python3\n      args: [x.py, \"no\"]\n      env:\n        A: \"1\"\n";
    let first = "    - name: a # its name\n      command: /bin/true\n      # why\n      args: [one, \"two # three\"] # both\n      description: |\n        several\n        lines\n";
    for (text, from, to) in [
        (add("before_tool"), "timeout: 5s}\n", format!("timeout: 5s}}\n{block}")),
        (add("session_end"), "    name: c\n", format!("    name: c\n  session_end:\n{block}")),
        (remove(0), first, String::new()),
        (remove(1), "    - {name: b, command: /bin/true, timeout: 5s}\n", String::new()),
        (remove(2), "after_tool:\n  - command: /bin/true # only\n    name: c\n", "after_tool: []\n".to_owned()),
    ] {
        assert_eq!(text, YAML.replacen(from, &to, 1));
    }
    let once = edit::remove(YAML, Syntax::Yaml, 2).unwrap();
    let again =
        edit::add(&once, Syntax::Yaml, Form::Events, "after_tool", &map(json!({"command": "/bin/true"}))).unwrap();
    assert_eq!(again, once.replace("after_tool: []", "after_tool: [{command: /bin/true}]"));
}

#[test]
fn an_item_that_begins_with_a_comment_is_found_too() {
    let text = "before_tool:\n  - # one - or -\n    # two\n    command: npx\n  - # three\n    command: sh\n";
    let removed = edit::remove(text, Syntax::Yaml, 0).unwrap();
    assert_eq!(removed, "before_tool:\n  - # three\n    command: sh\n");
    let added = edit::add(text, Syntax::Yaml, Form::Events, "before_tool", &map(json!({"command": "uvx"}))).unwrap();
    assert_eq!(added, format!("{text}  - command: uvx\n"));
}

#[test]
fn json_keeps_its_comments_and_its_order() {
    let text = edit::set(JSON, Syntax::Json, 1, "timeout", &json!("6s")).unwrap();
    assert_eq!(text, JSON.replace("\"5s\"", "\"6s\""));
    let text = edit::set(JSON, Syntax::Json, 1, "limits.files", &json!(9)).unwrap();
    assert_eq!(text, JSON.replace("\"5s\"\n", "\"5s\",\n        \"limits\": {\n          \"files\": 9\n        }\n"));
    let text = edit::remove(JSON, Syntax::Json, 0).unwrap();
    assert!(text.contains("// my hooks") && text.contains("// the first") && text.contains("// its name"), "{text}");
    assert!(!text.contains("/* why */"), "{text}");
    let text =
        edit::add(JSON, Syntax::Json, Form::Events, "after_tool", &map(json!({"command": "/bin/true"}))).unwrap();
    for comment in ["// my hooks", "// the first", "/* why */", "// beside a", "// its name"] {
        assert!(text.contains(comment), "{text}");
    }
}

#[test]
fn an_empty_text_becomes_a_file_of_the_form_that_is_asked_for() {
    let entry = map(
        json!({"name": "look", "filePatterns": ["*.rs"], "action": {"type": "askAgent", "prompt": "look: {{file.path}}"}}),
    );
    for (form, syntax, expected) in [
        (
            Form::Events,
            Syntax::Yaml,
            "hooks:\n  fileEdited:\n    - name: look\n      filePatterns: [\"*.rs\"]\n      action:\n        type: askAgent\n        prompt: \"look: {{file.path}}\"\n",
        ),
        (
            Form::Modern,
            Syntax::Yaml,
            "eventType: fileEdited\nname: look\nfilePatterns: [\"*.rs\"]\naction:\n  type: askAgent\n  prompt: \"look: {{file.path}}\"\n",
        ),
        (
            Form::WhenThen,
            Syntax::Json,
            "{\n  \"name\": \"look\",\n  \"when\": {\n    \"type\": \"fileEdited\",\n    \"patterns\": [\"*.rs\"]\n  },\n  \"then\": {\n    \"type\": \"askAgent\",\n    \"prompt\": \"look: {{file.path}}\"\n  }\n}\n",
        ),
    ] {
        assert_eq!(edit::add("", syntax, form, "fileEdited", &entry).unwrap(), expected);
    }
    let text = edit::add("# nothing yet\n", Syntax::Yaml, Form::Events, "before_tool", &map(json!({"command": "sh"})));
    assert_eq!(text.unwrap(), "# nothing yet\nhooks:\n  before_tool:\n    - command: sh\n");
}

#[test]
fn a_key_is_written_where_its_form_keeps_it() {
    let legacy = r#"{"when": {"type": "fileEdited"}, "then": {"type": "askAgent", "prompt": "x"}}"#;
    let text = edit::set(legacy, Syntax::Json, 0, "filePatterns", &json!(["*.rs"])).unwrap();
    let text = edit::set(&text, Syntax::Json, 0, "prompt", &json!("y")).unwrap();
    let text = edit::set(&text, Syntax::Json, 0, "eventType", &json!("fileCreated")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let expected =
        json!({"when": {"type": "fileCreated", "patterns": ["*.rs"]}, "then": {"type": "askAgent", "prompt": "y"}});
    assert_eq!(value, expected);

    let modern = "event_type: fileEdited\naction:\n  type: askAgent\n  prompt: x # short\n";
    let text = edit::set(modern, Syntax::Yaml, 0, "prompt", &json!("y")).unwrap();
    let text = edit::set(&text, Syntax::Yaml, 0, "event", &json!("fileCreated")).unwrap();
    assert_eq!(text, "event_type: fileCreated\naction:\n  type: askAgent\n  prompt: \"y\" # short\n");

    let spelled = r#"{"before_tool": [{"command": "sh", "working_directory": "/a"}]}"#;
    let text = edit::set(spelled, Syntax::Json, 0, "cwd", &json!("/b")).unwrap();
    assert_eq!(text, spelled.replace("/a", "/b"));
}

#[test]
fn settings_without_hooks_get_their_first_one_and_a_byte_order_mark_stays() {
    let text = "\u{feff}{\n  // theirs\n  \"model\": \"x\"\n}\n";
    let text = edit::add(text, Syntax::Json, Form::Agent, "Stop", &map(json!({"command": "true"}))).unwrap();
    assert!(text.starts_with("\u{feff}{\n  // theirs\n  \"model\": \"x\",\n  \"hooks\": {"), "{text}");
    let world = World::new();
    let file = world.write("home/.config/agent/settings.json", "{\"model\": \"x\"}");
    let owner = Owner { source: Source::User, layer: Layer::User, rules: &Rules::default() };
    edit::append(&file, Form::Agent, "Stop", &map(json!({"command": "true"})), owner).unwrap();
    assert_eq!(world.hook().spec.name, "true");
}

#[test]
fn groups_of_agent_settings_are_joined_kept_and_removed() {
    let text = r#"{"model": "x", "hooks": {"PreToolUse": [{"matcher": "a", "hooks": [{"type": "command", "command": "one"}]}]}}"#;
    let add = |text: &str, entry| edit::add(text, Syntax::Json, Form::Agent, "PreToolUse", &map(entry)).unwrap();
    let text = add(text, json!({"matcher": "a", "command": "two"}));
    let text = add(&text, json!({"matcher": "b", "command": "three", "timeout": 3}));
    let value: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"model": "x", "hooks": {"PreToolUse": [
        {"matcher": "a", "hooks": [{"type": "command", "command": "one"}, {"type": "command", "command": "two"}]},
        {"matcher": "b", "hooks": [{"type": "command", "command": "three", "timeout": 3}]}]}});
    assert_eq!(value, expected);
    let shared = edit::set(&text, Syntax::Json, 0, "matcher", &json!("c")).unwrap_err();
    assert!(matches!(shared, EditError::Shared { hooks: 2, .. }), "{shared}");
    let text = edit::set(&text, Syntax::Json, 2, "matcher", &json!("c")).unwrap();
    let text = edit::remove(&text, Syntax::Json, 0).unwrap();
    let text = edit::remove(&text, Syntax::Json, 0).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let left = json!([{"matcher": "c", "hooks": [{"type": "command", "command": "three", "timeout": 3}]}]);
    assert_eq!(value["hooks"]["PreToolUse"], left);
}

#[test]
fn what_cannot_be_changed_safely_names_the_line_to_change() {
    let anchored = "hooks:\n  before_tool:\n    - &one\n      name: a\n      command: /bin/true\n    - *one\n";
    for result in [
        edit::remove(anchored, Syntax::Yaml, 0),
        edit::set(anchored, Syntax::Yaml, 1, "name", &json!("b")),
        edit::set(anchored, Syntax::Yaml, 0, "timeout", &json!(3)),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, EditError::ByHand { line, .. } if line >= 3), "{error}");
        assert!(error.to_string().contains("by hand"), "{error}");
    }
    let inside = "before_tool:\n  - command: npx\n    args:\n      - a # first\n      - b\n";
    let error = edit::set(inside, Syntax::Yaml, 0, "args", &json!(["c"])).unwrap_err();
    assert!(matches!(error, EditError::ByHand { line: 4, .. }), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let modern = r#"{"eventType": "fileEdited", "action": {"type": "askAgent", "prompt": "x"}}"#;
    let entry = map(json!({"command": "sh"}));
    let add = |text, form| edit::add(text, Syntax::Json, form, "before_tool", &entry).unwrap_err();
    assert!(matches!(add(modern, Form::Modern), EditError::Single));
    assert!(matches!(add("{\"x\": 1}", Form::Events), EditError::Formless));
    assert!(matches!(add("{\"x\": ", Form::Events), EditError::Broken { line: 1, .. }));
    assert!(matches!(add(JSON, Form::Agent), EditError::Other { found: Form::Events }));
    assert!(matches!(edit::remove(JSON, Syntax::Json, 9).unwrap_err(), EditError::NoSuch));
    assert!(matches!(edit::remove(modern, Syntax::Json, 0).unwrap_err(), EditError::Fixed { .. }));
    assert!(matches!(edit::set(JSON, Syntax::Json, 0, "event", &json!("x")).unwrap_err(), EditError::Fixed { .. }));
    assert!(matches!(edit::convert(JSON, Syntax::Json, Form::Modern).unwrap_err(), EditError::Other { .. }));
}

#[test]
fn conversion_keeps_comments_and_comes_back_to_the_same() {
    let yaml = "# lint\nname: Lint on Save\nwhen: # an edit\n  type: fileEdited\n  patterns: [\"*.ts\"]\nthen:\n  # what to say\n  type: askAgent\n  prompt: Run linting\n";
    let modern = edit::convert(yaml, Syntax::Yaml, Form::Modern).unwrap();
    let expected = "# lint\nname: Lint on Save\neventType: fileEdited # an edit\naction:\n  # what to say\n  type: askAgent\n  prompt: Run linting\nfilePatterns: [\"*.ts\"]\n";
    assert_eq!(modern, expected);
    let back = edit::convert(&modern, Syntax::Yaml, Form::WhenThen).unwrap();
    let expected = "# lint\nname: Lint on Save\nwhen: {type: fileEdited, patterns: [\"*.ts\"]} # an edit\nthen:\n  # what to say\n  type: askAgent\n  prompt: Run linting\n";
    assert_eq!(back, expected);

    let program = r#"{"eventType": "before_tool", "command": "python3", "args": ["x.py"], "timeout": 5}"#;
    let parts = edit::convert(program, Syntax::Json, Form::WhenThen).unwrap();
    let value: Value = serde_json::from_str(&parts).unwrap();
    let expected = json!({"when": {"type": "before_tool"}, "timeout": 5, "then": {"type": "command", "command": "python3", "args": ["x.py"]}});
    assert_eq!(value, expected);
}

#[test]
fn a_loaded_hook_is_changed_in_its_file() {
    let world = World::new();
    for (path, text) in [
        ("project/.ollm/hooks/trusted/x.yaml", "before_tool:\n  - command: npx # c\n  - command: npx\n"),
        (
            "project/.ollm/hooks/x.kiro.hook",
            r#"{"when": {"type": "fileEdited"}, "then": {"type": "askAgent", "prompt": "x"}}"#,
        ),
        (
            "project/.config/agent/settings.json",
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"true\"}]}]}} // c\n",
        ),
        ("home/.ollm/hooks/x.json", "{\"before_tool\": [{\"command\": \"npx\"}]}"),
    ] {
        let file = world.write(path, text);
        for hook in world.hooks().iter().filter(|hook| hook.spec.origin.file == file).rev() {
            edit::change(hook, &Rules::default(), &[Change::Set("timeout", &json!("7s"))]).unwrap();
        }
        let hooks = world.hooks();
        let hooks: Vec<_> = hooks.iter().filter(|hook| hook.spec.origin.file == file).collect();
        assert!(hooks.iter().all(|hook| hook.timeout.value.as_secs() == 7), "{path}");
        edit::change(hooks[0], &Rules::default(), &[Change::Unset("timeout")]).unwrap();
        let hooks = world.hooks();
        let hook = hooks.iter().find(|hook| hook.spec.origin.file == file).unwrap();
        assert_ne!(hook.timeout.value.as_secs(), 7, "{path}");
        edit::change(hook, &Rules::default(), &[Change::Remove]).unwrap();
        let left = world.hooks().iter().filter(|hook| hook.spec.origin.file == file).count();
        assert_eq!(left, usize::from(path.ends_with("yaml")), "{path}");
        let is_empty = path.ends_with("kiro.hook") || path.ends_with("x.json");
        assert_eq!(file.exists(), !is_empty, "{path}");
        if file.exists() {
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_file_goes_with_its_last_hook_unless_it_holds_something_else() {
    let world = World::new();
    for (name, text, goes) in [
        ("a.json", "{\"hooks\": {\"before_tool\": [{\"command\": \"npx\"}]}}", true),
        ("a.json", "{\"version\": 1, \"hooks\": {\"before_tool\": [{\"command\": \"npx\"}]}}", true),
        ("a.yaml", "hooks:\n  before_tool:\n    - command: npx\n", true),
        ("a.json", "// my notes\n{\"hooks\": {\"before_tool\": [{\"command\": \"npx\"}]}}", false),
        ("a.yaml", "# my notes\nhooks:\n  before_tool:\n    - command: npx\n", false),
        ("a.json", "{\"name\": \"mine\", \"hooks\": {\"before_tool\": [{\"command\": \"npx\"}]}}", false),
    ] {
        let file = world.write(&format!("home/.ollm/hooks/{name}"), text);
        let changed = edit::change(&world.hook(), &Rules::default(), &[Change::Remove]).unwrap();
        assert_eq!((changed.is_changed, changed.is_removed, file.exists()), (true, goes, !goes), "{text}");
        let _ = fs::remove_file(file);
    }
}

#[test]
fn a_key_that_is_not_there_cannot_be_taken_away_and_is_named() {
    let world = World::new();
    let file = world.entry(r#"{"name": "n", "command": "npx"}"#);
    let before = fs::read(&file).unwrap();
    let changed = edit::change(&world.hook(), &Rules::default(), &[Change::Unset("timeout")]).unwrap();
    assert_eq!((changed.is_changed, changed.missing), (false, vec!["timeout".to_owned()]));
    let error = edit::change(&world.hook(), &Rules::default(), &[Change::Unset("timeot")]).unwrap_err();
    assert_eq!(error.to_string(), "a hook has no key `timeot`");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_hook_that_changed_meanwhile_is_not_touched() {
    let world = World::new();
    let file = world.entry(r#"{"name": "n", "command": "npx"}"#);
    let hook = world.hook();
    let other = r#"{"before_tool": [{"name": "n", "command": "uvx"}]}"#;
    fs::write(&file, other).unwrap();
    let error = edit::change(&hook, &Rules::default(), &[Change::Remove]).unwrap_err();
    assert!(matches!(error, EditError::Changed), "{error}");
    assert_eq!(fs::read_to_string(file).unwrap(), other);
}

#[test]
fn a_change_after_which_the_hook_would_not_load_is_refused_with_the_place() {
    let world = World::new();
    let file = world.write("home/.ollm/hooks/a.yaml", "before_tool:\n  - command: npx\n");
    let before = fs::read(&file).unwrap();
    let error = edit::change(&world.hook(), &Rules::default(), &[Change::Set("timeout", &json!("soon"))]).unwrap_err();
    let EditError::Refused(problem) = error else { panic!("{error}") };
    assert_eq!((problem.line, problem.column), (3, 14), "{problem}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn two_editors_at_once_lose_nothing_and_the_mode_stays() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    for name in ["a.yaml", "a.json"] {
        let file = world.write(&format!("home/.ollm/hooks/{name}"), "");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let rules = Rules::default();
        std::thread::scope(|scope| {
            for editor in 0..4 {
                let (file, rules) = (&file, &rules);
                scope.spawn(move || {
                    for round in 0..5 {
                        let entry = map(json!({"name": format!("{editor}-{round}"), "command": "npx"}));
                        let owner = Owner { source: Source::User, layer: Layer::User, rules };
                        edit::append(file, Form::Events, "before_tool", &entry, owner).unwrap();
                    }
                });
            }
        });
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }
    assert_eq!(world.hooks().len(), 40);
}
