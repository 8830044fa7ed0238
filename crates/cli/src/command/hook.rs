//! `ollm hook …`.

use ollm_app::World;

use crate::arguments::hook::HookCommand;
use crate::error::Failure;
use crate::output::Output;

pub(crate) mod background;
mod declare;
mod details;
mod event;
mod list;
mod new;
mod outcome;
mod plan;
mod rules;
pub(crate) mod run;
mod show;
mod switch;
mod test;
mod trigger;
mod trust;

pub(crate) use list::{columns, overview};
pub(crate) use new::project_folder;
pub(crate) use outcome::{is_shown, to_json};
pub(crate) use run::{Manner, dispatch};
pub(crate) use test::cases as run_cases;

pub(super) fn run_command(command: HookCommand, world: &World, output: &mut Output) -> Result<u8, Failure> {
    match command {
        HookCommand::Run(arguments) => run::run(&arguments, |_| Ok(world), output),
        HookCommand::List { json } => list::run(world, json, output),
        HookCommand::Show { id, json } => show::run(&id, world, json, output),
        HookCommand::Plan { event, data, json } => plan::run(&event, data.as_deref(), world, json, output),
        HookCommand::Add(arguments) => declare::add(&arguments, world, output),
        HookCommand::Edit(arguments) => declare::edit(&arguments, world, output),
        HookCommand::Remove(arguments) => declare::remove(&arguments, world, output),
        HookCommand::Convert(arguments) => declare::convert(&arguments, world, output),
        HookCommand::Enable(arguments) => switch::run(true, &arguments, world, output),
        HookCommand::Disable(arguments) => switch::run(false, &arguments, world, output),
        HookCommand::New(arguments) => new::run(&arguments, world, output),
        HookCommand::Test(arguments) => test::run(&arguments, world, output),
        HookCommand::Trigger(arguments) => trigger::run(&arguments, world, output),
        HookCommand::Trust(arguments) => trust::approve(&arguments, world, output),
        HookCommand::Untrust { ids, all } => trust::withdraw(&ids, all, world, output),
    }
}
