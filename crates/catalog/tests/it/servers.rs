//! Declared MCP servers.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use ollm_catalog::{
    Address, Pairs, Problem, ServerSpec, Severity, Transport, add_server, expand, load_servers, remove_server,
    settings_file, taken_server,
};
use ollm_protocol::Source;
use ollm_store::Digest;
use ollm_trust::{ApproveError, Identity, StartRefusal, Term, Trust, TrustContext};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::World;

const USER: &str = "home/.ollm/settings/mcp.json";
const PROJECT: &str = "project/.ollm/settings/mcp.json";

fn load(world: &World) -> (Vec<ServerSpec>, Vec<Problem>) {
    load_servers(&world.places)
}

/// The one server of the user's file, and the problems with it.
fn user(declaration: &Value) -> (Option<ServerSpec>, Vec<Problem>) {
    let world = World::new();
    world.write(USER, json!({"mcpServers": {"s": declaration}}).to_string());
    let (mut servers, problems) = load(&world);
    (servers.pop(), problems)
}

fn messages(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|problem| problem.message.as_str()).collect()
}

fn digest(server: &ServerSpec) -> Digest {
    static BIN: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    identity(server, BIN.path(), None, &[]).unwrap().digest
}

#[test]
fn relative_entries_of_a_path_are_told() {
    let declaration = |path: &str| json!({"command": "/bin/true", "env": {"PATH": path}});
    let (server, problems) = user(&declaration("/usr/bin:bin:."));
    assert!(server.is_some());
    assert_eq!(messages(&problems), ["relative entries of PATH are left out: `bin`, `.`"]);
    assert_eq!(messages(&user(&declaration("/usr/bin:/bin")).1), Vec::<&str>::new());
}

/// What an approval of a server is bound to, where its program is in `bin`.
fn identity(
    server: &ServerSpec,
    bin: &Path,
    project: Option<&Path>,
    variables: &[(&str, &str)],
) -> Result<Identity, StartRefusal> {
    if let Address::Command { command, .. } = &server.address
        && !Path::new(command).is_absolute()
        && !bin.join(command).exists()
    {
        std::fs::write(bin.join(command), "").unwrap();
        std::fs::set_permissions(bin.join(command), Permissions::from_mode(0o755)).unwrap();
    }
    let path = [("PATH", bin.to_str().unwrap())];
    let variables: Vec<(OsString, OsString)> =
        path.iter().chain(variables).map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let trust = Trust::new(bin.join("approvals.json"), std::time::SystemTime::now);
    trust.identity(server, &TrustContext { variables: &variables, project, ..TrustContext::default() })
}

#[test]
fn every_key_of_a_program_is_read() {
    let (server, problems) = user(&json!({
        "command": "npx", "args": ["-y", "server"], "env": {"A": "1"}, "cwd": "sub", "type": "stdio", "timeout": 5000,
        "toolTimeout": "2m", "idleTimeout": 0, "enabled": true, "lazy": true, "autoRestart": true, "includeTools": ["a"],
        "excludeTools": ["b"], "limits": {"memory": "1GiB", "files": 64}, "description": "d"
    }));
    assert_eq!(problems, []);
    let server = server.unwrap();
    let Address::Command { command, args, env, cwd, limits } = &server.address else { panic!() };
    assert_eq!((command.as_str(), args.as_slice()), ("npx", &["-y".to_owned(), "server".to_owned()][..]));
    assert_eq!(env, &Pairs(vec![("A".into(), "1".into())]));
    assert_eq!((cwd.as_deref(), limits.memory, limits.files), (Some("sub".as_ref()), Some(1 << 30), Some(64)));
    assert_eq!((server.timeout, server.tool_timeout), (Some(Duration::from_secs(5)), Some(Duration::from_mins(2))));
    assert_eq!(server.idle_timeout, Some(Duration::ZERO));
    assert_eq!((server.enabled, server.lazy, server.auto_restart), (true, Some(true), Some(true)));
    assert_eq!((server.tools.allow, server.tools.deny), (Some(vec!["a".to_owned()]), vec!["b".to_owned()]));
    assert_eq!((server.source, server.origin.line), (Source::User, 1));
}

