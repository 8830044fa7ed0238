//! Changing a configuration: one value changes, everything else stays unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ollm_catalog::{Edit, EditError, change_config, migrate_config};
use ollm_protocol::Layer;

use crate::world::{World, link};

const USER: &str = "home/.ollm/config.yaml";
const PROJECT: &str = "project/.ollm/config.yaml";

fn set(world: &World, path: &str, value: &str) -> Result<String, EditError> {
    change_config(&world.places, Layer::User, path, Edit::Set(value))?;
    Ok(fs::read_to_string(world.path(USER)).unwrap())
}

fn unset(world: &World, path: &str) -> Result<String, EditError> {
    change_config(&world.places, Layer::User, path, Edit::Unset)?;
    Ok(fs::read_to_string(world.path(USER)).unwrap())
}

/// A file, a setting, a value, and the file then.
type Case = (&'static str, &'static str, &'static str, &'static str);

fn assert_set(cases: &[Case]) {
    for (before, path, value, after) in cases {
        let world = World::new();
        world.write(USER, before);
        let text = set(&world, path, value).unwrap_or_else(|error| panic!("{before:?} {path}: {error}"));
        assert_eq!(text, *after, "{before:?} {path} {value}");
        assert_eq!(set(&world, path, value).unwrap(), *after, "twice: {before:?} {path} {value}");
    }
}

#[test]
fn a_value_is_put_where_it_belongs_and_nothing_else_moves() {
    assert_set(&[
        // Nothing is there yet.
        ("", "hooks.timeout", "5s", "hooks:\n  timeout: 5s\n"),
        ("# mine\n", "hooks.timeout", "5s", "# mine\nhooks:\n  timeout: 5s\n"),
        ("# mine", "hooks.timeout", "5s", "# mine\nhooks:\n  timeout: 5s\n"),
        ("{}\n", "hooks.timeout", "5s", "{hooks: {timeout: 5s}}\n"),
        ("---\n# mine\n", "hooks.timeout", "5s", "---\n# mine\nhooks:\n  timeout: 5s\n"),
        // A value is there.
        ("hooks:\n  timeout: 1 # why\n", "hooks.timeout", "5s", "hooks:\n  timeout: 5s # why\n"),
        ("hooks:\n  timeout: '1s' # why\n", "hooks.timeout", "2", "hooks:\n  timeout: 2 # why\n"),
        ("hooks: {timeout: 1, enabled: true}\n", "hooks.timeout", "5s", "hooks: {timeout: 5s, enabled: true}\n"),
        ("hooks:\n  timeout:\n  enabled: true\n", "hooks.timeout", "5s", "hooks:\n  timeout: 5s\n  enabled: true\n"),
        ("hooks:\n  timeout: # soon\n", "hooks.timeout", "5s", "hooks:\n  timeout: 5s # soon\n"),
        ("hooks:\n  timeout: ~\n", "hooks.timeout", "5s", "hooks:\n  timeout: 5s\n"),
        ("\"hooks\":\n  \"timeout\": 1\n", "hooks.timeout", "5s", "\"hooks\":\n  \"timeout\": 5s\n"),
        ("{\"hooks\": {\"timeout\": 1}}", "hooks.timeout", "5s", "{\"hooks\": {\"timeout\": 5s}}"),
        // The section is there.
        (
            "hooks:\n  enabled: true\nmcp:\n  enabled: true\n",
            "hooks.timeout",
            "5s",
            "hooks:\n  enabled: true\n  timeout: 5s\nmcp:\n  enabled: true\n",
        ),
        (
            "hooks:\n    enabled: true # a\n# b\n",
            "hooks.timeout",
            "5s",
            "hooks:\n    enabled: true # a\n    timeout: 5s\n# b\n",
        ),
        ("hooks:\nmcp: {}\n", "hooks.timeout", "5s", "hooks:\n  timeout: 5s\nmcp: {}\n"),
        ("hooks: # a\nmcp: {}\n", "hooks.timeout", "5s", "hooks: # a\n  timeout: 5s\nmcp: {}\n"),
        ("hooks: {}\n", "hooks.timeout", "5s", "hooks: {timeout: 5s}\n"),
        ("hooks: null\n", "hooks.timeout", "5s", "hooks: {timeout: 5s}\n"),
        ("hooks: {enabled: true}\n", "hooks.timeout", "5s", "hooks: {enabled: true, timeout: 5s}\n"),
        (
            "hooks:\n  guards: [\n    self-protection, # ]\n  ]\nmcp:\n",
            "hooks.timeout",
            "5s",
            "hooks:\n  guards: [\n    self-protection, # ]\n  ]\n  timeout: 5s\nmcp:\n",
        ),
        (
            "hooks:\n  whitelist:\n    - sh\n    - deno\n\nmcp:\n",
            "hooks.timeout",
            "5s",
            "hooks:\n  whitelist:\n    - sh\n    - deno\n  timeout: 5s\n\nmcp:\n",
        ),
        ("model:\n  system: |\n    a\n    b\n", "model.name", "x", "model:\n  system: |\n    a\n    b\n  name: x\n"),
        (
            "model:\n  name: |\n    a # b\n    c\n  provider: x\n",
            "model.name",
            "d",
            "model:\n  name: d\n  provider: x\n",
        ),
        ("model:\n  name: | # two lines\n    a\n    b\n", "model.name", "c", "model:\n  name: c # two lines\n"),
        ("model:\n  name: >-\n    a\n\n# c\n", "model.name", "d", "model:\n  name: d\n\n# c\n"),
        ("hooks:\r\n  enabled: true\r\n", "hooks.timeout", "5s", "hooks:\r\n  enabled: true\r\n  timeout: 5s\r\n"),
        (
            "extensions:\r\n  enabled: true\r\nhooks:\r\n",
            "extensions.settings.a.b",
            "x",
            "extensions:\r\n  enabled: true\r\n  settings:\r\n    a:\r\n      b: x\r\nhooks:\r\n",
        ),
        ("hooks:\n  enabled: true", "hooks.timeout", "5s", "hooks:\n  enabled: true\n  timeout: 5s"),
        (
            "\u{feff}hooks:\n  enabled: true\n",
            "hooks.timeout",
            "5s",
            "\u{feff}hooks:\n  enabled: true\n  timeout: 5s\n",
        ),
        (
            "hooks:\n  enabled: true\n",
            "hooks.rateLimit.perMinute",
            "5",
            "hooks:\n  enabled: true\n  rateLimit:\n    perMinute: 5\n",
        ),
        (
            "hooks:\n  rateLimit:\n    cooldownMs: 1\n",
            "hooks.rateLimit.perMinute",
            "5",
            "hooks:\n  rateLimit:\n    cooldownMs: 1\n    perMinute: 5\n",
        ),
        (
            "hooks:\n  enabled: true\n...\n",
            "mcp.enabled",
            "false",
            "hooks:\n  enabled: true\nmcp:\n  enabled: false\n...\n",
        ),
    ]);
}

