//! A real keyring on a message bus of its own; the user's is never asked.
//!
//! Where `dbus-daemon` and `gnome-keyring-daemon` are not installed, these tests say so and do nothing.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ollm_store::{Keyring, KeyringError, Place, SecretError, Secrets, drop_secrets, keep_secret};

/// How long a daemon may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A bus with a keyring on it, in a home of its own.
struct Session {
    folder: tempfile::TempDir,
    address: String,
    bus: Child,
    keyring: Option<Child>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in self.keyring.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Session {
    /// A bus without a keyring; none where it cannot be had.
    fn bare() -> Option<Session> {
        let folder = tempfile::tempdir().unwrap();
        // Nothing on this bus is started by itself.
        let config = folder.path().join("bus.conf");
        let text = format!(
            r#"<busconfig><type>session</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>"#,
            folder.path().display()
        );
        fs::write(&config, text).unwrap();
        let mut command = own(Command::new("dbus-daemon"), folder.path());
        let config = format!("--config-file={}", config.display());
        let bus = command.args([&config, "--nofork", "--print-address=1"]).stdout(Stdio::piped()).spawn();
        let Ok(mut bus) = bus else {
            eprintln!("skipped: dbus-daemon is not installed");
            return None;
        };
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Session { folder, address: address.trim().to_owned(), bus, keyring: None })
    }

    /// A bus with a keyring that is unlocked.
    fn start() -> Option<Session> {
        let mut session = Session::bare()?;
        let mut command = own(Command::new("gnome-keyring-daemon"), session.folder.path());
        let command = command.env("DBUS_SESSION_BUS_ADDRESS", &session.address);
        let command = command.args(["--foreground", "--unlock", "--components=secrets"]);
        let Ok(mut keyring) = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("skipped: gnome-keyring-daemon is not installed");
            return None;
        };
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        session.keyring = Some(keyring);
        session.wait();
        Some(session)
    }

    /// Waits until the keyring takes something.
    fn wait(&self) {
        let probe = self.folder.path().join("probe.json");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let deposit = keep_secret(&probe, Some(&self.keyring()), "probe", "1").unwrap();
            match deposit.instead {
                None => return,
                Some(why) => assert!(Instant::now() < deadline, "the keyring never came: {why}"),
            }
            std::thread::yield_now();
        }
    }

    fn keyring(&self) -> Keyring {
        Keyring::at(&self.address).waiting(PATIENCE)
    }
}

/// A command that knows no other home than this.
fn own(mut command: Command, folder: &Path) -> Command {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", folder).env("XDG_RUNTIME_DIR", folder).env("XDG_DATA_HOME", folder);
    command
}

#[test]
fn a_keyring_keeps_a_secret_gives_it_back_and_lets_it_go() {
    let Some(session) = Session::start() else { return };
    let path = session.folder.path().join("secrets.json");
    let keyring = session.keyring();
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
    let other = session.folder.path().join("other.json");
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
    let Some(session) = Session::start() else { return };
    let path = session.folder.path().join("secrets.json");
    let keyring = session.keyring();
    keep_secret(&path, Some(&keyring), "a", "s3cret").unwrap();
    let mut lock = own(Command::new("dbus-send"), session.folder.path());
    lock.args(["--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets"]);
    lock.args(["org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login"]);
    let locked = lock.env("DBUS_SESSION_BUS_ADDRESS", &session.address).output();
    let Ok(locked) = locked else {
        eprintln!("skipped: dbus-send is not installed");
        return;
    };
    assert!(locked.status.success(), "{}", String::from_utf8_lossy(&locked.stderr));
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Locked)));
    let deposit = keep_secret(&path, Some(&keyring), "b", "other").unwrap();
    assert_eq!((deposit.place, deposit.instead), (Place::File, Some(KeyringError::Locked)));
}

#[test]
fn a_bus_without_a_keyring_leaves_the_secret_in_the_file() {
    let Some(session) = Session::bare() else { return };
    let path = session.folder.path().join("secrets.json");
    let deposit = keep_secret(&path, Some(&session.keyring()), "a", "s3cret").unwrap();
    assert_eq!(deposit.place, Place::File);
    assert!(deposit.instead.unwrap().to_string().contains("no keyring runs"));
}

#[test]
fn a_keyring_that_hangs_holds_nobody_up_for_long() {
    let Some(session) = Session::start() else { return };
    let path = session.folder.path().join("secrets.json");
    keep_secret(&path, Some(&session.keyring()), "a", "s3cret").unwrap();
    // Both are stopped: the queue takes what we say, and nothing ever comes back.
    for child in session.keyring.iter().chain([&session.bus]) {
        let stop = Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap();
        assert!(stop.success());
    }
    let keyring = session.keyring().waiting(Duration::from_millis(100));
    let (secrets, _) = Secrets::load(&path, Some(keyring.clone()));
    assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Late)));
    let deposit = keep_secret(&path, Some(&keyring), "a", "anew").unwrap();
    assert_eq!((deposit.place, deposit.instead), (Place::File, Some(KeyringError::Late)));
}
