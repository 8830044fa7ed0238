//! The log file: messages to people, including those that were not shown because another program reads the output.
//!
//! No file is opened while there are no messages.

use std::process;
use std::time::SystemTime;

use ollm_app::AppContext;
use ollm_protocol::units::iso;
use ollm_store::{Bounds, Redactor, RotatingLog, cut, one_line};

const LARGEST_FILE: u64 = 1 << 20;
/// The limit of lines per process, so that many problems do not push out everything else.
const MOST_LINES: usize = 200;
/// Longer lines are cut.
const LONGEST_LINE: usize = 4 << 10;

/// Messages that are not yet in the log file.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The messages, each with its level.
    lines: Vec<(&'static str, String)>,
}

impl Log {
    pub(crate) fn add(&mut self, level: &'static str, text: &str) {
        if self.lines.len() < MOST_LINES {
            let time = iso(SystemTime::now());
            self.lines.push((level, format!("{time} {level} [{}] {}", process::id(), one_line(text))));
        }
    }

    /// Writes the messages. A failure is ignored, because there is no place left to report it.
    pub(crate) fn write(&mut self, context: &AppContext) {
        let lines = std::mem::take(&mut self.lines);
        let settings = context.log_settings();
        // Before the configuration was read, only the environment gives the level.
        let level = settings.map(|settings| settings.level.clone()).or_else(|| context.variable("OLLM_LOG_LEVEL"));
        let level = level.unwrap_or_default();
        let Some(home) = context.own_home().filter(|_| !lines.is_empty() && level != "off") else { return };
        let file = settings.map_or(LARGEST_FILE, |settings| settings.max_size);
        let log = RotatingLog::new(home.join("log"), "ollm.log", Bounds { file, files: 3 });
        let redactor = Redactor::new(context.secrets());
        for (_, line) in lines.iter().filter(|(kind, _)| level != "error" || *kind == "error") {
            if log.append(&cut(&redactor.redact_str(line), LONGEST_LINE)).is_err() {
                return;
            }
        }
    }
}
