//! Extensions, case by case: what is found, what is refused and where, what is on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ollm_catalog::{Address, ExtensionState, Extensions, Origin, Problem, Severity};
use ollm_protocol::{Hook, Layer, Source};
use serde_json::{Value, json};

use crate::world::{World, ids, link};

/// A manifest with these further keys.
pub(crate) fn manifest(name: &str, more: &Value) -> String {
    let mut manifest = json!({"name": name, "version": "1.0.0", "description": "One"});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    manifest.to_string()
}

fn hook(event: &str, name: &str) -> Value {
    json!({"hooks": {event: [{"name": name, "command": "sh", "args": ["hooks/a.sh"]}]}})
}

fn names(extensions: &Extensions) -> Vec<&str> {
    extensions.iter().map(|extension| extension.name.as_str()).collect()
}

pub(crate) fn error<'a>(extensions: &'a Extensions, name: &str) -> &'a str {
    extensions.get(name).and_then(|extension| extension.error()).unwrap_or_default()
}

/// The only problem with a manifest.
pub(crate) fn problem(text: &str) -> Problem {
    let world = World::new();
    world.manifest("home", "a", text);
    let (extensions, problems) = world.extensions();
    assert_eq!(extensions.hooks().count(), 0);
    let [problem] = <[Problem; 1]>::try_from(problems).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert_eq!(problem.severity, Severity::Error);
    problem
}

#[test]
fn an_error_points_at_its_place_and_says_what_would_be_right() {
    let text = "{\n  \"name\": \"a\",\n  \"version\": \"1.0\",\n  \"description\": \"x\"\n}";
    let found = problem(text);
    assert_eq!((found.line, found.column, found.field.as_str()), (3, 14, "version"));
    assert_eq!(found.snippet.unwrap().text, "  \"version\": \"1.0\",");
    assert!(found.message.contains("not a semantic version"), "{}", found.message);
    assert!(found.help.unwrap().contains("1.2.0-beta.1"));
}

#[test]
fn every_field_is_checked_in_depth() {
    let cases = [
        (json!({"name": "A b"}), "name", "cannot be the name of an extension"),
        (json!({"name": "ollm"}), "name", "cannot be the name of an extension"),
        (json!({"version": 1}), "version", "must be text"),
        (json!({"version": "v1.0.0"}), "version", "not a semantic version"),
        (json!({"description": " "}), "description", "must be text that is not empty"),
        (json!({"manifestVersion": 2}), "manifestVersion", "manifestVersion 2 is newer than this program"),
        (json!({"manifestVersion": "1"}), "manifestVersion", "must be 1"),
        (json!({"keywords": "x"}), "keywords", "must be a list"),
        (json!({"author": 1}), "author", "must be text"),
        (json!({"hooks": []}), "hooks", "must be a map of events"),
        (json!({"hooks": {"before_tol": []}}), "hooks.before_tol", "before_tool"),
        (json!({"hooks": {"before_tool": {}}}), "hooks.before_tool", "must be a list"),
        (json!({"hooks": {"before_tool": [{"name": "x"}]}}), "hooks.before_tool[0]", "has no `command`"),
        (
            json!({"hooks": {"before_tool": [{"command": "sh", "args": ["../x"]}]}}),
            "hooks.before_tool[0].args[0]",
            "out of",
        ),
        (json!({"mcpServers": {"s": {}}}), "mcpServers.s", "neither `command` nor `url`"),
        (
            json!({"mcpServers": {"s": {"command": "x", "args": {"y": 1}}}}),
            "mcpServers.s.args",
            "must be a list of texts",
        ),
        (json!({"mcpServers": {"s": {"command": "x", "env": {"A": [1]}}}}), "mcpServers.s.env.A", "must be text"),
        (
            json!({"mcpServers": {"s": {"command": "x", "transport": "pigeon"}}}),
            "mcpServers.s.transport",
            "one of stdio, http, sse",
        ),
        (json!({"mcpServers": {"a/b": {"command": "x"}}}), "mcpServers.a/b", "cannot be the name of a server"),
        (json!({"settings": {}}), "settings", "must be a list"),
        (json!({"settings": [{"description": "x"}]}), "settings[0]", "has no `name`"),
        (json!({"settings": [{"name": "x"}]}), "settings[0]", "has no `description`"),
        (setting(&json!({"type": "text"})), "settings[0].type", "must be one of string, number"),
        (setting(&json!({"type": "integer", "default": 1.5})), "settings[0].default", "a whole number"),
        (setting(&json!({"enum": ["a"], "default": "b"})), "settings[0].default", "one of a"),
        (setting(&json!({"enum": ["a", 1]})), "settings[0].enum", "is not text"),
        (setting(&json!({"pattern": "("})), "settings[0].pattern", "no regular expression"),
        (setting(&json!({"envVar": "LD_PRELOAD"})), "settings[0].envVar", "already means something else"),
        (setting(&json!({"envVar": "A B"})), "settings[0].envVar", "name of a variable"),
        (setting(&json!({"sensitive": true, "default": "x"})), "settings[0].default", "cannot have a default"),
        (setting(&json!({"required": "yes"})), "settings[0].required", "true or false"),
        (json!({"skills": [{"name": "a", "description": "b"}]}), "skills[0]", "has no `prompt`"),
        (json!({"skills": [{"name": "a b", "description": "b", "prompt": "c"}]}), "skills[0].name", "name of a skill"),
        (json!({"dependencies": {"b": "one"}}), "dependencies.b", "no range of versions"),
        (json!({"dependencies": {"../b": "1"}}), "dependencies.../b", "cannot be the name"),
        (json!({"permissions": {"everything": true}}), "permissions.everything", "is no permission"),
        (json!({"permissions": {"shell": "yes"}}), "permissions.shell", "true or false"),
    ];
    for (more, field, message) in cases {
        let text = manifest("a", &more);
        let found = problem(&text);
        assert_eq!(found.field, field, "{more}");
        let shown = found.to_string();
        assert!(shown.contains(message), "{more}: {shown}");
        assert!(found.line > 0, "{more}");
    }
}

