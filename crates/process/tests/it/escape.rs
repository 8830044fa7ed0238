//! Descendants that leave their group and their session, and must not outlive us. Roles run in processes of their own,
//! because they end badly or change the whole process.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ollm_process::{Children, Job, Limits, ProcessSetup, Resident};

use crate::support::{ENDLESS, assert_exited, bearers, children_of, eventually, play, plays, role, runs, sh, words};

/// The variable that tells a guard which processes to look for.
const VARIABLE: &str = "OLLM_LIFELINE";

/// Ways to get away from group, session and parent. `$NOTES/ready` says that it has happened.
const ESCAPES: [&str; 4] = [
    "(setsid sh -c 'touch \"$NOTES/ready\"; exec sleep 300' >/dev/null 2>&1 </dev/null &)",
    "(setsid sh -c '(setsid sh -c \"trap : TERM HUP; touch $NOTES/ready; sleep 300; :\" &) ; exit' >/dev/null 2>&1 &)",
    "setsid setsid -f sh -c 'cd /; touch \"$NOTES/ready\"; exec sleep 300' >/dev/null 2>&1 </dev/null",
    // One that has its parent killed, one that never rests, and one whose environment is longer than any buffer.
    "export BEFORE=$(head -c 100000 /dev/zero | tr '\\0' x) AFTER=$BEFORE; \
     (setsid sh -c 'while :; do sleep 300 & touch \"$NOTES/ready\"; sleep 0.02; done' >/dev/null 2>&1 &)",
];

/// A job whose descendant has escaped, and which stays.
fn escape(number: usize, notes: &Path) -> Job {
    let mut job = sh(&format!("{}; {ENDLESS}; :", ESCAPES.get(number).unwrap()));
    job.env.push(("NOTES".into(), notes.into()));
    job
}

/// Plays a role in a folder of its own until the note `ready` is there.
fn play_until_ready(test: &str, number: usize, notes: &Path) -> Child {
    let mut role = role(test);
    role.env("NOTES", notes).env("NUMBER", number.to_string()).stdout(Stdio::null());
    let player = role.spawn().unwrap();
    eventually("the descendant has escaped", || notes.join("ready").exists());
    player
}

fn kill(mut player: Child) {
    player.kill().unwrap();
    player.wait().unwrap();
}

/// Those who were told where to leave their notes, but for those who tell them.
fn told(notes: &Path) -> Vec<String> {
    bearers("NOTES", notes.to_str().unwrap())
}

fn number() -> usize {
    env::var("NUMBER").unwrap().parse().unwrap()
}

fn notes() -> std::path::PathBuf {
    env::var_os("NOTES").unwrap().into()
}

#[test]
fn our_death_takes_along_who_left_group_and_session() {
    for number in 0..ESCAPES.len() {
        let folder = tempfile::tempdir().unwrap();
        let player = play_until_ready("escape::victim", number, folder.path());
        assert!(told(folder.path()).len() >= 3, "the role, its job and the descendant");
        kill(player);
        eventually("nobody is left", || told(folder.path()).is_empty());
    }
}

#[test]
#[ignore = "a role that `our_death_takes_along_who_left_group_and_session` starts"]
fn victim() {
    if plays("escape::victim") {
        Children::new().run(escape(number(), &notes()));
    }
}

#[test]
fn whoever_forks_without_end_is_caught_up_with() {
    let folder = tempfile::tempdir().unwrap();
    let player = play_until_ready("escape::forker", 0, folder.path());
    kill(player);
    eventually("nobody is left, and nobody comes back", || (0..20).all(|_| told(folder.path()).is_empty()));
}

#[test]
#[ignore = "a role that `whoever_forks_without_end_is_caught_up_with` starts"]
fn forker() {
    if plays("escape::forker") {
        let hop = notes().join("hop");
        // Each lives only until the next one does.
        fs::write(&hop, "touch \"$NOTES/ready\"\nsetsid sh \"$NOTES/hop\" >/dev/null 2>&1 </dev/null &\n").unwrap();
        let mut job = sh(&format!("sh \"$NOTES/hop\"; sh \"$NOTES/hop\"; {ENDLESS}; :"));
        job.env.push(("NOTES".into(), notes().into()));
        Children::new().run(job);
    }
}

#[test]
fn an_outer_guard_finds_what_an_inner_one_was_to_guard() {
    let folder = tempfile::tempdir().unwrap();
    let outer = play_until_ready("escape::outer", 0, folder.path());
    let pid = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    eventually("the inner one runs", || folder.path().join("inner").exists());
    let (inner, guard) = (pid("inner"), pid("guard"));
    // First the inner guard, so that it cannot do its duty.
    for pid in [guard, inner] {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        eventually("it is gone", || !runs(&pid));
    }
    assert!(told(folder.path()).len() >= 2, "the outer one and the descendant");
    kill(outer);
    eventually("nobody is left", || told(folder.path()).is_empty());
}

