//! Descendants of residents that leave group, session and parent, and take no environment along: nothing tells whose they
//! are but that a reaper above them adopts them. Roles run in processes of their own, because they end badly.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ollm_process::{Children, End, Job, Limits, ProcessSetup, Resident};

use crate::support::{PATIENCE, children_of, eventually, play, plays, role, runs, sh};

/// Daemons that bear nothing of ours: a plain one, a grandchild of one that has ended, one that minds no polite signal,
/// and one with a child of its own. Each notes its number.
const DAEMONS: &str = r#"
    daemon() { (setsid env -i /bin/sh -c "echo \$\$ >>'$NOTES/daemons'; $1" >/dev/null 2>&1 </dev/null &) }
    daemon 'exec sleep 300'
    daemon "(setsid env -i sh -c 'echo \$\$ >>$NOTES/daemons; exec sleep 300' &)"
    daemon 'trap "" TERM HUP INT; sleep 300; sleep 300'
    daemon 'setsid sleep 300 & setsid sleep 300'
    while [ "$(wc -l <"$NOTES/daemons")" -lt 5 ]; do sleep 0.01; done
"#;
/// How many of them note their number, one of which ends by itself.
const NOTED: usize = 5;

/// Makes sure that what is done to the parent is done to a reaper.
const KEPT: &str = "[ \"$(cat /proc/$PPID/comm)\" = children-reaper ] || exit 9";

/// A job that sends the daemons ahead.
fn launcher(then: &str, notes: &Path) -> Job {
    let mut job = sh(&format!(": >\"$NOTES/daemons\"; {DAEMONS} {then}"));
    job.env.push(("NOTES".into(), notes.into()));
    job.limits = Limits { grace: Duration::from_millis(50), ..Limits::default() };
    job
}

/// The numbers in a note, once there are so many.
fn noted(notes: &Path, name: &str, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(notes.join(name)).unwrap_or_default();
    eventually("all have noted their number", || read().lines().count() >= count);
    read().lines().map(String::from).collect()
}

/// The daemons and their children; makes sure that all but the one that ends by itself still run.
fn daemons(notes: &Path) -> Vec<String> {
    let daemons: Vec<_> = noted(notes, "daemons", NOTED).into_iter().filter(|pid| runs(pid)).collect();
    let children: Vec<_> = daemons.iter().flat_map(|pid| children_of(pid)).collect();
    assert!(daemons.len() >= NOTED - 1, "{daemons:?}");
    [daemons, children].concat()
}

#[track_caller]
fn assert_gone(doomed: &[String]) {
    eventually("nobody is left", || !doomed.iter().any(|pid| runs(pid)));
}

/// The reapers among the children of a process.
fn reapers(pid: &str) -> Vec<String> {
    let is_reaper = |pid: &String| comm(pid) == "children-reaper";
    children_of(pid).into_iter().filter(is_reaper).collect()
}

