//! `ollm`: hooks for AI agents. This crate is the command line. It parses arguments, prints, and connects the other
//! crates.

#![forbid(unsafe_code)]
#![cfg_attr(all(not(test), target_os = "linux", target_env = "gnu"), no_main)]

mod approver;
mod arguments;
mod ask;
mod code;
mod command;
mod display;
mod error;
mod interrupt;
mod log;
mod open;
mod output;
mod pager;
mod person;
mod problem;
mod remedy;
mod spinner;
mod table;
mod timeline;
mod tui;
mod wrap;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::Path;

use arguments::Globals;
use ask::Asker;
use error::{ErrorKind, Failure};
use ollm_app::AppContext;
use ollm_catalog::{Overrides, PolicyFile};
use ollm_process::ProcessSetup;
use ollm_protocol::Code;
use output::Output;
use spinner::Spinner;

ollm_process::program!(main_code);

/// Runs the whole program; returns its exit code.
fn main_code() -> u8 {
    // Dropped last: it ends the remaining descendants of the command.
    let process = ProcessSetup::new();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let grace = ask::question_grace(std::env::var(ask::GRACE_VARIABLE).ok().as_deref());
    let mut output = Output::with(Asker::Lines(Spinner::default(), grace));
    if arguments::wants_json(&arguments) {
        output.tell_failures_as_json();
    }
    let surroundings = OnceCell::new();
    let done = run(&arguments, &process, &surroundings, &mut output).or_else(|failure| match failure.kind {
        ErrorKind::Usage => command::hook::misused(&arguments, failure, &mut output),
        _ => Err(failure),
    });
    let code = output.finish(done);
    if let Some(context) = surroundings.get() {
        output.write_log(context);
    }
    code
}

/// Runs the command. Other agents start us for every event, so their command's options are parsed without building all
/// commands.
fn run(
    arguments: &[OsString],
    process: &ProcessSetup,
    surroundings: &OnceCell<AppContext>,
    output: &mut Output,
) -> Result<u8, Failure> {
    // Only with this mark does a shell ask for completions. The environment alone must not turn an event into a
    // completion.
    if let ([mark, words @ ..], Some(shell)) = (arguments, std::env::var_os(command::completions::ASKED_BY))
        && mark == "--"
    {
        let context = context(surroundings, None, Overrides::default(), output.asker())?;
        return command::completions::complete(&shell, words, context, output);
    }
    let (Globals { overrides, verbose }, rest) = arguments::globals(arguments)?;
    let rest = rest.as_slice();
    if verbose {
        output.be_verbose();
    }
    let words: Vec<&str> = rest.iter().take(2).filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["--version" | "-V"] => output.line(concat!("ollm ", env!("CARGO_PKG_VERSION"))),
        ["hook", "run"] if !arguments::wants_help(rest) => {
            let request = arguments::parse_alone("ollm hook run", rest.get(2..).unwrap_or_default(), output)?;
            let asker = output.asker().clone();
            command::hook::run::run(&request, |told| context(surroundings, told, overrides, &asker), output)
        }
        ["tui", "restore"] => Ok(tui::restorer::run(rest.get(2..).unwrap_or_default())),
        // The first frame waits only for what it needs.
        ["tui", ..] if !arguments::wants_help(rest) => {
            let arguments = arguments::parse_alone("ollm tui", rest.get(1..).unwrap_or_default(), output)?;
            let context = context(surroundings, None, overrides, output.asker())?;
            command::run(arguments::Command::Tui(arguments), context, output)
        }
        ["hook", "background"] => {
            let asker = output.asker().clone();
            let context = |told: Option<&Path>| context(surroundings, told, overrides, &asker);
            command::hook::background::run(rest.get(2..).unwrap_or_default(), process, context, output)
        }
        ["demo", "server"] if rest.len() == 2 => command::demo::server::run(output),
        // Without arguments a person gets the panels, once something is set up.
        [] if rest.is_empty() => {
            let context = context(surroundings, None, overrides, output.asker())?;
            if output::is_conversation() && !command::welcome::is_first(context) {
                let panels = arguments::Command::Tui(arguments::agent::TuiArguments::default());
                return command::run(panels, context, output);
            }
            command::welcome::run(context, output)
        }
        _ => match arguments::parse(rest, output)? {
            Some(command) => command::run(command, context(surroundings, None, overrides, output.asker())?, output),
            None => Ok(error::OK),
        },
    }
}

/// The surroundings, read only by commands that need them. `told` is the folder of an event, for when our own folder is
/// gone.
fn context<'a>(
    surroundings: &'a OnceCell<AppContext>,
    told: Option<&Path>,
    mut overrides: Overrides,
    asker: &Asker,
) -> Result<&'a AppContext, Failure> {
    let cwd = std::env::current_dir().or_else(|error| {
        told.filter(|told| told.is_absolute() && told.is_dir()).map(Path::to_path_buf).ok_or_else(|| {
            Failure::new(Code::NoFolder, format!("the current folder cannot be found: {error}"))
                .hint("change into a folder that exists")
        })
    })?;
    let mut context = AppContext::new(std::env::vars_os().collect(), cwd, std::env::home_dir());
    context.program = std::env::current_exe().ok();
    context.places.policy = Some(PolicyFile::of_system());
    // An agent may have been started in another folder than the one it works in.
    if let Some(told) = told.filter(|told| told.is_absolute() && **told != context.cwd && told.is_dir()) {
        context.places = context.places.also_in(told);
    }
    // An agent that could weaken a guard for one run would need no approval in that run.
    overrides.tightening = overrides.touch_guards() && ollm_app::refuse_agents(&context, "loosen guards").is_err();
    let mut context = context.with(overrides);
    context.commands = remedy::COMMANDS;
    context.person = person::person(asker.clone(), &context);
    Ok(surroundings.get_or_init(|| context))
}
