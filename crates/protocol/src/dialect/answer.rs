//! Reads the fields of an answer, for all dialects.
//!
//! A dialect names its own fields. Unambiguous fields of other dialects are accepted with a warning, and may only
//! tighten: a foreign refusal refuses, but a foreign approval does not approve. If two fields disagree, the refusal
//! wins.

use serde_json::{Map, Value};

use super::{End, HookAnswer, Output};
use crate::event::{EventKind, tool_name};
use crate::json::{Object, Scan};
use crate::verdict::{Flow, Verdict};

/// The result of reading the fields of one answer.
#[derive(Debug, Default)]
pub(super) struct AnswerFields {
    pub(super) verdict: Verdict,
    /// Faults of the answer.
    pub(super) faults: Vec<String>,
    /// Oddities of the answer.
    pub(super) warnings: Vec<String>,
    /// Whether any field made a decision.
    pub(super) decided: bool,
}

impl AnswerFields {
    /// The answer, which counts as failed if it has faults.
    pub(super) fn into_answer(self) -> HookAnswer {
        let failure = (!self.faults.is_empty()).then(|| self.faults.join("; "));
        HookAnswer { verdict: self.verdict, failure, warnings: self.warnings }
    }
}

/// Reads an object's fields; `native` are the dialect's own. A refusal inside a JSON-RPC envelope counts.
pub(super) fn read(object: &Object, native: &[&str], kind: EventKind) -> AnswerFields {
    let mut reading = read_fields(object, native, kind);
    if object.fields.contains_key("jsonrpc") {
        let refusal = refusal(object, kind);
        if refusal.flow >= Flow::Ask {
            reading.warnings.push("`jsonrpc` belongs to another dialect".to_owned());
            reading.decided = true;
            reading.verdict = reading.verdict.then(refusal);
        }
    }
    reading
}

/// Reads an object's fields, without looking into an envelope.
pub(super) fn read_fields(object: &Object, native: &[&str], kind: EventKind) -> AnswerFields {
    let nested = object.inside("hookSpecificOutput");
    let mut reader =
        AnswerReader { object, nested, native, kind, reading: AnswerFields::default(), words: Words::default() };
    reader.shape();
    reader.flags();
    reader.decisions();
    reader.texts();
    reader.payloads();
    reader.action();
    reader.finish()
}

/// The data of a written answer, including the tools to keep on offer.
pub(super) fn data(verdict: &Verdict) -> Map<String, Value> {
    let mut data = verdict.data.clone();
    if let Some(tools) = &verdict.tools {
        data.insert("available_tools".to_owned(), tools.clone().into());
    }
    data
}

/// The refusals in an output that is not exactly one object. All else is ignored.
pub(super) fn refusals(scan: &Scan, kind: EventKind) -> Verdict {
    let refusals = scan.objects.iter().map(|object| {
        let plain = only_refusal(read_fields(object, &[], kind).verdict);
        plain.then(refusal(object, kind))
    });
    refusals.fold(Verdict::default(), Verdict::then)
}

/// The refusal in an envelope's `result`, if there is one.
fn refusal(envelope: &Object, kind: EventKind) -> Verdict {
    let result = envelope.inside("result").unwrap_or_default();
    only_refusal(read_fields(&result, &[], kind).verdict)
}

/// A refusal with its texts, without the rest of the verdict. Empty if it does not refuse.
fn only_refusal(verdict: Verdict) -> Verdict {
    if verdict.flow < Flow::Ask {
        return Verdict::default();
    }
    let Verdict { flow, reasons, system_messages, messages, .. } = verdict;
    Verdict { flow, reasons, system_messages, messages, ..Verdict::default() }
}

/// The one object of an answer, which may follow log lines. The error says why there is none.
pub(super) fn one_object<'a>(scan: &'a Scan, warnings: &mut Vec<String>) -> Result<&'a Object, String> {
    if let Some(object) = scan.sole() {
        return Ok(object);
    }
    match scan.objects.as_slice() {
        [] => Err(scan.error.clone().unwrap_or_else(|| "there is no JSON object in the output".to_owned())),
        [_] if scan.after => Err("there is other text after the JSON object".to_owned()),
        [_] if scan.broken => Err("the JSON object is inside of one that cannot be read".to_owned()),
        [object] => {
            if scan.before {
                warnings.push("there is other text in front of the JSON object".to_owned());
            }
            if scan.lossy {
                warnings.push("the output is not valid UTF-8".to_owned());
            }
            Ok(object)
        }
        many => Err(format!("there are {} JSON objects in the output, expected one", many.len())),
    }
}

/// An answer that failed before its fields could be read. A refusal in it still counts.
pub(super) fn failed(failure: String, scan: &Scan, kind: EventKind, warnings: Vec<String>) -> HookAnswer {
    HookAnswer { verdict: refusals(scan, kind), failure: Some(failure), warnings }
}

