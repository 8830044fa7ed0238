//! The person who is asked: when, about what, and for how long the answer holds.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ollm_engine::{Engine, Environment, Outcome};
use ollm_protocol::{Event, EventKind, Hook, HookSpec, Source, Verdict};
use ollm_store::Digest;
use ollm_trust::{Approver, Choice, Question, Term, Trust, UntrustedPolicy};

use crate::support::{World, builtin, file, logs, ran, sh, skipped};

/// What the person was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    id: String,
    digest: Digest,
    previous: Option<Digest>,
    changed: bool,
    /// Whether any hook of the event had run by then.
    late: bool,
}

#[derive(Debug, Default)]
struct Record {
    answers: VecDeque<Choice>,
    asked: Vec<Asked>,
}

/// A person with prepared answers.
#[derive(Debug)]
struct Person {
    record: Arc<Mutex<Record>>,
    log: PathBuf,
}

impl Approver for Person {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let mut record = self.record.lock().unwrap();
        record.asked.push(Asked {
            id: question.id.to_owned(),
            digest: question.identity.digest,
            previous: question.previous.map(|approval| approval.digest),
            changed: question.changed,
            late: self.log.exists(),
        });
        record.answers.pop_front().unwrap_or_else(|| panic!("nobody should ask about {:?}", question.id))
    }
}

/// A world with a person in it, whose project is the folder.
struct Desk {
    world: World,
    record: Arc<Mutex<Record>>,
}

impl Desk {
    fn new(answers: &[Choice]) -> Desk {
        let record = Arc::new(Mutex::new(Record { answers: answers.iter().copied().collect(), asked: Vec::new() }));
        let mut desk = Desk { world: World::new(), record };
        desk.restart();
        desk
    }

    /// Another process on the same files, with the same person before it.
    fn restart(&mut self) {
        let mut trust = Trust::new(self.world.path("approvals.json"), SystemTime::now);
        trust.approver = Some(Box::new(Person { record: Arc::clone(&self.record), log: self.world.path("log") }));
        let environment = Environment { project: Some(self.world.path("")), ..self.world.engine.environment().clone() };
        self.world.engine = Engine::new(trust, environment);
    }

    /// A hook that came with the project.
    fn guest(&mut self, id: &str) -> Arc<Hook> {
        let script = self.world.script(&format!("{id}.sh"), "#!/bin/sh\necho \"$OLLM_HOOK_ID\" >>log\n");
        self.world.add(HookSpec { source: Source::Workspace, ..file(id, &script) })
    }

    fn change(&self, id: &str) {
        self.world.script(&format!("{id}.sh"), "#!/bin/sh\necho \"$OLLM_HOOK_ID\" >>log #\n");
    }

    fn digest(&self, hook: &Hook) -> Digest {
        self.world.engine.trust.identity(hook, &self.world.engine.environment().trust_context()).unwrap().digest
    }

    fn dispatch(&self, session: &str) -> Outcome {
        fs::remove_file(self.world.path("log")).ok();
        let data = [("tool_name", "shell".into()), ("session_id", session.into())];
        self.world.engine.dispatch(&Event::unchecked(EventKind::BeforeTool, data))
    }

    /// Whether the hooks ran.
    fn runs(&self, session: &str) -> bool {
        let outcome = self.dispatch(session);
        assert_eq!(ran(&outcome), self.world.log(), "a report and a run go together");
        !ran(&outcome).is_empty()
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.record.lock().unwrap().asked)
    }
}

fn first_time(id: &str, digest: Digest) -> Asked {
    Asked { id: id.to_owned(), digest, previous: None, changed: false, late: false }
}

#[test]
fn a_renewed_engine_has_other_hooks_and_rules_and_still_knows_what_was_approved_for_the_session() {
    let mut desk = Desk::new(&[Choice::Session]);
    let guest = desk.guest("guest");
    assert!(desk.runs("A"));
    let trust = Trust::new(desk.world.path("approvals.json"), SystemTime::now);
    let mut fresh = Engine::new(trust, desk.world.engine.environment().clone());
    fresh.registry.register(Hook::clone(&guest)).unwrap();
    let mine = Hook::clone(&desk.world.hook(logs("mine")));
    fresh.registry.register(mine).unwrap();
    desk.world.engine.renew(fresh);
    assert_eq!(ran(&desk.dispatch("A")), ["mine", "guest"], "nobody is asked again");
    let mut off = Engine::new(Trust::new(desk.world.path("approvals.json"), SystemTime::now), Environment::default());
    off.switched_off = Some("off".to_owned());
    desk.world.engine.renew(off);
    assert_eq!((ran(&desk.dispatch("A")), desk.world.engine.registry.count()), (Vec::<&str>::new(), 0));
}

