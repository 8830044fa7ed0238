//! What the length of a trace costs whoever looks at its end: nothing.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::lab::{Lab, cli};
use crate::measure::Case;

/// More than anybody keeps.
const MANY: usize = 1_000_000;

impl Lab {
    pub(crate) fn traces(&self) -> Vec<Case> {
        let (one, many) = (home(&self.root, "one", 1), home(&self.root, "many", MANY));
        vec![Case {
            name: "trace last, a million records / one record",
            target: 1.20,
            floor: cli(&self.ollm, &["trace", "last"], &one, ""),
            run: cli(&self.ollm, &["trace", "last"], &many, ""),
        }]
    }
}

/// A home with so many records; the newest has the number 0.
fn home(root: &Path, name: &str, count: usize) -> PathBuf {
    let home = root.join(name);
    let folder = home.join(".ollm/trace");
    fs::create_dir_all(&folder).unwrap();
    let record = json!({
        "version": 1, "traceId": "ID", "time": "2026-01-01T00:00:00.000Z", "event": "before_tool", "subject": "shell",
        "plan": [], "skipped": [], "hooks": [], "durationMs": 1.0, "data": {},
        "verdict": {"flow": "no_opinion", "continue": true, "reason": null, "modifiedArgs": false},
    })
    .to_string();
    let (before, after) = record.split_once("ID").unwrap();
    let mut file = BufWriter::new(File::create(folder.join("trace.jsonl")).unwrap());
    for number in (0..count).rev() {
        writeln!(file, "{before}01a1eae0-9c66-7a39-a4ea-{number:012}{after}").unwrap();
    }
    file.flush().unwrap();
    home
}
