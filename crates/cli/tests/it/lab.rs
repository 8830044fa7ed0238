//! A place to try `ollm` in: a throwaway home, a throwaway project beside it, and nothing else of this machine but
//! its programs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use regex_lite::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
pub(crate) use testkit::{PATIENCE, eventually};

pub(crate) mod pty;

/// The program under test.
pub(crate) const OLLM: &str = env!("CARGO_BIN_EXE_ollm");

/// Longer than any test takes: what still runs then was left behind.
pub(crate) const FOREVER: &str = "sleep 1000";

pub(crate) struct Lab {
    /// The throwaway folder; its path stands in the environment of everything that runs here.
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    variables: Vec<(String, String)>,
    default_boxes: bool,
    _folder: Folder,
}

/// A folder that goes with everything in it, also with copies that are closed to their owner.
struct Folder(TempDir);

impl Drop for Folder {
    fn drop(&mut self) {
        let store = self.0.path().join("home/.ollm/store");
        if store.exists() {
            Command::new("chmod").args(["-R", "u+w"]).arg(store).status().ok();
        }
    }
}

/// What a run of `ollm` left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit status; a signal counts from 128.
    pub(crate) code: i32,
}

impl Ran {
    /// The answer, which is one JSON value on one line.
    pub(crate) fn answer(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("no JSON answer ({error}): {self:?}"))
    }

    /// The report of one hook.
    pub(crate) fn hook(&self, name: &str) -> Value {
        let answer = self.answer();
        let hooks = answer["hooks"].as_array().unwrap();
        let found = hooks.iter().find(|hook| hook["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("hook `{name}` did not run: {answer:#}"))
    }

    /// How many hooks ran.
    pub(crate) fn hook_count(&self) -> usize {
        self.answer()["hooks"].as_array().unwrap().len()
    }

    /// Why a hook did not run.
    pub(crate) fn skip(&self, name: &str) -> Value {
        let answer = self.answer();
        let skipped = answer["skipped"].as_array().unwrap();
        let found = skipped.iter().find(|hook| hook["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("hook `{name}` was not skipped: {answer:#}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let code = output.status.code().or_else(|| output.status.signal().map(|signal| 128 + signal)).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { stdout: text(output.stdout), stderr: text(output.stderr), code }
    }
}

impl Lab {
    pub(crate) fn new() -> Lab {
        let folder = tempfile::Builder::new().prefix("ollm-lab-").tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (home, project) = (root.join("home"), root.join("project"));
        fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
        fs::create_dir_all(project.join(".git")).unwrap();
        let lab = Lab { root, home, project, variables: Vec::new(), default_boxes: false, _folder: Folder(folder) };
        lab.write(CONFIG, "");
        lab
    }

    /// A lab whose hooks and servers of projects and extensions run in the boxes that they have by default. In all others they
    /// leave their marks where the test looks for them.
    pub(crate) fn with_default_boxes() -> Lab {
        let lab = Lab { default_boxes: true, ..Lab::new() };
        fs::remove_file(lab.root.join(CONFIG)).unwrap();
        lab
    }

    /// The hooks that `hook plan` would run for an event, without the built-in ones.
    pub(crate) fn planned(&self, event: &str) -> Vec<Value> {
        let plan = self.run(&["hook", "plan", event, "--json"]).answer();
        let stages = plan["stages"].as_array().unwrap();
        let hooks = stages.iter().flat_map(|stage| stage.as_array().unwrap());
        hooks.filter(|hook| hook["source"] != "builtin").cloned().collect()
    }

    /// A lab whose user has one hook for `event`, a shell script named after the hook.
    pub(crate) fn with_hook(event: &str, name: &str, script: &str) -> Lab {
        let lab = Lab::with_default_boxes();
        lab.user_hook(event, name, script, "");
        lab
    }

    /// Sets a variable for all runs.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Lab {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let is_config = !self.default_boxes && path == self.root.join(CONFIG);
        match std::str::from_utf8(content.as_ref()) {
            Ok(text) if is_config => fs::write(&path, ["hooks", "mcp"].iter().fold(text.to_owned(), opened)).unwrap(),
            _ => fs::write(&path, content).unwrap(),
        }
        path
    }

    /// Writes a file in one step, as most editors do: nothing ever sees a half of it.
    pub(crate) fn save(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let new = self.write(&format!("saving/{path}"), content);
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }

    /// A copy of our program. Another process writes it: a child that a test starts at the same time would inherit our open file,
    /// and a program that is open for writing cannot be started.
    pub(crate) fn copy_of_program(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        assert!(Command::new("cp").arg(OLLM).arg(&path).status().unwrap().success());
        path
    }

    pub(crate) fn write_executable(&self, path: &str, content: &str) -> PathBuf {
        let path = self.write(path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A hook file of the user and the files beside it.
    pub(crate) fn user(&self, file: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!("home/.ollm/hooks/{file}"), content)
    }

    /// A hook file that came with the project and the files beside it.
    pub(crate) fn workspace(&self, file: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!("project/.ollm/hooks/{file}"), content)
    }

    /// One hook of the user in a file of its own; `more` are further keys, each with a comma in front.
    pub(crate) fn user_hook(&self, event: &str, name: &str, script: &str, more: &str) {
        self.user(&format!("{name}.sh"), script);
        self.user(&format!("{name}.json"), hook_file(event, name, more));
    }

    /// One hook of the project in a file of its own.
    pub(crate) fn workspace_hook(&self, event: &str, name: &str, script: &str, more: &str) {
        self.workspace(&format!("{name}.sh"), script);
        self.workspace(&format!("{name}.json"), hook_file(event, name, more));
    }

    /// A program with the lab's surroundings and nothing of ours.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.home).env("PATH", search_path()).current_dir(&self.project);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn ollm(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(OLLM);
        command.args(arguments);
        command
    }

    /// `ollm` with little memory; so have the hooks.
    pub(crate) fn ollm_in_little_memory(&self, arguments: &[&str]) -> Command {
        let mut command = self.program("/bin/sh");
        command.args(["-c", "ulimit -v 500000 && exec \"$0\" \"$@\"", OLLM]).args(arguments);
        command
    }

    /// Runs `ollm` with nothing on its standard input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.ollm(arguments), b"")
    }

    /// `ollm hook run` with an event on its standard input.
    pub(crate) fn event(&self, event: impl AsRef<[u8]>) -> Ran {
        finish(self.ollm(&["hook", "run"]), event.as_ref())
    }

    /// `ollm hook run --from HOST` with an event on its standard input.
    pub(crate) fn event_from(&self, host: &str, event: &str) -> Ran {
        finish(self.ollm(&["hook", "run", "--from", host]), event.as_ref())
    }

    /// The digest a person would read off before approving.
    pub(crate) fn digest(&self, id: &str) -> String {
        self.run(&["hook", "show", id, "--json"]).answer()["digest"].as_str().unwrap().to_owned()
    }

    pub(crate) fn approve(&self, id: &str) {
        let ran = self.run(&["hook", "trust", id, "--digest", &self.digest(id)]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    /// Waits until nothing runs any more that was started in this lab.
    pub(crate) fn assert_nobody_is_left(&self) {
        let start = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The command lines of all processes that carry the lab's path in their arguments or environment.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = self.root.as_os_str().as_encoded_bytes();
        let carries = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let own = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
            let arguments = own("cmdline");
            if carries(&arguments) || carries(&own("environ")) {
                let line = String::from_utf8_lossy(&arguments).replace('\0', " ");
                found.push(format!("{}: {line}", entry.file_name().display()));
            }
        }
        found
    }

    /// Builds a library that takes the place of functions of the C library, for `LD_PRELOAD`.
    pub(crate) fn preloaded(&self, name: &str, code: &str) -> String {
        let source = self.write(&format!("{name}.c"), code);
        let library = source.with_extension("so");
        let mut compiler = self.program("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let built = finish(compiler, b"");
        assert_eq!(built.code, 0, "{built:?}");
        library.to_str().unwrap().to_owned()
    }

    /// A pipe with a name, through which hooks can tell how far they are.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// The text without what differs from run to run.
    pub(crate) fn neutral(&self, text: &str) -> String {
        static CHANGING: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
        let changing = CHANGING.get_or_init(|| {
            let rules = [
                (r"sha256:[0-9a-f]{64}", "sha256:…"),
                (r"(?m)^program     /usr/bin/", "program     /bin/"),
                (r" +\d+\.\d ms  [▇▏ ]*[▇▏]", " … ms  ▇"),
                (r#""durationMs":[0-9.]+"#, r#""durationMs":0"#),
                (r#""durationSeconds":[0-9.e-]+"#, r#""durationSeconds":0"#),
                (r"events in \d+\.\d s", "events in … s"),
                (r#""traceId":"[0-9a-f-]{36}""#, r#""traceId":"…""#),
            ];
            rules.map(|(pattern, with)| (Regex::new(pattern).unwrap(), with)).into()
        });
        let text = text.replace(&self.root.display().to_string(), "LAB");
        changing.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
    }

    /// A run as a person sees it.
    pub(crate) fn screen(&self, ran: &Ran) -> String {
        let part = |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("--- {name}\n{text}") };
        let text = format!("exit {}\n{}{}", ran.code, part("stdout", &ran.stdout), part("stderr", &ran.stderr));
        self.neutral(&text)
    }
}

/// Feeds a program its input, and waits for its end.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program that has heard enough closes its input.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap().into()
    })
}

/// Starts a program whose input stays open.
pub(crate) fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for as many lines from a pipe with a name.
pub(crate) fn lines(fifo: &Path, count: usize) -> Vec<String> {
    BufReader::new(File::open(fifo).unwrap()).lines().take(count).map(Result::unwrap).collect()
}

/// Everything a child still says, and how it ends.
pub(crate) fn outcome(mut child: Child) -> Ran {
    let mut read = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut read.0).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut read.1).unwrap();
    let status = child.wait().unwrap();
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap();
    Ran { stdout: read.0, stderr: read.1, code }
}

/// The configuration of a lab's user.
const CONFIG: &str = "home/.ollm/config.yaml";

/// A configuration in which only those programs of this part have a box that declare permissions.
fn opened(text: String, part: &&str) -> String {
    if let Ok(Value::Object(mut map)) = serde_json::from_str(&text) {
        map.entry(*part)
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .unwrap()
            .insert("box".to_owned(), "declared".into());
        return Value::Object(map).to_string();
    }
    let (flow, block) = (format!("{part}: {{"), format!("{part}:\n"));
    if text.contains(&format!("{part}: {{box")) || text.contains("  box:") && text.contains(&block) {
        return text;
    }
    if text.starts_with(&flow) || text.contains(&format!("\n{flow}")) {
        return text.replacen(&flow, &format!("{flow}box: declared, "), 1);
    }
    let Some(start) = text.find(&block).filter(|start| *start == 0 || text[..*start].ends_with('\n')) else {
        let line = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{line}{part}: {{box: declared}}\n");
    };
    // Behind the last line of the part, so that the places of the others do not move.
    let inner = start + block.len();
    let length =
        text[inner..].split_inclusive('\n').take_while(|line| line.starts_with(' ')).map(str::len).sum::<usize>();
    let indent = text[inner..].chars().take_while(|letter| *letter == ' ').count();
    let (before, after) = text.split_at(inner + length);
    let line = if before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{line}{:indent$}box: declared\n{after}", "")
}

/// A hook file with one hook that runs `NAME.sh`; `more` are further keys, each with a comma in front.
pub(crate) fn hook_file(event: &str, name: &str, more: &str) -> String {
    format!(r#"{{"hooks": {{"{event}": [{{"name": "{name}", "command": "sh", "args": ["{name}.sh"]{more}}}]}}}}"#)
}

/// An event as a hook got it that kept it in a file, without the time it came, which each event has.
pub(crate) fn kept(path: &Path) -> Value {
    let mut event: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let time = event["data"].as_object_mut().and_then(|data| data.shift_remove("timestamp"));
    assert!(time.is_some_and(|time| time.as_str().unwrap().ends_with('Z')), "{event}");
    event
}

/// An event about a shell command.
pub(crate) fn shell_event(command: &str) -> String {
    serde_json::json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": command}}})
        .to_string()
}

/// The search path of this machine, with the real Python in front of all its stand-ins.
pub(crate) fn search_path() -> &'static OsString {
    static PATH: OnceLock<OsString> = OnceLock::new();
    PATH.get_or_init(|| {
        let own = std::env::var_os("PATH").unwrap();
        let program = python();
        let folders = std::iter::once(program.parent().unwrap().to_owned()).chain(std::env::split_paths(&own));
        std::env::join_paths(folders).unwrap()
    })
}

/// The Python interpreter itself: a version manager's stand-in costs a shell each time.
pub(crate) fn python() -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let program = PYTHON.get_or_init(|| {
        let script = "import sys; sys.stdout.write(sys.executable)";
        let output = Command::new("python3").args(["-c", script]).output().unwrap();
        PathBuf::from(String::from_utf8(output.stdout).unwrap())
    });
    program.clone()
}

/// Whether a test may mount a disk of its own. Not in a namespace of users: a program in one may be an agent that
/// hides.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
pub(crate) fn may_mount() -> bool {
    let mut probe = Command::new("unshare");
    let may = probe.args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).stderr(Stdio::null()).status();
    let may = may.is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: no right to mount a disk");
    }
    may
}
