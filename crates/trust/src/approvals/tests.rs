use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread;

use ollm_store::{UpdateError, digest_bytes};
use proptest::prelude::*;
use tempfile::tempdir;

use super::*;
use crate::fixture::approval;

#[test]
fn what_ran_it_is_kept_beside_the_rest() {
    let home = tempdir().unwrap();
    let path = home.path().join("approvals.json");
    let wanted = Approval { program: Some("/usr/bin/python3".to_owned()), ..approval("a") };
    approve(&path, wanted.clone()).unwrap();
    approve(&path, approval("b")).unwrap();
    assert_eq!(load(&path).list(), [&wanted, &approval("b")]);
}

fn revoke_all(path: &Path) -> Result<usize, ChangeError> {
    edit(path, None, |entries| std::mem::take(entries).len())
}

fn load(path: &Path) -> Approvals {
    let (approvals, trouble) = Approvals::load(path, None);
    assert_eq!(trouble, None);
    approvals
}

#[test]
fn the_file_has_the_documented_form() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    approve(&path, approval("guard.py")).unwrap();
    let expected = json!({"version": 1, "approvals": [{
        "source": "guard.py",
        "id": "id",
        "hash": digest_bytes(b"guard.py").to_string(),
        "approvedAt": "2026-01-15T10:30:00Z",
        "approvedBy": "user",
        "digest": digest_bytes(b"everything").to_string(),
    }]});
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{expected:#}\n"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn only_the_exact_content_is_approved() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let ours = approval("guard.py");
    approve(&path, ours.clone()).unwrap();
    let approvals = load(&path);
    let other = digest_bytes(b"other");
    assert_eq!(approvals.find("guard.py", "id"), Some(&ours));
    assert_eq!(approvals.check("guard.py", "id", &ours.hash, &ours.digest), Standing::Approved);
    assert_eq!(approvals.check("guard.py", "id", &other, &ours.digest), Standing::Modified);
    assert_eq!(approvals.check("guard.py", "id", &ours.hash, &other), Standing::Modified);
    assert_eq!(approvals.check("guard.p", "id", &ours.hash, &ours.digest), Standing::Unknown);
}

#[test]
fn a_new_approval_replaces_the_old_one_and_sources_are_ordered() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let renewed = Approval { digest: digest_bytes(b"new"), ..approval("b") };
    approve_all(&path, vec![approval("c"), approval("b"), approval("a")]).unwrap();
    approve(&path, renewed.clone()).unwrap();
    assert_eq!(load(&path).list(), [&approval("a"), &renewed, &approval("c")]);
    let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let sources: Vec<_> = document["approvals"].as_array().unwrap().iter().map(|entry| &entry["source"]).collect();
    assert_eq!(sources, ["a", "b", "c"]);
}

#[test]
fn revoking_takes_away_one_or_all() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    assert!(!revoke(&path, "a", "id").unwrap());
    approve_all(&path, vec![approval("a"), approval("b"), approval("c")]).unwrap();
    assert!(revoke(&path, "a", "id").unwrap());
    assert!(!revoke(&path, "a", "id").unwrap());
    assert_eq!(load(&path).list(), [&approval("b"), &approval("c")]);
    assert_eq!(revoke_all(&path).unwrap(), 2);
    assert_eq!(revoke_all(&path).unwrap(), 0);
    assert_eq!(load(&path), Approvals::default());
}

#[test]
fn entries_of_other_programs_approve_nothing_and_are_kept() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let hash = digest_bytes(b"x");
    let foreign = json!({"source": "x", "hash": hash.to_string(), "approvedAt": "…", "approvedBy": "user"});
    let vague = json!({"source": "y", "hash": "sha256:abc123def456...", "note": {"a": 1}});
    let nameless = json!({"hash": hash.to_string()});
    let document = json!({"version": 1, "approvals": [foreign, vague, nameless, 7], "comment": "mine"});
    fs::write(&path, document.to_string()).unwrap();
    let approvals = load(&path);
    assert_eq!(approvals, Approvals::default());
    assert_eq!(approvals.check("x", "id", &hash, &hash), Standing::Unknown);
    approve(&path, approval("x")).unwrap();
    approve(&path, approval("z")).unwrap();
    assert_eq!(load(&path).list(), [&approval("x"), &approval("z")]);
    let after: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(after["comment"], "mine");
    let kept = [nameless, json!(7), foreign, write_entry(approval("x")), vague, write_entry(approval("z"))];
    assert_eq!(after["approvals"], json!(kept));
}

#[test]
fn unknown_fields_of_our_own_entries_are_kept() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let mut entry = write_entry(approval("a"));
    entry["note"] = json!("checked twice");
    fs::write(&path, json!({"version": 1, "approvals": [entry]}).to_string()).unwrap();
    approve(&path, approval("b")).unwrap();
    let after: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(after["approvals"], json!([entry, write_entry(approval("b"))]));
}

