//! One file per command.

use ollm_app::AppContext;

use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;

mod r#box;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
mod connect;
pub(crate) mod demo;
mod doctor;
mod emit;
mod explain;
pub(crate) mod ext;
mod git_hook;
mod help;
pub(crate) mod hook;
mod man;
pub(crate) mod mcp;
mod model;
mod replay;
pub(crate) mod review;
mod run;
mod schema;
mod session;
pub(crate) mod skill;
pub(crate) mod trace;
pub(crate) mod trust;
mod tui;
mod watch;
pub(crate) mod welcome;

pub(crate) fn run(command: Command, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match command {
        Command::Hook { command } => hook::run_command(command, context, output),
        Command::Box(arguments) => r#box::run(&arguments, context, output),
        Command::Emit(arguments) => emit::run(&arguments, context, output),
        Command::Connect(arguments) => connect::connect(&arguments, context, output),
        Command::Disconnect(arguments) => connect::disconnect(&arguments, context, output),
        Command::Import(arguments) => connect::import(&arguments, context, output),
        Command::GitHook { command } => git_hook::run_command(&command, context, output),
        Command::Watch { json } => watch::run(json, context, output),
        Command::Doctor(arguments) => doctor::run(&arguments, context, output),
        Command::Completions(arguments) => completions::run(&arguments, context, output),
        Command::Schema(arguments) => schema::run(&arguments, context, output),
        Command::Help { words } => help::run(&words, output),
        Command::Man { out } => man::run(out.as_deref(), output),
        Command::Explain(arguments) => explain::run(&arguments, context, output),
        Command::Replay(arguments) => replay::run(&arguments, context, output),
        Command::Tui(arguments) => tui::run(&arguments, context, output),
        Command::Trace(arguments) => trace::run(&arguments, context, output),
        Command::Ext { command } => ext::run_command(command, context, output),
        Command::Skill { command } => skill::run_command(command, context, output),
        Command::Config { command } => config::run_command(command, context, output),
        Command::Trust { command } => trust::run_command(&command, context, output),
        Command::Mcp { command } => mcp::run_command(command, context, output),
        Command::Run(arguments) => run::run(&arguments, context, output),
        Command::Chat { agent } => chat::run(&agent, context, output),
        Command::Model { command } => model::run(&command, context, output),
        Command::Session { command } => session::run(command, context, output),
        Command::Demo { json } => demo::run(context, json, output),
    }
}
