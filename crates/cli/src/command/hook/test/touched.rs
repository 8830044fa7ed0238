//! What a hook did in its box: what it read, wrote and reached, and what was refused.

use ollm_engine::Report;
use ollm_process::{BoxAccess, WatchedAccess};
use ollm_trust::is_of_system;
use serde_json::{Value, json};

/// One line for each thing that is not of the system, and one for what is.
pub(super) fn lines(report: &Report) -> Vec<(&'static str, String)> {
    let (own, system): (Vec<&WatchedAccess>, Vec<&WatchedAccess>) = report
        .accesses
        .iter()
        .partition(|seen| seen.refused || !matches!(&seen.access, BoxAccess::Read(path) if is_of_system(path)));
    let mut lines: Vec<(&str, String)> = own.into_iter().map(line).collect();
    lines.extend((!system.is_empty()).then(|| ("read", format!("{} files of the system", system.len()))));
    lines
}

fn line(seen: &WatchedAccess) -> (&'static str, String) {
    let refused = if seen.refused { "refused: " } else { "" };
    let (name, what) = match &seen.access {
        BoxAccess::Read(path) => ("read", path.display().to_string()),
        BoxAccess::Write { path, .. } => ("written", path.display().to_string()),
        BoxAccess::Network => ("reached", "the network".to_owned()),
        BoxAccess::Service => ("reached", "a socket of this machine".to_owned()),
        BoxAccess::Connect(address) => ("reached", address.clone()),
    };
    (name, format!("{refused}{what}"))
}

/// All of it, for programs.
pub(super) fn to_json(report: &Report) -> Value {
    let list = |wanted: &str, refused: bool| -> Vec<String> {
        let fits = |seen: &&WatchedAccess| seen.refused == refused;
        let named =
            report.accesses.iter().filter(fits).map(|seen| line(&WatchedAccess { refused: false, ..seen.clone() }));
        named.filter(|(name, _)| *name == wanted).map(|(_, what)| what).collect()
    };
    let all = |refused: bool| json!({"read": list("read", refused), "written": list("written", refused), "reached": list("reached", refused)});
    let mut value = all(false);
    if let Some(map) = value.as_object_mut() {
        map.insert("refused".to_owned(), all(true));
    }
    value
}
