//! Which records are wanted.

use ollm_protocol::dialect::Named;

use super::record::{Record, at};

/// What a record must be to be shown. The default wants all of them.
#[derive(Clone, Debug, Default)]
pub struct TraceFilter {
    /// Only these events.
    pub event: Option<Named>,
    /// Only events for which this hook ran, or was skipped; its id or name.
    pub hook: Option<String>,
    /// Only events in which a hook ended like this; `skipped` for one that did not run.
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
    /// Whether a record is wanted.
    pub fn fits(&self, record: &Record) -> bool {
        self.event.as_ref().is_none_or(|event| is_about(record, event))
            && self.hook.as_ref().is_none_or(|hook| record.concerns(hook))
            && self.status.is_none_or(|status| has_status(record, status))
            && self.session.as_ref().is_none_or(|session| record.text("session") == session)
            && (!self.blocked || !record.continues())
            && self.until.as_ref().is_none_or(|until| record.text("time") <= until.as_str())
            // All times are in the one form of ISO 8601 whose order is that of time.
            && self.since.as_ref().is_none_or(|since| record.text("time") >= since.as_str())
    }
}

fn is_about(record: &Record, event: &Named) -> bool {
    event.kinds.iter().any(|kind| kind.name() == record.text("event"))
        && event.custom.as_ref().is_none_or(|name| name == record.text("subject"))
}

fn has_status(record: &Record, status: &str) -> bool {
    match status {
        "skipped" => !record.list("skipped").is_empty(),
        _ => record.list("hooks").iter().any(|hook| at(hook, "status") == status),
    }
}
