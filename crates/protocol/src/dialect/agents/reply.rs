//! Writes verdicts as answers to an agent: the smallest answer with the full meaning.
//!
//! If the agent cannot be told something, the answer is the next stricter thing. So an impossible change or question
//! becomes a refusal. If the operation can no longer be stopped, the person gets a message.

use serde_json::{Map, Value};

use super::events::wrapped_call;
use super::field::set;
use super::{AgentDialect, Capabilities, Form, Part, Way};
use crate::dialect::{Reply, Request, line};
use crate::event::{EventKind, Power};
use crate::tool;
use crate::verdict::{Flow, Verdict, joined};

/// The most bytes of a change that a refusal repeats.
const LONGEST_CHANGE: usize = 2000;

/// The values for the fields of an answer.
struct Slots<'a> {
    event: &'a str,
    reason: String,
    args: Option<Map<String, Value>>,
    result: Option<Value>,
    tools: Option<Vec<String>>,
}

impl AgentDialect {
    pub(super) fn reply(&self, request: &Request, verdict: &Verdict) -> Reply {
        let can = self.capabilities(request);
        let args = changed_args(request, verdict);
        let mut slots = Slots {
            event: self.asked(request).map_or(request.spelling.event.as_str(), |event| event.name),
            reason: reason(verdict),
            args,
            result: verdict.result.clone().filter(|_| request.event.kind == EventKind::AfterTool),
            tools: self.offered(request, verdict),
        };
        if let Some(way) = self.standing_in_the_way(request, verdict, &can, &mut slots) {
            return slots.alone(way);
        }
        let mut answer = ComposedReply::default();
        match verdict.flow {
            Flow::Allow => answer.say(can.allow, &slots, ""),
            Flow::Ask => answer.say(can.ask, &slots, ""),
            _ => {}
        }
        if slots.args.is_some() {
            answer.say(can.modify, &slots, "");
        }
        if slots.result.is_some() {
            answer.say(can.result, &slots, "");
        }
        if slots.tools.is_some() {
            answer.say(can.tools, &slots, "");
        }
        let (for_model, told) = self.texts(request, verdict, &can, &slots);
        for (way, texts) in [(can.context, for_model), (can.message, told)] {
            if let Some(text) = joined(&texts).filter(|text| !text.trim().is_empty()) {
                answer.say(way, &slots, &text);
            }
        }
        answer.into_reply(self.nothing)
    }

    /// The tools to keep on offer, by the agent's names. Empty if the selection is refused.
    fn offered(&self, request: &Request, verdict: &Verdict) -> Option<Vec<String>> {
        if request.event.kind != EventKind::BeforeToolSelection {
            return None;
        }
        if !verdict.flow.continues() {
            return Some(Vec::new());
        }
        let spelled = |tool: &String| tool::spelled_for(self.name, tool, &Map::new()).0;
        verdict.tools.as_ref().map(|tools| tools.iter().map(spelled).collect())
    }

    /// The texts for the model, and those for the person. Texts that the model cannot get go to the person.
    fn texts(
        &self,
        request: &Request,
        verdict: &Verdict,
        can: &Capabilities,
        slots: &Slots<'_>,
    ) -> (Vec<String>, Vec<String>) {
        let mut told = verdict.messages.clone();
        // No agent takes a prompt from a hook, so the model gets it as context.
        let for_model = verdict.system_messages.iter().chain(&verdict.context).chain(&verdict.prompts);
        let mut for_model: Vec<String> = for_model.cloned().collect();
        let asks = can.ask.is_possible() || request.event.kind == EventKind::ApprovalRequest;
        if !(verdict.flow.continues() || (verdict.flow == Flow::Ask && asks)) {
            match request.event.kind.row().power {
                // After the fact, a refusal is feedback to the model.
                Power::Feedback if can.context.is_possible() => for_model.insert(0, slots.reason.clone()),
                _ => told.push(format!(
                    "{} ({} only reports {}; nothing was stopped)",
                    slots.reason, self.title, slots.event
                )),
            }
        }
        if !can.result.is_possible() {
            for_model.extend(self.replacement(slots));
        }
        if !can.context.is_possible() {
            told.append(&mut for_model);
        }
        (for_model, told)
    }

    /// How to tell the agent not to continue, if that is possible.
    fn standing_in_the_way(
        &self,
        request: &Request,
        verdict: &Verdict,
        can: &Capabilities,
        slots: &mut Slots<'_>,
    ) -> Option<Way> {
        let block = Some(can.block).filter(|way| way.is_possible());
        match verdict.flow {
            Flow::Halt if can.halt.is_possible() => Some(can.halt),
            // Refusing an end makes the agent go on, which is the opposite of a halt.
            Flow::Halt if matches!(request.event.kind, EventKind::AfterAgent | EventKind::SubagentStop) => None,
            Flow::Halt | Flow::Block => block,
            // The agent is about to ask anyway.
            Flow::Ask if request.event.kind == EventKind::ApprovalRequest && slots.args.is_none() => None,
            Flow::Ask if !can.ask.is_possible() && request.event.kind != EventKind::ApprovalRequest => {
                let block = block?;
                slots.reason =
                    format!("a person must decide, and {} cannot ask one here: {}", self.title, slots.reason);
                Some(block)
            }
            _ if slots.args.is_some() => {
                let obstacle = self.obstacle(request, verdict, can)?;
                let block = block?;
                slots.reason = change_refused(&obstacle, verdict);
                Some(block)
            }
            _ if !can.result.is_possible() => {
                slots.reason = self.replacement(slots)?;
                block
            }
            _ => None,
        }
    }

