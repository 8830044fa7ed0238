//! `ollm config validate`: lists all problems with the files and the environment.

use std::path::Path;

use ollm_app::validation::server_problems;
use ollm_app::{AppContext, extensions};
use ollm_catalog::{Problem, Severity};
use ollm_protocol::Code;
use ollm_store::Switches;

use super::{is_fatal, load, problem_entry, short};
use crate::error::{ErrorKind, FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let (config, mut problems) = load(context);
    let (switches, _) = Switches::load(&context.switches());
    let extensions = extensions(context, &config, &switches, &mut Vec::new());
    problems.extend(extensions.misset(&config, &context.places));
    let files = [Some(context.places.config()), context.places.project_config()];
    problems.extend(files.iter().flatten().filter_map(|file| misnamed(file)));
    problems.extend(server_problems(context));
    let code = match () {
        () if is_fatal(&problems) => ErrorKind::Configuration as u8,
        () if problems.is_empty() => OK,
        () => FINDING,
    };
    if as_json {
        output.pretty_json(&problems.iter().map(problem_entry).collect())?;
        return Ok(code);
    }
    for problem in &problems {
        output.problem(problem);
    }
    let servers = files.iter().flatten().filter_map(|file| Some(file.parent()?.join("settings/mcp.json")));
    let there = files.iter().flatten().cloned().chain(servers).filter(|file| file.exists());
    let there: Vec<String> = there.map(|file| short(&file, context)).collect();
    let checked = if there.is_empty() { "no file, so the defaults".to_owned() } else { there.join(" and ") };
    let found = match problems.len() {
        0 => "nothing is wrong".to_owned(),
        1 => "1 thing is wrong".to_owned(),
        count => format!("{count} things are wrong"),
    };
    output.tell(&format!(
        "{found} with the configuration ({checked}); `ollm hook validate` checks hook files, `ollm doctor` everything"
    ));
    Ok(code)
}

/// A problem for a file that looks like the configuration but is never read.
fn misnamed(file: &Path) -> Option<Problem> {
    let names = ["config.yml", "config.json"];
    let found = names.iter().map(|name| file.with_file_name(name)).find(|file| file.exists())?;
    Some(Problem {
        code: Code::Ignored,
        severity: Severity::Warning,
        file: found,
        line: 0,
        column: 0,
        field: String::new(),
        value: None,
        message: "this file is not read: the configuration is config.yaml".to_owned(),
        help: Some("rename it; JSON is YAML too".to_owned()),
        remedy: None,
        snippet: None,
    })
}
