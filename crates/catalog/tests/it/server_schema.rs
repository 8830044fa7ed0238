//! Every file that declares servers has one schema of them, with exactly the keys that are read.

use std::collections::BTreeSet;

use ollm_catalog::{
    OTHER_TRANSPORTS, SERVER_KEYS, ServerKey, ServerKeyKind, TRANSPORTS, check_server, config_schema, find_key,
    manifest_schema,
};
use serde_json::{Value, json};

/// The schema of a server, by the file it may stand in.
fn schemas() -> [(&'static str, Value); 2] {
    let config = config_schema().pointer("/properties/mcp/properties/servers/additionalProperties").cloned();
    let manifest = manifest_schema().pointer("/properties/mcpServers/additionalProperties").cloned();
    [("manifest", manifest.unwrap()), ("config", config.unwrap())]
}

/// All words for these keys but their spellings in snake case.
fn words(keys: &'static [ServerKey]) -> BTreeSet<&'static str> {
    let keys = keys.iter().filter(|row| !matches!(row.kind, ServerKeyKind::Place));
    keys.flat_map(|row| [&[row.name], row.aliases].concat()).collect()
}

/// The keys of a part of a server.
fn part(name: &str) -> &'static [ServerKey] {
    SERVER_KEYS.iter().find(|row| row.name == name).unwrap().inner()
}

fn properties<'a>(schema: &'a Value, below: &str) -> BTreeSet<&'a str> {
    let found = schema.pointer(&format!("{below}/properties")).and_then(Value::as_object).unwrap();
    found.keys().map(String::as_str).filter(|word| !word.contains('_')).collect()
}

#[test]
fn the_schema_has_the_keys_that_are_read_and_no_others() {
    for (file, schema) in schemas() {
        assert_eq!(properties(&schema, ""), words(SERVER_KEYS), "{file}");
        assert_eq!(properties(&schema, "/properties/oauth"), words(part("oauth")), "{file}");
        assert_eq!(properties(&schema, "/properties/limits"), words(part("limits")), "{file}");
        let all = schema["properties"].as_object().unwrap();
        let limits = schema["properties"]["limits"]["properties"].as_object().unwrap();
        let oauth = schema["properties"]["oauth"]["properties"].as_object().unwrap();
        for (key, property) in all.iter().chain(limits).chain(oauth) {
            let about = property["description"].as_str().unwrap_or_default();
            assert!(!about.is_empty(), "{file}: {key} is not described");
        }
    }
    let [(_, manifest), (_, config)] = schemas();
    assert_eq!(manifest["properties"], config["properties"]);
}

/// What is said about a declaration of either kind with this key in it.
fn told(base: Value, below: &str, key: &str) -> String {
    let mut declaration = base;
    declaration.pointer_mut(below).unwrap().as_object_mut().unwrap().entry(key).or_insert(json!([{}]));
    let (_, problems) = check_server("s", &declaration);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_reader_knows_every_key_of_its_lists() {
    let base = || json!({"command": "x", "oauth": {}, "limits": {}});
    for (below, keys) in [("", SERVER_KEYS), ("/oauth", part("oauth")), ("/limits", part("limits"))] {
        for key in words(keys) {
            let said = told(base(), below, key);
            assert!(!said.contains("unknown key"), "{below}/{key}: {said}");
        }
        assert!(told(base(), below, "nonsense").contains("unknown key `nonsense`"), "{below}");
    }
}

#[test]
fn every_word_for_a_transport_fits_the_schema_and_is_read() {
    let words = TRANSPORTS.iter().map(|word| (*word, *word)).chain(OTHER_TRANSPORTS.iter().copied());
    let validators = schemas().map(|(_, schema)| jsonschema::validator_for(&schema).unwrap());
    for (word, meaning) in words {
        let address = if meaning == "stdio" { "command" } else { "url" };
        for word in [word.to_owned(), word.to_uppercase()] {
            let declaration = json!({address: "http://x", "type": word});
            let declaration = if meaning == "stdio" { json!({"command": "x", "type": word}) } else { declaration };
            assert!(validators.iter().all(|schema| schema.is_valid(&declaration)), "{declaration}");
            let (server, problems) = check_server("s", &declaration);
            assert_eq!((server.map(|server| server.address.transport()), problems), (Some(meaning), vec![]), "{word}");
        }
    }
}

#[test]
fn every_key_of_a_server_is_a_setting() {
    for row in SERVER_KEYS.iter().filter(|row| !matches!(row.kind, ServerKeyKind::Place)) {
        let key = find_key(&format!("mcp.servers.some.{}", row.name)).unwrap();
        assert_eq!(key.about, row.about);
        for inner in row.inner() {
            assert_eq!(key.kind.expected().contains(inner.name), inner.unhonoured.is_none(), "{}", inner.name);
        }
    }
    assert_eq!(find_key("mcp.servers.some.comand").err().flatten().as_deref(), Some("mcp.servers.some.command"));
}
