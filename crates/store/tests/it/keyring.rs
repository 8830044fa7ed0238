//! A real keyring, where one can be had, and one of our own on a real bus for what takes a person; otherwise these tests say
//! that they are skipped.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ollm_store::{Keyring, KeyringError, SecretError, SecretPlace, Secrets, drop_secrets, keep_secret};
use testkit::{Habits, KeyringSession, Person, Prompts, SecretService};

fn session() -> Option<KeyringSession> {
    KeyringSession::start(|session| {
        let probe = session.folder().join("probe.json");
        keep_secret(&probe, Some(&keyring(session)), "probe", "1").is_ok_and(|kept| kept.place == SecretPlace::Keyring)
    })
}

fn keyring(session: &KeyringSession) -> Keyring {
    Keyring::at(session.address()).waiting(Duration::from_secs(30))
}

#[test]
fn a_keyring_keeps_a_secret_gives_it_back_and_lets_it_go() {
    let Some(session) = session() else { return };
    let path = session.folder().join("secrets.json");
    let keyring = keyring(&session);
    let mut edition = 0;
    // Also what is long, is not ASCII, or looks like more than one line.
    for value in ["s3cret", " ", "zwölf\nLinien \u{1f511}", &"x".repeat(20_000)] {
        let deposit = keep_secret(&path, Some(&keyring), "a:b", value).unwrap();
        assert_eq!((deposit.place, deposit.instead), (SecretPlace::Keyring, None));
        let (secrets, trouble) = Secrets::load(&path, Some(keyring.clone()));
        assert_eq!((secrets.get("a:b").unwrap().as_deref(), trouble), (Some(value), None));
        assert!(edition < secrets.edition("a:b"));
        edition = secrets.edition("a:b");
    }
    let file = fs::read_to_string(&path).unwrap();
    assert!(!file.contains("xxx") && file.contains("a:b"), "{file}");
    // Another home has other secrets, though they are called the same.
    let other = session.folder().join("other.json");
    keep_secret(&other, Some(&keyring), "a:b", "theirs").unwrap();
    assert!(drop_secrets(&other, Some(&keyring), &["a:b".to_owned()]).unwrap());
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert_eq!(secrets.get("a:b").unwrap().map(|value| value.len()), Some(20_000));
    // What was removed is gone from both.
    assert!(drop_secrets(&path, Some(&keyring), &["a:b".to_owned()]).unwrap());
    assert!(matches!(secrets.get("a:b").unwrap_err(), SecretError::Gone));
    assert_eq!(Secrets::load(&path, Some(keyring)).0.place("a:b"), None);
}

#[test]
fn an_empty_text_takes_the_place_of_what_is_in_the_keyring_and_is_known_without_it() {
    let Some(session) = session() else { return };
    let path = session.folder().join("secrets.json");
    let keyring = keyring(&session);
    keep_secret(&path, Some(&keyring), "a", "s3cret").unwrap();
    let kept = Secrets::load(&path, Some(keyring.clone())).0;
    assert_eq!(keep_secret(&path, Some(&keyring), "a", "").unwrap().place, SecretPlace::File);
    assert_eq!(Secrets::load(&path, None).0.get("a").unwrap().as_deref(), Some(""));
    assert!(matches!(kept.get("a").unwrap_err(), SecretError::Gone));
    assert_eq!(keep_secret(&path, Some(&keyring), "a", "again").unwrap().place, SecretPlace::Keyring);
    assert_eq!(Secrets::load(&path, Some(keyring)).0.get("a").unwrap().as_deref(), Some("again"));
}

#[test]
fn a_locked_keyring_is_said_to_be_locked_and_nobody_is_asked() {
    let Some(session) = session() else { return };
    let path = session.folder().join("secrets.json");
    let keyring = keyring(&session);
    keep_secret(&path, Some(&keyring), "a", "s3cret").unwrap();
    if !session.lock() {
        return;
    }
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Locked)));
    let deposit = keep_secret(&path, Some(&keyring), "b", "other").unwrap();
    assert_eq!((deposit.place, deposit.instead), (SecretPlace::File, Some(KeyringError::Locked)));
}

#[test]
fn a_bus_without_a_keyring_leaves_the_secret_in_the_file() {
    let Some(session) = KeyringSession::bare() else { return };
    let path = session.folder().join("secrets.json");
    let deposit = keep_secret(&path, Some(&keyring(&session)), "a", "s3cret").unwrap();
    assert_eq!(deposit.place, SecretPlace::File);
    assert!(deposit.instead.unwrap().to_string().contains("no keyring runs"));
}

