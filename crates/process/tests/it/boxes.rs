//! Boxes: what no program in one can do, and what every program in one still can.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ollm_process::{BoxMeans, BoxNetwork, BoxRules, Children, End, Job, Outcome, ProcessBox};
use proptest::prelude::*;

/// A home with protected files, and a project in it.
struct Scene {
    _folder: tempfile::TempDir,
    home: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        for name in [".ollm/hooks", ".claude", "project/.git/hooks"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        for name in [".ollm/config.yaml", ".claude/settings.json", ".bashrc", "project/.git/hooks/pre-commit"] {
            fs::write(home.join(name), "guarded\n").unwrap();
        }
        Scene { _folder: folder, home }
    }

    fn rules(&self) -> BoxRules {
        let names = [".ollm", ".claude/settings.json", ".claude/absent", ".bashrc", "project/.git/hooks"];
        BoxRules { read_only: names.iter().map(|name| self.home.join(name)).collect(), ..BoxRules::default() }
    }

    /// Nothing if the kernel allows no namespaces.
    fn process_box(rules: &BoxRules) -> Option<Arc<ProcessBox>> {
        match ProcessBox::new(BoxMeans::Namespaces, rules) {
            Ok(made) => Some(Arc::new(made)),
            Err(error) => {
                assert!(!namespaces_work(), "namespaces work here, and yet: {error}");
                eprintln!("skipped: {error}");
                None
            }
        }
    }

    fn run(&self, made: &Arc<ProcessBox>, script: &str) -> Outcome {
        let job = Job {
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("HOME".into(), self.home.clone().into())],
            cwd: Some(self.home.join("project")),
            process_box: Some(Arc::clone(made)),
            ..Job::new("/bin/sh")
        };
        Children::new().run(job)
    }

    fn is_intact(&self) -> bool {
        let is = |name: &str| fs::read_to_string(self.home.join(name)).is_ok_and(|text| text == "guarded\n");
        [".ollm/config.yaml", ".claude/settings.json", ".bashrc", "project/.git/hooks/pre-commit"]
            .iter()
            .all(|name| is(name))
    }
}

/// What `unshare` of util-linux says about it.
fn namespaces_work() -> bool {
    let outcome = Children::new().run(Job {
        args: ["-Urm", "mount", "--bind", "/tmp", "/tmp"].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
        ..Job::new("/usr/bin/unshare")
    });
    matches!(outcome.end, End::Exited(0))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn no_shell_command_changes_what_is_protected() {
    let scene = Scene::new();
    let Some(made) = Scene::process_box(&scene.rules()) else { return };
    for attack in [
        "echo evil > ~/.ollm/config.yaml",
        "echo evil >> ~/.bashrc",
        "rm -rf ~/.ollm",
        "rm -f ~/.bashrc",
        "mv ~/.ollm ~/x",
        "mv ~/.claude ~/x && mkdir ~/.claude && echo evil > ~/.claude/settings.json",
        "mv ../project ../x && mkdir -p ../project/.git/hooks",
        "mv .git x && mkdir -p .git/hooks",
        "mv ~ ~/../elsewhere",
        "echo evil > x && mv x ~/.claude/settings.json",
        "ln -f ~/.bashrc x && echo evil > x",
        "ln -sf /etc/passwd ~/.bashrc",
        "echo evil > /proc/self/root$HOME/.bashrc",
        "echo evil > /proc/self/cwd/../.bashrc",
        "touch ~/.ollm/hooks/evil.json",
        "chmod 777 ~/.ollm/config.yaml",
        "truncate -s 0 ~/.bashrc",
        "umount ~/.bashrc; echo evil > ~/.bashrc",
        "mount -o remount,rw,bind ~/.bashrc; echo evil > ~/.bashrc",
        "unshare -Urm sh -c 'umount ~/.bashrc; mount -o remount,rw,bind ~/.bashrc; echo evil > ~/.bashrc'",
        "unshare -Urm sh -c 'mkdir -p m; mount --bind ~ m && echo evil > m/.bashrc'",
        "nsenter -t $PPID -m sh -c 'echo evil > ~/.bashrc'",
        "for p in /proc/[0-9]*; do echo evil > $p/root$HOME/.bashrc; done 2>/dev/null",
        "exec 3< ~/.bashrc; echo evil > /proc/self/fd/3",
    ] {
        let outcome = scene.run(&made, attack);
        assert!(scene.is_intact(), "{attack}: {}", text(&outcome.stderr));
    }
    assert!(scene.home.join(".ollm/hooks").is_dir() && !scene.home.join(".ollm/hooks/evil.json").exists());
}

/// Both boxes that hold no more than these rules, where this kernel has them.
fn boxes(rules: &BoxRules) -> impl Iterator<Item = Arc<ProcessBox>> {
    let means = [BoxMeans::Namespaces, BoxMeans::Landlock].into_iter();
    means.filter_map(|means| ProcessBox::new(means, rules).ok().map(Arc::new))
}

#[test]
fn a_program_in_a_box_sets_no_limits_of_others_and_its_own() {
    let scene = Scene::new();
    let rules = scene.rules();
    for rules in [BoxRules { terminal: true, ..rules.clone() }, rules] {
        for made in boxes(&rules) {
            let limits = "prlimit --pid $PPID --core=7:7; prlimit --pid $PPID --core; ulimit -c 5; ulimit -c; prlimit --core=4 true";
            let outcome = scene.run(&made, limits);
            let (told, errors) = (text(&outcome.stdout), text(&outcome.stderr));
            assert!(errors.contains("Operation not permitted"), "{errors}");
            assert!(told.contains("CORE") && told.ends_with("\n5\n"), "{told}{errors}");
            assert!(matches!(outcome.end, End::Exited(0)), "{errors}");
            assert!(!fs::read_to_string("/proc/self/limits").unwrap().contains("Max core file size         7"));
        }
    }
}

/// Limits its parent by the calls of 32-bit programs, and exits with what came of it.
const NARROW: &str = "static long call(long n, long a, long b, long c, long d) { long r; \
__asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(n), \"b\"(a), \"c\"(b), \"d\"(c), \"S\"(d) : \"memory\"); return r; }
void _start(void) { unsigned limit[4] = {7, 0, 7, 0}; long r = call(340, call(64, 0, 0, 0, 0), 4, (long)limit, 0); call(1, r ? -r : 0, 0, 0, 0); }";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_of_32_bits_runs_in_a_box_and_is_refused_the_same() {
    let scene = Scene::new();
    let source = scene.home.join("project/narrow.c");
    fs::write(&source, NARROW).unwrap();
    let make = "cc -m32 -nostdlib -static -fno-stack-protector -w -o narrow narrow.c";
    for made in boxes(&BoxRules { terminal: true, ..scene.rules() }) {
        let built = scene.run(&made, make);
        if !matches!(built.end, End::Exited(0)) {
            return eprintln!("skipped: no program of 32 bits can be made here");
        }
        match scene.run(&made, "./narrow; echo $?").stdout.as_slice() {
            b"126\n" => eprintln!("skipped: this kernel runs no program of 32 bits"),
            told => assert_eq!(text(told), "1\n"),
        }
    }
}

