//! The examples of the guide to extensions load, and so do those that ship.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::validate_extension;
use ollm_protocol::Rules;

use crate::world::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The manifests in the guide.
fn guide() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/extensions.md")).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
    let manifests: Vec<&str> = blocks.filter(|block| block.contains("\"version\"")).collect();
    assert!(!manifests.is_empty());
    manifests.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_manifest_of_the_guide_is_valid() {
    for manifest in guide() {
        let world = World::new();
        let file = world.manifest("home", "example", &manifest);
        let (extension, problems) = validate_extension(file.parent().unwrap(), &Rules::default());
        assert_eq!(problems, [], "{manifest}");
        assert!(extension.is_on());
    }
}

#[test]
fn the_examples_that_ship_are_valid() {
    let folder = root().join("examples/extensions");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let (extension, problems) = validate_extension(&entry.path(), &Rules::default());
        assert_eq!(problems, [], "{}", extension.name);
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn every_manifest_here_fits_the_published_schema() {
    let schema = fs::read_to_string(root().join("docs/schemas/manifest.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let examples = fs::read_dir(root().join("examples/extensions")).unwrap().flatten();
    let files = examples.map(|entry| entry.path().join("manifest.json")).filter(|file| file.is_file());
    let demo = root().join("crates/cli/src/command/demo/manifest.json");
    let texts = files.chain([demo]).map(|file| fs::read_to_string(file).unwrap());
    let all: Vec<String> = texts.chain(guide()).collect();
    assert!(all.len() > 4);
    for manifest in all {
        let value = serde_json::from_str(&manifest).unwrap();
        let complaints: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(complaints, Vec::<String>::new(), "{manifest}");
    }
}
