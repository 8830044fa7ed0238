//! `ollm`: hooks for AI agents. This crate is the door: arguments, printing, and the wiring of the other crates.

#![forbid(unsafe_code)]

mod agent;
mod app;
mod arguments;
mod command;
mod display;
mod error;
mod guards;
mod host;
mod interrupt;
mod model;
mod open;
mod output;
mod problem;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use error::Failure;
use output::Output;
use world::World;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut output = Output::new();
    let code = match run(&arguments, &mut output) {
        Ok(code) => code,
        Err(failure) => output.failure(&failure),
    };
    ExitCode::from(code)
}

/// Other agents start us for every event, so what they call is found before the argument parser is built.
fn run(arguments: &[OsString], output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<&str> = arguments.iter().take(2).filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["--version" | "-V"] => output.line(concat!("ollm ", env!("CARGO_PKG_VERSION"))),
        ["hook", "run"] if !arguments::wants_help(arguments) => {
            let request = command::hook::run::Arguments::parse(arguments.get(2..).unwrap_or_default())?;
            command::hook::run::run(&request, &World::of_this_process()?, output)
        }
        _ => match arguments::parse(arguments, output)? {
            Some(command) => command::run(command, &World::of_this_process()?, output),
            None => Ok(error::OK),
        },
    }
}
