//! From a declared hook to a valid one: what is refused and why, which default applies, what an approval is bound to.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ollm_protocol::hook::WHITELIST;
use ollm_protocol::hook::action::{AskAgentSpec, CommandSpec, HttpSpec, McpSpec, RunCommandSpec, ShellSpec};
use ollm_protocol::{
    ActionSpec, Basis, Builtin, EventKind, Hook, HookError, HookSpec, Layer, LimitsSpec, OnFailure, Origin, Priority,
    RateLimit, Reach, Requires, Rules, Setting, Source, Subject, Timeout, Verdict,
};

fn command(command: &str) -> ActionSpec {
    ActionSpec::Command(CommandSpec { command: command.to_owned(), args: vec!["guard.py".to_owned()], script: None })
}

/// A line without quotes, and its words.
fn run_command(line: &str) -> ActionSpec {
    ActionSpec::RunCommand(RunCommandSpec {
        line: line.to_owned(),
        words: line.split_whitespace().map(str::to_owned).collect(),
    })
}

fn spec() -> HookSpec {
    HookSpec::new("guard", "before_tool", command("python3"))
}

fn hook(spec: HookSpec) -> Hook {
    Hook::new(spec, &Rules::default()).unwrap()
}

fn refused(spec: HookSpec) -> HookError {
    Hook::new(spec, &Rules::default()).unwrap_err()
}

fn on(events: &[&str]) -> HookSpec {
    HookSpec { events: events.iter().map(|&event| event.to_owned()).collect(), ..spec() }
}

#[test]
fn each_error_names_its_field() {
    let shell = |script: &str| ActionSpec::Shell(ShellSpec { script: script.to_owned() });
    for (spec, field, message) in [
        (on(&["before_tols"]), "event", "unknown event `before_tols`; did you mean `before_tool`?"),
        (on(&[]), "event", "no event is named"),
        (
            on(&["custom:a", "before_tool"]),
            "event",
            "`custom:a` stands beside other events; declare the hook once for each",
        ),
        (
            HookSpec { matcher: Some("mcp__.*".to_owned()), ..spec() },
            "matcher",
            "matcher `mcp__.*` looks like a regular expression; write `re:mcp__.*`, or use names, `prefix*` and `|`",
        ),
        (
            HookSpec { matcher: Some("startup".to_owned()), ..on(&["session_start"]) },
            "matcher",
            "matcher `startup` has nothing to look at: session_start has no tool and no name, so the hook would never run; leave it out, or write a condition (`if`) or, for files, `filePatterns`",
        ),
        (
            HookSpec { dialect: Some("klingon".to_owned()), ..spec() },
            "dialect",
            "unknown dialect `klingon`; known are ollm, gate, rpc and agent",
        ),
        (
            HookSpec { action: command("/bin/sh;id"), ..spec() },
            "command",
            "command `/bin/sh;id` holds shell characters; name the program alone and put the rest into `args`, or wrap it in a script",
        ),
        (
            HookSpec { action: command("npx eslint src/"), ..spec() },
            "command",
            "command `npx eslint src/` holds arguments; name the program alone and put the rest into `args`",
        ),
        (
            HookSpec { action: command("rm"), ..spec() },
            "command",
            "command `rm` is neither a path nor one of node, python, python3, bash, sh, npx, uvx; give its absolute path, or one relative to the hook file",
        ),
        (HookSpec { action: command(" "), ..spec() }, "command", "`command` is empty"),
        (HookSpec { action: shell(" \n"), ..spec() }, "command", "`command` is empty"),
        (HookSpec { timeout: Some(Timeout::Bare(-1.0)), ..spec() }, "timeout", "timeout -1 is not a positive time"),
    ] {
        let error = refused(spec);
        assert_eq!((error.field(), error.to_string().as_str()), (field, message));
    }
}

#[test]
fn no_command_word_holds_shell_characters() {
    for character in ";&|`$(){}[]<>\n\0".chars() {
        let word = format!("/bin/tool{character}x");
        assert_eq!(refused(HookSpec { action: command(&word), ..spec() }), HookError::Metacharacters(word));
    }
}

