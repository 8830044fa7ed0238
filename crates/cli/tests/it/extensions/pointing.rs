//! What keeps an extension or a skill from being loaded is shown at its place, by every command that tells of it.

use serde_json::{Value, json};

use super::entries;
use crate::lab::{Lab, Ran};

/// Writes an extension of the user, a key of its manifest on each line; in a folder that need not have its name.
fn laid_out(lab: &Lab, folder: &str, name: &str, more: &str) {
    let manifest =
        format!("{{\n  \"name\": \"{name}\",\n  \"version\": \"1.0.0\",\n  \"description\": \"One\",\n  {more}\n}}\n");
    lab.write(&format!("home/.ollm/extensions/{folder}/manifest.json"), manifest);
}

/// The problem as a program reads it: line, column, field, and the line of the file.
fn place(problem: &Value) -> (u64, u64, &str, &str) {
    let number = |key: &str| problem[key].as_u64().unwrap();
    let text = |key: &str| problem[key].as_str().unwrap();
    (number("line"), number("column"), text("field"), text("snippet"))
}

/// Asserts that one of the user's extensions fails at this place, and that every command shows it.
#[track_caller]
fn assert_shown(lab: &Lab, folder: &str, name: &str, at: (u64, u64, &str), line: &str, why: &str) {
    let (row, column, field) = at;
    let file = lab.home.join(format!(".ollm/extensions/{folder}/manifest.json"));
    let heading = format!("{}:{row}:{column}", file.display());
    let shown = |ran: &Ran| {
        for part in [&heading, line, "^", why] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    };
    shown(&lab.run(&["ext", "list"]));
    let listed = entries(lab).into_iter().find(|one| one["path"].as_str().unwrap().ends_with(folder)).unwrap();
    let error = listed["error"].as_str().unwrap();
    assert!(error.starts_with(&format!("{heading}: ")) && error.contains(why), "{error}");
    assert_eq!(listed["enabled"], false);
    let path = file.parent().unwrap().display().to_string();
    let validated = lab.run(&["ext", "validate", &path]);
    assert_eq!(validated.code, 1, "{validated:?}");
    shown(&validated);
    let problems = lab.run(&["ext", "validate", &path, "--json"]).answer();
    assert_eq!(place(&problems[0]), (row, column, field, line));
    // Of two with one name the other one is meant.
    if folder == name {
        shown(&lab.run(&["ext", "info", name]));
        let info = lab.run(&["ext", "info", name, "--json"]).answer();
        assert_eq!(place(&info["problems"][0]), (row, column, field, line));
        assert_eq!(lab.run(&["ext", "show", name, "--json"]).answer(), info);
    }
}

#[test]
fn what_must_be_a_map_is_shown_as_one() {
    for (key, wrong, right) in [
        ("permissions", "[\"network\"]", "{\"network\": [\"api.example.com\"], \"shell\": true}"),
        ("dependencies", "[\"base\"]", "{\"other-extension\": \"^1.2\"}"),
        ("mcpServers", "[]", "{\"time\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}}"),
        ("settings", "[1]", "{\"name\": \"token\", \"description\": \"…\"}"),
        ("skills", "[1]", "{\"name\": \"review\", \"description\": \"…\", \"prompt\": \"…\"}"),
    ] {
        let lab = Lab::new();
        laid_out(&lab, "one", "one", &format!("\"{key}\": {wrong}"));
        let ran = lab.run(&["ext", "validate", "one"]);
        assert!(ran.stderr.contains(&format!("write a map such as {right}")), "{key}: {}", ran.stderr);
    }
}

#[test]
fn a_missing_dependency_is_shown_where_it_is_named() {
    let lab = Lab::new();
    laid_out(&lab, "one", "one", "\"dependencies\": {\n    \"base\": \"^1.2\"\n  }");
    let why = "it needs the extension `base` (^1.2), which is not there";
    assert_shown(&lab, "one", "one", (6, 5, "dependencies.base"), "    \"base\": \"^1.2\"", why);
}

#[test]
fn a_dependency_of_another_version_is_shown_at_the_range() {
    let lab = Lab::new();
    laid_out(&lab, "base", "base", "\"keywords\": []");
    laid_out(&lab, "one", "one", "\"dependencies\": {\n    \"base\": \"^1.2\"\n  }");
    let why = "it needs `base` ^1.2, but version 1.0.0 is there";
    assert_shown(&lab, "one", "one", (6, 13, "dependencies.base"), "    \"base\": \"^1.2\"", why);
}

