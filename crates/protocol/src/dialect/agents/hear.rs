//! What the hooks of an agent answer.
//!
//! Everything that the agent itself would take for a refusal is one, and whatever else can be read as a refusal, too.

use serde_json::Value;

use super::field::get;
use super::{AgentDialect, AgentEvent, Form, Part, Way};
use crate::dialect::{Answer, End, Output, answer};
use crate::event::EventKind;
use crate::json::{Object, scan};
use crate::verdict::{Flow, Verdict};

impl AgentDialect {
    pub(super) fn hear(&self, kind: EventKind, output: &Output<'_>) -> Answer {
        let scan = scan(output.stdout);
        let mut warnings = Vec::new();
        let mut answer = match answer::one_object(&scan, &mut warnings) {
            Ok(object) => {
                let native = self.native(kind);
                let mut reading = answer::read(object, &native, kind);
                reading.warnings.splice(0..0, warnings);
                let mut answer = reading.into_answer();
                self.heard(kind, object, &mut answer.verdict);
                if self.shows_system_messages() {
                    let Verdict { system_messages, messages, .. } = &mut answer.verdict;
                    messages.splice(0..0, system_messages.drain(..));
                }
                answer
            }
            // Plain text is an answer here; what begins like an object was not meant as plain text.
            Err(_) if scan.objects.is_empty() && !output.stdout.trim_ascii_start().starts_with(b"{") => {
                self.plain(kind, output)
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

    fn plain(&self, kind: EventKind, output: &Output<'_>) -> Answer {
        let text = String::from_utf8_lossy(output.stdout).trim().to_owned();
        let counts = output.end == End::Exited(0) && self.events_of(kind).any(|event| event.text_is_context);
        let context = if counts && !text.is_empty() { vec![text] } else { Vec::new() };
        Answer { verdict: Verdict { context, ..Verdict::default() }, ..Answer::default() }
    }

    /// The answers to an event that are JSON, by what they say.
    pub(super) fn forms(&self, kind: EventKind) -> impl Iterator<Item = (&'static str, Form)> {
        let refusal = match self.refusal {
            Way::Json(form) => Some(("block", form)),
            _ => None,
        };
        self.events_of(kind).flat_map(AgentEvent::forms).chain(refusal)
    }

    /// The fields of an answer that are the agent's own.
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

    /// What the agent's own fields say beyond those that all dialects share.
    fn heard(&self, kind: EventKind, object: &Object, verdict: &mut Verdict) {
        for (name, form) in self.forms(kind) {
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
                "modify" if kind == EventKind::BeforeTool && verdict.patch.is_empty() => {
                    verdict.patch = found(Part::Args).and_then(Value::as_object).cloned().unwrap_or_default();
                }
                "result" if verdict.result.is_none() => verdict.result = found(Part::Result).cloned(),
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
        if verdict.flow.refuses() {
            verdict.patch.clear();
        }
    }
}

impl AgentEvent {
    /// The answers that are JSON, by what they say.
    fn forms(&self) -> impl Iterator<Item = (&'static str, Form)> + use<> {
        self.can.all().into_iter().filter_map(|(name, way)| match way {
            Way::Json(form) => Some((name, form)),
            _ => None,
        })
    }
}

/// Whether the field that decides says this.
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

/// Every value that stands at a path, also where a key is doubled.
fn values(object: &Object, path: &str) -> Vec<Value> {
    match path.split_once('.') {
        Some((first, rest)) => object.inside(first).map(|inner| values(&inner, rest)).unwrap_or_default(),
        None => object.values(path).cloned().collect(),
    }
}

fn names(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
