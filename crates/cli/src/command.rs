//! One file per command.

use ollm_app::World;

use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;

mod chat;
mod completions;
pub(crate) mod config;
mod connect;
pub(crate) mod demo;
mod doctor;
mod emit;
pub(crate) mod ext;
mod git_hook;
pub(crate) mod hook;
mod man;
pub(crate) mod mcp;
pub(crate) mod review;
mod run;
mod schema;
mod session;
mod skill;
mod trace;
pub(crate) mod trust;

pub(crate) fn run(command: Command, world: &World, output: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Hook { command } => hook::run_command(command, world, output),
        Command::Emit(arguments) => emit::run(&arguments, world, output),
        Command::Connect(arguments) => connect::connect(&arguments, world, output),
        Command::Disconnect(arguments) => connect::disconnect(&arguments, world, output),
        Command::Import(arguments) => connect::import(&arguments, world, output),
        Command::GitHook { command } => git_hook::run_command(&command, world, output),
        Command::Doctor { json } => doctor::run(json, world, output),
        Command::Completions { shell } => completions::run(shell, output),
        Command::Schema(arguments) => schema::run(&arguments, world, output),
        Command::Man { out } => man::run(out.as_deref(), output),
        Command::Trace { command } => trace::run(&command, world, output),
        Command::Ext { command } => ext::run_command(command, world, output),
        Command::Skill { command } => skill::run_command(command, world, output),
        Command::Config { command } => config::run_command(command, world, output),
        Command::Trust { command } => trust::run_command(&command, world, output),
        Command::Mcp { command } => mcp::run_command(command, world, output),
        Command::Run(arguments) => run::run(&arguments, world, output),
        Command::Chat { agent } => chat::run(&agent, world, output),
        Command::Session { command } => session::run(command, world, output),
        Command::Demo { json } => demo::run(world, json, output),
    }
}