#[test]
fn a_command_is_a_path_or_on_the_whitelist() {
    for allowed in WHITELIST.iter().copied().chain(["/usr/bin/env", "/opt/my tools/guard"]) {
        assert!(Hook::new(HookSpec { action: command(allowed), ..spec() }, &Rules::default()).is_ok(), "{allowed}");
    }
    for refused in ["rm", "./guard.sh", "../guard.sh", "Python3", "python3.12", "rm -rf"] {
        let error = Hook::new(HookSpec { action: command(refused), ..spec() }, &Rules::default()).unwrap_err();
        assert!(matches!(error, HookError::NotAllowed { .. }), "{refused}: {error}");
    }
    let rules = Rules { whitelist: vec!["ruby".to_owned()], ..Rules::default() };
    assert!(Hook::new(HookSpec { action: command("ruby"), ..spec() }, &rules).is_ok());
    assert!(Hook::new(spec(), &rules).is_err());
}

#[test]
fn no_time_at_all_is_no_timeout() {
    for timeout in [
        Timeout::Bare(0.0),
        Timeout::Bare(-5.0),
        Timeout::Bare(f64::NAN),
        Timeout::Bare(f64::INFINITY),
        Timeout::Bare(1e300),
        Timeout::Bare(1e-12),
        Timeout::Exact(Duration::ZERO),
    ] {
        let error = refused(HookSpec { timeout: Some(timeout), ..spec() });
        assert!(matches!(error, HookError::Timeout(_)), "{timeout:?}");
        let limits = LimitsSpec { time: Some(timeout), ..LimitsSpec::default() };
        assert!(matches!(refused(HookSpec { limits, ..spec() }), HookError::Timeout(_)), "{timeout:?}");
    }
}

#[test]
fn a_bare_timeout_counts_in_the_unit_of_the_dialect() {
    for (event, bare, expected) in [
        ("before_tool", 1500.0, Duration::from_millis(1500)),
        ("pre-tool-call", 1500.0, Duration::from_millis(1500)),
        ("promptSubmit", 1500.0, Duration::from_millis(1500)),
        ("PreToolUse", 1.5, Duration::from_millis(1500)),
    ] {
        let by = |timeout| hook(HookSpec { timeout: Some(timeout), ..on(&[event]) }).timeout;
        assert_eq!(by(Timeout::Bare(bare)), Setting { value: expected, basis: Basis::Hook }, "{event}");
        assert_eq!(by(Timeout::Exact(Duration::from_secs(7))).value, Duration::from_secs(7), "{event}");
    }
}

#[test]
fn each_default_says_what_it_rests_on() {
    let configured = Rules { timeout: Some(Duration::from_secs(9)), ..Rules::default() };
    for (event, seconds, on_failure) in [
        ("before_tool", 30, OnFailure::Allow),
        ("pre-tool-call", 5, OnFailure::Block),
        ("promptSubmit", 30, OnFailure::Allow),
        ("PreToolUse", 30, OnFailure::Allow),
    ] {
        let plain = hook(on(&[event]));
        assert_eq!(plain.timeout, Setting { value: Duration::from_secs(seconds), basis: Basis::Dialect }, "{event}");
        assert_eq!(plain.on_failure, Setting { value: on_failure, basis: Basis::Dialect }, "{event}");
        let hook = Hook::new(on(&[event]), &configured).unwrap();
        assert_eq!(hook.timeout, Setting { value: Duration::from_secs(9), basis: Basis::Config }, "{event}");
    }
    let own = HookSpec { timeout: Some(Timeout::Bare(100.0)), on_failure: Some(OnFailure::Ask), ..spec() };
    let own = Hook::new(own, &configured).unwrap();
    assert_eq!(own.timeout, Setting { value: Duration::from_millis(100), basis: Basis::Hook });
    assert_eq!(own.on_failure, Setting { value: OnFailure::Ask, basis: Basis::Hook });
    let limits = LimitsSpec { time: Some(Timeout::Bare(200.0)), ..LimitsSpec::default() };
    assert_eq!(hook(HookSpec { limits, ..spec() }).timeout.value, Duration::from_millis(200));
    // Of two bounds the smaller one holds.
    for (timeout, wanted) in [(100.0, 100), (300.0, 200)] {
        let both = HookSpec { limits, timeout: Some(Timeout::Bare(timeout)), ..spec() };
        assert_eq!(hook(both).timeout.value, Duration::from_millis(wanted));
    }
}

