//! Everyday work where a box leaves little open: the strict policy, and a kernel without namespaces.

use std::fs;

use super::{boxed, guarded, is_whole, lasting_folder, partial_box, without_namespaces};

/// What every build does.
const WORK: &str = "echo x > /dev/null; mktemp > /dev/null; echo x > ~/.cache/file; git init -q made
    git -C made -c user.name=a -c user.email=b commit -q --allow-empty -m x
    python3 -c 'import subprocess; subprocess.run([\"true\"], stdout=subprocess.DEVNULL)'
    python3 -c 'import pty; pty.spawn([\"true\"])'
    node -e 'require(\"child_process\").execSync(\"true\", {stdio: \"ignore\"})'
    printf 'int main(void){return 0;}' > a.c; cc -o a a.c; echo works";

#[test]
fn devices_caches_and_temporary_files_can_be_written_in_every_box() {
    for strict in [&[] as &[&str], &["--policy", "strict"]] {
        let lab = guarded();
        // The lab is in the folder of temporary files; it is no home like others.
        lab.write("home/.config/file", "");
        let temporary = lab.project.display().to_string();
        let lab = lab.set("TMPDIR", &temporary);
        let script = format!("set -e\n{WORK}");
        if is_whole(&lab) {
            let ran =
                lab.run(&[&["box"], strict, &["--", "sh", "-c", &format!("mkdir -p ~/.cache; {script}")]].concat());
            assert_eq!((ran.stdout.as_str(), ran.code), ("works\n", 0), "{strict:?}: {ran:?}");
            fs::remove_dir_all(lab.project.join("made")).unwrap();
        }
        fs::remove_dir_all(lab.home.join(".cache")).unwrap();
        let Some(ran) = partial_box(&lab, strict, &script) else { return };
        assert_eq!((ran.stdout.as_str(), ran.code), ("works\n", 0), "partial {strict:?}: {ran:?}");
    }
}

#[test]
fn the_strict_policy_keeps_secrets_from_being_read_without_namespaces_too() {
    let lab = guarded();
    for (name, text) in [("home/.aws/credentials", "hidden"), ("home/notes", "open"), ("project/file", "open")] {
        lab.write(name, text);
    }
    let script = "cat ~/.aws/credentials ~/.ssh/authorized_keys; cat ~/notes file";
    let Some(ran) = partial_box(&lab, &["--policy", "strict"], script) else { return };
    assert_eq!(ran.stdout, "openopen", "{ran:?}");
}

#[test]
fn npm_installs_in_a_home_without_caches_under_the_strict_policy() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    // The home of a lab lies in a temporary folder, which can be written anyway.
    let home = tempfile::Builder::new().prefix("ollm-home-").tempdir_in(lasting_folder()).unwrap();
    let lab = lab.set("HOME", home.path().to_str().unwrap());
    lab.write("project/package.json", r#"{"name": "tiny", "version": "1.0.0"}"#);
    lab.write("project/dep/package.json", r#"{"name": "dep", "version": "1.0.0"}"#);
    let install = "npm install --offline --no-audit --no-fund --silent ./dep && ls node_modules && ls -d ~/.npm/*";
    let ran = lab.run(&["box", "--policy", "strict", "--", "sh", "-c", install]);
    assert!(ran.stdout.starts_with("dep\n") && ran.code == 0, "{ran:?}");
}

#[test]
fn a_hidden_socket_does_not_close_the_folder_that_it_is_in() {
    let lab = guarded();
    let temporary = lab.root.join("temporary");
    fs::create_dir_all(temporary.join("screens")).unwrap();
    let lab = lab.set("TMPDIR", &temporary.display().to_string());
    let Some(ran) = without_namespaces(&lab, "mktemp") else { return };
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(boxed(&lab, &["mktemp"]).code, 0);
}
