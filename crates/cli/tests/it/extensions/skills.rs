//! Prompts that extensions bring.

use serde_json::json;

use super::{QUIET, extension};
use crate::lab::Lab;

#[test]
fn skills_are_listed_shown_and_filled_in() {
    let lab = Lab::new();
    let skills = json!({"skills": [{"name": "pr", "description": "A pull request", "prompt": "{{title}}: {{body}}"}]});
    extension(&lab, "home", "git", QUIET, &skills);
    lab.write("home/.ollm/extensions/git/skills/explain.md", "---\ndescription: Explain\n---\nExplain {{file}}.\n");
    let listed = lab.run(&["skill", "list", "--json"]).answer();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["git.pr", "git.explain"]);
    assert_eq!(listed[0]["placeholders"], json!(["title", "body"]));
    let ran = lab.run(&["skill", "run", "pr", "--set", "title={{body}}", "--set", "body=b"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{{body}}: b\n"));
    let missing = lab.run(&["skill", "run", "git.pr", "--set", "title=x"]);
    assert!(missing.code == 64 && missing.stderr.contains("misses body"), "{missing:?}");
    assert_eq!(lab.run(&["skill", "run", "pr", "--set", "other=x"]).code, 64);
    assert!(lab.run(&["skill", "show", "explain"]).stdout.contains("to fill in: file"));
    let replay = r#"{"content": "It is a file.", "expect": {"role": "user", "last": "Explain a.rs."}}"#;
    let replay = format!("replay:{}", lab.write("explain.jsonl", replay).display());
    let done = lab.run(&["skill", "run", "explain", "--set", "file=a.rs", "--agent", "--model", &replay]);
    assert_eq!((done.stdout.as_str(), done.code), ("It is a file.\n", 0), "{done:?}");
}

#[test]
fn e14_a_value_with_placeholders_in_it_is_not_filled_in_again() {
    let lab = Lab::new();
    let skills = json!({"skills": [{"name": "s", "description": "d", "prompt": "{{a}} {{b}} {{a}}"}]});
    extension(&lab, "home", "x", QUIET, &skills);
    let ran = lab.run(&["skill", "run", "s", "--set", "a={{b}} {{a}}", "--set", "b={{a}}"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{{b}} {{a}} {{a}} {{b}} {{a}}\n"));
}
