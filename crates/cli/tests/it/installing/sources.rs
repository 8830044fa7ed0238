//! What can be installed, and what of it runs.

use super::*;
use crate::lab::pty::typed;

#[test]
fn a_fresh_machine_searches_and_installs_without_a_network() {
    let lab = Lab::new();
    let found = lab.run(&["ext", "search", "guard"]);
    assert_eq!(found.code, 0);
    insta::assert_snapshot!(lab.screen(&found));
    let ran = installed(&lab, &["git-guard"]);
    insta::assert_snapshot!(lab.screen(&ran));
    let digest = entry(&lab)["digest"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["ext", "trust", "git-guard", "--digest", &digest]).code, 0);
    assert_eq!(lab.run(&["ext", "test", "git-guard"]).code, 0);
    assert_eq!(lab.event(shell_event("git push --force")).code, 2);
    assert_eq!(lab.run(&["ext", "search", "no-such-thing", "--yes"]).code, 1);
    let nothing = lab.run(&["ext", "search", "no-such-thing", "--json"]);
    assert_eq!((nothing.code, nothing.answer()), (1, json!([])));
}

#[test]
fn nothing_of_what_is_installed_runs_before_it_is_approved() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    let ran = installed(&lab, &[folder.to_str().unwrap(), "--json"]);
    let told = changed(&ran);
    assert_eq!(
        (&told["name"], &told["version"], &told["trust"], &told["enabled"], &told["changed"]),
        (&json!("guard"), &json!("1.0.0"), &json!("untrusted"), &json!(true), &json!(true))
    );
    let listed = entry(&lab);
    assert_eq!((&listed["source"], &listed["digest"]), (&json!("downloaded"), &told["digest"]));
    let event = lab.event(shell_event("ls"));
    assert_eq!(event.skip("guard")["reason"], "untrusted");
    approve(&lab);
    let event = lab.event(shell_event("ls"));
    assert_eq!(event.hook("guard")["source"], "downloaded");
    assert_eq!(said(&lab).as_deref(), Some("1.0.0"));
    // Once more is no change, and the approval stays.
    let again = lab.run(&["ext", "install", folder.to_str().unwrap(), "--yes", "--json"]);
    assert_eq!((again.code, &changed(&again)["changed"]), (0, &json!(false)));
    assert_eq!(entry(&lab)["trust"], "trusted");
}

#[test]
fn archives_of_both_kinds_are_installed_also_with_a_folder_around_everything() {
    let lab = Lab::new();
    package(&lab, "src/guard-1.0.0", "1.0.0", &json!({}));
    let code = "import shutil; [shutil.make_archive('a', kind, 'src') for kind in ('gztar', 'zip')]";
    python(&lab, code, &[]);
    for archive in ["a.tar.gz", "a.zip"] {
        let path = lab.root.join(archive);
        installed(&lab, &[path.to_str().unwrap()]);
        assert!(lab.home.join(".ollm/extensions/guard/hooks/run.sh").exists());
        assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    }
}

#[test]
fn d11_archives_that_attack_leave_nothing_behind() {
    let lab = Lab::new();
    package(&lab, "src", "1.0.0", &json!({}));
    let code = r#"
import io, sys, tarfile
kind, name = sys.argv[1], sys.argv[2]
archive = tarfile.open(name, "w:gz")
for path in ["manifest.json", "hooks/run.sh"]:
    archive.add("src/" + path, path)
entry = tarfile.TarInfo({"up": "../../../evil", "root": "/tmp/ollm-evil", "case": "MANIFEST.json",
    "control": "a\x1b[2Jb", "record": ".ollm-install.json",
    "folder": ".ollm-install.json/x"}.get(kind, "evil"))
if kind == "link": entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
if kind == "hard": entry.type, entry.linkname = tarfile.LNKTYPE, "../../etc/passwd"
if kind == "device": entry.type = tarfile.CHRTYPE
if kind == "setuid": entry.mode = 0o4755
if kind == "bomb":
    entry.size = 300 << 20
    class Zeros(io.RawIOBase):
        def read(self, count=-1): return b"\0" * count
    archive.addfile(entry, Zeros())
elif kind == "many":
    for number in range(100000): archive.addfile(tarfile.TarInfo("f%d" % number))
else:
    archive.addfile(entry, io.BytesIO())
archive.close()
"#;
    let kinds =
        ["up", "root", "case", "control", "record", "folder", "link", "hard", "device", "setuid", "bomb", "many"];
    for kind in kinds {
        python(&lab, code, &[kind, "bad.tar.gz"]);
        let path = lab.root.join("bad.tar.gz");
        refused(&lab, &["ext", "install", path.to_str().unwrap(), "--yes"], 3, "nothing was installed");
    }
    assert!(!Path::new("/tmp/ollm-evil").exists() && !lab.home.join("evil").exists());
    fs::write(lab.root.join("bad.zip"), "no archive").unwrap();
    refused(&lab, &["ext", "install", lab.root.join("bad.zip").to_str().unwrap(), "--yes"], 3, "neither");
}