#[test]
fn a_program_in_a_box_makes_user_namespaces_and_no_mount_namespace() {
    let scene = Scene::new();
    let Some(made) = Scene::process_box(&scene.rules()) else { return };
    let outcome = scene.run(&made, "unshare -U true && ! unshare -Um true 2> /dev/null");
    assert!(matches!(outcome.end, End::Exited(0)), "{}", text(&outcome.stderr));
}

#[test]
fn ordinary_work_goes_on_in_a_box() {
    let scene = Scene::new();
    let Some(made) = Scene::process_box(&scene.rules()) else { return };
    let script = "set -e
        echo new > file; mkdir -p a/b; mv file a/b; cat a/b/file; rm -r a
        echo home > ~/new; echo temp > \"$(mktemp)\"; cat ~/.bashrc; ls ~/.ollm > /dev/null
        echo data > .git/index; mv .git/index .git/index2
        id -u; echo x > /dev/null; [ -w . ]; (sleep 0.01 & wait)";
    let outcome = scene.run(&made, script);
    assert!(matches!(outcome.end, End::Exited(0)), "{:?} {}", outcome.end, text(&outcome.stderr));
    let user = rustix_uid();
    assert_eq!(text(&outcome.stdout), format!("new\nguarded\n{user}\n"));
}

fn rustix_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or_default()
}

#[test]
fn only_what_is_writable_can_be_written_where_that_is_limited() {
    let scene = Scene::new();
    let temp = tempfile::tempdir().unwrap();
    let rules = BoxRules {
        writable: Some(vec![scene.home.join("project"), temp.path().to_owned()]),
        hidden: vec![scene.home.join(".claude")],
        ..scene.rules()
    };
    let Some(made) = Scene::process_box(&rules) else { return };
    let fails = |script: &str| !matches!(scene.run(&made, script).end, End::Exited(0));
    let temp = temp.path().display();
    assert!(!fails(&format!("echo x > file && echo x > {temp}/file && echo x > /dev/null")));
    for script in ["echo x > ~/x", "echo x > ~/project/.git/hooks/x", "mkdir /var/tmp/x", "cat ~/.claude/settings.json"]
    {
        assert!(fails(script), "{script}");
    }
    assert!(scene.is_intact());
}

