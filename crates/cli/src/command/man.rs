//! `ollm man`: prints the manual, one page or all of them.

use std::path::Path;

use clap_mangen::Man;
use ollm_protocol::Code;

use crate::arguments::command_line;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(folder: Option<&Path>, output: &mut Output) -> Result<u8, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::NotWritten, format!("the manual cannot be written: {error}"))
            .hint("--out names a folder that can be written to")
    };
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(command_line()).render(&mut page).map_err(failed)?;
        return output.bytes(&page, &[], OK);
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command_line(), folder).map_err(failed)?;
    output.tell(&format!("the pages are in {}; read one with `man {0}/ollm.1`", folder.display()));
    Ok(OK)
}
