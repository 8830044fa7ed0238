//! One shared decision when an agent starts several of our processes for the same event.
//!
//! Agents read one another's settings, and a project's entry stands beside a person's own. So one tool call may start
//! us more than once, at the same instant or one after the other. If an agent timestamps its events, the decision is
//! shared for all of them, not only for tool calls. The first process runs the hooks and leaves their decision. The
//! others give the same answer, each in the words of its agent. [`Engine::repeat`](ollm_engine::Engine::repeat) has the
//! built-in guards judge anew.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use ollm_engine::{EarlierDecision, Outcome, Report, Status};
use ollm_protocol::{Event, Flow, Hook, Source, Verdict};
use ollm_store::{Claim, Claims, Digest, Hasher};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::app_context::AppContext;

const VERSION: u32 = 1;
/// How long other processes may reuse a decision. Agents start us at the same time, or shortly after one another.
const FRESH: Duration = Duration::from_secs(2);
/// Larger decisions are not saved.
const LARGEST: usize = 1 << 20;
/// How long to wait for another process of ours if the agent's own timeout is unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which process decides about an event.
#[derive(Debug)]
pub enum Turn {
    /// Our process decides, and shares the decision with no other.
    Alone,
    /// Our process decides, and other processes wait for it.
    First(Claim),
    /// Another process of ours has decided.
    Decided(Box<Outcome>),
}

impl Turn {
    /// Shares the decision with the waiting processes. A hook that did not end by itself might decide otherwise at a
    /// second try, so they run it again.
    pub fn share(self, outcome: &Outcome) {
        if let Turn::First(claim) = self
            && outcome.reports.iter().all(ended_by_itself)
        {
            claim.settle(written(outcome).to_string().as_bytes());
        }
    }
}

impl App {
    /// Finds out whether another process decides about the same event, and waits for it, at most half of the time there
    /// is. The other half is for running the hooks here. `number` tells the event apart from others of its session.
    pub fn turn(&self, event: &Event, number: &str, deadline: Option<Instant>) -> Turn {
        let Some(call) = self.shared_call(event, number) else { return Turn::Alone };
        let patience = deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()) / 2);
        let claims = Claims { folder: &folder(self.context()), fresh: FRESH, largest: LARGEST };
        match claims.take(&call, patience, SystemTime::now) {
            Ok(ollm_store::Turn::First(claim)) => Turn::First(claim),
            Ok(ollm_store::Turn::Done(decision)) => {
                let outcome = read(&decision).and_then(|earlier| self.engine.repeat(event, earlier));
                outcome.map_or(Turn::Alone, |outcome| Turn::Decided(Box::new(self.whole(outcome))))
            }
            // If the file cannot be used, hooks rather run twice than not at all.
            Err(_) => Turn::Alone,
        }
    }

    /// The digest that identifies a call together with its hooks; `None` if each process decides alone.
    fn shared_call(&self, event: &Event, number: &str) -> Option<Digest> {
        let session = event.session_id()?;
        let context = self.context();
        // If one of our hooks starts us, we would wait for our own parent.
        let is_nested = context.variable("OLLM_AGENT").is_some();
        // A process that can forge a decision in our folder could also switch hooks off there. It could not switch off
        // what the machine's policy requires, or what only a signature approves.
        let is_signed = self.engine.trust.key().is_some();
        if session.is_empty() || is_nested || is_signed || context.own_home().is_none() {
            return None;
        }
        let hooks = self.engine.registry.candidates(event.kind, event.subject());
        let is_policy = hooks.iter().any(|hook| hook.spec.source == Source::Policy);
        if is_policy || !hooks.iter().any(|hook| runs(hook)) {
            return None;
        }
        let mut hasher = Hasher::new()
            .field("version", env!("CARGO_PKG_VERSION").as_bytes())
            .field("cwd", context.cwd.as_os_str().as_encoded_bytes())
            .field("rules", format!("{:?} {:?}", self.engine.switched_off, self.engine.trust.untrusted).as_bytes())
            .field("event", event.kind.name().as_bytes())
            .field("session", session.as_bytes())
            .field("number", number.as_bytes());
        // Two dialects may read the same message; fields that only one of them knows would make it two calls.
        for (name, _) in event.kind.fields().filter(|(name, _)| *name != "timestamp") {
            if let Some(value) = event.data.get(name) {
                hasher = hasher.field(name, value.to_string().as_bytes());
            }
        }
        for hook in hooks.into_iter().filter(|hook| hook.spec.source != Source::Builtin) {
            let approved = self.engine.trust.unapproved(&**hook).is_none();
            let declared =
                format!("{approved} {:?} {:?} {:?} {:?}", hook.off, hook.on_failure, hook.timeout, hook.spec);
            hasher = hasher.field("hook", declared.as_bytes());
        }
        Some(hasher.finish())
    }
}

