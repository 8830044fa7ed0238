//! The stored records, newest first, each with what came of its async hooks later.

use std::collections::{HashMap, VecDeque};

use ollm_engine::trace::VERSION;
use ollm_protocol::{Event, EventKind};
use ollm_store::{FileError, Lines, RotatingLog, escape_for_json};
use serde_json::Value;

/// An async hook may be done before its event has left its own record: so many lines further back it is looked for.
const LOOK_BACK: usize = 64;

/// One record of an event.
#[derive(Clone, Debug)]
pub struct Record {
    /// The record as it is stored, with what came of its async hooks.
    pub value: Value,
}

/// How a hook ended that nobody waited for.
#[derive(Debug)]
pub(crate) struct LateEnd {
    /// The dispatch it belongs to.
    pub(crate) trace_id: String,
    /// The hook's id.
    pub(crate) id: String,
    /// What went wrong, if anything did.
    pub(crate) error: Option<String>,
}

impl LateEnd {
    /// The one in a line, if that is about one.
    pub(crate) fn of_line(line: &[u8]) -> Option<LateEnd> {
        let record = Record::parse(line).ok()?;
        let text = |field: &str| Some(record.late()?.get(field)?.as_str()?.to_owned());
        Some(LateEnd { trace_id: record.id().to_owned(), id: text("id")?, error: text("error") })
    }
}

impl Record {
    /// The record in a line as it is stored; none for what came of an async hook, and for what is damaged or newer.
    pub fn of_line(line: &[u8]) -> Option<Record> {
        Record::parse(line).ok().filter(|record| record.late().is_none())
    }

    /// A line, or what was written behind one that ends in its middle.
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

    /// The record as JSON, with nothing in it that hides.
    pub fn json(&self) -> String {
        escape_for_json(&self.value.to_string()).into_owned()
    }

    /// What came of an async hook, if this is that and no record of an event.
    fn late(&self) -> Option<&Value> {
        self.value.get("late").filter(|late| late.is_object())
    }

    /// Whether an async hook of it is not known to have ended.
    fn waits(&self) -> bool {
        self.list("hooks").iter().any(|hook| at(hook, "async") == true && hook.get("late").is_none())
    }

    /// Puts what came of an async hook beside what is known of it.
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

    /// Whether this is the beginning of its id, or the end, which differs most.
    pub fn is_named(&self, part: &str) -> bool {
        !part.is_empty() && (self.id().starts_with(part) || self.id().ends_with(part))
    }

    /// A field that is text; empty if it is not.
    pub fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field that is a list.
    pub fn list(&self, field: &str) -> &[Value] {
        self.value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The hooks that ran, in the order of the plan.
    pub fn runs(&self) -> impl Iterator<Item = HookRun<'_>> {
        // A text among them says that there were more.
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

    /// A part of what hooks answered. Records with all data of their event have all parts, others the reason.
    pub fn answer(&self, part: &str) -> Option<&Value> {
        let whole = self.value.get("answer").and_then(|answer| answer.get(part));
        whole.or_else(|| Some(self.verdict(part)).filter(|said| part == "reason" && !said.is_null()))
    }

    /// Whether the operation went on.
    pub fn continues(&self) -> bool {
        self.verdict("continue") == &Value::Bool(true)
    }

    /// The event as it was, where its data was kept as a whole; why it cannot be had otherwise.
    pub fn event(&self) -> Result<Event, String> {
        let name = self.text("event");
        let kind = EventKind::from_name(name).ok_or_else(|| format!("this version knows no event `{name}`"))?;
        match (self.value.get("payload"), self.value.get("payloadMissing")) {
            (Some(Value::Object(data)), _) => Ok(Event { kind, data: data.clone() }),
            (_, Some(why)) => Err(why.as_str().unwrap_or_default().to_owned()),
            _ => Err("its data was not kept as a whole; `trace.payload: full` keeps it".to_owned()),
        }
    }

    /// Whether secrets are missing in the event.
    pub fn is_redacted(&self) -> bool {
        self.value.get("payloadRedacted") == Some(&Value::Bool(true))
    }

    /// Whether a hook of this id or name ran, or was to run, or was skipped.
    pub fn concerns(&self, hook: &str) -> bool {
        let listed = self.list("hooks").iter().chain(self.list("skipped"));
        let mut planned = self.list("plan").iter().filter_map(Value::as_array).flatten();
        planned.any(|id| id == hook)
            || listed.into_iter().any(|entry| at(entry, "id") == hook || at(entry, "name") == hook)
    }
}

/// What a record says of a hook that ran.
#[derive(Clone, Copy, Debug)]
pub struct HookRun<'r> {
    /// The hook's id.
    pub id: &'r str,
    /// Its name.
    pub name: &'r str,
    /// How it ended: ok, blocked, failed, timeout.
    pub status: &'r str,
    /// What it said: no_opinion, allow, ask, block, halt.
    pub flow: &'r str,
    /// When it started, in milliseconds from the event on.
    pub start: f64,
    /// How long it took, in milliseconds.
    pub millis: f64,
    /// Why it failed.
    pub error: Option<&'r str>,
    /// All that is stored.
    pub value: &'r Value,
}

impl HookRun<'_> {
    fn of(value: &Value) -> HookRun<'_> {
        let text = |field| at(value, field).as_str().unwrap_or_default();
        let number = |field| at(value, field).as_f64().unwrap_or_default();
        HookRun {
            id: text("id"),
            name: text("name"),
            status: text("status"),
            flow: text("flow"),
            start: number("startMs"),
            millis: number("durationMs"),
            error: at(value, "error").as_str(),
            value,
        }
    }

    /// Whether it is one of the program's own.
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

/// Why a line is no record.
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
    /// Whether there are older lines, in a file that is longer than it may be.
    pub older: bool,
}

/// All records, newest first; lines that are none are counted.
#[derive(Debug)]
pub struct Records {
    lines: Option<Lines>,
    /// What came of async hooks, by the record it belongs to.
    late: HashMap<String, Vec<Value>>,
    /// Records that were read while looking further back.
    ahead: VecDeque<Record>,
    broken: usize,
    newer: usize,
}

impl Records {
    /// The records of a log, if there is one.
    pub fn open(trail: Option<RotatingLog>) -> Result<Records, FileError> {
        let lines = trail.map(|trail| trail.lines()).transpose()?;
        Ok(Records { lines, late: HashMap::new(), ahead: VecDeque::new(), broken: 0, newer: 0 })
    }

    /// The next record of an event, as it is stored.
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

    /// The record with what came of its async hooks, as far as that is known.
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

    /// How many lines were left out so far.
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

/// Where in a torn line the next record may begin: as all of them do.
fn behind(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGINNING: &[u8] = b"{\"version\":";
    let starts = line.windows(BEGINNING.len()).enumerate().skip(1).filter(|(_, start)| *start == BEGINNING);
    starts.filter_map(|(at, _)| line.get(at..))
}