#[test]
fn a_dependency_that_is_off_or_broken_is_shown_where_it_is_named() {
    let lab = Lab::new();
    laid_out(&lab, "base", "base", "\"keywords\": []");
    laid_out(&lab, "one", "one", "\"dependencies\": {\n    \"base\": \"*\"\n  }");
    assert_eq!(lab.run(&["ext", "disable", "base"]).code, 0);
    let line = "    \"base\": \"*\"";
    assert_shown(&lab, "one", "one", (6, 5, "dependencies.base"), line, "`ollm ext enable base`");
    laid_out(&lab, "base", "base", "\"keywords\": 1");
    assert_shown(&lab, "one", "one", (6, 5, "dependencies.base"), line, "`ollm ext info base` says why");
}

#[test]
fn a_cycle_is_shown_at_the_step_that_leads_into_it() {
    let lab = Lab::new();
    laid_out(&lab, "aside", "aside", "\"keywords\": []");
    laid_out(&lab, "one", "one", "\"dependencies\": {\n    \"aside\": \"*\",\n    \"two\": \"*\"\n  }");
    laid_out(&lab, "two", "two", "\"dependencies\": {\"one\": \"*\"}");
    let line = "    \"two\": \"*\"";
    assert_shown(&lab, "one", "one", (7, 5, "dependencies.two"), line, "one → two → one");
    let line = "  \"dependencies\": {\"one\": \"*\"}";
    assert_shown(&lab, "two", "two", (5, 20, "dependencies.one"), line, "two → one → two");
}

#[test]
fn a_name_that_is_taken_is_shown_where_it_is_given() {
    let lab = Lab::new();
    laid_out(&lab, "first", "same", "\"keywords\": []");
    laid_out(&lab, "second", "same", "\"keywords\": []");
    let taken = format!("the name `same` is taken by {}", lab.home.join(".ollm/extensions/first").display());
    assert_shown(&lab, "second", "same", (2, 11, "name"), "  \"name\": \"same\",", &taken);
}

#[test]
fn a_required_setting_that_is_missing_or_wrong_is_shown_where_it_is_declared() {
    let lab = Lab::new().set("ONE_MODE", "");
    let mode = "{\"description\": \"d\", \"name\": \"mode\", \"required\": true, \"enum\": [\"a\"]}";
    laid_out(&lab, "one", "one", &format!("\"settings\": [\n    {mode}\n  ]"));
    let line = format!("    {mode}");
    let place = (6, 34, "settings[0].name");
    assert_shown(&lab, "one", "one", place, &line, "`ollm ext set one mode=VALUE`");
    lab.write("home/.ollm/config.yaml", "extensions: {settings: {one: {mode: b}}}\n");
    assert_shown(&lab, "one", "one", place, &line, "setting `mode` must be one of a, not `b`");
}

#[test]
fn a_folder_that_is_not_installed_is_valid_without_what_it_needs_but_that_is_told() {
    let lab = Lab::new();
    let manifest =
        "{\"name\": \"x\", \"version\": \"1.0.0\", \"description\": \"d\",\n \"dependencies\": {\"base\": \"^1\"}}";
    lab.write("project/x/manifest.json", manifest);
    let ran = lab.run(&["ext", "validate", "x", "--json"]);
    let problem = &ran.answer()[0];
    assert_eq!((ran.code, &problem["severity"]), (0, &json!("warning")), "{ran:?}");
    assert_eq!(place(problem), (2, 19, "dependencies.base", " \"dependencies\": {\"base\": \"^1\"}}"));
}