#[test]
fn every_key_of_an_address_is_read() {
    for (word, transport) in [("http", Transport::Http), ("streamable-http", Transport::Http), ("sse", Transport::Sse)]
    {
        let (server, problems) = user(
            &json!({"url": "https://example.com/mcp", "headers": {"X-Key": "k"}, "transport": word, "disabled": true}),
        );
        assert_eq!(problems, []);
        let server = server.unwrap();
        let headers = Pairs(vec![("X-Key".into(), "k".into())]);
        assert_eq!(server.address, Address::Url { url: "https://example.com/mcp".into(), headers, transport });
        assert!(!server.enabled);
    }
}

#[test]
fn keys_may_be_written_with_lines_between_their_words_and_in_other_programs_words() {
    for (allow, deny) in [
        ("allowTools", "denyTools"),
        ("allow_tools", "deny_tools"),
        ("include_tools", "exclude_tools"),
        ("includeTools", "exclude-tools"),
        ("enabled_tools", "disabled_tools"),
    ] {
        let world = World::new();
        let text = format!("mcp: {{servers: {{s: {{command: x, {allow}: [a], {deny}: [b*], tool_timeout: 5s}}}}}}\n");
        world.write("home/.ollm/config.yaml", text);
        let (servers, problems) = load(&world);
        assert_eq!(problems, [], "{allow}");
        let server = &servers[0];
        assert_eq!(
            (&server.tools.allow, &server.tools.deny),
            (&Some(vec!["a".to_owned()]), &vec!["b*".to_owned()]),
            "{allow}"
        );
        assert_eq!(server.tool_timeout, Some(std::time::Duration::from_secs(5)));
        assert_eq!(world.load().1, [], "{allow}");
    }
}

