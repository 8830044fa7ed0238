//! A small Secret Service on a real message bus. It does what a real keyring does only with a desktop around it: it
//! asks a person for the password. That person may dismiss the question or leave it.
//!
//! It is spelled anew from the specification and shares nothing with the client under test.

#![expect(clippy::expect_used, reason = "a test stops where its surroundings cannot be made")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::KeyringSession;

const NAME: &str = "org.freedesktop.secrets";
const COLLECTION: &str = "/org/freedesktop/secrets/collection/own";
const PROMPT: &str = "/org/freedesktop/secrets/prompt/1";
const NOTHING: &str = "/";

/// The behaviour of the person who is asked for the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// Types the password.
    Unlocks,
    /// Types the password so fast that the keyring reports it before it answers that it asks.
    UnlocksAtOnce,
    /// Closes the window.
    Dismisses,
    /// Is not there.
    IsAway,
}

/// The state of a keyring.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// The person who is asked.
    pub person: Person,
    /// Whether it is locked.
    pub locked: bool,
    /// Whether there is a collection for new items.
    pub furnished: bool,
}

/// A keyring that runs as long as its bus.
#[derive(Clone, Debug)]
pub struct SecretService {
    state: Arc<Mutex<State>>,
}

/// How often a person was disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Prompts {
    /// How often a person was asked for the password.
    pub asked: usize,
    /// How often a question was taken back.
    pub withdrawn: usize,
}

type Attributes = BTreeMap<String, String>;

#[derive(Debug)]
struct State {
    habits: Habits,
    items: Vec<(Attributes, Vec<u8>)>,
    prompts: Prompts,
}

impl SecretService {
    /// Serves on the bus of a session, until that ends.
    pub fn serve(session: &KeyringSession, habits: Habits) -> SecretService {
        let state = Arc::new(Mutex::new(State { habits, items: Vec::new(), prompts: Prompts::default() }));
        let mut line = Line::open(session.address());
        let mut body = Out::default();
        body.text(NAME);
        body.number(0);
        line.call("Hello", "", &[]);
        line.call("RequestName", "su", &body.0);
        let served = Arc::clone(&state);
        thread::spawn(move || while line.serve(&served).is_some() {});
        SecretService { state }
    }

    /// Changes the state of the keyring, or the person's behaviour.
    pub fn set(&self, habits: Habits) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).habits = habits;
    }

    /// The questions there were so far.
    pub fn prompts(&self) -> Prompts {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).prompts.clone()
    }
}

