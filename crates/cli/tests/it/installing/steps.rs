//! The real program, killed before each of its steps on the disk; a disk that is full, and one that exchanges no folders.

use super::*;

/// Counts the steps that a program makes on the disk, as far as the C library makes them, and kills it before one of them. What
/// asks the kernel itself, such as our exchange of folders, lies between two of them.
const COUNTER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void step(const char *path) {
    static long last, count;
    const char *number = getenv("KILL_BEFORE");
    if (!last) last = number ? atol(number) : -1;
    if (path && !strstr(path, "/extensions")) return;
    if (__sync_add_and_fetch(&count, 1) == last) kill(getpid(), SIGKILL);
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *) dlsym(RTLD_NEXT, #name)
#define MODE(flags) mode_t mode = 0; if ((flags) & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int mkdir(const char *path, mode_t mode) { REAL(mkdir); step(path); return real(path, mode); }
int rmdir(const char *path) { REAL(rmdir); step(path); return real(path); }
int unlink(const char *path) { REAL(unlink); step(path); return real(path); }
int unlinkat(int folder, const char *path, int flags) { REAL(unlinkat); step(0); return real(folder, path, flags); }
int rename(const char *from, const char *to) { REAL(rename); step(0); return real(from, to); }
int fsync(int file) { REAL(fsync); step(0); return real(file); }
int fdatasync(int file) { REAL(fdatasync); step(0); return real(file); }
int open64(const char *path, int flags, ...) { REAL(open64); MODE(flags); step(path); return real(path, flags, mode); }
ssize_t write(int file, const void *bytes, size_t count) { REAL(write); if (file > 2) step(0); return real(file, bytes, count); }
"#;

/// Fewer steps than an installation makes: with fewer, nothing was counted.
const FEWEST: usize = 20;

/// What a process that loads extensions sees: each with its files.
fn loaded(lab: &Lab) -> Loaded {
    let list = lab.run(&["ext", "list", "--json"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{list:?}");
    let of = |one: &Value| {
        assert_eq!(one["error"], Value::Null, "{one:#}");
        (one["name"].as_str().unwrap().to_owned(), files(Path::new(one["path"].as_str().unwrap())))
    };
    list.answer().as_array().unwrap().iter().map(of).collect()
}

/// Kills a command before each of its steps; the same command then ends what was begun.
fn killed_before_each_step(lab: &Lab, arguments: &[&str], once_done: i32) {
    let steps = for_each_kill(lab, arguments, |number, after, left| {
        let was_done = loaded(lab) == *after;
        let ran = lab.run(arguments);
        assert!(ran.code == 0 || (was_done && ran.code == once_done), "step {number}: {ran:?}");
        assert_eq!(extensions(lab).keys().collect::<Vec<_>>(), left.keys().collect::<Vec<_>>(), "step {number}");
        assert_eq!(loaded(lab), *after, "step {number}");
    });
    assert!(steps > FEWEST, "{steps} steps were seen");
}

/// Every extension, with its files.
type Loaded = BTreeMap<String, BTreeMap<PathBuf, Vec<u8>>>;

/// Kills a command before its first step, its second one, and so on, each time in the same home, until it is done; how often that
/// was. After each kill the state is the one before or the one after, which the next is told, with all files.
fn for_each_kill(lab: &Lab, arguments: &[&str], next: impl Fn(usize, &Loaded, &BTreeMap<PathBuf, Vec<u8>>)) -> usize {
    let counter = lab.preloaded("counter", COUNTER);
    let kept = lab.root.join("kept");
    let copy = |from: &Path, to: &Path| {
        let _ = fs::remove_dir_all(to);
        assert_eq!(finish(with(lab.program("cp"), &["-a", from.to_str().unwrap(), to.to_str().unwrap()]), b"").code, 0);
    };
    copy(&lab.home, &kept);
    let before = loaded(lab);
    assert_eq!(lab.run(arguments).code, 0);
    let (after, left) = (loaded(lab), extensions(lab));
    assert_ne!(before, after);
    for number in 1.. {
        copy(&kept, &lab.home);
        let mut command = lab.ollm(arguments);
        command.env("LD_PRELOAD", &counter).env("KILL_BEFORE", number.to_string());
        let ran = finish(command, b"");
        if ran.code == 0 {
            return number - 1;
        }
        assert_eq!(ran.code, 137, "step {number}: {ran:?}");
        let now = loaded(lab);
        assert!(now == before || now == after, "step {number} left {:?}", now.keys());
        next(number, &after, &left);
    }
    unreachable!("it is done at last")
}

fn with(mut command: std::process::Command, arguments: &[&str]) -> std::process::Command {
    command.args(arguments);
    command
}

#[test]
fn an_installation_that_is_killed_before_any_of_its_steps_is_there_or_is_not() {
    let lab = Lab::new();
    let source = package(&lab, "src", "1.0.0", &json!({})).to_str().unwrap().to_owned();
    killed_before_each_step(&lab, &["ext", "install", &source, "--yes"], 0);
}

#[test]
fn an_installation_with_what_it_needs_that_is_killed_before_any_of_its_steps_is_there_or_is_not() {
    let lab = Lab::new();
    needy(&lab);
    killed_before_each_step(&lab, &["ext", "install", "guard", "--yes"], 0);
}

/// Publishes `guard`, which needs two others.
fn needy(lab: &Lab) {
    package(lab, "src/guard", "1.0.0", &json!({"dependencies": {"base": "^1.0.0", "other": "*"}}));
    for name in ["base", "other"] {
        let manifest = json!({"name": name, "version": "1.0.0", "description": "What others need"});
        lab.write(&format!("src/{name}/manifest.json"), manifest.to_string());
    }
    let folders = ["../src/guard", "../src/base", "../src/other"];
    let built = lab.run(&[&["ext", "index", "build", "--out", "../out"], folders.as_slice()].concat());
    assert_eq!(built.code, 0, "{built:?}");
    let index = lab.root.join("out/index.json");
    lab.write("home/.ollm/config.yaml", format!("extensions: {{indexes: [{}]}}\n", json!(index)));
}

#[test]
fn an_extension_that_is_removed_by_somebody_who_is_killed_is_there_or_is_not() {
    let lab = Lab::new();
    let source = package(&lab, "src", "1.0.0", &json!({}));
    installed(&lab, &[source.to_str().unwrap()]);
    package(&lab, "src", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    approve(&lab);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).code, 0);
    // What is gone is not known any more.
    killed_before_each_step(&lab, &["ext", "uninstall", "guard", "--yes"], 64);
}

#[test]
fn an_update_that_is_killed_before_any_of_its_steps_is_made_or_is_not() {
    let lab = Lab::new();
    let source = package(&lab, "src", "1.0.0", &json!({}));
    installed(&lab, &[source.to_str().unwrap()]);
    // There is a version before, which the update takes the place of.
    package(&lab, "src", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    package(&lab, "src", "1.2.0", &json!({}));
    killed_before_each_step(&lab, &["ext", "update", "guard", "--yes"], 0);
}

#[test]
fn a_way_back_that_is_killed_before_any_of_its_steps_is_gone_or_is_not() {
    let lab = Lab::new();
    let source = package(&lab, "src", "1.0.0", &json!({}));
    installed(&lab, &[source.to_str().unwrap()]);
    package(&lab, "src", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    let steps = for_each_kill(&lab, &["ext", "update", "guard", "--rollback", "--yes"], |number, _, left| {
        assert_eq!(extensions(&lab).keys().collect::<Vec<_>>(), left.keys().collect::<Vec<_>>(), "step {number}");
    });
    assert!(steps > 0);
}

/// Has a command run on a small disk with more and more room, each time in the same home, until there is enough. Says of each run
/// its code, what is loaded then, what lies among the extensions, and what it said.
const SMALL_DISK: &str = r#"
kept="$1"; shift
mount -t tmpfs -o size=8m,mode=755 tmpfs "$HOME"
for room in 0 4 8 12 16 20 24 28 32 36 40 48 56 64 96 128 256 512 1024 4096; do
    find "$HOME" -mindepth 1 -delete
    cp -a "$kept/." "$HOME"
    dd if=/dev/zero of="$HOME/room" bs=1k count=$room 2> /dev/null
    dd if=/dev/zero of="$HOME/filling" bs=1k 2> /dev/null || true
    rm "$HOME/room"
    said="$("$0" "$@" 2>&1)" && code=0 || code=$?
    rm "$HOME/filling"
    echo "$code|$("$0" ext list --json | tr -d ' \n')|$(ls -A "$HOME/.ollm/extensions" 2> /dev/null | tr '\n' ' ')|$(echo "$said" | tr '\n|' '  ')"
    [ "$code" = 0 ] && exit 0
done
"#;

/// A command that there is no room for changes nothing, and says so.
fn there_is_room_or_nothing_changes(lab: &Lab, arguments: &[&str], unchanged: &[&str]) {
    if !crate::lab::may_mount() {
        return;
    }
    let kept = lab.root.join("kept");
    let kept = kept.to_str().unwrap();
    assert_eq!(finish(with(lab.program("cp"), &["-a", lab.home.to_str().unwrap(), kept]), b"").code, 0);
    // Whether it is approved is not asked: that is withdrawn first, so that nothing runs which is half gone.
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| format!("{} {}", one["name"], one["version"])).collect()
    };
    let listed = |lab: &Lab| (names(&lab.run(&["ext", "list", "--json"]).answer()), entries(lab));
    let before = listed(lab);
    assert_eq!(lab.run(arguments).code, 0);
    let after = listed(lab);
    let script = [&["-m", "sh", "-ec", SMALL_DISK, crate::lab::OLLM, kept], arguments].concat();
    let ran = finish(with(lab.program("unshare"), &script), b"");
    let runs = ran.stdout.lines().map(|line| {
        let parts: Vec<&str> = line.splitn(4, '|').collect();
        let [code, list, left, said] = parts[..] else { panic!("{line}") };
        let list = names(&serde_json::from_str(list).unwrap());
        (code, (list, left.split_whitespace().map(str::to_owned).collect::<Vec<_>>()), said)
    });
    let runs: Vec<_> = runs.collect();
    let (last, failed) = runs.split_last().unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!((last.0, &last.1), ("0", &after), "{ran:?}");
    assert!(!failed.is_empty(), "the disk was never full: {ran:?}");
    for (code, list, said) in failed {
        assert_eq!((*code, list), ("5", &before), "{said}");
        assert!(unchanged.iter().any(|word| said.contains(word)), "{said}");
    }
}

/// What lies among the extensions.
fn entries(lab: &Lab) -> Vec<String> {
    let found = fs::read_dir(lab.home.join(".ollm/extensions")).into_iter().flatten();
    let mut names: Vec<String> = found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn on_a_full_disk_an_update_is_made_or_is_not_and_it_is_told() {
    let lab = Lab::new();
    installed(&lab, &[package(&lab, "src", "1.0.0", &json!({})).to_str().unwrap()]);
    package(&lab, "src", "1.1.0", &json!({}));
    lab.write("src/large", vec![7; 100 << 10]);
    let words = ["nothing was installed", "was not changed"];
    there_is_room_or_nothing_changes(&lab, &["ext", "update", "guard", "--yes"], &words);
}

#[test]
fn on_a_full_disk_all_that_belongs_together_is_installed_or_nothing_is() {
    let lab = Lab::new();
    needy(&lab);
    let words = ["nothing was installed", "was not changed", "cannot be written"];
    there_is_room_or_nothing_changes(&lab, &["ext", "install", "guard", "--yes"], &words);
}

#[test]
fn on_a_full_disk_an_extension_is_removed_or_stays() {
    let lab = Lab::new();
    installed(&lab, &[package(&lab, "src", "1.0.0", &json!({})).to_str().unwrap()]);
    approve(&lab);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).code, 0);
    // What is approved of others has to be written anew; a file that says nothing any more needs no room.
    let other = changed(&installed(&lab, &["git-guard", "--json"]));
    let digest = other["digest"].as_str().unwrap();
    assert_eq!(lab.run(&["ext", "trust", "git-guard", "--digest", digest]).code, 0);
    there_is_room_or_nothing_changes(&lab, &["ext", "uninstall", "guard", "--yes"], &["were not changed"]);
}

/// Runs a program for which the kernel exchanges no two files, as on file systems that cannot.
const WITHOUT_EXCHANGE: &str = r#"
import ctypes, os, struct, sys
RENAMEAT2 = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
EXCHANGE, EINVAL, FLAGS = 2, 22, 16 + 8 * 4
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, RENAMEAT2), (0x20, 0, 0, FLAGS), (0x15, 0, 1, EXCHANGE),
         (0x06, 0, 0, 0x00050000 | EINVAL), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
