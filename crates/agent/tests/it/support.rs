//! A session in a folder of its own, whose hooks are a closure and whose model is written down.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ollm_agent::{
    Approval, Approve, Cancel, Clock, Consent, Decision, Events, HookNote, Limits, Message, Model, News, Opening,
    Ports, Replay, Request, SavedCounts, Session, Settings, ShellSettings, Show, StartError, ToolSource, Transcript,
    UserData,
};
use ollm_protocol::{Event, EventKind, Flow};
use proptest::prelude::ProptestConfig;
use serde_json::{Value, json};

/// As many cases as every property gets; what failed is shown and not kept in a file.
pub(crate) fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) }
}

type Decide = Box<dyn FnMut(&Event) -> Decision + Send>;

/// What a session is made of, and what was seen of it.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) settings: Settings,
    pub(crate) model: Option<Box<dyn Model>>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) transcript: Option<Transcript>,
    pub(crate) messages: Vec<Message>,
    pub(crate) counts: Option<SavedCounts>,
    pub(crate) cancel: Cancel,
    pub(crate) clock: Clock,
    decide: Option<Decide>,
    consents: Arc<Mutex<VecDeque<Consent>>>,
    pub(crate) questions: Arc<Mutex<Vec<Request>>>,
    pub(crate) trace: Arc<Mutex<Vec<Event>>>,
    pub(crate) news: Arc<Mutex<Vec<String>>>,
}

struct Hooks {
    decide: Decide,
    trace: Arc<Mutex<Vec<Event>>>,
}

impl Events for Hooks {
    fn dispatch(&mut self, event: &Event) -> Decision {
        self.trace.lock().unwrap().push(event.clone());
        (self.decide)(event)
    }
}

struct Person {
    consents: Arc<Mutex<VecDeque<Consent>>>,
    questions: Arc<Mutex<Vec<Request>>>,
}

impl Approve for Person {
    fn ask(&mut self, request: &Request) -> Consent {
        self.questions.lock().unwrap().push(request.clone());
        self.consents.lock().unwrap().pop_front().unwrap_or(Consent::Nobody)
    }
}

struct Screen(Arc<Mutex<Vec<String>>>);