/// Answers to calls: a signature and a body, or the name of an error.
type Answer = Result<(&'static str, Vec<u8>), &'static str>;

const LOCKED: &str = "org.freedesktop.Secret.Error.IsLocked";

impl State {
    fn answer(&mut self, call: &Message) -> Answer {
        let mut body = In { bytes: &call.body, at: 0 };
        let mut out = Out::default();
        match call.member.as_str() {
            "OpenSession" => {
                out.signature("s");
                out.text("");
                out.text("/org/freedesktop/secrets/session/1");
                Ok(("vo", out.0))
            }
            "ReadAlias" => {
                out.text(if self.habits.furnished { COLLECTION } else { NOTHING });
                Ok(("o", out.0))
            }
            "SearchItems" => {
                let wanted = body.pairs();
                let found = self.items.iter().enumerate().filter(|(_, (attributes, _))| *attributes == wanted);
                let paths: Vec<String> = found.map(|(index, _)| format!("{COLLECTION}/{index}")).collect();
                let (open, locked) = if self.habits.locked { (vec![], paths) } else { (paths, vec![]) };
                out.paths(&open);
                out.paths(&locked);
                Ok(("aoao", out.0))
            }
            "Unlock" => {
                let objects = body.texts();
                let (open, prompt) = if self.habits.locked { (vec![], PROMPT) } else { (objects, NOTHING) };
                out.paths(&open);
                out.text(prompt);
                Ok(("aoo", out.0))
            }
            "Prompt" => {
                self.prompts.asked += 1;
                Ok(("", Vec::new()))
            }
            "Dismiss" => {
                self.prompts.withdrawn += 1;
                Ok(("", Vec::new()))
            }
            "CreateItem" | "GetSecret" | "Delete" if self.habits.locked => Err(LOCKED),
            "CreateItem" => {
                let (attributes, secret) = body.item();
                self.items.retain(|(known, _)| *known != attributes);
                self.items.push((attributes, secret));
                out.text(&format!("{COLLECTION}/{}", self.items.len() - 1));
                out.text(NOTHING);
                Ok(("oo", out.0))
            }
            "GetSecret" => {
                let secret = index(call).and_then(|index| self.items.get(index)).map(|(_, secret)| secret.clone());
                let Some(secret) = secret else { return Err("org.freedesktop.Secret.Error.NoSuchObject") };
                out.align(8);
                out.text("/org/freedesktop/secrets/session/1");
                out.data(&[]);
                out.data(&secret);
                out.text("text/plain");
                Ok(("(oayays)", out.0))
            }
            "Delete" => {
                if let Some(index) = index(call).filter(|index| *index < self.items.len()) {
                    self.items.remove(index);
                }
                out.text(NOTHING);
                Ok(("o", out.0))
            }
            _ => Err("org.freedesktop.DBus.Error.UnknownMethod"),
        }
    }

    /// The person's decision: whether the question is dismissed; `None` if they leave it open.
    fn decide(&mut self) -> Option<bool> {
        let dismissed = match self.habits.person {
            Person::Unlocks | Person::UnlocksAtOnce => false,
            Person::Dismisses => true,
            Person::IsAway => return None,
        };
        self.habits.locked = dismissed;
        Some(dismissed)
    }
}

/// Which item a call is about.
fn index(call: &Message) -> Option<usize> {
    call.path.rsplit('/').next()?.parse().ok()
}

/// The service's end of the bus.
struct Line {
    socket: BufReader<UnixStream>,
    serial: u32,
}

#[derive(Debug, Default)]
struct Message {
    kind: u8,
    serial: u32,
    path: String,
    member: String,
    sender: String,
    body: Vec<u8>,
}

impl Line {
    fn open(address: &str) -> Line {
        let path = address.split(',').find_map(|part| part.split_once("path=")).expect("a bus with a path").1;
        let mut socket = UnixStream::connect(path).expect("the bus takes us");
        // Without an identity, the one of the socket counts.
        socket.write_all(b"\0AUTH EXTERNAL\r\nDATA\r\n").expect("the bus listens");
        let mut socket = BufReader::new(socket);
        for _ in 0..2 {
            let mut line = String::new();
            socket.read_line(&mut line).expect("the bus answers");
        }
        socket.get_mut().write_all(b"BEGIN\r\n").expect("the bus listens");
        Line { socket, serial: 0 }
    }

    /// Calls the bus itself, and waits for the answer.
    fn call(&mut self, member: &str, signature: &str, body: &[u8]) {
        let bus = "org.freedesktop.DBus";
        let fields = [(1, "o", "/org/freedesktop/DBus"), (2, "s", bus), (3, "s", member), (6, "s", bus)];
        self.send(1, &fields, None, signature, body).expect("the bus listens");
        while self.next().expect("the bus answers").kind != 2 {}
    }

    /// Answers one call; none when the bus is gone.
    fn serve(&mut self, state: &Mutex<State>) -> Option<()> {
        let call = self.next()?;
        if call.kind != 1 {
            return Some(());
        }
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = state.answer(&call);
        let asks = call.member == "Prompt";
        let early = state.habits.person == Person::UnlocksAtOnce;
        let decided = if asks { state.decide() } else { None };
        drop(state);
        if let Some(dismissed) = decided.filter(|_| early) {
            self.completed(dismissed)?;
        }
        let to = [(6, "s", call.sender.as_str())];
        match answer {
            Ok((signature, body)) => self.send(2, &to, Some(call.serial), signature, &body)?,
            Err(name) => self.send(3, &[to[0], (4, "s", name)], Some(call.serial), "", &[])?,
        }
        match decided.filter(|_| !early) {
            Some(dismissed) => self.completed(dismissed),
            None => Some(()),
        }
    }

    /// Tells all clients that the person has been asked.
    fn completed(&mut self, dismissed: bool) -> Option<()> {
        let mut body = Out::default();
        body.number(u32::from(dismissed));
        body.signature("ao");
        body.paths(&[]);
        let fields = [(1, "o", PROMPT), (2, "s", "org.freedesktop.Secret.Prompt"), (3, "s", "Completed")];
        self.send(4, &fields, None, "bv", &body.0)
    }

    fn send(
        &mut self,
        kind: u8,
        fields: &[(u8, &str, &str)],
        answers: Option<u32>,
        signature: &str,
        body: &[u8],
    ) -> Option<()> {
        self.serial += 1;
        let mut out = Out(vec![b'l', kind, 0, 1]);
        out.number(u32::try_from(body.len()).ok()?);
        out.number(self.serial);
        out.list(8, |out| {
            for (code, form, value) in fields {
                out.align(8);
                out.0.push(*code);
                out.signature(form);
                out.text(value);
            }
            if let Some(serial) = answers {
                out.align(8);
                out.0.push(5);
                out.signature("u");
                out.number(serial);
            }
            if !signature.is_empty() {
                out.align(8);
                out.0.push(8);
                out.signature("g");
                out.signature(signature);
            }
        });
        out.align(8);
        out.0.extend(body);
        self.socket.get_mut().write_all(&out.0).ok()
    }

    fn next(&mut self) -> Option<Message> {
        let mut bytes = vec![0; 16];
        self.socket.read_exact(&mut bytes).ok()?;
        let number = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().unwrap_or_default())) as usize
        };
        let (body, serial, fields) = (number(&bytes, 4), number(&bytes, 8), number(&bytes, 12));
        let header = (16 + fields).next_multiple_of(8);
        bytes.resize(header + body, 0);
        self.socket.read_exact(bytes.get_mut(16..)?).ok()?;
        let kind = bytes.get(1).copied()?;
        let mut message = Message { kind, serial: u32::try_from(serial).ok()?, ..Message::default() };
        message.body = bytes.get(header..)?.to_vec();
        let mut reader = In { bytes: &bytes, at: 16 };
        while reader.at < 16 + fields {
            reader.align(8);
            let code = reader.byte();
            match (code, reader.signature().as_str()) {
                (1, _) => message.path = reader.text(),
                (3, _) => message.member = reader.text(),
                (7, _) => message.sender = reader.text(),
                (_, "g") => drop(reader.signature()),
                (_, "u") => drop(reader.number()),
                _ => drop(reader.text()),
            }
        }
        Some(message)
    }
}

