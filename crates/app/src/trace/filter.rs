//! Selects records.

use ollm_protocol::dialect::NamedEvents;

use super::record::{Record, at};

/// The conditions that a record must meet; by default there are none.
#[derive(Clone, Debug, Default)]
pub struct TraceFilter {
    /// Only these events.
    pub event: Option<NamedEvents>,
    /// Only events for which this hook ran, or was skipped; its id or name.
    pub hook: Option<String>,
    /// Only events in which a hook ended with this status; `skipped` for one that did not run.
    pub status: Option<&'static str>,
    /// Only events of this session.
    pub session: Option<String>,
    /// Only events that did not continue.
    pub blocked: bool,
    /// Only events since this time, in ISO 8601 as records have it.
    pub since: Option<String>,
    /// Only events until this time, likewise.
    pub until: Option<String>,
}

impl TraceFilter {
    /// Whether a record meets all conditions.
    pub fn fits(&self, record: &Record) -> bool {
        self.event.as_ref().is_none_or(|event| is_about(record, event))
            && self.hook.as_ref().is_none_or(|hook| record.concerns(hook))
            && self.status.is_none_or(|status| has_status(record, status))
            && self.session.as_ref().is_none_or(|session| record.text("session") == session)
            && (!self.blocked || !record.continues())
            && self.until.as_ref().is_none_or(|until| record.text("time") <= until.as_str())
            // All times have one form of ISO 8601 whose text order is the order of time.
            && self.since.as_ref().is_none_or(|since| record.text("time") >= since.as_str())
    }
}

fn is_about(record: &Record, event: &NamedEvents) -> bool {
    event.kinds.iter().any(|kind| kind.name() == record.text("event"))
        && event.custom.as_ref().is_none_or(|name| name == record.text("subject"))
}

fn has_status(record: &Record, status: &str) -> bool {
    match status {
        "skipped" => !record.list("skipped").is_empty(),
        _ => record.list("hooks").iter().any(|hook| at(hook, "status") == status),
    }
}
