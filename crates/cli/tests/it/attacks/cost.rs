//! Projects that are dear to look at, so that whoever waits for the answer goes on without it.

use std::fs::File;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::lab::{Lab, shell_event};

#[test]
fn s03_hook_files_of_a_project_cost_an_event_only_so_much() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "a-small-one", "exit 0", "");
    lab.approve("workspace:a-small-one.json:before_tool:a-small-one");
    let slow = "data.args.command.matches('(a*)*b(.*x){20}')";
    let entry = |index| json!({"name": format!("h{index}"), "command": "sh", "args": ["x.sh"], "if": slow});
    for file in ["b.json", "c.json", "d.json"] {
        let entries: Vec<_> = (0..20_000).map(entry).collect();
        lab.workspace(file, json!({"hooks": {"before_tool": entries}}).to_string());
    }
    let ran = lab.event(shell_event(&"a".repeat(200_000)));
    assert_eq!(ran.hook("a-small-one")["status"], "ok", "what fits still runs");
    for file in ["b.json", "c.json", "d.json"] {
        let line = format!("{file}: the hook files of the project hold more than 1024 KiB");
        assert!(ran.stderr.contains(&line), "{}", ran.stderr);
    }
    let refused = lab.event(shell_event("rm -rf ~"));
    assert_eq!((refused.code, refused.stderr.as_str()), (2, ""), "nothing of the project is read before a refusal");
    assert_eq!(refused.skip("hooks of the project")["reason"], "after_block");
    // Whoever asks for a list has the time.
    let listed = lab.run(&["hook", "list", "--json"]).answer();
    assert!(listed.as_array().unwrap().len() > 60_000);
}

#[test]
fn s03_files_of_a_hook_that_nobody_approved_are_not_opened() {
    let lab = Lab::new();
    let large = lab.workspace("large", "");
    File::options().write(true).open(&large).unwrap().set_len(66 << 20).unwrap();
    let inputs: Vec<String> = (0..1000).map(|index| format!("link-{index}")).collect();
    for input in &inputs {
        symlink(&large, lab.project.join(".ollm/hooks").join(input)).unwrap();
    }
    let entry = json!({"name": "guest", "command": "sh", "args": ["guest.sh"], "inputs": inputs});
    lab.workspace("guest.sh", "exit 0");
    lab.workspace("guest.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
    let traced = lab.event(shell_event("ls"));
    assert_eq!(traced.skip("guest")["reason"], "untrusted");
}
