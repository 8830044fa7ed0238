//! Reads the answers of an agent's hooks.
//!
//! Whatever the agent itself would take for a refusal is a refusal, and so is everything else that can be read as one.

use serde_json::Value;

use super::field::get;
use super::{AgentDialect, AgentEvent, Form, McpName, Part, Way};
use crate::dialect::{End, HookAnswer, Output, answer};
use crate::event::EventKind;
use crate::json::{Object, scan};
use crate::verdict::{Flow, Verdict};

impl AgentDialect {
    /// Reads an output. `spoken_as` is the agent's event that the hook was written for.
    pub(super) fn hear(&self, kind: EventKind, spoken_as: Option<&str>, output: &Output<'_>) -> HookAnswer {
        let scan = scan(output.stdout);
        let mut warnings = Vec::new();
        let mut answer = match answer::one_object(&scan, &mut warnings) {
            Ok(object) => {
                let native = self.native(kind);
                let mut reading = answer::read(object, &native, kind);
                reading.warnings.splice(0..0, warnings);
                let mut answer = reading.into_answer();
                self.heard(kind, spoken_as, object, &mut answer.verdict);
                if self.shows_system_messages() {
                    let Verdict { system_messages, messages, .. } = &mut answer.verdict;
                    messages.splice(0..0, system_messages.drain(..));
                }
                answer
            }
            // Plain text is a valid answer here. Text that begins like an object was meant as JSON.
            Err(_) if scan.objects.is_empty() && !output.stdout.trim_ascii_start().starts_with(b"{") => {
                self.plain(kind, spoken_as, output)
            }
            Err(why) => answer::failed(format!("malformed answer: {why}"), &scan, kind, warnings),
        };
        if matches!(output.end, End::Exited(status) if (self.refusing)(kind, status)) {
            answer::block_by_status(&mut answer, output.stderr);
            return answer;
        }
        answer::with_end(answer, output)
    }

    /// Whether the agent shows a `systemMessage` to the person, and not to the model as our own dialect does.
    fn shows_system_messages(&self) -> bool {
        let shows = |way: Way| matches!(way, Way::Json([("systemMessage", _)]));
        self.events.iter().any(|event| shows(event.can.message))
    }

    fn plain(&self, kind: EventKind, spoken_as: Option<&str>, output: &Output<'_>) -> HookAnswer {
        let text = String::from_utf8_lossy(output.stdout).trim().to_owned();
        let is_context = self.meant(kind, spoken_as).any(|event| event.text_is_context);
        let counts = output.end == End::Exited(0) && is_context;
        let context = if counts && !text.is_empty() { vec![text] } else { Vec::new() };
        HookAnswer { verdict: Verdict { context, ..Verdict::default() }, ..HookAnswer::default() }
    }

