//! What is wrong with an extension, and easily passed over.

use serde_json::{Value, json};

use crate::extensions::{error, manifest, problem, setting};
use crate::world::World;

#[test]
fn an_address_whose_host_cannot_be_told_is_refused_where_permissions_are_declared() {
    let refused = |key: &str, url: &str, network: &Value| {
        let more = json!({"mcpServers": {"s": {key: url}}, "permissions": {"network": network}});
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
        world.env.insert("TOKEN_X".into(), String::new());
        let (found, _) = world.extensions();
        assert!(error(&found, "x").contains("setting `token` is required and not set"), "{found:?}");
    }
    let empty = setting(&json!({"required": true, "default": ""}));
    assert!(problem(&manifest("x", &empty)).message.contains("must not be empty"));
}
