//! `ollm hook …`.

use ollm_app::AppContext;
use ollm_protocol::Event;

use crate::arguments::hook::HookCommand;
use crate::error::Failure;
use crate::output::Output;

pub(crate) mod background;
mod declare;
mod event;
mod host;
mod list;
mod new;
mod plan;
mod rules;
pub(crate) mod run;
pub(crate) mod show;
mod switch;
mod test;
mod trigger;
pub(crate) mod trust;
mod validate;

pub(crate) use host::misused;
pub(crate) use list::overview;
pub(crate) use new::project_folder;
pub(crate) use rules::narrowed;
pub(crate) use show::{HookState, states as hook_states, text as hook_text};
pub(crate) use test::{cases as run_cases, cases_text, stamps};

/// The event on the command line.
pub(crate) fn given_event(name: &str, data: Option<&str>) -> Result<Event, Failure> {
    Ok(event::given(name, data)?.event)
}

pub(super) fn run_command(command: HookCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match command {
        HookCommand::Run(arguments) => run::run(&arguments, |_| Ok(context), output),
        HookCommand::List(arguments) => list::run(&arguments, context, output),
        HookCommand::Show { id, json } => show::run(&id, context, json, output),
        HookCommand::Plan { event, data, json } => plan::run(&event, data.as_deref(), context, json, output),
        HookCommand::Add(arguments) => declare::add(&arguments, context, output),
        HookCommand::Edit(arguments) => declare::edit(&arguments, context, output),
        HookCommand::Remove(arguments) => declare::remove(&arguments, context, output),
        HookCommand::Convert(arguments) => declare::convert(&arguments, context, output),
        HookCommand::Enable(arguments) => switch::run(true, &arguments, context, output),
        HookCommand::Disable(arguments) => switch::run(false, &arguments, context, output),
        HookCommand::New(arguments) => new::run(&arguments, context, output),
        HookCommand::Test(arguments) => test::run(&arguments, context, output),
        HookCommand::Validate { file, json } => validate::run(file.as_deref(), context, json, output),
        HookCommand::Trigger(arguments) => trigger::run(&arguments, context, output),
        HookCommand::Trust(arguments) => trust::approve(&arguments, context, output),
        HookCommand::Untrust { ids, all } => trust::withdraw(&ids, all, context, output),
    }
}