    /// The events of a kind that a hook may answer: only one, if it was written for that one.
    fn meant(&self, kind: EventKind, spoken_as: Option<&str>) -> impl Iterator<Item = &'static AgentEvent> {
        let is_known = self.events_of(kind).any(|event| spoken_as == Some(event.name));
        self.events_of(kind).filter(move |event| !is_known || spoken_as == Some(event.name))
    }

    /// The JSON forms of answers to an event, each with what it says.
    pub(super) fn forms(&self, kind: EventKind) -> impl Iterator<Item = (&'static str, Form)> {
        let refusal = match self.refusal {
            Way::Json(form) => Some(("block", form)),
            _ => None,
        };
        self.events_of(kind).flat_map(AgentEvent::forms).chain(refusal)
    }

    /// The fields of an answer that belong to the agent's own format.
    fn native(&self, kind: EventKind) -> Vec<&'static str> {
        let mut native: Vec<&str> = self
            .forms(kind)
            .flat_map(|(_, form)| form)
            .map(|(path, _)| path.split('.').next().unwrap_or(path))
            .collect();
        native.sort_unstable();
        native.dedup();
        native
    }

    /// Reads the agent's own fields, in addition to those that all dialects share.
    fn heard(&self, kind: EventKind, spoken_as: Option<&str>, object: &Object, verdict: &mut Verdict) {
        // A refusal counts in the form of any event; all else counts only in the form of the hook's own event.
        let refusals = self.forms(kind).filter(|(name, _)| matches!(*name, "ask" | "block" | "halt"));
        let others = self.meant(kind, spoken_as).flat_map(AgentEvent::forms);
        // An approval of changed arguments does not approve the original ones, even if the agent ignores the change.
        let before = self.forms(EventKind::BeforeTool).filter(|(name, _)| *name == "modify");
        let others = others.chain(before.filter(|_| kind == EventKind::ApprovalRequest));
        for (name, form) in refusals.chain(others) {
            let found = |part: Part| {
                let (path, _) = form.iter().find(|(_, own)| *own == part)?;
                get(&object.fields, path)
            };
            let text = |part: Part| found(part).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
            match name {
                "allow" | "ask" | "block" | "halt" if is_said(form, object) => {
                    let flow = match name {
                        "allow" => Flow::Allow,
                        "ask" => Flow::Ask,
                        "block" => Flow::Block,
                        _ => Flow::Halt,
                    };
                    verdict.flow = verdict.flow.max(flow);
                    if let Some(reason) = text(Part::Reason).filter(|_| flow >= Flow::Ask && verdict.reasons.is_empty())
                    {
                        verdict.reasons.push(reason.to_owned());
                    }
                }
                "modify" if verdict.patch.is_empty() && kind != EventKind::AfterTool => {
                    verdict.patch = found(Part::Args).and_then(Value::as_object).cloned().unwrap_or_default();
                }
                "result" if verdict.result.is_none() => {
                    verdict.result = found(Part::Result).or_else(|| found(Part::ResultText)).cloned();
                }
                "tools" if verdict.tools.is_none() => verdict.tools = found(Part::Tools).and_then(names),
                "context" => {
                    let new = text(Part::Text).filter(|text| !verdict.context.iter().any(|known| known == text));
                    verdict.context.extend(new.map(str::to_owned));
                }
                "message" => {
                    let known = verdict.system_messages.iter().chain(&verdict.messages).chain(&verdict.reasons);
                    let new = text(Part::Text).filter(|text| !known.clone().any(|known| known == text));
                    verdict.messages.extend(new.map(str::to_owned));
                }
                _ => {}
            }
        }
        // Changed arguments of a server's tool come inside those of the one tool for all server tools.
        let is_wrapped = matches!(self.mcp, McpName::Arguments(_)) && verdict.patch.contains_key("server_name");
        if let Some(Value::Object(inner)) = verdict.patch.get_mut("arguments").filter(|_| is_wrapped).map(Value::take) {
            verdict.patch = inner;
        }
        if verdict.flow.refuses() {
            // The same text may be read as a message and as a reason.
            let Verdict { messages, reasons, .. } = verdict;
            messages.retain(|message| !reasons.contains(message));
            verdict.patch.clear();
        }
    }
}

impl AgentEvent {
    /// The JSON forms of answers, each with what it says.
    fn forms(&self) -> impl Iterator<Item = (&'static str, Form)> + use<> {
        self.can.all().into_iter().filter_map(|(name, way)| match way {
            Way::Json(form) => Some((name, form)),
            _ => None,
        })
    }
}

/// Whether the deciding field has this value.
fn is_said(form: Form, object: &Object) -> bool {
    let Some((path, part)) = form.first() else { return false };
    values(object, path).iter().any(|value| match (part, value) {
        (Part::Word("allow"), Value::String(said)) => said == "allow",
        (Part::Word(word), Value::String(said)) => said.eq_ignore_ascii_case(word),
        (Part::Flag(flag), Value::Bool(said)) => said == flag,
        (Part::Reason, Value::String(said)) => !said.trim().is_empty(),
        _ => false,
    })
}

/// All values at a path, including those of doubled keys.
fn values(object: &Object, path: &str) -> Vec<Value> {
    match path.split_once('.') {
        Some((first, rest)) => object.inside(first).map(|inner| values(&inner, rest)).unwrap_or_default(),
        None => object.values(path).cloned().collect(),
    }
}

fn names(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