#[test]
#[ignore = "a role that `an_outer_guard_finds_what_an_inner_one_was_to_guard` starts"]
fn outer() {
    if plays("escape::outer") {
        Children::new().run(nested("escape::inner"));
    }
}

/// This test program again as a job, as a hook that starts our program would be. It stays.
fn nested(test: &str) -> Job {
    let inner = role(test);
    let mut job = sh("\"$0\" \"$@\"; sleep 300");
    job.args.push(inner.get_program().into());
    job.args.extend(inner.get_args().map(Into::into));
    job.env.push(("ROLE".into(), test.into()));
    job.env.extend(["NOTES", "NUMBER"].map(|name| (name.into(), env::var_os(name).unwrap())));
    job
}

#[test]
#[ignore = "a role that `an_outer_guard_finds_what_an_inner_one_was_to_guard` starts"]
fn inner() {
    if plays("escape::inner") {
        let children = Children::new();
        assert_exited(&children.run(sh("exit 0")), 0);
        fs::write(notes().join("guard"), children_of("self").concat()).unwrap();
        fs::write(notes().join("new"), std::process::id().to_string()).unwrap();
        fs::rename(notes().join("new"), notes().join("inner")).unwrap();
        children.run(inheriting(escape(number(), &notes())));
    }
}

/// The job with what we were given ourselves.
fn inheriting(mut job: Job) -> Job {
    job.env.extend(env::var_os(VARIABLE).map(|value| (VARIABLE.into(), value)));
    job
}

#[test]
fn an_outer_guard_leaves_an_inner_one_to_its_duty() {
    let folder = tempfile::tempdir().unwrap();
    let outer = play_until_ready("escape::upper", 0, folder.path());
    let bare = fs::read_to_string(folder.path().join("ready")).unwrap();
    assert!(runs(bare.trim()));
    kill(outer);
    eventually("nobody is left", || told(folder.path()).is_empty() && !runs(bare.trim()));
}

#[test]
#[ignore = "a role that `an_outer_guard_leaves_an_inner_one_to_its_duty` starts"]
fn upper() {
    if plays("escape::upper") {
        Children::new().run(nested("escape::lower"));
    }
}

#[test]
#[ignore = "a role that `an_outer_guard_leaves_an_inner_one_to_its_duty` starts"]
fn lower() {
    if plays("escape::lower") {
        // Only the inner guard knows of this one, by its group: it bears no mark.
        let script =
            "env -i sleep 300 >/dev/null 2>&1 & echo $! >\"$NOTES/new\"; mv \"$NOTES/new\" \"$NOTES/ready\"; wait";
        let mut job = inheriting(sh(script));
        job.env.push(("NOTES".into(), notes().into()));
        Children::new().run(job);
    }
}

#[test]
fn marks_are_passed_on_from_one_to_the_next_and_bounded() {
    let mark = |job: Job| {
        let outcome = Children::new().run(job);
        assert_exited(&outcome, 0);
        String::from_utf8(outcome.stdout).unwrap()
    };
    let show = format!("printf %s \"${VARIABLE}\"");
    let first = mark(sh(&show));
    assert!(first.len() > 32 && first.len() < 48, "{first}");
    let given = |value: &str| {
        let mut job = sh(&show);
        job.env.push((VARIABLE.into(), value.into()));
        mark(job)
    };
    let second = given(&first);
    assert!(second.starts_with(&first) && second.len() > first.len(), "{second}");
    let many = given(&first.repeat(1000));
    assert!(many.len() < 2000 && many.starts_with(&first) && !many.ends_with(&first), "{many}");
    for forged in ["", "x", ",,,", "no mark,", &"f".repeat(4000), "../../etc/passwd,"] {
        let value = given(forged);
        assert_eq!(value.matches(',').count(), 1, "{forged}: {value}");
        assert!(value.len() < 48, "{forged}: {value}");
    }
}

