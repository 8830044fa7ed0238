//! In a namespace of processes of its own, like a container entered from outside. The session we belong to began
//! outside and has no number here.

use std::process::Command;

use serde_json::json;

use crate::lab::{FOREVER, Lab, OLLM, finish, shell_event};

/// A namespace, with and without its own list of processes.
const NAMESPACES: [&[&str]; 2] = [
    &["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
    &["--user", "--map-root-user", "--pid", "--fork"],
];

#[test]
fn hooks_are_stopped_and_followed_by_others_in_a_container() {
    for namespace in NAMESPACES {
        if !Command::new("unshare").args(namespace).arg("true").output().is_ok_and(|tried| tried.status.success()) {
            eprintln!("not tried: this machine gives out no namespaces");
            return;
        }
        let lab = Lab::new();
        lab.user_hook("before_tool", "a", FOREVER, r#", "timeout": "200ms""#);
        lab.user_hook("before_tool", "b", "(setsid sleep 1000 &); printf '{\"continue\": true}'", "");
        let mut command = lab.program("unshare");
        command.args(namespace).args(["sh", "-c", "\"$0\" hook run; exit $?", OLLM]);
        let ran = finish(command, shell_event("ls").as_bytes());
        assert_eq!(
            (ran.code, &ran.hook("a")["status"], &ran.hook("b")["status"]),
            (0, &json!("timeout"), &json!("ok"))
        );
        lab.assert_nobody_is_left();
    }
}
