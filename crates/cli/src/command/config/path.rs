//! `ollm config path`: prints the locations of the files.

use std::path::PathBuf;

use ollm_app::AppContext;
use serde_json::json;

use crate::error::Failure;
use crate::output::{Output, shown};

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let user = context.places.config();
    let project = context.places.project_config();
    let policy = context.places.policy.as_ref().map(|policy| policy.path.clone());
    if as_json {
        let place = |file: &PathBuf| json!({"file": shown(file), "exists": file.exists()});
        let files = json!({
            "policy": policy.as_ref().map(place),
            "user": place(&user),
            "project": project.as_ref().map(place),
        });
        return output.pretty_json(&files);
    }
    let line = |name: &str, file: &PathBuf| {
        let missing = if file.exists() { "" } else { " (not there yet)" };
        format!("{name:<8} {}{missing}", file.display())
    };
    // Few machines have a policy, so only an existing file is shown.
    let policy = policy.filter(|file| file.symlink_metadata().is_ok());
    let lines = policy.iter().map(|file| line("policy", file));
    let lines = lines.chain([line("user", &user)]).chain(project.iter().map(|file| line("project", file)));
    output.line(&lines.collect::<Vec<_>>().join("\n"))
}
