//! Files that change beside the conversation.

use ollm_agent::{ChangedBy, Decision};
use ollm_protocol::{EventKind, FileChange};

use crate::support::{World, said, text};

fn change(number: usize) -> FileChange {
    FileChange {
        kind: EventKind::FileEdited,
        path: "/p/a".to_owned(),
        name: Some("a".to_owned()),
        content: Some(number.to_string()),
        diff: None,
        size: 1,
        timestamp: "2026-01-02T03:04:05.000Z".to_owned(),
    }
}

/// A world in which a hook has another prompt for every edit.
fn world(answers: usize) -> World {
    let mut count = 0;
    World::new(&vec![text("ok"); answers]).hooks(move |event| {
        count += 1;
        let is_edit = event.kind == EventKind::FileEdited;
        let prompts = if is_edit { vec![said(&format!("look {count}"))] } else { Vec::new() };
        Decision { prompts, ..Decision::default() }
    })
}

#[test]
fn hooks_hear_of_a_file_within_the_session_and_their_prompts_wait_to_be_said() {
    let mut world = world(1);
    let mut session = world.start();
    let decision = session.file_changed(change(1), ChangedBy::Others);
    assert_eq!(decision.prompts.len(), 1);
    assert_eq!(session.messages().len(), 1, "nothing is said yet");
    let turns = session.answer_hooks();
    assert_eq!(turns.iter().map(|turn| turn.response.as_str()).collect::<Vec<_>>(), ["ok"]);
    assert!(session.answer_hooks().is_empty());
    session.end();
    let trace = world.trace.lock().unwrap();
    let event = trace.iter().find(|event| event.kind == EventKind::FileEdited).unwrap();
    assert_eq!((event.session_id(), event.text("path")), (Some("s1"), Some("/p/a")));
    assert_eq!(event.data["file"]["path"], "a");
}

#[test]
fn prompts_about_the_agents_own_changes_are_a_chain_with_an_end() {
    let mut world = world(20);
    let mut session = world.start();
    session.say("go", None);
    let mut answered = 0;
    for number in 0..10 {
        session.file_changed(change(number), ChangedBy::Agent);
        answered += session.answer_hooks().len();
    }
    assert_eq!(answered, 3);
    // Another author's edit begins a new one.
    session.file_changed(change(10), ChangedBy::Others);
    assert_eq!(session.answer_hooks().len(), 1);
    drop(session);
    assert!(world.shown("status").iter().any(|line| line.contains("its chain is 3 prompts long")));
}

#[test]
fn many_edits_at_once_add_a_bounded_number_of_prompts() {
    let mut world = world(40);
    let mut session = world.start();
    for number in 0..100 {
        session.file_changed(change(number), ChangedBy::Others);
    }
    assert_eq!(session.answer_hooks().len(), 16);
}
