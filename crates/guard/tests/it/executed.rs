//! What a real shell destroys, a guard has not let pass.
//!
//! Commands are put together from a grammar of wrappers, quoting, assignments and redirections, and run by `sh` and
//! `bash` in a home that is made for them and thrown away. A command names no path outside of it: the home is in `HOME`,
//! in the working folder, or written out. Everything the shell can start is in `BIN`, so that nothing else can be harmed.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use ollm_guard::{Lock, ProtectedPlaces, destructive, tampering};
use ollm_process::{BoxMeans, BoxRules, Children, Job, Limits, ProcessBox};
use ollm_protocol::{Event, EventKind, Flow};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;

/// The few programs that a command may use.
#[rustfmt::skip]
const BIN: &[&str] = &[
    "sh", "bash", "rm", "find", "xargs", "cat", "echo", "printf", "env", "nice", "nohup", "timeout", "tee", "cp", "mv",
    "ls", "true", "head", "sort", "dirname", "basename", "mkdir", "ln", "sed", "awk", "chmod", "touch", "truncate",
    "setsid", "stdbuf", "unlink", "grep", "tr", "rev", "base64", "dd", "sleep", "realpath", "seq", "install", "mkfifo",
];

/// A throwaway home with a project in it.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let home = Home { folder: tempfile::tempdir().unwrap() };
        home.restore();
        let bin = home.folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in BIN {
            let found =
                ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
            if let Some(found) = found {
                std::os::unix::fs::symlink(found, bin.join(name)).unwrap();
            }
        }
        // A wrapper of which nothing is known.
        write_program(
            &bin.join("wrapper"),
            "#!/bin/sh\nwhile case $1 in -*) :;; *) false;; esac; do shift; done\nexec \"$@\"\n",
        );
        write_program(&bin.join("runner"), "#!/bin/sh\nfor x; do case $x in *' '*) sh -c \"$x\";; esac; done\n");
        home
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.path().join("work/project")
    }

    /// Everything that must survive.
    fn precious(&self) -> Vec<PathBuf> {
        let home = self.path();
        vec![
            home.join("letters/first.txt"),
            home.join("letters/second.txt"),
            home.join(".ollm/config.yaml"),
            home.join(".ollm/hooks/guard.json"),
            self.project().join(".git/config"),
            self.project().join(".git/objects/x"),
        ]
    }

    fn restore(&self) {
        use std::os::unix::fs::PermissionsExt;
        for folder in [self.path(), self.path().join("work"), self.project()] {
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o755));
        }
        let _ = fs::remove_dir_all(self.path());
        for file in self.precious() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "precious").unwrap();
        }
        fs::create_dir_all(self.project().join("build")).unwrap();
        fs::write(self.project().join("build/x"), "x").unwrap();
    }

    /// The first thing that is gone or changed.
    fn lost(&self) -> Option<PathBuf> {
        let intact = |file: &PathBuf| fs::read(file).is_ok_and(|text| text == b"precious");
        self.precious().into_iter().find(|file| !intact(file))
    }

    /// What both guards say.
    fn judged(&self, command: &str) -> Flow {
        let data = [
            ("tool_name", "shell".into()),
            ("args", json!({ "command": command })),
            ("cwd", self.project().to_str().unwrap().into()),
        ];
        let event = Event::unchecked(EventKind::BeforeTool, data);
        let first = destructive(&event, &self.project(), Some(&self.path())).flow;
        first.max(tampering(&event, &self.shelter()).flow)
    }

    fn shelter(&self) -> ProtectedPlaces {
        ProtectedPlaces {
            home: Some(self.path()),
            ollm_home: self.path().join(".ollm"),
            projects: vec![self.project()],
            cwd: self.project(),
            ..ProtectedPlaces::default()
        }
    }

    /// A box for what is protected now; nothing where the kernel allows none.
    fn process_box(&self) -> Option<ProcessBox> {
        let locked = self.shelter().protected().into_iter().filter(|one| one.lock == Lock::Locked);
        let rules = BoxRules { read_only: locked.map(|one| one.path).collect(), ..BoxRules::default() };
        ProcessBox::new(BoxMeans::Namespaces, &rules).ok()
    }

    /// What of the protected files is gone or changed, or was added.
    fn lost_protected(&self) -> Option<PathBuf> {
        let own = self.path().join(".ollm");
        let intact = |file: &PathBuf| fs::read(file).is_ok_and(|text| text == b"precious");
        let names = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
        let lost = self.precious().into_iter().find(|file| file.starts_with(&own) && !intact(file));
        lost.or_else(|| (names(&own) != 2 || names(&own.join("hooks")) != 1).then_some(own))
    }

    fn execute_in(&self, process_box: ProcessBox, shell: &str, command: &str) {
        let shell = self.folder.path().join("bin").join(shell);
        self.execute_words(process_box, &[shell.to_str().unwrap().to_owned(), "-c".to_owned(), command.to_owned()]);
    }

    fn execute_words(&self, process_box: ProcessBox, words: &[String]) {
        let (program, args) = words.split_first().unwrap();
        let bin = self.folder.path().join("bin");
        Children::new().run(Job {
            args: args.iter().map(Into::into).collect(),
            env: vec![("PATH".into(), bin.into()), ("HOME".into(), self.path().into())],
            cwd: Some(self.project()),
            limits: Limits { timeout: Duration::from_secs(3), ..Limits::default() },
            process_box: Some(Arc::new(process_box)),
            ..Job::new(program)
        });
    }

    fn execute(&self, shell: &str, command: &str) {
        let mut child = Command::new("timeout");
        child.args(["-k", "1", "3", shell, "-c", command]);
        child.env_clear().env("PATH", self.folder.path().join("bin")).env("HOME", self.path());
        child.current_dir(self.project()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = child.status();
    }
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Ways to name the home or something precious in it. None leads out of the throwaway home.
#[rustfmt::skip]
const TARGETS: &[&str] = &[
    "~", "\"$HOME\"", "$HOME", "${HOME}", "\"${HOME:?}\"", "~/letters/../../home", "~/.", "../..", "../../../home", "~/*",
    "~/.ollm", "\"$HOME\"/.ollm", "~/.oll?", "~/.[[:alpha:]]*", "../../.ollm", "~/{.ollm,letters}", ".git", "~/.o*",
    "\"$(echo ~)\"", "\"$(dirname ~/x)\"", "\"${x:-$HOME}\"", "\"$PWD/../..\"", "$(printf %s \"$HOME\")",
];

/// Ways to destroy a target.
#[rustfmt::skip]
const DESTROYERS: &[&str] = &[
    "rm -rf T", "rm -r -f T", "rm -fr -- T", "find T -delete", "find -O3 T -type f -delete",
    "find T -type f -exec rm -f {} +", "find T -type f -exec sh -c 'rm -f \"$1\"' _ {} \\;",
    "find T -type f -exec sh -c '> \"$1\"' _ {} \\;", "find T -type f | xargs rm -f",
    "find T -type f | while read f; do rm -f \"$f\"; done", "find T -type f -exec cp /dev/null {} \\;",
    "find T -type f -exec truncate -s0 {} +", "mv T gone", "find T -name '*' -delete",
    "find T -type f -print0 | xargs -0 rm", "find T -type f -exec mv {} build \\;",
    "rm -rf \"$(echo T)\"", "for f in T; do rm -rf \"$f\"; done", "set -- T; rm -rf \"$@\"",
    "f() { rm -rf \"$1\"; }; f T", "f() { \"$@\"; }; f rm -rf T", "x=T; rm -rf $x", "x=T; rm -rf \"$x\"",
    "c='rm -rf'; $c T", "eval \"x=T\"; rm -rf \"$x\"", "eval 'rm -rf T'", "export x=T; sh -c 'rm -rf \"$x\"'",
    "x=T sh -c 'rm -rf \"$x\"'", "sh -c 'rm -rf \"$1\"' _ T", "sh -c 'rm -rf \"$@\"' _ T", "echo T | xargs rm -rf",
    "printf '%s\\n' T | xargs -I% rm -rf %", "echo 'rm -rf T' | sh", "cat <<E | sh\nrm -rf T\nE",
    "sh <<E\nrm -rf T\nE", "cd T && rm -rf ./* ./.[!.]*", "env -C T rm -rf letters .ollm work", "ls -d T | xargs rm -rf",
    ": ${x:=T}; rm -rf \"$x\"", "read x <<E\nT\nE\nrm -rf \"$x\"", "x=build; x=T; rm -rf \"$x\"",
    "if cd T; then rm -rf *; fi", "rm -rf build T", "trap 'rm -rf T' EXIT", "y=T; x=y; eval \"rm -rf \\$$x\"",
    "wrapper --any rm -rf T", "wrapper -v sh -c 'rm -rf T'", "runner 'rm -rf T'", "runner --times=3 'true; rm -rf T'",
    "awk 'BEGIN { system(\"rm -rf T\") }'", "awk 'BEGIN { c = \"rm -rf T\"; c | getline }'",
    "awk 'BEGIN { print 1 | \"rm -rf T\" }'", "sed 's/.*/rm -rf T/e' build/x", "sed '1erm -rf T' build/x", "sed -n '1e rm -rf T' build/x", "ln -s T link && rm -rf link/*",
    "cp /bin/rm build/erase; build/erase -rf T", "unset x; rm -rf T/$x",
    "for f in $(echo build T); do rm -rf \"$f\"; done",
    "for f in $(find T -type f); do rm -f \"$f\"; done", "rm -f $(find T -type f)", "x=$(find T -type f); rm -f $x",
    "find T -type f | sort | xargs rm -f", "find T -type f | grep . | while read -r f; do rm \"$f\"; done", "rm -rf \"$x\"T",
    "while read -r f; do rm -f \"$f\"; done < <(find T -type f)", "xargs rm -rf < <(echo T)", "rm -f $(grep -rl precious T)",
    "grep -rl precious T | xargs rm -f", "find T -type f -exec mv -t build {} +", "tee $(find T -type f) < build/x",
    "printf 'rm -rf ' > build/a; echo 'T' >> build/a; sh build/a", "mapfile -t a < <(find T -type f); rm -f \"${a[@]}\"",
    "x=build; trap 'x=T' DEBUG; rm -rf \"$x\"", "echo 'rm -rf T' > build/a; cp build/a build/b; . build/b", "rm -rf $(ls -d T)",
];

/// Ways to write over what is protected.
#[rustfmt::skip]
const WRITERS: &[&str] = &[
    "echo x > F", "echo x >> F", "true > F", ": > F", "cp build/x F", "tee F < build/x", "sed -i s/p/q/ F",
    "truncate -s0 F", "dd if=build/x of=F", "mv build/x F", "ln -sf build/x F", "install build/x F", "rm -f F",
    "unlink F", "chmod 000 F; chmod 644 F; echo > F", "sort -oF build/x", "sort --output=F build/x", "cat build/x > F",
    "d=$(dirname F); echo x > \"$d\"/config.yaml", "wrapper cp build/x F", "runner 'cp build/x F'",
    "x=F; echo > \"$x\"", "echo > \"$(echo F)\"", "cd ~/.ollm && echo > config.yaml", "find ~/.ollm -name '*.yaml' -delete",
    "awk 'BEGIN { print > \"F\" }'", "sed 'w F' build/x", "printf x | tee -a F", "echo F | xargs cp build/x",
    "find ~ -name 'config.y*' -exec cp build/x {} \\;", "bash -c 'echo > \"$1\"' _ F", "cp build/x build/config.yaml; cp -t ~/.ollm build/config.yaml",
    "mkdir build/.ollm; cp build/x build/.ollm/config.yaml; cd build; cp --parents .ollm/config.yaml ~", "sed 'W F' build/x",
    "install -d ~/.ollm/new; ln -s ~/.ollm build/l; cp build/x build/l/config.yaml", "tee $(echo F) < build/x",
];

#[rustfmt::skip]
const FILES: &[&str] = &[
    "~/.ollm/config.yaml", "\"$HOME\"/.ollm/config.yaml", "$HOME/.ollm/config.yaml", "../../.ollm/config.yaml",
    "~/.ollm/./config.yaml", "~/letters/../.ollm/config.yaml", "\"${HOME}/.ollm/config.yaml\"",
];

/// Ways around a command; `C` is the command, `Q` the same in single quotes.
#[rustfmt::skip]
const AROUND: &[&str] = &[
    "C", "C", "C", "true && C", "false || C", "( C )", "{ C\n}", "if true; then C\nfi", "for i in 1; do C\ndone",
    "sh -c Q", "bash -euo pipefail -c Q", "bash -xeuo pipefail -c Q", "sh -e -c Q", "eval Q", "env sh -c Q",
    "env A=b sh -c Q", "nice -n 5 sh -c Q", "timeout 3 sh -c Q", "nohup sh -c Q", "echo \"$( C\n)\"", "x=$( C\n)",
    "wrapper sh -c Q", "wrapper --opt=1 -v sh -c Q", "runner Q", "runner --shell=sh Q", "sh <<'END'\nC\nEND",
    "printf '%s\\n' Q | sh", "f() { C\n}; f", "true | { C\n}", "command sh -c Q", "exec sh -c Q", "C &\nwait",
    "case x in x) C\n;; esac", "while true; do C\nbreak; done", "xargs -I% sh -c Q < build/x", "setsid sh -c Q",
    "stdbuf -oL sh -c Q", "echo x | xargs -I{} sh -c Q", "find build -name x -exec sh -c Q \\;", "sh -s <<'END'\nC\nEND",
    "cat <<'END' | sh\nC\nEND", "exec 3<<'END'\nC\nEND\nsh <&3", "alias e=Q\nsh -c Q", "c=Q; sh -c \"$c\"", "c=Q; eval \"$c\"",
    "sh /dev/stdin <<'END'\nC\nEND", "sh -c 'eval \"$1\"' _ Q", "trap Q EXIT", "bash --norc -c Q", "A=1 B=2 sh -c Q",
    "printf '%s\\n' Q > >(sh); wait", "printf '%s\\n' Q | tee >(sh) >/dev/null; wait", "coproc sh; echo Q >&\"${COPROC[1]}\"",
    "mkfifo build/p; sh < build/p & printf '%s\\n' Q > build/p; wait", "f() { \"$@\"; }; f sh -c Q", "sh < <(printf '%s\\n' Q)",
    "bash <(printf '%s\\n' Q)", "printf '%s\\n' Q > build/q; sh build/q",
];

fn around(way: &str, command: &str) -> String {
    let quoted = format!("'{}'", command.replace('\'', "'\\''"));
    way.replacen('Q', "\u{1}", 2).replacen('C', command, 1).replace('\u{1}', &quoted)
}

fn destruction() -> impl Strategy<Value = String> {
    use prop::sample::select;
    let removal = (select(DESTROYERS), select(TARGETS)).prop_map(|(way, target)| way.replace('T', target));
    let writing = (select(WRITERS), select(FILES)).prop_map(|(way, file)| way.replace('F', file));
    let ways = prop::collection::vec(select(AROUND), 0..3);
    (prop_oneof![2 => removal, 1 => writing], ways)
        .prop_map(|(command, ways)| ways.into_iter().fold(command, |command, way| around(way, &command)))
}

#[test]
fn what_a_shell_destroys_was_refused_or_asked_about() {
    let home = Home::new();
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    // What is stopped need not run.
    let outcome = TestRunner::new(config).run(&destruction(), |command| {
        if home.judged(&command) >= Flow::Ask {
            return Ok(());
        }
        for shell in ["sh", "bash"] {
            home.execute(shell, &command);
            let lost = home.lost();
            home.restore();
            prop_assert!(lost.is_none(), "{shell} destroyed {lost:?} with {command}");
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[test]
fn in_a_box_no_command_changes_what_is_protected_whatever_a_guard_would_say() {
    let home = Home::new();
    if home.process_box().is_none() {
        return eprintln!("skipped: this kernel allows no box");
    }
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&destruction(), |command| {
        let Some(process_box) = home.process_box() else { return Ok(()) };
        home.execute_in(process_box, "bash", &command);
        let lost = home.lost_protected();
        home.restore();
        prop_assert!(lost.is_none(), "{lost:?} is lost by {command}");
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// What a program does with two paths, the same in every language.
#[rustfmt::skip]
const OPERATIONS: &[&str] = &[
    "write", "append", "truncate", "unlink", "remove", "mode", "folder", "rename", "link", "symlink", "exchange",
];

/// Paths of what is protected and of what is around it, by every way that leads there; `H` is the home.
#[rustfmt::skip]
const PLACES: &[&str] = &[
    "H/.ollm", "H/.ollm/config.yaml", "H/.ollm/hooks", "H/.ollm/hooks/guard.json", "H/.ollm/hooks/new.json", "H", "H/other",
    "H/work", "H/work/project", "/proc/self/rootH/.ollm/config.yaml", "/proc/self/cwd/../../.ollm/config.yaml",
    "../../.ollm/hooks/guard.json", "a", "a/config.yaml", "a/hooks/guard.json", "b", "H/letters/../.ollm/config.yaml",
];

const PYTHON: &str = r"
import ctypes, os, shutil, sys
libc = ctypes.CDLL(None)
def put(p, mode): open(p, mode).write('evil')
for op, p, q in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    try:
        {'write': lambda: put(p, 'w'), 'append': lambda: put(p, 'a'), 'truncate': lambda: os.truncate(p, 0),
         'unlink': lambda: os.unlink(p), 'remove': lambda: shutil.rmtree(p), 'mode': lambda: os.chmod(p, 0),
         'folder': lambda: os.makedirs(p), 'rename': lambda: os.rename(p, q), 'link': lambda: os.link(p, q),
         'symlink': lambda: os.symlink(p, q), 'exchange': lambda: libc.renameat2(-100, p.encode(), -100, q.encode(), 2)}[op]()
    except Exception: pass
";

const NODE: &str = r"
const fs = require('fs'), words = process.argv.slice(1);
for (let n = 0; n + 2 < words.length; n += 3) {
  const [op, p, q] = words.slice(n);
  try {
    ({ write: () => fs.writeFileSync(p, 'evil'), append: () => fs.appendFileSync(p, 'evil'), truncate: () => fs.truncateSync(p),
       unlink: () => fs.unlinkSync(p), remove: () => fs.rmSync(p, { recursive: true }), mode: () => fs.chmodSync(p, 0),
       folder: () => fs.mkdirSync(p, { recursive: true }), rename: () => fs.renameSync(p, q), link: () => fs.linkSync(p, q),
       symlink: () => fs.symlinkSync(p, q), exchange: () => { fs.copyFileSync(q, p); fs.cpSync(q, p, { recursive: true }); } })[op]();
  } catch {}
}
";

const PERL: &str = r"
use File::Path;
sub put { open(my $f, $_[1], $_[0]) or return; print $f 'evil'; close $f }
while (my ($op, $p, $q) = splice @ARGV, 0, 3) {
  eval { ({ write => sub { put($p, '>') }, append => sub { put($p, '>>') }, truncate => sub { truncate $p, 0 },
    unlink => sub { unlink $p }, remove => sub { File::Path::remove_tree($p) }, mode => sub { chmod 0, $p },
    folder => sub { File::Path::make_path($p) }, rename => sub { rename $p, $q }, link => sub { link $p, $q },
    symlink => sub { symlink $p, $q }, exchange => sub { syscall(316, -100, $p, -100, $q, 2) } })->{$op}->() };
}
";

const C: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void put(const char *p, int how) { int f = open(p, O_WRONLY | O_CREAT | how, 0644); if (f >= 0) { write(f, "evil", 4); close(f); } }
static int gone(const char *p, const struct stat *s, int t, struct FTW *w) { remove(p); return 0; }
int main(int argc, char **argv) {
  for (int n = 1; n + 2 < argc; n += 3) {
    const char *op = argv[n], *p = argv[n + 1], *q = argv[n + 2];
    if (!strcmp(op, "write")) put(p, O_TRUNC);
    if (!strcmp(op, "append")) put(p, O_APPEND);
    if (!strcmp(op, "truncate")) truncate(p, 0);
    if (!strcmp(op, "unlink")) unlink(p);
    if (!strcmp(op, "remove")) nftw(p, gone, 16, FTW_DEPTH | FTW_PHYS);
    if (!strcmp(op, "mode")) chmod(p, 0);
    if (!strcmp(op, "folder")) mkdir(p, 0755);
    if (!strcmp(op, "rename")) syscall(SYS_renameat2, AT_FDCWD, p, AT_FDCWD, q, 0);
    if (!strcmp(op, "link")) linkat(AT_FDCWD, p, AT_FDCWD, q, AT_SYMLINK_FOLLOW);
    if (!strcmp(op, "symlink")) symlink(p, q);
    if (!strcmp(op, "exchange")) syscall(SYS_renameat2, AT_FDCWD, p, AT_FDCWD, q, RENAME_EXCHANGE);
  }
  return 0;
}
"#;

/// The programs that are here, and the words before what they are to do.
fn languages(folder: &Path) -> Vec<Vec<String>> {
    let source = folder.join("attack.c");
    fs::write(&source, C).unwrap();
    let program = folder.join("attack");
    let built = Command::new("cc").args(["-static", "-w", "-o"]).arg(&program).arg(&source).status();
    let mut found: Vec<Vec<String>> = built
        .is_ok_and(|built| built.success())
        .then(|| vec![program.to_str().unwrap().to_owned()])
        .into_iter()
        .collect();
    for (name, words) in
        [("python3", ["-c", PYTHON].as_slice()), ("node", ["-e", NODE].as_slice()), ("perl", ["-e", PERL].as_slice())]
    {
        let places = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&places).map(|place| place.join(name)).find(|program| program.exists());
        if let Some(program) = program {
            let words = words.iter().map(|word| (*word).to_owned());
            found.push([program.to_str().unwrap().to_owned()].into_iter().chain(words).collect());
        }
    }
    found
}

/// A language by its number, and what its program does.
fn attack() -> impl Strategy<Value = (usize, Vec<&'static str>)> {
    use prop::sample::select;
    let step = (select(OPERATIONS), select(PLACES), select(PLACES)).prop_map(|(what, one, other)| [what, one, other]);
    (any::<usize>(), prop::collection::vec(step, 1..8)).prop_map(|(language, steps)| (language, steps.concat()))
}

#[test]
fn in_a_box_no_program_of_any_language_changes_what_is_protected() {
    let home = Home::new();
    if home.process_box().is_none() {
        return eprintln!("skipped: this kernel allows no box");
    }
    let languages = languages(home.folder.path());
    assert!(!languages.is_empty());
    if languages.len() < 4 {
        eprintln!("skipped: of the four languages only {languages:?} are here");
    }
    for words in &languages {
        let file = home.path().join(".ollm/config.yaml");
        let ran = Command::new(&words[0]).args(&words[1..]).args(["unlink", file.to_str().unwrap(), "x"]).status();
        assert!(ran.unwrap().success() && home.lost_protected().is_some(), "{words:?} can do nothing without a box");
        home.restore();
    }
    let config = ProptestConfig { cases: cases() / 2, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&attack(), |(language, steps)| {
        let Some(process_box) = home.process_box() else { return Ok(()) };
        let words = &languages[language % languages.len()];
        let path = home.path();
        let steps = steps.iter().map(|word| word.replace('H', path.to_str().unwrap()));
        let command: Vec<String> = words.iter().cloned().chain(steps).collect();
        home.execute_words(process_box, &command);
        let lost = home.lost_protected();
        home.restore();
        prop_assert!(lost.is_none(), "{lost:?} is lost by {command:?}");
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// More cases can be asked for.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(512)
}

/// The grammar destroys: otherwise the property would say nothing.
#[test]
fn the_grammar_destroys_what_it_means_to() {
    let home = Home::new();
    let survives = |command: &str| {
        home.execute("bash", command);
        let lost = home.lost().is_some();
        home.restore();
        !lost
    };
    let removals = DESTROYERS.iter().map(|way| way.replace('T', "~"));
    let writes = WRITERS.iter().map(|way| way.replace('F', "~/.ollm/config.yaml"));
    let idle: Vec<String> = removals.chain(writes).filter(|command| survives(command)).collect();
    assert!(idle.len() * 4 < DESTROYERS.len() + WRITERS.len(), "{idle:#?}");
}
