//! `ollm completions`: what a shell needs to complete our commands.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Cli;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(shell: Shell, output: &mut Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ollm", &mut script);
    output.bytes(&script, &[], OK)
}