#[test]
fn what_is_no_extension_is_refused_with_the_place_of_the_mistake() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "one", &json!({}));
    let source = folder.to_str().unwrap();
    refused(&lab, &["ext", "install", source, "--yes"], 3, "manifest.json:1:");
    fs::remove_file(folder.join("manifest.json")).unwrap();
    refused(&lab, &["ext", "install", source, "--yes"], 3, "no manifest.json");
    for (bad, word) in
        [("--upload-pack=x", "unexpected"), ("ext::sh -c x", "could run programs"), ("./none", "does not exist")]
    {
        refused(&lab, &["ext", "install", bad, "--yes"], 64, word);
    }
    refused(&lab, &["ext", "install", "git-gaurd", "--yes"], 64, "did you mean `git-guard`?");
    // What a person put there themselves is not ours to replace.
    package(&lab, "src", "1.0.0", &json!({}));
    package(&lab, "home/.ollm/extensions/guard", "0.1.0", &json!({}));
    refused(&lab, &["ext", "install", source, "--yes"], 64, "is there already");
}

#[test]
fn without_a_terminal_nothing_is_installed_unless_it_was_accepted() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    let source = folder.to_str().unwrap();
    refused(&lab, &["ext", "install", source], 64, "--yes");
    let dry = lab.run(&["ext", "install", source, "--dry-run", "--json"]);
    assert_eq!((dry.code, &changed(&dry)["changed"]), (0, &json!(false)));
    assert!(extensions(&lab).is_empty());
    // The digest is known beforehand, so that a script can approve what a person looked at.
    let told = changed(&installed(&lab, &[source, "--json"]));
    assert_eq!(told["digest"], changed(&dry)["digest"]);
}

#[test]
fn on_a_terminal_a_person_sees_installs_and_approves_in_one_command() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    let source = folder.to_str().unwrap();
    let no = typed(&lab, &[r"[y/N] =>n\r"], &["ext", "install", source]);
    assert!(no.code == 64 && extensions(&lab).is_empty(), "{no:?}");
    // Without an approval the extension is installed all the same.
    let yes = typed(&lab, &[r"[y/N] =>y\r", r"[y/N] =>n\r"], &["ext", "install", source]);
    assert_eq!((yes.code, entry(&lab)["trust"].as_str()), (0, Some("untrusted")), "{yes:?}");
    package(&lab, "src", "1.1.0", &json!({}));
    let update = typed(&lab, &[r"[y/N] =>y\r", r"[y/N] =>y\r"], &["ext", "update"]);
    assert_eq!((update.code, said(&lab).as_deref()), (0, Some("1.1.0")), "{update:?}");
    assert!(update.stdout.contains("printf"), "the script is shown: {update:?}");
}

#[test]
fn an_installed_extension_is_on_whatever_new_ones_are() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "extensions: {autoEnable: false}\n");
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    installed(&lab, &[folder.to_str().unwrap()]);
    assert_eq!(entry(&lab)["enabled"], true);
}

#[test]
fn whoever_uninstalls_is_asked_about_secrets() {
    let settings = json!([{"name": "token", "description": "d", "sensitive": true}]);
    for (answer, kept) in [("n", true), ("y", false)] {
        let lab = Lab::new().set("OLLM_KEYRING", "off");
        let folder = package(&lab, "src", "1.0.0", &json!({"settings": settings}));
        installed(&lab, &[folder.to_str().unwrap()]);
        assert_eq!(lab.run(&["ext", "set", "guard", "token=hush-hush"]).code, 0);
        let second = format!("token)? [y/N] =>{answer}\\r");
        let ran = typed(&lab, &[r"[y/N] =>y\r", &second], &["ext", "uninstall", "guard"]);
        assert_eq!((ran.code, extensions(&lab).len()), (0, 0), "{ran:?}");
        let secrets = fs::read_to_string(lab.home.join(".ollm/state/secrets.json")).unwrap_or_default();
        assert_eq!(secrets.contains("hush-hush"), kept, "{answer}: {secrets}");
    }
}