pub(crate) fn setting(more: &Value) -> Value {
    let mut setting = json!({"name": "x", "description": "y"});
    setting.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"settings": [setting]})
}

#[test]
fn everything_a_manifest_may_hold_is_taken() {
    let world = World::new();
    world.manifest(
        "home",
        "all",
        r#"{
            "$schema": "x", "manifestVersion": 1, "name": "every", "version": "1.2.3-rc.1+build", "description": "All",
            "author": {"name": "Ann", "email": "a@example.org"}, "license": "MIT", "homepage": "https://example.org",
            "repository": {"type": "git", "url": "https://example.org/all.git"}, "keywords": ["x"],
            "mcpServers": {"s": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${B}"}, "timeout": 100},
                           "t": {"url": "https://example.org/mcp", "transport": "http"}},
            "hooks": {"PreToolUse": [{"name": "a", "command": "sh", "args": ["a.sh"]}], "custom:x": []},
            "settings": [{"name": "x", "description": "y", "type": "integer", "enum": [1, 2], "default": 1}],
            "skills": [{"name": "s", "description": "t", "prompt": "u {{v}}"}],
            "permissions": {"filesystem": ["."], "network": ["example.org"], "env": ["B"], "shell": false, "mcp": true}
        }"#,
    );
    let (extensions, problems) = world.extensions();
    assert_eq!(problems, []);
    let all = extensions.get("every").unwrap();
    assert_eq!(all.state, ExtensionState::On);
    assert_eq!(all.manifest.author.as_deref(), Some("Ann"));
    assert_eq!(all.manifest.repository.as_deref(), Some("https://example.org/all.git"));
    assert_eq!(all.manifest.servers.keys().collect::<Vec<_>>(), ["s", "t"]);
    assert_eq!(
        all.manifest.permissions.lines(),
        ["filesystem: .", "network: example.org", "env: B", "shell: none", "mcp"]
    );
    assert_eq!(ids(&all.hooks), ["user:every:PreToolUse:a"]);
    assert_eq!(extensions.servers().count(), 1);
}

