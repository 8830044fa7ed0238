//! Hooks that wait for events which nothing on this machine sends.

use super::{OK, Watch};
use crate::lab::Lab;

#[test]
fn hooks_that_nobody_tells_of_files_are_known_to_wait() {
    let lab = Lab::with_hook("file_edited", "lint", OK);
    let id = "user:lint.json:file_edited:lint";
    let told = || {
        let commands: [&[&str]; 3] = [
            &["hook", "list"],
            &["hook", "show", id],
            &["hook", "plan", "file_edited", "--data", r#"{"path": "a.txt"}"#],
        ];
        commands.map(|command| lab.run(command).stderr.contains("this project is not watched: hooks hear only of files that an agent's tools change; `ollm watch` tells them of all others, too"))
    };
    assert_eq!(told(), [true; 3]);
    let watch = Watch::new(&lab);
    assert_eq!(told(), [false; 3]);
    watch.end();
    assert_eq!(told(), [true; 3]);
    // No other hook waits for them.
    assert!(!lab.run(&["hook", "plan", "before_tool"]).stderr.contains("watches"));
}