#[test]
fn the_dialect_is_the_declared_one_or_that_of_the_first_event() {
    assert_eq!(hook(on(&["PreToolUse"])).dialect.name(), "agent");
    assert_eq!(hook(on(&["pre-tool-call", "PostToolUse"])).dialect.name(), "gate");
    let declared = HookSpec { dialect: Some("rpc".to_owned()), ..on(&["PreToolUse"]) };
    assert_eq!(hook(declared).dialect.name(), "rpc");
}

#[test]
fn events_are_resolved_once_each() {
    let events = hook(on(&["PreToolUse", "before_tool", "on-file-change", "fileEdited"])).events;
    let expected = [EventKind::BeforeTool, EventKind::FileCreated, EventKind::FileEdited, EventKind::FileDeleted];
    assert_eq!(events, expected);
}

#[test]
fn a_named_custom_event_is_a_matcher_on_its_name() {
    let hook = hook(on(&["custom:deploy", "custom:a|b*"]));
    assert_eq!(hook.events, [EventKind::Custom]);
    for (name, fits) in [("deploy", true), ("a|b*", true), ("a", false), ("deploy2", false)] {
        assert_eq!(hook.matcher.matches(Some(Subject::new(EventKind::Custom, name))), fits, "{name}");
    }
    assert!(!hook.matcher.matches(None));
}

#[test]
fn a_builtin_is_called_with_the_event() {
    let builtin = Builtin::new(|event| Verdict::block(event.kind.name()));
    let hook = hook(HookSpec::new("b", "before_tool", ActionSpec::Builtin(builtin)));
    let ollm_protocol::Action::Builtin(builtin) = hook.action else { panic!("not a builtin") };
    let event = ollm_protocol::Event::unchecked(EventKind::BeforeTool, []);
    assert_eq!(builtin.call(&event), Verdict::block("before_tool"));
}

// What an approval is bound to.

#[test]
fn the_definition_does_not_depend_on_position_state_or_description() {
    let same = [
        HookSpec { enabled: false, ..spec() },
        HookSpec { description: Some("guards".to_owned()), ..spec() },
        HookSpec { origin: Origin { file: "/a/hooks.json".into(), line: 7, column: 3 }, ..spec() },
        HookSpec { id: "user:hooks.json:before_tool:guard#2".to_owned(), name: spec().name, ..spec() },
        HookSpec { matcher: Some("*".to_owned()), ..spec() },
        HookSpec { dialect: Some("ollm".to_owned()), ..spec() },
    ];
    let expected = hook(spec()).definition();
    for spec in same {
        assert_eq!(hook(spec.clone()).definition(), expected, "{spec:?}");
    }
    let configured = Rules { timeout: Some(Duration::from_secs(1)), ..Rules::default() };
    assert_eq!(Hook::new(spec(), &configured).unwrap().definition(), expected);
}