#[test]
fn whoever_bears_no_mark_of_ours_lives_on() {
    let children = Children::new();
    let outcome = children.run(sh(&format!("printf %s \"${VARIABLE}\"")));
    let [mark] = &*words(&outcome) else { panic!("{outcome:?}") };
    let (other, cut) = (mark.replace(|digit: char| digit != '0', "0"), &mark[1..]);
    let alike = [
        (VARIABLE, String::new()),
        (VARIABLE, format!("{}-1,", "0".repeat(32))),
        (VARIABLE, other),
        (VARIABLE, cut.to_owned()),
        (VARIABLE, format!("x{mark}")),
        ("OLLM_LIFELINE_", mark.clone()),
        ("XOLLM_LIFELINE", mark.clone()),
        ("TEXT", format!("{VARIABLE}={mark}")),
    ];
    let mut strangers: Vec<_> =
        alike.iter().map(|(name, value)| Command::new("sleep").arg("300").env(name, value).spawn().unwrap()).collect();
    let kin = Command::new("sleep").arg("300").env(VARIABLE, mark).spawn().unwrap();
    for pid in strangers.iter().chain([&kin]).map(|child| child.id().to_string()) {
        // Until then it is still us.
        eventually("it is itself", || fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n"));
    }
    drop(children);
    assert!(!runs(&kin.id().to_string()), "whoever bears it is ours");
    for (stranger, alike) in strangers.iter_mut().zip(&alike) {
        assert!(stranger.try_wait().unwrap().is_none(), "{alike:?}");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
    let mut kin = kin;
    kin.wait().unwrap();
}

#[test]
fn whoever_left_the_group_goes_with_the_last_of_the_children() {
    let folder = tempfile::tempdir().unwrap();
    let children = Children::new();
    let script = "(setsid sh -c 'echo $$; touch ready; exec sleep 300' &); while ! [ -e ready ]; do sleep 0.01; done";
    let outcome = children.run(Job { cwd: Some(folder.path().into()), ..sh(script) });
    let daemon = words(&outcome)[0].clone();
    assert!(runs(&daemon), "{outcome:?}");
    drop(children);
    assert!(!runs(&daemon));
}

#[test]
fn the_guard_goes_by_its_own_name_and_keeps_nothing_of_ours() {
    play("escape::guarded");
}

#[test]
#[ignore = "a role that `the_guard_goes_by_its_own_name_and_keeps_nothing_of_ours` starts"]
fn guarded() {
    if !plays("escape::guarded") {
        return;
    }
    goes_by_its_own_name(&Children::new(), sh("exit 0"));
    // The program that started us looks for our mark, also where we end soon.
    let (children, mut job) = (Children::new(), sh("exit 0"));
    children.end_soon();
    job.env.push(("OLLM_LIFELINE".into(), format!("{}-0,", "0".repeat(32)).into()));
    goes_by_its_own_name(&children, job);
}

fn goes_by_its_own_name(children: &Children, job: Job) {
    assert_exited(&children.run(job), 0);
    eventually("nobody takes it for us", || {
        let guard = children_of("self").concat();
        let read = |file: &str| fs::read(format!("/proc/{guard}/{file}")).unwrap();
        let line = read("cmdline");
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(b"children-guard")
            && words.all(<[u8]>::is_empty)
            && read("environ").iter().all(|byte| *byte == 0)
    });
}

fn start(children: &Children, notes: &Path) -> Resident {
    let mut job = escape(1, notes);
    job.limits = Limits { grace: Duration::from_millis(20), ..Limits::default() };
    let resident = children.start(&job).unwrap();
    eventually("the descendant has escaped", || notes.join("ready").exists());
    resident
}

#[test]
fn a_resident_that_ends_takes_its_own_along_and_nobody_else() {
    play("escape::landlord");
}

#[test]
#[ignore = "a role that `a_resident_that_ends_takes_its_own_along_and_nobody_else` starts"]
fn landlord() {
    if !plays("escape::landlord") {
        return;
    }
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let paths: Vec<_> = folders.iter().map(tempfile::TempDir::path).collect();
    for subreaper in [false, true] {
        let _setup = subreaper.then(ProcessSetup::new);
        let children = Children::new();
        let [stays, stopped, dropped] = [0, 1, 2].map(|index| {
            let _ = fs::remove_file(paths[index].join("ready"));
            start(&children, paths[index])
        });
        let others = told(paths[0]);
        assert!(others.len() >= 2, "{others:?}");
        stopped.stop(Duration::ZERO);
        eventually("the stopped one has left nobody", || told(paths[1]).is_empty());
        drop(dropped);
        eventually("the dropped one has left nobody", || told(paths[2]).is_empty());
        assert_eq!(told(paths[0]), others, "nobody else is harmed");
        eventually("nobody waits to be reaped", || {
            assert_exited(&children.run(sh("exit 0")), 0);
            children_of("self").iter().all(|pid| runs(pid))
        });
        drop((stays, children));
        eventually("nobody is left at all", || told(paths[0]).is_empty());
    }
}

#[test]
fn what_others_of_this_process_started_is_not_adopted() {
    play("escape::neighbours");
}

#[test]
#[ignore = "a role that `what_others_of_this_process_started_is_not_adopted` starts"]
fn neighbours() {
    if !plays("escape::neighbours") {
        return;
    }
    let _setup = ProcessSetup::new();
    let (ours, theirs) = (Children::new(), Children::new());
    let mut resident = theirs.start(&sh(ENDLESS)).unwrap();
    let guards = children_of("self");
    assert_exited(&ours.run(sh("(setsid sleep 300 >/dev/null 2>&1 &)")), 0);
    assert_eq!(ours.kill_adopted(), 1, "its own adopted child");
    assert!(resident.reap().is_none(), "it still runs");
    assert!(guards.iter().all(|pid| runs(pid)), "and so does its guard");
}