own = Filter(len(steps), ctypes.cast(code, ctypes.c_void_p))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(own), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn where_folders_cannot_be_exchanged_nothing_changes_and_the_way_out_is_told() {
    let lab = Lab::new();
    let run = |arguments: &[&str]| {
        let words = [&["-c", WITHOUT_EXCHANGE, crate::lab::OLLM], arguments].concat();
        finish(with(lab.program("python3"), &words), b"")
    };
    let source = package(&lab, "src", "1.0.0", &json!({})).to_str().unwrap().to_owned();
    assert_eq!(run(&["ext", "install", &source, "--yes"]).code, 0);
    let before = extensions(&lab);
    package(&lab, "src", "1.1.0", &json!({}));
    let ran = run(&["ext", "update", "guard", "--yes"]);
    assert_eq!((ran.code, extensions(&lab) == before), (5, true), "{ran:?}");
    assert!(ran.stderr.contains("its file system cannot exchange two folders in one step"), "{ran:?}");
    assert!(ran.stderr.contains("ollm ext uninstall guard"), "{ran:?}");
    assert_eq!(run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    assert_eq!(run(&["ext", "install", &source, "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.1.0");
}

#[test]
fn an_extension_that_was_removed_leaves_neither_files_nor_locks() {
    let lab = Lab::new();
    let own = lab.home.join(".ollm");
    let left = || -> Vec<String> {
        let all = files(&own).into_keys().map(|path| path.to_str().unwrap().to_owned());
        // What is kept for all hooks, from every origin.
        all.filter(|path| !["log/", "trace/", "state/told/"].iter().any(|other| path.starts_with(other))).collect()
    };
    let before = left();
    let source = package(&lab, "src", "1.0.0", &json!({})).to_str().unwrap().to_owned();
    installed(&lab, &[&source]);
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    assert_eq!(left(), before, "nobody approved it");
    installed(&lab, &[&source]);
    approve(&lab);
    package(&lab, "src", "1.1.0", &json!({}));
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).code, 0);
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    assert_eq!(left(), before);
    assert!(!own.join("extensions").exists() && !own.join("store").exists());
}
