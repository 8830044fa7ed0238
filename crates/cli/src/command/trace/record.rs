//! The stored records, newest first, each with what came of its async hooks later.

use std::collections::{HashMap, VecDeque};

use ollm_engine::trace::VERSION;
use ollm_store::{FileError, Lines, RotatingLog, escape_for_json};
use serde_json::Value;

use crate::error::{Failure, Kind};
use crate::output::Output;

/// An async hook may be done before its event has left its own record: so many lines further back it is looked for.
const LOOK_BACK: usize = 64;

/// One record.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) value: Value,
}

impl Record {
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
    pub(super) fn json(&self) -> String {
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

    pub(super) fn id(&self) -> &str {
        self.text("traceId")
    }

    /// Whether this is the beginning of its id, or the end, which differs most.
    pub(super) fn is_named(&self, part: &str) -> bool {
        !part.is_empty() && (self.id().starts_with(part) || self.id().ends_with(part))
    }

    /// A field that is text; empty if it is not.
    pub(super) fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field that is a list.
    pub(super) fn list(&self, field: &str) -> &[Value] {
        self.value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn verdict(&self, field: &str) -> &Value {
        at(self.value.get("verdict").unwrap_or(&Value::Null), field)
    }

    pub(super) fn continues(&self) -> bool {
        self.verdict("continue") == &Value::Bool(true)
    }

    /// Whether a hook of this id or name ran, or was to run, or was skipped.
    pub(super) fn concerns(&self, hook: &str) -> bool {
        let listed = self.list("hooks").iter().chain(self.list("skipped"));
        let mut planned = self.list("plan").iter().filter_map(Value::as_array).flatten();
        planned.any(|id| id == hook)
            || listed.into_iter().any(|entry| at(entry, "id") == hook || at(entry, "name") == hook)
    }
}

/// A field; null if it is not there.
pub(super) fn at<'a>(value: &'a Value, field: &str) -> &'a Value {
    value.get(field).unwrap_or(&Value::Null)
}

/// Records as one JSON array.
pub(super) fn array(records: &[Record]) -> String {
    let lines: Vec<String> = records.iter().map(Record::json).collect();
    format!("[{}]", lines.join(","))
}

/// Why a line is no record.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Broken,
    Newer,
}

/// All records, newest first; lines that are none are counted.
#[derive(Debug)]
pub(super) struct Records {
    lines: Option<Lines>,
    /// What came of async hooks, by the record it belongs to.
    late: HashMap<String, Vec<Value>>,
    /// Records that were read while looking further back.
    ahead: VecDeque<Record>,
    broken: usize,
    newer: usize,
}

impl Records {
    pub(super) fn open(trail: Option<RotatingLog>) -> Result<Records, Failure> {
        let lines = trail.map(|trail| trail.lines()).transpose().map_err(|error| unreadable(&error))?;
        Ok(Records { lines, late: HashMap::new(), ahead: VecDeque::new(), broken: 0, newer: 0 })
    }

    /// The next record of an event, as it is stored.
    fn read(&mut self) -> Result<Option<Record>, Failure> {
        loop {
            let Some(line) = self.lines.as_mut().and_then(Iterator::next) else { return Ok(None) };
            match Record::parse(&line.map_err(|error| unreadable(&error))?) {
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
    fn joined(&mut self, mut record: Record) -> Result<Record, Failure> {
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

    /// Says how many lines were left out so far.
    pub(super) fn tell_damage(&self, output: &mut Output) {
        for (count, why) in [(self.broken, "is damaged"), (self.newer, "comes from a newer ollm")] {
            match count {
                0 => {}
                1 => output.tell(&format!("one line of the trace is left out: it {why}")),
                _ => output.tell(&format!("{count} lines of the trace are left out: each {why}")),
            }
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.ahead.pop_front() {
            Some(record) => record,
            None => match self.read() {
                Ok(record) => record?,
                Err(failure) => return Some(Err(failure)),
            },
        };
        Some(self.joined(record))
    }
}

fn unreadable(error: &FileError) -> Failure {
    Failure::new(Kind::Environment, format!("the trace cannot be read: {error}"))
}

/// Where in a torn line the next record may begin: as all of them do.
fn behind(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGINNING: &[u8] = b"{\"version\":";
    let starts = line.windows(BEGINNING.len()).enumerate().skip(1).filter(|(_, start)| *start == BEGINNING);
    starts.filter_map(|(at, _)| line.get(at..))
}
