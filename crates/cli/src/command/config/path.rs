//! `ollm config path`: where the files are.

use std::path::PathBuf;

use ollm_app::World;
use serde_json::json;

use crate::error::Failure;
use crate::output::{Output, shown};

pub(super) fn run(world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let user = world.places.config();
    let project = world.places.project_config();
    if as_json {
        let place = |file: &PathBuf| json!({"file": shown(file), "exists": file.exists()});
        return output.pretty_json(&json!({"user": place(&user), "project": project.as_ref().map(place)}));
    }
    let line = |name: &str, file: &PathBuf| {
        let missing = if file.exists() { "" } else { " (not there yet)" };
        format!("{name:<8} {}{missing}", file.display())
    };
    let lines = std::iter::once(line("user", &user)).chain(project.iter().map(|file| line("project", file)));
    output.line(&lines.collect::<Vec<_>>().join("\n"))
}
