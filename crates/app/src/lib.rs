//! The application of `ollm` without a terminal. It loads what is declared, connects the other crates, keeps servers
//! and sessions alive, and prints nothing. The program `ollm` is one front end; other programs can embed it.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod agent_signs;
mod app;
mod app_context;
mod approval_key;
pub mod approving;
mod belongings;
mod builder;
mod calls;
pub mod cases;
pub mod command_box;
mod complete;
pub mod connect;
pub mod control;
pub mod dev;
pub mod dispatch;
pub mod doctor;
mod error;
pub mod extension_review;
mod file_follower;
mod forecast;
mod git;
pub mod git_hook;
mod guards;
pub mod install;
mod live_app;
mod migrate;
pub mod model;
mod nested;
mod notifier;
pub mod outcome;
mod port;
mod problems;
pub mod questions;
pub mod rehearsal;
mod reload;
mod remote_files;
pub mod replay;
pub mod scaffold;
pub mod secrets;
mod senders;
pub mod servers;
pub mod session;
pub mod telemetry;
pub mod trace;
mod undeclared;
pub mod validation;
mod wake_signal;
pub mod watch;

pub use agent_signs::{agent_above, refuse_agents, refuse_approval};
pub use app::{
    App, ExtensionFilter, LoadOptions, extensions, extensions_again, extensions_as_approved, switch_name, unreliable,
};
pub use app_context::AppContext;
pub use approval_key::UnlockedKey;
pub use belongings::{belongings, remove_belongings};
pub use builder::AppBuilder;
pub use calls::Turn;
pub use error::AppError;
pub use file_follower::FileFollower;
pub use forecast::Forecast;
pub use live_app::LiveApp;
pub use migrate::{MigrateError, migrate, migrate_on_load, migration_json};
pub use nested::{refuse_too_deep, sent_by_hook};
pub use port::{Notices, Person, SharedPort};
pub use reload::ReloadWatcher;
pub use senders::unsent_events;
pub use undeclared::{tell_undeclared, undeclared_line, undeclared_today};
pub use wake_signal::{Wait, WakeSignal};

#[cfg(test)]
mod tests {
    use ollm_agent::Session;

    use super::session::{PromptPorts, SessionOptions, SessionSetup};
    use super::{App, AppBuilder, AppContext, LiveApp, SharedPort};

    /// A compile-time check.
    #[test]
    fn an_app_and_a_session_can_be_moved_into_a_thread() {
        fn is_send<T: Send>() {}
        is_send::<(App, AppBuilder, AppContext, LiveApp)>();
        is_send::<(PromptPorts<'static>, SessionOptions, SessionSetup, SharedPort<Vec<String>>)>();
        is_send::<Session<'static>>();
    }
}
