//! The boxes of hooks and servers that came with a project or an extension, whether or not they declare permissions.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, eventually, finish};

const ID: &str = "workspace:guest.json:before_agent:guest";

fn event() -> String {
    json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string()
}

/// A project with one approved hook; nothing where there is no Landlock.
fn project(script: &str, more: &str) -> Option<Lab> {
    let lab = Lab::with_default_boxes();
    lab.workspace_hook("before_agent", "guest", script, more);
    lab.approve(ID);
    has_boxes(&lab).then_some(lab)
}

#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
pub(crate) fn has_boxes(lab: &Lab) -> bool {
    let doctor = lab.run(&["doctor"]);
    let is_there = !doctor.stdout.contains("run without a box");
    if !is_there {
        eprintln!("skipped: {}", doctor.stdout);
    }
    is_there
}

/// The report of the hook at one event.
fn report(lab: &Lab) -> Value {
    lab.event(event()).hook("guest")
}

#[test]
fn a_hook_of_a_project_writes_nothing_that_it_does_not_declare_and_is_told_the_line_that_allows_it() {
    let Some(lab) = project("echo x > out.txt", "") else { return };
    let failed = report(&lab);
    let refused = format!("its box refused writing {}/out.txt", lab.project.display());
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains(&refused) && error.ends_with(r#""permissions": {"write": ["."]} allows it"#), "{error}");
    assert!(!lab.project.join("out.txt").exists());
    lab.workspace_hook("before_agent", "guest", "echo x > out.txt", r#", "permissions": {"write": ["."]}"#);
    lab.approve(ID);
    assert_eq!(report(&lab)["status"], "ok");
    assert_eq!(fs::read_to_string(lab.project.join("out.txt")).unwrap(), "x\n");
}

#[test]
fn a_hook_that_may_write_the_project_changes_nothing_in_it_that_is_protected() {
    let script = "echo x > out.txt; echo x > .git/index.lock && mv .git/index.lock .git/index; \
                  echo evil > .git/hooks/pre-commit; echo evil > .ollm/hooks/evil.json; echo evil >> .git/config; exit 1";
    let lab = Lab::with_default_boxes();
    for (name, text) in [("project/.git/hooks/pre-commit", "mine"), ("project/.git/config", "[core]\n")] {
        lab.write(name, text);
    }
    lab.workspace_hook("before_agent", "guest", script, r#", "permissions": {"write": ["."]}"#);
    lab.approve(ID);
    if !has_boxes(&lab) {
        return;
    }
    let error = report(&lab)["error"].as_str().unwrap().to_owned();
    let read = |name: &str| fs::read_to_string(lab.project.join(name)).ok();
    assert_eq!(read(".git/hooks/pre-commit").as_deref(), Some("mine"), "{error}");
    assert_eq!(read(".git/config").as_deref(), Some("[core]\n"), "{error}");
    assert_eq!(read(".ollm/hooks/evil.json"), None, "{error}");
    let refused = format!("writing {}, which is protected", lab.project.join(".git/hooks/pre-commit").display());
    assert!(error.contains(&refused) && !error.contains("allows it"), "{error}");
    // Without mounts, nothing new can be made beside what is protected.
    if lab.run(&["doctor"]).stdout.contains("box: on") {
        assert_eq!((read("out.txt").as_deref(), read(".git/index").as_deref()), (Some("x\n"), Some("x\n")), "{error}");
    }
}

#[test]
fn the_line_that_is_told_keeps_what_is_declared_and_spells_paths_as_they_are_declared() {
    let script = "cat ~/notes; echo x > ../outside/file; mkdir -p build/a; exit 1";
    let lab = Lab::with_default_boxes();
    lab.write("home/notes", "secret");
    for folder in ["outside", "project/build"] {
        fs::create_dir_all(lab.root.join(folder)).unwrap();
    }
    lab.workspace_hook("before_agent", "guest", script, r#", "permissions": {"write": ["build"]}"#);
    lab.approve(ID);
    if !has_boxes(&lab) {
        return;
    }
    let error = report(&lab)["error"].as_str().unwrap().to_owned();
    let line =
        format!(r#""permissions": {{"read": ["~/notes"], "write": ["build", "{}/outside"]}}"#, lab.root.display());
    assert!(error.contains(&line), "{error}");
    assert!(lab.project.join("build/a").is_dir());
}

#[test]
fn a_refusal_that_a_hook_does_without_is_a_warning() {
    let Some(lab) = project("(echo x > out.txt) 2> /dev/null; echo '{\"continue\": true}'", "") else { return };
    let report = report(&lab);
    assert_eq!(report["status"], "ok", "{report}");
    assert!(report["warnings"][0].as_str().unwrap().contains("its box refused writing"), "{report}");
    let Some(lab) = project("cat ~/.bashrc; echo '{\"continue\": true}'", "") else { return };
    lab.write("home/.bashrc", "mine");
    let report = self::report(&lab);
    assert!(report["warnings"][0].as_str().unwrap().contains("its box refused reading"), "{report}");
}

#[test]
fn the_network_is_closed_to_a_hook_of_a_project_unless_it_declares_it() {
    let script = "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 9'";
    let Some(lab) = project(script, "") else { return };
    let error = report(&lab)["error"].as_str().unwrap().to_owned();
    assert!(error.contains(r#"its box refused the network; "permissions": {"net": true} allows it"#), "{error}");
    lab.workspace_hook("before_agent", "guest", script, r#", "permissions": {"net": true}"#);
    lab.approve(ID);
    assert_eq!(report(&lab)["status"], "ok");
}

#[test]
fn usual_tools_work_in_the_least_box() {
    let script = "set -e; git log --oneline > /dev/null; python3 -c 'import json, tempfile; tempfile.mkstemp()'
node -e 'require(\"fs\").readFileSync(\"file\")'; perl -e '1'; grep -c x file > /dev/null; t=$(mktemp); sort file > $t; rm $t
ls -l > /dev/null; id > /dev/null; date > /dev/null; echo '{\"continue\": true}'";
    let lab = Lab::with_default_boxes();
    lab.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b.c\n");
    lab.write("project/file", "x\n");
    let mut git = lab.program("sh");
    git.args(["-ec", "git init -q . && git add file && git commit -qm one"]);
    assert_eq!(finish(git, b"").code, 0);
    lab.workspace_hook("before_agent", "guest", script, "");
    lab.approve(ID);
    let report = report(&lab);
    assert_eq!(report["status"], "ok", "{report}");
}

#[test]
fn a_hook_of_the_user_has_a_box_only_if_it_declares_permissions() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_agent", "guest", "echo x > out.txt", "");
    assert_eq!(report(&lab)["status"], "ok");
    assert!(lab.project.join("out.txt").exists());
}

#[test]
fn an_async_hook_is_in_its_box_too() {
    let script = "(echo x > refused.txt) 2> /dev/null; echo x > done/mark";
    let Some(lab) = project(script, r#", "async": true, "permissions": {"write": ["done"]}"#) else { return };
    fs::create_dir(lab.project.join("done")).unwrap();
    assert_eq!(lab.event(event()).code, 0);
    eventually("the hook has run", || lab.project.join("done/mark").exists());
    assert!(!lab.project.join("refused.txt").exists());
    lab.assert_nobody_is_left();
}

#[test]
fn people_see_the_least_box_before_they_approve_a_hook() {
    let lab = Lab::with_default_boxes();
    lab.workspace_hook("before_agent", "guest", "true", "");
    let shown = lab.run(&["hook", "show", ID]).stdout;
    let line = "reads system folders, its own files, the project; writes a temporary folder of its own; no network \
                (by default; \"permissions\": {\"write\": [\".\"]} would let it write in the project)";
    assert!(shown.contains(line), "{shown}");
    if has_boxes(&lab) {
        let shown = lab.run(&["hook", "show", ID, "--json"]).answer();
        let wanted = json!({"read": [], "write": [], "net": false, "declared": false, "state": "on", "reason": null});
        assert_eq!((&shown["box"], &shown["permissions"]), (&wanted, &Value::Null));
    }
    let asked = lab.run(&["hook", "trust", ID]);
    assert!(asked.stdout.contains(line) || asked.stderr.contains(line), "{asked:?}");
    lab.user_hook("before_agent", "mine", "true", "");
    let shown = lab.run(&["hook", "show", "user:mine.json:before_agent:mine"]).stdout;
    assert!(shown.contains("box         none\n"), "{shown}");
}

#[test]
fn a_test_in_the_box_prints_what_the_hook_read_wrote_and_reached() {
    let script = "cat data; echo x > out/new; cat ~/secret; echo x > refused; exit 0";
    let lab = Lab::with_default_boxes();
    lab.write("home/secret", "secret");
    lab.write("project/data", "");
    fs::create_dir(lab.project.join("out")).unwrap();
    lab.workspace_hook("before_agent", "guest", script, r#", "permissions": {"write": ["out"]}"#);
    lab.approve(ID);
    if !has_boxes(&lab) {
        return;
    }
    let shown = lab.run(&["hook", "test", ID, "--box"]).stdout;
    let (project, home) = (lab.project.display(), lab.home.display());
    for line in [
        format!("read         {project}/data"),
        format!("written      {project}/out/new"),
        format!("read         refused: {home}/secret"),
        format!("written      refused: {project}/refused"),
        " files of the system".to_owned(),
        r#""permissions": {"read": ["~/secret"], "write": ["out", "."]} allows it"#.to_owned(),
    ] {
        assert!(shown.contains(&line), "{line} in {shown}");
    }
    let touched = lab.run(&["hook", "test", ID, "--box", "--json"]).answer()["touched"].clone();
    assert_eq!(touched["written"], json!([format!("{project}/out/new")]));
    assert_eq!(touched["refused"]["read"], json!([format!("{home}/secret")]));
    assert_eq!(touched["refused"]["reached"], json!([]));
}

#[test]
fn a_hook_without_a_box_can_be_tried_in_the_least_one() {
    let lab = Lab::with_default_boxes();
    lab.user_hook("before_agent", "guest", "echo x > out.txt; echo '{}'", "");
    let ran = lab.run(&["hook", "test", "guest", "--box"]);
    assert!(has_boxes(&lab) != lab.project.join("out.txt").exists(), "{ran:?}");
}

#[test]
fn only_the_users_file_decides_that_hooks_without_permissions_have_no_box() {
    let Some(lab) = project("echo x > out.txt", "") else { return };
    lab.write("project/.ollm/config.yaml", "hooks:\n  box: declared\n");
    let ran = lab.event(event());
    assert_eq!(ran.hook("guest")["status"], "failed");
    assert!(ran.stderr.contains("a project cannot open the box of its hooks"), "{ran:?}");
    assert_ne!(lab.run(&["--set", "hooks.box=declared", "hook", "list"]).code, 0);
    fs::remove_file(lab.project.join(".ollm/config.yaml")).unwrap();
    lab.write("home/.ollm/config.yaml", "hooks:\n  box: declared\n");
    assert_eq!(report(&lab)["status"], "ok");
    assert!(lab.project.join("out.txt").exists());
}

#[test]
fn a_server_of_a_project_is_in_a_box_by_its_permissions() {
    let lab = Lab::with_default_boxes();
    if !has_boxes(&lab) {
        return;
    }
    let start = |permissions: Option<Value>| {
        let mut server = json!({"command": "sh", "args": ["-c", "echo x > mark; echo x > allowed/mark; exit 3"]});
        if let Some(permissions) = permissions {
            server["permissions"] = permissions;
        }
        lab.write("project/.ollm/settings/mcp.json", json!({"mcpServers": {"s": server}}).to_string());
        let digest = lab.run(&["mcp", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
        assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest]).code, 0);
        lab.run(&["mcp", "start", "s"]).stderr
    };
    fs::create_dir(lab.project.join("allowed")).unwrap();
    let told = start(None);
    assert!(!lab.project.join("mark").exists() && !lab.project.join("allowed/mark").exists(), "{told}");
    assert!(told.contains(r#""permissions": {"write": ["allowed", "."]} allows it"#), "{told}");
    let told = start(Some(json!({"write": ["allowed"]})));
    assert!(!lab.project.join("mark").exists() && lab.project.join("allowed/mark").exists(), "{told}");
    lab.run(&["mcp", "untrust", "s"]);
    let asked = format!("{:?}", lab.run(&["mcp", "trust", "s"]));
    assert!(
        asked.contains("writes a temporary folder of its own, allowed, never what is protected; no network"),
        "{asked}"
    );
    // Where something in the project is protected, it needs more of the kernel.
    let told = start(Some(json!({"write": ["."], "net": true})));
    assert!(lab.project.join("mark").exists(), "{told}");
}

/// Runs a program where the kernel knows no Landlock.
pub(super) const WITHOUT_LANDLOCK: &str = r"
import ctypes, os, struct, sys
def op(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
program = op(0x20, 0, 0, 0) + op(0x15, 0, 1, 444) + op(6, 0, 0, 0x00050000 | 38) + op(6, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure): _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.addressof(buffer)))) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn without_landlock_a_hook_that_declares_nothing_runs_as_it_is_and_one_that_declares_permissions_fails() {
    let lab = Lab::with_default_boxes();
    lab.workspace_hook("before_agent", "guest", "echo x > out.txt", "");
    lab.workspace_hook("before_agent", "held", "echo x > held.txt", r#", "permissions": {"write": ["."]}"#);
    lab.approve(ID);
    lab.approve("workspace:held.json:before_agent:held");
    let old_kernel = |arguments: &[&str], input: &str| {
        let mut command = lab.program("python3");
        command.args(["-c", WITHOUT_LANDLOCK, crate::lab::OLLM]).args(arguments);
        finish(command, input.as_bytes())
    };
    let ran = old_kernel(&["hook", "run"], &event());
    assert_eq!(ran.hook("guest")["status"], "ok", "{ran:?}");
    assert!(lab.project.join("out.txt").exists() && !lab.project.join("held.txt").exists());
    let error = ran.hook("held")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("it cannot be held to its `permissions`: this kernel has no Landlock"), "{error}");
    let doctor = old_kernel(&["doctor"], "");
    let note = "hooks and servers of projects and extensions run without a box, and those that declare `permissions` fail: \
                this kernel has no Landlock";
    assert!(doctor.stdout.contains(note), "{doctor:?}");
    let weaker = "a command in the box can signal your other programs";
    assert!(!doctor.stdout.contains("on, by namespaces") || doctor.stdout.contains(weaker), "{doctor:?}");
    let shown = old_kernel(&["hook", "show", ID], "");
    assert!(shown.stdout.contains("not all of it is held here: this kernel has no Landlock"), "{shown:?}");
    let tried = old_kernel(&["hook", "test", ID, "--box"], "");
    assert_eq!(tried.code, 5, "{tried:?}");
}
