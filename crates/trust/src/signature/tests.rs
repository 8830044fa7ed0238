use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minisign::KeyPair;
use ollm_store::{FileDigests, TreeLimits, digest_bytes};
use tempfile::{TempDir, tempdir};

use super::*;
use crate::fixture::{approval, tomorrow};
use crate::{
    ApproveError, Approver, Choice, ExtensionFolder, Question, Signer, Standing, Term, Trust, TrustContext, approve,
};

/// A key without a passphrase, which counts how often it was used.
#[derive(Clone, Debug)]
struct Key {
    pair: KeyPair,
    used: Arc<AtomicUsize>,
}

impl Key {
    fn new() -> Key {
        Key { pair: KeyPair::generate_unencrypted_keypair().unwrap(), used: Arc::default() }
    }

    fn public(&self) -> ApprovalKey {
        let line = self.pair.pk.to_base64();
        ApprovalKey { line, origin: "config.yaml".to_owned(), by_policy: false, floor: 0 }
    }
}

impl Signer for Key {
    fn unlock(&self) -> Result<Sign, SignError> {
        self.used.fetch_add(1, Ordering::SeqCst);
        let secret = self.pair.sk.clone();
        Ok(Box::new(move |statement| Ok(minisign::sign(None, &secret, statement, None, None).unwrap().into_string())))
    }
}

/// A home where approvals must be signed.
struct Home {
    folder: TempDir,
    key: Key,
}

impl Home {
    fn new() -> Home {
        Home { folder: tempdir().unwrap(), key: Key::new() }
    }

    fn list(&self) -> PathBuf {
        self.folder.path().join("trusted-hooks.json")
    }

    fn trust(&self) -> Trust {
        // By then everything has been quiet for a while, and is remembered.
        let mut trust = Trust::new(self.list(), tomorrow);
        trust.demand_signature(Some(self.key.public()));
        trust.signer = Some(Box::new(self.key.clone()));
        trust
    }

    fn document(&self) -> Value {
        serde_json::from_slice(&fs::read(self.list()).unwrap()).unwrap()
    }

    fn write(&self, document: &Value) {
        fs::write(self.list(), document.to_string()).unwrap();
    }

    /// The sources that count, or why none does.
    fn counting(&self) -> Result<Vec<String>, ListTrouble> {
        let (approvals, trouble) = crate::Approvals::load(&self.list(), Some(&self.key.public()));
        let sources = approvals.list().iter().map(|one| one.source.clone()).collect::<Vec<_>>();
        assert!(trouble.is_none() || sources.is_empty(), "{sources:?}");
        trouble.map_or(Ok(sources), Err)
    }

    fn forged(&self) -> Result<Vec<String>, ListTrouble> {
        Err(ListTrouble::Forged { path: self.list(), origin: "config.yaml".to_owned() })
    }
}

fn key_of(source: &str) -> [(String, String); 1] {
    [(source.to_owned(), "id".to_owned())]
}