#[test]
fn all_four_places_are_read_the_users_first() {
    let world = World::new();
    world.write("home/.ollm/config.yaml", "mcp:\n  servers:\n    a:\n      command: one\n");
    world.write(USER, r#"{"mcpServers": {"a": {"command": "two"}, "b": {"command": "two"}}}"#);
    world.write("project/.ollm/config.yaml", "mcp:\n  servers:\n    b: {command: three}\n    c: {command: three}\n");
    world.write(PROJECT, r#"{"mcpServers": {"a": {"command": "four"}, "d": {"command": "four"}}}"#);
    let (servers, problems) = load(&world);
    let found: Vec<(&str, Source, &str)> = servers
        .iter()
        .map(|server| match &server.address {
            Address::Command { command, .. } => (server.name.as_str(), server.source, command.as_str()),
            Address::Url { .. } => panic!(),
        })
        .collect();
    let expected = [
        ("a", Source::User, "one"),
        ("a", Source::User, "two"),
        ("b", Source::User, "two"),
        ("b", Source::Workspace, "three"),
        ("c", Source::Workspace, "three"),
        ("a", Source::Workspace, "four"),
        ("d", Source::Workspace, "four"),
    ];
    assert_eq!(found, expected);
    assert_eq!(problems, []);
    let whose = [(1, 0, "declared before"), (3, 2, "one of the user's own servers")];
    for (server, known, whose) in whose {
        let problem = taken_server(&servers[server], &servers[known]);
        assert!(problem.severity == Severity::Warning && problem.line > 0);
        assert!(problem.message.contains(&format!(" is {whose} (")), "{problem:?}");
    }
}

#[test]
fn servers_under_an_older_name_of_their_setting_are_read() {
    for older in ["mcpServers", "mcp_servers"] {
        let world = World::new();
        world.write("home/.ollm/config.yaml", format!("{older}:\n  time: {{command: uvx}}\n"));
        let (servers, problems) = load(&world);
        assert_eq!(messages(&problems), Vec::<&str>::new());
        let found: Vec<_> = servers.iter().map(|server| (&*server.name, server.origin.line)).collect();
        assert_eq!(found, [("time", 2)], "{older}");
    }
}

#[test]
fn d07_a_project_cannot_vouch_for_its_server() {
    let world = World::new();
    world.write(PROJECT, r#"{"mcpServers": {"s": {"command": "x", "trust": true, "autoApprove": ["all"]}}}"#);
    let (servers, problems) = load(&world);
    assert_eq!(servers.len(), 1);
    assert_eq!(
        messages(&problems),
        [
            "`trust` is ignored: a project cannot vouch for itself",
            "`autoApprove` is ignored: a project cannot vouch for itself"
        ]
    );
}

#[test]
fn what_makes_no_sense_is_named_and_takes_nothing_else_with_it() {
    for (declaration, message) in [
        (json!({"command": "npx -y server"}), "`command` is more than the name of a program"),
        (json!({"command": "a;b"}), "`command` is more than the name of a program"),
        (json!({"command": "$SHELL"}), "`command` is more than the name of a program"),
        (json!({"command": "./server"}), "`command` is a path that depends on where we are"),
        (json!({"command": "http://127.0.0.1:9/mcp"}), "`command` is an address and no program"),
        (json!({"command": ""}), "`command` is empty"),
        (json!({"command": 7}), "`command` must be text, not a number"),
        (json!({"command": "x", "url": "http://a"}), "a server has either a `command` or a `url`"),
        (json!({}), "the server has neither `command` nor `url`"),
        (json!({"url": "file:///etc/passwd"}), "`url` is not an address on the web"),
        (json!({"url": "http://"}), "`url` is not an address on the web"),
        (json!({"url": "http://a b/"}), "`url` is not an address on the web"),
        (json!({"url": "http://a", "headers": {"X": "a\r\nEvil: b"}}), "the value of `X` holds control characters"),
        (json!({"url": "http://a", "headers": {"X Y": "a"}}), "`X Y` cannot be a name in `headers`"),
        (json!({"command": "x", "env": {"A=B": "1"}}), "`A=B` cannot be a name in `env`"),
        (json!({"command": "x", "env": []}), "`env` must be a map of names to text, not a list"),
        (json!({"command": "x", "args": {"a": 1}}), "`args` must be a list of texts, not a map"),
        (json!({"command": "x", "transport": "http"}), "`http` needs a `url`"),
        (json!({"command": "x", "transport": "carrier-pigeon"}), "the transport must be one of stdio, http, sse"),
        (json!("npx"), "a server must be a map of its keys, not text"),
    ] {
        let world = World::new();
        world.write(USER, json!({"mcpServers": {"bad": declaration, "good": {"command": "x"}}}).to_string());
        let (servers, problems) = load(&world);
        assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["good"], "{declaration}");
        assert_eq!(messages(&problems), [format!("{message}; the server is not loaded")], "{declaration}");
        assert_eq!((problems[0].line, problems[0].severity), (1, Severity::Error));
    }
}

#[test]
fn a_wish_that_makes_no_sense_is_warned_about_and_the_default_applies() {
    for (key, value) in [
        ("timeout", json!(0)),
        ("toolTimeout", json!("abc")),
        ("idleTimeout", json!([1])),
        ("lazy", json!("perhaps")),
        ("autoRestart", json!({})),
    ] {
        let (server, problems) = user(&json!({"command": "x", key: value}));
        let server = server.unwrap();
        assert_eq!((server.timeout, server.tool_timeout, server.idle_timeout), (None, None, None), "{key}");
        assert_eq!((server.lazy, server.auto_restart), (None, None), "{key}");
        assert_eq!(problems.len(), 1, "{key}");
        assert_eq!((problems[0].severity, problems[0].line), (Severity::Warning, 1), "{key}");
        let message = &problems[0].message;
        assert!(message.starts_with(&format!("`{key}` must be ")) && message.ends_with("; the default applies"));
    }
}

#[test]
fn what_only_another_program_can_fill_in_is_named_with_its_field() {
    let (server, problems) = user(&json!({
        "command": "x", "args": ["--key", "${input:api-key}"], "env": {"A": "${env:KEY}", "B": "<${input:tk}>"},
    }));
    assert_eq!(
        messages(&problems),
        [
            "`mcpServers.s.args[1]` holds ${input:api-key}, which only another program can fill in; it is empty",
            "`mcpServers.s.env.B` holds ${input:tk}, which only another program can fill in; it is empty",
        ]
    );
    assert_eq!(problems[0].help.as_deref(), Some("write ${API_KEY} and set the variable API_KEY"));
    let (server, problems) = expand(&server.unwrap(), &|_| None);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("`KEY`, which is not set"), "{problems:?}");
    let Address::Command { args, env, .. } = server.address else { panic!() };
    assert_eq!(args, ["--key", ""]);
    assert_eq!(env.0, [("A".to_owned(), String::new()), ("B".to_owned(), "<>".to_owned())]);
}

#[test]
fn slips_are_warned_about() {
    let (server, problems) =
        user(&json!({"command": "x", "timout": 5, "timeout": "5000", "oauth": {"enabled": false}}));
    assert_eq!(server.unwrap().timeout, Some(Duration::from_secs(5)));
    assert_eq!(problems.len(), 3);
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `timeout`?"));
    let world = World::new();
    world.write(USER, r#"{"command": "x"}"#);
    let (servers, problems) = load(&world);
    assert_eq!((servers.len(), problems.len()), (0, 1));
    assert_eq!(problems[0].help.as_deref(), Some(r#"write {"mcpServers": {"NAME": {…}}}"#));
}

#[test]
fn a_problem_shows_where_it_is() {
    let world = World::new();
    let path = world.write(USER, "{\n  \"mcpServers\": {\n    \"s\": {\"command\": \"a b\"}\n  }\n}\n");
    let (_, problems) = load(&world);
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!((&problem.file, problem.line, problem.column), (&path, 3, 22));
    assert_eq!(problem.field, "mcpServers.s.command");
    assert_eq!(problem.snippet.as_ref().unwrap().text.trim(), "\"s\": {\"command\": \"a b\"}");
}

#[test]
fn no_problem_shows_a_secret() {
    let world = World::new();
    world.write(
        USER,
        json!({"mcpServers": {
            "a": {"command": "a b", "env": {"TOKEN": "hush"}},
            "b": {"command": "x", "env": {"TOKEN": ["hush"]}},
            "c": {"url": "x", "headers": {"Authorization": "Bearer hush"}},
            "d": {"command": "x", "env": "hush"},
        }})
        .to_string(),
    );
    let (servers, problems) = load(&world);
    assert_eq!((servers.len(), problems.len()), (0, 4));
    assert!(!format!("{problems:?}").contains("hush"), "{problems:#?}");
}

#[test]
fn how_to_log_in_is_read_in_the_words_of_others_too_and_its_secret_is_shown_nowhere() {
    let with = |oauth: &Value| user(&json!({"url": "https://example.org/mcp", "oauth": oauth}));
    let of = |oauth: &Value| with(oauth).0.and_then(|server| server.oauth).unwrap();
    let ours = json!({"clientId": "me", "clientSecret": "hush-${WORD}", "scopes": ["a", "b"], "callbackPort": 8080,
        "clientMetadataUrl": "https://client.example/me.json", "redirectUri": "http://localhost:8080/back"});
    let theirs = json!({"enabled": true, "client_id": "me", "client_secret": "hush-${WORD}", "scope": "a b",
        "callback_port": 8080, "clientIdMetadataUrl": "https://client.example/me.json",
        "redirect_uri": "http://localhost:8080/back"});
    assert_eq!(of(&ours), of(&theirs));
    assert_eq!(with(&ours).1, []);
    let (server, _) = expand(&with(&ours).0.unwrap(), &|_| Some("value".to_owned()));
    assert_eq!(server.oauth.as_ref().unwrap().client_secret.as_deref(), Some("hush-value"));
    assert!(!format!("{server:?}").contains("hush"));
    for (key, value) in [
        ("clientSecret", "hush-other"),
        ("clientMetadataUrl", "https://client.example/x"),
        ("redirectUri", "http://localhost:1/"),
    ] {
        let mut other = ours.clone();
        other[key] = json!(value);
        assert_ne!(digest(&with(&ours).0.unwrap()), digest(&with(&other).0.unwrap()), "{key}");
    }
    for (oauth, text) in [
        (json!({"clientSecret": "hush-hush"}), "`clientSecret` without a `clientId`"),
        (json!({"clientMetadataUrl": "http://client.example/x"}), "https address of a document"),
        (json!({"clientMetadataUrl": "https://client.example"}), "https address of a document"),
        (json!({"redirectUri": "https://evil.example:1/"}), "not an address of this machine"),
        (json!({"redirectUri": "http://localhost/"}), "not an address of this machine"),
        (json!({"callbackPort": 0}), "from 1 to 65535"),
        (json!("me"), "`oauth` must be a map"),
    ] {
        let (server, problems) = with(&oauth);
        assert!(server.is_none() && problems[0].message.contains(text), "{oauth} {problems:?}");
        assert!(!format!("{problems:?}").contains("hush"), "{problems:?}");
    }
}

#[test]
fn a_file_that_others_can_change_declares_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let path = world.write(USER, r#"{"mcpServers": {"s": {"command": "x"}}}"#);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (servers, problems) = load(&world);
    assert_eq!((servers.len(), problems.len()), (0, 1));
    assert!(problems[0].message.starts_with("none of its servers are loaded"), "{problems:?}");
}

#[test]
fn variables_have_a_text_for_when_they_are_missing() {
    let (server, _) = user(&json!({
        "url": "${BASE:-http://localhost}/mcp", "headers": {"A": "Bearer ${KEY}", "B": "$KEY ${ not } ${KEY", "C": "${KEY}${KEY}"}
    }));
    let (server, problems) = expand(&server.unwrap(), &|name| (name == "KEY").then(|| "${BASE}".to_owned()));
    let Address::Url { url, headers, .. } = server.address else { panic!() };
    assert_eq!(url, "http://localhost/mcp");
    let values: Vec<&str> = headers.0.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["Bearer ${BASE}", "$KEY ${ not } ${KEY", "${BASE}${BASE}"]);
    assert_eq!(problems, []);
}

#[test]
fn d07_any_change_of_a_declaration_changes_its_digest() {
    let base = json!({"command": "x", "args": ["a", "b"], "env": {"A": "1"}, "cwd": "/c"});
    let first = digest(&user(&base).0.unwrap());
    assert_eq!(first, digest(&user(&base).0.unwrap()));
    for (key, value) in [
        ("command", json!("y")),
        ("args", json!(["ab"])),
        ("args", json!(["a", "c"])),
        ("env", json!({"A": "2"})),
        ("env", json!({"A": "1", "B": "1"})),
        ("env", json!({})),
        ("cwd", json!("/d")),
        ("timeout", json!(1)),
        ("limits", json!({"memory": 5})),
        ("includeTools", json!(["t"])),
        ("enabled", json!(false)),
    ] {
        let mut changed = base.clone();
        changed[key] = value;
        assert_ne!(first, digest(&user(&changed).0.unwrap()), "{changed}");
    }
    let url = json!({"url": "http://a", "headers": {"K": "1"}});
    let one = digest(&user(&url).0.unwrap());
    for changed in [
        json!({"url": "http://b", "headers": {"K": "1"}}),
        json!({"url": "http://a", "headers": {"K": "2"}}),
        json!({"url": "http://a", "headers": {"K": "1"}, "type": "sse"}),
    ] {
        assert_ne!(one, digest(&user(&changed).0.unwrap()), "{changed}");
    }
}

#[test]
fn d07_files_of_the_project_are_part_of_the_digest() {
    let world = World::new();
    world.write(
        PROJECT,
        r#"{"mcpServers": {"s": {"command": "python3", "args": ["tools/server.py", "--config=c.toml"]}}}"#,
    );
    let script = world.write("project/tools/server.py", "1");
    let config = world.write("project/c.toml", "1");
    let project = world.places.project.clone();
    let bins = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let with = |bin: &Path| identity(&load(&world).0[0], bin, project.as_deref(), &[]).unwrap().digest;
    let of = || with(bins[0].path());
    let first = of();
    assert_eq!(first, of());
    std::fs::write(&script, "2").unwrap();
    let second = of();
    std::fs::write(&config, "2").unwrap();
    assert!(first != second && second != of());
    assert_ne!(of(), with(bins[1].path()), "another program runs it");
}

#[test]
fn d07_files_that_variables_help_to_name_are_part_of_the_digest() {
    for declaration in [
        r#"{"command": "python3", "args": ["${NONE:-server.py}"]}"#,
        r#"{"command": "python3", "args": ["${HERE}/server.py"]}"#,
        r#"{"command": "python3", "args": ["server.py"], "cwd": "${NONE:-.}"}"#,
        r#"{"command": "python3", "args": ["--script=${NONE:-server}.py"]}"#,
    ] {
        let world = World::new();
        world.write(PROJECT, format!(r#"{{"mcpServers": {{"s": {declaration}}}}}"#));
        let script = world.write("project/server.py", "1");
        let project = world.places.project.clone();
        let bin = tempfile::tempdir().unwrap();
        let of = || identity(&load(&world).0[0], bin.path(), project.as_deref(), &[("HERE", ".")]).unwrap().digest;
        let first = of();
        std::fs::write(&script, "2").unwrap();
        assert_ne!(first, of(), "{declaration}");
    }
}

#[test]
fn d07_files_count_however_they_are_named() {
    let world = World::new();
    let project = world.places.project.clone().unwrap();
    let url = format!("file://{}/server%2epy", project.display());
    for (command, args, env, cwd) in [
        ("node", json!(["--require=./server.py", "x"]), json!({}), "."),
        ("node", json!(["-rserver.py"]), json!({}), "."),
        ("deno", json!(["run", url]), json!({}), "."),
        ("server", json!([]), json!({"CONFIG": "server.py"}), "."),
        ("node", json!([]), json!({"NODE_OPTIONS": "--no-warnings --require ./server.py"}), "."),
        ("x", json!([]), json!({"FILES": "/etc/hosts:server.py"}), "."),
        ("python3", json!(["-m", "server"]), json!({}), "."),
        ("python3", json!(["-u", "-mserver"]), json!({}), "."),
        ("uv", json!(["run", "python", "-m", "pack.tool"]), json!({}), "."),
        ("python3", json!(["-m", "pack"]), json!({}), "."),
        ("python3", json!(["-m", "tool"]), json!({}), "pack"),
        ("sh", json!(["-c", "cd . && exec python3 './server.py'"]), json!({}), "."),
        ("env", json!(["sh", "-c", "exec python3 server.py;true"]), json!({}), "."),
        ("python3", json!(["-c", "import server; server.main()"]), json!({}), "."),
        ("python3", json!(["link.py"]), json!({}), "."),
        ("python3", json!(["out/there.py"]), json!({}), "."),
        ("python3", json!(["../link.py"]), json!({}), "pack"),
    ] {
        let world = World::new();
        let written = json!({"command": command, "args": args, "env": env, "cwd": cwd}).to_string();
        let own = world.places.project.clone().unwrap();
        let written = written.replace(project.to_str().unwrap(), own.to_str().unwrap());
        world.write(PROJECT, format!(r#"{{"mcpServers": {{"s": {written}}}}}"#));
        let files = ["project/server.py", "project/pack/tool.py", "project/pack/__main__.py", "elsewhere/there.py"]
            .map(|file| world.write(file, "1"));
        std::os::unix::fs::symlink(&files[3], own.join("link.py")).unwrap();
        std::os::unix::fs::symlink(files[3].parent().unwrap(), own.join("out")).unwrap();
        let bin = tempfile::tempdir().unwrap();
        let of = || identity(&load(&world).0[0], bin.path(), Some(&own), &[]).unwrap().digest;
        let first = of();
        assert_eq!(first, of());
        for file in &files {
            std::fs::write(file, "2").unwrap();
        }
        assert_ne!(first, of(), "{written}");
    }
}

#[test]
fn what_a_link_of_the_project_runs_is_known_by_its_place() {
    let world = World::new();
    let project = world.places.project.clone().unwrap();
    world.write(PROJECT, r#"{"mcpServers": {"s": {"command": "python3"}}}"#);
    let program = project.join("python3");
    let of = |target: &str| {
        let _ = std::fs::remove_file(&program);
        std::os::unix::fs::symlink(target, &program).unwrap();
        identity(&load(&world).0[0], &project, Some(&project), &[]).unwrap().digest
    };
    assert_eq!(of("/bin/sh"), of("/bin/sh"));
    assert_ne!(of("/bin/sh"), of("/bin/cat"));
}

#[test]
fn code_without_end_is_refused_and_not_looked_through() {
    let world = World::new();
    let code = "a ".repeat(100_000);
    world.write(PROJECT, json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", code]}}}).to_string());
    let bin = tempfile::tempdir().unwrap();
    let why = identity(&load(&world).0[0], bin.path(), world.places.project.as_deref(), &[]).unwrap_err();
    assert!(why.to_string().contains("put the code into a file"), "{why}");
}

#[test]
fn a_folder_that_is_run_cannot_be_told_from_its_content() {
    let world = World::new();
    world.write(PROJECT, r#"{"mcpServers": {"s": {"command": "node", "args": ["server"]}}}"#);
    world.write("project/server/index.js", "");
    let bin = tempfile::tempdir().unwrap();
    let server = &load(&world).0[0];
    identity(server, bin.path(), world.places.project.as_deref(), &[]).unwrap();
    let variables = [("PATH".into(), bin.path().into())];
    let context =
        TrustContext { variables: &variables, project: world.places.project.as_deref(), ..TrustContext::default() };
    let trust = Trust::new(bin.path().join("approvals.json"), std::time::SystemTime::now);
    assert_eq!(trust.uncovered(server, &context).unwrap(), ["`server` is a folder, and anything in it may run"]);
    let proposal = trust.propose(server, &context).unwrap();
    assert!(matches!(trust.approve(server, &proposal, Term::Always, &context), Err(ApproveError::Uncovered(_))));
    trust.approve(server, &proposal.accept_uncovered(), Term::Always, &context).unwrap();
}

#[test]
fn servers_are_written_down_and_taken_out_again_and_the_rest_stays() {
    let world = World::new();
    let path = settings_file(&world.places, false).unwrap();
    let declaration = json!({"command": "x"});
    add_server(&path, "a", &declaration).unwrap();
    world.write(USER, r#"{"other": [1], "mcpServers": {"z": {"command": "z"}}}"#);
    add_server(&path, "a", &declaration).unwrap();
    assert!(add_server(&path, "a", &declaration).unwrap_err().to_string().ends_with("has a server `a` already"));
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(written, json!({"other": [1], "mcpServers": {"z": {"command": "z"}, "a": {"command": "x"}}}));
    assert!(remove_server(&path, "z").unwrap());
    assert!(!remove_server(&path, "z").unwrap());
    world.write(USER, "{");
    assert!(add_server(&path, "b", &declaration).unwrap_err().to_string().ends_with("it was not changed"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
}

#[test]
fn a_server_is_added_and_removed_and_the_comments_of_the_file_stay() {
    let world = World::new();
    let old = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"} // the first\n  }\n}\n";
    let path = world.write(USER, old);
    add_server(&path, "b", &json!({"command": "y"})).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        old.replace(
            "{\"command\": \"x\"} // the first\n",
            "{\"command\": \"x\"}, // the first\n    \"b\": {\n      \"command\": \"y\"\n    }\n"
        )
    );
    assert!(remove_server(&path, "b").unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("// mine") && text.contains("// the first") && !text.contains("\"b\""), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_33_variables_are_filled_in_and_missing_ones_are_empty_and_named(
        known in btree_map("[A-Z][A-Z0-9_]{0,8}", "[ -~]{0,12}", 1..4),
        missing in "[a-z]{1,8}",
        pieces in vec((any::<prop::sample::Index>(), "[a-z /:.-]{0,6}", any::<bool>()), 1..5),
    ) {
        let names: Vec<&String> = known.keys().collect();
        let (mut written, mut expected, mut gone) = (String::new(), String::new(), 0);
        for (index, text, lost) in &pieces {
            let name = index.get(&names);
            let (name, value) = if *lost { (&missing, "") } else { (*name, known[*name].as_str()) };
            written.extend([text, "${", name, "}"]);
            expected.extend([text.as_str(), value]);
            gone += usize::from(*lost);
        }
        let (server, problems) = user(&json!({"command": "x", "env": {"V": written}}));
        prop_assert_eq!(&problems, &[]);
        let (server, warnings) = expand(&server.unwrap(), &|name| known.get(name).cloned());
        let Address::Command { env, .. } = &server.address else { panic!() };
        prop_assert_eq!(&env.0, &vec![("V".to_owned(), expected)]);
        prop_assert_eq!(warnings.len(), gone);
        let wanted = format!("wants the variable `{missing}`, which is not set");
        for warning in &warnings {
            prop_assert_eq!(&warning.field, "s.env.V");
            prop_assert!(warning.message.contains(&wanted));
        }
    }

    #[test]
    fn any_file_is_read_to_its_end(text in any::<String>(), value in testkit_value()) {
        let world = World::new();
        world.write(USER, text);
        let _ = load(&world);
        world.write(USER, json!({"mcpServers": {"s": value}}).to_string());
        let _ = load(&world);
    }
}

/// Keys of a server with anything behind them.
fn testkit_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    let keys = prop::sample::select(vec![
        "command", "args", "env", "url", "headers", "limits", "timeout", "type", "enabled", "x",
    ]);
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((keys.clone(), inner), 0..5).prop_map(|entries| Value::Object(
                entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}
