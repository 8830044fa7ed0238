//! No bytes make a reader panic, and none take it long.

use ollm_protocol::dialect;
use ollm_protocol::dialect::all;
use ollm_protocol::{Dialect, End, EventKind, Flow, Matcher, ObjectEnd, Subject};
use proptest::prelude::*;
use proptest::sample::Index;
use testkit::{event, hook_answer_bytes, hostile_text, json_object, kind, text};

use crate::{HOOK, cases, ended, said_at};

fn any_dialect() -> impl Strategy<Value = &'static dyn Dialect> {
    prop::sample::select(all().collect::<Vec<_>>())
}

/// In these dialects an exit status can refuse, an answer can approve, and plain text is no failure.
fn speaks_by_status(dialect: &dyn Dialect) -> bool {
    dialect.name() == "agent" || dialect::agent_named(dialect.name()).is_some()
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => (0..4).prop_map(End::Exited),
        1 => any::<i32>().prop_map(End::Exited),
        1 => any::<i32>().prop_map(End::Signalled),
        1 => Just(End::TimedOut(std::time::Duration::from_secs(5))),
        1 => any::<usize>().prop_map(End::Overflowed),
    ]
}

/// Bytes with a few places cut, doubled, or overwritten.
fn mutated(mut bytes: Vec<u8>, wounds: &[(Index, u8, u8)]) -> Vec<u8> {
    for (at, how, byte) in wounds {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match how {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, *byte),
            2 => _ = bytes.remove(at),
            3 => bytes.extend_from_within(at..),
            _ => bytes[at] = *byte,
        }
    }
    bytes
}

fn wounds() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\\0ntf019-eE".to_vec())];
    prop::collection::vec((any::<Index>(), 0..5_u8, byte), 1..4)
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn random_bytes_never_upset_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in kind(), end in any_end()) {
        for dialect in all() {
            _ = dialect.read_event(&bytes);
            _ = said_at(dialect, kind, end, &bytes, &bytes);
        }
    }

    #[test]
    fn random_text_never_upsets_a_reader(text in text(), kind in kind(), end in any_end()) {
        for dialect in all() {
            _ = dialect.read_event(text.as_bytes());
            _ = said_at(dialect, kind, end, text.as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn a_damaged_request_never_upsets_a_reader(event in event(), writer in any_dialect(), wounds in wounds()) {
        let bytes = mutated(writer.write_event(&event, &HOOK), &wounds);
        for dialect in all() {
            _ = dialect.read_event(&bytes);
        }
    }

    #[test]
    fn a_bad_answer_never_upsets_a_reader_and_a_failed_hook_approves_nothing(
        bytes in hook_answer_bytes(), wounds in wounds(), kind in kind(), end in any_end(),
    ) {
        for bytes in [mutated(bytes.clone(), &wounds), bytes] {
            for dialect in all() {
                let answer = said_at(dialect, kind, end, &bytes, b"why");
                prop_assert!(answer.failure.is_none() || answer.verdict.flow != Flow::Allow);
                let approves = answer.verdict.flow == Flow::Allow;
                prop_assert!(!approves || speaks_by_status(dialect), "{}", dialect.name());
                let refuses = speaks_by_status(dialect) && answer.verdict.flow.refuses();
                prop_assert!(end == End::Exited(0) || refuses || answer.failure.is_some(), "{}", dialect.name());
            }
        }
    }

    #[test]
    fn the_end_of_an_object_is_found_in_any_chunks(
        object in json_object(), tail in prop::collection::vec(any::<u8>(), 0..20), size in 1..40_usize, bom: bool,
    ) {
        let mut bytes = if bom { b"\xef\xbb\xbf\n ".to_vec() } else { Vec::new() };
        bytes.extend(serde_json::Value::from(object).to_string().into_bytes());
        let length = bytes.len();
        bytes.extend(tail);
        let mut end = ObjectEnd::default();
        let mut offset = 0;
        for chunk in bytes.chunks(size) {
            if let Some(at) = end.push(chunk).unwrap() {
                prop_assert_eq!(offset + at, length);
                return Ok(());
            }
            offset += chunk.len();
        }
        prop_assert!(false, "no end found");
    }

    #[test]
    fn no_bytes_upset_the_search_for_the_end(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..5)) {
        let mut end = ObjectEnd::default();
        for chunk in chunks {
            match end.push(&chunk) {
                Ok(Some(at)) => {
                    prop_assert!(0 < at && at <= chunk.len());
                    return Ok(());
                }
                Ok(None) => {}
                Err(_) => return Ok(()),
            }
        }
    }

    #[test]
    fn a_matcher_is_refused_or_means_what_its_text_says(text in matcher_text(), subject in text()) {
        let Ok(matcher) = Matcher::parse(&text) else { return Ok(()) };
        let again = Matcher::parse(&matcher.text());
        prop_assert_eq!(again.as_ref(), Ok(&matcher));
        let subject = Subject::new(EventKind::BeforeTool, &subject);
        prop_assert_eq!(again.unwrap().matches(Some(subject)), matcher.matches(Some(subject)));
        _ = matcher.matches(None);
    }

    #[test]
    fn a_name_is_an_event_or_an_error_with_a_known_suggestion(name in prop_oneof![hostile_text(), "[a-zA-Z_:-]{0,20}"]) {
        match dialect::event_named(&name) {
            Ok(named) => prop_assert!(!named.kinds.is_empty()),
            Err(error) => prop_assert!(error.nearest.is_none_or(|nearest| dialect::event_named(nearest).is_ok())),
        }
        _ = dialect::by_spelling(&name);
    }
}

fn matcher_text() -> impl Strategy<Value = String> {
    prop_oneof!["(builtin:|re:|mcp__| |\\||\\*|\\.|[a-c]){0,8}", "re:.{0,20}", hostile_text()]
}

#[test]
fn hostile_shapes_are_failures_in_bounded_time() {
    let brackets = "[".repeat(200_000);
    let braces = "{\"a\":".repeat(200_000);
    let nul = "\0\0\0";
    for stdout in [brackets.as_str(), braces.as_str(), nul] {
        for dialect in all() {
            let answer = ended(dialect, End::Exited(0), stdout, "");
            assert_eq!(answer.verdict.flow, Flow::NoOpinion, "{}", dialect.name());
            let plain_text = speaks_by_status(dialect) && !stdout.starts_with('{');
            assert_eq!(answer.failure.is_none(), plain_text, "{}", dialect.name());
        }
    }
}

#[test]
fn a_request_is_read_although_it_holds_what_is_no_text() {
    for bytes in [
        &b"\xef\xbb\xbf{\"event\":\"before_tool\",\"data\":{\"tool_name\":\"shell\"}}"[..],
        b"{\"event\":\"before_tool\",\"data\":{\"tool_name\":\"shell\",\"args\":{\"text\":\"cut \\ud83d\"}}}",
        b"{\"event\":\"before_tool\",\"data\":{\"tool_name\":\"shell\",\"args\":{\"text\":\"\xff\xfe\"}}}",
    ] {
        let event = dialect::OLLM.read_event(bytes).unwrap().event;
        assert_eq!((event.kind, event.subject()), (EventKind::BeforeTool, Some("shell")));
    }
}
