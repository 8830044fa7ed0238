//! `ollm trace`: what came of earlier events.

use std::time::SystemTime;

use ollm_app::AppContext;
use ollm_app::trace::trail;
use ollm_catalog::{Positions, TraceSettings};
use ollm_engine::trace::iso;
use ollm_protocol::dialect::{Named, event_named};
use ollm_protocol::units;

use crate::arguments::trace::{Format, TraceCommand, TraceFilters, TraceShape};
use crate::error::{Failure, Kind, OK};
use crate::output::Output;

mod compact;
mod pretty;
mod record;

use record::{Record, Records};

/// There is nothing to show.
const NOTHING: u8 = 1;

pub(super) fn run(command: &TraceCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    let env = |name: &str| context.variable(name);
    let (config, _) = ollm_catalog::configuration(&context.places, &env, &context.overrides, Positions::OnDemand);
    let kept = Kept { context, settings: config.trace() };
    match command {
        TraceCommand::Last { shape } => last(shape.format(), &kept, output),
        TraceCommand::List { filters, shape } => list(filters, shape, &kept, output),
        TraceCommand::Show { id, shape } => show(id, shape.format(), &kept, output),
    }
}

/// What was left behind, and how the person likes to see it.
struct Kept<'a> {
    context: &'a AppContext,
    settings: TraceSettings,
}

impl Kept<'_> {
    fn open(&self) -> Result<Records, Failure> {
        Records::open(trail(self.context, &self.settings))
    }

    fn format(&self) -> Format {
        match self.settings.format.as_str() {
            "json" => Format::Json,
            "compact" => Format::Compact,
            _ => Format::Pretty,
        }
    }
}

fn last(format: Option<Format>, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let mut records = kept.open()?;
    let newest = records.next().transpose()?;
    records.tell_damage(output);
    match newest {
        Some(record) => print(&record, format.unwrap_or_else(|| kept.format()), output),
        None => Ok(nothing(kept, output)),
    }
}

fn list(filters: &TraceFilters, shape: &TraceShape, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let wanted = Wanted::new(filters)?;
    let mut records = kept.open()?;
    let mut found: Vec<Record> = Vec::new();
    let mut any = false;
    while found.len() < filters.number
        && let Some(record) = records.next()
    {
        any = true;
        found.extend(Some(record?).filter(|record| wanted.fits(record)));
    }
    records.tell_damage(output);
    if !any && filters.number > 0 {
        nothing(kept, output);
    }
    // As in every log, the newest stands last.
    found.reverse();
    match shape.format().unwrap_or(Format::Compact) {
        Format::Json => output.json_text(&record::array(&found)),
        Format::Compact if found.is_empty() => Ok(OK),
        Format::Compact => output.text(&compact::table(&found)),
        Format::Pretty => output.text(&found.iter().map(pretty::text).collect::<Vec<_>>().join("\n")),
    }
}

fn show(id: &str, format: Option<Format>, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let format = format.unwrap_or_else(|| kept.format());
    let mut records = kept.open()?;
    let mut found: Vec<Record> = Vec::new();
    for record in records.by_ref() {
        found.extend(Some(record?).filter(|record| record.is_named(id)));
    }
    records.tell_damage(output);
    if let Some(exact) = found.iter().find(|record| record.id() == id) {
        return print(exact, format, output);
    }
    match found.as_slice() {
        [record] => print(record, format, output),
        [] => Err(unclear(format!("there is no trace `{id}`")).hint("`ollm trace list` shows those there are")),
        many => {
            let ids: Vec<&str> = many.iter().take(5).map(Record::id).collect();
            Err(unclear(format!("`{id}` stands for {} traces", many.len()))
                .hint(format!("write more of it: {}", ids.join(", "))))
        }
    }
}

fn unclear(message: String) -> Failure {
    Failure::new(Kind::Usage, message)
}

fn print(record: &Record, format: Format, output: &mut Output) -> Result<u8, Failure> {
    match format {
        Format::Json => output.json_text(&record.json()),
        Format::Compact => output.text(&compact::line(record)),
        Format::Pretty => output.text(&pretty::text(record)),
    }
}

fn nothing(kept: &Kept<'_>, output: &mut Output) -> u8 {
    output.tell(match (kept.context.own_home(), kept.settings.enabled) {
        (None, _) => "there is no home to keep traces in; set HOME or OLLM_HOME",
        (_, false) => "there is no trace: trace.enabled or OLLM_TRACE_ENABLED switches it off",
        _ => "there is no trace yet; every event that passes through hooks leaves one",
    });
    NOTHING
}

/// What was asked for, understood.
struct Wanted<'a> {
    event: Option<Named>,
    hook: Option<&'a str>,
    blocked: bool,
    since: Option<String>,
}

impl Wanted<'_> {
    fn new(filters: &TraceFilters) -> Result<Wanted<'_>, Failure> {
        let event = filters.event.as_deref().map(event_named).transpose();
        let since = filters.since.as_deref().map(|text| moment(text).ok_or(text)).transpose();
        Ok(Wanted {
            event: event?,
            hook: filters.hook.as_deref(),
            blocked: filters.blocked,
            since: since.map_err(|text| {
                Failure::usage(format!("--since {text}: not a length of time")).hint("write 30s, 10m or 2h")
            })?,
        })
    }

    fn fits(&self, record: &Record) -> bool {
        self.event.as_ref().is_none_or(|event| is_about(record, event))
            && self.hook.is_none_or(|hook| record.concerns(hook))
            && (!self.blocked || !record.continues())
            // Both are in the one form of ISO 8601 whose order is that of time.
            && self.since.as_ref().is_none_or(|since| record.text("time") >= since.as_str())
    }
}

fn is_about(record: &Record, event: &Named) -> bool {
    event.kinds.iter().any(|kind| kind.name() == record.text("event"))
        && event.custom.as_ref().is_none_or(|name| name == record.text("subject"))
}

/// So long ago.
fn moment(text: &str) -> Option<String> {
    Some(iso(SystemTime::now().checked_sub(units::duration(text)?)?))
}