fn folder(context: &AppContext) -> PathBuf {
    context.state().join("calls")
}

/// Whether a hook may do something that should be done only once.
fn runs(hook: &Hook) -> bool {
    hook.spec.source != Source::Builtin && hook.spec.enabled && hook.off.is_none()
}

fn ended_by_itself(report: &Report) -> bool {
    let exited = report.process.as_ref().is_some_and(|process| process.exit.is_some());
    report.detached || exited || matches!(report.status, Status::Ok | Status::Blocked)
}

fn written(outcome: &Outcome) -> Value {
    let verdict = &outcome.verdict;
    json!({
        "version": VERSION,
        "trace_id": outcome.trace_id,
        "flow": verdict.flow.name(),
        "reasons": verdict.reasons,
        "system_messages": verdict.system_messages,
        "messages": verdict.messages,
        "context": verdict.context,
        "patch": verdict.patch,
        "result": verdict.result.as_ref().map(|result| [result]),
        "tools": verdict.tools,
        "prompts": verdict.prompts,
        "data": verdict.data,
        "metadata": verdict.metadata,
    })
}

/// An earlier decision, if the bytes are a complete one in our format.
fn read(bytes: &[u8]) -> Option<EarlierDecision> {
    let Value::Object(mut fields) = serde_json::from_slice(bytes).ok()? else { return None };
    if fields.get("version")? != VERSION {
        return None;
    }
    let flow = fields.get("flow")?.as_str()?.to_owned();
    Some(EarlierDecision {
        trace_id: fields.get("trace_id")?.as_str()?.to_owned(),
        verdict: Verdict {
            flow: Flow::ALL.into_iter().find(|known| known.name() == flow)?,
            reasons: texts(fields.get("reasons")?)?,
            system_messages: texts(fields.get("system_messages")?)?,
            messages: texts(fields.get("messages")?)?,
            context: texts(fields.get("context")?)?,
            patch: object(&mut fields, "patch")?,
            result: match fields.get("result")? {
                Value::Null => None,
                result => Some(result.as_array()?.first()?.clone()),
            },
            tools: match fields.get("tools")? {
                Value::Null => None,
                tools => Some(texts(tools)?),
            },
            prompts: texts(fields.get("prompts")?)?,
            data: object(&mut fields, "data")?,
            metadata: object(&mut fields, "metadata")?,
        },
    })
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn object(fields: &mut Map<String, Value>, name: &str) -> Option<Map<String, Value>> {
    match fields.get_mut(name)?.take() {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ollm_protocol::EventKind;

    use super::*;

    fn decided() -> Outcome {
        let texts = |text: &str| vec![format!("{text} 1"), format!("{text} 2")];
        let object = |name: &str| Map::from_iter([(name.to_owned(), json!({"deep": [1, null, "é"]}))]);
        let verdict = Verdict {
            flow: Flow::Ask,
            reasons: texts("reason"),
            system_messages: texts("system"),
            messages: texts("message"),
            context: texts("context"),
            patch: object("patch"),
            result: Some(Value::Null),
            tools: Some(Vec::new()),
            prompts: texts("prompt"),
            data: object("data"),
            metadata: object("metadata"),
        };
        let mut outcome = Outcome::of(EventKind::BeforeTool, verdict);
        outcome.trace_id = "the first".to_owned();
        outcome
    }

    #[test]
    fn a_decision_is_read_as_it_was_written() {
        for verdict in [decided().verdict, Verdict::default()] {
            let mut outcome = decided();
            outcome.verdict = verdict.clone();
            let bytes = written(&outcome).to_string();
            assert_eq!(read(bytes.as_bytes()), Some(EarlierDecision { verdict, trace_id: "the first".to_owned() }));
        }
    }

    #[test]
    fn a_decision_that_lacks_anything_is_none() {
        let Value::Object(whole) = written(&decided()) else { panic!() };
        for name in whole.keys() {
            let mut fields = whole.clone();
            fields.shift_remove(name);
            assert_eq!(read(Value::Object(fields.clone()).to_string().as_bytes()), None, "{name}");
            fields.insert(name.clone(), json!(7));
            assert_eq!(read(Value::Object(fields).to_string().as_bytes()), None, "{name}");
        }
        let bytes = Value::Object(whole).to_string().into_bytes();
        for end in 0..bytes.len() {
            assert_eq!(read(bytes.get(..end).unwrap()), None);
        }
    }
}
