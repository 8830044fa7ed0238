//! `ollm`: hooks for AI agents. This crate is the door: arguments, printing, and the wiring of the other crates.

#![forbid(unsafe_code)]

mod agent;
mod app;
mod arguments;
mod command;
mod error;
mod guards;
mod open;
mod output;
mod problem;
mod servers;
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
    let (overrides, rest) = arguments::overrides(arguments)?;
    let world = || World::of_this_process().map(|world| world.with(overrides));
    let words: Vec<&str> = rest.iter().take(2).filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["--version" | "-V"] => output.line(concat!("ollm ", env!("CARGO_PKG_VERSION"))),
        ["hook", "run"] if !arguments::wants_help(rest) => {
            let request = command::hook::run::Arguments::parse(rest.get(2..).unwrap_or_default())?;
            command::hook::run::run(&request, &world()?, output)
        }
        _ => match arguments::parse(arguments, output)? {
            Some(command) => command::run(command, &world()?, output),
            None => Ok(error::OK),
        },
    }
}
