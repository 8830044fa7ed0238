//! What the length of a trace costs a look at its end: nothing.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lab::{Lab, cli};
use crate::measure::{Case, row, scripted, table};

/// More than any person keeps.
const MANY: usize = 1_000_000;

/// The most own CPU time, in seconds, that looking at the end may take.
const MOST_CPU: f64 = 0.050;

/// Prints the seconds of CPU that each run of a command takes, one round per line.
const CPU: &str = "
import json, os, subprocess, sys
rounds, samples, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split()
def cpu():
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, status
    return used.ru_utime + used.ru_stime
for _ in range(rounds):
    print(json.dumps([cpu() for _ in range(samples)]), flush=True)
";

pub(crate) fn traces(lab: &Lab) {
    let (one, many) = (home(&lab.root, "one", 1), home(&lab.root, "many", MANY));
    table(vec![Case {
        name: "trace last, a million records / one record",
        target: 1.20,
        floor: cli(&lab.ollm, &["trace", "last"], &one, ""),
        run: cli(&lab.ollm, &["trace", "last"], &many, ""),
    }]);
    let rounds = scripted(&many, CPU, (15, 20), &[&format!("{} trace last", lab.ollm.display())]);
    let seconds =
        |round: &Value| round.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect::<Vec<_>>();
    let worst = |round: &Value| seconds(round).into_iter().fold(0.0, f64::max) / MOST_CPU;
    row("own CPU of that, the most of a round / 50 ms", 1.0, &mut rounds.iter().map(worst).collect::<Vec<_>>());
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
