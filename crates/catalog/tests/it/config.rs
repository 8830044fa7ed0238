//! The configuration: files, environment, flags.

use std::time::Duration;

use ollm_catalog::{Config, HookSettings, Problem, Setting, Severity};
use ollm_protocol::Basis;
use ollm_protocol::RateLimit;

use crate::world::{World, link};

const USER: &str = "home/.ollm/config.yaml";
const PROJECT: &str = "project/.ollm/config.yaml";

fn settings(world: &World) -> HookSettings {
    let (catalog, problems) = world.load();
    assert_eq!(problems, []);
    catalog.settings
}

/// The servers that a configuration declares.
fn servers(config: &Config) -> Vec<Setting> {
    config.settings().into_iter().filter(|setting| setting.path.starts_with("mcp.servers.")).collect()
}

#[test]
fn the_documented_configuration_loads_without_a_problem() {
    let text = "hooks:\n  enabled: true\n  timeout: 30000\n  trustWorkspace: false\n\nextensions:\n  enabled: true\n  directories:\n    - ~/.ollm/extensions\n    - .ollm/extensions\n  autoEnable: true\n\nmcp:\n  enabled: true\n  connectionTimeout: 10000\n  servers: {}\n";
    let world = World::new();
    world.write(USER, text);
    world.write(PROJECT, text);
    let expected = HookSettings {
        enabled_from: "~/.ollm/config.yaml:2:12".to_owned(),
        timeout: Some(Duration::from_secs(30)),
        ..HookSettings::default()
    };
    assert_eq!(settings(&world), expected);
}

#[test]
fn an_empty_configuration_is_a_configuration() {
    for text in ["", "# nothing yet\n", "hooks:\n", "hooks: {}\n", "\u{feff}hooks: {}\n"] {
        let world = World::new();
        world.write(USER, text);
        assert_eq!(settings(&world), HookSettings::default(), "{text:?}");
    }
}

#[test]
fn the_environment_wins_over_files_and_flags_over_the_environment() {
    let mut world = World::new();
    world.write(USER, "hooks:\n  enabled: false\n  timeout: 1000\n");
    let of = |world: &World| {
        let settings = settings(world);
        (settings.enabled, settings.enabled_from, settings.timeout.unwrap())
    };
    assert_eq!(of(&world), (false, "~/.ollm/config.yaml:2:12".to_owned(), Duration::from_secs(1)));
    world.env.insert("OLLM_HOOKS_ENABLED".to_owned(), "1".to_owned());
    world.env.insert("HOOKS_TIMEOUT".to_owned(), "2".to_owned());
    assert_eq!(of(&world), (true, "OLLM_HOOKS_ENABLED".to_owned(), Duration::from_secs(2)));
    world.env.insert("OLLM_HOOKS_TIMEOUT".to_owned(), "3000".to_owned());
    assert_eq!(of(&world).2, Duration::from_secs(3));
    world.env.insert("OLLM_HOOKS_TIMEOUT".to_owned(), "250ms".to_owned());
    assert_eq!(of(&world).2, Duration::from_millis(250));
    world.overrides.enabled = Some(true);
    world.overrides.timeout = Some(Duration::from_secs(4));
    assert_eq!(of(&world), (true, "the command line".to_owned(), Duration::from_secs(4)));
}

#[test]
fn an_empty_variable_is_not_set_and_a_senseless_one_is_ignored_with_a_warning() {
    let mut world = World::new();
    world.env.insert("OLLM_HOOKS_ENABLED".to_owned(), " ".to_owned());
    assert!(settings(&world).enabled);
    world.env.insert("OLLM_HOOKS_TIMEOUT".to_owned(), "soon".to_owned());
    let (problem, _) = world.problem();
    assert_eq!(problem.severity, Severity::Warning);
    assert_eq!(
        problem.to_string(),
        "OLLM_HOOKS_TIMEOUT: the variable must be a positive number of milliseconds, or text with a unit such as \"5s\"; it is ignored (OLLM_HOOKS_TIMEOUT = \"soon\"); correct it or unset OLLM_HOOKS_TIMEOUT [C012]"
    );
    assert_eq!(problem.value.as_deref(), Some("\"soon\""));
}

