//! Kills, full disks and cut networks: the state before or the state after.

use std::time::{Duration, Instant};

use proptest::test_runner::{Config, TestRunner};

use super::server::{Answer, WebServer};
use super::*;
use crate::lab::start;

/// Longer than an installation takes on a machine that has nothing else to do.
const LONGEST: Duration = Duration::from_millis(150);

/// Writes a version with enough files that writing them takes a while.
fn large(lab: &Lab, version: &str) -> PathBuf {
    for file in 0..40 {
        lab.write(&format!("src/data/{file}"), version);
    }
    package(lab, "src", version, &json!({}))
}

/// The one version that is there as a whole, as the list and the files say.
fn whole_version(lab: &Lab) -> Option<String> {
    let list = lab.run(&["ext", "list", "--json"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{list:?}");
    let folder = lab.home.join(".ollm/extensions/guard");
    if !folder.exists() {
        assert_eq!(list.answer(), json!([]));
        return None;
    }
    let version = entry(lab)["version"].as_str().unwrap().to_owned();
    let found = files(&folder);
    assert_eq!(found.len(), 43, "{:?}", found.keys());
    for file in 0..40 {
        assert_eq!(found[Path::new(&format!("data/{file}"))], version.as_bytes());
    }
    Some(version)
}

#[test]
fn a_kill_at_any_moment_leaves_the_version_before_or_the_version_after() {
    let config = Config { cases: 25, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let lab = Lab::new();
    let source = large(&lab, "1.0.0").to_str().unwrap().to_owned();
    let count = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&(0..u64::try_from(LONGEST.as_micros()).unwrap()), |micros| {
        // Every third time it is a first installation.
        let number = count.get() + 1;
        count.set(number);
        if number % 3 == 1 {
            let _ = lab.run(&["ext", "uninstall", "guard", "--yes"]);
        }
        let before = whole_version(&lab);
        let next = format!("1.{number}.0");
        large(&lab, &next);
        let mut child = start(lab.ollm(&["ext", "install", &source, "--yes"]));
        let deadline = Instant::now() + Duration::from_micros(micros);
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let now = whole_version(&lab);
        assert!(now == before || now.as_ref() == Some(&next), "{before:?} {now:?} {next}");
        // The next one clears up what is left.
        assert_eq!(lab.run(&["ext", "install", &source, "--yes"]).code, 0);
        assert_eq!(whole_version(&lab).as_deref(), Some(next.as_str()));
        assert!(!lab.home.join(".ollm/extensions/.staged").exists());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_full_disk_leaves_the_version_before_and_says_what_happened() {
    let lab = Lab::new();
    let source = large(&lab, "1.0.0").to_str().unwrap().to_owned();
    installed(&lab, &[&source]);
    large(&lab, "1.1.0");
    lab.write("src/large", vec![7; 300 << 10]);
    // No file may become larger than this, as on a disk that is full.
    let mut command = lab.program("/bin/sh");
    let line = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
    command.args(["-c", line, crate::lab::OLLM, "ext", "update", "guard", "--yes"]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("nothing was installed"), "{ran:?}");
    assert_eq!(whole_version(&lab).as_deref(), Some("1.0.0"));
    assert!(!lab.home.join(".ollm/extensions/.staged").exists());
}

#[test]
fn a_network_that_is_cut_leaves_the_version_before() {
    let lab = Lab::new();
    let server = WebServer::new();
    large(&lab, "1.0.0");
    let archive = packed(&lab, "src", "guard.tar.gz");
    server.put("guard.tar.gz", Answer::File(fs::read(&archive).unwrap()));
    let url = server.url("guard.tar.gz");
    installed(&lab, &[&url]);
    large(&lab, "1.1.0");
    packed(&lab, "src", "guard.tar.gz");
    let bytes = fs::read(&archive).unwrap();
    server.put("guard.tar.gz", Answer::Cut(bytes.clone()));
    refused(&lab, &["ext", "update", "guard", "--yes"], 5, "was not fetched");
    assert_eq!(whole_version(&lab).as_deref(), Some("1.0.0"));
    // The person ends a download that does not go on.
    server.put("guard.tar.gz", Answer::Silence);
    let mut child = start(lab.ollm(&["ext", "update", "guard", "--yes"]));
    while server.asked().is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(whole_version(&lab).as_deref(), Some("1.0.0"));
    server.put("guard.tar.gz", Answer::File(bytes));
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    assert_eq!(whole_version(&lab).as_deref(), Some("1.1.0"));
}

#[test]
fn whoever_interrupts_at_the_question_leaves_nothing() {
    let lab = Lab::new();
    let source = large(&lab, "1.0.0").to_str().unwrap().to_owned();
    for (signal, code) in [(2, 130), (15, 143), (1, 129)] {
        let mut person = lab.pty(crate::lab::pty::WHOLE, &["ext", "install", &source]);
        person.waits_for("Install `guard`?");
        assert!(lab.home.join(".ollm/extensions/.staged").exists());
        person.signal(signal);
        let ran = person.ends();
        assert!(ran.code == code && ran.stdout.contains("interrupted: nothing was installed"), "{ran:?}");
        assert!(!lab.home.join(".ollm/extensions").exists(), "{signal}");
        assert!(!lab.home.join(".ollm/state/install.lock").exists(), "{signal}");
    }
}

#[test]
fn who_does_not_approve_what_was_installed_keeps_no_copy_of_it() {
    for (answer, code) in [(Some("n\r"), 0), (None, 130)] {
        let lab = Lab::new();
        let source = large(&lab, "1.0.0").to_str().unwrap().to_owned();
        let mut person = lab.pty(crate::lab::pty::WHOLE, &["ext", "install", &source]);
        person.waits_for("Install `guard`?").types("y\r").waits_for("Let the extension `guard` run");
        match answer {
            Some(keys) => drop(person.types(keys)),
            None => person.signal(2),
        }
        let ran = person.ends();
        assert!(ran.code == code && ran.stdout.contains("nothing of `guard` runs until it is approved"), "{ran:?}");
        assert_eq!(whole_version(&lab).as_deref(), Some("1.0.0"));
        assert!(!lab.home.join(".ollm/store").exists(), "{answer:?}");
    }
}

#[test]
fn whoever_interrupts_a_download_that_does_not_go_on_leaves_nothing() {
    let lab = Lab::new();
    let server = WebServer::new();
    server.put("guard.tar.gz", Answer::Silence);
    let child = start(lab.ollm(&["ext", "install", &server.url("guard.tar.gz"), "--yes"]));
    while server.asked().is_empty() {
        std::thread::yield_now();
    }
    let kill = with_signal(&lab, child.id());
    assert_eq!(kill.code, 0, "{kill:?}");
    let ran = crate::lab::outcome(child);
    assert!(ran.code == 143 && ran.stderr.contains("interrupted: nothing was installed"), "{ran:?}");
    assert!(!lab.home.join(".ollm/extensions").exists());
}

fn with_signal(lab: &Lab, process: u32) -> Ran {
    let mut kill = lab.program("kill");
    kill.args(["-TERM", &process.to_string()]);
    finish(kill, b"")
}

#[test]
fn two_that_install_at_once_do_not_meet() {
    let lab = Lab::new();
    let source = large(&lab, "1.0.0").to_str().unwrap().to_owned();
    let children: Vec<_> = (0..4).map(|_| start(lab.ollm(&["ext", "install", &source, "--yes"]))).collect();
    let ran: Vec<Ran> = children.into_iter().map(crate::lab::outcome).collect();
    assert!(ran.iter().any(|one| one.code == 0), "{ran:?}");
    for one in ran.iter().filter(|one| one.code != 0) {
        assert!(one.code == 5 && one.stderr.contains("another process installs"), "{one:?}");
    }
    assert_eq!(whole_version(&lab).as_deref(), Some("1.0.0"));
}
