//! `ollm tui`: shows the panels, or the plain chat if the terminal cannot show them.

use ollm_app::AppContext;

use super::chat;
use crate::arguments::agent::TuiArguments;
use crate::error::Failure;
use crate::output::{Output, is_conversation};

pub(super) fn run(arguments: &TuiArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if is_conversation() && context.variable("TERM").as_deref() == Some("dumb") {
        output.tell("this terminal cannot show the panels (TERM is dumb); this is the plain chat");
        return chat::run(&arguments.agent, context, output);
    }
    crate::tui::run(arguments, context)
}
