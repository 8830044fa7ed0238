//! Whether something may go on: what hooks decided, and what a person says when one is to be asked.

use ollm_protocol::{EventKind, Flow};
use serde_json::{Map, Value};

use super::Session;
use crate::port::{Consent, Decision, Request};

/// Why something may not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The hook that stands in the way; nothing if it is the person or the mode.
    pub(super) hook: Option<String>,
    pub(super) reason: String,
}

impl Refusal {
    fn by(decision: &Decision) -> Refusal {
        Refusal { hook: Some(decision.who().to_owned()), reason: decision.why() }
    }

    /// Who it was, for people.
    pub(super) fn who(&self) -> &str {
        self.hook.as_deref().unwrap_or("the person")
    }
}

impl Session<'_> {
    /// Whether an event's operation goes on. Where hooks leave it to a person, the person is asked.
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
            Flow::Ask => self.ask(operation, details, Some(decision)),
        }
    }

    /// Asks the person; `wish` is the decision of hooks that want it, nothing if the mode wants it.
    pub(super) fn ask(
        &mut self,
        operation: &str,
        details: Map<String, Value>,
        wish: Option<&Decision>,
    ) -> Result<(), Refusal> {
        let requester = wish.map_or("agent", Decision::who);
        let fields: [(&str, Value); 3] =
            [("operation", operation.into()), ("details", details.clone().into()), ("requester", requester.into())];
        let decision = self.emit(EventKind::ApprovalRequest, fields);
        if decision.flow.refuses() {
            return Err(Refusal::by(&decision));
        }
        // Allow skips the question of a mode, but never lifts what another hook wants asked.
        if decision.flow == Flow::Allow && wish.is_none() {
            return Ok(());
        }
        let request = Request { operation: operation.to_owned(), details, reason: wish.map(Decision::why) };
        let answer = self.ports.approve.ask(&request);
        if answer == Consent::Always {
            self.allowed.insert(operation.to_owned());
        }
        match denied(answer, request.reason) {
            None => Ok(()),
            Some(reason) => Err(Refusal { hook: wish.map(|wish| wish.who().to_owned()), reason }),
        }
    }
}

/// Why an answer is none that lets things go on.
fn denied(answer: Consent, reason: Option<String>) -> Option<String> {
    match (answer, reason) {
        (Consent::Yes | Consent::Always, _) => None,
        (Consent::No, Some(reason)) => Some(format!("the person said no ({reason})")),
        (Consent::No, None) => Some("the person said no".to_owned()),
        (Consent::Nobody, Some(reason)) => {
            Some(format!("{reason}; it needs a person's approval, and nobody can be asked here"))
        }
        (Consent::Nobody, None) => {
            Some("it needs a person's approval, and nobody can be asked here; use --approval auto or yolo".to_owned())
        }
    }
}