impl Show for Screen {
    fn show(&mut self, news: &News<'_>) {
        let line = match news {
            News::Text(text) => format!("text {text}"),
            News::Thought(text) => format!("thought {text}"),
            News::Answered { content } => format!("answered {content}"),
            News::Calling { name, args, .. } => format!("calling {name} {}", Value::from((*args).clone())),
            News::Progress { name, text } => format!("progress {name} {text}"),
            News::Called { name, result, failed, diff, .. } => {
                let diff = diff.map(|diff| format!(" diff {diff}")).unwrap_or_default();
                format!("called {name} {} {result}{diff}", if *failed { "failed" } else { "ok" })
            }
            News::Rejected { name, args, result, .. } => {
                format!("rejected {name} {} {result}", Value::from(args.cloned()))
            }
            News::Refused { event, tool, hook, reason, .. } => {
                format!("refused {} {} {hook}: {reason}", event.name(), tool.unwrap_or("-"))
            }
            News::Note(said) => format!("note {}: {}", said.hook, said.text),
            News::System(text) => format!("system {text}"),
            News::Status(text) => format!("status {text}"),
            News::Error(text) => format!("error {text}"),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl World {
    /// A world whose model gives these answers.
    pub(crate) fn new(answers: &[Value]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("work");
        std::fs::create_dir(&cwd).unwrap();
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let settings = Settings {
            user_data: UserData::default(),
            mode: "run".to_owned(),
            session_id: "s1".to_owned(),
            user: Some("ada".to_owned()),
            allowed: Vec::new(),
            system_prompt: "be good".to_owned(),
            instructions: Vec::new(),
            temperature: Some(0.5),
            approval: Approval::Yolo,
            shell: ShellSettings::new(env, &folder.path().join("spill")),
            limits: Limits::default(),
            cwd,
        };
        World {
            folder,
            settings,
            model: Some(Box::new(replay(answers))),
            sources: Vec::new(),
            transcript: None,
            messages: Vec::new(),
            counts: None,
            cancel: Cancel::default(),
            clock: SystemTime::now,
            decide: None,
            consents: Arc::default(),
            questions: Arc::default(),
            trace: Arc::default(),
            news: Arc::default(),
        }
    }

    /// With hooks that decide like this.
    pub(crate) fn hooks(mut self, decide: impl FnMut(&Event) -> Decision + Send + 'static) -> World {
        self.decide = Some(Box::new(decide));
        self
    }

    /// With a hook for one kind of event.
    pub(crate) fn on(self, kind: EventKind, decision: Decision) -> World {
        self.hooks(move |event| if event.kind == kind { decision.clone() } else { Decision::default() })
    }

    pub(crate) fn approval(mut self, approval: Approval) -> World {
        self.settings.approval = approval;
        self
    }

    pub(crate) fn consents(self, consents: &[Consent]) -> World {
        self.consents.lock().unwrap().extend(consents);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> World {
        change(&mut self.settings.limits);
        self
    }

    pub(crate) fn try_start(&mut self) -> Result<Session<'static>, StartError> {
        let decide = self.decide.take().unwrap_or_else(|| Box::new(|_| Decision::default()));
        let ports = Ports {
            events: Box::new(Hooks { decide, trace: Arc::clone(&self.trace) }),
            approve: Box::new(Person { consents: Arc::clone(&self.consents), questions: Arc::clone(&self.questions) }),
            show: Box::new(Screen(Arc::clone(&self.news))),
            sources: std::mem::take(&mut self.sources),
            clock: self.clock,
        };
        Session::start(Opening {
            settings: self.settings.clone(),
            ports,
            model: self.model.take().unwrap(),
            transcript: self.transcript.take(),
            messages: std::mem::take(&mut self.messages),
            counts: self.counts.take(),
            cancel: self.cancel.clone(),
        })
    }

    pub(crate) fn start(&mut self) -> Session<'static> {
        self.try_start().unwrap()
    }

    /// The names of the events so far, without notifications.
    pub(crate) fn events(&self) -> Vec<&'static str> {
        let kinds = self.trace.lock().unwrap().iter().map(|event| event.kind).collect::<Vec<_>>();
        kinds.into_iter().filter(|kind| *kind != EventKind::Notification).map(EventKind::name).collect()
    }

    /// The data of all events of a kind.
    pub(crate) fn data(&self, kind: EventKind) -> Vec<Value> {
        self.trace
            .lock()
            .unwrap()
            .iter()
            .filter(|event| event.kind == kind)
            .map(|event| event.data.clone().into())
            .collect()
    }

    /// What was shown and begins like this.
    pub(crate) fn shown(&self, prefix: &str) -> Vec<String> {
        self.news.lock().unwrap().iter().filter(|line| line.starts_with(prefix)).cloned().collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.settings.cwd.join(name)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

pub(crate) fn replay(answers: &[Value]) -> Replay {
    let text: Vec<String> = answers.iter().map(Value::to_string).collect();
    Replay::parse(Path::new("talk.jsonl"), &text.join("\n")).unwrap()
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": text})
}

/// An answer with calls; their ids are counted from 1.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| json!({"id": (at + 1).to_string(), "name": name, "arguments": arguments}))
        .collect();
    json!({"tool_calls": calls})
}

/// The same answer, which insists on what it is asked.
pub(crate) fn expecting(mut answer: Value, expect: Value) -> Value {
    answer["expect"] = expect;
    answer
}

pub(crate) fn flow(flow: Flow, reason: &str) -> Decision {
    Decision { flow, ..Decision::block("guard", reason) }
}

pub(crate) fn said(text: &str) -> HookNote {
    HookNote { hook: "asker".to_owned(), text: text.to_owned() }
}
