//! The Secret Service: the protocol of keyrings on free desktops, over the user's message bus.
//!
//! Secrets pass unencrypted through a socket between two processes of one user. A process that could read the socket
//! could also ask the keyring itself.

use std::time::Duration;

use super::bus::{Bus, CallError};
use super::wire::{Call, WireReader, Writer};
use super::{Entry, Keyring, KeyringError};

const SERVICE: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
/// The path that means "no object".
const NOTHING: &str = "/";

pub(super) fn get(keyring: &Keyring, entry: &Entry<'_>) -> Result<Option<String>, KeyringError> {
    let mut service = Service::open(keyring)?;
    let Some(item) = service.find(entry)?.into_iter().next() else { return Ok(None) };
    let mut body = Writer::default();
    body.text(&service.session.clone());
    let answer = service.call(&item, "org.freedesktop.Secret.Item", "GetSecret", "o", &body)?;
    let secret = secret(&answer).ok_or_else(odd)?;
    String::from_utf8(secret).map(Some).map_err(|_| odd())
}

pub(super) fn set(keyring: &Keyring, entry: &Entry<'_>, value: &str) -> Result<(), KeyringError> {
    let mut service = Service::open(keyring)?;
    let collection = service.collection()?;
    service.unlock(&collection)?;
    let mut body = Writer::default();
    body.list(8, |out| {
        out.align(8);
        out.text("org.freedesktop.Secret.Item.Label");
        out.signature("s");
        out.text(&format!("ollm: {}", entry.name));
        out.align(8);
        out.text("org.freedesktop.Secret.Item.Attributes");
        out.signature("a{ss}");
        out.pairs(&entry.attributes());
    });
    body.align(8);
    body.text(&service.session);
    body.data(&[]);
    body.data(value.as_bytes());
    body.text("text/plain; charset=utf8");
    // The flag `replace`: an existing secret of this name is replaced.
    body.number(1);
    let create = "org.freedesktop.Secret.Collection";
    let answer = service.call(&collection, create, "CreateItem", "a{sv}(oayays)b", &body)?;
    let mut reader = WireReader::new(&answer);
    let (_item, prompt) = reader.text().zip(reader.text()).ok_or_else(odd)?;
    service.ask(&prompt)
}

pub(super) fn remove(keyring: &Keyring, entry: &Entry<'_>) -> Result<(), KeyringError> {
    let mut service = Service::open(keyring)?;
    for item in service.find(entry)? {
        let answer = service.call(&item, "org.freedesktop.Secret.Item", "Delete", "", &Writer::default())?;
        let prompt = WireReader::new(&answer).text().ok_or_else(odd)?;
        service.ask(&prompt)?;
    }
    Ok(())
}

/// A session with the keyring.
struct Service {
    bus: Bus,
    session: String,
    /// How long a request may take that asks no person.
    wait: Duration,
    /// How long a person may take to unlock the keyring; with `None` no person is asked.
    person: Option<Duration>,
}

impl Service {
    fn open(keyring: &Keyring) -> Result<Service, KeyringError> {
        let bus = Bus::open(&keyring.address, keyring.wait)?;
        let mut service = Service { bus, session: String::new(), wait: keyring.wait, person: keyring.person };
        let mut body = Writer::default();
        body.text("plain");
        body.signature("s");
        body.text("");
        let answer = service.call(ROOT, "org.freedesktop.Secret.Service", "OpenSession", "sv", &body)?;
        let mut reader = WireReader::new(&answer);
        // In the `plain` mode, the output is an empty text in a variant.
        let output = reader.signature().filter(|kind| kind == "s").and_then(|_| reader.text());
        service.session = output.and_then(|_| reader.text()).ok_or_else(odd)?;
        Ok(service)
    }

