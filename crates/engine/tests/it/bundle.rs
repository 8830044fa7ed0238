//! Extensions: the whole folder is what is approved, and what runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook, HookSpec, Source};
use ollm_trust::{ContentStoreError, ExtensionFolder, Proposal, Standing, StartRefusal, Term, extension_keys};

use crate::support::{World, event, file};

/// What is done to a folder.
type Change = (&'static str, fn(&Path));

/// An extension's folder with a hook that says what a file beside it holds.
fn extension(world: &World) -> (PathBuf, HookSpec) {
    let root = world.path("ext");
    fs::create_dir_all(root.join("data")).unwrap();
    fs::write(root.join("data/word"), "one").unwrap();
    let script = "read word <\"$(dirname \"$0\")/data/word\"; printf '{\"continue\": true, \"systemMessage\": \"%s\"}' \"$word\"\n";
    fs::write(root.join("run.sh"), script).unwrap();
    let action = ActionSpec::Command(CommandSpec {
        command: "sh".to_owned(),
        args: vec![root.join("run.sh").display().to_string()],
        script: Some(root.join("run.sh")),
    });
    let spec = HookSpec {
        source: Source::Extension,
        extension: Some("ext".to_owned()),
        tree: Some(root.clone()),
        ..HookSpec::new("user:ext:before_tool:run", "before_tool", action)
    };
    (root, spec)
}

fn propose(world: &World, root: &Path) -> Result<Proposal, StartRefusal> {
    let folder = ExtensionFolder::new("ext", root);
    world.engine.trust.propose(&folder, &world.engine.environment().trust_context())
}

fn approve(world: &World, whole: &Proposal, hook: &Arc<Hook>) {
    let (trust, context) = (&world.engine.trust, world.engine.environment().trust_context());
    let folder = ExtensionFolder::new("ext", &whole.identity.source);
    let part = trust.propose_part(whole, &**hook, &context).unwrap();
    let approvals = [
        trust.approval_of(&folder, whole, Term::Always, &context).unwrap(),
        trust.approval_of(&**hook, &part, Term::Always, &context).unwrap(),
    ];
    trust.approve_together(approvals).unwrap();
}

fn why(world: &World, hook: &Arc<Hook>) -> Option<&'static str> {
    world.engine.trusted(hook).err().map(|skip| skip.reason.name())
}

