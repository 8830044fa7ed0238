//! The command line of `ollm trace`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show the last event
    #[command(after_help = "Exit codes: 0 shown, 1 there is none, 5 the trace cannot be read, 64 wrong usage.")]
    Last {
        #[command(flatten)]
        shape: TraceShape,
    },
    /// List events, the newest last
    List {
        #[command(flatten)]
        filters: TraceFilters,
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
}

/// Which events to list.
#[derive(Debug, Args)]
pub(crate) struct TraceFilters {
    /// Only this event, in any dialect's spelling
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Only events for which this hook ran, or was skipped; its id or name
    #[arg(long, value_name = "ID")]
    pub(crate) hook: Option<String>,
    /// Only events that did not continue
    #[arg(long)]
    pub(crate) blocked: bool,
    /// Only events of the last so many seconds, minutes or hours, as in 30s, 10m, 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// At most so many
    #[arg(short, default_value_t = 20, value_name = "NUMBER")]
    pub(crate) number: usize,
}

/// How to show events.
#[derive(Debug, Args)]
pub(crate) struct TraceShape {
    /// Print JSON, as it is stored; the same as --format json
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