#[test]
fn what_is_installed_while_no_extension_is_loaded_is_there_afterwards() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    let source = folder.to_str().unwrap();
    lab.write("home/.ollm/config.yaml", "extensions: {enabled: false}\n");
    let ran = installed(&lab, &[source]);
    assert!(ran.stderr.contains("extensions.enabled is false"), "{ran:?}");
    lab.write("home/.ollm/config.yaml", "");
    assert_eq!(version(&lab), "1.0.0");
    lab.write("home/.ollm/config.yaml", "extensions: {directories: [/elsewhere]}\n");
    refused(&lab, &["ext", "install", "git-guard", "--yes"], 3, "add it to extensions.directories");
}

#[test]
fn what_is_installed_is_closed_to_others_whatever_the_process_leaves_open() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({}));
    let mut command = lab.program("/bin/sh");
    let line = "umask 0; exec \"$0\" \"$@\"";
    command.args(["-c", line, crate::lab::OLLM, "ext", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(finish(command, b"").code, 0);
    approve(&lab);
    assert_eq!(said(&lab).as_deref(), Some("1.0.0"));
}

/// An MCP server with one tool, which says a word on standard error.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        print("guard-log", file=sys.stderr, flush=True)
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "guard_tool", "description": "d", "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

#[test]
fn nothing_is_remembered_of_servers_and_hooks_that_were_uninstalled_in_whatever_version() {
    let lab = Lab::new();
    let servers = json!({"mcpServers": {
        "guard-server": {"command": "python3", "args": ["./server.py"]},
        "guard-web": {"url": "http://127.0.0.1:1/guard"},
    }});
    for version in ["1.0.0", "2.0.0"] {
        lab.write("src/server.py", format!("# {version}{SERVER}"));
        let folder = package(&lab, "src", version, &servers);
        installed(&lab, &[folder.to_str().unwrap()]);
        approve(&lab);
        let tools = lab.run(&["mcp", "tools", "guard-server"]);
        assert!(tools.stdout.contains("guard_tool"), "{tools:?}");
        lab.run(&["mcp", "start"]);
    }
    let about = |lab: &Lab| -> Vec<String> {
        let all = files(&lab.home.join(".ollm/state")).into_iter();
        let speaks = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("guard");
        all.filter(|(path, bytes)| speaks(bytes) || path.to_string_lossy().contains("guard"))
            .map(|(path, _)| path.display().to_string())
            .collect()
    };
    crate::kept_files::quiet();
    lab.event(shell_event("ls"));
    let known = about(&lab);
    for file in ["mcp-tools.json", "mcp-failures.json", "mcp-reviewed-tools.json", "mcp-logs", "snapshots"] {
        assert!(known.iter().any(|path| path.starts_with(file)), "{file}: {known:?}");
    }
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    assert_eq!(about(&lab), Vec::<String>::new());
}

#[test]
fn uninstalling_leaves_nothing() {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    let settings = json!([
        {"name": "token", "description": "d", "sensitive": true},
        {"name": "level", "description": "d"},
    ]);
    let folder = package(&lab, "src", "1.0.0", &json!({"settings": settings}));
    let source = folder.to_str().unwrap().to_owned();
    let before = files(&lab.home);
    installed(&lab, &[&source]);
    package(&lab, "src", "2.0.0", &json!({"settings": settings}));
    installed(&lab, &[&source]);
    approve(&lab);
    for command in [
        &["ext", "set", "guard", "token=hush-hush", "level=high"][..],
        &["ext", "pin", "guard"],
        &["hook", "disable", "user:guard:before_tool:guard"],
        &["ext", "disable", "guard"],
        &["ext", "uninstall", "guard", "--yes"],
    ] {
        let ran = lab.run(command);
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    }
    // The log tells what was done.
    let left: BTreeMap<PathBuf, Vec<u8>> =
        files(&lab.home).into_iter().filter(|(path, _)| !path.starts_with(".ollm/log")).collect();
    assert_eq!(left, before);
    for folder in ["extensions", "state", "store"] {
        assert!(!lab.home.join(".ollm").join(folder).exists(), "{folder}");
    }
}

#[test]
fn what_is_set_for_others_and_comments_of_a_person_stay_when_an_extension_goes() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({"settings": [{"name": "level", "description": "d"}]}));
    for kept in [
        "hooks:\n  timeout: 5000\n",
        "extensions:\n  autoEnable: true\n",
        "extensions:\n  # mine\n  settings:\n    other:\n      x: 1\n",
    ] {
        let config = lab.write("home/.ollm/config.yaml", kept);
        let kept = fs::read_to_string(&config).unwrap();
        installed(&lab, &[folder.to_str().unwrap()]);
        assert_eq!(lab.run(&["ext", "set", "guard", "level=high"]).code, 0);
        assert_ne!(fs::read_to_string(&config).unwrap(), kept);
        assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
        assert_eq!(fs::read_to_string(&config).unwrap(), kept);
    }
}
