//! `ollm tui`: the panels.

use ollm_app::AppContext;

use crate::arguments::agent::TuiArguments;
use crate::error::Failure;

pub(super) fn run(arguments: &TuiArguments, context: &AppContext) -> Result<u8, Failure> {
    crate::tui::run(arguments, context)
}
