//! What a program finds when it starts.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use ollm_process::{Children, End, Job, Limits};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::support::{assert_exited, sh, words};

fn text(job: Job) -> String {
    let outcome = Children::new().run(job);
    assert_exited(&outcome, 0);
    String::from_utf8(outcome.stdout).unwrap()
}

#[test]
fn the_environment_is_the_given_one_and_the_mark() {
    let env = vec![("A".into(), "1".into()), ("B".into(), OsString::from_vec(b"x=\xff\n".to_vec()))];
    let outcome = Children::new().run(Job { env, ..Job::new("/usr/bin/env") });
    let end = outcome.stdout.strip_prefix(b"A=1\nB=x=\xff\n\nOLLM_LIFELINE=").unwrap();
    assert!(end.iter().position(|byte| *byte == b'\n') == Some(end.len() - 1), "{outcome:?}");
    let alone = text(Job::new("/usr/bin/env"));
    assert!(alone.starts_with("OLLM_LIFELINE=") && alone.lines().count() == 1, "{alone}");
}

#[test]
fn the_search_path_has_no_entry_that_depends_on_the_working_directory() {
    let seen = |path: &str| {
        let env = vec![("PATH".into(), path.into())];
        let script = "printf '%s' \"$(/usr/bin/env | grep -a ^PATH=)\"";
        let outcome = Children::new().run(Job { env, ..sh(script) });
        String::from_utf8(outcome.stdout).unwrap()
    };
    for path in [":/usr/bin:/bin", "/usr/bin:/bin:", ".:/usr/bin::/bin:./bin", "bin:/usr/bin:../x:/bin"] {
        assert_eq!(seen(path), "PATH=/usr/bin:/bin", "{path}");
    }
    let nothing = Job { env: vec![("PATH".into(), ":.:".into())], ..Job::new("/usr/bin/env") };
    assert!(!text(nothing).contains("PATH="), "an empty one would mean the working directory");
}

#[test]
fn arguments_arrive_as_they_are() {
    let odd = ["", " ", "a b", "$(x)", "`x`", "\"'", "*", "--", "-n", "%PATH%", "!x!", "line\nline", "\\"];
    let script = "for word; do printf '<%s>' \"$word\"; done";
    let mut args: Vec<OsString> = vec!["-c".into(), script.into(), "sh".into()];
    args.extend(odd.map(OsString::from));
    let expected: String = odd.map(|word| format!("<{word}>")).concat();
    assert_eq!(text(Job { args, ..sh("") }), expected);
}

#[test]
fn the_program_goes_by_its_path_or_by_the_given_name() {
    let cmdline = Job { args: vec!["/proc/self/cmdline".into()], ..Job::new("/bin/cat") };
    assert_eq!(text(cmdline.clone()), "/bin/cat\0/proc/self/cmdline\0");
    assert_eq!(text(Job { arg0: Some("-x".into()), ..cmdline }), "-x\0/proc/self/cmdline\0");
}

#[test]
fn the_working_directory_is_the_given_one() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    assert_eq!(text(Job { cwd: Some(real.clone()), ..sh("pwd -P") }), format!("{}\n", real.display()));
}

#[test]
fn no_file_is_open_but_the_three_streams() {
    // One that lacks the close-on-exec flag, as one that we inherited would.
    let leaking = File::open("/etc/passwd").unwrap();
    fcntl_setfd(&leaking, FdFlags::empty()).unwrap();
    let outcome = Children::new().run(sh("ls /proc/self/fd"));
    assert_eq!(words(&outcome), ["0", "1", "2", "3"], "3 is the directory that is listed");
}

#[test]
fn the_streams_are_three_pipes() {
    let outcome = Children::new().run(sh("for file in 0 1 2; do readlink /proc/$$/fd/$file | cut -d: -f1; done"));
    assert_eq!(words(&outcome), ["pipe", "pipe", "pipe"]);
}

#[test]
fn no_signal_is_blocked_or_ignored() {
    let status = text(Job { args: vec!["/proc/self/status".into()], ..Job::new("/bin/cat") });
    for field in ["SigBlk", "SigIgn"] {
        let mask = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        assert_eq!(mask.trim_start_matches(':').trim(), "0000000000000000", "{field}");
    }
}

#[test]
fn the_program_leads_its_own_group_and_session() {
    let outcome = Children::new().run(sh("echo $$; cut -d' ' -f5,6 /proc/$$/stat"));
    let [pid, group, session] = &*words(&outcome) else { panic!("{outcome:?}") };
    assert_eq!((pid, pid), (group, session));
}

#[test]
fn limits_are_those_of_the_job() {
    let limits = Limits {
        cpu: Some(Duration::from_millis(1500)),
        memory: Some(1 << 30),
        processes: Some(1000),
        files: Some(50),
        file_size: Some(4096),
        ..Limits::default()
    };
    let job = Job { args: vec!["/proc/self/limits".into()], limits, ..Job::new("/bin/cat") };
    let listed = text(job);
    let expected = [
        ("Max cpu time", ["2", "3"]),
        ("Max address space", ["1073741824", "1073741824"]),
        ("Max processes", ["1000", "1000"]),
        ("Max open files", ["50", "50"]),
        ("Max file size", ["4096", "4096"]),
        ("Max core file size", ["0", "0"]),
    ];
    for (name, bounds) in expected {
        let line = listed.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), bounds, "{name}");
    }
}

#[test]
fn a_limit_above_ours_is_ours() {
    let mut job = sh("ulimit -n");
    job.limits.files = Some(u64::MAX);
    job.limits.cpu = Some(Duration::MAX);
    assert!(text(job).trim().parse::<u64>().unwrap() > 0);
}

#[test]
fn limits_hold() {
    let folder = tempfile::tempdir().unwrap();
    let limited = |script: &str, limits: Limits| {
        let mut job = sh(script);
        job.cwd = Some(folder.path().into());
        job.limits = Limits { timeout: job.limits.timeout, ..limits };
        Children::new().run(job)
    };
    let memory = Limits { memory: Some(256 << 20), ..Limits::default() };
    let outcome = limited("dd if=/dev/zero of=/dev/null bs=1G count=1", memory);
    assert!(matches!(outcome.end, End::Exited(code) if code != 0), "{outcome:?}");

    let files = Limits { files: Some(8), ..Limits::default() };
    let outcome = limited("exec 3</dev/null 4<&3 5<&3 6<&3 7<&3 8<&3 9<&3", files);
    assert!(matches!(outcome.end, End::Exited(code) if code != 0), "{outcome:?}");

    let file_size = Limits { file_size: Some(1000), ..Limits::default() };
    limited("head -c 5000 /dev/zero > file", file_size);
    assert!(fs::metadata(folder.path().join("file")).unwrap().len() <= 1000);

    let cpu = Limits { cpu: Some(Duration::from_secs(1)), ..Limits::default() };
    let outcome = limited("while :; do :; done", cpu);
    assert!(matches!(outcome.end, End::Signalled(libc::SIGXCPU)), "{outcome:?}");
}