#[test]
fn a_value_is_written_so_that_it_is_read_as_it_was_meant() {
    assert_set(&[
        // Lists and maps.
        ("hooks: {whitelist: [sh, \"]\"]}\n", "hooks.whitelist", "deno", "hooks: {whitelist: [deno]}\n"),
        (
            "hooks:\n  whitelist:\n    - sh\n    - deno\n  enabled: true\n",
            "hooks.whitelist",
            "deno,node",
            "hooks:\n  whitelist: [deno, node]\n  enabled: true\n",
        ),
        ("", "hooks.trustWorkspace", "[/a b, ~/c]", "hooks:\n  trustWorkspace: [/a b, ~/c]\n"),
        ("", "hooks.trustWorkspace", "~/src", "hooks:\n  trustWorkspace: [~/src]\n"),
        ("", "hooks.http.allow", "[::1]:8080, localhost", "hooks:\n  http:\n    allow: [\"[::1]:8080\", localhost]\n"),
        (
            "",
            "mcp.servers.git",
            "{command: npx, args: [-y, \"@x/git\"]}",
            "mcp:\n  servers:\n    git:\n      command: npx\n      args: [\"-y\", \"@x/git\"]\n",
        ),
        (
            "mcp:\n  servers:\n    git:\n      command: npx\n",
            "mcp.servers.git.timeout",
            "5s",
            "mcp:\n  servers:\n    git:\n      command: npx\n      timeout: 5s\n",
        ),
        // Values that need a word about their type.
        ("", "hooks.enabled", "yes", "hooks:\n  enabled: true\n"),
        ("", "model.name", "4", "model:\n  name: \"4\"\n"),
        ("", "model.name", "llama3.2:3b", "model:\n  name: llama3.2:3b\n"),
        ("", "model.name", "a: b # \"c\"", "model:\n  name: \"a: b # \\\"c\\\"\"\n"),
        ("", "model.temperature", "0.5", "model:\n  temperature: 0.5\n"),
        ("", "extensions.settings.git.repo", "a/b", "extensions:\n  settings:\n    git:\n      repo: a/b\n"),
    ]);
}