#[test]
fn servers_are_read_from_the_folder_they_run_from_and_say_where_they_are_declared() {
    let world = World::new();
    let manifest = |script: &str| {
        let servers = format!(r#"{{"s": {{"command": "node", "args": ["{script}"], "cwd": "lib"}}}}"#);
        format!("{{\"name\": \"x\", \"version\": \"1.0.0\", \"description\": \"d\",\n \"mcpServers\": {servers}}}")
    };
    world.manifest("home", "x", manifest("new.js"));
    let (extensions, _) = world.extensions();
    let extension = extensions.get("x").unwrap();
    let copy = tempfile::tempdir().unwrap();
    fs::write(copy.path().join("manifest.json"), manifest("approved.js")).unwrap();
    let (servers, problems) = extension.servers_in(copy.path());
    assert_eq!(problems, []);
    let Address::Command { args, cwd, .. } = &servers[0].address else { panic!("{servers:?}") };
    assert_eq!(*args, [copy.path().join("approved.js").display().to_string()]);
    assert_eq!(cwd.as_deref(), Some(copy.path().join("lib").as_path()));
    let origin = &servers[0].origin;
    assert_eq!((&origin.file, origin.line, origin.column), (&extension.file(), 2, 17));
    assert_eq!((servers[0].source, servers[0].extension.as_deref()), (Source::Extension, Some("x")));
}

#[test]
fn unknown_keys_are_told_and_do_no_harm() {
    let world = World::new();
    world.manifest(
        "home",
        "a",
        manifest("a", &json!({"hook": {}, "settings": [{"name": "x", "description": "y", "defalt": 1}]})),
    );
    let (extensions, problems) = world.extensions();
    assert!(extensions.get("a").unwrap().is_on());
    let helps: Vec<_> = problems.iter().map(|problem| (problem.severity, problem.help.clone().unwrap())).collect();
    assert_eq!(
        helps,
        [
            (Severity::Warning, "did you mean `hooks`?".to_owned()),
            (Severity::Warning, "did you mean `default`?".to_owned())
        ]
    );
}

#[test]
fn e1_what_is_on_by_itself_really_brings_its_hooks() {
    let world = World::new();
    world.manifest("home", "a", manifest("a", &hook("before_tool", "x")));
    let (extensions, _) = world.extensions();
    assert_eq!(extensions.hooks().count(), 1);
}

#[test]
fn e2_an_extension_of_a_project_below_the_home_is_the_projects() {
    let mut world = World::new();
    let project = world.path("home/work/project");
    fs::create_dir_all(project.join(".ollm")).unwrap();
    world.places.project = Some(project);
    world.manifest("home", "mine", manifest("mine", &hook("before_tool", "x")));
    world.manifest("home/work/project", "theirs", manifest("theirs", &hook("before_tool", "x")));
    let (extensions, _) = world.extensions();
    let found: Vec<_> = extensions.iter().map(|one| (one.name.as_str(), one.layer, one.hooks[0].spec.source)).collect();
    assert_eq!(found, [("mine", Layer::User, Source::Extension), ("theirs", Layer::Workspace, Source::Extension)]);
}

#[test]
fn a_folder_that_the_user_names_is_the_users_wherever_one_stands() {
    let mut world = World::new();
    world.manifest("home", "same", manifest("same", &hook("before_tool", "x")));
    world.manifest("project", "own", manifest("own", &hook("before_tool", "x")));
    for name in ["shared", "same"] {
        world.write(&format!("project/ext/{name}/manifest.json"), manifest(name, &hook("before_tool", "x")));
    }
    let named =
        [world.path("project/ext"), world.path("project/.ollm/extensions")].map(|path| path.display().to_string());
    let directories = [".ollm/extensions", "ext", &named[0], &named[1], "~/.ollm/extensions"];
    world.write("home/.ollm/config.yaml", json!({"extensions": {"directories": directories}}).to_string());
    let found = |world: &World| -> Vec<(PathBuf, Layer, bool)> {
        let all = world.extensions().0;
        all.iter().map(|one| (one.root.clone(), one.layer, one.is_on())).collect()
    };
    let inside = found(&world);
    world.places.project = None;
    assert_eq!(inside, found(&world));
    let expected = [
        ("home/.ollm/extensions/same", true),
        ("project/ext/same", false),
        ("project/ext/shared", true),
        ("project/.ollm/extensions/own", true),
    ];
    assert_eq!(inside, expected.map(|(root, on)| (world.path(root), Layer::User, on)));
}

#[test]
fn e3_two_hooks_with_one_name_at_different_events_run_each_their_own_command() {
    let world = World::new();
    let hooks = json!({"hooks": {
        "before_tool": [{"name": "x", "command": "sh", "args": ["one.sh"]}],
        "after_tool": [{"name": "x", "command": "sh", "args": ["two.sh"]}],
    }});
    world.manifest("home", "a", manifest("a", &hooks));
    let (extensions, _) = world.extensions();
    let hooks = &extensions.get("a").unwrap().hooks;
    assert_eq!(ids(hooks), ["user:a:before_tool:x", "user:a:after_tool:x"]);
    let scripts: Vec<_> = hooks.iter().map(|hook| hook.script().unwrap().file_name().unwrap()).collect();
    assert_eq!(scripts, ["one.sh", "two.sh"]);
}

#[test]
fn e4_relative_scripts_are_found_in_the_extension_and_all_of_it_belongs_to_the_hook() {
    let world = World::new();
    world.manifest("home", "a", manifest("a", &hook("before_tool", "x")));
    let (extensions, _) = world.extensions();
    let hook = &extensions.get("a").unwrap().hooks[0];
    assert_eq!(hook.script(), Some(&world.path("home/.ollm/extensions/a/hooks/a.sh")));
    assert_eq!(hook.spec.tree, Some(world.path("home/.ollm/extensions/a")));
    assert_eq!(hook.spec.extension.as_deref(), Some("a"));
}

#[test]
fn e5_ids_are_the_same_every_time() {
    let world = World::new();
    let nameless =
        json!({"hooks": {"before_tool": [{"command": "sh", "args": ["a.sh"]}, {"command": "sh", "args": ["a.sh"]}]}});
    world.manifest("project", "a", manifest("a", &nameless));
    let first: Vec<String> = world.extensions().0.hooks().map(|hook| hook.id().to_owned()).collect();
    let second: Vec<String> = world.extensions().0.hooks().map(|hook| hook.id().to_owned()).collect();
    assert_eq!(first, second);
    assert!(first[0].starts_with("workspace:a:before_tool:") && first[1].ends_with("#2"), "{first:?}");
}

#[test]
fn e12_d13_a_cycle_is_printed_with_its_path_and_the_others_load() {
    let world = World::new();
    for (name, needs) in [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "f"), ("f", "g")] {
        world.manifest("home", name, manifest(name, &json!({"dependencies": {needs: "^1"}})));
    }
    world.manifest("home", "g", manifest("g", &json!({})));
    let (extensions, problems) = world.extensions();
    assert!(error(&extensions, "a").contains("a → b → c → a"), "{}", error(&extensions, "a"));
    assert!(error(&extensions, "b").contains("b → c → a → b"), "{}", error(&extensions, "b"));
    assert!(error(&extensions, "d").contains("it needs the extension `a`, which cannot be loaded"));
    assert_eq!(problems.len(), 4);
    let on: Vec<&str> = extensions.iter().filter(|one| one.is_on()).map(|one| one.name.as_str()).collect();
    assert_eq!(on, ["g", "f", "e"], "each stands behind what it needs");
}