#[test]
fn s02_an_approval_counts_only_in_a_list_that_the_key_signed() {
    let home = Home::new();
    home.trust().approve_together([approval("a"), approval("b")]).unwrap();
    assert_eq!(home.counting(), Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(home.document()["serial"], 1);
    assert_eq!(home.trust().withdraw(&key_of("a")).unwrap(), 1);
    assert_eq!(home.counting(), Ok(vec!["b".to_owned()]));
    assert_eq!((home.document()["serial"].as_u64(), home.trust().seen_serial().unwrap()), (Some(2), 2));

    let unsigned = Home::new();
    approve(&unsigned.list(), approval("a")).unwrap();
    assert!(matches!(unsigned.counting(), Err(ListTrouble::Unsigned { .. })));
    let other = Home { folder: unsigned.folder, key: Key::new() };
    other.write(&home.document());
    assert_eq!(other.counting(), other.forged());
}

#[test]
fn s02_a_list_with_any_field_changed_by_hand_counts_for_nothing() {
    let home = Home::new();
    let (copy, program) = (Some("copy".to_owned()), Some("/bin/sh".to_owned()));
    home.trust().approve_together([Approval { copy, program, ..approval("a") }]).unwrap();
    let signed = home.document();
    let other = digest_bytes(b"other").to_string();
    for (field, value) in [
        ("source", json!("b")),
        ("id", json!("x")),
        ("hash", json!(other)),
        ("digest", json!(other)),
        ("approvedAt", json!("2027-01-15T10:30:00Z")),
        ("approvedBy", json!("root")),
        ("copy", json!("other")),
        ("program", json!("/bin/evil")),
        ("copy", Value::Null),
        ("term", json!("once")),
    ] {
        let mut changed = signed.clone();
        changed["approvals"][0][field] = value;
        home.write(&changed);
        assert_eq!(home.counting(), home.forged(), "{field}");
    }
    for serial in [json!(0), json!(2), Value::Null] {
        let mut changed = signed.clone();
        changed["serial"] = serial;
        home.write(&changed);
        assert_eq!(home.counting(), home.forged());
    }
    let mut more = signed.clone();
    let mut entry = signed["approvals"][0].clone();
    entry["source"] = json!("evil");
    more["approvals"].as_array_mut().unwrap().push(entry);
    home.write(&more);
    assert_eq!(home.counting(), home.forged());
    let mut foreign = signed.clone();
    foreign["approvals"].as_array_mut().unwrap().push(json!({"source": "x", "hash": other}));
    home.write(&foreign);
    assert_eq!(home.counting(), Ok(vec!["a".to_owned()]), "entries of other programs stay, and approve nothing");
}

#[test]
fn s02_a_list_that_was_written_half_counts_for_nothing() {
    let home = Home::new();
    home.trust().approve_together([approval("a")]).unwrap();
    let whole = fs::read(home.list()).unwrap();
    for length in 0..whole.trim_ascii_end().len() {
        fs::write(home.list(), &whole[..length]).unwrap();
        assert!(home.counting().is_err(), "{length}");
    }
}

#[test]
fn s02_a_withdrawn_approval_cannot_be_put_back() {
    let home = Home::new();
    home.trust().approve_together([approval("a")]).unwrap();
    let (old, kept) = (home.document(), fs::read(memory(&home.list())).unwrap());
    home.trust().withdraw(&key_of("a")).unwrap();
    home.write(&old);
    assert_eq!(home.counting(), Err(ListTrouble::Replayed { path: home.list(), serial: 1, seen: 2 }));
    assert!(home.trust().trouble().unwrap().contains("older list that was put back"));

    // It is not enough to remove what was seen, or to write a lower serial there.
    let (memory, newest) = (memory(&home.list()), fs::read_to_string(memory(&home.list())).unwrap());
    let forgotten =
        Err(ListTrouble::Unremembered { path: home.list(), memory: memory.clone(), origin: "config.yaml".to_owned() });
    fs::remove_file(&memory).unwrap();
    assert_eq!(home.counting(), forgotten);
    for lower in [newest.replace('2', "1"), r#"{"version": 1, "serial": 1}"#.to_owned()] {
        fs::write(&memory, lower).unwrap();
        assert_eq!(home.counting(), forgotten);
    }

    // An attacker who kept both files from then and puts them back together meets the floor of the policy.
    fs::write(&memory, &kept).unwrap();
    assert_eq!(home.counting(), Ok(vec!["a".to_owned()]));
    let floor = ApprovalKey { floor: 2, by_policy: true, ..home.key.public() };
    let (approvals, trouble) = crate::Approvals::load(&home.list(), Some(&floor));
    assert_eq!(trouble, Some(ListTrouble::BelowFloor { path: home.list(), serial: 1, floor: 2 }));
    assert_eq!(approvals.list(), Vec::<&Approval>::new());
}

#[test]
fn s02_what_was_seen_grows_with_what_is_read() {
    let home = Home::new();
    home.trust().approve_together([approval("a")]).unwrap();
    let first = fs::read(memory(&home.list())).unwrap();
    home.trust().approve_together([approval("b")]).unwrap();
    fs::write(memory(&home.list()), first).unwrap();
    home.counting().unwrap();
    assert_eq!(home.trust().seen_serial().unwrap(), 2);
    fs::write(memory(&home.list()), "{").unwrap();
    assert!(matches!(home.counting(), Err(ListTrouble::File(_))), "what cannot be read is not taken for nothing");
}

#[test]
fn s02_what_somebody_put_into_the_list_is_not_signed_along() {
    let home = Home::new();
    home.trust().approve_together([approval("a")]).unwrap();
    approve(&home.list(), approval("evil")).unwrap();
    let refused = home.trust().approve_together([approval("b")]).unwrap_err();
    assert!(matches!(refused, ApproveError::Change(ChangeError::List(ListTrouble::Forged { .. }))), "{refused:?}");
    assert!(matches!(home.trust().withdraw(&key_of("a")), Err(ChangeError::List(_))));
    assert_eq!(home.key.used.load(Ordering::SeqCst), 1, "nobody is asked for a passphrase in vain");

    // A person who has looked at it signs what they saw, and no more.
    let (seen, _) = crate::Approvals::load(&home.list(), None);
    approve(&home.list(), approval("late")).unwrap();
    home.trust().sign_all(&seen.lasting()).unwrap();
    assert_eq!(home.counting(), Ok(vec!["a".to_owned(), "evil".to_owned()]));
    approve(&home.list(), approval("late")).unwrap();
    assert_eq!(home.trust().withdraw_all().unwrap(), 3);
    assert_eq!(home.counting(), Ok(Vec::new()));
    assert_eq!(home.document()["serial"], 3);
}

#[test]
fn s02_nothing_is_approved_or_withdrawn_without_the_key() {
    let home = Home::new();
    home.trust().approve_together([approval("a")]).unwrap();
    let before = home.document();
    let mut nobody = home.trust();
    nobody.signer = None;
    let mut other = home.trust();
    other.signer = Some(Box::new(Key::new()));
    for trust in [&nobody, &other] {
        let approved = trust.approve_together([approval("b")]);
        assert!(matches!(approved, Err(ApproveError::Change(ChangeError::Sign(_)))), "{approved:?}");
        assert!(matches!(trust.withdraw(&key_of("a")), Err(ChangeError::Sign(_))));
        assert!(matches!(trust.withdraw_all(), Err(ChangeError::Sign(_))));
        assert!(trust.confirm().is_err());
    }
    assert_eq!(home.document(), before);
}

/// Says the same to everything.
#[derive(Debug)]
struct Says(Choice);

impl Approver for Says {
    fn ask(&self, _: &Question<'_>) -> Choice {
        self.0
    }
}

#[test]
fn s02_every_yes_needs_the_key_also_one_that_is_written_nowhere() {
    for choice in [Choice::Once, Choice::Session, Choice::Always] {
        let home = Home::new();
        let root = home.folder.path().join("extension");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("manifest.json"), "{}").unwrap();
        let thing = Arc::new(ExtensionFolder::new("one", &root));
        let runs = |trust: &Trust| trust.trust(&thing, &TrustContext::default(), Some("session")).is_ok();
        let mut trust = home.trust();
        trust.approver = Some(Box::new(Says(choice)));
        trust.signer = None;
        assert!(!runs(&trust), "{choice:?}");
        trust.signer = Some(Box::new(Key::new()));
        assert!(!runs(&trust), "{choice:?}");
        trust.signer = Some(Box::new(home.key.clone()));
        assert!(runs(&trust), "{choice:?}");
        assert_eq!(home.key.used.load(Ordering::SeqCst), 1);
        trust.approver = None;
        assert_eq!(runs(&trust), choice != Choice::Once, "{choice:?}");
    }
}