#[test]
fn a_timeout_of_the_configuration_counts_for_hooks_without_one() {
    let world = World::new();
    world.write(USER, "hooks: {timeout: 7s}\n");
    world.entry(r#"{"command": "/bin/true"}, {"command": "/bin/false", "timeout": 5}"#);
    let timeouts: Vec<_> = world.hooks().iter().map(|hook| (hook.timeout.value, hook.timeout.basis)).collect();
    assert_eq!(timeouts, [(Duration::from_secs(7), Basis::Config), (Duration::from_millis(5), Basis::Hook)]);
}

#[test]
fn a_project_shortens_the_timeout_of_its_own_hooks_only() {
    let world = World::new();
    world.write(PROJECT, "hooks: {timeout: 1}\n");
    world.entry(r#"{"id": "user", "command": "/bin/true"}"#);
    world.write("project/.ollm/hooks/b.json", r#"{"before_tool": [{"id": "project", "command": "/bin/true"}]}"#);
    let timeouts: Vec<_> = world.hooks().iter().map(|hook| hook.timeout.value).collect();
    assert_eq!(timeouts, [Duration::from_secs(30), Duration::from_millis(1)]);
}

#[test]
fn a_project_may_only_tighten() {
    for (user, project, field, line, column) in [
        ("", "hooks:\n  enabled: false\n", "hooks.enabled", 2, 12),
        ("hooks: {enabled: false}\n", "hooks:\n  enabled: true\n", "hooks.enabled", 2, 12),
        ("", "hooks:\n  trustWorkspace: true\n", "hooks.trustWorkspace", 2, 19),
        ("", "hooks:\n  trustWorkspace: [/]\n", "hooks.trustWorkspace", 2, 19),
        ("", "hooks:\n  untrusted: skip\n", "hooks.untrusted", 2, 14),
        ("hooks: {untrusted: block}\n", "hooks:\n  untrusted: skip\n", "hooks.untrusted", 2, 14),
        ("", "hooks:\n  whitelist: [rm]\n", "hooks.whitelist", 2, 14),
        ("", "hooks:\n  timeout: 31s\n", "hooks.timeout", 2, 12),
        ("hooks: {timeout: 5000}\n", "# öö\nhooks: {timeout: 5001}\n", "hooks.timeout", 2, 18),
    ] {
        let world = World::new();
        world.write(USER, user);
        let before = settings(&world);
        let file = world.write(PROJECT, project);
        let (problem, _) = world.problem();
        assert_eq!(problem.severity, Severity::Warning, "{project}");
        assert_eq!((problem.file, problem.line, problem.column), (file, line, column), "{project}");
        assert_eq!(problem.field, field);
        assert!(problem.message.contains("is ignored in a project"), "{}", problem.message);
        assert_eq!(world.load().0.settings, before, "{project}");
    }
    let world = World::new();
    world.write(USER, "hooks: {trustWorkspace: true}\n");
    world.write(PROJECT, "hooks: {trustWorkspace: false, untrusted: block}\n");
    let settings = settings(&world);
    assert_eq!((settings.trust_workspace, settings.untrusted_blocks), (false, true));
}

#[test]
fn trust_may_be_given_to_some_projects() {
    let world = World::new();
    let base = world.base();
    world.write("home/other/x", "");
    link(world.path("project"), world.path("home/linked"));
    for (list, trusted) in [
        (format!("[{}]", base.join("project").display()), true),
        (format!("[{}]", base.display()), true),
        (format!("[/nowhere, {}]", base.join("project").display()), true),
        ("[~/linked]".to_owned(), true),
        ("[~/other]".to_owned(), false),
        (format!("[{}]", base.join("proj").display()), false),
        ("[]".to_owned(), false),
        ("true".to_owned(), true),
        ("false".to_owned(), false),
    ] {
        world.write(USER, format!("hooks:\n  trustWorkspace: {list}\n"));
        assert_eq!(settings(&world).trust_workspace, trusted, "{list}");
    }
}

#[test]
fn the_users_whitelist_decides_which_programs_need_no_path() {
    let world = World::new();
    world.entry(r#"{"command": "deno"}"#);
    assert_eq!(world.problem().1, 0);
    world.write(USER, "hooks: {whitelist: [deno]}\n");
    assert_eq!(world.hook().spec.name, "deno");
    assert_eq!(settings(&world).whitelist, ["deno"]);
}

#[test]
fn a_guard_that_makes_no_sense_is_fatal_and_anything_else_is_not() {
    for (line, severity, field, column, value) in [
        ("trustWorkspace: maybe", Severity::Fatal, "hooks.trustWorkspace", 19, "\"maybe\""),
        ("trustWorkspace: [relative]", Severity::Fatal, "hooks.trustWorkspace", 19, "[\"relative\"]"),
        ("trustWorkspace: 3", Severity::Fatal, "hooks.trustWorkspace", 19, "3"),
        ("untrusted: blok", Severity::Fatal, "hooks.untrusted", 14, "\"blok\""),
        ("untrusted: true", Severity::Fatal, "hooks.untrusted", 14, "true"),
        ("whitelist: {a: b}", Severity::Fatal, "hooks.whitelist", 14, "{\"a\": \"b\"}"),
        ("whitelist: [a b]", Severity::Fatal, "hooks.whitelist", 14, "[\"a b\"]"),
        ("whitelist: [/bin/sh]", Severity::Fatal, "hooks.whitelist", 14, "[\"/bin/sh\"]"),
        ("trustWorkspace: \"true\"", Severity::Warning, "hooks.trustWorkspace", 19, "\"true\""),
        ("enabled: \"false\"", Severity::Warning, "hooks.enabled", 12, "\"false\""),
        ("enabled: 3", Severity::Fatal, "hooks.enabled", 12, "3"),
        ("timeout: \"30000\"", Severity::Warning, "hooks.timeout", 12, "\"30000\""),
        ("timeout: -5", Severity::Warning, "hooks.timeout", 12, "-5"),
        ("timeout: 0", Severity::Warning, "hooks.timeout", 12, "0"),
        ("timeout: [1]", Severity::Warning, "hooks.timeout", 12, "[1]"),
        ("timeout:", Severity::Warning, "hooks.timeout", 3, "null"),
        ("timout: 5", Severity::Warning, "hooks.timout", 3, "5"),
        ("rateLimit: 3", Severity::Error, "hooks.rateLimit", 14, "3"),
        ("rateLimit: {perMinute: 0}", Severity::Warning, "hooks.rateLimit.perMinute", 26, "0"),
        ("rateLimit: {perminute: 3}", Severity::Warning, "hooks.rateLimit.perminute", 15, "3"),
        ("http: {allow: [\"http://localhost\"]}", Severity::Fatal, "hooks.http.allow", 17, "[\"http://localhost\"]"),
        ("signatureKeys: [short]", Severity::Fatal, "hooks.signatureKeys", 18, "[\"short\"]"),
        ("pins: [sha256:ab]", Severity::Fatal, "hooks.pins", 9, "[\"sha256:ab\"]"),
    ] {
        let world = World::new();
        let file = world.write(USER, format!("hooks:\n  {line}\n"));
        let (problem, _) = world.problem();
        let Problem { line: at, column: found, .. } = problem;
        assert_eq!((problem.severity, problem.field.as_str()), (severity, field), "{line}");
        assert_eq!((problem.file, at, found), (file, 2, column), "{line}");
        assert_eq!(problem.value.as_deref(), Some(value), "{line}");
        assert_eq!(problem.snippet.map(|snippet| snippet.text), Some(format!("  {line}")));
    }
}

#[test]
fn a_coerced_value_counts() {
    let world = World::new();
    world.write(USER, "hooks: {timeout: \"30000\", enabled: \"false\"}\n");
    let (catalog, problems) = world.load();
    assert_eq!(problems.len(), 2);
    assert_eq!((catalog.settings.timeout, catalog.settings.enabled), (Some(Duration::from_secs(30)), false));
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    let world = World::new();
    world.write(USER, "hoks: 1\nhooks:\n  trustworkspace: true\n");
    let (_, problems) = world.load();
    let seen: Vec<_> =
        problems.iter().map(|problem| (problem.field.as_str(), problem.help.as_deref().unwrap())).collect();
    assert_eq!(seen, [("hoks", "did you mean `hooks`?"), ("hooks.trustworkspace", "did you mean `trustWorkspace`?")]);
}

#[test]
fn positions_of_settings_are_there_when_asked_for() {
    let world = World::new();
    world.write(USER, "hooks:\n  enabled: true\n");
    assert_eq!(settings(&world).enabled_from, "~/.ollm/config.yaml:2:12");
}

#[test]
fn a_broken_configuration_of_the_user_is_fatal_and_says_where_it_is_broken() {
    let level = |level: usize| format!("a{level}: &a{level} [{}]", format!("*a{},", level - 1).repeat(9));
    let bomb = (1..=20).map(level).collect::<Vec<_>>().join("\n");
    let cases: &[(&str, String, usize, usize, &str)] = &[
        (
            "doubled key",
            "hooks:\n  enabled: true\n  enabled: false\n".to_owned(),
            3,
            3,
            "duplicate mapping key: enabled",
        ),
        ("tab", "hooks:\n\tenabled: false\n".to_owned(), 2, 2, "tabs"),
        ("bracket", "hooks: {enabled: false\n".to_owned(), 1, 8, "bracket"),
        ("bomb", format!("a0: &a0 [x]\n{bomb}"), 6, 0, "too many"),
        ("depth", "[".repeat(10_000), 1, 0, "too deeply"),
        ("NUL", "hooks:\n  enabled: \0\n".to_owned(), 2, 12, "unexpected character"),
        ("two documents", "a: 1\n---\nb: 2\n".to_owned(), 3, 1, "more than one document"),
        ("a list", "- hooks\n".to_owned(), 1, 1, "a map of settings is needed, not a list"),
        ("text", "hooks".to_owned(), 1, 1, "a map of settings is needed, not text"),
        ("hooks as a list", "hooks: [1]\n".to_owned(), 1, 8, "`hooks` must be a map of settings"),
    ];
    for (name, text, line, column, message) in cases {
        let world = World::new();
        let file = world.write(USER, text);
        let (catalog, problems) = world.load();
        assert_eq!(catalog.settings, HookSettings::default(), "{name}");
        let Some(problem) = problems.iter().find(|problem| problem.severity == Severity::Fatal) else {
            panic!("{name}: {problems:#?}");
        };
        assert_eq!(problem.file, file, "{name}");
        assert!(problem.message.contains(message), "{name}: {}", problem.message);
        assert_eq!(problem.line, *line, "{name}: {problem}");
        assert!(*column == 0 || problem.column == *column, "{name}: {problem}");
    }
}

#[test]
fn a_broken_configuration_of_a_project_is_never_fatal() {
    for text in ["hooks: [1]\n", "- hooks\n", "hooks: {enabled: false\n", "version: 7\n", "hooks:\n\ta: b\n"] {
        let world = World::new();
        world.write(PROJECT, text);
        let (problem, _) = world.problem();
        assert_eq!(problem.severity, Severity::Error, "{text}");
    }
}

#[test]
fn a_configuration_that_is_too_large_or_no_text_is_not_read() {
    let world = World::new();
    let file = world.write(USER, "");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(200_000_000).unwrap();
    let (problem, _) = world.problem();
    assert_eq!(problem.message, "it has 200000000 bytes, at most 1048576 are read; nothing runs until it is corrected");
    world.write(USER, b"hooks:\n  enabled: \xff\n");
    let (problem, _) = world.problem();
    assert_eq!((problem.line, problem.column, problem.value.as_deref()), (2, 12, Some("0xff")));
}

#[test]
fn guards_are_on_until_the_user_says_otherwise() {
    for (user, project, expected) in [
        ("", "", vec!["destructive-commands", "self-protection"]),
        ("hooks:\n  guards: false\n", "", vec![]),
        ("hooks:\n  guards: [self-protection]\n", "", vec!["self-protection"]),
        ("hooks:\n  guards: false\n", "hooks:\n  guards: [destructive-commands]\n", vec!["destructive-commands"]),
    ] {
        let world = World::new();
        world.write("home/.ollm/config.yaml", user);
        world.write("project/.ollm/config.yaml", project);
        assert_eq!(world.load().0.settings.guards, expected, "{user}{project}");
    }
    let world = World::new();
    world.write("project/.ollm/config.yaml", "hooks:\n  guards: false\n");
    let (catalog, problems) = world.load();
    assert_eq!(catalog.settings.guards.len(), 2);
    assert!(problems[0].message.contains("cannot switch guards off"), "{problems:?}");
}

#[test]
fn a_configuration_that_others_could_write_does_not_apply() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let file = world.write("home/.ollm/config.yaml", "hooks:\n  trustWorkspace: true\n");
    assert!(world.load().0.settings.trust_workspace);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (catalog, problems) = world.load();
    assert!(!catalog.settings.trust_workspace);
    assert!(problems[0].message.contains("writable by others"), "{problems:?}");
}

#[test]
fn a_senseless_variable_for_a_guard_is_fatal() {
    let mut world = World::new();
    world.env.insert("OLLM_HOOKS_UNTRUSTED".to_owned(), "blok".to_owned());
    let (problem, _) = world.problem();
    assert_eq!(problem.severity, Severity::Fatal);
    assert!(problem.message.contains("must be skip or block"), "{problem}");
    world.env.insert("OLLM_HOOKS_UNTRUSTED".to_owned(), "block".to_owned());
    assert!(settings(&world).untrusted_blocks);
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let text = "version: 7\nhooks:\n  timeout: 5s\n";
    for (file, severity) in [(USER, Severity::Fatal), (PROJECT, Severity::Error)] {
        let world = World::new();
        world.write(file, text);
        let (problem, _) = world.problem();
        assert_eq!((problem.severity, problem.line, problem.column), (severity, 1, 10), "{problem}");
        assert!(problem.message.contains("has version 7, and this program knows versions up to 1"), "{problem}");
        assert_eq!(world.load().0.settings, HookSettings::default());
    }
    let world = World::new();
    world.write(USER, "version: 1\n");
    assert_eq!(settings(&world), HookSettings::default());
}

#[test]
fn every_part_gets_its_settings_in_its_own_types() {
    let mut world = World::new();
    world.places.home = world.path("home/moved");
    world.write("home/moved/config.yaml", "hooks: {rateLimit: {perMinute: 5, cooldownMs: 2s}, http: {allow: [localhost:8080, 10.0.0.0/8]}}\nextensions: {directories: [~/.ollm/extensions, ~/more, .ollm/extensions, /abs], settings: {git: {repo: a/b}}}\nmcp: {connectionTimeout: 1s, servers: {git: {command: npx, timeout: \"5000\", own: {x: 1}}}}\nmodel: {name: x, temperature: 1, own: [1]}\ntrace: {enabled: off, maxSize: 1MiB}\nlog: {level: error}\n");
    world.write(PROJECT, "mcp: {servers: {docs: {url: \"http://127.0.0.1:1\"}}}\n");
    let (catalog, problems) = world.load();
    assert_eq!(problems.len(), 3, "two that are read as meant, and one that nobody reads: {problems:?}");
    let (settings, config) = (catalog.settings, catalog.config);
    let limit = RateLimit { per_minute: Some(5), cooldown: Some(Duration::from_secs(2)) };
    assert_eq!(
        (settings.rate_limit, settings.http_allow),
        (limit, vec!["localhost:8080".to_owned(), "10.0.0.0/8".to_owned()])
    );

    let extensions = config.extensions(&world.places);
    let folders = ["home/moved/extensions", "home/more", "project/.ollm/extensions"].map(|path| world.path(path));
    assert_eq!(extensions.directories, [&folders[..], &["/abs".into()]].concat());
    assert_eq!(
        (extensions.settings[0].path.as_str(), &extensions.settings[0].value),
        ("extensions.settings.git.repo", &"a/b".into())
    );

    let mcp = config.mcp();
    assert_eq!(
        (mcp.enabled, mcp.connection_timeout, mcp.tool_timeout),
        (true, Duration::from_secs(1), Duration::from_mins(1))
    );
    let servers = servers(&config);
    let shown: Vec<_> = servers.iter().map(|server| (server.path.as_str(), server.origin.layer())).collect();
    assert_eq!(shown, [("mcp.servers.git", "user"), ("mcp.servers.docs", "project")]);
    assert_eq!(servers[0].value, serde_json::json!({"command": "npx", "timeout": 5000, "own": {"x": 1}}));
    assert!(servers[1].origin.to_string().ends_with("project/.ollm/config.yaml:1:23"), "{}", servers[1].origin);

    let model: Vec<_> = config.model().into_iter().map(|(name, setting)| (name, setting.value.to_string())).collect();
    let expected = [("name", "\"x\""), ("temperature", "1.0"), ("own", "[1]")];
    assert_eq!(model, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let (trace, log) = (config.trace(), config.log());
    assert_eq!((trace.enabled, trace.format.as_str(), trace.max_size, trace.max_files), (false, "pretty", 1 << 20, 4));
    assert_eq!((log.level.as_str(), log.max_size), ("error", 1 << 20));
}

#[test]
fn a_server_is_taken_whole_or_not_at_all() {
    for (server, message) in [
        ("5", "a server must be a map of its keys, not a number"),
        ("{args: [a]}", "the server has neither `command` nor `url`"),
        ("{command: [a]}", "`command` must be text"),
        ("{command: a, args: {b: c}}", "`args` must be a list of texts"),
        ("{command: a, env: [b]}", "`env` must be a map of names to text"),
        ("{command: a, transport: pigeon}", "the transport must be one of stdio, http, sse"),
        ("{url: \"file:///etc\"}", "`url` is not an address on the web"),
    ] {
        let world = World::new();
        world.write(USER, format!("mcp:\n  servers:\n    x: {server}\n    good: {{command: b}}\n"));
        let (catalog, problems) = world.load();
        assert!(
            problems.iter().any(|problem| problem.severity == Severity::Error && problem.message.contains(message)),
            "{server}: {problems:?}"
        );
        let paths: Vec<String> = servers(&catalog.config).into_iter().map(|server| server.path).collect();
        assert_eq!(paths, ["mcp.servers.good"], "{server}");
    }
    let world = World::new();
    world.write(USER, "mcp: {servers: {x: {command: a, comand: b}}}\n");
    let (problem, _) = world.problem();
    assert_eq!(
        (problem.message.as_str(), problem.help.as_deref()),
        ("unknown key `comand` is ignored", Some("did you mean `command`?"))
    );
}

#[test]
fn trust_in_all_projects_does_not_reach_into_a_repository_within_one() {
    let world = World::new();
    world.write(USER, "hooks: {trustWorkspace: true}\n");
    assert!(settings(&world).trust_workspace);
    assert_eq!(settings(&world).untrusted_projects, Vec::<std::path::PathBuf>::new());
    std::fs::create_dir_all(world.path("project/.git")).unwrap();
    std::fs::create_dir_all(world.path("project/clone/.git")).unwrap();
    let inner = world.places.standing_in(&world.path("project/clone"));
    let (catalog, _) = ollm_catalog::load(&inner, &|_| None, &ollm_catalog::Overrides::default());
    assert_eq!(catalog.settings.untrusted_projects, [world.path("project/clone")]);
}

#[test]
fn a_slip_for_a_guard_stops_everything_and_any_other_unknown_key_is_ignored() {
    for (setting, severity) in [
        ("untrustd: block", Severity::Fatal),
        ("guard: [destructive-commands]", Severity::Fatal),
        ("timout: 5s", Severity::Warning),
        ("colour: red", Severity::Warning),
    ] {
        for (file, severity) in [(USER, severity), (PROJECT, Severity::Warning)] {
            let world = World::new();
            world.write(file, format!("hooks:\n  {setting}\n"));
            let (problem, _) = world.problem();
            assert_eq!(problem.severity, severity, "{file}: {problem:?}");
            assert!(problem.message.starts_with("unknown key"), "{problem:?}");
        }
    }
}