fn comm(pid: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn notes() -> PathBuf {
    env::var_os("NOTES").unwrap().into()
}

/// Starts a role that keeps a resident with this script, in a folder of its own.
fn owner(notes: &Path, script: &str) -> Child {
    let mut role = role("reapers::owner_role");
    role.env("NOTES", notes).env("SCRIPT", script).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
#[ignore = "a role that keeps a resident until it is killed"]
fn owner_role() {
    if plays("reapers::owner_role") {
        let children = Children::new();
        let resident = children.start(&launcher(&env::var("SCRIPT").unwrap(), &notes())).unwrap();
        fs::write(notes().join("new"), format!("{}\n", resident.id())).unwrap();
        fs::rename(notes().join("new"), notes().join("started")).unwrap();
        thread::park_timeout(PATIENCE);
    }
}

fn kill(player: &mut Child) {
    player.kill().unwrap();
    player.wait().unwrap();
}

fn send(signal: &str, pid: &str) {
    assert!(Command::new("kill").args([signal, pid]).status().unwrap().success());
}

#[test]
fn our_sudden_death_leaves_no_daemon_without_environment() {
    for script in ["exec cat", "cat; :", "sleep 300 & exec cat", "trap '' TERM; sleep 300 & sleep 300; :"] {
        let folder = tempfile::tempdir().unwrap();
        let mut owner = owner(folder.path(), script);
        let mut doomed = daemons(folder.path());
        doomed.extend(noted(folder.path(), "started", 1));
        doomed.extend(children_of(&owner.id().to_string()));
        kill(&mut owner);
        assert_gone(&doomed);
    }
}

/// Starts a resident and waits for its daemons.
fn start(children: &Children, then: &str, notes: &Path) -> (Resident, Vec<String>) {
    let resident = children.start(&launcher(then, notes)).unwrap();
    let doomed = daemons(notes);
    (resident, doomed)
}

/// What a resident does at last, and how it is ended.
type Ending = (&'static str, fn(Resident));

#[test]
fn whichever_way_a_resident_ends_its_daemons_end_with_it() {
    let endings: [Ending; 5] = [
        ("cat; exit 3", |resident| assert!(matches!(resident.stop(PATIENCE), End::Exited(3)))),
        ("exec sleep 300", |resident| assert!(matches!(resident.stop(Duration::ZERO), End::Signalled(15)))),
        ("trap '' TERM; sleep 300; :", |resident| {
            assert!(matches!(resident.stop(Duration::ZERO), End::Signalled(9 | 15)));
        }),
        ("exec sleep 300", drop),
        ("exec sleep 300", |mut resident| {
            send("-KILL", &resident.id().to_string());
            let mut end = None;
            eventually("its end is told", || {
                end = resident.reap();
                end.is_some()
            });
            assert!(matches!(end, Some(End::Signalled(9))), "{end:?}");
        }),
    ];
    let children = Children::new();
    for (then, end) in endings {
        let folder = tempfile::tempdir().unwrap();
        let (resident, doomed) = start(&children, then, folder.path());
        end(resident);
        assert_gone(&doomed);
    }
}

#[test]
fn a_program_that_exits_at_once_leaves_no_daemon_and_harms_no_other() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let children = Children::new();
    let (_stays, _) = start(&children, "exec cat", other.path());
    let mut resident = children.start(&launcher("exit 4", folder.path())).unwrap();
    eventually("it has ended", || matches!(resident.reap(), Some(End::Exited(4))));
    let doomed = noted(folder.path(), "daemons", NOTED);
    assert_gone(&doomed);
    daemons(other.path());
}

#[test]
fn whoever_forks_without_end_and_without_environment_is_caught_up_with() {
    let folder = tempfile::tempdir().unwrap();
    let hop = folder.path().join("hop");
    let next = format!("setsid env -i /bin/sh '{}' >/dev/null 2>&1 </dev/null &\n", hop.display());
    fs::write(&hop, format!("touch '{}'\n{next}", folder.path().join("alive").display())).unwrap();
    let mut owner = owner(folder.path(), &format!("{next}\n{next}\nexec cat"));
    let alive = folder.path().join("alive");
    daemons(folder.path());
    eventually("it hops", || alive.exists());
    kill(&mut owner);
    eventually("it hops no more", || {
        let _ = fs::remove_file(&alive);
        // Longer than a hop takes.
        (0..40).all(|_| {
            thread::sleep(Duration::from_millis(5));
            !alive.exists()
        })
    });
}

#[test]
fn the_end_of_a_resident_is_told_and_its_marked_daemons_end_even_if_it_killed_its_reaper() {
    let folder = tempfile::tempdir().unwrap();
    let marked = "(setsid sh -c 'echo $$ >\"$NOTES/new\"; mv \"$NOTES/new\" \"$NOTES/marked\"; exec sleep 300' &); \
                  while ! [ -e \"$NOTES/go\" ]; do sleep 0.01; done; \
                  echo $PPID >>\"$NOTES/reaper\"; kill -9 $PPID; exec sleep 300";
    let mut job = sh(&format!("{KEPT}; {marked}"));
    job.env.push(("NOTES".into(), folder.path().into()));
    let children = Children::new();
    let mut resident = children.start(&job).unwrap();
    let mut doomed = noted(folder.path(), "marked", 1);
    fs::write(folder.path().join("go"), "").unwrap();
    doomed.push(resident.id().to_string());
    eventually("its end is told", || resident.reap().is_some());
    resident.kill();
    assert_gone(&doomed);
    let [reaper] = &*noted(folder.path(), "reaper", 1) else { panic!("it has one reaper") };
    assert!(!Path::new("/proc").join(reaper).exists(), "it is reaped");
}

/// Has the reaper frozen by its own program.
const FREEZE: &str = "kill -STOP $PPID; echo >\"$NOTES/frozen\"; trap '' TERM; sleep 300; :";

#[test]
fn a_frozen_reaper_holds_nobody_up_and_still_ends_them() {
    let endings: [fn(Resident); 2] = [drop, |resident| drop(resident.stop(Duration::ZERO))];
    for end in endings {
        let folder = tempfile::tempdir().unwrap();
        let children = Children::new();
        let (resident, doomed) = start(&children, &format!("{KEPT}; {FREEZE}"), folder.path());
        noted(folder.path(), "frozen", 1);
        end(resident);
        assert_gone(&doomed);
    }
    let resident = Children::new().start(&sh(&format!("{KEPT}; kill -STOP $PPID; exec cat"))).unwrap();
    assert!(matches!(resident.stop(PATIENCE), End::Exited(0)), "one that is frozen from the start");
    let folder = tempfile::tempdir().unwrap();
    let mut owner = owner(folder.path(), &format!("{KEPT}; {FREEZE}"));
    noted(folder.path(), "frozen", 1);
    let mut doomed = daemons(folder.path());
    doomed.extend(children_of(&owner.id().to_string()));
    kill(&mut owner);
    assert_gone(&doomed);
}

/// Somewhere within the first moments.
fn some_moment(number: usize) -> Duration {
    Duration::from_micros(number as u64 * 7919 % 40_000)
}

/// Whether a process has this folder in its arguments, as a daemon that has not noted its number yet.
fn anyone_names(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    let lines =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|line| line.contains(folder))
}

#[test]
fn fifty_deaths_at_any_moment_leave_nobody() {
    for number in 0..50 {
        let folder = tempfile::tempdir().unwrap();
        let mut owner = owner(folder.path(), ["exec cat", "sleep 300 & cat; :"][number % 2]);
        let started = folder.path().join("started");
        if number % 3 != 0 {
            eventually("it has started", || started.exists());
        }
        // Only to strike at another moment, and at another process, each time.
        thread::sleep(some_moment(number));
        if number % 2 == 1 && started.exists() {
            let program = fs::read_to_string(&started).unwrap();
            let _ = Command::new("kill").args(["-9", program.trim()]).stderr(Stdio::null()).status();
            thread::sleep(some_moment(number) / 4);
        }
        kill(&mut owner);
        let noted = || fs::read_to_string(folder.path().join("daemons")).unwrap_or_default();
        eventually("nobody is left", || !noted().lines().any(runs) && !anyone_names(folder.path()));
        eventually("not even a program", || !fs::read_to_string(&started).is_ok_and(|pid| runs(pid.trim())));
    }
}

#[test]
fn a_reaper_keeps_nothing_of_ours_but_what_it_needs() {
    play("reapers::kept");
}

#[test]
#[ignore = "a role that `a_reaper_keeps_nothing_of_ours_but_what_it_needs` starts"]
fn kept() {
    if !plays("reapers::kept") {
        return;
    }
    // Not to be found in a reaper: neither the first version nor what becomes of it.
    let mut heap = vec![1_u8; 64 << 20];
    let children = Children::new();
    let residents = [0, 1, 2].map(|_| children.start(&sh("read line")).unwrap());
    heap.fill(2);
    let reapers = || reapers("self");
    eventually("each has its own reaper", || reapers().len() == residents.len());
    for reaper in reapers() {
        let read = |file: &str| fs::read(format!("/proc/{reaper}/{file}")).unwrap();
        eventually("nobody takes it for us", || {
            let line = read("cmdline");
            let mut words = line.split(|byte| *byte == 0);
            words.next() == Some(b"children-reaper")
                && words.all(<[u8]>::is_empty)
                && read("environ").iter().all(|byte| *byte == 0)
        });
        eventually("its memory is small", || private(&reaper) < 512);
        let files = fs::read_dir(format!("/proc/{reaper}/fd")).unwrap().flatten();
        let files: Vec<_> = files.map(|file| fs::read_link(file.path()).unwrap()).collect();
        let foreign = |file: &&PathBuf| *file != Path::new("/dev/null") && !file.to_string_lossy().contains("signalfd");
        assert_eq!(files.iter().filter(foreign).count(), 1, "the line to us: {files:?}");
    }
    assert_eq!(heap.last(), Some(&2));
    for resident in residents {
        assert!(matches!(resident.stop(PATIENCE), End::Exited(1)));
    }
    assert!(reapers().is_empty(), "none outlives its resident");
}

/// Kibibytes that a process does not share.
fn private(pid: &str) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let number = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    rollup.lines().filter(|line| line.starts_with("Private_")).map(number).sum()
}

