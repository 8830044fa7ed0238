//! Reads the stored records, newest first, each with the results of its async hooks.

use std::collections::{HashMap, VecDeque};

use ollm_engine::trace::VERSION;
use ollm_protocol::{Event, EventKind};
use ollm_store::{FileError, Lines, RotatingLog, escape_for_json};
use serde_json::{Map, Value};

use crate::connect::TEST_EVENT;
use crate::connect::nonce::is_test;

/// How many lines further back to look for a result: an async hook may end before its event is recorded.
const LOOK_BACK: usize = 64;

/// One record of an event.
#[derive(Clone, Debug)]
pub struct Record {
    /// The stored record, with the results of its async hooks.
    pub value: Value,
}

/// The end of a background hook.
#[derive(Debug)]
pub(crate) struct LateEnd {
    /// The dispatch it belongs to.
    pub(crate) trace_id: String,
    /// The hook's id.
    pub(crate) id: String,
    /// The error, if it failed.
    pub(crate) error: Option<String>,
    /// The output of its program, if it says more than the error.
    pub(crate) stack: Option<String>,
}

impl LateEnd {
    /// The end of a background hook, if a line records one.
    pub(crate) fn of_line(line: &[u8]) -> Option<LateEnd> {
        let record = Record::parse(line).ok()?;
        let text = |field: &str| Some(record.late()?.get(field)?.as_str()?.to_owned());
        Some(LateEnd { trace_id: record.id().to_owned(), id: text("id")?, error: text("error"), stack: text("stack") })
    }
}

impl Record {
    /// The record in a line, unchanged. `None` for the result of an async hook, and for damaged or newer lines.
    pub fn of_line(line: &[u8]) -> Option<Record> {
        Record::parse(line).ok().filter(|record| record.late().is_none())
    }

    /// Parses a line. If the line was cut off, parses the record that was written after it.
    fn parse(line: &[u8]) -> Result<Record, Damage> {
        let whole = Record::read(line);
        match whole {
            Err(Damage::Broken) => behind(line).find_map(|rest| Record::read(rest).ok()).ok_or(Damage::Broken),
            whole => whole,
        }
    }

