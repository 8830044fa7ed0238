//! A real keyring on a message bus of its own; the user's is never asked.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where its surroundings cannot be made, and says so where they are not installed"
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a daemon may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A bus, with or without a keyring on it, in a home of its own; both end with it.
#[derive(Debug)]
pub struct KeyringSession {
    folder: tempfile::TempDir,
    address: String,
    bus: Child,
    keyring: Option<Child>,
}

impl Drop for KeyringSession {
    fn drop(&mut self) {
        for child in self.keyring.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl KeyringSession {
    /// A bus without a keyring. `None` if `dbus-daemon` is not installed; the test then says that it is skipped.
    pub fn bare() -> Option<KeyringSession> {
        let folder = tempfile::tempdir().expect("a folder for the session");
        // The bus starts no program by itself.
        let config = folder.path().join("bus.conf");
        let text = format!(
            r#"<busconfig><type>session</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>"#,
            folder.path().display()
        );
        fs::write(&config, text).expect("the configuration of the bus");
        let mut command = own("dbus-daemon", folder.path());
        let config = format!("--config-file={}", config.display());
        let command = command.args([&config, "--nofork", "--print-address=1"]).stdout(Stdio::piped());
        let Some(mut bus) = started(command.stderr(Stdio::null())) else {
            eprintln!("skipped: dbus-daemon is not installed");
            return None;
        };
        let mut address = String::new();
        if let Some(stdout) = bus.stdout.take() {
            BufReader::new(stdout).read_line(&mut address).expect("the address of the bus");
        }
        Some(KeyringSession { folder, address: address.trim().to_owned(), bus, keyring: None })
    }

    /// A bus with an unlocked keyring, once `takes` says that it stores something. `None` if none is installed.
    pub fn start(takes: impl Fn(&KeyringSession) -> bool) -> Option<KeyringSession> {
        let mut session = KeyringSession::bare()?;
        let mut command = own("gnome-keyring-daemon", session.folder.path());
        let command = command.env("DBUS_SESSION_BUS_ADDRESS", &session.address);
        let command = command.args(["--foreground", "--unlock", "--components=secrets"]);
        let Some(mut keyring) = started(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()))
        else {
            eprintln!("skipped: gnome-keyring-daemon is not installed");
            return None;
        };
        if let Some(mut stdin) = keyring.stdin.take() {
            stdin.write_all(b"password").expect("the password of the keyring");
        }
        session.keyring = Some(keyring);
        let deadline = Instant::now() + PATIENCE;
        while !takes(&session) {
            assert!(Instant::now() < deadline, "the keyring never came");
            std::thread::yield_now();
        }
        Some(session)
    }

    /// The address of the bus.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A folder that is removed with the bus.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Locks the keyring; false where `dbus-send` is not installed.
    pub fn lock(&self) -> bool {
        let mut command = own("dbus-send", self.folder.path());
        command.args(["--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets"]);
        command.args(["org.freedesktop.Secret.Service.Lock"]);
        command.args(["array:objpath:/org/freedesktop/secrets/collection/login"]);
        let locked = command.env("DBUS_SESSION_BUS_ADDRESS", &self.address).stdout(Stdio::null()).status();
        if locked.is_err() {
            eprintln!("skipped: dbus-send is not installed");
        }
        locked.is_ok_and(|status| status.success())
    }

    /// Stops all processes of the bus: they accept messages, and never answer.
    pub fn freeze(&self) {
        for child in self.keyring.iter().chain([&self.bus]) {
            let stopped = Command::new("kill").args(["-STOP", &child.id().to_string()]).status();
            assert!(stopped.is_ok_and(|status| status.success()), "a signal can be sent");
        }
    }
}

fn started(command: &mut Command) -> Option<Child> {
    command.spawn().ok()
}

/// A command whose only home is this folder.
fn own(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", folder).env("XDG_RUNTIME_DIR", folder).env("XDG_DATA_HOME", folder);
    command
}
