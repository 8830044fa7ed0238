//! Hook files of every form, through the real binary. The documented examples do what their documents say. Order and
//! configuration hold in every form. Scripts that nothing declares are named.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lab::Lab;

/// A project whose hooks need no approval.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  trustWorkspace: true\n");
    lab
}

fn edited(lab: &Lab, path: &str) -> Value {
    lab.run(&["hook", "run", "fileEdited", "--data", &json!({"path": path}).to_string()]).answer()
}

fn prompts(answer: &Value) -> Vec<&str> {
    answer["askAgent"].as_array().unwrap().iter().map(|asked| asked["prompt"].as_str().unwrap()).collect()
}

#[test]
fn the_documented_legacy_hook_asks_the_agent_about_the_files_it_is_for() {
    for name in ["lint.json", "lint.kiro.hook"] {
        let lab = lab();
        lab.workspace(
            name,
            r#"{
              "name": "Lint on Save",
              "when": { "type": "fileEdited", "patterns": ["*.ts"] },
              "then": { "type": "askAgent", "prompt": "Run linting" }
            }"#,
        );
        assert_eq!(prompts(&edited(&lab, "src/index.ts")), ["Run linting"]);
        let other = edited(&lab, "README.md");
        assert_eq!(prompts(&other), Vec::<&str>::new());
    }
}

#[test]
fn the_documented_modern_hook_asks_the_agent_with_the_path_of_the_file() {
    let lab = lab();
    let hook = lab.workspace(
        "lint.json",
        r#"{
          "id": "lint-on-save",
          "name": "Lint on Save",
          "eventType": "fileEdited",
          "filePatterns": ["*.ts"],
          "action": { "type": "askAgent", "prompt": "Run linting on {{file.path}}" },
          "trusted": false,
          "enabled": true
        }"#,
    );
    assert_eq!(prompts(&edited(&lab, "src/index.ts")), ["Run linting on src/index.ts"]);
    assert_eq!(lab.run(&["hook", "show", "lint-on-save", "--json"]).code, 0);
    std::fs::remove_file(hook).unwrap();
    lab.workspace(
        "tool.json",
        r#"{
          "name": "Lint on Save",
          "eventType": "fileEdited",
          "filePatterns": ["*.ts"],
          "action": { "type": "askAgent", "prompt": "Run linting on {{file.path}} using the shell tool" }
        }"#,
    );
    assert_eq!(prompts(&edited(&lab, "a.ts")), ["Run linting on a.ts using the shell tool"]);
}

#[test]
fn the_documented_commands_are_allowed_and_refused_as_documented() {
    let lab = lab();
    let hook = |command: &str| {
        json!({"name": "run", "when": {"type": "agentStop"}, "then": {"type": "runCommand", "command": command}})
            .to_string()
    };
    lab.workspace("allowed.json", hook("npx eslint src/").replace("\"run\"", "\"allowed\""));
    lab.workspace("blocked.json", hook("rm -rf /").replace("\"run\"", "\"blocked\""));
    let list = lab.run(&["hook", "list", "--json"]);
    let names: Vec<String> =
        list.answer().as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap().to_owned()).collect();
    assert!(names.contains(&"allowed".to_owned()) && !names.contains(&"blocked".to_owned()), "{names:?}");
    assert!(list.stderr.contains("command `rm` is neither a path nor one of node, python"), "{}", list.stderr);
}

#[test]
fn the_documented_hooks_of_an_extension_load_as_a_hook_file() {
    let lab = lab();
    lab.workspace(
        "github.yaml",
        "name: github-integration\nversion: 1.0.0\ndescription: GitHub integration for OLLM\nhooks:\n  session_start:\n    - name: init-github\n      command: node\n      args: [hooks/init.js]\n  before_tool:\n    - name: validate-github\n      command: node\n      args: [hooks/validate.js]\n",
    );
    lab.workspace("hooks/init.js", "console.log(JSON.stringify({continue: true}))");
    lab.workspace("hooks/validate.js", "console.log(JSON.stringify({continue: false, systemMessage: 'no'}))");
    assert_eq!(lab.run(&["hook", "run", "session_start"]).code, 0);
    assert_eq!(lab.run(&["hook", "run", "before_tool"]).code, 2);
}

#[test]
fn every_form_that_is_documented_loads_as_documented() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let text = std::fs::read_to_string(document).unwrap();
    let (_, rest) = text.split_once("\n## Hook files\n").unwrap();
    let (section, _) = rest.split_once("### The trusted folder").unwrap();
    let blocks: Vec<&str> = section.split("```").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        let (language, example) = block.split_once('\n').unwrap();
        let lab = Lab::new();
        lab.user("rules.json5", "");
        lab.user(&format!("example.{language}"), example.replace("rules.json", "rules.json5"));
        let list = lab.run(&["hook", "list", "--json"]);
        let mut problems = list.stderr.lines().filter(|line| !line.contains("this project is not watched"));
        assert_eq!(problems.next(), None, "{example}");
        let mine = list.answer().as_array().unwrap().iter().filter(|hook| hook["source"] == "user").count();
        assert!(mine > 0, "{example}");
    }
}

