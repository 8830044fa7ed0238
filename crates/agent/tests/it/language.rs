//! The order of events as a language, and a reader that accepts nothing else.

use ollm_agent::{Approval, Consent};
use ollm_protocol::{EventKind, Flow};

/// An event as far as the order is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: EventKind,
    pub(crate) flow: Flow,
    /// Whether it tells of a failure: nothing is left to decide then.
    pub(crate) failed: bool,
    /// Whether the model wants tools called: without that there is nothing to go on with.
    pub(crate) more: bool,
    /// The tool and the call, where there is one.
    pub(crate) call: Option<(String, String)>,
}

/// What decides whether a call runs, beside the hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) approval: Approval,
    pub(crate) consent: Consent,
}

/// Reads a whole trace; says where it leaves the language.
pub(crate) fn accept(trace: &[Token], rules: Rules) -> Result<(), String> {
    let tokens: Vec<Token> = trace
        .iter()
        .filter(|token| !matches!(token.kind, EventKind::Notification | EventKind::Error))
        .cloned()
        .collect();
    let mut reader = Reader { tokens, at: 0, rules };
    reader.session().map_err(|why| {
        let kinds: Vec<_> = reader.tokens.iter().map(|token| (token.kind.name(), token.flow)).collect();
        format!("at {}: {why}\n{kinds:?}", reader.at)
    })
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    rules: Rules,
}

impl Reader {
    fn session(&mut self) -> Result<(), String> {
        if self.passes(EventKind::SessionStart)? {
            while let Some(kind) = self.next() {
                match kind {
                    EventKind::BeforeAgent => self.turn()?,
                    EventKind::UserTriggered | EventKind::Custom => self.at += 1,
                    _ => break,
                }
            }
            self.take(EventKind::SessionEnd)?;
        }
        match self.next() {
            None => Ok(()),
            Some(kind) => Err(format!("{} after the end", kind.name())),
        }
    }

    fn turn(&mut self) -> Result<(), String> {
        if !self.passes(EventKind::BeforeAgent)? {
            return Ok(());
        }
        loop {
            let mut more = true;
            while more && matches!(self.next(), Some(EventKind::ContextOverflow | EventKind::BeforeToolSelection)) {
                more = self.step()?;
            }
            let stops = self.stops()?;
            let goes_on = matches!(self.next(), Some(EventKind::ContextOverflow | EventKind::BeforeToolSelection));
            match (stops, goes_on) {
                (true, true) => return Err("the turn goes on although not asked for".to_owned()),
                (_, false) => return Ok(()),
                (false, true) => {}
            }
        }
    }

    /// One call of the model and what it wants; says whether there may be another one.
    fn step(&mut self) -> Result<bool, String> {
        if self.next() == Some(EventKind::ContextOverflow) {
            self.at += 1;
            if self.passes(EventKind::PreCompress)? {
                self.take(EventKind::PostCompress)?;
            }
        }
        if !self.passes(EventKind::BeforeToolSelection)? || !self.passes(EventKind::BeforeModel)? {
            return Ok(false);
        }
        let answered = self.tokens.get(self.at).is_some_and(|token| !token.failed);
        if !answered {
            self.take(EventKind::AfterModel)?;
            return Ok(self.shortens());
        }
        let more = self.tokens.get(self.at).is_some_and(|token| token.more);
        if !self.passes(EventKind::AfterModel)? {
            return Ok(false);
        }
        if !more {
            return Ok(self.shortens());
        }
        while self.next() == Some(EventKind::BeforeTool) {
            self.call()?;
        }
        Ok(true)
    }

    /// Whether the same question follows in a shorter conversation, because the last one was too long.
    fn shortens(&self) -> bool {
        self.next() == Some(EventKind::ContextOverflow)
    }

    fn call(&mut self) -> Result<(), String> {
        let before = self.take(EventKind::BeforeTool)?;
        if !self.runs(&before)? {
            return Ok(());
        }
        if self.next().is_some_and(EventKind::is_file) {
            self.at += 1;
        }
        let after = self.take(EventKind::AfterTool)?;
        if after.flow == Flow::Ask {
            self.take(EventKind::ApprovalRequest)?;
        }
        if after.call == before.call { Ok(()) } else { Err(format!("{:?} ends {:?}", after.call, before.call)) }
    }

    fn runs(&mut self, before: &Token) -> Result<bool, String> {
        let tool = before.call.as_ref().map_or("", |(tool, _)| tool.as_str());
        let asks = match (self.rules.approval, tool) {
            (Approval::Yolo, _) | (_, "list_dir" | "todo" | "read_file") | (Approval::Auto, "write_file") => false,
            (Approval::Ask | Approval::Auto, _) => true,
        };
        match before.flow {
            Flow::Block | Flow::Halt => Ok(false),
            Flow::Allow => Ok(true),
            Flow::NoOpinion if !asks => Ok(true),
            Flow::NoOpinion => {
                let request = self.take(EventKind::ApprovalRequest)?;
                let consents = self.rules.consent == Consent::Yes && !request.flow.refuses();
                Ok(consents || request.flow == Flow::Allow)
            }
            Flow::Ask => self.asked(),
        }
    }

