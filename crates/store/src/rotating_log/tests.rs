use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, symlink};
use std::thread;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn log(home: &TempDir, bounds: Bounds) -> RotatingLog {
    RotatingLog::new(home.path().join("trace"), "t.jsonl", bounds)
}

const ROOMY: Bounds = Bounds { file: 1 << 20, files: 3 };

fn lines(log: &RotatingLog) -> Vec<String> {
    let lines = log.lines().unwrap().map(|line| String::from_utf8(line.unwrap()).unwrap());
    lines.collect()
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_folder_and_the_file_are_the_owners_alone() {
    let home = home();
    let log = log(&home, ROOMY);
    log.append("one").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&home.path().join("trace")), mode(&log.path())), (0o700, 0o600));
}

#[test]
fn a_folder_that_was_open_to_others_is_closed() {
    let home = home();
    let log = log(&home, ROOMY);
    fs::create_dir(home.path().join("trace")).unwrap();
    fs::set_permissions(home.path().join("trace"), Permissions::from_mode(0o777)).unwrap();
    log.append("one").unwrap();
    assert_eq!(fs::metadata(home.path().join("trace")).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_home_that_does_not_exist_is_not_made() {
    let home = home();
    let missing = home.path().join("nobody");
    let error = RotatingLog::new(missing.join(".ollm/trace"), "t.jsonl", ROOMY).append("one").unwrap_err();
    assert!(error.to_string().contains("cannot create the folder"), "{error}");
    assert!(!missing.exists());
}

#[test]
fn nothing_is_read_where_nothing_was_written() {
    assert_eq!(lines(&log(&home(), ROOMY)), Vec::<String>::new());
}

#[test]
fn a_line_break_inside_a_line_does_not_make_two() {
    let log_home = home();
    let log = log(&log_home, ROOMY);
    log.append("a\nb").unwrap();
    assert_eq!(lines(&log), ["a b"]);
}

#[test]
fn d15_a_link_in_place_of_the_file_is_refused_and_its_target_untouched() {
    let home = home();
    let log = log(&home, ROOMY);
    let victim = home.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(home.path().join("trace")).unwrap();
    symlink(&victim, log.path()).unwrap();
    let error = log.append("one").unwrap_err();
    assert!(matches!(error, FileError::Refused { why: "is a symbolic link", .. }), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn d15_a_link_in_place_of_the_folder_is_refused() {
    let home = home();
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, home.path().join("trace")).unwrap();
    let error = log(&home, ROOMY).append("one").unwrap_err();
    assert!(matches!(error, FileError::Refused { why: "is a symbolic link", .. }), "{error}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn d15_a_second_name_of_another_file_is_refused() {
    let home = home();
    let log = log(&home, ROOMY);
    let victim = home.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(home.path().join("trace")).unwrap();
    fs::hard_link(&victim, log.path()).unwrap();
    assert!(matches!(log.append("one"), Err(FileError::Refused { .. })));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_pipe_or_a_folder_in_place_of_the_file_never_hangs() {
    let home = home();
    let log = log(&home, ROOMY);
    fs::create_dir(home.path().join("trace")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, log.path(), Mode::from_raw_mode(0o600)).unwrap();
    assert!(matches!(log.append("one"), Err(FileError::NotRegular { kind: "named pipe", .. })));
    fs::remove_file(log.path()).unwrap();
    fs::create_dir(log.path()).unwrap();
    assert!(log.append("one").is_err());
}

#[test]
fn a_line_torn_by_a_full_disk_does_not_spoil_the_next() {
    let home = home();
    let log = log(&home, ROOMY);
    log.append("one").unwrap();
    // A full disk keeps the part of a line that fits into its last block.
    let half = "x".repeat(4096 - "one\n".len());
    OpenOptions::new().append(true).open(log.path()).unwrap().write_all(half.as_bytes()).unwrap();
    log.append("two").unwrap();
    assert_eq!(lines(&log), ["two", &half, "one"]);
}

#[test]
fn the_oldest_lines_go_and_the_rest_stay_in_order() {
    let home = home();
    let log = log(&home, Bounds { file: 100, files: 3 });
    for number in 0..100 {
        log.append(&format!("line {number:03}")).unwrap();
    }
    let kept = lines(&log);
    let expected: Vec<String> = (0..100).rev().map(|number| format!("line {number:03}")).take(kept.len()).collect();
    assert_eq!(kept, expected);
    assert!(kept.len() >= 20, "{}", kept.len());
    let mut names: Vec<_> = fs::read_dir(home.path().join("trace")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["t.jsonl", "t.jsonl.1", "t.jsonl.2", "t.jsonl.lock"]);
}

#[test]
fn a_line_larger_than_a_file_still_goes_somewhere() {
    let home = home();
    let log = log(&home, Bounds { file: 10, files: 2 });
    let line = "x".repeat(100);
    log.append(&line).unwrap();
    assert_eq!(lines(&log), [line.as_str()]);
    log.append("short").unwrap();
    assert_eq!(lines(&log), ["short", &line]);
}

#[test]
fn a_file_that_cannot_be_rotated_does_not_grow_for_ever() {
    let home = home();
    let log = log(&home, Bounds { file: 100, files: 2 });
    log.append("one").unwrap();
    // Another process holds the lock and does not rotate.
    let lock = File::create(home.path().join("trace/t.jsonl.lock")).unwrap();
    lock.lock().unwrap();
    let refused = (0..100).filter(|_| log.append("0123456789").is_err()).count();
    assert!(refused > 80, "{refused}");
    assert!(fs::metadata(log.path()).unwrap().len() <= 200);
}

#[test]
fn of_a_file_that_is_far_too_large_whole_lines_of_its_end_are_read() {
    let home = home();
    let log = log(&home, Bounds { file: 100, files: 1 });
    log.append("one").unwrap();
    fs::write(log.path(), "0123456\n".repeat(100_000)).unwrap();
    let read = lines(&log);
    assert!(read.len() < 20_000 && read.iter().all(|line| line == "0123456"), "{}", read.len());
}

#[test]
fn a_line_behind_something_far_too_large_is_handed_out_and_what_is_older_is_told() {
    let home = home();
    let log = log(&home, Bounds { file: 100, files: 1 });
    log.append("old").unwrap();
    let file = OpenOptions::new().append(true).open(log.path()).unwrap();
    file.set_len(10 << 30).unwrap();
    (&file).write_all(b"new\n").unwrap();
    let mut read = log.lines().unwrap();
    let line = read.next().unwrap().unwrap();
    assert!(line.ends_with(b"\0new") && line.len() < 1 << 20, "{}", line.len());
    assert!(read.next().is_none() && read.has_passed_over());
}

#[test]
fn lines_of_many_writers_stay_whole_and_none_is_lost() {
    let home = home();
    let roomy = log(&home, ROOMY);
    thread::scope(|scope| {
        for writer in 0..64 {
            let log = roomy.clone();
            scope.spawn(move || {
                for number in 0..20 {
                    let fill = "x".repeat((writer * 31 + number * 7) % 500);
                    log.append(&format!("{writer}-{number}-{fill}-end")).unwrap();
                }
            });
        }
    });
    let kept = lines(&roomy);
    assert!(kept.iter().all(|line| line.ends_with("-end")));
    assert_eq!(kept.iter().collect::<BTreeSet<_>>().len(), 64 * 20);
}

#[test]
fn rotation_among_many_writers_tears_no_line_and_doubles_none() {
    let home = home();
    let tight = log(&home, Bounds { file: 2000, files: 4 });
    thread::scope(|scope| {
        for writer in 0..32 {
            let log = tight.clone();
            scope.spawn(move || {
                for number in 0..40 {
                    // A writer that rotates may be delayed so long that the others fill the file twice over.
                    let appended = log.append(&format!("{writer}-{number}-end"));
                    assert!(matches!(appended, Ok(()) | Err(FileError::TooLarge { .. })), "{appended:?}");
                }
            });
        }
        for _ in 0..50 {
            assert!(tight.lines().unwrap().all(|line| line.unwrap().ends_with(b"-end")));
        }
    });
    let kept = lines(&tight);
    assert!(kept.iter().all(|line| line.ends_with("-end")));
    assert_eq!(kept.iter().collect::<BTreeSet<_>>().len(), kept.len());
    let files = fs::read_dir(home.path().join("trace")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = files.collect();
    assert!(sizes.len() <= 5 && sizes.iter().all(|size| *size <= 4000 + 32 * 20), "{sizes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_kept_is_the_end_of_what_was_written_and_never_too_much(
        written in prop::collection::vec("[a-z]{1,40}", 0..80),
        file in 20u64..400,
        files in 1usize..4,
    ) {
        let home = home();
        let log = log(&home, Bounds { file, files });
        for line in &written {
            log.append(line).unwrap();
        }
        let kept = lines(&log);
        let newest: Vec<String> = written.iter().rev().take(kept.len()).cloned().collect();
        prop_assert_eq!(&kept, &newest);
        prop_assert_eq!(kept.is_empty(), written.is_empty());
        let size: usize = kept.iter().map(|line| line.len() + 1).sum();
        prop_assert!(size as u64 <= 2 * file * files as u64 + 41);
    }
}

#[test]
fn each_line_goes_where_the_name_leads_now() {
    let home = home();
    let log = log(&home, Bounds { file: 1 << 20, files: 2 });
    log.append("one").unwrap();
    fs::rename(log.path(), home.path().join("aside")).unwrap();
    log.append("two").unwrap();
    assert_eq!(lines(&log), ["two"]);
    fs::remove_dir_all(log.path().parent().unwrap()).unwrap();
    log.append("three").unwrap();
    assert_eq!(lines(&log), ["three"]);
    fs::hard_link(log.path(), home.path().join("twin")).unwrap();
    log.append("four").unwrap_err();
    fs::remove_file(home.path().join("twin")).unwrap();
    fs::remove_file(log.path()).unwrap();
    symlink(home.path().join("aside"), log.path()).unwrap();
    log.append("five").unwrap_err();
    assert_eq!(fs::read_to_string(home.path().join("aside")).unwrap(), "one\n");
}

#[test]
fn lines_longer_than_what_is_read_at_once_are_whole() {
    let home = home();
    let log = log(&home, Bounds { file: 4 << 20, files: 2 });
    let large = |fill: &str| fill.repeat(100 << 10);
    for fill in ["a", "b", "c"] {
        log.append(&large(fill)).unwrap();
        log.append(fill).unwrap();
    }
    let expected: Vec<String> = ["c", "b", "a"].iter().flat_map(|fill| [(*fill).to_owned(), large(fill)]).collect();
    assert_eq!(lines(&log), expected);
}

#[test]
fn a_file_that_is_emptied_while_it_is_read_ends() {
    let home = home();
    let log = log(&home, ROOMY);
    (0..20_000).for_each(|number| log.append(&number.to_string()).unwrap());
    let mut reading = log.lines().unwrap();
    assert_eq!(reading.next().unwrap().unwrap(), b"19999");
    OpenOptions::new().write(true).truncate(true).open(log.path()).unwrap();
    assert!(reading.all(|line| line.is_ok()));
}

fn heard(follower: &mut Follower) -> Vec<String> {
    follower.read().unwrap().into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
}

#[test]
fn a_follower_hears_what_comes_after_it_across_any_number_of_rotations() {
    let home = home();
    let log = log(&home, Bounds { file: 20, files: 4 });
    log.append("before").unwrap();
    let mut follower = log.follow().unwrap();
    assert_eq!(heard(&mut follower), Vec::<String>::new());
    log.append("one").unwrap();
    assert_eq!(heard(&mut follower), ["one"]);
    let many: Vec<String> = (0..8).map(|number| format!("line {number}")).collect();
    for line in &many {
        log.append(line).unwrap();
    }
    assert_eq!(heard(&mut follower), many);
    assert_eq!(heard(&mut follower), Vec::<String>::new());
}

#[test]
fn a_follower_says_where_files_were_removed_before_it_read_them() {
    let home = home();
    let log = log(&home, Bounds { file: 20, files: 3 });
    let mut follower = log.follow().unwrap();
    log.append("first").unwrap();
    assert_eq!((heard(&mut follower).len(), follower.has_gap()), (1, false));
    (0..40).for_each(|number| log.append(&format!("line {number}")).unwrap());
    assert!(heard(&mut follower).len() < 40);
    assert!(follower.has_gap() && !follower.has_gap(), "it is said once");
}

#[test]
fn a_follower_loses_nothing_while_others_write_and_rotate() {
    const WRITERS: usize = 4;
    const LINES: usize = 2_000;
    let home = home();
    // There are enough files, so none is removed unread.
    let log = log(&home, Bounds { file: 300, files: 400 });
    let mut follower = log.follow().unwrap();
    let mut seen = Vec::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let log = log.clone();
                scope.spawn(move || {
                    // A writer that rotates may be delayed so long that the others fill the file twice over.
                    let kept = |number: &usize| log.append(&format!("{writer}-{number}")).is_ok();
                    (0..LINES).filter(kept).map(|number| format!("{writer}-{number}")).collect::<Vec<_>>()
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            seen.extend(heard(&mut follower));
        }
        seen.extend(heard(&mut follower));
        seen.extend(heard(&mut follower));
        let mut written: Vec<String> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        written.sort();
        seen.sort();
        let missing: Vec<&String> = written.iter().filter(|line| !seen.contains(line)).collect();
        assert!(
            missing.is_empty() && seen.len() == written.len(),
            "{missing:?} of {} and {}",
            seen.len(),
            written.len()
        );
    });
}

#[test]
fn a_follower_of_a_removed_file_goes_on_with_newer_ones_only() {
    let home = home();
    let log = log(&home, Bounds { file: 20, files: 4 });
    (0..8).for_each(|number| log.append(&format!("line {number}")).unwrap());
    let mut follower = log.follow().unwrap();
    fs::remove_file(log.path()).unwrap();
    assert_eq!(heard(&mut follower), Vec::<String>::new());
    log.append("new").unwrap();
    assert_eq!(heard(&mut follower), ["new"]);
}

#[test]
fn a_follower_loses_nothing_when_the_clock_jumps_back_while_its_file_is_rotated_away() {
    let home = home();
    let log = log(&home, Bounds { file: 20, files: 4 });
    (0..8).for_each(|number| log.append(&format!("line {number}")).unwrap());
    let mut follower = log.follow().unwrap();
    (0..20).for_each(|number| log.append(&format!("new {number}")).unwrap());
    let mut kept = lines(&log);
    kept.reverse();
    assert!(kept.iter().all(|line| line.starts_with("new")), "{kept:?}");
    for age in 0..4 {
        let file = OpenOptions::new().write(true).open(log.aged(age)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    // The lines of the file that it had open come first.
    kept.insert(0, "new 0".to_owned());
    assert_eq!(heard(&mut follower), kept);
    assert_eq!(heard(&mut follower), Vec::<String>::new());
}

#[test]
fn of_a_followed_file_that_becomes_far_too_large_only_the_end_is_read() {
    let home = home();
    let log = log(&home, Bounds { file: 100, files: 1 });
    log.append("one").unwrap();
    let mut follower = log.follow().unwrap();
    let file = OpenOptions::new().append(true).open(log.path()).unwrap();
    file.set_len(10 << 30).unwrap();
    (&file).write_all(b"\nlast\n").unwrap();
    assert_eq!(heard(&mut follower), ["last"]);
}

#[test]
fn a_follower_waits_for_a_file_and_for_the_end_of_a_line() {
    let home = home();
    let log = log(&home, ROOMY);
    let mut follower = log.follow().unwrap();
    assert_eq!(heard(&mut follower), Vec::<String>::new());
    log.append("first").unwrap();
    assert_eq!(heard(&mut follower), ["first"]);
    let mut file = OpenOptions::new().append(true).open(log.path()).unwrap();
    file.write_all(b"half ").unwrap();
    assert_eq!(heard(&mut follower), Vec::<String>::new());
    file.write_all(b"a line\n").unwrap();
    assert_eq!(heard(&mut follower), ["half a line"]);
    file.write_all(&vec![b'x'; 300 << 10]).unwrap();
    file.write_all(b"\nafter one that is too long\n").unwrap();
    assert_eq!(heard(&mut follower), ["after one that is too long"]);
}
