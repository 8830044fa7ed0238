//! A project's own instructions, at the start and on the way.

use std::fs;

use ollm_agent::{Message, TurnEnd};
use serde_json::json;

use crate::support::{World, calls, expecting, text};

#[test]
fn instructions_around_the_folder_are_read_at_the_start_and_told() {
    let seen = json!({"contains": ["be brief", "be kind"], "absent": "be late"});
    let mut world = World::new(&[expecting(text("ok"), seen)]);
    let around = world.folder.path().canonicalize().unwrap();
    fs::write(around.join("CLAUDE.md"), "be brief").unwrap();
    fs::write(world.path("AGENTS.md"), "be kind").unwrap();
    fs::write(world.path("GEMINI.md"), "be late").unwrap();
    world.settings.instructions = vec![around.clone(), around.join("work")];
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
    let roles: Vec<&str> = session.messages().iter().map(Message::role).collect();
    assert_eq!(roles, ["system", "system", "system", "user", "assistant"]);
    assert_eq!(world.shown("status").len(), 2);
}

#[test]
fn instructions_of_a_folder_are_read_once_when_a_tool_goes_there() {
    let read = || calls(&[("read_file", json!({"path": "sub/deep/file"}))]);
    let answers = [
        expecting(read(), json!({"absent": "be careful here"})),
        expecting(read(), json!({"contains": "be careful here"})),
        text("ok"),
    ];
    let mut world = World::new(&answers);
    fs::create_dir_all(world.path("sub/deep")).unwrap();
    fs::write(world.path("sub/AGENTS.md"), "be careful here").unwrap();
    fs::write(world.path("sub/deep/file"), "x").unwrap();
    world.settings.instructions = vec![world.settings.cwd.canonicalize().unwrap()];
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
    let times = session.messages().iter().filter(|message| message.content().contains("be careful here")).count();
    assert_eq!(times, 1);
}

#[test]
fn long_instructions_are_cut_to_a_share_of_the_window() {
    let mut world = World::new(&[text("ok")]);
    fs::write(world.path("AGENTS.md"), "x".repeat(100_000)).unwrap();
    world.settings.instructions = vec![world.settings.cwd.clone()];
    let session = world.start();
    let guidance = session.messages()[1].content();
    assert!(guidance.len() < 20_000 && guidance.ends_with("[cut here]"));
    assert!(world.shown("status")[0].starts_with("status the beginning of "), "{:?}", world.shown("status"));
}