#[test]
fn a_person_is_asked_about_each_unapproved_hook_when_its_turn_has_come() {
    let mut desk = Desk::new(&[Choice::No, Choice::Once]);
    desk.world.add(logs("mine"));
    let (one, two) = (desk.guest("one"), desk.guest("two"));
    let outcome = desk.dispatch("A");
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["mine", "two"], vec![("one", "untrusted")]));
    assert_eq!(outcome.skipped[0].detail, "not approved; review and approve it");
    assert_eq!(desk.world.log(), ["mine", "two"]);
    let late = |asked: Asked| Asked { late: true, ..asked };
    let expected = [first_time("one", desk.digest(&one)), first_time("two", desk.digest(&two))].map(late);
    assert_eq!(desk.asked(), expected);
}

#[test]
fn where_unapproved_hooks_block_a_person_is_asked_about_each_before_any_hook_runs() {
    let mut desk = Desk::new(&[Choice::No, Choice::Once]);
    desk.world.engine.trust.untrusted = UntrustedPolicy::Block;
    desk.world.add(logs("mine"));
    let (one, two) = (desk.guest("one"), desk.guest("two"));
    let outcome = desk.dispatch("A");
    assert!(!outcome.continues());
    assert_eq!(desk.asked(), [first_time("one", desk.digest(&one)), first_time("two", desk.digest(&two))]);
}

#[test]
fn nobody_is_asked_about_a_hook_that_a_refusal_keeps_from_running() {
    let mut desk = Desk::new(&[]);
    desk.world.add(builtin("guard", |_| Verdict::block("no")));
    desk.guest("one");
    let outcome = desk.dispatch("A");
    assert_eq!(skipped(&outcome), [("one", "untrusted")]);
    assert_eq!(desk.asked(), []);
}

#[test]
fn an_approval_for_once_is_not_used_up_by_a_hook_that_a_refusal_keeps_from_running() {
    let mut desk = Desk::new(&[]);
    let guard = desk.world.add(builtin("guard", |_| Verdict::block("no")));
    let hook = desk.guest("one");
    let (trust, environment) = (&desk.world.engine.trust, &desk.world.engine.environment().trust_context());
    let proposal = trust.propose(&*hook, environment).unwrap();
    trust.approve(&*hook, &proposal, Term::Once, environment).unwrap();
    assert!(!ran(&desk.dispatch("A")).contains(&"one"));
    desk.world.engine.registry.unregister(guard.id());
    assert!(desk.runs("A"));
}

#[test]
fn no_is_for_this_time_and_nothing_is_kept_of_it() {
    let mut desk = Desk::new(&[Choice::No, Choice::No]);
    desk.guest("one");
    assert_eq!([desk.runs("A"), desk.runs("A")], [false, false]);
    assert_eq!(desk.asked().len(), 2);
    assert!(!desk.world.path("approvals.json").exists());
}

#[test]
fn once_is_for_this_time_only() {
    let mut desk = Desk::new(&[Choice::Once, Choice::No]);
    desk.guest("one");
    assert_eq!([desk.runs("A"), desk.runs("A")], [true, false]);
    assert_eq!(desk.asked().len(), 2);
    assert!(!desk.world.path("approvals.json").exists());
}

#[test]
fn a_session_is_for_its_own_events_in_this_process() {
    let mut desk = Desk::new(&[Choice::Session, Choice::No, Choice::No]);
    desk.guest("one");
    assert_eq!(["A", "A", "B", "A"].map(|session| desk.runs(session)), [true, true, false, true]);
    assert_eq!(desk.asked().len(), 2);
    desk.restart();
    desk.guest("one");
    assert!(!desk.runs("A"));
    assert_eq!(desk.asked().len(), 1);
}

#[test]
fn a_session_ends_with_a_change() {
    let mut desk = Desk::new(&[Choice::Session, Choice::No]);
    let hook = desk.guest("one");
    assert!(desk.runs("A"));
    let before = desk.digest(&hook);
    desk.change("one");
    assert!(!desk.runs("A"));
    assert_ne!(before, desk.digest(&hook));
    assert_eq!(desk.asked(), [first_time("one", before), first_time("one", desk.digest(&hook))]);
}

#[test]
fn a_session_ends_when_the_approval_is_withdrawn() {
    let mut desk = Desk::new(&[Choice::Session, Choice::No]);
    let hook = desk.guest("one");
    assert!(desk.runs("A"));
    desk.world.engine.trust.revoke(&*hook).unwrap();
    assert!(!desk.runs("A"));
}

#[test]
fn a_session_is_for_one_hook_though_another_looks_the_same() {
    let mut desk = Desk::new(&[Choice::Session, Choice::No]);
    let one = desk.guest("one");
    assert_eq!(ran(&desk.dispatch("A")), ["one"]);
    desk.world.engine.registry.unregister("one");
    desk.world.add(HookSpec { id: "twin".to_owned(), ..one.spec.clone() });
    let outcome = desk.dispatch("A");
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec![], vec![("twin", "untrusted")]));
}