    fn read(line: &[u8]) -> Result<Record, Damage> {
        let value: Value = serde_json::from_slice(line).map_err(|_| Damage::Broken)?;
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) if value.get("traceId").is_some_and(Value::is_string) => Ok(Record { value }),
            Some(newer) if newer > VERSION => Err(Damage::Newer),
            _ => Err(Damage::Broken),
        }
    }

    /// The record as JSON, without invisible characters.
    pub fn json(&self) -> String {
        escape_for_json(&self.value.to_string()).into_owned()
    }

    /// The result of an async hook, if this is one and not the record of an event.
    fn late(&self) -> Option<&Value> {
        self.value.get("late").filter(|late| late.is_object())
    }

    /// Whether an async hook of it has no known end.
    fn waits(&self) -> bool {
        self.list("hooks").iter().any(|hook| at(hook, "async") == true && hook.get("late").is_none())
    }

    /// Adds the result of an async hook to its run.
    fn join(&mut self, mut late: Value) {
        let id = late.as_object_mut().and_then(|late| late.shift_remove("id"));
        let hooks = self.value.get_mut("hooks").and_then(Value::as_array_mut).into_iter().flatten();
        let mut own = hooks.filter(|hook| at(hook, "async") == true && hook.get("id") == id.as_ref());
        if let Some(hook) = own.next().and_then(Value::as_object_mut) {
            hook.insert("late".to_owned(), late);
        }
    }

    /// Its `traceId`.
    pub fn id(&self) -> &str {
        self.text("traceId")
    }

    /// Whether it belongs to the test of a connection, and not to an agent's session.
    pub fn is_test(&self) -> bool {
        is_test(self.text("session")) || self.text("event") == "custom" && self.text("subject") == TEST_EVENT
    }

    /// Whether the text is the beginning of its id, or the end, which differs most.
    pub fn is_named(&self, part: &str) -> bool {
        !part.is_empty() && (self.id().starts_with(part) || self.id().ends_with(part))
    }

    /// A text field; empty if it is missing or no text.
    pub fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A list field; empty if it is missing or no list.
    pub fn list(&self, field: &str) -> &[Value] {
        self.value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The hooks that ran, in the order of the plan.
    pub fn runs(&self) -> impl Iterator<Item = HookRun<'_>> {
        // A text in the list says that there were more runs.
        self.list("hooks").iter().filter(|hook| hook.is_object()).map(HookRun::of)
    }

    /// How long the event took, in milliseconds.
    pub fn millis(&self) -> f64 {
        at(&self.value, "durationMs").as_f64().unwrap_or_default()
    }

    /// A field of the verdict.
    pub fn verdict(&self, field: &str) -> &Value {
        at(self.value.get("verdict").unwrap_or(&Value::Null), field)
    }

    /// A part of the hooks' answer. Records with all data of their event have all parts; other records have only the
    /// reason.
    pub fn answer(&self, part: &str) -> Option<&Value> {
        let whole = self.value.get("answer").and_then(|answer| answer.get(part));
        whole.or_else(|| Some(self.verdict(part)).filter(|said| part == "reason" && !said.is_null()))
    }

    /// Whether the operation went on.
    pub fn continues(&self) -> bool {
        self.verdict("continue") == &Value::Bool(true)
    }

    /// The recorded event, if all its data was stored; otherwise the reason why not.
    pub fn event(&self) -> Result<Event, String> {
        let name = self.text("event");
        let kind = EventKind::from_name(name).ok_or_else(|| format!("this version knows no event `{name}`"))?;
        match (self.value.get("payload"), self.value.get("payloadMissing")) {
            (Some(Value::Object(data)), _) => Ok(event_of(kind, data)),
            (_, Some(why)) => Err(why.as_str().unwrap_or_default().to_owned()),
            _ => Err("its data was not kept as a whole; `trace.payload: full` keeps it".to_owned()),
        }
    }

    /// Whether secrets were removed from the event.
    pub fn is_redacted(&self) -> bool {
        self.value.get("payloadRedacted") == Some(&Value::Bool(true))
    }

    /// Whether a hook with this id or name ran, was planned, or was skipped.
    pub fn concerns(&self, hook: &str) -> bool {
        let listed = self.list("hooks").iter().chain(self.list("skipped"));
        let mut planned = self.list("plan").iter().filter_map(Value::as_array).flatten();
        planned.any(|id| id == hook)
            || listed.into_iter().any(|entry| at(entry, "id") == hook || at(entry, "name") == hook)
    }
}

/// An event with its stored data, unchanged.
pub fn event_of(kind: EventKind, data: &Map<String, Value>) -> Event {
    Event::unchecked(kind, data.iter().map(|(name, value)| (name.as_str(), value.clone())))
}

/// The record of one hook's run.
#[derive(Clone, Copy, Debug)]
pub struct HookRun<'r> {
    /// The hook's id.
    pub id: &'r str,
    /// Its name.
    pub name: &'r str,
    /// Its status: ok, blocked, failed, timeout.
    pub status: &'r str,
    /// Its decision: no_opinion, allow, ask, block, halt.
    pub flow: &'r str,
    /// The start, in milliseconds after the event.
    pub start: f64,
    /// How long it took, in milliseconds.
    pub millis: f64,
    /// Why it failed.
    pub error: Option<&'r str>,
    /// Everything that is stored.
    pub value: &'r Value,
}