/// Adds the failure of the process itself, if there is one, before the answer's own failure. A failed hook approves
/// nothing.
pub(super) fn with_end(mut answer: HookAnswer, output: &Output<'_>) -> HookAnswer {
    if let Some(end) = output.end.failure(output.stderr) {
        answer.failure = Some(match answer.failure {
            Some(failure) => format!("{end}; {failure}"),
            None => end,
        });
    }
    if answer.failure.is_some() && answer.verdict.flow == Flow::Allow {
        answer.verdict.flow = Flow::NoOpinion;
    }
    answer
}

/// The same for dialects in which exit status 2 is a mere failure. The message explains that to people who know other
/// agents.
pub(super) fn with_plain_end(answer: HookAnswer, output: &Output<'_>) -> HookAnswer {
    let refuses = answer.verdict.flow.refuses();
    let mut answer = with_end(answer, output);
    if let Some(failure) = answer.failure.as_mut().filter(|_| output.end == End::Exited(2) && !refuses) {
        failure.push_str("; exit 2 refuses in a hook with \"dialect\": \"agent\", not here");
    }
    answer
}

/// An exit status that refuses overrides the JSON. The reason comes from the JSON if that refuses too, otherwise from
/// standard error.
pub(super) fn block_by_status(answer: &mut HookAnswer, stderr: &[u8]) {
    if answer.verdict.flow < Flow::Ask && answer.verdict.flow > Flow::NoOpinion {
        answer.warnings.push("the answer approves, but exit status 2 refuses".to_owned());
    }
    if answer.verdict.reasons.is_empty() {
        let words = String::from_utf8_lossy(stderr).trim().to_owned();
        answer.verdict.reasons.extend((!words.is_empty()).then_some(words));
    }
    answer.verdict.flow = answer.verdict.flow.max(Flow::Block);
    answer.verdict.patch.clear();
}

#[derive(Default)]
struct Words {
    reason: Option<String>,
    message: Option<String>,
    system: Option<String>,
}

struct AnswerReader<'a> {
    object: &'a Object,
    /// The answer's `hookSpecificOutput`.
    nested: Option<Object>,
    native: &'a [&'a str],
    kind: EventKind,
    reading: AnswerFields,
    words: Words,
}

