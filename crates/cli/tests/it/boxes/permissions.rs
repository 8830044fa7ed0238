//! Hooks that declare `permissions`, and what the kernel makes of that.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::defaults::has_boxes;
use crate::lab::Lab;

/// What a hook with these permissions, tried in each of these ways, could do.
fn tried(permissions: &str, ways: &[&str]) -> Option<Vec<bool>> {
    let lab = Lab::new();
    lab.write("home/secret", "secret");
    lab.write("project/data", "data");
    fs::create_dir_all(lab.root.join("outside")).unwrap();
    let steps: Vec<String> = ways
        .iter()
        .map(|way| format!("if {{ {way}; }} > /dev/null 2>&1; then r=${{r}}1; else r=${{r}}0; fi\n"))
        .collect();
    let script = steps.concat();
    let script = format!("r=\n{script}echo \"{{\\\"continue\\\": true, \\\"data\\\": {{\\\"r\\\": \\\"$r\\\"}}}}\"\n");
    lab.user_hook("before_agent", "held", &script, &format!(r#", "permissions": {permissions}"#));
    let ran = lab.event(json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string());
    let hook = ran.hook("held");
    if hook["error"].as_str().is_some_and(|error| error.contains("Landlock")) {
        return None;
    }
    let answer = ran.answer();
    let told = answer["data"]["r"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    Some(told.chars().map(|one| one == '1').collect())
}

const WAYS: [&str; 7] = [
    "cat data",
    "echo x > data",
    "cat ~/secret",
    "echo x > ../outside/x",
    "echo x > \"$TMPDIR/x\" && cat \"$TMPDIR/x\"",
    "perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 1'",
    "ls / /usr && date",
];

#[test]
fn a_hook_without_any_permission_reads_the_project_and_writes_a_temporary_folder_of_its_own() {
    let Some(could) = tried("{}", &WAYS) else { return };
    // The root itself cannot be listed.
    assert_eq!(could, [true, false, false, false, true, false, false]);
}

#[test]
fn a_hook_can_do_what_its_permissions_name_and_no_more() {
    let permissions = r#"{"read": ["~/secret"], "write": ["../outside"], "net": true}"#;
    let Some(could) = tried(permissions, &WAYS) else { return };
    assert_eq!(could, [true, false, true, true, true, true, false]);
}

#[test]
fn modes_are_changed_only_where_a_hook_may_write() {
    let ways = [
        "chmod 777 ~/secret",
        "chmod 777 data",
        "python3 -c 'import os; os.fchmod(os.open(\"data\", os.O_RDONLY), 0o777)'",
        "chmod 777 /proc/self/cwd/data",
        "touch \"$TMPDIR/x\" && chmod 741 \"$TMPDIR/x\" && test \"$(stat -c %a \"$TMPDIR/x\")\" = 741",
        "cp -p data \"$TMPDIR/y\"",
        "chmod 777 no-such-file",
    ];
    let Some(could) = tried("{}", &ways) else { return };
    assert_eq!(could, [false, false, false, false, true, true, false]);
    let Some(could) = tried(r#"{"write": ["."]}"#, &ways) else { return };
    assert_eq!(could, [false, true, true, true, true, true, false]);
}

#[test]
fn people_see_the_box_of_a_hook_before_they_approve_it() {
    let lab = Lab::new();
    lab.user_hook("before_agent", "held", "echo '{}'", r#", "permissions": {"write": ["out"], "net": true}"#);
    let id = "user:held.json:before_agent:held";
    let shown = lab.run(&["hook", "show", id]).stdout;
    let line = "reads system folders, its own files, the project; writes a temporary folder of its own, out, never what is protected; the network";
    assert!(shown.contains(line), "{shown}");
    let permissions = json!({"read": [], "write": ["out"], "net": true});
    assert_eq!(lab.run(&["hook", "show", id, "--json"]).answer()["permissions"], permissions);
}

#[test]
fn a_path_of_permissions_that_a_link_leads_out_of_the_project_is_refused_and_said() {
    let lab = Lab::with_default_boxes();
    lab.write("home/.ssh/id_rsa", "secret");
    for folder in ["build", "ref"] {
        fs::create_dir(lab.project.join(folder)).unwrap();
    }
    let script = "echo x > build/pwned; cat ref/id_rsa; exit 1";
    let more = r#", "permissions": {"write": ["build"], "read": ["ref"]}"#;
    lab.workspace_hook("before_agent", "guest", script, more);
    lab.approve("workspace:guest.json:before_agent:guest");
    if !has_boxes(&lab) {
        return;
    }
    let report = || lab.event(json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string()).hook("guest");
    report();
    assert!(lab.project.join("build/pwned").exists());
    fs::remove_dir_all(lab.project.join("build")).unwrap();
    for (link, target, leads) in [("build", "../", &lab.root), ("build", ".", &lab.project)] {
        symlink(target, lab.project.join(link)).unwrap();
        let failed = report();
        let error = failed["error"].as_str().unwrap();
        let wanted = format!("the path `build` of its permissions leads to {} by a link", leads.display());
        assert!(error.contains(&wanted), "{error}");
        assert!(!lab.root.join("pwned").exists() && !lab.project.join("pwned").exists(), "{failed}");
        fs::remove_file(lab.project.join(link)).unwrap();
    }
    fs::create_dir(lab.project.join("build")).unwrap();
    fs::remove_dir(lab.project.join("ref")).unwrap();
    symlink(lab.home.join(".ssh"), lab.project.join("ref")).unwrap();
    let failed = report().to_string();
    assert!(failed.contains("the path `ref` of its permissions leads to") && !failed.contains("secret"), "{failed}");
}

#[test]
fn a_link_to_what_is_protected_in_the_project_opens_none_of_it() {
    let lab = Lab::with_default_boxes();
    lab.write("project/.git/hooks/pre-commit", "mine");
    symlink(".git/hooks", lab.project.join("build")).unwrap();
    let more = r#", "permissions": {"write": ["build"]}"#;
    lab.workspace_hook("before_agent", "guest", "echo evil > build/pre-commit; echo evil > build/new; exit 1", more);
    lab.approve("workspace:guest.json:before_agent:guest");
    if !has_boxes(&lab) {
        return;
    }
    let ran = lab.event(json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string());
    assert_eq!(fs::read_to_string(lab.project.join(".git/hooks/pre-commit")).unwrap(), "mine", "{ran:?}");
    assert!(!lab.project.join(".git/hooks/new").exists(), "{ran:?}");
}

#[test]
fn no_line_is_offered_that_opens_the_home_keys_or_what_is_protected() {
    let lab = Lab::with_default_boxes();
    lab.write("project/.git/hooks/pre-commit", "mine");
    lab.write("home/.ssh/id_rsa", "secret");
    let script = "echo x > ~/new; echo evil > .git/hooks/pre-commit; cat ~/.ssh/id_rsa; exit 1";
    lab.workspace_hook("before_agent", "guest", script, "");
    lab.approve("workspace:guest.json:before_agent:guest");
    if !has_boxes(&lab) {
        return;
    }
    let error = lab.event(json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string()).hook("guest");
    let error = error["error"].as_str().unwrap();
    for refused in ["home/new", "pre-commit, which is protected", "id_rsa"] {
        assert!(error.contains(refused), "{refused}: {error}");
    }
    assert!(!error.contains("allows it"), "{error}");
}

#[test]
fn a_hook_in_a_box_has_no_privileges_of_root() {
    let lab = Lab::with_default_boxes();
    lab.workspace_hook("before_agent", "guest", "grep Cap[PE] /proc/self/status | tr '\\n' ' ' >&2; exit 1", "");
    lab.approve("workspace:guest.json:before_agent:guest");
    if !has_boxes(&lab) {
        return;
    }
    let report =
        lab.event(json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string()).hook("guest").to_string();
    for name in ["CapPrm", "CapEff"] {
        assert!(report.contains(&format!("{name}:\\t0000000000000000")), "{report}");
    }
}