#[test]
fn a_program_in_a_box_signals_nobody_outside_where_the_kernel_can_hold_it_back() {
    let scene = Scene::new();
    let Some(made) = Scene::process_box(&scene.rules()) else { return };
    let outcome = scene.run(&made, "kill -0 $PPID");
    if landlock_version() >= 6 {
        assert!(!matches!(outcome.end, End::Exited(0)));
    } else {
        eprintln!("skipped: the kernel's Landlock is older than version 6");
    }
}

fn landlock_version() -> i32 {
    let script = "import ctypes; print(ctypes.CDLL(None).syscall(444, 0, 0, 1))";
    let job = Job {
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        ..Job::new(ollm_process::find_program("python3", &std::env::var_os("PATH").unwrap()).unwrap())
    };
    text(&Children::new().run(job).stdout).trim().parse().unwrap_or(0)
}

#[test]
fn a_resident_is_in_its_box_too() {
    let scene = Scene::new();
    let Some(made) = Scene::process_box(&scene.rules()) else { return };
    let job = Job {
        args: vec!["-c".into(), format!("(echo evil > {}/.bashrc) 2> /dev/null", scene.home.display()).into()],
        process_box: Some(made),
        ..Job::new("/bin/sh")
    };
    let end = Children::new().start(&job).unwrap().stop(std::time::Duration::from_secs(30));
    assert!(matches!(end, End::Exited(code) if code != 0), "{end:?}");
    assert!(scene.is_intact());
}

#[test]
fn landlock_keeps_the_home_and_compares_nothing_by_itself() {
    let scene = Scene::new();
    let rules = BoxRules { whole: vec![scene.home.join("project")], ..scene.rules() };
    let made = match ProcessBox::new(BoxMeans::Landlock, &rules) {
        Ok(made) => Arc::new(made),
        Err(error) => return eprintln!("skipped: {error}"),
    };
    for attack in ["echo evil > ~/.ollm/config.yaml", "rm -rf ~/.ollm", "mv ~/.claude ~/x", "echo evil > ~/.bashrc"] {
        scene.run(&made, attack);
        assert!(scene.is_intact(), "{attack}");
    }
    let outcome = scene.run(&made, "echo x > file && mkdir a && mv file a && rm -r a && echo x > \"$(mktemp -p .)\"");
    assert!(matches!(outcome.end, End::Exited(0)), "{}", text(&outcome.stderr));
    assert!(!made.notes().is_empty());
}

#[test]
fn a_box_without_a_network_opens_no_socket_of_any_kind() {
    let script = "import socket,sys
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    try: socket.socket(family); sys.exit(1)
    except PermissionError: pass
a, b = socket.socketpair()";
    let rules = BoxRules { network: BoxNetwork::Closed, ..BoxRules::default() };
    let path = std::env::var_os("PATH").unwrap();
    for means in [BoxMeans::Namespaces, BoxMeans::Landlock] {
        let made = match ProcessBox::new(means, &rules) {
            Ok(made) => Arc::new(made),
            Err(error) => {
                eprintln!("skipped: {error}");
                continue;
            }
        };
        let outcome = Children::new().run(Job {
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), path.clone())],
            process_box: Some(made),
            ..Job::new(ollm_process::find_program("python3", &path).unwrap())
        });
        assert!(matches!(outcome.end, End::Exited(0)), "{means:?} {}", text(&outcome.stderr));
    }
}

/// What a rule says about one folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    ReadOnly,
    Writable,
    Hidden,
    Secret,
}

const FOLDERS: [&str; 6] = ["a", "a/in", "b", "b/in", "c", "c/in"];

/// Whether rules let a file be made in a folder.
fn is_allowed(folder: &str, said: [Said; 6], limited: bool, means: BoxMeans) -> bool {
    let around =
        || FOLDERS.iter().zip(said).filter(|(name, _)| folder == **name || folder.starts_with(&format!("{name}/")));
    let denied = around().any(|(_, said)| match said {
        Said::ReadOnly | Said::Secret => true,
        Said::Hidden => means == BoxMeans::Namespaces,
        Said::Nothing | Said::Writable => false,
    });
    !denied && (!limited || around().any(|(_, said)| said == Said::Writable))
}