#[test]
fn a_keyring_that_hangs_holds_nobody_up_for_long() {
    let Some(session) = session() else { return };
    let path = session.folder().join("secrets.json");
    keep_secret(&path, Some(&keyring(&session)), "a", "s3cret").unwrap();
    session.freeze();
    let keyring = keyring(&session).waiting(Duration::from_millis(100));
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Late)));
    let deposit = keep_secret(&path, Some(&keyring), "a", "anew").unwrap();
    assert_eq!((deposit.place, deposit.instead), (SecretPlace::File, Some(KeyringError::Late)));
}

/// A keyring of our own on a real bus, with one item in it.
fn prompting(habits: Habits) -> Option<(KeyringSession, SecretService, PathBuf)> {
    let session = KeyringSession::bare()?;
    let service = SecretService::serve(&session, Habits { locked: false, furnished: true, ..habits });
    let path = session.folder().join("secrets.json");
    let kept = keep_secret(&path, Some(&keyring(&session)), "a", "s3cret");
    assert!(kept.is_ok_and(|kept| kept.place == SecretPlace::Keyring));
    service.set(habits);
    Some((session, service, path))
}

const LOCKED: Habits = Habits { person: Person::Unlocks, locked: true, furnished: true };

/// The keyring where a person may be asked who takes long.
fn patient(session: &KeyringSession) -> Keyring {
    keyring(session).asking(Duration::from_mins(1))
}

#[test]
fn a_person_who_types_the_password_gets_at_what_is_locked() {
    for person in [Person::Unlocks, Person::UnlocksAtOnce] {
        let Some((session, service, path)) = prompting(Habits { person, ..LOCKED }) else { return };
        let (secrets, _) = Secrets::load(&path, Some(patient(&session)));
        assert_eq!(secrets.get("a").unwrap().as_deref(), Some("s3cret"), "{person:?}");
        assert_eq!(service.prompts(), Prompts { asked: 1, withdrawn: 0 });
        service.set(Habits { person, ..LOCKED });
        let deposit = keep_secret(&path, Some(&patient(&session)), "b", "new").unwrap();
        assert_eq!((deposit.place, deposit.instead), (SecretPlace::Keyring, None), "{person:?}");
        service.set(Habits { person, ..LOCKED });
        assert!(drop_secrets(&path, Some(&patient(&session)), &["a".to_owned()]).unwrap());
        assert_eq!(service.prompts(), Prompts { asked: 3, withdrawn: 0 });
        let (secrets, _) = Secrets::load(&path, Some(patient(&session)));
        assert_eq!((secrets.place("a"), secrets.get("b").unwrap().as_deref()), (None, Some("new")));
    }
}

#[test]
fn a_question_that_is_dismissed_leaves_the_keyring_locked() {
    let habits = Habits { person: Person::Dismisses, ..LOCKED };
    let Some((session, service, path)) = prompting(habits) else { return };
    let (secrets, _) = Secrets::load(&path, Some(patient(&session)));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Locked)));
    let deposit = keep_secret(&path, Some(&patient(&session)), "b", "new").unwrap();
    assert_eq!((deposit.place, deposit.instead), (SecretPlace::File, Some(KeyringError::Locked)));
    assert_eq!(service.prompts(), Prompts { asked: 2, withdrawn: 0 });
}

#[test]
fn a_question_that_nobody_answers_is_taken_back_in_the_end() {
    let habits = Habits { person: Person::IsAway, ..LOCKED };
    let Some((session, service, path)) = prompting(habits) else { return };
    let keyring = keyring(&session).asking(Duration::from_millis(200));
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Late)));
    assert_eq!(service.prompts(), Prompts { asked: 1, withdrawn: 1 });
    let deposit = keep_secret(&path, Some(&keyring), "b", "new").unwrap();
    assert_eq!((deposit.place, deposit.instead), (SecretPlace::File, Some(KeyringError::Late)));
}

#[test]
fn where_nobody_is_there_nobody_is_asked() {
    let Some((session, service, path)) = prompting(LOCKED) else { return };
    let (secrets, _) = Secrets::load(&path, Some(keyring(&session)));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Locked)));
    assert_eq!(service.prompts(), Prompts::default());
}

#[test]
fn a_keyring_without_a_collection_leaves_the_secret_in_the_file() {
    let habits = Habits { furnished: false, locked: false, ..LOCKED };
    let Some((session, service, path)) = prompting(habits) else { return };
    let deposit = keep_secret(&path, Some(&patient(&session)), "b", "new").unwrap();
    assert_eq!(deposit.place, SecretPlace::File);
    assert!(deposit.instead.unwrap().to_string().contains("there is no default keyring yet"));
    let (secrets, _) = Secrets::load(&path, Some(patient(&session)));
    assert_eq!(secrets.get("a").unwrap().as_deref(), Some("s3cret"), "what is there stays readable");
    assert_eq!(service.prompts(), Prompts::default());
}