#[test]
fn a_value_is_taken_away_with_its_line_and_nothing_else() {
    for (before, path, after) in [
        ("hooks:\n  timeout: 1 # why\n  # b\n  enabled: true\n", "hooks.timeout", "hooks:\n  # b\n  enabled: true\n"),
        ("hooks:\n  timeout: 1\n", "hooks.timeout", "hooks:\n"),
        ("hooks: {timeout: 1, enabled: true}\n", "hooks.timeout", "hooks: {enabled: true}\n"),
        ("hooks: {timeout: 1, enabled: true}\n", "hooks.enabled", "hooks: {timeout: 1}\n"),
        ("hooks: {timeout: 1}\n", "hooks.timeout", "hooks: {}\n"),
        ("hooks: {\n  timeout: 1,\n  enabled: true\n}\n", "hooks.enabled", "hooks: {\n  timeout: 1\n}\n"),
        (
            "hooks:\n  whitelist:\n    - sh\n    - deno\n  enabled: true\n",
            "hooks.whitelist",
            "hooks:\n  enabled: true\n",
        ),
        ("hooks:\n  timeout:\n  enabled: true\n", "hooks.timeout", "hooks:\n  enabled: true\n"),
        ("hooks:\n  enabled: true\n", "hooks.timeout", "hooks:\n  enabled: true\n"),
        ("hooks:\n  enabled: true\n  timeout: 5", "hooks.timeout", "hooks:\n  enabled: true\n"),
        (
            "mcp:\n  servers:\n    a:\n      command: x\n    b:\n      command: y\n",
            "mcp.servers.a",
            "mcp:\n  servers:\n    b:\n      command: y\n",
        ),
    ] {
        let world = World::new();
        world.write(USER, before);
        assert_eq!(unset(&world, path).unwrap(), after, "{before:?} {path}");
    }
}

