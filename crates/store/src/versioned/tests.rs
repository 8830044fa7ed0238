use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::json;
use tempfile::tempdir;

use super::*;

const MAX: u64 = 64 * 1024;

/// Loads a file with this content, and replaces its path in the message by `FILE`.
fn trouble_of(content: &str) -> String {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    fs::write(&path, content).unwrap();
    match load(&path, 2, MAX) {
        Loaded::Refused(trouble) => trouble.to_string().replace(&path.display().to_string(), "FILE"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn known_versions_are_handed_over_whole() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    assert_eq!(load(&path, 2, MAX), Loaded::Missing);
    for version in [1, 2] {
        fs::write(&path, format!("{{\"version\": {version}, \"more\": [1]}}")).unwrap();
        assert_eq!(load(&path, 2, MAX), Loaded::Current(json!({"version": version, "more": [1]})));
    }
}

#[test]
fn a_newer_version_is_named() {
    assert_eq!(
        trouble_of(r#"{"version": 3}"#),
        "FILE has version 3, this program knows versions up to 2; update the program, or move the file away to start \
         afresh"
    );
}

#[test]
fn broken_documents_are_reported_with_their_place() {
    let way_out = "; repair the file, or move it away to start afresh";
    let cases = [
        ("", "FILE:1:0: EOF while parsing a value"),
        ("{\n  \"version\": x}", "FILE:2:14: expected value"),
        ("[]", "FILE is not a JSON object"),
        ("{}", "FILE has no \"version\""),
        (r#"{"version": "1"}"#, "FILE has the version \"1\", not a whole number from 1"),
        (r#"{"version": 1.5}"#, "FILE has the version 1.5, not a whole number from 1"),
        (r#"{"version": 0}"#, "FILE has the version 0, not a whole number from 1"),
    ];
    for (content, expected) in cases {
        assert_eq!(trouble_of(content), format!("{expected}{way_out}"), "{content}");
    }
}

#[test]
fn deep_nesting_and_bytes_that_are_no_text_are_broken_documents() {
    assert!(trouble_of(&"[".repeat(50_000)).contains("recursion limit"));
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    fs::write(&path, b"{\"version\": 1, \"a\": \"\xff\"}").unwrap();
    assert!(matches!(load(&path, 1, MAX), Loaded::Refused(Trouble::Broken { .. })));
    fs::write(&path, vec![b' '; 70_000]).unwrap();
    assert!(matches!(load(&path, 1, MAX), Loaded::Refused(Trouble::Broken { .. })));
    assert!(matches!(load(folder.path(), 1, MAX), Loaded::Refused(Trouble::Broken { .. })));
}

#[test]
fn a_document_that_others_can_write_is_unsafe_one_they_can_read_is_not() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    fs::write(&path, r#"{"version": 1}"#).unwrap();
    for (mode, safe) in [(0o600, true), (0o644, true), (0o400, true), (0o620, false), (0o602, false), (0o666, false)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        match load(&path, 1, MAX) {
            Loaded::Current(_) => assert!(safe, "{mode:o}"),
            Loaded::Refused(Trouble::Unsafe { mode: found, .. }) => assert!(!safe && found == mode, "{mode:o}"),
            other => panic!("{other:?}"),
        }
    }
    let Loaded::Refused(trouble) = load(&path, 1, MAX) else { panic!() };
    assert_eq!(
        trouble.to_string().replace(&path.display().to_string(), "FILE"),
        "FILE can be written by other users (mode 0666); look through it, then make it yours alone: chmod 600 'FILE'"
    );
}

#[test]
fn a_document_of_another_user_is_unsafe() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    fs::write(&path, r#"{"version": 1}"#).unwrap();
    // Only root can give a file to another user; without root there is nothing to test.
    if chown(&path, Some(54_321), None).is_ok() {
        assert!(matches!(load(&path, 1, MAX), Loaded::Refused(Trouble::Unsafe { owner: 54_321, .. })));
    }
}

#[test]
fn what_is_refused_is_not_overwritten() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    for content in ["{\"version\": 9}", "{", "[]", "{\"version\": 1"] {
        fs::write(&path, content).unwrap();
        let updated = update(&path, 1, MAX, |_| Ok((Some(json!({"version": 1})), ())));
        assert!(matches!(updated, Err(UpdateError::Refused(_))), "{content}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn an_update_writes_only_what_it_is_given() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    assert_eq!(update(&path, 1, MAX, |document| Ok((None, document))).unwrap(), None);
    assert!(!path.exists());
    update(&path, 1, MAX, |_| Ok((Some(json!({"version": 1, "a": 2})), ()))).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"version\": 1,\n  \"a\": 2\n}\n");
}

#[test]
fn a_document_that_says_nothing_any_more_goes_with_its_lock() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("doc.json");
    let write = |document: serde_json::Value| update(&path, 1, MAX, |_| Ok((Some(document), ()))).unwrap();
    let empty = json!({"version": 1, "list": [], "map": {}, "nothing": null});
    write(empty.clone());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    for said in [json!({"version": 1, "list": [0]}), json!({"version": 1, "list": [], "serial": 0})] {
        write(said);
        assert!(path.exists());
        write(empty.clone());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
