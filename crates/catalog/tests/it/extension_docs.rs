//! The examples of the guide to extensions load, and so do those that ship.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::validate_extension;
use ollm_protocol::Rules;

use crate::world::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_manifest_of_the_guide_is_valid() {
    let text = fs::read_to_string(root().join("docs/extensions.md")).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
    let manifests: Vec<&str> = blocks.filter(|block| block.contains("\"version\"")).collect();
    assert!(!manifests.is_empty());
    for manifest in manifests {
        let world = World::new();
        let file = world.manifest("home", "example", manifest);
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