#[test]
fn d13_a_missing_dependency_disables_only_who_needs_it() {
    let world = World::new();
    world.manifest("home", "a", manifest("a", &json!({"dependencies": {"nobody": "*"}})));
    world.manifest("home", "self", manifest("self", &json!({"dependencies": {"self": "*"}})));
    world.manifest("home", "b", manifest("b", &json!({"dependencies": {"c": ">=2 <3"}})));
    world.manifest("home", "c", manifest("c", &json!({})));
    world.manifest("home", "e", manifest("e", &json!({"dependencies": {"off": "1"}})));
    world.manifest("home", "off", manifest("off", &json!({})));
    world.manifest("project", "p", manifest("p", &json!({"dependencies": {"c": "1.0.0"}})));
    world.manifest("home", "u", manifest("u", &json!({"dependencies": {"p": "*"}})));
    world.switch("off", false);
    let (extensions, _) = world.extensions();
    for (name, part) in [
        ("a", "which is not there"),
        ("self", "self → self"),
        ("b", "version 1.0.0 is there"),
        ("e", "`mine enable off` switches it on"),
        ("u", "only this project has"),
    ] {
        assert!(error(&extensions, name).contains(part), "{name}: {}", error(&extensions, name));
    }
    assert!(extensions.get("c").unwrap().is_on() && extensions.get("p").unwrap().is_on());
}

