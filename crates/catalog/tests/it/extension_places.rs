//! Folders of extensions that are not as they should be, and what is set for extensions that are not there.

use std::fs;

use ollm_catalog::{Dependency, configuration, validate_extension};
use ollm_protocol::Rules;
use serde_json::json;

use crate::extensions::{error, manifest, setting};
use crate::world::{World, link};

fn directories(world: &World, folder: &str) -> Vec<String> {
    world.write("home/.ollm/config.yaml", format!("extensions:\n  directories: [{folder}]\n"));
    world.extensions().1.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn a_directory_that_is_not_there_or_is_none_is_told() {
    let world = World::new();
    let told = directories(&world, "/nowhere/at/all");
    assert_eq!(told, ["it does not exist, though extensions.directories names it"]);
    let file = world.write("home/a-file", "");
    let told = directories(&world, file.to_str().unwrap());
    assert!(told.len() == 1 && told[0].starts_with("cannot look into it: "), "{told:?}");
}

#[test]
fn of_very_many_folders_the_first_are_loaded() {
    let world = World::new();
    for number in 0..2001 {
        fs::create_dir_all(world.base().join(format!("home/.ollm/extensions/e{number}"))).unwrap();
    }
    let told: Vec<String> = world.extensions().1.into_iter().map(|problem| problem.message).collect();
    assert_eq!(told, ["only its first 2000 extensions are loaded"]);
}

#[test]
fn a_link_to_a_file_is_no_extension() {
    let world = World::new();
    let file = world.write("home/a-file", "");
    world.manifest("home", "x", manifest("x", &json!({})));
    link(&file, world.base().join("home/.ollm/extensions/linked"));
    let (found, problems) = world.extensions();
    assert_eq!((found.iter().count(), problems), (1, Vec::new()));
}

#[test]
fn a_folder_without_a_manifest_is_told_and_a_package_of_another_agent_is_read() {
    let world = World::new();
    let folder = world.base().join("home/package");
    fs::create_dir_all(&folder).unwrap();
    let (_, problems) = validate_extension(&folder, &Rules::default());
    assert_eq!(problems[0].message, "it has no manifest.json");
    world.write(
        "home/package/gemini-extension.json",
        r#"{"name": "theirs", "version": "1.0.0", "excludeTools": ["x"]}"#,
    );
    let (found, problems) = validate_extension(&folder, &Rules::default());
    assert_eq!((found.name.as_str(), found.form), ("theirs", Some("Gemini CLI extension")));
    assert!(problems[0].message.starts_with("a part of this Gemini CLI extension is not loaded: "), "{problems:?}");
    world.write("home/package/gemini-extension.json", "{");
    assert!(validate_extension(&folder, &Rules::default()).0.is_broken());
}

#[test]
fn what_was_approved_goes_on_where_its_manifest_can_no_longer_be_read() {
    let mut world = World::new();
    world.write("home/copy/manifest.json", manifest("x", &setting(&json!({"envVar": "X_VALUE", "sensitive": true}))));
    world.manifest("home", "x", "{");
    assert!(world.extensions().0.iter().all(ollm_catalog::Extension::is_broken));
    world.env.insert("X_VALUE".into(), "secret".into());
    let (found, _) = world.extensions_approved_as("home/copy");
    let extension = found.get("x").unwrap();
    assert!(extension.is_on() && extension.held().is_some(), "{extension:?}");
    // Of what was never approved no variable is read.
    world.manifest("home", "y", manifest("y", &setting(&json!({"envVar": "X_VALUE"}))));
    let (found, _) = world.extensions_approved_as("home/copy");
    let value = &found.get("y").unwrap().values[0];
    assert!(value.value.is_none() && value.kept.is_some(), "{value:?}");
    fs::remove_dir_all(world.base().join("home/.ollm/extensions/y")).unwrap();
    let (found, _) = world.extensions_approved_as("home/elsewhere");
    assert!(found.iter().all(ollm_catalog::Extension::is_broken));
}

#[test]
fn what_is_set_for_nobody_or_in_vain_is_told() {
    let mut world = World::new();
    world.manifest("home", "x", manifest("x", &setting(&json!({"type": "number"}))));
    world.manifest("home", "broken", "{");
    let set = "extensions:\n  settings:\n    x: {x: seven, y: 1}\n    z: {a: 1}\n    broken: {a: 1}\n";
    world.write("home/.ollm/config.yaml", set);
    let (config, _) = configuration(&world.places, &|_| None, &world.overrides);
    let told = world.extensions().0.misset(&config, &world.places);
    let told: Vec<&str> = told.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(told, ["extensions.settings.x.x", "extensions.settings.x.y", "extensions.settings.z.a"]);
    world.write("home/.ollm/config.yaml", "");
    world.overrides.set("extensions.settings.x.x", "7").unwrap();
    assert!(world.extensions().0.get("x").unwrap().is_on());
    world.overrides.set("extensions.settings.x.x", "eight").unwrap();
    assert!(error(&world.extensions().0, "x").contains('x'));
}

#[test]
fn no_range_takes_what_is_no_version() {
    let any = Dependency { name: "x".to_owned(), range: "*".to_owned() };
    assert!(any.accepts("1.2.3") && !any.accepts("one"));
}