proptest! {
    #[test]
    fn no_set_of_rules_allows_what_it_does_not_name(
        said in proptest::array::uniform6(proptest::sample::select(vec![Said::Nothing, Said::ReadOnly, Said::Writable, Said::Hidden, Said::Secret])),
        limited: bool,
        landlock: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let named = |wanted: Said| {
            let names = FOLDERS.iter().zip(said).filter(|(_, said)| *said == wanted);
            names.map(|(name, _)| root.join(name)).collect::<Vec<_>>()
        };
        for name in FOLDERS {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), format!("{name}\n")).unwrap();
        }
        let rules = BoxRules {
            read_only: named(Said::ReadOnly),
            hidden: named(Said::Hidden),
            secret: named(Said::Secret),
            writable: limited.then(|| named(Said::Writable)),
            ..BoxRules::default()
        };
        let means = if landlock { BoxMeans::Landlock } else { BoxMeans::Namespaces };
        let Ok(made) = ProcessBox::new(means, &rules) else { return Ok(()) };
        let script = format!("for d in {}; do echo x > $d/new; cat $d/file; done 2> /dev/null", FOLDERS.join(" "));
        let job = Job {
            args: vec!["-c".into(), script.into()],
            cwd: Some(root.clone()),
            process_box: Some(Arc::new(made)),
            ..Job::new("/bin/sh")
        };
        let outcome = Children::new().run(job);
        prop_assert!(!matches!(outcome.end, End::NotStarted(_)), "{:?}", outcome.end);
        for name in FOLDERS {
            let (written, allowed) = (root.join(name).join("new").exists(), is_allowed(name, said, limited, means));
            prop_assert!(allowed || !written, "{name} was written by {means:?} under {rules:?}");
            // Landlock makes nothing in a folder that holds something denied.
            prop_assert!(landlock || written || !allowed, "{name} was not written by {means:?} under {rules:?}");
            let is_secret = rules.secret.iter().any(|secret| root.join(name).starts_with(secret));
            let is_read = text(&outcome.stdout).lines().any(|line| line == name);
            prop_assert!(!is_secret || !is_read, "{name} was read by {means:?} under {rules:?}");
        }
    }
}

#[test]
fn every_version_of_landlock_keeps_files_and_says_what_it_cannot_hold() {
    let scene = Scene::new();
    fs::write(scene.home.join("outside"), "guarded\n").unwrap();
    fs::create_dir_all(scene.home.join("project/sub")).unwrap();
    let rules = BoxRules { writable: Some(vec![scene.home.join("project")]), ..BoxRules::default() };
    let Ok(newest) = ProcessBox::new(BoxMeans::Landlock, &rules) else { return };
    let mut said = Vec::new();
    for version in 1..=6 {
        let rules = BoxRules { landlock: Some(version), ..rules.clone() };
        let made = Arc::new(ProcessBox::new(BoxMeans::Landlock, &rules).unwrap());
        let outcome =
            scene.run(&made, "echo evil > ../outside; rm -f ../outside; echo ok > in && mv in sub/in; ls in sub/in");
        let (errors, listed) = (text(&outcome.stderr), text(&outcome.stdout));
        assert_eq!(fs::read_to_string(scene.home.join("outside")).unwrap(), "guarded\n", "{version}: {errors}");
        // Moved, or copied by `mv` where files cannot be moved between folders.
        assert_eq!(listed, "sub/in\n", "{version}: {errors}");
        scene.run(&made, "perl -e 'truncate(\"../outside\", 0)'");
        let emptied = fs::read_to_string(scene.home.join("outside")).unwrap().is_empty();
        let notes = made.notes().join("; ");
        assert_eq!(emptied, notes.contains("can be emptied"), "{version}: {notes}");
        fs::write(scene.home.join("outside"), "guarded\n").unwrap();
        said.push(made.notes().len());
    }
    assert!(said.is_sorted_by(|older, newer| older >= newer), "{said:?}");
    assert_eq!(said.last(), Some(&newest.notes().len()));
    assert!(said.first() > said.last() || newest.notes().len() > 2, "{said:?}");
}

#[test]
fn what_is_read_only_stays_so_in_a_folder_that_is_open_and_new_files_can_be_made_beside_it() {
    let scene = Scene::new();
    let system = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/dev"].map(PathBuf::from);
    let rules = BoxRules {
        read_only: vec![scene.home.join("project/.git/hooks")],
        readable: Some(system.to_vec()),
        writable: Some(vec![scene.home.join("project"), "/dev/null".into()]),
        ..BoxRules::default()
    };
    if ProcessBox::new(BoxMeans::Landlock, &rules).is_err() {
        return;
    }
    let Some(made) = Scene::process_box(&rules) else { return };
    for attack in
        ["echo evil > .git/hooks/pre-commit", "rm -rf .git/hooks", "mv .git x", "cat ../.bashrc", "echo > ../x"]
    {
        let outcome = scene.run(&made, attack);
        assert!(scene.is_intact() && !matches!(outcome.end, End::Exited(0)), "{attack}: {outcome:?}");
    }
    let outcome =
        scene.run(&made, "echo x > new && echo x > .git/index.lock && mv .git/index.lock .git/index && rm new");
    assert!(matches!(outcome.end, End::Exited(0)), "{outcome:?}");
    assert!(!scene.home.join("x").exists());
}
