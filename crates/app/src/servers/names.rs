//! Decides between servers with the same name: calls and settings for the name go to one of them.

use ollm_catalog::{Problem, taken_server};
use ollm_protocol::{Layer, Source};

use super::DeclaredServer;

/// Keeps one server per name, nearest to the user first. The others become problems, unless a person switched them off.
pub(super) fn settle(mut all: Vec<DeclaredServer>, problems: &mut Vec<Problem>) -> Vec<DeclaredServer> {
    all.sort_by_key(rank);
    let mut settled: Vec<DeclaredServer> = Vec::with_capacity(all.len());
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

/// The rank of a server; smaller is nearer to the user. A server that may not run never takes a name from one that may.
/// Only the user's own servers always keep their names, because no other server speaks for the user.
pub(super) fn rank(known: &DeclaredServer) -> (bool, u8) {
    match (&known.bundle, known.spec.source) {
        (Some(bundle), _) => (!may_run(known), if bundle.layer == Layer::User { 1 } else { 3 }),
        (None, Source::User) => (false, 0),
        (None, _) => (!may_run(known), 2),
    }
}

/// Whether a person wants it to run. A server whose program is missing keeps its name until the program is installed.
fn may_run(known: &DeclaredServer) -> bool {
    let hindered = known.bundle.as_ref().is_some_and(|bundle| bundle.obstacle.is_some());
    known.spec.enabled && known.is_approved() && !hindered
}
