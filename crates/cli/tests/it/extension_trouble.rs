//! What is wrong around extensions is told by every command that shows them, and never passed over in silence.

use serde_json::{Value, json};

use crate::lab::{Lab, Ran};

const QUIET: &str = "cat > /dev/null";

/// Writes an extension of the user with one hook of its name that runs a script.
fn extension(lab: &Lab, name: &str, more: &Value) {
    let hooks = json!({"before_tool": [{"name": name, "command": "sh", "args": ["hooks/run.sh"]}]});
    let mut manifest = json!({"name": name, "version": "1.0.0", "description": "One", "hooks": hooks});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.write(&format!("home/.ollm/extensions/{name}/manifest.json"), manifest.to_string());
    lab.write(&format!("home/.ollm/extensions/{name}/hooks/run.sh"), QUIET);
}

fn assert_told(lab: &Lab, commands: &[&[&str]], words: &str) {
    for command in commands {
        let ran: Ran = lab.run(command);
        assert!(ran.stderr.contains(words), "{command:?}: {ran:?}");
        let ran: Ran = lab.run(&[*command, &["--json"]].concat());
        assert!(command.contains(&"reload") || ran.stderr.contains(words), "{command:?} --json: {ran:?}");
    }
}

const LISTS: &[&[&str]] = &[&["ext", "list"], &["ext", "reload"], &["skill", "list"], &["mcp", "list"]];

#[test]
fn a_directory_that_cannot_be_read_is_told_by_every_list() {
    let lab = Lab::new();
    lab.write("home/.ollm/extensions", "a file");
    assert_told(&lab, LISTS, "its extensions are not loaded");
}

#[test]
fn switches_and_secrets_that_cannot_be_read_are_told_by_every_list() {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    extension(&lab, "one", &json!({}));
    lab.write("home/.ollm/state/switches.json", "{");
    let lists = [LISTS, &[&["ext", "info", "one"]]].concat();
    assert_told(&lab, &lists, "nothing is switched on or off");
    lab.write("home/.ollm/state/secrets.json", "{");
    assert_told(&lab, &lists, "no secret of an extension is known");
}