#[test]
fn a_form_that_cannot_be_changed_safely_is_left_alone_and_the_way_is_named() {
    for (before, path, value, at) in [
        // An anchor that other places use.
        ("hooks: &h\n  rateLimit: &r {cooldownMs: 1}\nmodel: {extra: *r}\n", "hooks.rateLimit.perMinute", "5", 2),
        // A list whose comments would be lost.
        ("hooks:\n  whitelist:\n    - sh # the shell\n    - deno\n", "hooks.whitelist", "deno", 3),
        ("hooks:\n  whitelist: [ # two\n    sh, deno]\n", "hooks.whitelist", "deno", 2),
        // A key in the long form.
        ("hooks:\n  ? timeout\n  : 5\n", "hooks.timeout", "7s", 2),
        // A merged map.
        ("model: &m {a: 1}\nhooks:\n  rateLimit:\n    <<: *m\n    cooldownMs: 1\n", "model.a", "2", 1),
        // Something else is in the way.
        ("mcp: {}\nhooks: 5\n", "hooks.timeout", "7s", 2),
    ] {
        let world = World::new();
        let file = world.write(USER, before);
        let error = set(&world, path, value).unwrap_err();
        let EditError::ByHand { way, line, .. } = &error else { panic!("{before}: {error:?}") };
        assert!(way.starts_with("write `"), "{way}");
        assert_eq!(*line, at, "{before}");
        assert_eq!(fs::read_to_string(file).unwrap(), before);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let world = World::new();
    for (path, value, message) in [
        ("hooks.timeout", "soon", "`hooks.timeout` must be a positive number of milliseconds"),
        ("hooks.timeout", "0", "`hooks.timeout` must be a positive number"),
        ("hooks.untrusted", "blok", "`hooks.untrusted` must be skip or block, not `blok`"),
        ("hooks.whitelist", "rm -rf", "`hooks.whitelist` must be a list of program names"),
        ("hooks.enabled", "", "`hooks.enabled` must be true or false, not ``"),
        ("hooks.timout", "5", "there is no setting `hooks.timout`"),
        ("hooks", "5", "there is no setting `hooks`"),
        ("", "5", "there is no setting ``"),
        ("mcp.servers.x.args", "[a]", "the server has neither `command` nor `url`"),
        ("mcp.servers.x", "{args: 5}", "`args` must be a list of texts"),
        ("mcp.servers.x", "{command: a, permissions: {nett: true}}", "unknown key `nett`; the server is not loaded"),
        ("model.baseUrl", "ftp://x", "`model.baseUrl` must be an address that begins with http"),
    ] {
        let error = set(&world, path, value).unwrap_err();
        assert!(error.to_string().contains(message), "{path} {value}: {error}");
        assert!(!world.path(USER).exists(), "{path} {value}");
    }
    let near = |path: &str| match set(&world, path, "5").unwrap_err() {
        EditError::Unknown { near, .. } => near,
        error => panic!("{error}"),
    };
    assert_eq!(near("hooks.timout").as_deref(), Some("hooks.timeout"));
    assert_eq!(near("mcp.servers.a.permisions").as_deref(), Some("mcp.servers.a.permissions"));
    assert_eq!(near("mcp.servers.a.permissions.net").as_deref(), Some("mcp.servers.a.permissions"));
    assert_eq!(near("hoks.timeout").as_deref(), Some("hooks.timeout"));
    assert_eq!(near("hooksEnabled").as_deref(), Some("hooks.enabled"));
    assert_eq!(near("hooks.trust_workspace").as_deref(), Some("hooks.trustWorkspace"));
    assert_eq!(near("colour"), None);
}

#[test]
fn a_project_is_only_given_what_it_may_say() {
    let world = World::new();
    let set = |path: &str, value: &str| change_config(&world.places, Layer::Workspace, path, Edit::Set(value));
    world.write(USER, "mcp: {servers: {mine: {command: a}}}\nmodel: {maxTokens: 100}\n");
    for (path, value) in [
        ("hooks.enabled", "false"),
        ("hooks.trustWorkspace", "true"),
        ("hooks.timeout", "1h"),
        ("hooks.guards", "false"),
        ("hooks.rateLimit.perMinute", "1"),
        ("model.baseUrl", "http://evil.example"),
        ("model.maxTokens", "101"),
        ("mcp.servers.mine", "{command: b}"),
    ] {
        let error = set(path, value).unwrap_err();
        assert!(matches!(error, EditError::Ignored { .. }), "{path}: {error}");
    }
    assert!(!world.path(PROJECT).exists());
    set("hooks.untrusted", "block").unwrap();
    set("hooks.timeout", "1s").unwrap();
    set("model.maxTokens", "99").unwrap();
    set("mcp.servers.theirs", "{command: b}").unwrap();
    let (catalog, problems) = world.load();
    assert_eq!(problems, []);
    assert!(catalog.settings.untrusted_blocks);
    let mut nowhere = world.places.clone();
    nowhere.project = None;
    let error = change_config(&nowhere, Layer::Workspace, "hooks.timeout", Edit::Set("1s")).unwrap_err();
    assert!(matches!(error, EditError::NoProject));
}

#[test]
fn a_file_with_problems_can_be_mended_but_a_broken_one_is_left_alone() {
    let world = World::new();
    world.write(USER, "hooks:\n  untrusted: blok\n  timout: 5\n");
    assert_eq!(set(&world, "hooks.untrusted", "block").unwrap(), "hooks:\n  untrusted: block\n  timout: 5\n");
    for broken in [&b"hooks: {enabled\n"[..], b"hooks:\n\tenabled: true\n", b"a: 1\na: 2\n", b"hooks: \xff\n"] {
        let file = world.write(USER, broken);
        let error = set(&world, "hooks.enabled", "true").unwrap_err();
        assert!(matches!(error, EditError::Problem(_)), "{error}");
        assert_eq!(fs::read(file).unwrap(), broken);
    }
}

#[test]
fn the_file_is_the_owners_alone_and_somebody_elses_is_not_changed() {
    let world = World::new();
    set(&world, "hooks.timeout", "5s").unwrap();
    let file = world.path(USER);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(set(&world, "hooks.timeout", "6s").unwrap_err(), EditError::Unsafe(_)));
    fs::remove_file(&file).unwrap();
    link(world.write("home/elsewhere.yaml", "hooks:\n"), &file);
    assert!(matches!(set(&world, "hooks.timeout", "6s").unwrap_err(), EditError::File(_)));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(matches!(set(&world, "hooks.timeout", "6s").unwrap_err(), EditError::File(_)));
}

#[test]
fn two_writers_do_not_undo_each_others_changes() {
    let world = World::new();
    let paths = ["hooks.timeout", "mcp.connectionTimeout", "mcp.toolTimeout", "hooks.rateLimit.perMinute"];
    std::thread::scope(|scope| {
        for path in paths {
            let places = &world.places;
            scope.spawn(move || {
                for value in 1..=20 {
                    change_config(places, Layer::User, path, Edit::Set(&value.to_string())).unwrap();
                }
            });
        }
    });
    let (catalog, problems) = world.load();
    assert_eq!(problems, []);
    for path in paths {
        assert_eq!(catalog.config.get(path).unwrap().value, 20, "{path}");
    }
}