#[test]
fn a_reaper_reaps_those_who_come_to_it_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = sh(
        "for i in 1 2 3; do (sh -c 'echo $$ >>\"$NOTES/orphans\"' &); done; echo $PPID >>\"$NOTES/reaper\"; read line",
    );
    job.env.push(("NOTES".into(), folder.path().into()));
    let resident = Children::new().start(&job).unwrap();
    let reaper = noted(folder.path(), "reaper", 1).remove(0);
    assert_eq!(noted(folder.path(), "orphans", 3).len(), 3);
    eventually("only the program is left", || children_of(&reaper) == [resident.id().to_string()]);
}

#[test]
fn ignored_child_signals_and_closed_streams_do_not_matter_to_residents() {
    play("reapers::bare");
}

#[test]
#[ignore = "a role that `ignored_child_signals_and_closed_streams_do_not_matter_to_residents` starts"]
fn bare() {
    if !plays("reapers::bare") {
        return;
    }
    crate::death::set_signal(libc::SIGCHLD, libc::SIG_IGN);
    let folder = tempfile::tempdir().unwrap();
    let (end, doomed) = crate::death::without_streams(|| {
        let (resident, doomed) = start(&Children::new(), "cat; exit 5", folder.path());
        (resident.stop(PATIENCE), doomed)
    });
    assert!(matches!(end, End::Exited(5)), "{end:?}");
    assert_gone(&doomed);
    assert!(children_of("self").iter().all(|pid| runs(pid)), "nobody waits to be reaped");
}

#[test]
fn the_daemons_of_a_resident_are_not_adopted_by_us() {
    play("reapers::parent");
}

#[test]
#[ignore = "a role that `the_daemons_of_a_resident_are_not_adopted_by_us` starts"]
fn parent() {
    if !plays("reapers::parent") {
        return;
    }
    let _setup = ProcessSetup::new();
    let folder = tempfile::tempdir().unwrap();
    let children = Children::new();
    let (resident, doomed) = start(&children, "cat; exit 5", folder.path());
    assert_eq!(children.kill_adopted(), 0);
    daemons(folder.path());
    assert!(matches!(resident.stop(PATIENCE), End::Exited(5)));
    assert_gone(&doomed);
}

#[test]
fn a_resident_may_be_started_by_a_thread_that_ends() {
    let children = Children::new();
    let mut resident = thread::scope(|scope| scope.spawn(|| children.start(&sh("read line"))).join().unwrap()).unwrap();
    assert!(resident.reap().is_none(), "it does not end with the thread");
    assert!(runs(&resident.id().to_string()));
    assert!(matches!(resident.stop(PATIENCE), End::Exited(1)));
}
