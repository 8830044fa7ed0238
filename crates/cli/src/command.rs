//! One file per command.

use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;
use crate::world::World;

pub(crate) mod config;
mod demo;
pub(crate) mod hook;
mod mcp;

pub(crate) fn run(command: Command, world: &World, output: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Hook { command } => hook::run_command(command, world, output),
        Command::Config { command } => config::run_command(command, world, output),
        Command::Mcp { command } => mcp::run_command(command, world, output),
        Command::Demo { json } => demo::run(world, json, output),
    }
}
