//! What is wrong with an extension, and easily passed over.

use std::fs;

use ollm_protocol::Commands;
use serde_json::{Value, json};

use crate::extensions::{error, manifest, problem, setting};
use crate::world::{World, link};

#[test]
fn an_address_whose_host_cannot_be_told_is_refused_where_permissions_are_declared() {
    let refused = |key: &str, url: &str, network: &Value| {
        let more = json!({"mcpServers": {"s": {key: url}}, "permissions": {"network": network, "env": ["HX", "KEY"]}});
        let world = World::new();
        world.manifest("home", "x", manifest("x", &more));
        let (found, problems) = world.extensions();
        let told = problems.into_iter().next();
        assert_eq!(told.is_some(), !found.get("x").unwrap().is_on(), "{url}");
        told
    };
    let named = json!(["example.com", "[::1]"]);
    for url in [
        "http://example.com@127.0.0.1:8080/mcp",
        "http://example.com:80@127.0.0.1:8080/",
        "http://127.0.0.1:8080\\@example.com/",
        "http://127.0.0.1:8080\\.example.com/",
        "http://${HX}/mcp",
        "http://example.com${HX}/mcp",
        "http://example.com:${HX}/mcp",
        "${HX}",
    ] {
        for key in ["url", "httpUrl", "serverUrl"] {
            let told = refused(key, url, &named).unwrap_or_else(|| panic!("{key} {url}"));
            assert_eq!(told.field, format!("mcpServers.s.{key}"), "{told:?}");
            assert!(told.line > 0 && told.snippet.is_some(), "{told:?}");
            assert!(told.help.unwrap().contains("https://host/path"), "{url}");
        }
    }
    let told = refused("httpUrl", "https://evil.org/mcp", &named).unwrap();
    assert!(told.message.contains("reaches evil.org"), "{told:?}");
    for url in ["http://[::1]/", "https://example.com:8443/${PATH}?key=${KEY}", "http://EXAMPLE.com"] {
        assert_eq!(refused("url", url, &named), None, "{url}");
    }
    assert_eq!(refused("url", "http://${HX}/mcp", &json!(["*"])), None, "any host will do");
    let world = World::new();
    let more = json!({"mcpServers": {"s": {"url": "http://${HX}/mcp"}}, "permissions": null});
    world.manifest("home", "x", manifest("x", &more));
    assert_eq!(world.extensions().1, [], "none are declared");
}

#[test]
fn a_required_setting_that_is_empty_is_not_set() {
    for sensitive in [false, true] {
        let settings = json!({"settings": [
            {"name": "token", "description": "d", "required": true, "sensitive": sensitive, "envVar": "TOKEN_X"},
            {"name": "free", "description": "d", "default": ""},
        ]});
        let mut world = World::new();
        world.manifest("home", "x", manifest("x", &settings));
        world.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    x:\n      token: \"\"\n");
        let (found, _) = world.extensions();
        assert!(error(&found, "x").contains("setting `token` is required and must not be empty"), "{found:?}");
        world.write("home/.ollm/config.yaml", "");
        world.secret("x", "token", "");
        let (found, _) = world.extensions();
        assert!(error(&found, "x").contains("setting `token` is required and must not be empty"), "{found:?}");
        fs::remove_file(world.places.secrets()).unwrap();
        world.env.insert("TOKEN_X".into(), String::new());
        let (found, _) = world.extensions();
        assert!(error(&found, "x").contains("setting `token` is required and not set"), "{found:?}");
    }
    let empty = setting(&json!({"required": true, "default": ""}));
    assert!(problem(&manifest("x", &empty)).message.contains("must not be empty"));
}

/// What is told of a manifest: line, column, message and help.
fn told(text: impl AsRef<[u8]>) -> (usize, usize, String, String) {
    let world = World::new();
    world.manifest("home", "x", text);
    let (found, problems) = world.extensions();
    assert!(!found.get("x").unwrap().is_on());
    let first = problems.into_iter().next().unwrap();
    assert!(first.snippet.is_some(), "{first:?}");
    let way_out = first.way_out(Commands::default()).unwrap_or_default();
    (first.line, first.column, first.message, way_out)
}

#[test]
fn a_manifest_that_is_empty_or_no_text_is_told_with_its_place_and_the_way_out() {
    for empty in ["", " \n", "\u{feff}", "\u{feff}\n"] {
        let new = "write one first";
        assert_eq!(told(empty), (1, 1, "it is empty".to_owned(), new.to_owned()), "{empty:?}");
    }
    let world = World::new();
    world.manifest("home", "x", b"{\n  \"name\": \"caf\xe9\",\n  \"version\": \"1.0.0\"\n}");
    let (_, problems) = world.extensions();
    assert_eq!((problems[0].line, problems[0].column), (2, 15));
    let snippet = problems[0].snippet.clone().unwrap();
    assert_eq!((snippet.text.as_str(), snippet.column), ("  \"name\": \"caf\u{fffd}\",", 15));
}