#[test]
fn the_definition_changes_with_every_field_that_changes_what_the_hook_does() {
    let limited = |limits: LimitsSpec| HookSpec { limits, ..spec() };
    let none = LimitsSpec::default();
    let acting = |action: ActionSpec| HookSpec { action, ..spec() };
    let python = |args: &[&str], script: Option<&str>| {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        acting(ActionSpec::Command(CommandSpec {
            command: "python3".to_owned(),
            args,
            script: script.map(PathBuf::from),
        }))
    };
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let requiring = |commands: &[&str], files: &[&str], services: &[&str]| {
        let requires = Requires { commands: texts(commands), files: texts(files), services: texts(services) };
        HookSpec { requires, ..spec() }
    };
    let on_stop = |line: &str, file: &str| HookSpec {
        events: vec!["after_agent".to_owned()],
        origin: Origin { file: file.into(), line: 1, column: 1 },
        ..acting(run_command(line))
    };
    let http = |url: &str, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        acting(ActionSpec::Http(HttpSpec { url: url.to_owned(), headers }))
    };
    let mcp = |server: &str, tool: &str, value: &str| {
        let args = serde_json::Map::from_iter([("a".to_owned(), value.into())]);
        acting(ActionSpec::Mcp(McpSpec { server: server.to_owned(), tool: tool.to_owned(), args }))
    };
    let different = vec![
        spec(),
        HookSpec { name: "other".to_owned(), ..spec() },
        HookSpec { version: "1.0.1".to_owned(), ..spec() },
        on(&["after_tool"]),
        on(&["before_tool", "after_tool"]),
        HookSpec { matcher: Some("shell".to_owned()), ..spec() },
        HookSpec { matcher: Some("re:shell".to_owned()), ..spec() },
        acting(command("bash")),
        python(&["guard.py", "--fast"], None),
        python(&["guard.py --fast"], None),
        python(&["guard.py"], Some("/a/guard.py")),
        python(&["guard.py"], Some("/b/guard.py")),
        acting(ActionSpec::Shell(ShellSpec { script: "python3 guard.py".to_owned() })),
        HookSpec { dialect: Some("gate".to_owned()), ..spec() },
        HookSpec { timeout: Some(Timeout::Bare(5.0)), ..spec() },
        HookSpec { timeout: Some(Timeout::Exact(Duration::from_secs(5))), ..spec() },
        HookSpec { on_failure: Some(OnFailure::Allow), ..spec() },
        HookSpec { on_failure: Some(OnFailure::Block), ..spec() },
        HookSpec { priority: Priority::Critical, ..spec() },
        HookSpec { parallel: true, ..spec() },
        HookSpec { env: vec![("A".to_owned(), "1".to_owned())], ..spec() },
        HookSpec { env: vec![("A".to_owned(), "2".to_owned())], ..spec() },
        HookSpec { env: vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())], ..spec() },
        HookSpec { pass_env: texts(&["TOKEN"]), ..spec() },
        HookSpec { pass_env: texts(&["TOKEN", "HOME"]), ..spec() },
        HookSpec { cwd: Some("/tmp".into()), ..spec() },
        HookSpec { inputs: vec!["/a/rules.json".into()], ..spec() },
        limited(LimitsSpec { time: Some(Timeout::Bare(5.0)), ..none }),
        limited(LimitsSpec { time: Some(Timeout::Exact(Duration::from_secs(5))), ..none }),
        limited(LimitsSpec { cpu: Some(Duration::from_secs(5)), ..none }),
        limited(LimitsSpec { memory: Some(5), ..none }),
        limited(LimitsSpec { processes: Some(5), ..none }),
        limited(LimitsSpec { files: Some(5), ..none }),
        limited(LimitsSpec { file_size: Some(5), ..none }),
        limited(LimitsSpec { output: Some(5), ..none }),
        HookSpec { detached: Some(true), ..spec() },
        HookSpec { detached: Some(false), ..spec() },
        HookSpec { file_patterns: texts(&["*.rs"]), ..spec() },
        HookSpec { file_patterns: texts(&["*.rs", "*.md"]), ..spec() },
        HookSpec { condition: Some("true".to_owned()), ..spec() },
        HookSpec { condition: Some("false".to_owned()), ..spec() },
        HookSpec { rate_limit: RateLimit { per_minute: Some(1), cooldown: None }, ..spec() },
        HookSpec { rate_limit: RateLimit { per_minute: None, cooldown: Some(Duration::from_secs(1)) }, ..spec() },
        requiring(&["git"], &[], &[]),
        requiring(&[], &["git"], &[]),
        requiring(&[], &[], &["git:1"]),
        HookSpec { reach: Some(Reach::Main), ..spec() },
        HookSpec { reach: Some(Reach::All), ..spec() },
        acting(ActionSpec::AskAgent(AskAgentSpec { prompt: "python3 guard.py".to_owned() })),
        acting(ActionSpec::AskAgent(AskAgentSpec { prompt: "x".to_owned() })),
        on_stop("node a.js", "/a/hooks.json"),
        on_stop("node b.js", "/a/hooks.json"),
        on_stop("node a.js", "/b/hooks.json"),
        http("https://a", &[]),
        http("https://b", &[]),
        http("https://b", &[("A", "1")]),
        http("https://b", &[("A", "2")]),
        mcp("a", "b", "c"),
        mcp("x", "b", "c"),
        mcp("a", "x", "c"),
        mcp("a", "b", "x"),
        HookSpec { source: Source::Workspace, ..spec() },
        HookSpec { extension: Some("git-tools".to_owned()), ..spec() },
    ];
    let definitions: Vec<_> = different.iter().map(|spec| hook(spec.clone()).definition()).collect();
    for (at, one) in definitions.iter().enumerate() {
        for (other_at, other) in definitions.iter().enumerate().skip(at + 1) {
            assert_ne!(one, other, "{:?} and {:?}", different[at], different[other_at]);
        }
    }
}

