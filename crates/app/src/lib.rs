//! The application of `ollm` without a terminal: it loads what is declared, joins the rooms, keeps servers and sessions
//! alive, and prints nothing. The program `ollm` is one door to it; another program may be the next.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod agent_signs;
mod app;
mod app_context;
mod approval_key;
mod builder;
mod calls;
pub mod cases;
pub mod command_box;
pub mod connect;
pub mod control;
pub mod doctor;
mod error;
pub mod git_hook;
mod guards;
pub mod model;
mod port;
pub mod questions;
pub mod rehearsal;
mod reload;
pub mod scaffold;
pub mod secrets;
pub mod servers;
pub mod session;
pub mod trace;

pub use agent_signs::{agent_above, refuse_agents, refuse_approval};
pub use app::{
    App, LoadOptions, Only, approximately, extensions, extensions_again, extensions_as_approved, switch_name,
    unreliable,
};
pub use app_context::AppContext;
pub use approval_key::UnlockedKey;
pub use builder::AppBuilder;
pub use calls::Turn;
pub use error::{AppError, ErrorKind};
pub use port::{Notices, Person, Shared};
pub use reload::ReloadWatcher;

#[cfg(test)]
mod tests {
    use super::session::{PromptPorts, SessionOptions, SessionSetup};
    use super::{App, AppBuilder, AppContext, Shared};

    /// It does not compile otherwise.
    #[test]
    fn an_app_and_what_a_prompt_needs_can_be_moved_into_a_thread() {
        fn is_send<T: Send>() {}
        is_send::<(App, AppBuilder, AppContext)>();
        is_send::<(PromptPorts<'static>, SessionOptions, SessionSetup, Shared<Vec<String>>)>();
    }
}
