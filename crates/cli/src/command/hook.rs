//! `ollm hook …`.

use crate::arguments::HookCommand;
use crate::error::Failure;
use crate::output::Output;
use crate::world::World;

mod event;
mod list;
mod outcome;
mod plan;
pub(crate) mod run;
mod show;
mod trust;

pub(crate) use outcome::{is_shown, to_json};
pub(crate) use show::command;

pub(super) fn run_command(command: HookCommand, world: &World, output: &mut Output) -> Result<u8, Failure> {
    match command {
        HookCommand::Run(_) => Err(Failure::usage("`ollm hook run` takes its options behind `run`")),
        HookCommand::List { json } => list::run(world, json, output),
        HookCommand::Show { id, json } => show::run(&id, world, json, output),
        HookCommand::Plan { event, data, json } => plan::run(&event, data.as_deref(), world, json, output),
        HookCommand::Trust(arguments) => trust::approve(&arguments, world, output),
        HookCommand::Untrust { ids, all } => trust::withdraw(&ids, all, world, output),
    }
}
