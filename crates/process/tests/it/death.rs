//! What is left when we die, and what must not be left while we live. Roles run in processes of their own, because
//! they end badly or change the whole process.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ollm_process::{Children, End, Job, ProcessSetup, SparedChild};

use crate::support::{ENDLESS, assert_exited, children_of, eventually, play, plays, role, runs, sh, words};

#[test]
fn our_death_leaves_no_descendant() {
    leaves_no_descendant("no");
}

#[test]
fn the_death_of_a_process_that_was_to_end_soon_leaves_no_descendant() {
    leaves_no_descendant("yes");
}

fn leaves_no_descendant(ends_soon: &str) {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let mut victim = role("death::victim");
    let mut victim = victim.env("NOTES", &notes).env("ENDS_SOON", ends_soon).stdout(Stdio::null()).spawn().unwrap();

    let read = || fs::read_to_string(&notes).unwrap_or_default();
    eventually("the grandchildren run", || read().lines().count() == 3);
    let name = |pid: &String| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let children = || children_of(&victim.id().to_string());
    eventually("one guard runs, in memory of its own", || {
        children().len() == 2 && children().iter().any(|pid| name(pid).starts_with(b"children-guard"))
    });
    let mut doomed: Vec<_> = read().lines().map(String::from).collect();
    doomed.extend(children());
    assert_eq!(doomed.len(), 5, "three noted, of which one is a direct child, and the guard: {doomed:?}");
    assert!(doomed.iter().all(|pid| runs(pid)));

    victim.kill().unwrap();
    victim.wait().unwrap();
    for pid in doomed {
        eventually("nobody is left", || !runs(&pid));
    }
}

#[test]
#[ignore = "a role that `our_death_leaves_no_descendant` starts"]
fn victim() {
    if !plays("death::victim") {
        return;
    }
    let notes = std::env::var_os("NOTES").unwrap();
    let script = format!(
        "trap '' TERM HUP INT; {ENDLESS} & echo $! >>\"$NOTES\"; (sh -c 'echo $$ >>\"$NOTES\"; {ENDLESS}; :' &); \
         echo $$ >>\"$NOTES\"; {ENDLESS}; :"
    );
    let mut job = sh(&script);
    job.env.push(("NOTES".into(), notes));
    let children = Children::new();
    if std::env::var("ENDS_SOON").as_deref() == Ok("yes") {
        children.end_soon();
    }
    children.run(job);
}

#[test]
fn adopted_daemons_are_killed() {
    play("death::subreaper");
}

#[test]
#[ignore = "a role that `adopted_daemons_are_killed` starts"]
fn subreaper() {
    if !plays("death::subreaper") {
        return;
    }
    let children = Children::new();
    assert_exited(&children.run(sh("exit 0")), 0);
    assert_eq!(children.kill_adopted(), 0, "nobody is adopted before we say so");
    let _setup = ProcessSetup::new();
    assert_eq!(children.kill_adopted(), 0, "the guard is not adopted");

    let folder = tempfile::tempdir().unwrap();
    let script = "(setsid sh -c 'trap \"\" TERM; echo $$; sleep 300 & echo $!; touch ready; exec sleep 300' &)
                  while ! [ -e ready ]; do sleep 0.01; done";
    let outcome = children.run(Job { cwd: Some(folder.path().into()), ..sh(script) });
    assert!(outcome.leaky, "{outcome:?}");
    let daemons = words(&outcome);
    assert_eq!(daemons.len(), 2, "{outcome:?}");
    assert!(daemons.iter().all(|pid| runs(pid)));

    assert_eq!(children.kill_adopted(), 2);
    assert!(!daemons.iter().any(|pid| runs(pid)));
    assert_eq!(children.kill_adopted(), 0);
    assert_exited(&children.run(sh("exit 6")), 6);
    drop(children);
    assert!(children_of("self").is_empty());
}

pub(crate) const POLITE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

#[test]
fn a_held_signal_ends_the_jobs_and_then_us() {
    for signal in POLITE {
        let folder = tempfile::tempdir().unwrap();
        let mut role = role("death::asked");
        let output = role.current_dir(folder.path()).env("SIGNAL", signal.to_string()).output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(!runs(read("ready2").trim()), "the daemon is gone as well");
        assert_eq!(read("told"), "Interrupted Interrupted Interrupted true", "{output:?}");
        assert!(folder.path().join("polite").exists() && !folder.path().join("late").exists());
    }
}

