//! Settings of all servers: our name and version, what we offer them, and their limits.

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
    /// Trusted certificate authorities, and proxies.
    pub network: Network,
    /// Timing of starts, health checks and stops.
    pub timings: Timings,
    /// Size limits of a server.
    pub bounds: Bounds,
    /// The program's commands, for messages that tell a person what to do.
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

/// The timings of a server.
#[derive(Clone, Debug)]
pub struct Timings {
    /// How often a start is tried.
    pub tries: u32,
    /// The pause after the first failed try; it doubles from there.
    pub pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long a server may leave `server/discover` unanswered before the older way is tried.
    pub probe: Duration,
    /// How long a call may take in total, with or without progress.
    pub ceiling: Duration,
    /// How long a server may be silent before it is pinged; `None`: it is never pinged.
    pub health: Option<Duration>,
    /// How long a server may take to answer a ping.
    pub ping: Duration,
    /// How long a server may take to end by itself once its input is closed. Python servers need nearly two seconds.
    pub parting: Duration,
    /// The same for a server that still owes an answer: the caller has already waited in vain.
    pub haste: Duration,
    /// This many crashes ...
    pub crashes: usize,
    /// ... within this time are a loop, which only a person or this much time ends.
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

/// Size limits of a server.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of one message, in either direction. A tool result may be this large; it is kept in a file.
    pub message: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Entries of one list; the rest is left out, with a warning.
    pub items: usize,
    /// Bytes of all entries together; the rest is left out, with a warning.
    pub list: usize,
    /// Bytes of a cursor, the token for the next page.
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
