//! `ollm ext validate`: everything that is wrong with an extension's folder, before it is installed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ollm_app::scaffold::{HOOKS, Language};
use ollm_app::{App, AppContext, cases};
use ollm_catalog::{Extension, Problem, Severity, validate_extension};
use ollm_protocol::{Code, Hook, Needs};
use ollm_shell::shell_word;
use ollm_store::{TreeLimits, digest_tree};

use crate::command::config::problem_entry;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(target: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    let root = root(target, context, &app)?;
    let (extension, mut problems) = validate_extension(&root, &app.rules);
    problems.extend(here(&extension, &app));
    problems.extend(files(&extension));
    problems.extend(missing_of_servers(&extension));
    problems.extend(broken_cases(&extension));
    let wrong = problems.iter().any(|problem| problem.severity <= Severity::Error);
    let code = if wrong { FINDING } else { OK };
    if as_json {
        output.pretty_json(&problems.iter().map(problem_entry).collect())?;
        return Ok(code);
    }
    for problem in &problems {
        output.problem(problem);
    }
    let form = extension.form.map(|form| format!(" (a {form})")).unwrap_or_default();
    let named = format!("`{}` {}{form}", extension.name, extension.manifest.version);
    match problems.len() {
        _ if wrong => {}
        0 => output.tell(&format!("nothing is wrong with {named}")),
        1 => output.tell(&format!("{named} is valid; see the warning above")),
        count => output.tell(&format!("{named} is valid; see the {count} warnings above")),
    }
    Ok(code)
}

/// The folder that is meant: a path, or the name of an extension.
fn root(target: &str, context: &AppContext, app: &App) -> Result<PathBuf, Failure> {
    let path = context.cwd.join(target);
    let path = if path.ends_with("manifest.json") { path.parent().map(PathBuf::from).unwrap_or(path) } else { path };
    if path.is_dir() {
        return Ok(path.canonicalize().unwrap_or(path));
    }
    match app.extensions.get(target) {
        Some(extension) => Ok(extension.root.clone()),
        None => Err(Failure::new(
            Code::UnknownExtension,
            format!("`{target}` is neither a folder nor the name of an extension"),
        )),
    }
}

/// The reasons why it is off here. If it is not installed yet, only its missing needs are reported.
fn here(extension: &Extension, app: &App) -> Vec<Problem> {
    match app.extensions.iter().find(|one| one.root == extension.root) {
        Some(installed) => installed.misfit().cloned().into_iter().collect(),
        None => app.extensions.lacking(extension),
    }
}

const ABSENT: &str = "put the file there, or name one that is";

/// Scripts that are not there, and a folder that could not be approved in its present state.
fn files(extension: &Extension) -> Vec<Problem> {
    let missing = extension.hooks.iter().filter_map(|hook| {
        let script = hook.script().filter(|script| !script.exists())?;
        // A program may have to be built first, but a script must exist.
        let built = matches!(hook.spec.action.needs(), Needs::Program { program, .. } if Path::new(program) == script);
        let severity = if built { Severity::Warning } else { Severity::Error };
        let (does, help) = if built { ("is not built yet", build(extension, hook)) } else { ("does not exist", None) };
        let help = Some(help.unwrap_or_else(|| ABSENT.to_owned()));
        let message = format!("hook `{}` names {}, which {does}", hook.spec.name, script.display());
        let problem = Problem { help, ..Problem::of_file(Code::MissingFile, severity, &extension.root, message) };
        Some(extension.at_hook(&hook.spec.name, script, problem))
    });
    let unready = extension.hooks.iter().filter_map(|hook| {
        let Needs::Program { program, .. } = hook.spec.action.needs() else { return None };
        let problem = not_executable(&format!("hook `{}`", hook.spec.name), Path::new(program), extension)?;
        Some(extension.at_hook(&hook.spec.name, Path::new(program), problem))
    });
    let tree = digest_tree(&extension.root, TreeLimits::default()).err();
    let tree =
        tree.map(|error| Problem::of_file(Code::UnsafePath, Severity::Error, &extension.root, error.to_string()));
    missing.chain(unready).chain(tree).collect()
}

/// A file of the extension that is to be run as a program and is none.
fn not_executable(who: &str, program: &Path, extension: &Extension) -> Option<Problem> {
    let meta = program.metadata().ok().filter(|meta| meta.is_file() && program.starts_with(&extension.root))?;
    if meta.permissions().mode() & 0o111 != 0 {
        return None;
    }
    let file = program.display();
    let help = Some(format!("`chmod +x {}` makes it one", shell_word(&file.to_string())));
    let message = format!("{who} runs {file}, which is not executable");
    Some(Problem { help, ..Problem::of_file(Code::MissingFile, Severity::Error, &extension.root, message) })
}

/// How the program of a hook is built, where its source came along.
fn build(extension: &Extension, hook: &Hook) -> Option<String> {
    let name = hook.script()?.file_name()?.to_str()?;
    let source = extension.root.join(HOOKS).join(name).join("Cargo.toml");
    let language = source.exists().then_some(Language::Rust)?;
    Some(format!("build it: {}", language.install_command(&extension.root, name)?))
}

fn broken_cases(extension: &Extension) -> Vec<Problem> {
    let found = extension.hooks.iter().flat_map(cases::of_hook);
    found.filter_map(Result::err).map(|broken| *broken.problem).collect()
}

/// Files of the extension that its servers name and that are not there.
fn missing_of_servers(extension: &Extension) -> Vec<Problem> {
    let mut problems = Vec::new();
    for server in extension.servers_in(&extension.root).0 {
        let ollm_catalog::Address::Command { command, args, .. } = &server.address else { continue };
        let problem = not_executable(&format!("server `{}`", server.name), Path::new(command), extension);
        problems.extend(problem.map(|problem| extension.at_server(&server.name, Path::new(command), problem)));
        let words = std::iter::once((command, Severity::Warning)).chain(args.iter().map(|arg| (arg, Severity::Error)));
        for (word, severity) in words {
            let path = Path::new(word);
            if path.starts_with(&extension.root) && !path.exists() {
                let message = format!("server `{}` names {word}, which does not exist", server.name);
                let help = Some(ABSENT.to_owned());
                let problem =
                    Problem { help, ..Problem::of_file(Code::MissingFile, severity, &extension.root, message) };
                problems.push(extension.at_server(&server.name, path, problem));
            }
        }
    }
    problems
}