    /// The text instead of a replaced result that the agent cannot take.
    fn replacement(&self, slots: &Slots<'_>) -> Option<String> {
        let result = slots.result.as_ref()?;
        Some(format!("{} cannot replace the result here; use this in its place: {}", self.title, result_text(result)))
    }

    /// Why the agent cannot change the arguments in the way of the verdict.
    fn obstacle(&self, request: &Request, verdict: &Verdict, can: &Capabilities) -> Option<String> {
        if !can.modify.is_possible() {
            return Some(format!("{} cannot do that here", self.title));
        }
        if request.event.kind == EventKind::ApprovalRequest && verdict.flow != Flow::Allow {
            return Some(format!("{} cannot do that here without an approval, which no hook gave", self.title));
        }
        let (name, args) = request.event.call()?;
        let mut args = args.cloned().unwrap_or_default();
        args.retain(|name, _| !request.spelling.added_args.contains(&name.as_str()));
        let misfit = tool::misfit(name, &args, &verdict.patch)?;
        Some(format!("`{name}` has no `{misfit}`"))
    }
}

fn change_refused(obstacle: &str, verdict: &Verdict) -> String {
    let change: String = Value::Object(verdict.patch.clone()).to_string().chars().take(LONGEST_CHANGE).collect();
    let why = joined(&verdict.messages).map(|why| format!("{why}: ")).unwrap_or_default();
    format!("{why}this call must be changed, and {obstacle}; call the tool with {change}")
}

/// The complete arguments under the agent's own names, if the verdict changes them.
fn changed_args(request: &Request, verdict: &Verdict) -> Option<Map<String, Value>> {
    if request.event.kind == EventKind::AfterTool || verdict.patch.is_empty() {
        return None;
    }
    let (name, before) = request.event.call()?;
    let before = before.cloned().unwrap_or_default();
    let mut args = tool::patched(name, &before, &verdict.patch);
    if args == before && !before.is_empty() {
        return None;
    }
    for added in &request.spelling.added_args {
        args.shift_remove(*added);
    }
    Some(if request.spelling.wraps_call { wrapped_call(name, args) } else { args })
}

/// A result as text.
fn result_text(result: &Value) -> String {
    result.as_str().map_or_else(|| result.to_string(), str::to_owned)
}

/// The reason; never empty, because agents ignore a refusal without a reason.
fn reason(verdict: &Verdict) -> String {
    let reason = verdict.reason().unwrap_or_default();
    let reason = reason.trim();
    if reason.is_empty() { "refused by a hook".to_owned() } else { reason.to_owned() }
}

impl Slots<'_> {
    /// An answer with only this.
    fn alone(&self, way: Way) -> Reply {
        match way {
            Way::Status => Reply { stderr: format!("{}\n", self.reason).into_bytes(), exit: 2, ..Reply::default() },
            way => {
                let mut answer = ComposedReply::default();
                answer.say(way, self, &self.reason);
                answer.into_reply("")
            }
        }
    }

    fn fill(&self, part: Part, text: &str) -> Option<Value> {
        match part {
            Part::Word(word) => Some(word.into()),
            Part::Flag(flag) => Some(flag.into()),
            Part::Event => Some(self.event.into()),
            Part::Reason => Some(self.reason.as_str().into()),
            Part::Text => Some(text.into()),
            Part::Args => self.args.clone().map(Value::Object),
            Part::Result => self.result.clone(),
            Part::ResultText => self.result.as_ref().map(result_text).map(Value::from),
            Part::Tools => self.tools.clone().map(Value::from),
            Part::ToolMode => self.tools.as_ref().map(|tools| if tools.is_empty() { "NONE" } else { "ANY" }.into()),
        }
    }
}

/// An answer with several parts.
#[derive(Default)]
struct ComposedReply {
    wire: Map<String, Value>,
    text: Option<String>,
}

impl ComposedReply {
    fn say(&mut self, way: Way, slots: &Slots<'_>, text: &str) {
        match way {
            Way::Json(form) => self.fields(form, slots, text),
            Way::Text => self.text = Some(text.to_owned()),
            Way::Status | Way::No => {}
        }
    }

    fn fields(&mut self, form: Form, slots: &Slots<'_>, text: &str) {
        for (path, part) in form {
            if let Some(value) = slots.fill(*part, text) {
                set(&mut self.wire, path, value);
            }
        }
    }

    /// Writes one JSON document, or the agent's empty reply.
    fn into_reply(self, nothing: &str) -> Reply {
        let stdout = match self.text {
            _ if !self.wire.is_empty() => line(self.wire),
            Some(text) => format!("{text}\n").into_bytes(),
            None => nothing.as_bytes().to_vec(),
        };
        Reply { stdout, ..Reply::default() }
    }
}