#[test]
#[ignore = "a role that `a_held_signal_ends_the_jobs_and_then_us` starts"]
fn asked() {
    if !plays("death::asked") {
        return;
    }
    let signal = std::env::var("SIGNAL").unwrap().parse().unwrap();
    // Whoever runs the tests in the background may have it ignored.
    set_signal(signal, libc::SIG_DFL);
    let _setup = ProcessSetup::new();
    let children = Children::new();
    let hold = children.hold_signals();
    send_when_both_run(signal);
    let outcomes = children.run_all(vec![
        sh(&format!("trap 'touch polite; exit 4' TERM; touch ready1; while :; do sleep 0.01; done; {ENDLESS}")),
        sh(&format!("trap '' TERM; (setsid sh -c 'echo $$ >ready2; {ENDLESS}; :' >/dev/null 2>&1 &); {ENDLESS}; :")),
    ]);
    let late = children.run(sh("touch late"));
    children.release(&sh("touch late")).unwrap_err();
    let ends: Vec<_> = outcomes.iter().chain([&late]).map(|outcome| format!("{:?}", outcome.end)).collect();
    children.kill_adopted();
    fs::write("told", format!("{} {}", ends.join(" "), children.interrupted())).unwrap();
    drop(hold);
    fs::write("told", "we live").unwrap();
}

/// Sends a signal to this thread, which is not the only one of a test program, once both jobs run.
#[expect(unsafe_code, reason = "the standard library sends no signals")]
fn send_when_both_run(signal: libc::c_int) {
    // SAFETY: asks for our own name, and later uses it while we wait for jobs.
    let thread = unsafe { libc::pthread_self() };
    std::thread::spawn(move || {
        let ready = |index| PathBuf::from(format!("ready{index}")).exists();
        eventually("both jobs run", || (1..=2).all(ready));
        // SAFETY: as above.
        unsafe { libc::pthread_kill(thread, signal) };
    });
}

#[test]
fn signals_that_did_not_come_are_let_through_again() {
    play("death::unasked");
}

#[test]
#[ignore = "a role that `signals_that_did_not_come_are_let_through_again` starts"]
fn unasked() {
    if !plays("death::unasked") {
        return;
    }
    set_signal(libc::SIGHUP, libc::SIG_IGN);
    // Whoever runs the tests in the background may have it ignored.
    set_signal(libc::SIGINT, libc::SIG_DFL);
    let children = Children::new();
    let hold = children.hold_signals();
    assert_eq!(blocked(), Vec::<libc::c_int>::new(), "nothing is held back before there is a job");
    assert_exited(&children.run(sh("exit 3")), 3);
    assert_eq!(blocked(), [libc::SIGTERM, libc::SIGINT], "what is ignored stays ignored");
    assert_exited(&children.run(sh("grep -qx 'SigBlk:\t0*' /proc/self/status")), 0);
    assert!(!children.interrupted());
    drop(hold);
    assert_eq!(blocked(), Vec::<libc::c_int>::new());
    assert_exited(&children.run(sh("exit 3")), 3);
    assert_eq!(blocked(), Vec::<libc::c_int>::new());
    let hold = children.hold_signals();
    assert_exited(&children.run(sh("exit 3")), 3);
    drop(hold);
    drop(children);
    assert_eq!(blocked(), Vec::<libc::c_int>::new());
}

/// The polite signals that are blocked on this thread.
fn blocked() -> Vec<libc::c_int> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    POLITE.into_iter().filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[test]
fn nothing_is_left_while_we_live() {
    play("death::tidy");
}

#[test]
#[ignore = "a role that `nothing_is_left_while_we_live` starts"]
fn tidy() {
    if !plays("death::tidy") {
        return;
    }
    tidies_up(Children::new());
    let children = Children::new();
    children.end_soon();
    tidies_up(children);
}