#[test]
fn what_is_wrong_with_a_skill_file_is_shown_at_its_line() {
    let lab = Lab::new();
    laid_out(&lab, "one", "one", "\"skills\": [{\"name\": \"taken\", \"description\": \"d\", \"prompt\": \"p\"}]");
    let cases = [
        ("bare", "Just a prompt\n", (1, 1, ""), "it has no front matter"),
        ("bomb", "---\ndescription: d\na: [1\n---\nx\n", (3, 4, ""), "it is not valid YAML"),
        ("empty", "---\ndescription: d\n---\n\n", (3, 1, ""), "it has no prompt"),
        ("gap", "---\n---\nx\n", (1, 4, ""), "its front matter has no `description`"),
        ("list", "---\n- one\n---\nx\n", (2, 1, ""), "its front matter must be a map"),
        ("named", "---\ndescription: d\nname: a b\n---\nx\n", (3, 7, "name"), "cannot be the name of a skill"),
        ("nothing", "---\nname: nothing\n---\nx\n", (2, 1, ""), "its front matter has no `description`"),
        ("said", "---\ndescription: [d]\n---\nx\n", (2, 14, "description"), "`description` must be text"),
        ("twin", "---\ndescription: d\nname: taken\n---\nx\n", (3, 7, "name"), "another skill named `taken`"),
    ];
    for (name, text, ..) in &cases {
        lab.write(&format!("home/.ollm/extensions/one/skills/{name}.md"), text);
    }
    lab.write("home/.ollm/extensions/one/skills/good.md", "---\r\ndescription: d\r\n---\r\nx {{y}}\r\n");
    let validated = lab.run(&["ext", "validate", "one", "--json"]);
    let problems = validated.answer().as_array().unwrap().clone();
    assert_eq!((validated.code, problems.len()), (1, cases.len()), "{problems:#?}");
    let screens = [&["ext", "validate", "one"][..], &["ext", "info", "one"], &["ext", "list"], &["skill", "list"]];
    let screens: Vec<String> = screens.iter().map(|command| lab.run(command).stderr).collect();
    for ((name, text, (row, column, field), why), problem) in cases.iter().zip(&problems) {
        let file = lab.home.join(format!(".ollm/extensions/one/skills/{name}.md"));
        assert_eq!((problem["file"].as_str(), problem["severity"].as_str()), (file.to_str(), Some("error")));
        let line = text.lines().nth(usize::try_from(*row).unwrap() - 1).unwrap();
        assert_eq!(place(problem), (*row, *column, *field, line), "{name}");
        assert!(problem["message"].as_str().unwrap().contains(why), "{why}: {problem}");
        assert!(problem["help"].is_string() || *name == "bomb", "{problem}");
        for screen in &screens {
            assert!(screen.contains(&format!("{}:{row}:{column}", file.display())), "{name}: {screen}");
        }
    }
    let info = lab.run(&["ext", "info", "one", "--json"]).answer();
    assert_eq!(info["problems"], Value::from(problems));
    let skills = lab.run(&["skill", "list", "--json"]);
    let names: Vec<Value> = skills.answer().as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["taken", "good"]);
    assert!(skills.stderr.contains("skills/bare.md:1:1"), "{}", skills.stderr);
}

#[test]
fn a_file_that_is_not_there_is_shown_where_it_is_named() {
    let lab = Lab::new();
    let hooks = r#""hooks": {"before_tool": [
    {"name": "a", "command": "sh", "args": ["there.sh"]},
    {"name": "b", "command": "sh", "args": ["-e", "gone.sh"]},
    {"name": "c", "command": "sh", "args": ["./gone.sh"]}
  ]},
  "mcpServers": {"s": {"command": "node",
    "args": ["servers/gone.js"]}}"#;
    laid_out(&lab, "one", "one", hooks);
    lab.write("home/.ollm/extensions/one/there.sh", "");
    let ran = lab.run(&["ext", "validate", "one", "--json"]);
    let problems = ran.answer();
    let places: Vec<_> = problems.as_array().unwrap().iter().map(place).collect();
    let expected = [
        (
            7,
            51,
            "hooks.before_tool[1].args[1]",
            "    {\"name\": \"b\", \"command\": \"sh\", \"args\": [\"-e\", \"gone.sh\"]},",
        ),
        (
            8,
            45,
            "hooks.before_tool[2].args[0]",
            "    {\"name\": \"c\", \"command\": \"sh\", \"args\": [\"./gone.sh\"]}",
        ),
        (11, 14, "mcpServers.s.args[0]", "    \"args\": [\"servers/gone.js\"]}}"),
    ];
    assert_eq!((ran.code, places.as_slice()), (1, expected.as_slice()), "{ran:?}");
    for problem in problems.as_array().unwrap() {
        assert_eq!(problem["help"], "put the file there, or name one that is");
    }
}
