//! Hooks that declare `permissions`, and what the kernel makes of that.

use std::fs;

use serde_json::json;

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