#[test]
fn a_manifest_that_is_no_json_says_what_would_be_right() {
    for (text, place, help) in [
        ("", "manifest.json:1:1: it is empty", "write one first"),
        (" \n", "manifest.json:1:1: it is empty", "write one first"),
        ("nonsense", "manifest.json:1:1: ", "the only bare words are true, false and null"),
        ("{\"name\": \"a\"\n \"version\": 1}", "manifest.json:1:13: ", "put a comma between the two"),
        ("{name: 1}", "manifest.json:1:2: ", "write every key in double quotes"),
        ("{\"name\" \"a\"}", "manifest.json:1:9: ", "put a colon between the key and its value"),
        ("{\"name\": \"C:\\x\"}", "manifest.json:1:13: ", "write a backslash as \\\\"),
        ("{\"name\": 01}", "manifest.json:1:11: ", "write numbers as 1, -2.5 or 3e8"),
        ("{\"a\": [{\"b\": 1]}", "manifest.json:1:15: ", "close the object before it with }"),
        ("{\"a\": [1]]}", "manifest.json:1:10: ", "close the object before it with }, or remove the bracket"),
        ("{\"a\": [1}", "manifest.json:1:9: ", "close the list before it with ], or remove the bracket"),
        ("{\"name\": \"a\",}", "manifest.json:1:13: ", "remove the comma before the closing bracket"),
    ] {
        let world = World::new();
        world.write("home/.ollm/extensions/a/manifest.json", text);
        let (extensions, _) = world.extensions();
        let error = error(&extensions, "a");
        assert!(error.contains(place) && error.contains(help), "{text}: {error}");
    }
}

#[test]
fn e12_a_missing_required_setting_names_the_command_that_mends_it() {
    let mut world = World::new();
    let settings = json!({"settings": [
        {"name": "token", "description": "x", "required": true, "sensitive": true, "envVar": "MY_TOKEN"},
        {"name": "mode", "description": "x", "required": true},
    ]});
    world.manifest("home", "a", manifest("a", &settings));
    let (extensions, _) = world.extensions();
    let place = world.places.home.join("extensions/a/manifest.json").display().to_string();
    let said = |column, index, name| {
        let field = format!("settings[{index}].name = \"{name}\"");
        format!(
            "{place}:1:{column}: setting `{name}` is required and not set ({field}); `mine set a {name}` sets it [C005]"
        )
    };
    let both = format!(
        "{place}:1:71: settings `token`, `mode` are required and not set (settings[0].name = \"token\"); set them: \
         `mine set a token`, `mine set a mode` [C005]"
    );
    assert_eq!(error(&extensions, "a"), both);
    world.env.insert("MY_TOKEN".into(), "t0p".into());
    let (extensions, _) = world.extensions();
    assert_eq!(error(&extensions, "a"), said(159, 1, "mode"));
    world.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    a:\n      mode: strict\n");
    assert!(world.extensions().0.get("a").unwrap().is_on());
}

#[test]
fn a_variable_wins_over_what_was_set_and_that_over_the_default() {
    let mut world = World::new();
    let settings = json!({"hooks": hook("before_tool", "x")["hooks"], "settings": [
        {"name": "apiLevel", "description": "x", "default": 1, "envVar": "LEVEL"},
        {"name": "token", "description": "x", "sensitive": true},
    ]});
    world.manifest("home", "my-ext", manifest("my-ext", &settings));
    let level = |world: &World| {
        let (extensions, problems) = world.extensions();
        assert_eq!(problems, []);
        let value = &extensions.get("my-ext").unwrap().values[0];
        (value.value.clone().unwrap(), value.origin.clone())
    };
    assert_eq!(level(&world), (json!(1), Origin::Default));
    let file = world.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    my-ext:\n      apiLevel: 2\n");
    assert_eq!(level(&world), (json!(2), Origin::File { layer: Layer::User, file, line: 4, column: 17 }));
    world.env.insert("LEVEL".into(), "3".into());
    assert_eq!(level(&world), (json!(3), Origin::Variable("LEVEL".into())));
    world.secret("my-ext", "token", "t0p-s3cret");
    let (extensions, _) = world.extensions();
    let given: Vec<_> = extensions.get("my-ext").unwrap().hooks[0]
        .settings
        .iter()
        .map(|one| (one.name.as_str(), one.value.known().unwrap(), one.secret))
        .collect();
    assert_eq!(
        given,
        [
            ("LEVEL", "3", false),
            ("EXTENSION_MY_EXT_API_LEVEL", "3", false),
            ("EXTENSION_MY_EXT_TOKEN", "t0p-s3cret", true),
        ]
    );
}

