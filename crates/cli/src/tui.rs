//! The panels: full-screen views with a chat and the management of hooks.
//!
//! Three parts, each apart from the others:
//! - [`ui::Ui`] holds the panels and the dialogs. It takes keys and messages, returns effects ([`ui::Effect`]) and
//!   draws into a frame. It knows no terminal and no thread, so tests drive it like the loop does.
//! - [`event_loop`] waits for keys, signals and messages together, carries out the effects, and draws changes.
//!   Otherwise it sleeps.
//! - Jobs on threads of their own do the work ([`panel::Job`]). They run the commands of the program, with an
//!   [`crate::output::Output`] that writes to the panels and asks in dialogs ([`screen::Screen`]).
//!
//! A new panel is a file here that implements [`panel::Panel`], a name in [`panel::PanelName`] and a row in the
//! `Panels` of [`ui`].
//!
//! Text of a model, a server or a file has been escaped before it comes here. `Output` and the news of a session do
//! that with `escape_for_people`.

use ollm_app::AppContext;

use crate::arguments::agent::TuiArguments;
use crate::error::Failure;
use crate::output::is_conversation;

mod chat;
mod dialog;
mod doctor;
mod event_loop;
mod extensions;
mod form;
mod help;
mod hooks;
mod keyboard;
mod list;
mod list_panel;
mod markdown;
mod mcp;
pub(crate) mod panel;
pub(crate) mod restorer;
pub(crate) mod screen;
mod terminal;
pub(crate) mod text;
mod theme;
mod trace;
mod ui;
mod wakeup;

#[cfg(test)]
mod tests;

use panel::PanelName;

/// Shows the panels until the person leaves.
pub(crate) fn run(arguments: &TuiArguments, context: &AppContext) -> Result<u8, Failure> {
    if !is_conversation() {
        let commands = PanelName::ALL.map(|panel| format!("`{}`", panel.json_command()));
        return Err(Failure::usage("the panels need a terminal to be drawn on")
            .hint("`ollm chat` reads lines, also from a pipe")
            .hint(format!("what the panels show is printed by {}", commands.join(", "))));
    }
    event_loop::run(arguments, context)
}
