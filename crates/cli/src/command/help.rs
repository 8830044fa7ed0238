//! `ollm help`: explains a command, or the code of an error.

use std::ffi::OsString;

use clap::Command;
use ollm_protocol::{Code, nearest};

use crate::arguments;
use crate::code;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(words: &[String], output: &mut Output) -> Result<u8, Failure> {
    match words {
        [one] if one == "codes" => return output.text(&code::list()),
        [one, ..] => {
            if let Some(code) = Code::by_id(one) {
                return output.text(&code::page(code));
            }
            let all = arguments::command_line();
            if all.find_subcommand(one).is_none() {
                return Err(unknown(one, &all));
            }
        }
        [] => {}
    }
    let asked: Vec<OsString> = words.iter().map(OsString::from).chain([OsString::from("--help")]).collect();
    arguments::parse(&asked, output).map(|_| OK)
}

fn unknown(word: &str, all: &Command) -> Failure {
    let failure = Failure::new(Code::UnknownName, format!("`{word}` is neither a command nor the code of an error"));
    match nearest(word, all.get_subcommands().map(Command::get_name)) {
        Some(near) => failure.hint(format!("did you mean `ollm help {near}`?")),
        None => failure.hint("`ollm help` lists the commands, `ollm help codes` the codes"),
    }
}
