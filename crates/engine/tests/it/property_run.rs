//! Properties of single runs: deadlines, failures, answers read and answers that cannot be read.

use std::time::{Duration, Instant};

use ollm_engine::Status;
use ollm_protocol::{End, Flow, HookSpec, Output, Verdict, dialect};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use testkit::{hook_answer_bytes, json_object, json_value, text};

use crate::support::{DIALECTS, PATIENCE, World, builtin, cases, cat, event, logs, prints, ran, sh, spoken, within};

/// The ways a hook can fail.
#[derive(Clone, Debug)]
enum Fault {
    Exit(u8),
    Signal(u8),
    Prints(&'static str),
    NotExecutable,
    NoFolder,
    Panic,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (1..=255_u8).prop_map(Fault::Exit),
        prop::sample::select(&[1, 2, 9, 15][..]).prop_map(Fault::Signal),
        prop::sample::select(
            &["garbage", "{", "[]", "{}", r#"{"continue":1}"#, r#"{"continue":true,"error":"out of disk"}"#][..]
        )
        .prop_map(Fault::Prints),
        Just(Fault::NotExecutable),
        Just(Fault::NoFolder),
        Just(Fault::Panic),
    ]
}

impl Fault {
    fn hook(&self, world: &World, id: &str) -> HookSpec {
        match self {
            Fault::Exit(status) => sh(id, &format!("exit {status}")),
            Fault::Signal(signal) => sh(id, &format!("kill -{signal} $$")),
            Fault::Prints(text) => sh(id, &format!("printf '%s' '{text}'")),
            Fault::NotExecutable => crate::support::file(id, &world.file(&format!("plain-{id}"), "")),
            Fault::NoFolder => HookSpec { cwd: Some("gone".into()), ..logs(id) },
            Fault::Panic => builtin(id, |_| panic!("broken on purpose")),
        }
    }
}

/// Short enough to come back whole.
fn message() -> impl Strategy<Value = String> {
    text().prop_filter("texts over 10 KiB are cut", |text| text.len() <= 10 << 10)
}

fn well_formed() -> impl Strategy<Value = (bool, Option<String>, Option<Map<String, Value>>)> {
    (any::<bool>(), prop::option::of(message()), prop::option::of(json_object()))
}

/// Output that is no single JSON object and holds no refusal.
fn malformed() -> impl Strategy<Value = Vec<u8>> {
    let object = || json_value().prop_map(|extra| json!({"continue": true, "extra": extra}).to_string());
    prop_oneof![
        3 => (object(), any::<prop::sample::Index>()).prop_map(|(object, at)| {
            object.as_bytes()[..=at.index(object.len() - 1)].to_vec()
        }),
        2 => (object(), object()).prop_map(|(one, other)| format!("{one}\n{other}\n").into_bytes()),
        2 => (object(), "[a-z]{1,9}").prop_map(|(object, tail)| format!("{object}{tail}").into_bytes()),
        1 => "[a-z0-9\\[\\]\", ]{0,40}!".prop_map(String::into_bytes),
        1 => prop::collection::vec(0x80..=0xff_u8, 1..40),
        1 => (1..300_usize).prop_map(|depth| "{\"a\":".repeat(depth).into_bytes()),
        1 => Just(br#"{"continue":"yes"}"#.to_vec()),
        1 => Just(b"null".to_vec()),
    ]
}

proptest! {
    #![proptest_config(cases())]

    /// A hook over its time is stopped and reported; its neighbours and the hooks after it run as if it were not there.
    #[test]
    fn property_03_hook_timeout_termination(sleepers in prop::collection::vec(prop::option::of(5..25_u64), 1..5)) {
        let mut world = World::new();
        for (index, limit) in sleepers.iter().enumerate() {
            let id = format!("hook-{index}");
            let spec = match limit {
                Some(millis) => within(Duration::from_millis(*millis), sh(&id, "exec sleep 60")),
                None => logs(&id),
            };
            world.add(HookSpec { parallel: true, ..spec });
        }
        world.add(logs("last"));
        let started = Instant::now();
        let outcome = world.engine.dispatch(&event());

        prop_assert!(started.elapsed() < PATIENCE);
        prop_assert!(outcome.continues());
        prop_assert_eq!(outcome.reports.len(), sleepers.len() + 1);
        for (report, limit) in outcome.reports.iter().zip(sleepers.iter().chain([&None])) {
            let late = limit.map(|millis| format!("did not answer within {millis}ms and was stopped"));
            prop_assert_eq!(report.status, if limit.is_some() { Status::Timeout } else { Status::Ok });
            prop_assert_eq!(&report.error, &late);
        }
        let mut log = world.log();
        prop_assert_eq!(log.pop(), Some("last".to_owned()));
        prop_assert_eq!(log.len(), sleepers.iter().filter(|limit| limit.is_none()).count());
    }

    /// A failure of any kind is reported with its hook, and every other hook still decides.
    #[test]
    fn property_04_hook_error_isolation(faults in prop::collection::vec(prop::option::of(fault()), 1..6)) {
        let mut world = World::new();
        for (index, fault) in faults.iter().enumerate() {
            let id = format!("hook-{index}");
            let answer = json!({"continue": true, "systemMessage": id});
            let spec = fault.as_ref().map_or_else(|| sh(&id, &prints(&answer)), |fault| fault.hook(&world, &id));
            world.add(HookSpec { source: ollm_protocol::Source::User, ..spec });
        }
        let outcome = world.engine.dispatch(&event());

        let all: Vec<_> = (0..faults.len()).map(|index| format!("hook-{index}")).collect();
        let sound = all.iter().zip(&faults).filter(|(_, fault)| fault.is_none());
        let sound: Vec<_> = sound.map(|(id, _)| id.clone()).collect();
        prop_assert!(outcome.continues());
        prop_assert_eq!(ran(&outcome), all.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(&outcome.verdict.system_messages, &sound);
        for (report, fault) in outcome.reports.iter().zip(&faults) {
            prop_assert_eq!(report.status, if fault.is_some() { Status::Failed } else { Status::Ok });
            prop_assert_eq!(report.error.as_ref().is_some_and(|text| !text.is_empty()), fault.is_some());
        }
    }

    /// What a hook answers arrives unchanged.
    #[test]
    fn property_05_hook_output_capture(answers in prop::collection::vec(well_formed(), 4)) {
        let world = World::new();
        for (go_on, message, data) in answers {
            let mut answer = json!({"continue": go_on});
            answer.as_object_mut().unwrap().extend(message.clone().map(|text| ("systemMessage".to_owned(), text.into())));
            answer.as_object_mut().unwrap().extend(data.clone().map(|data| ("data".to_owned(), data.into())));
            let report = world.run(cat("hook", &world.file("answer", answer.to_string())), &event());

            let message: Vec<_> = message.into_iter().filter(|text| !text.is_empty()).collect();
            let reason = message.first().cloned().unwrap_or_else(|| "refused by hook `hook`".to_owned());
            let expected = Verdict {
                flow: if go_on { Flow::NoOpinion } else { Flow::Block },
                reasons: if go_on { Vec::new() } else { vec![reason] },
                system_messages: message,
                data: data.unwrap_or_default(),
                ..Verdict::default()
            };
            prop_assert_eq!(report.verdict, expected);
            prop_assert_eq!(report.status, if go_on { Status::Ok } else { Status::Blocked });
            prop_assert_eq!(report.error, None);
            prop_assert!(report.warnings.is_empty());
        }
    }

    /// Output that cannot be read is a failed hook; the operation and the other hooks go on.
    #[test]
    fn property_08_malformed_hook_output_handling(outputs in prop::collection::vec(malformed(), 4)) {
        let mut world = World::new();
        for (index, output) in outputs.iter().enumerate() {
            let file = world.file(&format!("output-{index}"), output);
            world.add(cat(&format!("hook-{index}"), &file));
        }
        world.add(logs("last"));
        let outcome = world.engine.dispatch(&event());

        prop_assert_eq!(outcome.verdict.flow, Flow::NoOpinion);
        prop_assert_eq!(world.log(), ["last"]);
        prop_assert_eq!(outcome.reports.len(), outputs.len() + 1);
        for (report, output) in outcome.reports.iter().zip(&outputs) {
            let shown = String::from_utf8_lossy(output);
            prop_assert_eq!(report.status, Status::Failed, "{}", shown);
            prop_assert!(report.error.as_ref().is_some_and(|text| !text.is_empty()), "{}", shown);
        }
    }

    /// Through a real process an answer means what the dialect says it means, and the failure policy nothing more.
    #[test]
    fn whatever_a_hook_prints_the_report_says_what_its_dialect_reads(bytes in hook_answer_bytes()) {
        let world = World::new();
        let file = world.file("answer", &bytes);
        for name in DIALECTS {
            let report = world.run(spoken(name, cat("hook", &file)), &event());
            let output = Output { end: End::Exited(0), stdout: &bytes, stderr: b"" };
            let answer = dialect::by_name(name).unwrap().read_verdict(event().kind, &output);

            let refused = answer.verdict.flow.refuses();
            let blocks = name == "gate" && answer.failure.is_some();
            let least = if blocks { Flow::Block } else { Flow::NoOpinion };
            prop_assert_eq!(report.refused, refused);
            prop_assert_eq!(report.verdict.flow, answer.verdict.flow.max(least));
            prop_assert_eq!(report.verdict.flow.continues(), report.verdict.reasons.is_empty());
            prop_assert_eq!(report.error.is_some(), answer.failure.is_some());
            prop_assert_eq!(&report.verdict.data, &answer.verdict.data);
            prop_assert_eq!(&report.verdict.patch, &answer.verdict.patch);
            let expected = match (answer.failure.is_some(), refused) {
                (true, _) => Status::Failed,
                (false, true) => Status::Blocked,
                (false, false) => Status::Ok,
            };
            prop_assert_eq!(report.status, expected);
        }
    }
}