#[test]
fn hook_list_names_scripts_that_nothing_declares() {
    let lab = lab();
    lab.user("log-model-calls.js", "if (event === 'before_model') log(data.model);\n");
    lab.user("guard.sh", "# for before_tool or after_tool\n");
    lab.user("used.sh", "");
    lab.user("used.json", r#"{"before_tool": [{"name": "used", "command": "sh", "args": ["used.sh"]}]}"#);
    lab.workspace("it's here.py", "");
    insta::assert_snapshot!(lab.screen(&lab.run(&["hook", "list"])));
    let json = lab.run(&["hook", "list", "--json"]);
    assert_eq!(json.answer().as_array().unwrap().len(), 3);
    assert!(json.stderr.contains("`ollm hook add before_model "), "{}", json.stderr);
}

/// A hook that asks the agent, in one of the forms and syntaxes.
fn asking(form: usize, prompt: &str) -> (&'static str, String) {
    let action = json!({"type": "askAgent", "prompt": prompt});
    match form {
        0 => ("json", json!({"hooks": {"before_tool": [{"name": prompt, "action": action}]}}).to_string()),
        1 => ("json", json!({"name": prompt, "eventType": "before_tool", "action": action}).to_string()),
        2 => ("json", format!("// old\n{}", json!({"name": prompt, "when": {"type": "before_tool"}, "then": action}))),
        3 => ("kiro.hook", json!({"name": prompt, "when": {"type": "before_tool"}, "then": action}).to_string()),
        4 => ("yaml", format!("hooks:\n  before_tool:\n    - name: {prompt}\n      action: {action}\n")),
        5 => {
            ("yml", format!("name: {prompt}\neventType: before_tool\naction:\n  type: askAgent\n  prompt: {prompt}\n"))
        }
        _ => ("kiro.hook", format!("name: {prompt}\nwhen: {{type: before_tool}}\nthen: {action}\n")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn property_02_hooks_of_every_form_run_in_the_order_of_registration(
        hooks in prop::collection::vec((0..7_usize, any::<bool>()), 1..8),
        trust in prop::bool::weighted(0.7),
    ) {
        let lab = Lab::new();
        lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: {trust}\n"));
        let (mut user, mut project) = (Vec::new(), Vec::new());
        for (index, (form, own)) in hooks.iter().enumerate() {
            let name = format!("hook-{index}");
            let (extension, text) = asking(*form, &name);
            let file = format!("{name}.{extension}");
            if *own { lab.user(&file, text) } else { lab.workspace(&file, text) };
            if *own { &mut user } else { &mut project }.push(name);
        }
        let answer = lab.run(&["hook", "run", "before_tool", "--data", "{}"]).answer();
        let trusted = if trust { project } else { Vec::new() };
        let expected: Vec<String> = user.into_iter().chain(trusted).collect();
        prop_assert_eq!(prompts(&answer), expected);
        prop_assert_eq!(&answer["continue"], &json!(true));
    }

    #[test]
    fn property_39_whether_hooks_of_any_form_run_is_for_the_configuration_to_say(
        hooks in prop::collection::vec((0..7_usize, any::<bool>()), 1..8),
        enabled in any::<bool>(),
        place in 0..3_usize,
    ) {
        let mut lab = Lab::new();
        let config = |enabled: bool| format!("hooks:\n  enabled: {enabled}\n  trustWorkspace: true\n");
        lab.write("home/.ollm/config.yaml", config(!enabled));
        let flag = format!("hooks.enabled={enabled}");
        // What stands nearer counts: the file, a variable that does not loosen it, the command line.
        let arguments: &[&str] = match place {
            1 if enabled => { lab = lab.set("OLLM_HOOKS_ENABLED", "true"); &[] }
            2 => &["--set", &flag],
            _ => { lab.write("home/.ollm/config.yaml", config(enabled)); &[] }
        };
        for (index, (form, own)) in hooks.iter().enumerate() {
            let (extension, text) = asking(*form, &format!("hook-{index}"));
            let file = format!("hook-{index}.{extension}");
            if *own { lab.user(&file, text) } else { lab.workspace(&file, text) };
        }
        let answer = lab.run(&[arguments, &["hook", "run", "before_tool", "--data", "{}"]].concat()).answer();
        prop_assert_eq!(prompts(&answer).len(), if enabled { hooks.len() } else { 0 });
        let is_ours = |skip: &Value| skip["name"].as_str().is_some_and(|name| name.starts_with("hook-"));
        let skipped = answer["skipped"].as_array().unwrap().iter().filter(|skip| is_ours(skip));
        let disabled = skipped.filter(|skip| skip["reason"] == "disabled").count();
        prop_assert_eq!(disabled, if enabled { 0 } else { hooks.len() }, "none is left out without a word");
    }
}