#[test]
fn without_a_session_the_answer_for_one_is_for_this_time() {
    let mut desk = Desk::new(&[Choice::Session, Choice::No]);
    desk.guest("one");
    let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    assert_eq!(ran(&desk.world.engine.dispatch(&event)), ["one"]);
    assert_eq!(skipped(&desk.world.engine.dispatch(&event)), [("one", "untrusted")]);
}

#[test]
fn always_outlives_the_process_until_something_changes() {
    let mut desk = Desk::new(&[Choice::Always, Choice::No, Choice::Always]);
    let hook = desk.guest("one");
    let before = desk.digest(&hook);
    assert_eq!(["A", "B"].map(|session| desk.runs(session)), [true, true]);
    desk.restart();
    let hook = {
        drop(hook);
        desk.guest("one")
    };
    assert!(desk.runs("C"));
    assert_eq!(desk.asked(), [first_time("one", before)]);

    desk.change("one");
    let changed =
        Asked { id: "one".to_owned(), digest: desk.digest(&hook), previous: Some(before), changed: true, late: false };
    let outcome = desk.dispatch("C");
    assert_eq!(skipped(&outcome), [("one", "modified")]);
    assert_eq!(["C", "C"].map(|session| desk.runs(session)), [true, true]);
    assert_eq!(desk.asked(), [changed.clone(), changed]);
}

#[test]
fn nobody_is_asked_about_what_is_trusted_off_or_not_meant() {
    let mut desk = Desk::new(&[]);
    let approved = desk.guest("approved");
    desk.world.approve(&approved);
    let script = approved.spec.script().unwrap().to_owned();
    desk.world.add(logs("mine"));
    desk.world.add(HookSpec { source: Source::Workspace, enabled: false, ..file("off", &script) });
    let other = HookSpec { source: Source::Workspace, ..file("other", &script) };
    desk.world.add(HookSpec { matcher: Some("read_file".to_owned()), ..other.clone() });
    desk.world.add(HookSpec { id: "later".to_owned(), events: vec!["after_tool".to_owned()], ..other });
    let outcome = desk.dispatch("A");
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["mine", "approved"], vec![("off", "disabled")]));
    desk.world.engine.switched_off = Some("off".to_owned());
    desk.guest("one");
    assert!(!desk.runs("A"));
    assert_eq!(desk.asked(), []);
}

#[test]
fn nobody_is_asked_about_files_that_others_can_change() {
    let mut desk = Desk::new(&[]);
    let hook = desk.guest("one");
    let script = hook.spec.script().unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o757)).unwrap();
    let outcome = desk.dispatch("A");
    assert_eq!(skipped(&outcome), [("one", "untrusted")]);
    assert!(outcome.skipped[0].detail.contains("is writable by others (mode 0757)"), "{}", outcome.skipped[0].detail);
    fs::remove_file(script).unwrap();
    assert_eq!(skipped(&desk.dispatch("A")), [("one", "untrusted")]);
    assert_eq!(desk.asked(), []);
}

#[test]
fn what_changes_while_the_person_reads_does_not_run() {
    #[derive(Debug)]
    struct Slow(PathBuf, Choice);
    impl Approver for Slow {
        fn ask(&self, _: &Question<'_>) -> Choice {
            fs::write(&self.0, "#!/bin/sh\necho evil >>log\n").unwrap();
            self.1
        }
    }
    for choice in [Choice::Once, Choice::Session, Choice::Always] {
        let mut desk = Desk::new(&[]);
        let hook = desk.guest("one");
        desk.world.engine.trust.approver = Some(Box::new(Slow(hook.spec.script().unwrap().clone(), choice)));
        let outcome = desk.dispatch("A");
        // What was shown is a copy, and that is what runs.
        assert_eq!((skipped(&outcome), desk.world.log()), (vec![], vec!["one".to_owned()]), "{choice:?}");
        desk.world.engine.trust.approver = None;
        let reason = if choice == Choice::Always { "modified" } else { "untrusted" };
        let outcome = desk.dispatch("A");
        assert_eq!((skipped(&outcome), desk.world.log()), (vec![("one", reason)], vec![]), "{choice:?}");
    }
}

#[test]
fn an_answer_holds_for_this_run_though_it_cannot_be_written_down() {
    let mut desk = Desk::new(&[Choice::Always, Choice::Always]);
    fs::create_dir(desk.world.path("approvals.json")).unwrap();
    desk.guest("one");
    assert_eq!([desk.runs("A"), desk.runs("A")], [true, true]);
    assert_eq!(desk.asked().len(), 2, "it is asked again");
}

#[test]
fn hooks_without_a_script_are_asked_about_as_well() {
    let mut desk = Desk::new(&[Choice::Always]);
    desk.world.add(HookSpec { source: Source::Workspace, ..sh("inline", "echo inline >>log") });
    assert_eq!([desk.runs("A"), desk.runs("B")], [true, true]);
    assert_eq!(desk.asked().len(), 1);
}
