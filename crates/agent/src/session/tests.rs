//! Tests a session whose disk is full.

use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use super::*;
use crate::port::{News, NobodyAsked};
use crate::provider::replay::Replay;
use crate::settings::{Approval, Limits};
use crate::tool::ShellSettings;
use ollm_protocol::Event;

struct Hooks(Arc<Mutex<Vec<EventKind>>>);

impl Events for Hooks {
    fn dispatch(&mut self, event: &Event) -> Decision {
        self.0.lock().unwrap().push(event.kind);
        Decision::default()
    }
}

struct Errors(Arc<Mutex<Vec<String>>>);

impl Show for Errors {
    fn show(&mut self, news: &News<'_>) {
        if let News::Error(text) = news {
            self.0.lock().unwrap().push((*text).to_owned());
        }
    }
}

#[test]
fn a_full_disk_is_told_once_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (events, errors) = (Arc::default(), Arc::default());
    let talk = "{\"content\": \"one\"}\n{\"content\": \"two\"}";
    let mut session = Session::start(Opening {
        settings: Settings {
            user_data: crate::settings::UserData::default(),
            mode: "run".to_owned(),
            session_id: "s".into(),
            user: None,
            cwd: folder.path().to_owned(),
            allowed: Vec::new(),
            system_prompt: "be good".into(),
            instructions: Vec::new(),
            temperature: None,
            approval: Approval::Yolo,
            shell: ShellSettings::new(Vec::new(), folder.path()),
            limits: Limits::default(),
        },
        ports: Ports {
            events: Box::new(Hooks(Arc::clone(&events))),
            approve: Box::new(NobodyAsked),
            show: Box::new(Errors(Arc::clone(&errors))),
            sources: Vec::new(),
            clock: SystemTime::now,
        },
        model: Box::new(Replay::parse(Path::new("talk"), talk).unwrap()),
        transcript: Some(crate::transcript::tests::full()),
        messages: Vec::new(),
        counts: None,
        cancel: Cancel::default(),
    })
    .unwrap();
    for said in ["one", "two"] {
        let turns = session.say("go", None);
        assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, said));
    }
    session.end();
    assert_eq!(errors.lock().unwrap().len(), 1);
    assert!(errors.lock().unwrap()[0].contains("the session goes on without being saved"));
    assert_eq!(events.lock().unwrap().iter().filter(|kind| **kind == EventKind::Error).count(), 1);
    assert_eq!(events.lock().unwrap().last(), Some(&EventKind::SessionEnd));
}
