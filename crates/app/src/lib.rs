//! The application of `ollm` without a terminal: it loads what is declared, joins the rooms, keeps servers and sessions
//! alive, and prints nothing. The program `ollm` is one door to it; another program may be the next.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod agent_signs;
mod app;
mod builder;
pub mod control;
mod error;
mod guards;
pub mod model;
mod port;
pub mod questions;
mod reload;
pub mod secrets;
pub mod servers;
pub mod session;
pub mod trace;
mod world;

pub use agent_signs::{agent_above, refuse_agents};
pub use app::{
    App, LoadOptions, Only, approximately, extensions, extensions_again, extensions_as_approved, switch_name,
    unreliable,
};
pub use builder::AppBuilder;
pub use error::{AppError, ErrorKind};
pub use port::{Notices, Person};
pub use reload::ReloadWatcher;
pub use world::World;
