//! Which folders count, and that nothing counts twice.

use std::fs;
use std::path::Path;

use ollm_catalog::{Places, find_projects};
use ollm_protocol::Source;

use crate::world::{World, ids, link};

#[test]
fn the_project_is_the_nearest_folder_with_a_mark() {
    let world = World::new();
    let home = world.path("home/.ollm");
    fs::create_dir_all(world.path("project/a/b")).unwrap();
    let standing = || Places { home: home.clone(), ..Places::default() }.standing_in(&world.path("project/a/b"));
    assert_eq!(standing().project, Some(world.path("project")));
    world.write("project/a/.git", "gitdir: elsewhere");
    let places = standing();
    assert_eq!(places.project, Some(world.path("project/a")));
    assert_eq!(places.enclosing.last(), Some(&world.path("project")), "the one around it counts as well");
}

#[test]
fn the_users_own_folder_does_not_make_a_project() {
    let world = World::new();
    let home = world.path("home/.ollm");
    fs::create_dir_all(world.path("home/work")).unwrap();
    link(world.path("home/.ollm"), world.path("home/work/.ollm"));
    let found = find_projects(&world.path("home/work"), &home);
    assert!(!found.contains(&world.path("home")) && !found.contains(&world.path("home/work")), "{found:?}");
}

#[test]
fn a_hook_is_never_taken_twice_when_the_project_is_the_home() {
    let mut world = World::new();
    world.places.project.clone_from(&world.places.user_home);
    world.entry(r#"{"name": "file", "command": "/bin/true"}"#);
    let settings = r#"{"hooks": {"PreToolUse": [{"hooks": [{"name": "s", "command": "true"}]}]}}"#;
    world.write("home/.config/agent/settings.json", settings);
    let hooks = world.hooks();
    assert_eq!(ids(&hooks), ["user:a.json:before_tool:file", "user:.config/agent/settings.json:PreToolUse:s"]);
    assert!(hooks.iter().all(|hook| hook.spec.source == Source::User));
}

#[test]
fn a_linked_folder_or_file_of_the_users_stays_the_users() {
    let world = World::new();
    world.entry(r#"{"name": "n", "command": "/bin/true"}"#);
    link(world.path("home/.ollm/hooks/a.json"), world.path("project/.ollm/hooks/z.json"));
    assert_eq!(ids(&world.hooks()), ["user:a.json:before_tool:n"]);
    fs::remove_dir_all(world.path("project/.ollm")).unwrap();
    link(world.path("home/.ollm"), world.path("project/.ollm"));
    assert_eq!(ids(&world.hooks()), ["user:a.json:before_tool:n"]);
}

#[test]
fn files_count_in_the_order_of_their_names_the_users_before_the_projects() {
    let world = World::new();
    let text = |name| format!(r#"{{"hooks": {{"before_tool": [{{"id": "{name}", "command": "/bin/true"}}]}}}}"#);
    for (path, name) in [
        ("project/.ollm/hooks/a.json", "project"),
        ("home/.ollm/hooks/b.json", "b"),
        ("home/.ollm/hooks/a.json", "a"),
        ("home/.ollm/hooks/.hidden.json", "hidden"),
        ("home/.ollm/hooks/sub/c.json", "deeper"),
        ("home/.ollm/hooks/notes.txt", "text"),
    ] {
        world.write(path, text(name));
    }
    assert_eq!(ids(&world.hooks()), ["a", "b", "project"]);
}

#[test]
fn nothing_at_all_is_no_problem() {
    let mut world = World::new();
    world.places.home = world.path("missing");
    world.places.project = Some(world.path("missing too"));
    assert_eq!(world.hooks().len(), 0);
    world.places.project = None;
    world.places.user_home = None;
    assert_eq!(world.hooks().len(), 0);
}

#[test]
fn the_folder_of_an_event_adds_the_projects_around_it_that_we_are_not_in_yet() {
    let world = World::new();
    for marker in ["outer/.ollm", "outer/inner/.ollm", "outer/other/.git", "outer/other/deep", "far/.ollm"] {
        fs::create_dir_all(world.path(marker)).unwrap();
    }
    let here = Places { home: world.path("home/.ollm"), ..Places::default() }.standing_in(&world.path("outer/inner"));
    let with = |folder: &str| {
        let places = here.also_in(&world.path(folder));
        let ours = places.projects().filter(|project| project.starts_with(world.base()));
        ours.map(Path::to_owned).collect::<Vec<_>>()
    };
    let projects = |names: &[&str]| names.iter().map(|name| world.path(name)).collect::<Vec<_>>();
    assert_eq!(with("outer/inner/src"), projects(&["outer", "outer/inner"]));
    assert_eq!(with("outer"), projects(&["outer", "outer/inner"]));
    assert_eq!(with("outer/other/deep"), projects(&["outer", "outer/other", "outer/inner"]));
    assert_eq!(with("far"), projects(&["outer", "far", "outer/inner"]));
}
