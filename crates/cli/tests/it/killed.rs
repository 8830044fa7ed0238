//! A kill at any moment of any change of an extension. Afterwards its state is one of the two it could be, and is told.

use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::lab::{Lab, Ran, shell_event, start};

/// Longer than a command takes on a machine that has nothing else to do.
const LONGEST: Duration = Duration::from_millis(60);

/// Writes the extension `NAME` with one hook and one sensitive setting.
fn extension(lab: &Lab, name: &str) {
    let manifest = json!({
        "name": name, "version": "1.0.0", "description": "d",
        "hooks": {"before_tool": [{"name": name, "command": "sh", "args": ["run.sh"]}]},
        "settings": [
            {"name": "pin", "description": "d", "sensitive": true},
            {"name": "level", "description": "d", "default": "low", "enum": ["low", "high"]},
        ],
    });
    lab.write(&format!("home/.ollm/extensions/{name}/manifest.json"), manifest.to_string());
    lab.write(&format!("home/.ollm/extensions/{name}/run.sh"), "printf '{\"continue\": true}'\n");
}

/// Runs a command, and kills it after a while.
fn killed_after(delay: Duration, lab: &Lab, arguments: &[&str]) {
    let mut child = start(lab.ollm(arguments));
    drop(child.stdin.take());
    let deadline = Instant::now() + delay;
    while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
}

/// The list, which must be whole and know of no trouble.
fn listed(lab: &Lab) -> Vec<Value> {
    let ran = lab.run(&["ext", "list", "--json"]);
    calm(&ran);
    ran.answer().as_array().unwrap().clone()
}

/// Nothing is broken, and nothing had to be started afresh.
fn calm(ran: &Ran) {
    let odd = ["cannot be relied", "repair", "start afresh", "nothing is switched", "no secret", "not read"];
    assert!(ran.code == 0 && !odd.iter().any(|word| ran.stderr.contains(word)), "{ran:?}");
}

#[test]
fn whatever_is_killed_leaves_a_valid_state_that_is_told() {
    let lab = Lab::new();
    extension(&lab, "a");
    extension(&lab, "b");
    let digest = listed(&lab)[0]["digest"].as_str().unwrap().to_owned();
    let commands: Vec<Vec<&str>> = vec![
        vec!["ext", "enable", "a"],
        vec!["ext", "disable", "a"],
        vec!["ext", "set", "a", "pin=1234", "level=high"],
        vec!["ext", "set", "a", "--unset", "pin", "--unset", "level"],
        vec!["ext", "trust", "a", "--digest", &digest],
        vec!["ext", "reload", "a"],
    ];
    let doing = (0..commands.len(), 0..u64::try_from(LONGEST.as_micros()).unwrap());
    let config = Config { cases: 60, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&doing, |(which, micros)| {
        killed_after(Duration::from_micros(micros), &lab, &commands[which]);
        let entries = listed(&lab);
        prop_assert_eq!(entries.len(), 2);
        // The other one is not touched.
        prop_assert_eq!((&entries[1]["enabled"], &entries[1]["trust"]), (&json!(true), &json!("untrusted")));
        let info = lab.run(&["ext", "info", "a", "--json"]);
        calm(&info);
        let info = info.answer();
        let values: Vec<&Value> = info["settingDetails"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
        prop_assert!([&Value::Null, &json!("(hidden)")].contains(&values[0]), "{}", info);
        prop_assert!([&json!("low"), &json!("high")].contains(&values[1]), "{}", info);
        // What the list says is what happens: on and approved, it runs.
        let ran = lab.event(shell_event("ls"));
        let runs = entries[0]["enabled"] == true && entries[0]["trust"] == "trusted";
        prop_assert_eq!(ran.hook_count(), usize::from(runs), "{:?} {:?}", entries[0], ran);
        Ok(())
    });
    outcome.unwrap();
    // Nothing half written is left lying about.
    for command in &commands {
        assert_eq!(lab.run(command).code, 0, "{command:?}");
    }
    let config = fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap_or_default();
    assert!(!config.contains("1234"), "{config}");
}

#[test]
fn an_uninstall_that_is_killed_leaves_nothing_that_runs_and_can_be_finished() {
    let config = Config { cases: 20, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(0..u64::try_from(LONGEST.as_micros()).unwrap()), |micros| {
        let lab = Lab::new();
        extension(&lab, "a");
        // Enough files that removing them takes a while.
        for file in 0..200 {
            lab.write(&format!("home/.ollm/extensions/a/data/{file}"), "x");
        }
        let digest = listed(&lab)[0]["digest"].as_str().unwrap().to_owned();
        calm(&lab.run(&["ext", "trust", "a", "--digest", &digest]));
        killed_after(Duration::from_micros(micros), &lab, &["ext", "uninstall", "a", "--yes"]);
        let left = listed(&lab);
        let whole = left.first().is_some_and(|one| one["digest"] == digest.as_str() && one["trust"] == "trusted");
        let ran = lab.event(shell_event("ls"));
        prop_assert_eq!(ran.hook_count(), usize::from(whole), "{:?} {:?}", left, ran);
        if !left.is_empty() {
            calm(&lab.run(&["ext", "uninstall", "a", "--yes"]));
        }
        prop_assert!(listed(&lab).is_empty());
        Ok(())
    });
    outcome.unwrap();
}
