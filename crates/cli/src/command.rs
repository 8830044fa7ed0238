//! One file per command.

use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;
use crate::world::World;

mod chat;
mod demo;
pub(crate) mod hook;
mod run;
mod session;

pub(crate) fn run(command: Command, world: &World, output: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Hook { command } => hook::run_command(command, world, output),
        Command::Run(arguments) => run::run(&arguments, world, output),
        Command::Chat { agent } => chat::run(&agent, world, output),
        Command::Session { command } => session::run(command, world, output),
        Command::Demo { json } => demo::run(world, json, output),
    }
}
