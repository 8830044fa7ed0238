//! Extensions from the outside: found, switched, approved, set, and taken away again.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran};

mod approval;
mod authoring;
mod disk;
mod pointing;
mod scenarios;
mod setting;
mod skills;
mod trouble;

pub(crate) const QUIET: &str = "printf '{\"continue\": true}'\n";

/// Writes an extension with one shell hook `NAME` at `before_tool`.
pub(crate) fn extension(lab: &Lab, whose: &str, name: &str, script: &str, more: &Value) {
    let hooks = json!({"before_tool": [{"name": name, "command": "sh", "args": ["hooks/run.sh"]}]});
    let mut manifest = json!({"name": name, "version": "1.0.0", "description": "One", "hooks": hooks});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.write(&format!("{whose}/.ollm/extensions/{name}/manifest.json"), manifest.to_string());
    lab.write(&format!("{whose}/.ollm/extensions/{name}/hooks/run.sh"), script);
}

pub(crate) fn entries(lab: &Lab) -> Vec<Value> {
    lab.run(&["ext", "list", "--json"]).answer().as_array().unwrap().clone()
}

pub(crate) fn entry(lab: &Lab, name: &str) -> Value {
    entries(lab).into_iter().find(|entry| entry["name"] == name).unwrap()
}

fn approve(lab: &Lab, name: &str) {
    let digest = entry(lab, name)["digest"].as_str().unwrap().to_owned();
    let ran = lab.run(&["ext", "trust", name, "--digest", &digest]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn ok(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn the_list_has_the_promised_fields() {
    let lab = Lab::new();
    let more = json!({
        "mcpServers": {"s": {"command": "npx"}},
        "settings": [{"name": "x", "description": "d"}],
        "skills": [{"name": "k", "description": "d", "prompt": "p"}],
    });
    extension(&lab, "home", "full", QUIET, &more);
    let full = entry(&lab, "full");
    let keys: Vec<&String> = full.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "name",
            "version",
            "description",
            "enabled",
            "trust",
            "digest",
            "source",
            "scope",
            "path",
            "hooks",
            "mcpServers",
            "skills",
            "settings",
            "settingValues",
            "error"
        ]
    );
    assert_eq!(
        (&full["hooks"], &full["mcpServers"], &full["skills"], &full["settings"], &full["error"]),
        (&json!(["full"]), &json!(["s"]), &json!(["k"]), &json!(["x"]), &Value::Null)
    );
    assert_eq!(
        (&full["scope"], &full["source"], &full["trust"]),
        (&json!("user"), &json!("extension"), &json!("untrusted"))
    );
}

pub(super) fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn validation_points_at_the_place() {
    let lab = Lab::new();
    let manifest = "{\n  \"name\": \"x\",\n  \"version\": \"1.0.0\",\n  \"description\": \"d\",\n  \"hooks\": {\"before_tol\": []}\n}";
    lab.write("project/x/manifest.json", manifest);
    let ran = lab.run(&["ext", "validate", "x", "--json"]);
    let problem = &ran.answer()[0];
    assert_eq!((ran.code, &problem["line"], &problem["column"]), (1, &json!(5), &json!(13)));
    assert_eq!(lab.run(&["ext", "validate", "nowhere"]).code, 64);
    insta::assert_snapshot!("ext_validate", lab.screen(&lab.run(&["ext", "validate", "x"])));
}

#[test]
fn the_screens_of_list_and_info() {
    let lab = Lab::new();
    let more = json!({"settings": [{"name": "level", "description": "How much", "default": 1}], "author": "Ann"});
    extension(&lab, "home", "guard", QUIET, &more);
    extension(&lab, "project", "other", QUIET, &json!({"dependencies": {"missing": "^2"}}));
    insta::assert_snapshot!("ext_list", lab.screen(&lab.run(&["ext", "list"])));
    insta::assert_snapshot!("ext_info", lab.screen(&lab.run(&["ext", "info", "guard"])));
    insta::assert_snapshot!("ext_enable", lab.screen(&lab.run(&["ext", "enable", "guard"])));
}
