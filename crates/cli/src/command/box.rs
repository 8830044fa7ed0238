//! `ollm box`: runs one command in a box, on the person's own streams and terminal.

mod streams;

use std::path::{Path, PathBuf};

use ollm_app::command_box::{BoxPolicy, BoxStatus, BoxedOutcome, CommandBox};
use ollm_app::{AppContext, AppError};
use ollm_catalog::{Severity, configuration};
use ollm_process::{Children, End, Job, SignalShield, find_program};
use ollm_protocol::Code;

use crate::arguments::BoxArguments;
use crate::error::Failure;
use crate::output::Output;

/// The exit code of a command that a signal ended is this plus the signal's number, as in a shell.
const SIGNALLED: i32 = 128;

pub(super) fn run(arguments: &BoxArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let (command, words) = arguments.command.split_first().ok_or_else(|| Failure::usage("`--` needs a command"))?;
    let variable = |name: &str| context.variable(name);
    let (config, problems) = configuration(&context.places, &variable, &context.overrides);
    if let Some(problem) = problems.iter().find(|problem| problem.severity == Severity::Fatal) {
        return Err(AppError::from(problem).into());
    }
    let configured = Some(BoxPolicy::of(&config)).filter(|policy| *policy != BoxPolicy::Off).unwrap_or_default();
    let policy = arguments.policy.unwrap_or(configured);
    let made = CommandBox::by_policy(policy, context, &config).on_terminal();
    match made.status() {
        BoxStatus::Partial(reason) => output.tell(&format!("the box is partial: {reason}")),
        BoxStatus::Unavailable(reason) => {
            return Err(Failure::new(Code::NoBox, format!("there is no box on this machine: {reason}"))
                .hint("run the command without `ollm box`, if it needs none"));
        }
        BoxStatus::On | BoxStatus::Off => {}
    }
    let job = Job {
        arg0: Some(command.clone()),
        args: words.to_vec(),
        env: context.variables.clone(),
        cwd: Some(context.cwd.clone()),
        ..Job::new(program(Path::new(command), context)?)
    };
    let children = Children::new();
    // The command gets a signal that asks us to end. Afterwards its effects are still compared.
    let _shield = SignalShield::raise();
    let BoxedOutcome { outcome, notes } = made.run(&children, job, |job| {
        streams::with_words(|| {
            let outcome = children.run_attached(&job);
            // Otherwise we would wait for processes that keep writing.
            children.kill_adopted();
            outcome
        })
    });
    for note in notes {
        output.tell(&note);
    }
    match outcome.end {
        End::Exited(code) => Ok(code.try_into().unwrap_or(u8::MAX)),
        End::Signalled(signal) => Ok((SIGNALLED + signal).try_into().unwrap_or(u8::MAX)),
        End::NotStarted(error) => Err(Failure::new(Code::MissingProgram, error.to_string())),
        _ => Err(Failure::new(Code::MissingProgram, "the exit code of the command got lost")),
    }
}

/// The path of the program. Relative folders of the search path are ignored, as for hooks.
fn program(command: &Path, context: &AppContext) -> Result<PathBuf, Failure> {
    if command.components().count() > 1 || command.is_absolute() {
        return Ok(context.cwd.join(command));
    }
    let found = command.to_str().and_then(|name| find_program(name, context.search_path().unwrap_or_default()));
    found.ok_or_else(|| {
        let message = format!("`{}` is in no folder of your PATH", command.display());
        Failure::new(Code::MissingProgram, message).hint("name the program by its path")
    })
}
