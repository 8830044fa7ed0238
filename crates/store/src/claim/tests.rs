use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::digest_bytes;

/// Longer than any test takes.
const FRESH: Duration = Duration::from_mins(5);
const LARGEST: usize = 100;

struct World(tempfile::TempDir);

impl World {
    fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("state/calls")
    }

    fn file(&self, work: &str) -> PathBuf {
        self.folder().join(digest_bytes(work.as_bytes()).hex())
    }

    /// Claims a piece of work as if this many minutes had passed.
    fn take_at(&self, work: &str, minutes: u64, patience: Duration) -> Result<Turn, FileError> {
        let claims = Claims { folder: &self.folder(), fresh: FRESH, largest: LARGEST };
        claims.take(&digest_bytes(work.as_bytes()), patience, || SystemTime::now() + Duration::from_mins(minutes))
    }

    fn take(&self, work: &str) -> Result<Turn, FileError> {
        self.take_at(work, 0, Duration::ZERO)
    }

    fn first(&self, work: &str) -> Claim {
        match self.take(work) {
            Ok(Turn::First(claim)) => claim,
            other => panic!("{other:?}"),
        }
    }
}

fn result(turn: Result<Turn, FileError>) -> Option<Vec<u8>> {
    match turn.unwrap() {
        Turn::Done(result) => Some(result),
        Turn::First(_) => None,
    }
}

#[test]
fn the_first_does_the_work_and_who_waits_meanwhile_gets_what_came_of_it() {
    let world = World::new();
    let claim = world.first("a");
    let (waits, waiting) = mpsc::channel();
    thread::scope(|scope| {
        let second = scope.spawn(|| {
            waits.send(()).unwrap();
            world.take_at("a", 0, Duration::from_mins(1))
        });
        waiting.recv().unwrap();
        claim.settle(b"done");
        assert_eq!(result(second.join().unwrap()).unwrap(), b"done");
    });
    assert_eq!(result(world.take("a")).unwrap(), b"done", "whoever comes soon after reads it as well");
}

#[test]
fn other_work_waits_for_nobody() {
    let world = World::new();
    let _held = world.first("a");
    world.first("b").settle(b"b");
    assert!(matches!(world.take("a"), Err(FileError::Locked { .. })));
}

#[test]
fn work_that_was_dropped_or_is_too_large_to_keep_is_done_again() {
    let world = World::new();
    drop(world.first("a"));
    world.first("a").settle(&[b'x'; LARGEST + 1]);
    world.first("a").settle(&[b'x'; LARGEST]);
    assert_eq!(result(world.take("a")).unwrap(), [b'x'; LARGEST]);
}

#[test]
fn what_is_old_or_from_the_future_does_not_count() {
    let world = World::new();
    world.first("a").settle(b"a long result");
    assert_eq!(result(world.take_at("a", 6, Duration::ZERO)), None);
    world.first("a").settle(b"new");
    assert_eq!(result(world.take("a")).unwrap(), b"new", "nothing of the longer one is left");
    let later = SystemTime::now() + Duration::from_mins(1);
    File::options().append(true).open(world.file("a")).unwrap().set_modified(later).unwrap();
    world.first("a");
}

#[test]
fn files_are_their_owners_alone_and_others_are_refused() {
    let world = World::new();
    world.first("a").settle(b"a");
    let mode = |path: PathBuf| path.metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(world.file("a")), mode(world.folder())), (0o600, 0o700));
    fs::set_permissions(world.file("a"), Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(world.take("a"), Err(FileError::Refused { .. })));
    let elsewhere = world.0.path().join("elsewhere");
    fs::write(&elsewhere, "forged").unwrap();
    symlink(&elsewhere, world.file("b")).unwrap();
    assert!(matches!(world.take("b"), Err(FileError::Link { .. })));
    fs::create_dir(world.file("c")).unwrap();
    assert!(world.take("c").is_err());
}

#[test]
fn what_earlier_work_left_is_cleared_away_and_nothing_else() {
    let world = World::new();
    let works: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    for work in &works {
        world.first(work).settle(b"done");
    }
    fs::write(world.folder().join("notes"), "of a person").unwrap();
    let held = world.first("held");
    for work in &works {
        drop(world.take_at(&format!("later {work}"), 6, Duration::ZERO).unwrap());
    }
    assert!(works.iter().all(|work| !world.file(work).exists()));
    assert!(world.folder().join("notes").exists());
    assert!(world.file("held").exists(), "who works for minutes is not done yet");
    drop(held);
    drop(world.first("held"));
}