fn tidies_up(children: Children) {
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = files();
    for _ in 0..20 {
        children.run_all(vec![
            sh("exit 0"),
            sh("kill -9 $$"),
            sh(&format!("{ENDLESS} >/dev/null 2>&1 &")),
            sh("cat /dev/zero"),
            Job::new("/does/not/exist"),
            Job { stdin: vec![0; 1 << 20], ..sh("exit 0") },
        ]);
        let guard = children_of("self");
        assert_eq!(guard.len(), 1, "only the guard is left");
    }
    let guard = PathBuf::from("/proc").join(children_of("self").concat());
    let guard_files: Vec<_> = fs::read_dir(guard.join("fd"))
        .unwrap()
        .map(|file| fs::read_link(file.unwrap().path()).unwrap())
        .map(|file| file.to_string_lossy().split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(guard_files.len(), 4, "{guard_files:?}");
    assert_eq!(guard_files.iter().filter(|file| *file == "/dev/null").count(), 3, "{guard_files:?}");
    drop(children);
    assert!(children_of("self").is_empty());
    assert_eq!(files(), before);
}

#[test]
fn ignored_child_signals_never_look_like_success() {
    play("death::statusless");
}

#[test]
#[ignore = "a role that `ignored_child_signals_never_look_like_success` starts"]
fn statusless() {
    if !plays("death::statusless") {
        return;
    }
    set_signal(libc::SIGCHLD, libc::SIG_IGN);
    let children = Children::new();
    let outcome = children.run(sh("echo out; exit 3"));
    assert!(matches!(outcome.end, End::Lost), "{outcome:?}");
    assert_eq!(outcome.stdout, b"out\n");
    let _setup = ProcessSetup::new();
    assert_exited(&children.run(sh("exit 3")), 3);
}

#[test]
fn a_closed_input_does_not_kill_a_process_that_minds_sigpipe() {
    play("death::mindful");
}

#[test]
#[ignore = "a role that `a_closed_input_does_not_kill_a_process_that_minds_sigpipe` starts"]
fn mindful() {
    if !plays("death::mindful") {
        return;
    }
    set_signal(libc::SIGPIPE, libc::SIG_DFL);
    let outcome = Children::new().run(Job { stdin: vec![0; 8 << 20], ..sh("exec <&-; sleep 0.2; exit 3") });
    assert_exited(&outcome, 3);
}

#[test]
fn a_process_without_standard_streams_can_run_programs() {
    play("death::streamless");
}

#[test]
#[ignore = "a role that `a_process_without_standard_streams_can_run_programs` starts"]
fn streamless() {
    if !plays("death::streamless") {
        return;
    }
    let outcomes = without_streams(|| {
        let job = Job { stdin: b"in".to_vec(), ..sh("cat; echo err >&2; ls /proc/self/fd") };
        Children::new().run_all(vec![job.clone(), job])
    });
    for outcome in outcomes {
        assert_exited(&outcome, 0);
        assert_eq!((&*outcome.stdout, &*outcome.stderr), (&b"in0\n1\n2\n3\n"[..], &b"err\n"[..]));
    }
}

/// Works with files 0 to 2 closed.
#[expect(unsafe_code, reason = "the standard library never closes its streams")]
pub(crate) fn without_streams<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: this process plays one role on one thread, and no other code prints meanwhile.
    let kept = [0, 1, 2].map(|stream| unsafe {
        let kept = libc::fcntl(stream, libc::F_DUPFD_CLOEXEC, 10);
        libc::close(stream);
        kept
    });
    let done = work();
    for (stream, kept) in (0..).zip(kept) {
        // SAFETY: as above.
        unsafe { libc::dup2(kept, stream) };
    }
    done
}

#[expect(unsafe_code, reason = "the standard library does not set the effect of signals")]
pub(crate) fn set_signal(signal: libc::c_int, effect: libc::sighandler_t) {
    // SAFETY: callers name an effect that runs no code.
    unsafe { libc::signal(signal, effect) };
}

#[test]
fn all_jobs_can_be_ended_from_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let children = Children::new();
    let script = format!("trap '' TERM; echo > '{}'; {ENDLESS}", note.display());
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| children.run(sh(&script)));
        eventually("it runs", || note.exists());
        children.end_all();
        run.join().unwrap()
    });
    assert!(matches!(outcome.end, End::Signalled(9)), "{outcome:?}");
}

