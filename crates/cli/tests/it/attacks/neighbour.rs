//! Files that others on the machine can write to, and approvals that are written at once.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use super::{CANARY, ID, canaries, guests, is_root, judged, lab, set_mode, standing};
use crate::lab::{Lab, shell_event};

/// The hook file, the script, and the folders of a hook.
const PLACES: [&str; 5] = [
    "project/.ollm/hooks/guest.json",
    "project/.ollm/hooks/guest.sh",
    "project/.ollm/hooks",
    "project/.ollm",
    "project",
];

#[test]
fn a09_what_others_can_write_to_does_not_run() {
    for place in PLACES {
        let lab = lab();
        lab.approve(ID);
        let path = lab.root.join(place);
        let mode = if path.is_dir() { 0o777 } else { 0o666 };
        set_mode(&path, mode);
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "unsafe", "{place}");
        let detail = ran.skip("guest")["detail"].as_str().unwrap().to_owned();
        let complaint = format!("{} is writable by others (mode {mode:04o})", path.display());
        assert!(detail.starts_with(&complaint), "{detail}");
        assert!(ran.stderr.contains(&complaint), "{}", ran.stderr);
        set_mode(&path, mode & 0o755);
        assert_eq!(standing(&lab), "ran", "{place}");
    }
}

#[test]
fn a09_what_others_can_write_to_cannot_be_approved() {
    for place in PLACES {
        let lab = lab();
        let digest = lab.digest(ID);
        let path = lab.root.join(place);
        set_mode(&path, if path.is_dir() { 0o777 } else { 0o666 });
        let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
        assert_eq!(ran.code, 5, "{place}: {ran:?}");
        assert!(ran.stderr.contains("is writable by others"), "{}", ran.stderr);
        assert_eq!(standing(&lab), "untrusted", "{place}");
    }
}

#[test]
fn a09_hooks_of_the_user_are_the_users_alone() {
    for place in ["home/.ollm/hooks/own.json", "home/.ollm/hooks/own.sh", "home/.ollm/hooks", "home/.ollm", "home"] {
        let lab = Lab::with_default_boxes();
        lab.user_hook("before_tool", "own", CANARY, "");
        let path = lab.root.join(place);
        set_mode(&path, if path.is_dir() { 0o777 } else { 0o666 });
        let ran = lab.event(shell_event("ls"));
        assert_eq!((canaries(&lab), &ran.skip("own")["reason"]), (0, &json!("unsafe")), "{place}");
    }
}

#[test]
fn a09_what_belongs_to_somebody_else_does_not_run() {
    for place in PLACES {
        let lab = lab();
        if !is_root(&lab) {
            return;
        }
        lab.approve(ID);
        let path = lab.root.join(place);
        chown(&path, Some(65534), None).unwrap();
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "unsafe", "{place}");
        let detail = ran.skip("guest")["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with(&format!("{} belongs to uid 65534", path.display())), "{detail}");
    }
}

/// Spoilt approvals approve nothing, stay unchanged, and count again when they are mended.
fn assert_useless(spoil: impl Fn(&Path), mend: impl Fn(&Path)) {
    let lab = lab();
    lab.approve(ID);
    let file = lab.home.join(".ollm/trusted-hooks.json");
    let good = fs::read(&file).unwrap();
    spoil(&file);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("trusted-hooks.json"), "{}", ran.stderr);
    assert_eq!(lab.run(&["hook", "untrust", ID]).code, 5);
    assert_eq!(fs::read(&file).unwrap(), good, "it is not overwritten");
    mend(&file);
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn a10_approvals_that_others_can_write_to_approve_nothing() {
    assert_useless(|file| set_mode(file, 0o666), |file| set_mode(file, 0o600));
}

#[test]
fn a10_approvals_of_somebody_else_approve_nothing() {
    if is_root(&Lab::new()) {
        let give = |uid| move |file: &Path| chown(file, Some(uid), None).unwrap();
        assert_useless(give(65534), give(0));
    }
}

#[test]
fn a11_a_hundred_approvals_at_once_are_all_kept() {
    let lab = Lab::new();
    let names: Vec<String> = (0..100).map(|number| format!("guest-{number}")).collect();
    for name in &names {
        lab.workspace_hook("before_tool", name, CANARY, &format!(r#", "id": "{name}""#));
    }
    assert_eq!(guests(&lab).len(), 100);
    let digests: Vec<String> = names.iter().map(|name| lab.digest(name)).collect();
    let file = lab.home.join(".ollm/trusted-hooks.json");
    thread::scope(|scope| {
        let approving: Vec<_> = names
            .iter()
            .zip(&digests)
            .map(|(name, digest)| scope.spawn(|| lab.run(&["hook", "trust", name, "--digest", digest])))
            .collect();
        while approving.iter().any(|thread| !thread.is_finished()) {
            if let Ok(text) = fs::read(&file) {
                serde_json::from_slice::<Value>(&text).unwrap();
            }
        }
        for thread in approving {
            let ran = thread.join().unwrap();
            assert_eq!(ran.code, 0, "{ran:?}");
        }
    });
    let ran = lab.event(shell_event("ls"));
    assert_eq!((canaries(&lab), &ran.answer()["skipped"]), (100, &json!([])));
}
