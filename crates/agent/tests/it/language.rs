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
            while matches!(self.next(), Some(EventKind::ContextOverflow | EventKind::BeforeToolSelection)) {
                self.step()?;
            }
            let stops = self.stops()?;
            let goes_on = matches!(self.next(), Some(EventKind::ContextOverflow | EventKind::BeforeToolSelection));
            match (stops, goes_on) {
                (true, true) => return Err("the turn goes on although nobody asked for it".to_owned()),
                (_, false) => return Ok(()),
                (false, true) => {}
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.next() == Some(EventKind::ContextOverflow) {
            self.at += 1;
            if self.passes(EventKind::PreCompress)? {
                self.take(EventKind::PostCompress)?;
            }
        }
        if !self.passes(EventKind::BeforeToolSelection)? || !self.passes(EventKind::BeforeModel)? {
            return Ok(());
        }
        let answered = self.tokens.get(self.at).is_some_and(|token| !token.failed);
        if !answered {
            self.take(EventKind::AfterModel)?;
            return Ok(());
        }
        if !self.passes(EventKind::AfterModel)? {
            return Ok(());
        }
        while self.next() == Some(EventKind::BeforeTool) {
            self.call()?;
        }
        Ok(())
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

#[test]
fn the_reader_tells_good_traces_from_bad_ones() {
    use EventKind::{AfterAgent, AfterModel, BeforeAgent, BeforeModel, BeforeToolSelection, SessionEnd, SessionStart};
    let rules = Rules { approval: Approval::Yolo, consent: Consent::No };
    let trace = |kinds: &[EventKind]| -> Vec<Token> {
        kinds.iter().map(|kind| Token { kind: *kind, flow: Flow::NoOpinion, failed: false, call: None }).collect()
    };
    let good = [SessionStart, BeforeAgent, BeforeToolSelection, BeforeModel, AfterModel, AfterAgent, SessionEnd];
    assert_eq!(accept(&trace(&good), rules), Ok(()));
    for at in 0..good.len() {
        let mut bad = good.to_vec();
        bad.remove(at);
        // Without before_agent nothing else of the turn may happen either, and so on: every removal is an error.
        assert!(accept(&trace(&bad), rules).is_err(), "{:?} is missing", good[at]);
    }
}
