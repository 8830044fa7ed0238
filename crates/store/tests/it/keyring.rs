//! A real keyring, where one can be had; otherwise these tests say that they are skipped.

use std::fs;
use std::time::Duration;

use ollm_store::{Keyring, KeyringError, Place, SecretError, Secrets, drop_secrets, keep_secret};
use testkit::KeyringSession;

fn session() -> Option<KeyringSession> {
    KeyringSession::start(|session| {
        let probe = session.folder().join("probe.json");
        keep_secret(&probe, Some(&keyring(session)), "probe", "1").is_ok_and(|kept| kept.place == Place::Keyring)
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
    for value in ["s3cret", "", "zwölf\nLinien \u{1f511}", &"x".repeat(20_000)] {
        let deposit = keep_secret(&path, Some(&keyring), "a:b", value).unwrap();
        assert_eq!((deposit.place, deposit.instead), (Place::Keyring, None));
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
    assert_eq!((deposit.place, deposit.instead), (Place::File, Some(KeyringError::Locked)));
}

#[test]
fn a_bus_without_a_keyring_leaves_the_secret_in_the_file() {
    let Some(session) = KeyringSession::bare() else { return };
    let path = session.folder().join("secrets.json");
    let deposit = keep_secret(&path, Some(&keyring(&session)), "a", "s3cret").unwrap();
    assert_eq!(deposit.place, Place::File);
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
    assert_eq!((deposit.place, deposit.instead), (Place::File, Some(KeyringError::Late)));
}