#[test]
fn an_extension_runs_from_a_copy_of_its_whole_folder() {
    let world = World::new();
    let (root, spec) = extension(&world);
    let hook = world.hook(spec);
    let bundle = propose(&world, &root).unwrap();
    approve(&world, &bundle, &hook);
    let trusted = world.engine.trusted(&hook).unwrap();
    assert!(trusted.runs_from_copy());
    // Changed after it was looked at: what runs is still what was approved.
    fs::write(root.join("data/word"), "two").unwrap();
    let report = world.engine.run_one(&trusted, &event()).unwrap();
    assert_eq!(format!("{:?}", report.verdict.system_messages), r#"["one"]"#);
}

#[test]
fn any_change_in_the_folder_makes_the_whole_extension_modified() {
    let changes: [Change; 4] = [
        ("content", |root| fs::write(root.join("data/word"), "two").unwrap()),
        ("new file", |root| fs::write(root.join("new"), "").unwrap()),
        ("removed", |root| fs::remove_file(root.join("data/word")).unwrap()),
        ("renamed", |root| fs::rename(root.join("data/word"), root.join("data/words")).unwrap()),
    ];
    for (what, change) in changes {
        let world = World::new();
        let (root, spec) = extension(&world);
        let hook = world.hook(spec);
        let bundle = propose(&world, &root).unwrap();
        assert_eq!((why(&world, &hook), standing(&world, &root)), (Some("untrusted"), Standing::Unknown));
        approve(&world, &bundle, &hook);
        assert_eq!((why(&world, &hook), standing(&world, &root)), (None, Standing::Approved));
        change(&root);
        assert_eq!((why(&world, &hook), standing(&world, &root)), (Some("modified"), Standing::Modified), "{what}");
        assert!(world.engine.trust.approved_extension("ext", &root).unwrap().join("data/word").exists());
    }
}

#[test]
fn a_folder_that_is_held_is_taken_for_what_was_approved_until_it_is_released() {
    let world = World::new();
    let (root, spec) = extension(&world);
    let hook = world.hook(spec);
    let trust = &world.engine.trust;
    trust.hold([("ext", root.as_path())]);
    assert_eq!(why(&world, &hook), Some("untrusted"), "nobody approved it");
    let bundle = propose(&world, &root).unwrap();
    approve(&world, &bundle, &hook);
    fs::write(root.join("data/word"), "two").unwrap();
    assert_eq!(why(&world, &hook), Some("modified"));
    trust.hold([("ext", root.as_path())]);
    let trusted = world.engine.trusted(&hook).unwrap();
    let report = world.engine.run_one(&trusted, &event()).unwrap();
    assert_eq!(format!("{:?}", report.verdict.system_messages), r#"["one"]"#);
    trust.hold([]);
    assert_eq!(why(&world, &hook), Some("modified"));
    trust.hold([("ext", root.as_path())]);
    trust.withdraw(&extension_keys("ext", &root, [&*hook])).unwrap();
    assert_eq!(why(&world, &hook), Some("untrusted"), "an approval that was withdrawn holds nothing");
    trust.hold([]);
    approve(&world, &propose(&world, &root).unwrap(), &hook);
    trust.hold([("ext", root.as_path())]);
    fs::write(root.join("run.sh"), "exit 1\n").unwrap();
    assert_eq!(why(&world, &hook), Some("modified"), "the script of the hook itself is another one");
}

fn standing(world: &World, root: &Path) -> Standing {
    let digest = world.engine.trust.tree_digest(root).unwrap();
    world.engine.trust.extension_standing("ext", root, &digest)
}

#[test]
fn what_changed_after_it_was_shown_is_not_approved() {
    let world = World::new();
    let (root, spec) = extension(&world);
    let hook = world.hook(spec);
    let bundle = propose(&world, &root).unwrap();
    fs::write(root.join("data/word"), "two").unwrap();
    let refused = world.engine.trust.propose_part(&bundle, &*hook, &world.engine.environment().trust_context());
    assert!(matches!(refused, Err(StartRefusal::NoCopy(ContentStoreError::Changed { .. }))), "{refused:?}");
}

#[test]
fn a_withdrawn_approval_covers_nothing_any_more() {
    let world = World::new();
    let (root, spec) = extension(&world);
    let hook = world.hook(spec);
    let bundle = propose(&world, &root).unwrap();
    approve(&world, &bundle, &hook);
    let hooks = [Arc::clone(&hook)];
    let keys = extension_keys("ext", &root, hooks.iter().map(|hook| &**hook));
    assert!(world.engine.trust.withdraw(&keys).unwrap() > 0);
    assert_eq!(world.engine.trust.withdraw(&keys).unwrap(), 0);
    assert_eq!((why(&world, &hook), standing(&world, &root)), (Some("untrusted"), Standing::Unknown));
}

#[test]
fn a_file_outside_of_the_folder_cannot_be_part_of_it() {
    let world = World::new();
    let (root, spec) = extension(&world);
    let outside = world.script("outside.sh", "#!/bin/sh\n");
    let hook = world.hook(HookSpec { action: file("x", &outside).action, ..spec });
    let refused = world.engine.trust.identity(&*hook, &world.engine.environment().trust_context());
    assert!(
        matches!(&refused, Err(StartRefusal::NoCopy(ContentStoreError::Outside { path, base })) if *path == outside && *base == root)
    );
}

#[test]
fn a_link_out_of_the_folder_is_refused() {
    let world = World::new();
    let (root, spec) = extension(&world);
    std::os::unix::fs::symlink("/etc", root.join("etc")).unwrap();
    let hook = world.hook(spec);
    assert!(propose(&world, &root).is_err());
    assert_eq!(why(&world, &hook), Some("untrusted"));
}
