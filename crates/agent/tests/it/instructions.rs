//! A project's own instructions, at the start and on the way.

use std::fs;

use ollm_agent::{Connection, Message, OpenAi, TurnEnd};
use serde_json::json;
use testkit::model_shapes::{llama_models, llama_too_long};
use testkit::{ModelReply, ModelServer, answer_events};

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
fn instructions_of_a_folder_are_read_when_a_shell_command_names_it() {
    for command in ["cat sub/deep/file", "cd sub && cat deep/file", "ls -la ./sub/", "sh -c 'wc -l < sub/deep/file'"] {
        let answers = [
            expecting(calls(&[("shell", json!({"command": command}))]), json!({"absent": "be careful here"})),
            expecting(text("ok"), json!({"contains": "be careful here"})),
        ];
        let mut world = World::new(&answers);
        fs::create_dir_all(world.path("sub/deep")).unwrap();
        fs::write(world.path("sub/AGENTS.md"), "be careful here").unwrap();
        fs::write(world.path("sub/deep/file"), "x").unwrap();
        world.settings.instructions = vec![world.settings.cwd.canonicalize().unwrap()];
        assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done, "{command}");
    }
}

#[test]
fn a_conversation_that_goes_on_has_its_instructions_once_and_so_has_a_sub_agent() {
    let read = || calls(&[("read_file", json!({"path": "sub/file"}))]);
    let answers = [read(), text("ok"), read(), text("ok")];
    let mut world = World::new(&answers);
    fs::create_dir(world.path("sub")).unwrap();
    fs::write(world.path("sub/AGENTS.md"), "be careful here").unwrap();
    fs::write(world.path("sub/file"), "x").unwrap();
    world.settings.instructions = vec![world.settings.cwd.canonicalize().unwrap()];
    let count = |messages: &[Message]| messages.iter().filter(|one| one.content().contains("be careful here")).count();
    let mut session = world.start();
    session.say("go", None);
    world.messages = session.messages().to_vec();
    assert_eq!(count(&world.messages), 1);
    let answers = [
        calls(&[("task", json!({"prompt": "look"}))]),
        expecting(read(), json!({"absent": "be careful here"})),
        expecting(text("seen"), json!({"contains": "be careful here"})),
        read(),
        text("ok"),
    ];
    for answers in [&[read(), text("ok")][..], &answers[..]] {
        world.model = Some(Box::new(crate::support::replay(answers)));
        let mut session = world.start();
        assert_eq!(session.say("and again", None)[0].end, TurnEnd::Done);
        assert_eq!(count(session.messages()), 1);
        world.messages = Vec::new();
    }
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

#[test]
fn long_instructions_of_several_folders_leave_a_small_window_usable() {
    // One server tells its window when it is asked, the other only by a refusal.
    for tells in [true, false] {
        let server = ModelServer::answering(move |asked| {
            if asked.path.ends_with("/models") && tells {
                return Some(llama_models(2000));
            }
            if !asked.path.ends_with("/chat/completions") {
                return None;
            }
            let tokens = (asked.body["messages"].to_string().len() + asked.body["tools"].to_string().len()) as u64 / 4;
            if tokens > 2000 {
                return Some(llama_too_long(tokens, 2000));
            }
            Some(ModelReply::stream(&answer_events("ok", &[], 9), 99))
        })
        .unwrap();
        let mut world = World::new(&[]);
        world.model = Some(Box::new(OpenAi::new(Connection::new(server.url(), "m", None))));
        let around = world.folder.path().canonicalize().unwrap();
        fs::write(around.join("AGENTS.md"), "be brief ".repeat(5000)).unwrap();
        fs::write(world.path("AGENTS.md"), "be kind ".repeat(5000)).unwrap();
        world.settings.instructions = vec![around.clone(), around.join("work")];
        let mut session = world.start();
        for _ in 0..5 {
            assert_eq!(session.say(&"word ".repeat(100), None)[0].end, TurnEnd::Done, "{tells}");
        }
        let guidance = session.messages().iter().filter(|message| message.content().starts_with("Instructions"));
        assert!(guidance.map(|message| message.content().len()).sum::<usize>() < 1300);
        session.end();
        assert_eq!(world.shown("status the beginning of").len(), if tells { 1 } else { 2 });
        assert_eq!(world.shown("status").iter().any(|told| told.contains("no room for more")), tells);
    }
}
