use std::fs;

use super::*;

const START: u64 = 1_800_000_000;

fn at(seconds: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(START) + Duration::from_secs_f64(seconds)
}

fn quota(key: &str, per_minute: Option<u32>, cooldown: Option<f64>) -> Quota {
    Quota { key: key.to_owned(), per_minute, cooldown: cooldown.map(Duration::from_secs_f64) }
}

struct World(tempfile::TempDir);

impl World {
    fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("state/usage")
    }

    fn take(&self, quotas: &[Quota], seconds: f64) -> Option<(usize, f64)> {
        let usage = take(&self.path(), quotas, || at(seconds)).unwrap();
        assert_eq!(usage.trouble, None);
        usage.exhausted.map(|(index, wait)| (index, wait.as_secs_f64()))
    }
}

#[test]
fn so_many_fit_into_any_minute_and_no_more() {
    let world = World::new();
    let two = [quota("a", Some(2), None)];
    assert_eq!(world.take(&two, 0.0), None);
    assert_eq!(world.take(&two, 30.0), None);
    assert_eq!(world.take(&two, 59.0), Some((0, 1.0)));
    assert_eq!(world.take(&two, 60.0), None);
    assert_eq!(world.take(&two, 60.5), Some((0, 29.5)));
    assert_eq!(world.take(&two, 90.0), None);
}

#[test]
fn a_cooldown_counts_from_the_last_time_that_was_granted() {
    let world = World::new();
    let hour = [quota("a", None, Some(3600.0))];
    assert_eq!(world.take(&hour, 0.0), None);
    assert_eq!(world.take(&hour, 3500.0), Some((0, 100.0)));
    assert_eq!(world.take(&hour, 3600.0), None);
}

#[test]
fn nothing_is_taken_from_any_quota_when_one_is_used_up() {
    let world = World::new();
    let (own, all) = (quota("own", Some(5), None), quota("all", Some(1), None));
    assert_eq!(world.take(std::slice::from_ref(&all), 0.0), None);
    assert_eq!(world.take(&[own.clone(), all], 1.0), Some((1, 59.0)));
    let left = (0..9).filter(|_| world.take(std::slice::from_ref(&own), 2.0).is_none()).count();
    assert_eq!(left, 5);
}

#[test]
fn looking_takes_nothing() {
    let world = World::new();
    let one = [quota("a", Some(1), None)];
    for _ in 0..3 {
        assert_eq!(UsedQuota::read(&world.path()).unwrap().exhausted(&one, at(0.0)), None);
    }
    assert_eq!(world.take(&one, 0.0), None);
    let used = UsedQuota::read(&world.path()).unwrap();
    assert_eq!(used.exhausted(&one, at(1.0)), Some((0, Duration::from_secs(59))));
}

#[test]
fn a_clock_that_is_set_back_does_not_shut_anything_out_for_long() {
    let world = World::new();
    let one = [quota("a", Some(1), None)];
    assert_eq!(world.take(&one, 86_400.0), None);
    assert_eq!(world.take(&one, 100.0), None);
    assert_eq!(world.take(&one, 70.0), Some((0, 60.0)));
}

#[test]
fn what_cannot_be_read_is_dropped_and_said() {
    let world = World::new();
    let one = [quota("a", Some(1), None)];
    fs::create_dir_all(world.path().parent().unwrap()).unwrap();
    for (content, word) in [
        (&b"\xff\xfe"[..], "cannot be read"),
        (b"", "form"),
        (b"{}", "form"),
        (b"ollm-usage 2\n1 2 a\n", "form"),
        (b"ollm-usage 1\nnonsense\n18446744073709551615 0 a\n1 2\n", "3 lines"),
    ] {
        fs::write(world.path(), content).unwrap();
        let usage = take(&world.path(), &one, || at(0.0)).unwrap();
        assert!(usage.trouble.as_ref().is_some_and(|text| text.contains(word)), "{usage:?}");
        assert_eq!(usage.exhausted, None);
        assert_eq!(world.take(&one, 1.0), Some((0, 59.0)));
    }
    let file = fs::File::create(world.path()).unwrap();
    file.set_len(1 << 30).unwrap();
    assert!(take(&world.path(), &one, || at(0.0)).unwrap().trouble.unwrap().contains("too large"));
}

#[test]
fn a_file_that_cannot_be_is_an_error_and_never_hangs() {
    let world = World::new();
    fs::create_dir_all(world.path()).unwrap();
    assert!(take(&world.path(), &[quota("a", Some(1), None)], || at(0.0)).is_err());
}

#[test]
fn old_entries_do_not_pile_up() {
    let world = World::new();
    for second in 0..500_u32 {
        world.take(&[quota("a", Some(100), None)], f64::from(second));
    }
    assert!(fs::metadata(world.path()).unwrap().len() < 100 * 80);
}

#[test]
fn threads_that_take_at_once_get_exactly_what_there_is() {
    let world = World::new();
    let path = world.path();
    let given: usize = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| {
                let quotas = [quota("a", Some(20), None)];
                let path = &path;
                scope.spawn(move || {
                    (0..10).filter(|_| take(path, &quotas, || at(0.0)).unwrap().exhausted.is_none()).count()
                })
            })
            .collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!(given, 20);
}
