//! The command line of `ollm trace`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Without a command: the last session as a waterfall; events without hooks are folded.\n\n\
                  Exit codes: 0 shown, 1 there is none, 5 the trace cannot be read, 64 wrong usage."
)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    pub(crate) command: Option<TraceCommand>,
    /// This session in place of the last one
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Print the records as one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show the last event
    #[command(after_help = "Exit codes: 0 shown, 1 there is none, 5 the trace cannot be read, 64 wrong usage.")]
    Last {
        /// The last event that did not continue
        #[arg(long)]
        blocked: bool,
        #[command(flatten)]
        shape: TraceShape,
    },
    /// List events, the newest last
    List {
        #[command(flatten)]
        filters: TraceFilters,
        /// At most so many
        #[arg(short, default_value_t = 20, value_name = "NUMBER")]
        number: usize,
        /// Show the ids in full
        #[arg(long)]
        long: bool,
        #[command(flatten)]
        shape: TraceShape,
    },
    /// Show one event
    Show {
        /// The `traceId` of an answer, its beginning, or its end
        id: String,
        #[command(flatten)]
        shape: TraceShape,
    },
    /// Show events as they happen, until interrupted
    Follow {
        #[command(flatten)]
        filters: TraceFilters,
        #[command(flatten)]
        shape: TraceShape,
    },
    /// Count runs, failures and durations of each hook, and name hooks that never fired
    Stats {
        #[command(flatten)]
        filters: TraceFilters,
        /// Show the ids in full
        #[arg(long)]
        long: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write events to standard output for another program
    #[command(
        after_help = "chrome opens in Perfetto and in Chrome's tracing page; html is one page without anything else."
    )]
    Export {
        /// The form
        #[arg(long, value_name = "FORMAT")]
        format: ExportFormat,
        #[command(flatten)]
        filters: TraceFilters,
    },
}

/// Which events are meant.
#[derive(Debug, Default, Args)]
pub(crate) struct TraceFilters {
    /// Only this event, in any dialect's spelling
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Only events for which this hook ran, or was skipped; its id or name
    #[arg(long, value_name = "ID")]
    pub(crate) hook: Option<String>,
    /// Only events in which a hook ended like this
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<TraceStatus>,
    /// Only events of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only events that did not continue
    #[arg(long)]
    pub(crate) blocked: bool,
    /// Only events of the last so many seconds, minutes, hours or days, as in 30s, 10m, 2h, 1d; or since a time in UTC, as in
    /// 2026-01-02 or 2026-01-02T15:04:05Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only events that are at least so old, or until a time, likewise
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

/// How to show events.
#[derive(Debug, Args)]
pub(crate) struct TraceShape {
    /// Print JSON as stored; the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The form: JSON, in full for people, or one line for each event
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

impl TraceShape {
    pub(crate) fn format(&self) -> Option<Format> {
        if self.json { Some(Format::Json) } else { self.format }
    }
}

/// The forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Json,
    Pretty,
    Compact,
}

/// The forms for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    Json,
    Csv,
    Chrome,
    Html,
}

/// How a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TraceStatus {
    Ok,
    Blocked,
    Failed,
    Timeout,
    Skipped,
}

impl TraceStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TraceStatus::Ok => "ok",
            TraceStatus::Blocked => "blocked",
            TraceStatus::Failed => "failed",
            TraceStatus::Timeout => "timeout",
            TraceStatus::Skipped => "skipped",
        }
    }
}