/// Asserts that a file approves nothing, tells why, and stays unchanged.
fn assert_useless(path: &Path, content: &[u8]) {
    let (approvals, trouble) = Approvals::load(path, None);
    assert_eq!(approvals, Approvals::default());
    assert!(trouble.is_some());
    for refused in [approve(path, approval("b")), revoke(path, "a", "id").map(drop), revoke_all(path).map(drop)] {
        match refused {
            Err(ChangeError::Update(UpdateError::Refused(reason))) => {
                assert_eq!(Some(ListTrouble::from(reason)), trouble);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fs::read(path).unwrap(), content);
}

#[test]
fn no_truncation_approves_anything_or_is_overwritten() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    approve(&path, approval("a")).unwrap();
    let whole = fs::read(&path).unwrap();
    let text = whole.trim_ascii_end();
    for length in 0..text.len() {
        fs::write(&path, &text[..length]).unwrap();
        assert_useless(&path, &text[..length]);
    }
}

#[test]
fn files_of_another_form_version_or_mode_approve_nothing_and_are_not_overwritten() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let entry = write_entry(approval("a"));
    let contents = [
        json!({"version": 2, "approvals": [entry]}),
        json!({"approvals": [entry]}),
        json!({"version": 1}),
        json!({"version": 1, "approvals": {"a": entry}}),
        json!([entry]),
        json!(null),
    ];
    for content in contents {
        fs::write(&path, content.to_string()).unwrap();
        assert_useless(&path, content.to_string().as_bytes());
    }
    let fine = json!({"version": 1, "approvals": [entry]}).to_string();
    fs::write(&path, &fine).unwrap();
    assert_eq!(load(&path).list(), [&approval("a")]);
    for mode in [0o660, 0o606, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_useless(&path, fine.as_bytes());
    }
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(load(&path).list(), [&approval("a")]);
}

#[test]
fn a_hundred_approvals_at_once_are_all_kept() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    thread::scope(|scope| {
        for number in 0..100 {
            let path = &path;
            scope.spawn(move || approve(path, approval(&format!("hook {number:02}"))).unwrap());
        }
    });
    let expected: Vec<_> = (0..100).map(|number| approval(&format!("hook {number:02}"))).collect();
    assert_eq!(load(&path).list(), expected.iter().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_approved_is_loaded(sources in prop::collection::btree_set(any::<String>(), 0..5), at in any::<String>(), by in any::<String>()) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("trusted-hooks.json");
        let all: Vec<_> = sources
            .iter()
            .map(|source| Approval { approved_at: at.clone(), approved_by: by.clone(), ..approval(source) })
            .collect();
        approve_all(&path, all.clone()).unwrap();
        let approvals = load(&path);
        prop_assert_eq!(approvals.list(), all.iter().collect::<Vec<_>>());
        for one in &all {
            prop_assert_eq!(approvals.check(&one.source, "id", &one.hash, &one.digest), Standing::Approved);
            prop_assert!(revoke(&path, &one.source, "id").unwrap());
        }
        prop_assert_eq!(load(&path), Approvals::default());
    }
}

#[test]
fn an_approval_for_one_use_is_used_once_however_many_claim_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let once = Approval { term: Term::Once, ..approval("a") };
    approve(&path, once.clone()).unwrap();
    assert_eq!(load(&path).check("a", "id", &once.hash, &once.digest), Standing::Limited);
    let claims: Vec<_> = (0..20).map(|_| (path.clone(), once.clone())).collect();
    let granted = thread::scope(|scope| {
        let threads: Vec<_> =
            claims.iter().map(|(path, once)| scope.spawn(|| claim(path, once, None).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|granted| *granted).count()
    });
    assert_eq!(granted, 1);
    assert_eq!(load(&path).check("a", "id", &once.hash, &once.digest), Standing::Unknown);
}

#[test]
fn an_approval_for_a_session_belongs_to_the_first_that_uses_it() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    let session = Approval { term: Term::Session(None), ..approval("a") };
    approve(&path, session.clone()).unwrap();
    assert!(!claim(&path, &session, None).unwrap());
    assert!(claim(&path, &session, Some("one")).unwrap());
    assert!(!claim(&path, &session, Some("two")).unwrap());
    assert!(claim(&path, &session, Some("one")).unwrap());
    let changed = Approval { digest: digest_bytes(b"changed"), ..session };
    assert!(!claim(&path, &changed, Some("one")).unwrap());
}

#[test]
fn a_term_that_cannot_be_read_approves_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("trusted-hooks.json");
    for term in [json!("forever"), json!(7)] {
        let mut entry = write_entry(approval("a"));
        entry["term"] = term;
        fs::write(&path, json!({"version": 1, "approvals": [entry]}).to_string()).unwrap();
        assert_eq!(load(&path), Approvals::default());
    }
}
