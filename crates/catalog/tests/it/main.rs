//! The catalog from the outside: folders with files in them go in, hooks and problems come out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::type_complexity,
    reason = "a test that cannot go on should stop, and its tables are read by eye"
)]

mod agent;
mod bad;
mod config;
mod config_docs;
mod config_edit;
mod config_laws;
mod connection;
mod edit;
mod entries;
mod extension_docs;
mod extension_faults;
mod extension_index;
mod extension_laws;
mod extension_places;
mod extension_schema;
mod extensions;
mod files;
mod forms;
mod hook_keys;
mod manifest_keys;
mod paths;
mod places;
mod policy;
mod robust;
mod round_trip;
mod schemas;
mod server_keys;
mod server_schema;
mod servers;
mod snapshot;
mod world;
mod written;