    /// An event whose operation may go on; says whether it does.
    fn passes(&mut self, kind: EventKind) -> Result<bool, String> {
        match self.take(kind)?.flow {
            Flow::NoOpinion | Flow::Allow => Ok(true),
            Flow::Block | Flow::Halt => Ok(false),
            Flow::Ask => self.asked(),
        }
    }

    /// The end of a turn. Whether it may end is asked only if the model has nothing more to do.
    fn stops(&mut self) -> Result<bool, String> {
        match self.take(EventKind::AfterAgent)?.flow {
            Flow::Block => Ok(false),
            Flow::Ask if self.next() == Some(EventKind::ApprovalRequest) => self.asked(),
            Flow::NoOpinion | Flow::Allow | Flow::Ask | Flow::Halt => Ok(true),
        }
    }

    fn asked(&mut self) -> Result<bool, String> {
        let request = self.take(EventKind::ApprovalRequest)?;
        Ok(!request.flow.refuses() && self.rules.consent == Consent::Yes)
    }

    fn next(&self) -> Option<EventKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn take(&mut self, kind: EventKind) -> Result<Token, String> {
        match self.tokens.get(self.at).filter(|token| token.kind == kind) {
            Some(token) => {
                self.at += 1;
                Ok(token.clone())
            }
            None => Err(format!("expected {}, got {:?}", kind.name(), self.next().map(EventKind::name))),
        }
    }
}

/// Two turns with everything in them.
fn good() -> Vec<Token> {
    use EventKind as E;
    let call = |id: &str| Some(("shell".to_owned(), id.to_owned()));
    let token = |kind, flow, call| Token { kind, flow, failed: false, more: false, call };
    let plain = |kind| token(kind, Flow::NoOpinion, None);
    vec![
        plain(E::SessionStart),
        plain(E::BeforeAgent),
        plain(E::ContextOverflow),
        plain(E::PreCompress),
        plain(E::PostCompress),
        plain(E::BeforeToolSelection),
        plain(E::BeforeModel),
        Token { more: true, ..plain(E::AfterModel) },
        token(E::BeforeTool, Flow::NoOpinion, call("1")),
        plain(E::ApprovalRequest),
        token(E::AfterTool, Flow::NoOpinion, call("1")),
        token(E::BeforeTool, Flow::Block, call("2")),
        token(E::BeforeTool, Flow::Allow, call("3")),
        token(E::AfterTool, Flow::NoOpinion, call("3")),
        plain(E::BeforeToolSelection),
        plain(E::BeforeModel),
        plain(E::AfterModel),
        token(E::AfterAgent, Flow::Block, None),
        plain(E::BeforeToolSelection),
        plain(E::BeforeModel),
        plain(E::AfterModel),
        plain(E::AfterAgent),
        token(E::BeforeAgent, Flow::Block, None),
        plain(E::SessionEnd),
    ]
}

const RULES: Rules = Rules { approval: Approval::Ask, consent: Consent::Yes };

#[test]
fn the_reader_takes_a_good_trace_and_refuses_it_with_any_event_less() {
    assert_eq!(accept(&good(), RULES), Ok(()));
    for at in 0..good().len() {
        let mut bad = good();
        let gone = bad.remove(at);
        // A refused call or prompt leaves nothing behind by which it could be missed.
        let unmissed = gone.flow == Flow::Block && matches!(gone.kind, EventKind::BeforeTool | EventKind::BeforeAgent);
        assert_eq!(accept(&bad, RULES).is_ok(), unmissed, "{gone:?} is missing at {at}");
    }
}

#[test]
fn the_reader_refuses_a_good_trace_with_any_event_twice_or_too_late() {
    for at in 0..good().len() {
        let mut twice = good();
        twice.insert(at, twice[at].clone());
        let refused =
            twice[at].flow == Flow::Block && matches!(twice[at].kind, EventKind::BeforeTool | EventKind::BeforeAgent);
        assert_eq!(accept(&twice, RULES).is_ok(), refused, "{:?} twice at {at}", twice[at]);
    }
    for at in 1..good().len() {
        let mut swapped = good();
        swapped.swap(at - 1, at);
        assert!(accept(&swapped, RULES).is_err(), "{:?} came before its time, at {at}", swapped[at - 1]);
    }
}

#[test]
fn the_reader_refuses_what_follows_a_refusal() {
    let refused = |at: usize| {
        let mut trace = good();
        trace[at].flow = Flow::Block;
        accept(&trace, RULES)
    };
    // A refused session, prompt, selection, question, answer or call has no consequences.
    for at in [0, 1, 5, 6, 7, 8, 12] {
        assert!(refused(at).is_err(), "{at}");
    }
}
