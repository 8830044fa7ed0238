//! What leaves a hook does not carry secrets.

use std::fs;
use std::process::Command;

use crate::lab::{FOREVER, Lab, OLLM, eventually, finish, lines, outcome, shell_event, start};

#[test]
fn d01_a_hook_that_prints_every_secret_it_was_given_tells_none() {
    let lab = Lab::new();
    let names: Vec<String> = (0..200).map(|number| format!("SERVICE_{number}_TOKEN")).collect();
    let passed = serde_json::to_string(&names).unwrap();
    lab.user_hook("before_tool", "hook", "env >&2; exit 1", &format!(r#", "passEnv": {passed}"#));
    let values: Vec<String> = (0..200).map(|number| format!("hidden-{number:03}-5f2c9a7e")).collect();
    let mut command = lab.ollm(&["hook", "run"]);
    command.envs(names.iter().zip(&values));
    let ran = finish(command, shell_event("ls").as_bytes());
    assert_eq!(ran.hook("hook")["status"], "failed");
    let told = format!("{}{}", ran.stdout, ran.stderr);
    let leaked: Vec<&String> = values.iter().filter(|value| told.contains(value.as_str())).collect();
    assert_eq!(leaked, Vec::<&String>::new());
    assert!(told.contains("SERVICE_"), "it was printed: {told}");
}

#[test]
fn d02_a_secret_in_pieces_or_in_other_clothes_is_known() {
    const SECRET: &str = "pa\"ss/4f9d2c7b1e8a6053";
    let parts = r#"first="${SERVICE_TOKEN%9d2c*}"; rest="${SERVICE_TOKEN#"$first"}""#;
    for script in [
        format!("{parts}; printf '%s' \"$first\" >&2; sleep 0.05; printf '%s' \"$rest\" >&2; exit 1"),
        format!("{parts}; printf '%s' \"$first\"; sleep 0.05; printf '%s' \"$rest\"; exit 1"),
        "printf '%s' \"$SERVICE_TOKEN\" | base64 >&2; exit 1".to_owned(),
        "printf 'x%s' \"$SERVICE_TOKEN\" | base64 >&2; exit 1".to_owned(),
        "printf '%s' \"$SERVICE_TOKEN\" | sed 's/\"/\\\\\"/' >&2; exit 1".to_owned(),
        "printf '%s' \"$SERVICE_TOKEN\" | sed 's/\"/%22/; s,/,%2F,' >&2; exit 1".to_owned(),
    ] {
        let lab = Lab::new();
        lab.user_hook("before_tool", "hook", &script, r#", "passEnv": ["SERVICE_TOKEN"]"#);
        let ran = finish(lab.set("SERVICE_TOKEN", SECRET).ollm(&["hook", "run"]), shell_event("ls").as_bytes());
        let told = format!("{}{}", ran.stdout, ran.stderr);
        let forms = ["4f9d2c7b1e8a6053", "cGEic3MvNGY5ZDJjN2IxZThhNjA1Mw", "eHBhInNzLzRmOWQyYzdiMWU4YTYwNT"];
        let leaked: Vec<&&str> = forms.iter().filter(|form| told.contains(**form)).collect();
        assert_eq!(leaked, Vec::<&&str>::new(), "{script}: {told}");
    }
}

#[test]
fn d03_nobody_sees_the_event_or_a_secret_in_the_list_of_processes() {
    let lab = Lab::new();
    let fifo = lab.fifo("fifo");
    lab.user_hook(
        "before_tool",
        "hook",
        &format!("echo up > '{}'; {FOREVER}", fifo.display()),
        r#", "timeout": "30s""#,
    );
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("SERVICE_TOKEN", "hidden-5f2c9a7e");
    let mut child = start(command);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, shell_event("the-payload").as_bytes()).unwrap();
    assert_eq!(lines(&fifo, 1), ["up"]);
    let ours = child.id().to_string();
    let seen = || {
        let mut seen = 0;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
            let own = |file: &str| String::from_utf8_lossy(&read(file)).into_owned();
            let (arguments, environment) = (own("cmdline"), own("environ"));
            if !environment.contains(&lab.root.display().to_string()) {
                continue;
            }
            seen += 1;
            assert!(!arguments.contains("the-payload") && !environment.contains("the-payload"), "{arguments}");
            // The guard over our children was started as we were.
            let is_ours = arguments.starts_with(OLLM);
            assert!(!arguments.contains("hidden-5f2c9a7e"), "{arguments}");
            assert!(is_ours || !environment.contains("hidden-5f2c9a7e"), "{arguments}");
        }
        seen
    };
    // Our own process shows its environment to root alone.
    eventually("the hook and what it started are seen", || seen() >= 2);
    let arguments = fs::read_to_string(format!("/proc/{ours}/cmdline")).unwrap();
    assert!(arguments.starts_with(OLLM) && !arguments.contains("the-payload"), "{arguments}");
    let killed = Command::new("kill").args(["-s", "TERM", &ours]).status().unwrap();
    assert!(killed.success());
    outcome(child);
    lab.assert_nobody_is_left();
}