#[test]
fn s02_an_approval_that_does_not_last_is_neither_signed_nor_counted() {
    let home = Home::new();
    let root = home.folder.path().join("extension");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("manifest.json"), "{}").unwrap();
    let thing = ExtensionFolder::new("one", &root);
    let (trust, context) = (home.trust(), TrustContext::default());
    let proposal = trust.propose(&thing, &context).unwrap();
    for term in [Term::Once, Term::Session(None)] {
        assert!(matches!(trust.approve(&thing, &proposal, term, &context), Err(ApproveError::Limited)));
    }
    trust.approve_together([Approval { term: Term::Once, ..approval("a") }]).unwrap();
    let once = approval("a");
    assert_eq!(trust.counting().check("a", "id", &once.hash, &once.digest), Standing::Unknown);
}

#[test]
fn s02_what_is_remembered_of_files_vouches_for_nothing() {
    let home = Home::new();
    let root = home.folder.path().join("extension");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("manifest.json"), "{}").unwrap();
    // What is little is not worth remembering.
    let [good_script, evil_script] = ["good", "evil"].map(|word| word.repeat(1 << 18));
    fs::write(root.join("run.sh"), &good_script).unwrap();
    let thing = Arc::new(ExtensionFolder::new("one", &root));
    let (trust, context) = (home.trust(), TrustContext::default());
    let proposal = trust.propose(&*thing, &context).unwrap();
    trust.approve(&*thing, &proposal, Term::Always, &context).unwrap();
    let copy = proposal.copy_folder().unwrap();
    let hex = |digest: ollm_store::Digest| digest.to_string().replace("sha256:", "");
    let good = hex(FileDigests::new(tomorrow()).tree(copy, TreeLimits::default()).unwrap());

    let script = copy.join("run.sh");
    let mode = fs::metadata(&script).unwrap().permissions();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&script, evil_script).unwrap();
    fs::set_permissions(&script, mode).unwrap();
    let memory = home.folder.path().join("state/digests");
    let digests = FileDigests::load(memory.clone(), tomorrow());
    let evil = hex(digests.tree(copy, TreeLimits::default()).unwrap());
    digests.save_if_changed();
    let forged = fs::read_to_string(&memory).unwrap();
    assert!(forged.contains(&evil), "{forged}");
    fs::write(&memory, forged.replace(&evil, &good)).unwrap();

    let trusted = home.trust().trust(&thing, &context, None).unwrap();
    let runs = trusted.copy_folder().unwrap().join("run.sh");
    assert!(fs::read_to_string(runs).unwrap() == good_script);
}
