//! Boxes that are watched: what programs did in them, and what they were kept from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_process::{BoxAccess, BoxMeans, BoxNetwork, BoxRules, BoxWatch, Children, End, Job, Outcome, ProcessBox};

/// A folder that can be read, one that can be written, and one that is closed.
struct Scene {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["read", "write", "closed"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), name).unwrap();
        }
        Scene { _folder: folder, root }
    }

    fn rules(&self, watch: BoxWatch) -> BoxRules {
        let system = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/dev"].map(PathBuf::from);
        let python = ollm_process::find_program("python3", &std::env::var_os("PATH").unwrap()).unwrap();
        let python = python.parent().and_then(Path::parent).unwrap().to_owned();
        BoxRules {
            readable: Some([&system[..], &[python, self.root.join("read")]].concat()),
            writable: Some(vec![self.root.join("write"), "/dev/null".into()]),
            network: BoxNetwork::Closed,
            watch,
            ..BoxRules::default()
        }
    }

    /// What a shell script did; nothing where there is no Landlock.
    fn run(&self, rules: &BoxRules, script: &str) -> Option<(Outcome, Vec<(BoxAccess, bool)>)> {
        let made = match ProcessBox::new(BoxMeans::Landlock, rules) {
            Ok(made) => Arc::new(made),
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        let outcome = Children::new().run(Job {
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            cwd: Some(self.root.clone()),
            process_box: Some(Arc::clone(&made)),
            ..Job::new("/bin/sh")
        });
        assert!(!matches!(outcome.end, End::NotStarted(_)), "{:?}", outcome.end);
        let seen = made.accesses().into_iter().map(|seen| (seen.access, seen.refused)).collect();
        Some((outcome, seen))
    }

    fn refused(&self, script: &str) -> Option<Vec<BoxAccess>> {
        let (_, seen) = self.run(&self.rules(BoxWatch::Refused), script)?;
        assert!(seen.iter().all(|(_, refused)| *refused), "{seen:?}");
        Some(seen.into_iter().map(|(access, _)| access).collect())
    }

    fn write(&self, path: &str, within: &str) -> BoxAccess {
        BoxAccess::Write { path: self.root.join(path), within: self.root.join(within) }
    }

    fn read(&self, path: &str) -> BoxAccess {
        BoxAccess::Read(self.root.join(path))
    }
}

#[test]
fn what_a_box_refuses_is_noted_with_what_would_have_to_be_allowed() {
    let scene = Scene::new();
    for (script, wanted) in [
        ("cat read/file; echo x > write/new; mv write/new write/old; rm write/old", vec![]),
        ("echo x >> read/file", vec![scene.write("read/file", "read/file")]),
        ("echo x > read/new", vec![scene.write("read/new", "read")]),
        ("mkdir read; rm -f read/absent; ln -s x read/file", vec![]),
        ("mkdir read/a", vec![scene.write("read/a", "read")]),
        ("rm -f read/file", vec![scene.write("read/file", "read")]),
        ("mv read/file write/file", vec![scene.write("read/file", "read")]),
        ("ln -s x read/link", vec![scene.write("read/link", "read")]),
        ("echo x > read/../closed/file", vec![scene.write("closed/file", "closed/file")]),
        ("cd closed && echo x > new", vec![scene.write("closed/new", "closed")]),
        ("echo x > absent/file", vec![]),
        ("perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0)'", vec![BoxAccess::Network]),
        ("perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0)'", vec![BoxAccess::Service]),
    ] {
        let Some(refused) = scene.refused(script) else { return };
        assert_eq!(refused, wanted, "{script}");
    }
    assert_eq!(fs::read_to_string(scene.root.join("read/file")).unwrap(), "read");
}

#[test]
fn a_link_is_noted_as_where_it_leads() {
    let scene = Scene::new();
    std::os::unix::fs::symlink("../closed/file", scene.root.join("read/link")).unwrap();
    let Some(refused) = scene.refused("echo x > read/link") else { return };
    assert_eq!(refused, [scene.write("closed/file", "closed/file")]);
}

#[test]
fn a_socket_is_refused_while_it_is_watched() {
    let scene = Scene::new();
    let script = "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) and exit 7; exit 3'";
    let Some((outcome, _)) = scene.run(&scene.rules(BoxWatch::Refused), script) else { return };
    assert!(matches!(outcome.end, End::Exited(3)), "{:?}", outcome.end);
}

#[test]
fn everything_is_noted_where_that_is_asked_for() {
    let scene = Scene::new();
    let rules = BoxRules { network: BoxNetwork::Open, ..scene.rules(BoxWatch::Everything) };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "cat read/file closed/file > /dev/null; echo x > write/new
        perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in({port}, inet_aton(\"127.0.0.1\")))'"
    );
    let Some((_, seen)) = scene.run(&rules, &script) else { return };
    for wanted in [
        (scene.read("read/file"), false),
        (scene.read("closed/file"), true),
        (scene.write("write/new", "write"), false),
        (BoxAccess::Connect(format!("127.0.0.1:{port}")), false),
    ] {
        assert!(seen.contains(&wanted), "{wanted:?} in {seen:?}");
    }
    assert!(seen.iter().any(|(access, _)| matches!(access, BoxAccess::Read(path) if path.starts_with("/usr"))));
}

#[test]
fn threads_children_and_signals_of_a_watched_program_are_watched_and_do_not_hang() {
    let scene = Scene::new();
    let script = "import os, signal, subprocess, threading
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work():
    for _ in range(200):
        try: open('closed/file', 'a').close()
        except PermissionError: pass
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
subprocess.run(['sh', '-c', 'echo x > read/new'], stderr=subprocess.DEVNULL)
print('done')";
    fs::write(scene.root.join("read/work.py"), script).unwrap();
    let Some((outcome, seen)) = scene.run(&scene.rules(BoxWatch::Refused), "python3 read/work.py") else { return };
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "done\n", "{}", String::from_utf8_lossy(&outcome.stderr));
    let seen: Vec<BoxAccess> = seen.into_iter().map(|(access, _)| access).collect();
    assert!(
        seen.contains(&scene.write("closed/file", "closed/file")) && seen.contains(&scene.write("read/new", "read")),
        "{seen:?}"
    );
}

#[test]
fn a_resident_is_watched_too() {
    let scene = Scene::new();
    let Ok(made) = ProcessBox::new(BoxMeans::Landlock, &scene.rules(BoxWatch::Refused)) else { return };
    let made = Arc::new(made);
    let job = Job {
        args: vec!["-c".into(), "(echo x > closed/file) 2> /dev/null; exit 4".into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: Some(scene.root.clone()),
        process_box: Some(Arc::clone(&made)),
        ..Job::new("/bin/sh")
    };
    let end = Children::new().start(&job).unwrap().stop(std::time::Duration::from_secs(30));
    assert!(matches!(end, End::Exited(4)), "{end:?}");
    let seen: Vec<BoxAccess> = made.accesses().into_iter().map(|seen| seen.access).collect();
    assert_eq!(seen, [scene.write("closed/file", "closed/file")]);
}