#[test]
fn e13_what_breaks_while_a_process_lives_stays_what_it_was() {
    let world = World::new();
    world.manifest("home", "a", manifest("a", &hook("before_tool", "x")));
    world.manifest("home", "b", manifest("b", &json!({})));
    let (before, _) = world.extensions();
    assert!(world.reload(&before).1.is_empty());
    world.manifest("home", "a", "{\"name\": \"a\", ");
    fs::remove_dir_all(world.path("home/.ollm/extensions/b")).unwrap();
    world.manifest("home", "c", manifest("c", &json!({})));
    let (now, changes, _) = world.reload(&before);
    assert_eq!(ids(&now.get("a").unwrap().hooks), ["user:a:before_tool:x"]);
    assert!(now.get("a").unwrap().is_on());
    assert_eq!((changes.added, changes.removed), (vec!["c".to_owned()], vec!["b".to_owned()]));
    assert!(changes.kept[0].0 == "a" && changes.kept[0].1.contains("not valid JSON"), "{:?}", changes.kept);
    world.manifest("home", "a", manifest("a", &hook("after_tool", "y")));
    let (mended, changes, _) = world.reload(&now);
    assert_eq!(changes.updated, ["a"]);
    assert_eq!(ids(&mended.get("a").unwrap().hooks), ["user:a:after_tool:y"]);
}

#[test]
fn a_reload_notices_settings_switches_and_rules_though_no_manifest_changed() {
    let mut world = World::new();
    let more = json!({"hooks": hook("before_tool", "x")["hooks"], "settings": [
        {"name": "level", "description": "x", "default": "low", "envVar": "LEVEL", "required": true}
    ]});
    world.manifest("home", "a", manifest("a", &more));
    let (first, _) = world.extensions();
    let level = |extensions: &Extensions| {
        extensions.hooks().next().map(|hook| hook.settings[0].value.known().map(str::to_owned))
    };
    assert_eq!(level(&first), Some(Some("low".to_owned())));
    world.env.insert("LEVEL".into(), "high".into());
    let (second, changes, _) = world.reload(&first);
    assert_eq!((level(&second), changes.updated), (Some(Some("high".to_owned())), vec!["a".to_owned()]));
    world.switch("a", false);
    let (third, changes, _) = world.reload(&second);
    assert_eq!((third.hooks().count(), changes.updated), (0, vec!["a".to_owned()]));
    world.switch("a", true);
    world.write("home/.ollm/config.yaml", "hooks:\n  whitelist: [node]\n");
    let (fourth, changes, problems) = world.reload(&third);
    assert!(error(&fourth, "a").contains("sh"), "{:?}", fourth.get("a").unwrap().state);
    assert_eq!((fourth.hooks().count(), problems.len(), changes.updated), (0, 1, vec!["a".to_owned()]));
}

#[test]
fn of_two_with_one_name_the_users_counts_and_both_are_seen() {
    let world = World::new();
    world.manifest("project", "x", manifest("same", &hook("before_tool", "theirs")));
    world.manifest("home", "y", manifest("same", &hook("before_tool", "mine")));
    world.manifest("home", "z", manifest("same", &json!({})));
    let (extensions, problems) = world.extensions();
    assert_eq!(names(&extensions), ["same", "same", "same"]);
    assert_eq!(extensions.hooks().map(Hook::id).collect::<Vec<_>>(), ["user:same:before_tool:mine"]);
    assert_eq!(extensions.get("same").unwrap().root, world.path("home/.ollm/extensions/y"));
    assert_eq!(problems.iter().filter(|problem| problem.message.contains("is taken by")).count(), 2);
}

#[test]
fn links_that_lead_out_are_refused_and_those_of_the_user_are_followed() {
    let world = World::new();
    let outside = world.write("elsewhere/manifest.json", manifest("outside", &json!({})));
    let folder = outside.parent().unwrap().to_owned();
    for whose in ["home", "project"] {
        fs::create_dir_all(world.path(&format!("{whose}/.ollm/extensions/inner"))).unwrap();
    }
    link(&folder, world.path("project/.ollm/extensions/linked"));
    link(&outside, world.path("project/.ollm/extensions/inner/manifest.json"));
    link("nowhere", world.path("home/.ollm/extensions/dangling"));
    let (extensions, _) = world.extensions();
    assert!(error(&extensions, "linked").contains("leads out of the project"));
    assert!(error(&extensions, "inner").contains("leads out of the extension"));
    assert!(error(&extensions, "dangling").contains("a link to nothing"));
    assert!(extensions.get("outside").is_none());
    link(&folder, world.path("home/.ollm/extensions/linked"));
    assert!(world.extensions().0.get("outside").unwrap().is_on());
}