#[cfg(unix)]
#[test]
fn two_paths_that_are_no_text_never_look_the_same() {
    use std::os::unix::ffi::OsStringExt;
    let at = |bytes: &[u8]| {
        let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
        hook(HookSpec { cwd: Some(path.clone()), inputs: vec![path], ..spec() }).definition()
    };
    assert_ne!(at(b"/a/\xfe"), at(b"/a/\xff"));
    assert_ne!(at(b"/a/\xff"), at("/a/\u{fffd}".as_bytes()));
}

#[test]
fn the_place_a_hook_was_found_in_decides_its_order_only() {
    let workspace = HookSpec { layer: Layer::Workspace, ..spec() };
    assert_eq!(hook(workspace).definition(), hook(spec()).definition());
}

// Actions and when they run.

fn complaint(spec: HookSpec) -> (&'static str, String) {
    let error = refused(spec);
    (error.field(), error.to_string())
}

#[test]
fn run_command_is_for_prompts_and_stops_only_and_the_alternative_is_named() {
    let line = |event: &str, line: &str| HookSpec::new("x", event, run_command(line));
    for event in ["promptSubmit", "agentStop", "before_agent", "Stop"] {
        assert!(Hook::new(line(event, "npx eslint src/"), &Rules::default()).is_ok(), "{event}");
    }
    let (field, message) = complaint(line("fileEdited", "npx eslint src/"));
    assert_eq!(field, "action");
    assert_eq!(
        message,
        "runCommand is only for promptSubmit (before_agent) and agentStop (after_agent), not for file_edited; \
         use askAgent there, or a `command`"
    );
    let both = HookSpec { events: vec!["agentStop".to_owned(), "fileEdited".to_owned()], ..line("x", "npx a") };
    assert_eq!(complaint(both).0, "action");
    for (written, word) in
        [("rm -rf /", "rm"), ("", "empty"), ("bash", "run the event as code"), ("{{data.response}} a", "data.response")]
    {
        let (field, message) = complaint(line("agentStop", written));
        assert!(field == "command" && message.contains(word), "{written}: {message}");
    }
}

