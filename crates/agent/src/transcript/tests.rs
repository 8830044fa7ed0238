//! Tests a session's file that is cut at every byte.

use super::*;
use crate::message::{Arguments, Call};
use std::os::unix::fs::PermissionsExt;

/// A transcript on a full disk.
pub(crate) fn full() -> Transcript {
    let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    Transcript { file, path: "/dev/full".into(), length: 0, redactor: Arc::default() }
}

fn header(id: &str) -> Header {
    Header {
        id: id.into(),
        started: format!("2026-01-16T10:00:0{}.000Z", id.len()),
        cwd: "/w".into(),
        model: "m".into(),
    }
}

fn messages() -> Vec<Message> {
    let call = Call { id: "1".into(), name: "shell".into(), arguments: Arguments::parse("{\"command\": \"é\"}") };
    vec![
        Message::User("hello\nthere".into()),
        Message::Assistant { content: String::new(), calls: vec![call] },
        Message::Tool { call_id: "1".into(), name: "shell".into(), content: "ok".into() },
        Message::Assistant { content: "done".into(), calls: Vec::new() },
    ]
}

fn written(folder: &Path, id: &str) -> PathBuf {
    let mut transcript = Transcript::create(folder, &header(id), Arc::default()).unwrap();
    for message in messages() {
        transcript.append(&json!({"message": message.to_json()})).unwrap();
    }
    transcript.path().to_owned()
}

#[test]
fn a_kill_at_any_byte_loses_at_most_the_line_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a");
    let bytes = fs::read(&path).unwrap();
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let whole = bytes[..length].split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).count();
        match Transcript::resume(folder.path(), "a", Arc::default()) {
            Err(error) => assert!(whole == 0, "{length}: {error}"),
            Ok((mut transcript, saved)) => {
                let mut expected = Conversation::new(messages()[..whole - 1].to_vec());
                expected.mend();
                assert_eq!(saved.messages, expected.messages, "{length}");
                assert_eq!(saved.notes.len(), usize::from(bytes[length - 1] != b'\n'), "{length}");
                transcript.append(&json!({"message": {"role": "user", "content": "again"}})).unwrap();
                drop(transcript);
                let again = load(folder.path(), "a").unwrap();
                assert_eq!(again.notes, Vec::<String>::new(), "{length}");
                assert_eq!(again.messages.last(), Some(&Message::User("again".into())), "{length}");
            }
        }
    }
}

#[test]
fn files_belong_to_their_owner_and_to_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let transcript = Transcript::create(&sessions, &header("a"), Arc::default()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&sessions), mode(transcript.path())), (0o700, 0o600));
    let error = Transcript::resume(&sessions, "a", Arc::default()).unwrap_err();
    assert!(matches!(error, TranscriptError::Busy(_)), "{error}");
    drop(transcript);
    assert!(Transcript::resume(&sessions, "a", Arc::default()).is_ok());
}

#[test]
fn sessions_are_found_by_the_beginning_of_their_id() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "abc");
    written(folder.path(), "abcd");
    written(folder.path(), "xyzzy");
    let id = |id: &str| load(folder.path(), id).map(|saved| saved.header.id);
    assert_eq!(id("abc").unwrap(), "abc");
    assert_eq!(id("x").unwrap(), "xyzzy");
    assert!(matches!(id("ab"), Err(TranscriptError::Ambiguous { count: 2, .. })));
    for unknown in ["q", "../abc", "a/b"] {
        assert!(matches!(id(unknown), Err(TranscriptError::Unknown(_))), "{unknown}");
    }
    assert!(matches!(id(""), Err(TranscriptError::Ambiguous { .. })));
}

#[test]
fn the_list_has_the_latest_first_and_names_what_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "a");
    written(folder.path(), "bb");
    fs::write(folder.path().join("broken.jsonl"), "nonsense\n").unwrap();
    fs::write(folder.path().join("newer.jsonl"), "{\"version\": 9}\n").unwrap();
    fs::write(folder.path().join("other.txt"), "").unwrap();
    let (list, notes) = super::list(folder.path()).unwrap();
    let seen: Vec<_> = list.iter().map(|one| (one.header.id.as_str(), one.messages, one.first.as_deref())).collect();
    assert_eq!(seen, [("bb", 4, Some("hello")), ("a", 4, Some("hello"))]);
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().any(|note| note.contains("update it")), "{notes:?}");
    assert_eq!(super::list(&folder.path().join("none")).unwrap(), (Vec::new(), Vec::new()));
}

#[test]
fn secrets_do_not_reach_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let redactor = Arc::new(Redactor::new([("TOKEN", "hunter2-hunter2"), ("WORD", "message")]));
    let mut transcript = Transcript::create(folder.path(), &header("a"), redactor).unwrap();
    transcript.append(&json!({"message": {"role": "user", "content": "pw hunter2-hunter2"}})).unwrap();
    let saved = load(folder.path(), "a").unwrap();
    assert_eq!(saved.messages, [Message::User("pw [redacted:TOKEN]".into())]);
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    assert!(matches!(full().append(&json!({})), Err(TranscriptError::Io { .. })));
}

#[test]
fn a_shortened_conversation_is_resumed_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "a");
    let squeeze = Squeeze { head: 0, tail: 1, notes: 0, summary: "earlier".into() };
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "{}", json!({"compressed": squeeze.to_json()})).unwrap();
    let saved = load(folder.path(), "a").unwrap();
    let summary = Message::System("[Summary of earlier messages] earlier".into());
    let expected = [summary, Message::User("hello\nthere".into()), messages().pop().unwrap()];
    assert_eq!(saved.messages, expected);
}