#[test]
fn what_cannot_be_read_is_seen_under_its_folders_name_and_hides_nothing() {
    let world = World::new();
    world.manifest("home", "good", manifest("good", &json!({})));
    world.manifest("home", "huge", vec![b' '; 10 << 20]);
    world.manifest("home", "broken", "{");
    world.manifest("home", "binary", [0xff, 0xfe]);
    world.manifest("home", "list", "[]");
    fs::create_dir_all(world.path("home/.ollm/extensions/folder/manifest.json")).unwrap();
    fs::create_dir_all(world.path("home/.ollm/extensions/empty")).unwrap();
    fs::create_dir_all(world.path("home/.ollm/extensions/.hidden")).unwrap();
    let locked = world.manifest("home", "locked", manifest("locked", &json!({})));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let (extensions, problems) = world.extensions();
    assert!(extensions.get("good").unwrap().is_on());
    assert!(error(&extensions, "huge").contains("at most"));
    assert!(error(&extensions, "broken").contains("not valid JSON"));
    assert!(error(&extensions, "binary").contains("UTF-8"));
    assert!(error(&extensions, "list").contains("must be a map"));
    assert!(error(&extensions, "folder").contains("not a regular file"));
    assert!(extensions.get("empty").is_none() && extensions.get(".hidden").is_none());
    // Root may read everything.
    if fs::read(&locked).is_err() {
        assert!(error(&extensions, "locked").contains("chmod u+r"), "{}", error(&extensions, "locked"));
    }
    assert!(problems.len() >= 5);
}

#[test]
fn many_are_read_at_once_and_stay_in_order() {
    let world = World::new();
    let mut wanted = Vec::new();
    for number in 0..100 {
        let name = format!("e{number:03}");
        let text = if number % 7 == 3 { "{".to_owned() } else { manifest(&name, &hook("before_tool", "x")) };
        world.manifest(if number < 60 { "home" } else { "project" }, &name, text);
        wanted.push(name);
    }
    let (extensions, problems) = world.extensions();
    assert_eq!(names(&extensions), wanted);
    assert_eq!(problems.len(), (0..100).filter(|number| number % 7 == 3).count());
    assert_eq!(extensions.hooks().count(), 100 - problems.len());
}

#[test]
fn skills_have_files_of_their_own_too() {
    let world = World::new();
    let inline = json!({"skills": [{"name": "one", "description": "d", "prompt": "p"}]});
    world.manifest("home", "a", manifest("a", &inline));
    let write = |name: &str, text: &str| world.write(&format!("home/.ollm/extensions/a/skills/{name}"), text);
    write("two.md", "---\ndescription: Second\n---\nDo {{this}}.\n");
    write("named.md", "---\nname: three\ndescription: Third\nallowed-tools: [a]\n---\nText\n");
    write("one.md", "---\ndescription: Again\n---\nText\n");
    write("bare.md", "no front matter");
    write("empty.md", "---\ndescription: x\n---\n\n");
    write("notes.txt", "not a skill");
    link(world.path("home"), world.path("home/.ollm/extensions/a/skills/out.md"));
    let (extensions, _) = world.extensions();
    let (skills, problems) = extensions.get("a").unwrap().skills();
    let found: Vec<_> = skills.iter().map(|skill| (skill.name.as_str(), skill.prompt.as_str())).collect();
    assert_eq!(found, [("one", "p"), ("three", "Text"), ("two", "Do {{this}}.")]);
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.clone()).collect();
    assert_eq!(problems.len(), 4, "{messages:#?}");
}

#[test]
fn a_setting_nobody_declared_is_told() {
    let world = World::new();
    let settings = json!({"settings": [{"name": "mode", "description": "x"}]});
    world.manifest("home", "a", manifest("a", &settings));
    world.write(
        "home/.ollm/config.yaml",
        "extensions:\n  settings:\n    a:\n      mod: strict\n    gone:\n      x: 1\n",
    );
    let (_, problems) = world.extensions();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `mode`?"));
}
