//! Finds the parts of a verdict that an agent cannot be told, or only in another form.

use super::{AgentDialect, Capabilities, Way};
use crate::dialect::Request;
use crate::event::{EventKind, Power};
use crate::verdict::{Flow, Verdict};

impl AgentDialect {
    /// The parts of a verdict whose full meaning does not reach the agent, in one line; `None` if all does.
    ///
    /// If the agent gets a refusal, it needs nothing else, so nothing else is lost.
    pub fn unheard(&self, request: &Request, verdict: &Verdict) -> Option<String> {
        let kind = request.event.kind;
        let can = self.asked(request).map_or(Capabilities::NONE, |event| event.can);
        let mut lost: Vec<&str> = Vec::new();
        match refusal(kind, verdict.flow, &can) {
            Refusal::None => {}
            Refusal::Heard => return None,
            Refusal::Only(what) => return Some(format!("{} {what}", self.title)),
            Refusal::Unheard => lost.push("cannot be told of a refusal at this event, and went on"),
        }
        lost.extend(parts(kind, verdict, &can).into_iter().filter_map(VerdictPart::lost));
        (!lost.is_empty()).then(|| format!("{} {}", self.title, lost.join("; it ")))
    }
}

/// The effect of a refusal.
enum Refusal {
    /// There is no refusal, or the agent can be told it together with everything else.
    None,
    /// The agent obeys it.
    Heard,
    /// The agent does this instead.
    Only(&'static str),
    /// The agent goes on.
    Unheard,
}

fn refusal(kind: EventKind, flow: Flow, can: &Capabilities) -> Refusal {
    let ends_turn = matches!(kind, EventKind::AfterAgent | EventKind::SubagentStop);
    // After the fact, a refusal is feedback to the model.
    let is_feedback = kind.row().power == Power::Feedback && can.context.is_possible();
    match flow {
        Flow::Allow | Flow::NoOpinion => Refusal::None,
        // The agent is about to ask anyway, or can be told to ask.
        Flow::Ask if kind == EventKind::ApprovalRequest || can.ask.is_possible() => Refusal::None,
        Flow::Halt if can.halt.is_possible() => Refusal::Heard,
        Flow::Halt if is_feedback || (can.block.is_possible() && !ends_turn) => {
            Refusal::Only("cannot end the turn at this event, and only heard the refusal")
        }
        Flow::Block | Flow::Ask if can.block.is_possible() => Refusal::Heard,
        _ if is_feedback => Refusal::None,
        _ => Refusal::Unheard,
    }
}

/// A part of a verdict, and what happens to it if the agent cannot be told.
struct VerdictPart {
    is_there: bool,
    way: Way,
    /// What the agent cannot do.
    lack: &'static str,
    /// Whether it reaches the agent in another form, and a description of that.
    instead: (bool, &'static str),
}

impl VerdictPart {
    fn lost(self) -> Option<&'static str> {
        let (is_told, instead) = self.instead;
        (self.is_there && !self.way.is_possible()).then_some(if is_told { instead } else { self.lack })
    }
}

fn parts(kind: EventKind, verdict: &Verdict, can: &Capabilities) -> [VerdictPart; 6] {
    let can_ask = matches!(kind, EventKind::BeforeTool | EventKind::ApprovalRequest);
    let can_refuse = can.block.is_possible();
    // Only an approval can carry changed arguments.
    let is_unapproved = kind == EventKind::ApprovalRequest && verdict.flow != Flow::Allow;
    let for_model = [&verdict.system_messages, &verdict.context, &verdict.prompts];
    [
        VerdictPart {
            is_there: verdict.flow == Flow::Allow && can_ask,
            way: can.allow,
            lack: "cannot be told to skip its own question at this event",
            instead: (false, ""),
        },
        VerdictPart {
            is_there: can_ask && !verdict.patch.is_empty(),
            way: if is_unapproved { Way::No } else { can.modify },
            lack: "cannot change the arguments at this event",
            instead: (can_refuse, "cannot change the arguments at this event, so the call was refused"),
        },
        VerdictPart {
            is_there: kind == EventKind::AfterTool && verdict.result.is_some(),
            way: can.result,
            lack: "cannot replace the result at this event",
            instead: (
                can_refuse || can.context.is_possible(),
                "cannot replace the result at this event, so the model was told what to use in its place",
            ),
        },
        VerdictPart {
            is_there: kind == EventKind::BeforeToolSelection && verdict.tools.is_some(),
            way: can.tools,
            lack: "cannot narrow the tools at this event",
            instead: (false, ""),
        },
        VerdictPart {
            is_there: for_model.iter().any(|texts| has_words(texts)),
            way: can.context,
            lack: "cannot be given context at this event",
            instead: (can.message.is_possible(), "cannot be given context at this event, so the person was told"),
        },
        VerdictPart {
            is_there: has_words(&verdict.messages),
            way: can.message,
            lack: "cannot show a message at this event",
            instead: (false, ""),
        },
    ]
}

fn has_words(texts: &[String]) -> bool {
    texts.iter().any(|text| !text.trim().is_empty())
}
