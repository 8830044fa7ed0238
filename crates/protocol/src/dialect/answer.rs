//! What the fields of an answer mean, for all dialects at once.
//!
//! A dialect names the fields that are its own. The unambiguous fields of the others are accepted with a warning, and
//! may only tighten: a foreign refusal refuses, a foreign approval approves nothing. Where two fields disagree, the
//! refusing one wins.

use serde_json::{Map, Value};

use super::{Answer, End, Output};
use crate::event::{EventKind, tool_name};
use crate::json::{Object, Scan};
use crate::verdict::{Flow, Verdict};

/// The fields of one answer, read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) verdict: Verdict,
    /// What is wrong with the answer.
    pub(super) faults: Vec<String>,
    /// What is odd about it.
    pub(super) warnings: Vec<String>,
    /// Whether some field decided something.
    pub(super) decided: bool,
}

impl Reading {
    /// The answer, failed if anything was wrong with it.
    pub(super) fn into_answer(self) -> Answer {
        let failure = (!self.faults.is_empty()).then(|| self.faults.join("; "));
        Answer { verdict: self.verdict, failure, warnings: self.warnings }
    }
}

/// Reads an object's fields; `native` are the ones the dialect documents. A refusal in a JSON-RPC envelope counts.
pub(super) fn read(object: &Object, native: &[&str], kind: EventKind) -> Reading {
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

/// Reads an object's fields, and nothing further in that only an envelope would hold.
pub(super) fn read_fields(object: &Object, native: &[&str], kind: EventKind) -> Reading {
    let nested = object.inside("hookSpecificOutput");
    let mut reader = Reader { object, nested, native, kind, reading: Reading::default(), words: Words::default() };
    reader.shape();
    reader.flags();
    reader.decisions();
    reader.texts();
    reader.payloads();
    reader.action();
    reader.finish()
}

/// The data of a written answer; the tools that stay on offer are part of it.
pub(super) fn data(verdict: &Verdict) -> Map<String, Value> {
    let mut data = verdict.data.clone();
    if let Some(tools) = &verdict.tools {
        data.insert("available_tools".to_owned(), tools.clone().into());
    }
    data
}

/// Of an output that is not the one object it should be: the refusals in it, and nothing else.
pub(super) fn refusals(scan: &Scan, kind: EventKind) -> Verdict {
    let refusals = scan.objects.iter().map(|object| {
        let plain = only_refusal(read_fields(object, &[], kind).verdict);
        plain.then(refusal(object, kind))
    });
    refusals.fold(Verdict::default(), Verdict::then)
}

/// The refusal in the `result` of an envelope, if there is one.
fn refusal(envelope: &Object, kind: EventKind) -> Verdict {
    let result = envelope.inside("result").unwrap_or_default();
    only_refusal(read_fields(&result, &[], kind).verdict)
}

/// A refusal with its texts, without everything else the verdict holds; nothing if it does not refuse.
fn only_refusal(verdict: Verdict) -> Verdict {
    if verdict.flow < Flow::Ask {
        return Verdict::default();
    }
    let Verdict { flow, reasons, system_messages, messages, .. } = verdict;
    Verdict { flow, reasons, system_messages, messages, ..Verdict::default() }
}

/// The object an answer consists of where log lines in front of it are tolerated; else why there is none.
pub(super) fn one_object<'a>(scan: &'a Scan, warnings: &mut Vec<String>) -> Result<&'a Object, String> {
    if let Some(object) = scan.sole() {
        return Ok(object);
    }
    match scan.objects.as_slice() {
        [] => Err(scan.error.clone().unwrap_or_else(|| "there is no JSON object in the output".to_owned())),
        [_] if scan.after => Err("there is other text after the JSON object".to_owned()),
        [_] if scan.broken => Err("the JSON object stands in one that cannot be read".to_owned()),
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

/// An answer that failed before its fields could be read; a refusal that stands in it still counts.
pub(super) fn failed(failure: String, scan: &Scan, kind: EventKind, warnings: Vec<String>) -> Answer {
    Answer { verdict: refusals(scan, kind), failure: Some(failure), warnings }
}

/// Adds the failure of the process itself, if there is one, in front of what the answer said. A failed hook approves
/// nothing.
pub(super) fn with_end(mut answer: Answer, output: &Output<'_>) -> Answer {
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

/// The same in dialects whose documents make exit status 2 a mere failure: whoever is used to other agents is told so.
pub(super) fn with_plain_end(answer: Answer, output: &Output<'_>) -> Answer {
    let refuses = answer.verdict.flow.refuses();
    let mut answer = with_end(answer, output);
    if let Some(failure) = answer.failure.as_mut().filter(|_| output.end == End::Exited(2) && !refuses) {
        failure.push_str("; exit 2 refuses in a hook with \"dialect\": \"agent\", not here");
    }
    answer
}

/// An exit status that refuses does so whatever the JSON says; the reason is the JSON's own if it refuses too, else standard error.
pub(super) fn block_by_status(answer: &mut Answer, stderr: &[u8]) {
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

struct Reader<'a> {
    object: &'a Object,
    /// The answer's `hookSpecificOutput`.
    nested: Option<Object>,
    native: &'a [&'a str],
    kind: EventKind,
    reading: Reading,
    words: Words,
}

impl Reader<'_> {
    /// What is odd about the answer as a whole.
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

    /// `continue` and `allow`.
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

    /// `decision`, and `permissionDecision` one level down.
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
            "ask" => self.decide(field, Flow::Ask),
            "modify" => self.decide(field, Flow::NoOpinion),
            "approve" | "allow" if word.chars().all(|letter| letter.is_ascii_lowercase()) => {
                let flow = if self.native.contains(&field) { Flow::Allow } else { Flow::NoOpinion };
                self.decide(field, flow);
            }
            _ => {}
        }
        if !matches!(word, "block" | "deny" | "ask" | "modify" | "approve" | "allow") {
            self.fault(field, value, "one of approve, allow, block, deny, ask, modify");
        }
    }

    /// Reasons and messages.
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

    /// Everything that carries data.
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
        if let Some(patch) = patch {
            if self.kind == EventKind::BeforeTool {
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

    /// `action` with its `prompt`.
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

    fn finish(mut self) -> Reading {
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

    /// A field that cannot be read is a fault where it belongs, and only odd where it does not.
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
