//! Who has a name that several servers are declared under: whoever has it is sent what is meant for that server.

use ollm_catalog::{Problem, taken_server};
use ollm_protocol::{Layer, Source};

use super::ServerEntry;

/// Leaves one server of each name, nearest to the user first; the others are problems, unless a person switched them off.
pub(super) fn settle(mut all: Vec<ServerEntry>, problems: &mut Vec<Problem>) -> Vec<ServerEntry> {
    all.sort_by_key(rank);
    let mut settled: Vec<ServerEntry> = Vec::with_capacity(all.len());
    for known in all {
        match settled.iter().find(|other| other.spec.name == known.spec.name) {
            None => settled.push(known),
            Some(other) if known.bundle.as_ref().is_none_or(|bundle| bundle.on) => {
                problems.push(taken_server(&known.spec, &other.spec));
            }
            Some(_) => {}
        }
    }
    settled
}

/// The smaller, the nearer to the user. Who may not run never takes a name from who may; only the user's own servers keep
/// theirs whatever became of them, because nobody else speaks for the user.
pub(super) fn rank(known: &ServerEntry) -> (bool, u8) {
    match (&known.bundle, known.spec.source) {
        (Some(bundle), _) => (!may_run(known), if bundle.layer == Layer::User { 1 } else { 3 }),
        (None, Source::User) => (false, 0),
        (None, _) => (!may_run(known), 2),
    }
}

/// Whether a person wants it to run. One whose program is missing waits for it, and for nobody else.
fn may_run(known: &ServerEntry) -> bool {
    let hindered = known.bundle.as_ref().is_some_and(|bundle| bundle.obstacle.is_some());
    known.spec.enabled && known.is_approved() && !hindered
}