/// Values put one after another.
#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, value: u32) {
        self.align(4);
        self.0.extend(value.to_le_bytes());
    }

    fn data(&mut self, data: &[u8]) {
        self.number(u32::try_from(data.len()).expect("a short text"));
        self.0.extend(data);
    }

    fn text(&mut self, text: &str) {
        self.data(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, signature: &str) {
        self.0.push(u8::try_from(signature.len()).expect("a short signature"));
        self.0.extend(signature.bytes());
        self.0.push(0);
    }

    fn paths(&mut self, paths: &[String]) {
        self.list(4, |out| paths.iter().for_each(|path| out.text(path)));
    }

    fn list(&mut self, to: usize, fill: impl FnOnce(&mut Out)) {
        self.number(0);
        let place = self.0.len() - 4;
        self.align(to);
        let start = self.0.len();
        fill(self);
        let length = u32::try_from(self.0.len() - start).expect("a short list").to_le_bytes();
        self.0.splice(place..place + 4, length);
    }
}

/// Values taken one after another; what is not there is empty.
struct In<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl In<'_> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let taken = self.bytes.get(self.at..self.at + length).unwrap_or_default().to_vec();
        self.at += length;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn number(&mut self) -> usize {
        self.align(4);
        u32::from_le_bytes(self.take(4).try_into().unwrap_or_default()) as usize
    }

    fn data(&mut self) -> Vec<u8> {
        let length = self.number();
        self.take(length)
    }

    fn text(&mut self) -> String {
        let text = String::from_utf8(self.data()).unwrap_or_default();
        self.byte();
        text
    }

    fn signature(&mut self) -> String {
        let length = usize::from(self.byte());
        let text = String::from_utf8(self.take(length)).unwrap_or_default();
        self.byte();
        text
    }

    fn texts(&mut self) -> Vec<String> {
        let length = self.number();
        let end = self.at + length;
        let mut texts = Vec::new();
        while self.at < end {
            texts.push(self.text());
        }
        texts
    }

    fn pairs(&mut self) -> Attributes {
        let length = self.number();
        self.align(8);
        let end = self.at + length;
        let mut pairs = Attributes::new();
        while self.at < end {
            self.align(8);
            pairs.insert(self.text(), self.text());
        }
        pairs
    }

    /// The arguments of `CreateItem`: properties, a secret, and whether another one is replaced.
    fn item(&mut self) -> (Attributes, Vec<u8>) {
        let length = self.number();
        self.align(8);
        let end = self.at + length;
        let mut attributes = Attributes::new();
        while self.at < end {
            self.align(8);
            let key = self.text();
            match self.signature().as_str() {
                "a{ss}" if key == "org.freedesktop.Secret.Item.Attributes" => attributes = self.pairs(),
                _ => drop(self.text()),
            }
        }
        self.align(8);
        self.text();
        self.data();
        (attributes, self.data())
    }
}