#[test]
fn older_names_are_read_with_a_notice_and_migrated_with_a_copy() {
    let world = World::new();
    let old = "# my settings\nhooksEnabled: false # for now\nhooks_timeout: 30\ntrustedWorkspace: [~/src]\nhooks:\n  rate_limit:\n    per-minute: 5 # slow\nmcpServers: # mine\n  git:\n    # the one\n    command: npx\nmodel: {base_url: \"http://127.0.0.1:11434\"}\n";
    let file = world.write(USER, old);
    let (before, problems) = world.load();
    assert_eq!(problems.len(), 7, "{problems:#?}");
    assert_eq!(
        problems[0].to_string(),
        format!(
            "{}:2:1: `hooksEnabled` is an older name of `hooks.enabled` and is read as that (hooksEnabled = false); write today's name [C010]",
            file.display()
        )
    );
    assert_eq!(before.config.get("hooks.timeout").unwrap().value, 30_000);
    assert_eq!(before.config.get("hooks.rateLimit.perMinute").unwrap().value, 5);
    assert!(before.config.get("mcp.servers.git").is_some());
    let migration = migrate_config(&world.places, Layer::User).unwrap();
    let moves: Vec<(&str, &str)> = migration.moves.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    assert_eq!(
        moves,
        [
            ("hooksEnabled", "hooks.enabled"),
            ("hooks_timeout", "hooks.timeout"),
            ("trustedWorkspace", "hooks.trustWorkspace"),
            ("hooks.rate_limit", "hooks.rateLimit"),
            ("hooks.rateLimit.per-minute", "hooks.rateLimit.perMinute"),
            ("mcpServers", "mcp.servers"),
            ("model.base_url", "model.baseUrl"),
        ]
    );
    let new = fs::read_to_string(&file).unwrap();
    assert_eq!(
        new,
        "# my settings\nhooks:\n  rateLimit:\n    perMinute: 5 # slow\n  enabled: false # for now\n  timeout: 30000\n  trustWorkspace: [~/src]\nmcp: # mine\n  servers:\n    git:\n      # the one\n      command: npx\nmodel: {baseUrl: \"http://127.0.0.1:11434\"}\n"
    );
    assert_eq!(fs::read_to_string(migration.backup.unwrap()).unwrap(), old);
    let (after, problems) = world.load();
    assert_eq!(problems, []);
    let values = |config: &ollm_catalog::Config| {
        config.settings().into_iter().map(|setting| (setting.path, setting.value)).collect::<Vec<_>>()
    };
    assert_eq!(values(&after.config), values(&before.config));
    let again = migrate_config(&world.places, Layer::User).unwrap();
    assert_eq!((again.moves, again.backup), (vec![], None));
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
}

#[test]
fn what_stands_under_an_older_name_is_migrated_before_it_is_changed() {
    let world = World::new();
    let file = world.write(USER, "hooksEnabled: true\n");
    for edit in [Edit::Set("false"), Edit::Unset] {
        let error = change_config(&world.places, Layer::User, "hooks.enabled", edit).unwrap_err();
        assert!(matches!(error, EditError::Older { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "hooksEnabled: true\n");
}

#[test]
fn a_project_cannot_lead_a_change_out_of_itself() {
    let world = World::new();
    fs::remove_dir_all(world.path("project/.ollm")).unwrap();
    fs::create_dir(world.path("home/private")).unwrap();
    link(world.path("home/private"), world.path("project/.ollm"));
    let error = change_config(&world.places, Layer::Workspace, "hooks.untrusted", Edit::Set("block")).unwrap_err();
    assert!(matches!(error, EditError::Unsafe(_)), "{error}");
    assert_eq!(fs::read_dir(world.path("home/private")).unwrap().count(), 0);
}

#[test]
fn where_a_setting_has_both_names_todays_counts() {
    let world = World::new();
    let file = world.write(USER, "hooks:\n  timeout: 5s\nhooks_timeout: 30\n");
    let (catalog, problems) = world.load();
    assert_eq!(catalog.config.get("hooks.timeout").unwrap().value, 5000);
    assert_eq!(problems.len(), 2, "{problems:?}");
    migrate_config(&world.places, Layer::User).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "hooks:\n  timeout: 5s\n");
}

#[test]
fn what_cannot_be_migrated_without_a_loss_is_left_to_the_person() {
    let world = World::new();
    let old = "extensionDirectories:\n  - /a # the first\n  - /b\n";
    let file = world.write(USER, old);
    let error = migrate_config(&world.places, Layer::User).unwrap_err();
    let EditError::ByHand { way, .. } = error else { panic!("{error}") };
    assert_eq!(way, "write `extensionDirectories` as `extensions.directories`");
    assert_eq!(fs::read_to_string(file).unwrap(), old);
}
