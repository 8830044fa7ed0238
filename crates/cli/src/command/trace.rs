//! `ollm trace`: shows the outcomes of earlier events.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use ollm_app::trace::{LeftOut, Record, Records, TraceFilter, TraceStats, array, chrome, csv, html, trace_log};
use ollm_app::{App, AppContext, FileFollower};
use ollm_catalog::TraceSettings;
use ollm_protocol::dialect::event_named;
use ollm_protocol::units::iso;
use ollm_protocol::{Code, units};
use ollm_store::{FileError, Follower, RotatingLog};

use crate::arguments::trace::{ExportFormat, Format, TraceArguments, TraceCommand, TraceFilters, TraceShape};
use crate::error::{FINDING, Failure, OK};
use crate::interrupt::Stop;
use crate::output::Output;

mod compact;
mod pretty;
mod stats;
mod waterfall;

pub(crate) use pretty::text as record_text;
pub(crate) use waterfall::event as record_bars;

/// A hook's short name for people: the last part of its id.
fn short_name(id: &str) -> &str {
    id.rsplit(':').next().filter(|name| !name.is_empty()).unwrap_or(id)
}

/// The limit of records in memory.
const MOST: usize = 100_000;

/// How often a followed trace is checked.
const PERIOD: Duration = Duration::from_millis(50);

pub(super) fn run(arguments: &TraceArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    let kept = Kept::find(context);
    let Some(command) = &arguments.command else {
        return session(arguments.session.as_deref(), arguments.json, &kept, output);
    };
    match command {
        TraceCommand::Last { blocked, shape } => last(*blocked, shape.format(), &kept, output),
        TraceCommand::List { filters, number, long, shape } => {
            let found = kept.fitting(filters, *number, output)?.unwrap_or_default();
            list(&found, *long, shape, output)
        }
        TraceCommand::Show { id, shape } => show(id, shape.format(), &kept, output),
        TraceCommand::Follow { filters, shape } => follow(filters, shape, &kept, output),
        TraceCommand::Stats { filters, long, json } => count(filters, *long, *json, &kept, output),
        TraceCommand::Export { format, filters } => export(*format, filters, &kept, output),
    }
}

/// The stored records, and the settings for showing them.
struct Kept<'a> {
    context: &'a AppContext,
    settings: TraceSettings,
}