#[test]
fn a_released_program_has_no_file_of_ours_and_can_let_signals_through() {
    let folder = tempfile::tempdir().unwrap();
    let output = role("death::holder").env("NOTES", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let note = folder.path().join("done");
    eventually("it has noted", || note.exists());
    assert_eq!(fs::read_to_string(note).unwrap(), "[0, 1, 2] true []");
}

#[test]
#[ignore = "a role that `a_released_program_has_no_file_of_ours_and_can_let_signals_through` starts"]
fn holder() {
    if !plays("death::holder") {
        return;
    }
    let children = Children::new();
    let _hold = children.hold_signals();
    assert_exited(&children.run(sh("exit 0")), 0);
    // One that lacks the close-on-exec flag, as one that we inherited would.
    let leaking = fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&leaking, rustix::io::FdFlags::empty()).unwrap();
    let freed = role("death::freed");
    let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "ROLE").collect();
    env.push(("ROLE".into(), "death::freed".into()));
    let args = freed.get_args().map(Into::into).collect();
    children.release(&Job { args, env, ..Job::new(freed.get_program()) }).unwrap();
}

#[test]
#[ignore = "a role that `a_released_program_has_no_file_of_ours_and_can_let_signals_through` starts"]
fn freed() {
    if !plays("death::freed") {
        return;
    }
    let name = |file: std::io::Result<fs::DirEntry>| file.ok()?.file_name().to_str()?.parse::<u32>().ok();
    let is_open = |file: &u32| fs::read_link(format!("/proc/self/fd/{file}")).is_ok();
    let mut files: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().filter_map(name).collect();
    files.retain(is_open);
    files.sort_unstable();
    let left = ProcessSetup::new().leave_session().is_ok();
    let notes = PathBuf::from(std::env::var_os("NOTES").unwrap());
    fs::write(notes.join("part"), format!("{files:?} {left} {:?}", blocked())).unwrap();
    fs::rename(notes.join("part"), notes.join("done")).unwrap();
}

#[test]
fn a_released_program_reads_its_input_and_outlives_us() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().display().to_string();
    let output = role("death::releaser").env("NOTES", &home).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let done = folder.path().join("done");
    assert!(!done.exists(), "it waits for us to end");
    fs::write(folder.path().join("go"), "").unwrap();
    eventually("it goes on by itself", || fs::read(&done).is_ok_and(|bytes| bytes.len() == 1 << 20));
}

#[test]
#[ignore = "a role that `a_released_program_reads_its_input_and_outlives_us` starts"]
fn releaser() {
    if !plays("death::releaser") {
        return;
    }
    let _setup = ProcessSetup::new();
    let home = std::env::var("NOTES").unwrap();
    let children = Children::new();
    // More than fits into a pipe without a reader.
    let job = Job {
        stdin: vec![b'x'; 1 << 20],
        ..sh(&format!("cd '{home}'; while [ ! -e go ]; do sleep 0.02; done; cat > part; mv part done"))
    };
    children.release(&job).unwrap();
    assert_exited(&children.run(sh("exit 0")), 0);
    assert_eq!(children.kill_adopted(), 0, "a released program is spared");
    let mut beside = SparedChild::spawn(Command::new("sleep").arg("300")).unwrap();
    assert_eq!(children.kill_adopted(), 0, "and so is one that was started beside all of them");
    assert!(beside.try_wait().unwrap().is_none());
    drop(beside);
    assert_eq!(children.kill_adopted(), 1, "until nobody waits for it any more");
}

#[test]
fn a_set_up_adopts_from_the_first_job_on_and_ends_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let output = role("death::set_up").env("NOTES", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    fs::write(folder.path().join("go"), "").unwrap();
    eventually("the released program goes on", || folder.path().join("done").exists());
}

#[test]
#[ignore = "a role that `a_set_up_adopts_from_the_first_job_on_and_ends_what_is_left` starts"]
fn set_up() {
    if !plays("death::set_up") {
        return;
    }
    let adopts = || matches!(rustix::process::child_subreaper(), Ok(Some(_)));
    let setup = ProcessSetup::new();
    assert!(!adopts(), "no program was started yet");
    let children = Children::new();
    let folder = tempfile::tempdir().unwrap();
    let script = "(setsid sh -c 'echo $$; touch ready; exec sleep 300' &); while ! [ -e ready ]; do sleep 0.01; done";
    let outcome = children.run(Job { cwd: Some(folder.path().into()), ..sh(script) });
    assert!(adopts());
    let daemons = words(&outcome);
    assert!(daemons.len() == 1 && runs(&daemons[0]), "{outcome:?}");
    let home = std::env::var("NOTES").unwrap();
    children.release(&sh(&format!("cd '{home}'; while [ ! -e go ]; do sleep 0.02; done; touch done"))).unwrap();
    drop(children);
    drop(setup);
    assert!(!runs(&daemons[0]), "the daemon is gone");
}
