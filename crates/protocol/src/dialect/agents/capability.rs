//! What an agent can be told, and in which form.

/// What an agent can be told at one event, and in which form.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// That it need not ask a person.
    pub allow: Way,
    /// That a person must be asked.
    pub ask: Way,
    /// A refusal. After the fact, it tells the model that it did wrong; at the end of a turn, that it must go on.
    pub block: Way,
    /// That the turn ends.
    pub halt: Way,
    /// Other arguments.
    pub modify: Way,
    /// Context for the model.
    pub context: Way,
    /// Another result.
    pub result: Way,
    /// The tools that stay on offer.
    pub tools: Way,
    /// A message for the person.
    pub message: Way,
}

/// The form of a message to an agent.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// The agent cannot be told.
    No,
    /// Fields of a JSON object on standard output. The first field is the one that decides.
    Json(Form),
    /// Exit status 2, with the reason on standard error.
    Status,
    /// Plain text on standard output.
    Text,
}

/// Fields of an answer, each with its path.
pub type Form = &'static [(&'static str, Part)];

/// The value of a field in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// This word.
    Word(&'static str),
    /// This truth value.
    Flag(bool),
    /// The agent's name of the event.
    Event,
    /// The reason.
    Reason,
    /// Context or a message.
    Text,
    /// The complete arguments.
    Args,
    /// The result.
    Result,
    /// The result as text.
    ResultText,
    /// A list of tools.
    Tools,
    /// Whether any tools are left.
    ToolMode,
}

impl Way {
    /// Whether the agent can be told this at all.
    pub fn is_possible(self) -> bool {
        !matches!(self, Way::No)
    }
}

impl Capabilities {
    /// The agent cannot be told anything; it only informs us.
    pub const NONE: Capabilities = Capabilities {
        allow: Way::No,
        ask: Way::No,
        block: Way::No,
        halt: Way::No,
        modify: Way::No,
        context: Way::No,
        result: Way::No,
        tools: Way::No,
        message: Way::No,
    };

    /// Every capability by its name.
    pub fn all(&self) -> [(&'static str, Way); 9] {
        [
            ("allow", self.allow),
            ("ask", self.ask),
            ("block", self.block),
            ("halt", self.halt),
            ("modify", self.modify),
            ("context", self.context),
            ("result", self.result),
            ("tools", self.tools),
            ("message", self.message),
        ]
    }
}
