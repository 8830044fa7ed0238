//! What holds for all servers: who we are, what we offer them, and how far anything may go.

use std::time::Duration;

use ollm_net::Network;
use ollm_protocol::Commands;

/// Settings of all servers; the defaults are for a person at a terminal.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether any server may start.
    pub enabled: bool,
    /// Our name, as servers see it.
    pub name: String,
    /// Our version, as servers see it.
    pub version: String,
    /// The folders we work in.
    pub roots: Vec<Root>,
    /// The authorities that vouch for servers, and the proxies on the way to them.
    pub network: Network,
    /// How servers are started, watched and ended.
    pub timings: Timings,
    /// What a server may take.
    pub bounds: Bounds,
    /// The commands of the program, for what a person is told to do.
    pub commands: Commands,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: Vec::new(),
            network: Network::default(),
            timings: Timings::default(),
            bounds: Bounds::default(),
            commands: Commands::default(),
        }
    }
}

/// A folder we work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its address, a `file:` one.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

/// The clocks of a server's life.
#[derive(Clone, Debug)]
pub struct Timings {
    /// How often a start is tried.
    pub tries: u32,
    /// The pause after the first failed try; it doubles from there.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long a server may leave `server/discover` unanswered before it is asked in the older way.
    pub probe: Duration,
    /// How long a call may take at all, whatever progress it reports.
    pub ceiling: Duration,
    /// How long without a sign of life until a server is asked for one; never when absent.
    pub health: Option<Duration>,
    /// How long it may take to give one.
    pub ping: Duration,
    /// How long a server may take to end by itself once its input is closed. Python servers need nearly two seconds.
    pub parting: Duration,
    /// How long if it still owes an answer: whoever waited for that in vain does not wait as long once more.
    pub haste: Duration,
    /// So many crashes ...
    pub crashes: usize,
    /// ... within this time are a loop, which only a person or this much time breaks.
    pub window: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            tries: 3,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(8),
            probe: Duration::from_secs(3),
            ceiling: Duration::from_mins(30),
            health: Some(Duration::from_secs(30)),
            ping: Duration::from_secs(10),
            parting: Duration::from_secs(4),
            haste: Duration::from_millis(250),
            crashes: 3,
            window: Duration::from_mins(1),
        }
    }
}

/// What a server may take.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of one message, whichever way it comes. A tool may bring back that much, which is kept in a file.
    pub message: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Entries of one list; the rest is left out, with a warning.
    pub items: usize,
    /// Bytes of all of them together, likewise.
    pub list: usize,
    /// Bytes of the word for the next page.
    pub cursor: usize,
    /// How long a list may take.
    pub listing: Duration,
    /// Lines of its log that are kept.
    pub lines: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            message: 64 << 20,
            pages: 100,
            items: 2048,
            list: 16 << 20,
            cursor: 64 << 10,
            listing: Duration::from_secs(30),
            lines: 300,
        }
    }
}