impl HookRun<'_> {
    fn of(value: &Value) -> HookRun<'_> {
        let text = |field| at(value, field).as_str().unwrap_or_default();
        // The end of a background hook is recorded later than its start.
        let late = value.get("late").unwrap_or(value);
        let number = |field| at(value, field).as_f64().unwrap_or_default();
        HookRun {
            id: text("id"),
            name: text("name"),
            status: late.get("status").and_then(Value::as_str).unwrap_or_else(|| text("status")),
            flow: text("flow"),
            start: number("startMs"),
            millis: number("durationMs"),
            error: at(value, "error").as_str().or_else(|| at(late, "error").as_str()),
            value,
        }
    }

    /// The parts of its answer besides the decision: context, modifiedArgs, result, and so on.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        at(self.value, "parts").as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether it is a built-in hook.
    pub fn is_builtin(&self) -> bool {
        at(self.value, "source") == "builtin"
    }
}

/// A field; null if it is not there.
pub fn at<'a>(value: &'a Value, field: &str) -> &'a Value {
    value.get(field).unwrap_or(&Value::Null)
}

/// Records as one JSON array.
pub fn array(records: &[Record]) -> String {
    let lines: Vec<String> = records.iter().map(Record::json).collect();
    format!("[{}]", lines.join(","))
}

/// The reason why a line is no record.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Broken,
    Newer,
}

/// Lines of the trace that are no records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Lines that are damaged.
    pub broken: usize,
    /// Lines that a newer version wrote.
    pub newer: usize,
    /// Whether older lines are missing, because the file is longer than allowed.
    pub older: bool,
}

/// All records, newest first; other lines are counted.
#[derive(Debug)]
pub struct Records {
    lines: Option<Lines>,
    /// The results of async hooks, by their record.
    late: HashMap<String, Vec<Value>>,
    /// Records that were read while looking further back.
    ahead: VecDeque<Record>,
    broken: usize,
    newer: usize,
}

impl Records {
    /// The records of a log, if there is one.
    pub fn open(trace_log: Option<RotatingLog>) -> Result<Records, FileError> {
        let lines = trace_log.map(|trace_log| trace_log.lines()).transpose()?;
        Ok(Records { lines, late: HashMap::new(), ahead: VecDeque::new(), broken: 0, newer: 0 })
    }

    /// The next record of an event, unchanged.
    fn read(&mut self) -> Result<Option<Record>, FileError> {
        loop {
            let Some(line) = self.lines.as_mut().and_then(Iterator::next) else { return Ok(None) };
            match Record::parse(&line?) {
                Ok(record) => match record.late() {
                    Some(late) => self.late.entry(record.id().to_owned()).or_default().push(late.clone()),
                    None => return Ok(Some(record)),
                },
                Err(Damage::Broken) => self.broken += 1,
                Err(Damage::Newer) => self.newer += 1,
            }
        }
    }

    /// The record with the known results of its async hooks.
    fn joined(&mut self, mut record: Record) -> Result<Record, FileError> {
        self.settle(&mut record);
        while record.waits() && self.ahead.len() < LOOK_BACK {
            let further = self.read()?;
            self.settle(&mut record);
            let Some(further) = further else { break };
            self.ahead.push_back(further);
        }
        Ok(record)
    }

    fn settle(&mut self, record: &mut Record) {
        for late in self.late.remove(record.id()).unwrap_or_default() {
            record.join(late);
        }
    }

    /// The lines that were left out so far.
    pub fn left_out(&self) -> LeftOut {
        let older = self.lines.as_ref().is_some_and(Lines::has_passed_over);
        LeftOut { broken: self.broken, newer: self.newer, older }
    }
}

impl Iterator for Records {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.ahead.pop_front() {
            Some(record) => record,
            None => match self.read() {
                Ok(record) => record?,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(self.joined(record))
    }
}

/// The places in a cut-off line where the next record may begin.
fn behind(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGINNING: &[u8] = b"{\"version\":";
    let starts = line.windows(BEGINNING.len()).enumerate().skip(1).filter(|(_, start)| *start == BEGINNING);
    starts.filter_map(|(at, _)| line.get(at..))
}
