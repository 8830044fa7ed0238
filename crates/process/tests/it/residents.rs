//! Programs that stay until they are told to end.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use ollm_process::{Children, End, Job, Limits, Resident};
use rustix::fs::{OFlags, fcntl_setfl};

use crate::support::{ENDLESS, PATIENCE, children_of, eventually, plays, role, runs, sh};

const AT_ONCE: Duration = Duration::ZERO;

/// A shell script that is killed soon after it was asked to end.
fn start(script: &str) -> Resident {
    let limits = Limits { grace: Duration::from_millis(200), ..Limits::default() };
    Children::new().start(&Job { limits, ..sh(script) }).unwrap()
}

fn blocking(end: OwnedFd) -> File {
    fcntl_setfl(&end, OFlags::empty()).unwrap();
    end.into()
}

/// The next lines that the program writes.
fn lines(end: OwnedFd, count: usize) -> Vec<String> {
    BufReader::new(blocking(end)).lines().take(count).map(Result::unwrap).collect()
}

#[test]
fn a_resident_answers_until_its_input_is_closed() {
    let mut resident = start("while read line; do echo \"<$line>\"; done; exit 7");
    let streams = resident.streams().unwrap();
    assert!(resident.streams().is_none(), "they are given away once");
    let (mut stdin, stdout) = (blocking(streams.stdin), blocking(streams.stdout));
    let mut stdout = BufReader::new(stdout);
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("<{word}>\n"));
    }
    assert!(resident.reap().is_none(), "it still runs");
    drop(stdin);
    assert!(matches!(resident.stop(PATIENCE), End::Exited(7)));
}

#[test]
fn a_resident_that_minds_no_end_of_input_is_asked_and_then_made_to_end() {
    let mut polite = start(&format!("trap 'exit 4' TERM; echo; {ENDLESS} & wait"));
    lines(polite.streams().unwrap().stdout, 1);
    assert!(matches!(polite.stop(AT_ONCE), End::Exited(4)));
    let mut deaf = start(&format!("trap '' TERM; echo; {ENDLESS}; :"));
    lines(deaf.streams().unwrap().stdout, 1);
    assert!(matches!(deaf.stop(AT_ONCE), End::Signalled(9)));
}

#[test]
fn the_end_of_a_resident_takes_its_group_along() {
    let mut resident = start(&format!("{ENDLESS} & echo $!; exit 3"));
    let child = lines(resident.streams().unwrap().stdout, 1).remove(0);
    let mut end = None;
    eventually("it has ended", || {
        end = resident.reap();
        end.is_some()
    });
    assert!(matches!(end, Some(End::Exited(3))));
    eventually("its child is gone", || !runs(&child));
    assert!(matches!(resident.reap(), Some(End::Lost)), "the status is known once");
    resident.kill();
}

#[test]
fn a_dropped_resident_takes_its_group_along() {
    let mut resident = start(&format!("trap '' TERM; {ENDLESS} & echo $!; echo $$; {ENDLESS}; :"));
    let group = lines(resident.streams().unwrap().stdout, 2);
    assert!(group.iter().all(|pid| runs(pid)));
    drop(resident);
    for pid in group {
        eventually("nobody is left", || !runs(&pid));
    }
}

#[test]
fn the_exit_of_a_resident_can_be_waited_for() {
    let mut resident = start("read line");
    let id = resident.id().to_string();
    assert!(runs(&id));
    let exit = resident.exit_file().unwrap().try_clone_to_owned().unwrap();
    drop(resident.streams());
    rustix::event::poll(&mut [rustix::event::PollFd::new(&exit, rustix::event::PollFlags::IN)], None).unwrap();
    assert!(matches!(resident.reap(), Some(End::Exited(1))));
}

#[test]
fn a_resident_that_cannot_start_says_why() {
    let error = Children::new().start(&Job::new("/does/not/exist")).unwrap_err();
    assert_eq!(error.to_string(), "`/does/not/exist` does not exist");
}

#[test]
fn residents_are_not_adopted_and_die_with_us() {
    let mut victim = role("residents::victim").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(victim.stdout.take().unwrap());
    let mut doomed = Vec::new();
    while doomed.len() < 2 {
        let mut line = String::new();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the victim ended early");
        doomed.extend(line.strip_prefix("doomed ").map(|pid| pid.trim().to_owned()));
    }
    doomed.extend(children_of(&victim.id().to_string()));
    assert!(doomed.iter().all(|pid| runs(pid)), "{doomed:?}");
    victim.kill().unwrap();
    victim.wait().unwrap();
    for pid in doomed {
        eventually("nobody is left", || !runs(&pid));
    }
}

#[test]
#[ignore = "a role that `residents_are_not_adopted_and_die_with_us` starts"]
fn victim() {
    if !plays("residents::victim") {
        return;
    }
    let _setup = ollm_process::ProcessSetup::new();
    let children = Children::new();
    let job = sh(&format!("trap '' TERM; {ENDLESS} & echo doomed $!; echo doomed $$; {ENDLESS}; :"));
    let mut resident = children.start(&job).unwrap();
    let noted = lines(resident.streams().unwrap().stdout, 2);
    assert_eq!(children.kill_adopted(), 0);
    assert!(resident.reap().is_none());
    println!("\n{}", noted.join("\n"));
    std::thread::park_timeout(PATIENCE);
    drop(resident);
}