    /// Finds the items of this entry, and unlocks them.
    fn find(&mut self, entry: &Entry<'_>) -> Result<Vec<String>, KeyringError> {
        let mut body = Writer::default();
        body.pairs(&entry.attributes());
        let answer = self.call(ROOT, "org.freedesktop.Secret.Service", "SearchItems", "a{ss}", &body)?;
        let mut reader = WireReader::new(&answer);
        let (mut open, locked) = reader.texts().zip(reader.texts()).ok_or_else(odd)?;
        for item in locked {
            self.unlock(&item)?;
            open.push(item);
        }
        Ok(open)
    }

    /// The collection that new items are stored in.
    fn collection(&mut self) -> Result<String, KeyringError> {
        let mut body = Writer::default();
        body.text("default");
        let answer = self.call(ROOT, "org.freedesktop.Secret.Service", "ReadAlias", "s", &body)?;
        let path = WireReader::new(&answer).text().ok_or_else(odd)?;
        if path == NOTHING {
            return Err(KeyringError::Unreachable("there is no default keyring yet".to_owned()));
        }
        Ok(path)
    }

    fn unlock(&mut self, object: &str) -> Result<(), KeyringError> {
        let mut body = Writer::default();
        body.list(4, |out| out.text(object));
        let answer = self.call(ROOT, "org.freedesktop.Secret.Service", "Unlock", "ao", &body)?;
        let mut reader = WireReader::new(&answer);
        let (_, prompt) = reader.texts().zip(reader.text()).ok_or_else(odd)?;
        self.ask(&prompt)
    }

    /// Lets the keyring ask the person for its password.
    fn ask(&mut self, prompt: &str) -> Result<(), KeyringError> {
        if prompt == NOTHING {
            return Ok(());
        }
        let person = self.person.ok_or(KeyringError::Locked)?;
        self.bus.allow(person);
        self.listen(prompt)?;
        let mut body = Writer::default();
        body.text("");
        self.call(prompt, "org.freedesktop.Secret.Prompt", "Prompt", "s", &body)?;
        let answer = self.bus.signal(prompt, "Completed").map_err(said);
        // The steps from here on need no person.
        self.bus.allow(self.wait);
        if answer == Err(KeyringError::Late) {
            // Otherwise the person could find the question later and answer it in vain.
            let _ = self.call(prompt, "org.freedesktop.Secret.Prompt", "Dismiss", "", &Writer::default());
        }
        let dismissed = WireReader::new(&answer?).flag().ok_or_else(odd)?;
        if dismissed { Err(KeyringError::Locked) } else { Ok(()) }
    }

    fn listen(&mut self, path: &str) -> Result<(), KeyringError> {
        let mut body = Writer::default();
        body.text(&format!("type='signal',sender='{SERVICE}',path='{path}'"));
        let call = Call {
            to: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "AddMatch",
            signature: "s",
        };
        self.bus.call(&call, &body.bytes).map(drop).map_err(said)
    }

    fn call(
        &mut self,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &Writer,
    ) -> Result<Vec<u8>, KeyringError> {
        self.bus.call(&Call { to: SERVICE, path, interface, member, signature }, &body.bytes).map_err(said)
    }
}

/// The value in the answer to `GetSecret`: session, parameters, value, type.
fn secret(answer: &[u8]) -> Option<Vec<u8>> {
    let mut reader = WireReader::new(answer);
    reader.text()?;
    reader.data()?;
    reader.data().map(<[u8]>::to_vec)
}

fn said(error: CallError) -> KeyringError {
    match error {
        CallError::Broken(error) => error,
        CallError::Refused(name) if name.ends_with(".IsLocked") => KeyringError::Locked,
        CallError::Refused(name) if name.ends_with(".ServiceUnknown") => {
            KeyringError::Unreachable("no keyring runs in this session".to_owned())
        }
        CallError::Refused(name) => KeyringError::Unreachable(format!("it says {name}")),
    }
}

fn odd() -> KeyringError {
    KeyringError::Unreachable("it answers in a form that is not the Secret Service's".to_owned())
}