#[test]
fn a_condition_that_cannot_be_read_stays_with_the_hook() {
    for (text, word) in [("data.".to_owned(), "column 6"), ("1+".repeat(50_000) + "1", "100001")] {
        let hook = Hook::new(HookSpec { condition: Some(text), ..spec() }, &Rules::default()).unwrap();
        let error = hook.condition.unwrap().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_field() {
    let acting = |action: ActionSpec| HookSpec { action, ..spec() };
    let http = |url: &str, name: &str, value: &str| {
        acting(ActionSpec::Http(HttpSpec { url: url.to_owned(), headers: vec![(name.to_owned(), value.to_owned())] }))
    };
    let mcp = |server: &str, tool: &str| {
        acting(ActionSpec::Mcp(McpSpec {
            server: server.to_owned(),
            tool: tool.to_owned(),
            args: serde_json::Map::new(),
        }))
    };
    let services = |service: &str| HookSpec {
        requires: Requires { services: vec![service.to_owned()], ..Requires::default() },
        ..spec()
    };
    for (spec, field, word) in [
        (HookSpec { file_patterns: vec!["[a".to_owned()], ..spec() }, "filePatterns", "[a"),
        (
            HookSpec { rate_limit: RateLimit { per_minute: Some(0), cooldown: None }, ..spec() },
            "rateLimit",
            "perMinute",
        ),
        (services("localhost"), "requires", "localhost"),
        (services("::1:80"), "requires", "::1:80"),
        (services("a:0"), "requires", "a:0"),
        (services("http://a:80"), "requires", "http://a:80"),
        (acting(ActionSpec::AskAgent(AskAgentSpec { prompt: " ".to_owned() })), "prompt", "prompt"),
        (http("ftp://a", "A", "b"), "url", "ftp://a"),
        (http("https://a", "A", "${TOKEN}"), "headers", "passEnv"),
        (mcp("", "b"), "server", "server"),
        (mcp("a", ""), "tool", "tool"),
    ] {
        let (at, message) = complaint(spec);
        assert!(at == field && message.contains(word), "{at}: {message}");
    }
    for service in ["127.0.0.1:11434", "[::1]:80", "db.local:5432"] {
        assert!(Hook::new(services(service), &Rules::default()).is_ok(), "{service}");
    }
}

#[test]
fn an_event_of_a_sub_agent_is_told_by_the_name_of_that_agent() {
    let from = |kind, data| ollm_protocol::Event::from_loose(kind, data).is_subagents();
    for spelling in ["agent_id", "agentId", "subagent_id"] {
        assert!(from(EventKind::BeforeTool, serde_json::json!({spelling: "a1"})), "{spelling}");
    }
    for data in [serde_json::json!({}), serde_json::json!({"agent_type": "x"}), serde_json::json!({"agent_id": ""})] {
        assert!(!from(EventKind::BeforeTool, data.clone()), "{data}");
    }
    // What a model may write into the arguments says nothing.
    assert!(!from(EventKind::BeforeTool, serde_json::json!({"args": {"agent_id": "a1"}})));
    assert!(!from(EventKind::SubagentStop, serde_json::json!({"agent_id": "a1"})));
}

#[test]
fn a_word_that_stands_for_a_path_that_is_no_text_means_that_file_and_no_other() {
    use std::os::unix::ffi::OsStringExt;

    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let (script, input) = (path(b"/odd\xff/guard.py"), path(b"/odd\xff/rules"));
    let word = script.to_string_lossy().into_owned();
    let action = ActionSpec::Command(CommandSpec {
        command: "python3".to_owned(),
        args: vec![word.clone()],
        script: Some(script.clone()),
    });
    let with = |inputs: Vec<PathBuf>| hook(HookSpec { inputs, ..HookSpec::new("x", "before_tool", action.clone()) });
    let one = with(vec![input.clone(), "/plain".into()]);
    assert_eq!(one.own_file(&word), Some(script.as_path()));
    assert_eq!(one.own_file(&input.to_string_lossy()), Some(input.as_path()));
    assert_eq!((one.own_file("/plain"), one.own_file("/odd\u{fffd}/other")), (None, None));
    // Of two that look the same, it is unknown which one is meant.
    assert_eq!(with(vec![path(b"/odd\xfe/guard.py")]).own_file(&word), None);
    assert_eq!(with(vec![script.clone()]).own_file(&word), Some(script.as_path()));
}
