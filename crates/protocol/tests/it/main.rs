//! The promises of the protocol crate, each as the sentence that must hold.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests stop a test that way"
)]

mod agents;
mod answers;
mod clients;
mod golden;
mod hook;
mod laws;
mod names;
mod pattern;
mod properties;
mod robust;
mod round_trip;
mod schema_check;
mod schemas;
mod scope;

use ollm_protocol::dialect::Addressee;
use ollm_protocol::{Dialect, End, EventKind, HookAnswer, Output};
use proptest::prelude::ProptestConfig;
use serde_json::Value;

/// The hook that events are written for.
const HOOK: Addressee<'_> = Addressee::new("safety-check", "1.0.0");

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// What a hook that printed this and exited with 0 said at `before_tool`.
fn said(dialect: &dyn Dialect, stdout: &str) -> HookAnswer {
    ended(dialect, End::Exited(0), stdout, "")
}

/// What a hook that ended like this said at `before_tool`.
fn ended(dialect: &dyn Dialect, end: End, stdout: &str, stderr: &str) -> HookAnswer {
    said_at(dialect, EventKind::BeforeTool, end, stdout.as_bytes(), stderr.as_bytes())
}

fn said_at(dialect: &dyn Dialect, kind: EventKind, end: End, stdout: &[u8], stderr: &[u8]) -> HookAnswer {
    dialect.read_verdict(kind, &Output { end, stdout, stderr })
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}
