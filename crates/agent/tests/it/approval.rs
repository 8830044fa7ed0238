//! When a person is asked, and what hooks can change about it.

use ollm_agent::{Approval, Consent, Decision, TurnEnd};
use ollm_protocol::{EventKind, Flow};
use serde_json::json;

use crate::support::{World, calls, expecting, flow, text};

/// One turn in which the model looks, edits and acts; what the person was asked about.
fn asked(world: World) -> Vec<String> {
    let mut world = world;
    world.model = Some(Box::new(crate::support::replay(&[
        calls(&[
            ("list_dir", json!({})),
            ("write_file", json!({"path": "a", "content": "x"})),
            ("shell", json!({"command": "touch b"})),
        ]),
        text("done"),
    ])));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    let questions = world.questions.lock().unwrap();
    questions.iter().map(|question| question.operation.clone()).collect()
}

#[test]
fn each_mode_asks_about_what_it_says() {
    let all = [Consent::Yes; 9];
    let mode = |approval| asked(World::new(&[]).approval(approval).consents(&all));
    assert_eq!(mode(Approval::Ask), ["write_file", "shell"]);
    assert_eq!(mode(Approval::Auto), ["shell"]);
    assert_eq!(mode(Approval::Yolo), Vec::<String>::new());
}

#[test]
fn what_is_not_approved_does_not_happen_and_has_no_end() {
    for (consent, told) in [(Consent::No, "the person said no"), (Consent::Nobody, "mode auto or yolo goes on")] {
        let answers = [
            calls(&[("write_file", json!({"path": "a", "content": "x"}))]),
            expecting(text("ok"), json!({"last": ["Tool execution not approved", told]})),
        ];
        let mut world = World::new(&answers).approval(Approval::Ask).consents(&[consent]);
        let mut session = world.start();
        assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
        session.end();
        assert!(!world.path("a").exists());
        assert!(!world.events().contains(&"after_tool"));
        let request = &world.data(EventKind::ApprovalRequest)[0];
        assert_eq!((&request["operation"], &request["requester"]), (&json!("write_file"), &json!("agent")));
        assert_eq!(request["details"]["args"]["path"], "a");
        let shown = world.shown("rejected");
        assert!(shown.len() == 1 && shown[0].contains(r#""path":"a""#), "{shown:?}");
        assert!(shown[0].contains(told), "{shown:?}");
    }
}

#[test]
fn always_lasts_for_the_tool_and_the_session() {
    let write = |name: &str| calls(&[("write_file", json!({"path": name, "content": "x"}))]);
    let answers = [write("a"), write("b"), calls(&[("shell", json!({"command": "true"}))]), text("done")];
    let mut world = World::new(&answers).approval(Approval::Ask).consents(&[Consent::Always, Consent::Yes]);
    world.start().say("go", None);
    let asked: Vec<String> =
        world.questions.lock().unwrap().iter().map(|question| question.operation.clone()).collect();
    assert_eq!(asked, ["write_file", "shell"]);
}

#[test]
fn always_at_a_shell_command_covers_that_command_alone() {
    let shell = |command: &str| calls(&[("shell", json!({"command": command}))]);
    let answers = [shell("true"), shell("true"), shell("touch a"), text("done")];
    let mut world = World::new(&answers).approval(Approval::Ask).consents(&[Consent::Always, Consent::No]);
    world.start().say("go", None);
    let asked: Vec<_> =
        world.questions.lock().unwrap().iter().map(|question| question.details["args"]["command"].clone()).collect();
    assert_eq!(asked, ["true", "touch a"]);
    assert!(!world.path("a").exists());
}

#[test]
fn always_is_offered_with_what_it_covers_and_not_where_a_hook_asks() {
    let answers = || [calls(&[("write_file", json!({"path": "a", "content": "x"}))]), text("done")];
    let standing = |mut world: World| {
        world.start().say("go", None);
        let questions = world.questions.lock().unwrap();
        questions[0].standing.clone()
    };
    let world = World::new(&answers()).approval(Approval::Ask).consents(&[Consent::Yes]);
    assert_eq!(standing(world).as_deref(), Some("every `write_file` call in this session"));
    let world = World::new(&answers()).on(EventKind::BeforeTool, flow(Flow::Ask, "look")).consents(&[Consent::Always]);
    assert_eq!(standing(world), None);
}

#[test]
fn auto_asks_before_it_changes_what_other_programs_obey() {
    let places =
        [".git/hooks/pre-commit", ".git/config", ".ollm/hooks/a.json", ".config/agent/hooks.json", "link/x", "a"];
    for (mode, asked) in [(Approval::Auto, 5), (Approval::Yolo, 0)] {
        let writes: Vec<_> =
            places.iter().map(|path| calls(&[("write_file", json!({"path": path, "content": "x"}))])).collect();
        let mut world = World::new(&[writes, vec![text("done")]].concat()).approval(mode).consents(&[Consent::No; 9]);
        std::fs::create_dir_all(world.path(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", world.path("link")).unwrap();
        world.start().say("go", None);
        assert_eq!(world.questions.lock().unwrap().len(), asked, "{mode:?}");
        assert!(world.path("a").exists());
        assert_eq!(world.path(".git/config").exists(), mode == Approval::Yolo);
    }
}

#[test]
fn allow_skips_the_question_of_a_mode_and_nothing_more() {
    let allow = flow(Flow::Allow, "fine");
    for kind in [EventKind::BeforeTool, EventKind::ApprovalRequest] {
        let world = World::new(&[]).approval(Approval::Ask).on(kind, allow.clone());
        assert_eq!(asked(world), Vec::<String>::new(), "{kind:?}");
    }
    let world =
        World::new(&[]).approval(Approval::Yolo).consents(&[Consent::Yes; 9]).hooks(move |event| match event.kind {
            EventKind::BeforeTool => flow(Flow::Ask, "look at it"),
            EventKind::ApprovalRequest => allow.clone(),
            _ => Decision::default(),
        });
    assert_eq!(asked(world), ["list_dir", "write_file", "shell"], "what a hook wants asked is asked in every mode");
}

#[test]
fn a_question_of_a_hook_carries_its_reason_and_is_a_refusal_where_nobody_is_there() {
    let told = json!({"last": ["Tool execution blocked by hook: ", "looks odd", "no person can be asked"]});
    let answers = [calls(&[("shell", json!({"command": "touch x"}))]), expecting(text("ok"), told)];
    let mut world = World::new(&answers).on(EventKind::BeforeTool, flow(Flow::Ask, "looks odd"));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert!(!world.path("x").exists());
    assert_eq!(world.questions.lock().unwrap()[0].reason.as_deref(), Some("looks odd"));
    assert_eq!(world.data(EventKind::ApprovalRequest)[0]["requester"], "guard");
}

#[test]
fn a_hook_can_answer_for_the_person_with_no() {
    let told = json!({"last": "Tool execution blocked by hook: not in here"});
    let answers = [calls(&[("shell", json!({"command": "touch x"}))]), expecting(text("ok"), told)];
    let mut world = World::new(&answers)
        .approval(Approval::Ask)
        .consents(&[Consent::Yes])
        .on(EventKind::ApprovalRequest, Decision::block("guard", "not in here"));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert!(world.questions.lock().unwrap().is_empty() && !world.path("x").exists());
}

#[test]
fn a_person_decides_where_hooks_leave_a_prompt_to_them() {
    for (consent, done) in [(Consent::Yes, true), (Consent::No, false), (Consent::Nobody, false)] {
        let mut world =
            World::new(&[text("ok")]).consents(&[consent]).on(EventKind::BeforeAgent, flow(Flow::Ask, "sure?"));
        let end = world.start().say("go", None)[0].end.clone();
        assert_eq!(end == TurnEnd::Done, done, "{consent:?}: {end:?}");
        assert_eq!(world.questions.lock().unwrap()[0].operation, "before_agent");
    }
}

#[test]
fn nobody_is_asked_about_a_call_that_cannot_be_made() {
    for (args, told) in [
        (json!({"path": "a"}), "`content` is missing"),
        (json!({"content": "x"}), "`path` is missing"),
        (json!({"path": 7, "content": "x"}), "`path` must be a text, not 7"),
    ] {
        let answers = [calls(&[("write_file", args)]), expecting(text("ok"), json!({"last": told}))];
        let mut world = World::new(&answers).approval(Approval::Ask);
        assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
        assert!(world.questions.lock().unwrap().is_empty());
        assert!(!world.events().contains(&"before_tool"));
    }
}