impl AnswerReader<'_> {
    /// Warns about the form of the answer as a whole.
    fn shape(&mut self) {
        if self.object.cut {
            self.reading.faults.push("the answer is nested too deeply; its innermost values are left out".to_owned());
        }
        if self.object.mended {
            self.reading.warnings.push("escapes that stand for no character are replaced".to_owned());
        }
        for value in self.object.values("hookSpecificOutput") {
            if value.is_object() {
                self.note_foreign("hookSpecificOutput");
            } else {
                self.fault("hookSpecificOutput", value, "an object");
            }
        }
    }

    /// Reads `continue` and `allow`.
    fn flags(&mut self) {
        for field in ["continue", "allow"] {
            for value in self.object.values(field) {
                match value {
                    Value::Bool(go_on) => self.decide(field, if *go_on { Flow::NoOpinion } else { Flow::Block }),
                    other => {
                        if other.as_str().is_some_and(|text| text.eq_ignore_ascii_case("false")) {
                            self.decide(field, Flow::Block);
                        }
                        self.fault(field, other, "true or false");
                    }
                }
            }
        }
    }

    /// Reads `decision`, and `permissionDecision` one level down.
    fn decisions(&mut self) {
        for value in self.object.values("decision") {
            self.decision("decision", value);
        }
        let nested = self.nested.clone().unwrap_or_default();
        for value in nested.values("permissionDecision") {
            self.decision("hookSpecificOutput", value);
        }
    }

    fn decision(&mut self, field: &'static str, value: &Value) {
        let word = value.as_str().unwrap_or_default();
        match word.to_ascii_lowercase().as_str() {
            "block" | "deny" => self.decide(field, Flow::Block),
            // With `defer`, Claude Code stops before the call until a person looks at it.
            "ask" | "defer" => self.decide(field, Flow::Ask),
            "modify" => self.decide(field, Flow::NoOpinion),
            "approve" | "allow" if word.chars().all(|letter| letter.is_ascii_lowercase()) => {
                let flow = if self.native.contains(&field) { Flow::Allow } else { Flow::NoOpinion };
                self.decide(field, flow);
            }
            _ => {}
        }
        if !matches!(word, "block" | "deny" | "ask" | "defer" | "modify" | "approve" | "allow") {
            self.fault(field, value, "one of approve, allow, block, deny, ask, modify");
        }
    }

    /// Reads reasons and messages.
    fn texts(&mut self) {
        self.words.reason = self.text("reason").or_else(|| self.text("stopReason"));
        self.words.message = self.text("message");
        self.words.system = self.text("systemMessage");
        let Some(nested) = self.nested.as_ref().map(|nested| &nested.fields) else { return };
        if let Some(reason) = nested.get("permissionDecisionReason").and_then(Value::as_str) {
            self.words.reason.get_or_insert(reason.to_owned());
        }
        if let Some(context) = nested.get("additionalContext").and_then(Value::as_str) {
            self.reading.verdict.context.push(context.to_owned());
        }
    }

    /// Reads the fields with data.
    fn payloads(&mut self) {
        if let Some(data) = self.map("data") {
            if self.kind == EventKind::BeforeToolSelection {
                self.reading.verdict.tools = kept_tools(&data);
            }
            self.reading.verdict.data = data;
        }
        if let Some(metadata) = self.map("metadata") {
            self.reading.verdict.metadata = metadata;
        }
        let patch = self.map("modified_args");
        let nested = self.nested.as_ref().map(|nested| &nested.fields);
        let patch = patch.or_else(|| nested?.get("updatedInput")?.as_object().cloned());
        let patch = patch.or_else(|| nested?.get("decision")?.get("updatedInput")?.as_object().cloned());
        if let Some(patch) = patch {
            if matches!(self.kind, EventKind::BeforeTool | EventKind::ApprovalRequest) {
                self.reading.verdict.patch = patch;
            } else {
                let event = self.kind.name();
                self.reading.warnings.push(format!("arguments cannot be modified at {event}; ignored"));
            }
        }
        if self.kind == EventKind::AfterTool {
            self.reading.verdict.result = nested.and_then(|nested| nested.get("updatedToolOutput")).cloned();
        }
    }

    /// Reads `action` with its `prompt`.
    fn action(&mut self) {
        let Some(action) = self.object.fields.get("action") else { return };
        match (action.as_str(), self.object.fields.get("prompt").and_then(Value::as_str)) {
            (Some("askAgent"), Some(prompt)) => {
                self.decide("action", Flow::NoOpinion);
                self.reading.verdict.prompts.push(prompt.to_owned());
            }
            (Some("askAgent"), None) => {
                self.reading.faults.push("`action` is askAgent, but `prompt` is missing".into());
            }
            (Some("runCommand"), _) => {
                let fault = "an answer may not ask for runCommand; declare a hook with that action instead";
                self.reading.faults.push(fault.to_owned());
            }
            _ => self.fault("action", action, "askAgent"),
        }
    }

    fn finish(mut self) -> AnswerFields {
        let verdict = &mut self.reading.verdict;
        let Words { reason, message, system } = self.words;
        if verdict.flow >= Flow::Ask {
            verdict.reasons.extend(reason.or_else(|| message.clone()).or_else(|| system.clone()));
        } else {
            verdict.messages.extend(reason);
        }
        verdict.messages.extend(message);
        verdict.system_messages.extend(system);
        self.reading
    }

    fn decide(&mut self, field: &'static str, flow: Flow) {
        self.note_foreign(field);
        self.reading.decided = true;
        self.reading.verdict.flow = self.reading.verdict.flow.max(flow);
    }

    fn text(&mut self, field: &'static str) -> Option<String> {
        match self.object.fields.get(field)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => {
                self.note_foreign(field);
                Some(text.clone())
            }
            Value::Null => None,
            other => {
                self.fault(field, other, "text");
                None
            }
        }
    }

    fn map(&mut self, field: &'static str) -> Option<Map<String, Value>> {
        match self.object.fields.get(field)? {
            Value::Object(map) => {
                self.note_foreign(field);
                Some(map.clone())
            }
            Value::Null => None,
            other => {
                self.fault(field, other, "an object");
                None
            }
        }
    }

    fn note_foreign(&mut self, field: &'static str) {
        if !self.native.contains(&field) {
            let warning = format!("`{field}` belongs to another dialect");
            if !self.reading.warnings.contains(&warning) {
                self.reading.warnings.push(warning);
            }
        }
    }

    /// Reports an unreadable field: a fault if the field belongs to the dialect, otherwise a warning.
    fn fault(&mut self, field: &str, value: &Value, expected: &str) {
        let shown: String = value.to_string().chars().take(80).collect();
        let text = format!("`{field}` is {shown}, expected {expected}");
        if self.native.contains(&field) {
            self.reading.faults.push(text);
        } else {
            self.reading.warnings.push(text);
        }
    }
}

fn kept_tools(data: &Map<String, Value>) -> Option<Vec<String>> {
    let tools = data.get("available_tools")?.as_array()?;
    Some(tools.iter().filter_map(tool_name).map(str::to_owned).collect())
}
