//! Decides whether an operation may continue: by the hooks' decision, and by the person's answer if one is needed.

use ollm_protocol::tool::{Effect, effects_of};
use ollm_protocol::{EventKind, Flow};
use serde_json::{Map, Value};

use super::Session;
use super::emit::one_name;
use crate::port::{Consent, Decision, Request};
use crate::settings::Approval;
use crate::tool::{Reach, find};

/// Why an operation may not continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The hook that refused; `None` if it was the person or the mode.
    pub(super) hook: Option<String>,
    pub(super) reason: String,
}

/// Why a person must be asked.
#[derive(Clone, Copy)]
pub(super) enum Asker<'a> {
    /// Hooks.
    Hooks(&'a Decision),
    /// The approval mode, because of what the tool can do.
    Mode(Reach),
}

/// What a person allows by `always`.
pub(super) struct Standing {
    pub(super) key: String,
    /// Its description for people.
    covers: String,
}

impl Standing {
    /// A shell command can do anything, so permission for one says nothing about the next.
    pub(super) fn of(operation: &str, details: &Map<String, Value>) -> Standing {
        let runs = |args: &Map<String, Value>| {
            effects_of(operation, args).iter().any(|found| found.sure && found.effect == Effect::RunsShell)
        };
        match details.get("args").filter(|args| args.as_object().is_some_and(runs)) {
            Some(args) => {
                let covers = "this very command, in this session".to_owned();
                Standing { key: format!("{operation} {args}"), covers }
            }
            None => Standing { key: operation.to_owned(), covers: format!("every `{operation}` call in this session") },
        }
    }
}

impl Refusal {
    fn by(decision: &Decision) -> Refusal {
        Refusal { hook: Some(decision.who().to_owned()), reason: decision.why() }
    }

    /// The name of the hook that refused, or `the person`, for people.
    pub(super) fn who(&self) -> &str {
        self.hook.as_deref().unwrap_or("the person")
    }
}

impl Session<'_> {
    /// Whether an event's operation continues. If hooks leave that to a person, the person is asked.
    pub(super) fn passes(&mut self, kind: EventKind, decision: &Decision) -> Result<(), Refusal> {
        self.settle(kind.name(), Map::new(), decision)
    }

    /// Like [`Session::passes`], for any operation.
    pub(super) fn settle(
        &mut self,
        operation: &str,
        details: Map<String, Value>,
        decision: &Decision,
    ) -> Result<(), Refusal> {
        match decision.flow {
            Flow::NoOpinion | Flow::Allow => Ok(()),
            Flow::Block | Flow::Halt => Err(Refusal::by(decision)),
            Flow::Ask => self.ask(operation, details, Asker::Hooks(decision)),
        }
    }

    /// Asks the person.
    pub(super) fn ask(
        &mut self,
        operation: &str,
        details: Map<String, Value>,
        asker: Asker<'_>,
    ) -> Result<(), Refusal> {
        let wish = match asker {
            Asker::Hooks(decision) => Some(decision),
            Asker::Mode(_) => None,
        };
        let requester = wish.map_or("agent", Decision::who);
        let fields: [(&str, Value); 3] =
            [("operation", operation.into()), ("details", details.clone().into()), ("requester", requester.into())];
        let decision = self.emit(EventKind::ApprovalRequest, fields);
        if decision.flow.refuses() {
            return Err(Refusal::by(&decision));
        }
        if decision.args.is_some() {
            let hook = decision.refused_by.clone();
            return Err(Refusal { hook, reason: "a hook wants it changed, which cannot be done any more".to_owned() });
        }
        // Allow skips the question of a mode, but not one that another hook requires.
        if decision.flow == Flow::Allow && wish.is_none() {
            return Ok(());
        }
        let standing = Standing::of(operation, &details);
        let covers = wish.is_none().then(|| standing.covers.clone());
        let details = for_people(details);
        let args = details.get("args").and_then(Value::as_object);
        let change = args.zip(find(operation)).and_then(|(args, tool)| tool.preview(args, &self.workspace));
        let request = Request {
            operation: operation.to_owned(),
            diff: change.map(|change| change.diff),
            details,
            reason: wish.map(Decision::why),
            standing: covers,
        };
        let answer = self.ports.approve.ask(&request);
        // A question that a hook requires is asked each time.
        if answer == Consent::Always && wish.is_none() {
            self.allowed.insert(standing.key);
        }
        let denied = match answer {
            Consent::Yes | Consent::Always => return Ok(()),
            Consent::No if self.cancel.is_set() => "interrupted before an answer came".to_owned(),
            Consent::No => {
                format!("the person said no{}", wish.map(|wish| format!(" ({})", wish.why())).unwrap_or_default())
            }
            Consent::Nobody => nobody(asker),
        };
        Err(Refusal { hook: wish.map(|wish| wish.who().to_owned()), reason: denied })
    }
}

/// The details for people: a file that hooks get under two names is shown once.
fn for_people(mut details: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(args)) = details.get_mut("args") {
        *args = one_name(args);
    }
    details
}

/// Why the operation stops if no person can be asked, and what to do.
fn nobody(asker: Asker<'_>) -> String {
    const UNASKED: &str = "it needs a person's approval, and no person can be asked here";
    match asker {
        Asker::Hooks(decision) => format!("{}; {UNASKED}", decision.why()),
        Asker::Mode(reach) => {
            let modes = Approval::ALL.iter().filter(|(_, mode)| !mode.asks(reach));
            let names: Vec<&str> = modes.map(|(name, _)| *name).collect();
            format!("{UNASKED}; the approval mode {} goes on without asking", names.join(" or "))
        }
    }
}
