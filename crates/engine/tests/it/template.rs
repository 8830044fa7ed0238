//! Values of events in the arguments and shell lines of hooks.

use std::fs;

use ollm_engine::Status;
use ollm_protocol::hook::action::ShellSpec;
use ollm_protocol::{ActionSpec, Event, EventKind, Flow, HookSpec};
use serde_json::json;

use crate::support::{World, cases, command, ends, event, everywhere, sh, spoken};

/// Values that mean something to some program, none of which may be obeyed.
const HOSTILE: [&str; 9] = [
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "a b\nc",
    "--",
    "-n",
    "%PATH%!x!",
    "*",
];

fn with_path(value: &str) -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "write".into()), ("args", json!({"path": value}))])
}

fn shell(line: &str) -> HookSpec {
    let action = ActionSpec::Shell(ShellSpec { script: line.to_owned() });
    spoken("agent", HookSpec { action, ..sh("x", "") })
}

#[test]
fn b15_a_value_arrives_as_it_is_in_its_one_argument() {
    let world = World::new();
    for value in HOSTILE {
        let script = r#"printf '%s' "$#:$1" >got"#;
        let spec = command("x", "/bin/sh", &["-c", script, "sh", "<{{tool_args.file_path}}>", "end"]);
        world.run(spoken("agent", spec), &with_path(value));
        assert_eq!(fs::read_to_string(world.path("got")).unwrap(), format!("2:<{value}>"));
    }
    assert!(!world.path("pwned").exists());
}

#[test]
fn b15_a_value_never_becomes_shell_text() {
    let world = World::new();
    for value in HOSTILE {
        for line in [r#"printf '%s' "{{tool_args.path}}" >got"#, "printf '%s' '{{tool_args.path}}' >got"] {
            let report = world.run(shell(line), &with_path(value));
            assert_eq!(report.status, Status::Ok, "{report:?}");
            assert_eq!(fs::read_to_string(world.path("got")).unwrap(), value, "{line}");
        }
    }
    assert!(!world.path("pwned").exists());
}

#[test]
fn a_value_goes_before_a_variable_of_the_same_name_from_outside() {
    let world = World::with(&[("OLLM_T1", "stale")]);
    let spec = HookSpec {
        env: vec![("OLLM_T1".to_owned(), "declared".to_owned())],
        ..shell("echo {{tool_name}} >got; cp /proc/$$/environ env")
    };
    world.run(spec, &with_path("x"));
    assert_eq!(fs::read_to_string(world.path("got")).unwrap(), "write\n");
    let env = fs::read_to_string(world.path("env")).unwrap();
    assert_eq!(env.split('\0').filter(|entry| entry.starts_with("OLLM_T1=")).collect::<Vec<_>>(), ["OLLM_T1=write"]);
}

#[test]
fn a_value_that_no_program_can_be_given_fails_the_hook_and_is_named() {
    let mut world = World::new();
    let long = "x".repeat(128 << 10);
    for (value, part) in [("a\0b", "`tool_args.path` holds a NUL byte"), (&*long, "`tool_args.path` has 131072 bytes")]
    {
        let argument = |_: &str| command("x", "/bin/sh", &["-c", "touch ran", "sh", "{{tool_args.path}}"]);
        let line = |_: &str| HookSpec { dialect: None, ..shell("touch ran; echo {{tool_args.path}}") };
        let reports = [world.four(&with_path(value), argument), world.four(&with_path(value), line)];
        for reports in reports {
            assert_eq!(ends(&reports), everywhere(Status::Failed));
            assert!(reports[0].error.as_deref().unwrap().contains(part), "{:?}", reports[0].error);
        }
    }
    assert!(!world.path("ran").exists());
}

#[test]
fn a_template_that_could_run_a_value_fails_the_hook_and_runs_nothing() {
    let mut world = World::new();
    let argument = |_: &str| command("x", "/bin/sh", &["-c", "touch ran; {{tool_args.path}}"]);
    let line = |_: &str| HookSpec { dialect: None, ..shell("touch ran; eval {{tool_args.path}}") };
    let reports = [world.four(&with_path("true"), argument), world.four(&with_path("true"), line)];
    for reports in reports {
        assert_eq!(ends(&reports), everywhere(Status::Failed));
        assert!(reports[0].error.as_deref().unwrap().contains("inside program text"), "{:?}", reports[0].error);
    }
    assert!(!world.path("ran").exists());
}

#[test]
fn an_unknown_variable_is_empty_and_a_warning() {
    let world = World::new();
    let spec =
        command("x", "/bin/sh", &["-c", "printf '%s' \"<$1>\" >got; echo '{\"continue\":true}'", "sh", "{{nobody}}"]);
    let report = world.run(spec, &event());
    assert_eq!(fs::read_to_string(world.path("got")).unwrap(), "<>");
    assert_eq!((report.status, report.verdict.flow), (Status::Ok, Flow::NoOpinion));
    assert_eq!(report.warnings, ["unknown variable `nobody`: it is empty here"]);
}

#[test]
fn name_moment_and_data_are_found_within_the_event_too() {
    let world = World::new();
    let line = "{{event.type}} {{event.data.tool_name}} {{event.timestamp}} {{event.nobody}}";
    let spec = command("x", "/bin/sh", &["-c", "printf '%s' \"$1\" >got; echo '{\"continue\":true}'", "sh", line]);
    let mut event = event();
    event.data.insert("timestamp".to_owned(), "2026-01-16T10:05:30Z".into());
    let report = world.run(spec, &event);
    let tool = event.subject().unwrap();
    assert_eq!(fs::read_to_string(world.path("got")).unwrap(), format!("before_tool {tool} 2026-01-16T10:05:30Z "));
    assert_eq!(report.warnings, ["unknown variable `event.nobody`: it is empty here"]);
}

proptest::proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_value_arrives_byte_for_byte(value in testkit::text()) {
        let world = World::new();
        let argument = command("x", "/bin/sh", &["-c", "printf '%s' \"$1\" >got", "sh", "{{tool_args.path}}"]);
        let line = shell("printf '%s' {{tool_args.path}} >got");
        for spec in [spoken("agent", argument), line] {
            fs::remove_file(world.path("got")).ok();
            let report = world.run(spec, &with_path(&value));
            let got = fs::read_to_string(world.path("got")).ok();
            if value.contains('\0') {
                proptest::prop_assert_eq!((report.status, got), (Status::Failed, None));
            } else {
                proptest::prop_assert_eq!((report.status, got), (Status::Ok, Some(value.clone())));
            }
        }
    }
}
