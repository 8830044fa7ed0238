//! The decisions of hooks, and how they merge into one verdict.
//!
//! Verdicts form a monoid: [`Verdict::default`] changes nothing, and [`Verdict::then`] is associative. On `flow` it is
//! also commutative and idempotent, so a later hook can never soften an earlier one.

use serde_json::{Map, Value};

/// What happens to the operation, ordered by strength: merging keeps the strongest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flow {
    /// No decision: the host does what it would do without hooks.
    #[default]
    NoOpinion,
    /// No person need be asked again.
    Allow,
    /// A person decides; without a person, it is a refusal.
    Ask,
    /// The operation does not happen.
    Block,
    /// The whole turn ends.
    Halt,
}

impl Flow {
    /// Every flow, weakest first.
    pub const ALL: [Flow; 5] = [Flow::NoOpinion, Flow::Allow, Flow::Ask, Flow::Block, Flow::Halt];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Flow::NoOpinion => "no_opinion",
            Flow::Allow => "allow",
            Flow::Ask => "ask",
            Flow::Block => "block",
            Flow::Halt => "halt",
        }
    }

    /// The flow with this name.
    pub fn from_name(name: &str) -> Option<Flow> {
        Flow::ALL.into_iter().find(|flow| flow.name() == name)
    }

    /// Whether the operation goes on without asking a person.
    pub fn continues(self) -> bool {
        self < Flow::Ask
    }

    /// Whether this is an outright refusal.
    pub fn refuses(self) -> bool {
        self >= Flow::Block
    }
}

/// The decision of one hook, or of all hooks of an event together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What happens to the operation.
    pub flow: Flow,
    /// Why it does not simply continue.
    pub reasons: Vec<String>,
    /// Messages for the conversation.
    pub system_messages: Vec<String>,
    /// Messages for the person.
    pub messages: Vec<String>,
    /// Context added for the model.
    pub context: Vec<String>,
    /// Argument changes, which replace the tool's own, key by key.
    pub patch: Map<String, Value>,
    /// A result that replaces the tool's.
    pub result: Option<Value>,
    /// The tools to keep on offer.
    pub tools: Option<Vec<String>>,
    /// Prompts to send to the agent.
    pub prompts: Vec<String>,
    /// Data for later hooks of the same event.
    pub data: Map<String, Value>,
    /// Data for the hook's report, without effect.
    pub metadata: Map<String, Value>,
}

impl Verdict {
    /// A refusal with its reason.
    pub fn block(reason: impl Into<String>) -> Verdict {
        Verdict { flow: Flow::Block, reasons: vec![reason.into()], ..Verdict::default() }
    }

    /// Leaves the decision to a person, and says why.
    pub fn ask(reason: impl Into<String>) -> Verdict {
        Verdict { flow: Flow::Ask, reasons: vec![reason.into()], ..Verdict::default() }
    }

    /// Adds a message to the conversation, without a decision.
    pub fn system_message(text: impl Into<String>) -> Verdict {
        Verdict { system_messages: vec![text.into()], ..Verdict::default() }
    }

    /// This verdict followed by a later one.
    ///
    /// ```
    /// use ollm_protocol::{Flow, Verdict};
    /// let total = Verdict::block("no").then(Verdict { flow: Flow::Allow, ..Verdict::default() });
    /// assert_eq!(total.flow, Flow::Block);
    /// ```
    #[must_use]
    pub fn then(mut self, later: Verdict) -> Verdict {
        self.flow = self.flow.max(later.flow);
        self.reasons.extend(later.reasons);
        self.system_messages.extend(later.system_messages);
        self.messages.extend(later.messages);
        self.context.extend(later.context);
        self.patch.extend(later.patch);
        self.result = later.result.or(self.result);
        self.tools = kept_by_both(self.tools, later.tools);
        self.prompts.extend(later.prompts);
        self.data.extend(later.data);
        self.metadata.extend(later.metadata);
        self
    }

    /// Every text in it.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Verdict { reasons, system_messages, messages, context, prompts, .. } = self;
        [reasons, system_messages, messages, context, prompts].into_iter().flatten()
    }

    /// The reasons as one text; `None` if there are none.
    pub fn reason(&self) -> Option<String> {
        joined(&self.reasons)
    }
}

/// Texts joined by newlines; `None` if there are none.
pub fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn kept_by_both(first: Option<Vec<String>>, second: Option<Vec<String>>) -> Option<Vec<String>> {
    match (first, second) {
        (Some(mut first), Some(second)) => {
            first.retain(|tool| second.contains(tool));
            Some(first)
        }
        (first, second) => first.or(second),
    }
}