#[test]
fn what_is_wrong_is_named_and_so_is_what_would_be_right() {
    for (more, message, help) in [
        (json!({"keywords": [[]]}), "`keywords` must be a list of texts; this is a list", "[\"a\", \"b\"]"),
        (json!({"keywords": ["a", 1]}), "`keywords` must be a list of texts; this is a ", "double quotes"),
        (json!({"keywords": "a"}), "`keywords` must be a list of texts, not text", "[\"a\", \"b\"]"),
        (json!({"manifestVersion": 0}), "`manifestVersion` must be 1,", "write 1, or leave it out"),
        (json!({"manifestVersion": "1"}), "`manifestVersion` must be 1,", "write 1, or leave it out"),
        (json!({"hooks": {"zzzzzz": []}}), "unknown event `zzzzzz`", "look at the events there are"),
        (json!({"mcpServers": {"s": {"command": "x", "args": [{}]}}}), "not a list with a map in it", ""),
        (setting(&json!({"enum": []})), "`enum` is empty", "leave it out"),
        (setting(&json!({"sensitiv": true})), "unknown key `sensitiv`", "did you mean `sensitive`?"),
        (json!({"name": "con"}), "`con` cannot be the name", "a device on some systems"),
    ] {
        let (line, column, said, way) = told(manifest("x", &more));
        assert!(line == 1 && column > 1 && said.contains(message) && way.contains(help), "{more}: {said}; {way}");
    }
}

#[test]
fn a_file_that_cannot_be_looked_at_is_told_for_what_it_is() {
    let long = "x".repeat(300);
    let hook = |script: &str| json!({"hooks": {"before_tool": [{"name": "h", "command": "sh", "args": [script]}]}});
    let server = |script: &str| json!({"mcpServers": {"s": {"command": "node", "args": ["--x", script]}}});
    for script in ["a\0.sh", long.as_str()] {
        for more in [hook(script), server(script)] {
            let (_, _, said, way) = told(manifest("x", &more));
            assert!(said.contains("cannot be looked at") && !said.contains("out of"), "{said}");
            assert_eq!(way, "give it a name that a file can have");
        }
    }
    let world = World::new();
    world.manifest("home", "x", manifest("x", &hook("run.sh")));
    link("nowhere", world.path("home/.ollm/extensions/x/run.sh"));
    fs::create_dir_all(world.path("home/.ollm/extensions/y")).unwrap();
    link("nowhere.json", world.path("home/.ollm/extensions/y/manifest.json"));
    let (found, problems) = world.extensions();
    for name in ["x", "y"] {
        assert!(error(&found, name).contains("it is a link that leads nowhere"), "{}", error(&found, name));
        assert!(!error(&found, name).contains("out of"), "{}", error(&found, name));
    }
    assert!(problems.iter().all(|one| one.help.as_deref() == Some("mend the link or remove it")), "{problems:?}");
    let (_, _, said, way) = told(manifest("x", &hook("../run.sh")));
    assert!(said.contains("out of the hook's folder") && way.contains("move the file"), "{said}; {way}");
}

#[test]
fn a_skill_file_may_begin_with_the_mark_that_editors_write() {
    let world = World::new();
    world.manifest("home", "x", manifest("x", &json!({})));
    world.write("home/.ollm/extensions/x/skills/s.md", "\u{feff}---\ndescription: d\n---\nDo it\n");
    let (found, _) = world.extensions();
    let (skills, problems) = found.get("x").unwrap().skills();
    assert_eq!((skills.len(), problems), (1, Vec::new()));
}

#[test]
fn a_pre_release_must_be_named_in_the_range() {
    let needing = |range: &str| {
        let world = World::new();
        world.manifest("home", "b", manifest("b", &json!({"version": "1.3.0-beta.1"})));
        world.manifest("home", "x", manifest("x", &json!({"dependencies": {"b": range}})));
        let (found, _) = world.extensions();
        error(&found, "x").to_owned()
    };
    for range in ["^1.2", "*", ">=1.0, <2"] {
        let said = needing(range);
        assert!(said.contains("version 1.3.0-beta.1 is there, which is a pre-release"), "{said}");
        assert!(said.contains("must be named in the range, such as \">=1.3.0-beta.1\""), "{said}");
    }
    assert!(needing("^2").contains("update one of the two"));
    assert_eq!(needing(">=1.3.0-beta.1"), "");
}
