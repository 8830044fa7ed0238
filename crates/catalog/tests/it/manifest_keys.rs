//! The rows of the keys of a manifest, each walked: read and described as it says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ollm_catalog::{Extension, ManifestKey, manifest_keys, validate_extension};
use ollm_protocol::Rules;
use serde_json::{Value, json};

use crate::world::World;

/// A value that a key takes, and that is not what holds without it.
fn sample(part: &str, key: &str) -> Value {
    match (part, key) {
        ("", "name") => json!("other"),
        ("", "version") => json!("2.0.0"),
        ("", "manifestVersion") => json!(1),
        ("", "keywords") | ("permissions", "filesystem" | "network" | "env") => json!(["a"]),
        ("", "mcpServers") => json!({"s": {"url": "https://a/mcp"}}),
        ("", "hooks") => json!({"session_start": [{"name": "h", "action": {"type": "askAgent", "prompt": "p"}}]}),
        ("", "settings") => json!([{"name": "t", "description": "d"}]),
        ("", "skills") => json!([{"name": "t", "description": "d", "prompt": "p"}]),
        ("", "dependencies") => json!({"base": "^1"}),
        ("", "permissions") => json!({"shell": false}),
        ("settings", "type") => json!("number"),
        ("settings", "envVar") => json!("TOKEN"),
        ("settings", "sensitive" | "required") => json!(true),
        ("settings", "enum") => json!(["a", "b"]),
        ("permissions", "shell" | "mcp") => json!(false),
        _ => json!("words"),
    }
}

/// A manifest that holds every part, and where each is.
fn base() -> Value {
    json!({
        "name": "x", "version": "1.0.0", "description": "d", "permissions": {},
        "settings": [{"name": "s", "description": "d"}],
        "skills": [{"name": "k", "description": "d", "prompt": "p"}],
    })
}

fn at<'a>(manifest: &'a mut Value, part: &str) -> &'a mut Value {
    match part {
        "" => manifest,
        "permissions" => &mut manifest[part],
        list => &mut manifest[list][0],
    }
}

fn read(manifest: &Value) -> (Extension, Vec<String>) {
    let world = World::new();
    let file = world.manifest("home", "x", manifest.to_string());
    let (extension, problems) = validate_extension(file.parent().unwrap(), &Rules::default());
    (extension, problems.iter().map(ToString::to_string).collect())
}

fn rows() -> impl Iterator<Item = (&'static str, ManifestKey)> {
    manifest_keys().into_iter().flat_map(|(part, keys)| keys.into_iter().map(move |key| (part, key)))
}

#[test]
fn every_key_takes_what_its_row_says_and_reaches_the_extension() {
    assert_eq!(read(&base()).1, Vec::<String>::new());
    for (part, key) in rows() {
        let mut manifest = base();
        if part.is_empty() && key.name != "permissions" {
            // What the others reach is held against them.
            manifest.as_object_mut().unwrap().remove("permissions");
        }
        if key.name == "envVar" {
            manifest["permissions"]["env"] = json!(["TOKEN"]);
        }
        let (plain, _) = read(&manifest);
        at(&mut manifest, part)[key.name] = sample(part, key.name);
        let (extension, told) = read(&manifest);
        assert_eq!(told, Vec::<String>::new(), "{part}.{}", key.name);
        let same = extension.name == plain.name
            && extension.manifest == plain.manifest
            && extension.hooks.len() == plain.hooks.len();
        // Which form it has is looked at before anything else.
        assert_eq!(same, ["$schema", "manifestVersion"].contains(&key.name), "{part}.{}", key.name);
    }
}

#[test]
fn a_key_that_must_be_there_is_missed_and_every_other_one_is_not() {
    for (part, key) in rows() {
        let mut manifest = base();
        at(&mut manifest, part).as_object_mut().unwrap().remove(key.name);
        let (_, told) = read(&manifest);
        assert_eq!(told.concat().contains(&format!("has no `{}`", key.name)), key.default.is_none(), "{}", key.name);
    }
}

#[test]
fn a_mistyped_key_of_any_part_is_told_and_neither_a_permission_nor_a_secret_is_taken_for_granted() {
    for (part, key) in rows() {
        let mut manifest = base();
        let mistyped = format!("{}{}", key.name, &key.name[key.name.len() - 1..]);
        at(&mut manifest, part)[&mistyped] = json!("x");
        let (extension, told) = read(&manifest);
        let wanted = if part == "permissions" { "is no permission" } else { "unknown key" };
        assert!(told.concat().contains(wanted), "{part}.{mistyped}: {told:?}");
        assert_eq!(extension.is_broken(), part == "permissions" || key.name == "sensitive", "{part}.{mistyped}");
    }
}

#[test]
fn every_permission_is_shown() {
    for (_, key) in rows().filter(|(part, _)| *part == "permissions") {
        let mut manifest = base();
        manifest["permissions"] = json!({key.name: sample("permissions", key.name)});
        let lines = read(&manifest).0.manifest.permissions.lines();
        assert!(lines.iter().any(|line| line.starts_with(key.name)), "{}: {lines:?}", key.name);
    }
}

const END: &str = "<!-- the end of the table -->";

/// A document with the table of some parts written anew.
fn with_table(text: &str, table: &str, parts: &[&str]) -> String {
    let begin = format!("<!-- the table of {table}: generated, a test keeps it true -->\n");
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut rows = "| key | meaning | without it |\n|---|---|---|\n".to_owned();
    for (part, keys) in manifest_keys().into_iter().filter(|(part, _)| parts.contains(part)) {
        let part = if part.is_empty() || table == part { String::new() } else { format!("{part}.") };
        for ManifestKey { name, about, default } in keys {
            let _ = writeln!(rows, "| `{part}{name}` | {about} | {} |", default.unwrap_or("required"));
        }
    }
    format!("{before}{begin}{rows}{END}{after}")
}

#[test]
fn the_tables_of_keys_in_the_guide_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/extensions.md");
    let text = fs::read_to_string(&path).unwrap();
    let wanted = with_table(&text, "keys", &["", "skills", "permissions"]);
    let wanted = with_table(&wanted, "settings", &["settings"]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == wanted,
        "docs/extensions.md is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm-catalog --test it manifest_keys"
    );
}