impl<'a> Kept<'a> {
    fn find(context: &'a AppContext) -> Kept<'a> {
        let env = |name: &str| context.variable(name);
        let (config, _) = ollm_catalog::configuration(&context.places, &env, &context.overrides);
        Kept { context, settings: config.trace() }
    }

    fn open(&self) -> Result<Records, Failure> {
        Records::open(trace_log(self.context, &self.settings)).map_err(unreadable)
    }

    fn format(&self) -> Format {
        match self.settings.format.as_str() {
            "json" => Format::Json,
            "compact" => Format::Compact,
            _ => Format::Pretty,
        }
    }

    /// The newest matching records, oldest first like in a log, up to a number; `None` if there is no trace.
    fn newest(&self, filter: &TraceFilter, number: usize, output: &mut Output) -> Result<Option<Vec<Record>>, Failure> {
        output.busy("reading the trace");
        let mut records = self.open()?;
        let (mut found, mut any) = (Vec::new(), false);
        while found.len() < number.min(MOST)
            && let Some(record) = records.next().transpose().map_err(unreadable)?
        {
            if record.is_test() {
                continue;
            }
            any = true;
            found.extend(Some(record).filter(|record| filter.fits(record)));
        }
        tell_left_out(records.left_out(), output);
        if found.len() < number && found.len() == MOST && records.next().is_some() {
            output.tell(&format!("only the newest {MOST} events are looked at; --since and --until choose others"));
        }
        if !any && number > 0 {
            self.nothing(records.left_out(), output);
            return Ok(None);
        }
        found.reverse();
        Ok(Some(found))
    }

    /// The newest matching records; reports if there are only others.
    fn fitting(
        &self,
        filters: &TraceFilters,
        number: usize,
        output: &mut Output,
    ) -> Result<Option<Vec<Record>>, Failure> {
        let found = self.newest(&wanted(filters)?, number, output)?;
        if number > 0 && found.as_ref().is_some_and(Vec::is_empty) {
            output.tell("the trace has events, and none that fits these options");
        }
        Ok(found)
    }

    /// Reports why there is no event to show.
    fn nothing(&self, left_out: LeftOut, output: &mut Output) -> u8 {
        output.tell(match (self.context.own_home(), self.settings.enabled) {
            (None, _) => "there is no home to keep traces in; set HOME or OLLM_HOME",
            (_, false) => "there is no trace: trace.enabled or OLLM_TRACE_ENABLED switches it off",
            _ if left_out != LeftOut::default() => "nothing else is in the trace",
            _ => "there is no trace yet; every event that passes through hooks leaves one",
        });
        FINDING
    }
}

/// The last session, or the requested one, as a waterfall.
fn session(wanted: Option<&str>, as_json: bool, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    output.busy("reading the trace");
    let mut records = kept.open()?;
    let mut found = Vec::new();
    let mut any = false;
    let mut id = wanted.map(str::to_owned);
    while found.len() < waterfall::MOST
        && let Some(record) = records.next().transpose().map_err(unreadable)?
    {
        any = true;
        if id.is_none() && record.is_test() {
            continue;
        }
        let is_start = record.text("event") == "session_start";
        let id = id.get_or_insert_with(|| record.text("session").to_owned());
        if record.text("session") == id {
            found.push(record);
            if is_start {
                break;
            }
        }
    }
    tell_left_out(records.left_out(), output);
    found.reverse();
    match (found.is_empty(), wanted) {
        (false, _) if as_json => output.json_text(&array(&found)),
        (false, _) => output.text(&waterfall::text(&found)),
        (true, Some(id)) if any => Err(Failure::new(Code::UnknownSession, format!("the trace has no session `{id}`"))
            .hint("`ollm trace list --json` shows the sessions of events")),
        (true, None) if any => {
            output.tell("there is no session yet, only tests of connections");
            Ok(FINDING)
        }
        _ => Ok(kept.nothing(records.left_out(), output)),
    }
}

fn last(blocked: bool, format: Option<Format>, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let filter = TraceFilter { blocked, ..TraceFilter::default() };
    let Some(found) = kept.newest(&filter, 1, output)? else { return Ok(FINDING) };
    let Some(record) = found.first() else {
        output.tell("no event of the trace was refused");
        return Ok(FINDING);
    };
    print(record, format.unwrap_or_else(|| kept.format()), output)
}

fn list(found: &[Record], long: bool, shape: &TraceShape, output: &mut Output) -> Result<u8, Failure> {
    match shape.format().unwrap_or(Format::Compact) {
        Format::Json => output.json_text(&array(found)),
        Format::Compact if found.is_empty() => Ok(OK),
        Format::Compact => output.text(&compact::table(found, long)),
        Format::Pretty => output.text(&found.iter().map(pretty::text).collect::<Vec<_>>().join("\n")),
    }
}

fn show(id: &str, format: Option<Format>, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let record = one(id, kept, output)?;
    print(&record, format.unwrap_or_else(|| kept.format()), output)
}

/// The matching records, oldest first.
pub(super) fn chosen(
    filters: &TraceFilters,
    context: &AppContext,
    output: &mut Output,
) -> Result<Vec<Record>, Failure> {
    Ok(Kept::find(context).fitting(filters, usize::MAX, output)?.unwrap_or_default())
}

/// The one record with this id or part of an id.
pub(crate) fn named(id: &str, context: &AppContext, output: &mut Output) -> Result<Record, Failure> {
    one(id, &Kept::find(context), output)
}

fn one(id: &str, kept: &Kept<'_>, output: &mut Output) -> Result<Record, Failure> {
    output.busy("reading the trace");
    let mut records = kept.open()?;
    let mut found: Vec<Record> = Vec::new();
    for record in records.by_ref() {
        let record = record.map_err(unreadable)?;
        if record.id() == id {
            found = vec![record];
            break;
        }
        found.extend(Some(record).filter(|record| record.is_named(id)));
    }
    tell_left_out(records.left_out(), output);
    if found.len() > 1 {
        let ids: Vec<&str> = found.iter().take(5).map(Record::id).collect();
        return Err(Failure::new(Code::UnknownTrace, format!("`{id}` stands for {} traces", found.len()))
            .hint(format!("write more of it: {}", ids.join(", "))));
    }
    found.pop().ok_or_else(|| {
        Failure::new(Code::UnknownTrace, format!("there is no trace `{id}`"))
            .hint("`ollm trace list` shows those there are")
    })
}

/// Shows new records as they come; the list shows the earlier ones.
fn follow(filters: &TraceFilters, shape: &TraceShape, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let filter = wanted(filters)?;
    let format = shape.format().unwrap_or(Format::Compact);
    if format == Format::Json {
        output.stream_json();
    }
    let Some(log) = trace_log(kept.context, &kept.settings) else {
        return Ok(kept.nothing(LeftOut::default(), output));
    };
    let follower = log.follow().map_err(unreadable)?;
    let stop = Stop::listen();
    hand_on(follower, |records, has_gap| {
        if output.is_unread() {
            return Ok(ControlFlow::Break(()));
        }
        if has_gap {
            output.tell("events may be missing here: files of the trace were removed before they were read; trace.maxSize and trace.maxFiles keep more");
        }
        for record in records.iter().filter(|record| !record.is_test() && filter.fits(record)) {
            print(record, format, output)?;
        }
        if stop.failure().is_some() {
            return Ok(ControlFlow::Break(()));
        }
        thread::sleep(PERIOD);
        Ok(ControlFlow::Continue(()))
    })?;
    stop.failure().map_or(Ok(OK), |failure| Err(Failure { message: String::new(), ..failure }))
}

/// Passes on new records, and whether some before them may be missing. `take` ends it, and waits between two looks.
fn hand_on(
    mut follower: Follower,
    mut take: impl FnMut(Vec<Record>, bool) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    loop {
        let lines = follower.read().map_err(unreadable)?;
        let records = lines.iter().filter_map(|line| Record::of_line(line)).collect();
        if take(records, follower.has_gap())?.is_break() {
            return Ok(());
        }
    }
}

/// The input of a viewer of the growing trace.
pub(crate) enum LiveRecords {
    /// The newest records, and a remark on them.
    Newest(Vec<Record>, &'static str),
    /// Records that came since.
    More(Vec<Record>),
}

/// Shows the newest records, and then new ones. `take` ends it, and waits for the files to change.
pub(crate) fn live(
    number: usize,
    context: &AppContext,
    mut take: impl FnMut(LiveRecords, &mut FileFollower<'_>) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let kept = Kept::find(context);
    let log = trace_log(context, &kept.settings);
    let mut files = FileFollower::of_files(log.iter().map(RotatingLog::path).collect());
    let Some(log) = log else {
        let _ = take(LiveRecords::Newest(Vec::new(), ", no home to keep any in"), &mut files);
        return Ok(());
    };
    // Records that come during the reading are in both.
    let follower = log.follow().map_err(unreadable)?;
    let mut quiet = Output::new();
    quiet.silence();
    let newest = kept.newest(&TraceFilter::default(), number, &mut quiet)?.unwrap_or_default();
    let known: HashSet<String> = newest.iter().map(|record| record.id().to_owned()).collect();
    let note = if kept.settings.enabled { "" } else { ", tracing is off" };
    if take(LiveRecords::Newest(newest, note), &mut files).is_break() {
        return Ok(());
    }
    hand_on(follower, |mut records, _| {
        records.retain(|record| !record.is_test() && !known.contains(record.id()));
        Ok(take(LiveRecords::More(records), &mut files))
    })
}

fn count(
    filters: &TraceFilters,
    long: bool,
    as_json: bool,
    kept: &Kept<'_>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let found = kept.fitting(filters, usize::MAX, output)?;
    if found.is_none() && !as_json {
        return Ok(OK);
    }
    let found = found.unwrap_or_default();
    let counted = TraceStats::of(&found);
    let app = App::load(kept.context)?;
    let silent = app.hooks().into_iter().filter(|hook| !hook.spec.source.is_required());
    let silent: Vec<String> = silent
        .map(|hook| hook.id().to_owned())
        .filter(|id| counted.hooks.get(id).is_none_or(|hook| hook.runs() == 0))
        .collect();
    if as_json {
        return output.pretty_json(&counted.to_json(&silent));
    }
    output.text(&stats::text(&counted, &silent, long))
}

fn export(format: ExportFormat, filters: &TraceFilters, kept: &Kept<'_>, output: &mut Output) -> Result<u8, Failure> {
    let found = kept.fitting(filters, usize::MAX, output)?.unwrap_or_default();
    match format {
        ExportFormat::Json => output.json_text(&array(&found)),
        ExportFormat::Chrome => output.json(&chrome(&found)),
        ExportFormat::Html => output.bytes(html(&found, &iso(SystemTime::now())).as_bytes(), &[], OK),
        ExportFormat::Csv => {
            let table = csv(&found).map_err(|error| Failure::new(Code::Environment, error.to_string()))?;
            output.bytes(table.as_bytes(), &[], OK)
        }
    }
}

fn print(record: &Record, format: Format, output: &mut Output) -> Result<u8, Failure> {
    match format {
        Format::Json => output.json_text(&record.json()),
        Format::Compact => output.text(&compact::line(record)),
        Format::Pretty => output.text(&pretty::text(record)),
    }
}

/// The filter that was asked for.
fn wanted(filters: &TraceFilters) -> Result<TraceFilter, Failure> {
    Ok(TraceFilter {
        event: filters.event.as_deref().map(event_named).transpose()?,
        hook: filters.hook.clone(),
        status: filters.status.map(crate::arguments::trace::TraceStatus::name),
        session: filters.session.clone(),
        blocked: filters.blocked,
        since: so_long_ago("--since", filters.since.as_deref())?,
        until: so_long_ago("--until", filters.until.as_deref())?,
    })
}

fn so_long_ago(option: &str, text: Option<&str>) -> Result<Option<String>, Failure> {
    text.map(|text| {
        moment(text).ok_or_else(|| {
            Failure::new(Code::InvalidValue, format!("{option} {text}: neither a length of time nor a time"))
                .hint("write 30s, 10m, 2h or 1d, or a time in UTC: 2026-01-02 or 2026-01-02T15:04:05Z")
        })
    })
    .transpose()
}

/// A time from a duration before now, or from a date as people and records write it.
fn moment(text: &str) -> Option<String> {
    let ago = || SystemTime::now().checked_sub(units::duration(text)?);
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let time = || text.parse::<Timestamp>().ok().or_else(day).map(SystemTime::from);
    ago().or_else(time).map(iso)
}

/// Reports how many lines were left out.
fn tell_left_out(left_out: LeftOut, output: &mut Output) {
    for (count, why) in [(left_out.broken, "is damaged"), (left_out.newer, "comes from a newer ollm")] {
        match count {
            0 => {}
            1 => output.tell(&format!("one line of the trace is left out: it {why}")),
            _ => output.tell(&format!("{count} lines of the trace are left out: each {why}")),
        }
    }
    if left_out.older {
        output.tell("a file of the trace is larger than trace.maxSize allows; only its newest lines are read");
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn unreadable(error: FileError) -> Failure {
    Failure::new(Code::TraceUnreadable, format!("the trace cannot be read: {error}"))
}
