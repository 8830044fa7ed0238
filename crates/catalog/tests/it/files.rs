//! Things that are named like a hook file and are none.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;

use ollm_catalog::{Problem, Severity};

use crate::world::{World, link};

/// The one problem of `x.json`, while the file beside it loads.
fn problem(world: &World) -> Problem {
    world.write("home/.ollm/hooks/y.json", r#"{"before_tool": [{"command": "npx"}]}"#);
    let (problem, loaded) = world.problem();
    assert_eq!((problem.severity, loaded), (Severity::Error, 1));
    assert_eq!(problem.file, world.path("home/.ollm/hooks/x.json"));
    problem
}

#[test]
fn a_folder_a_pipe_and_a_link_are_told_apart() {
    let world = World::new();
    let path = world.path("home/.ollm/hooks/x.json");
    fs::create_dir(&path).unwrap();
    assert_eq!(problem(&world).message, "it is a folder, not a regular file");
    fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert_eq!(problem(&world).message, "it is a named pipe, not a regular file");
    fs::remove_file(&path).unwrap();
    link(&path, &path);
    assert!(problem(&world).message.starts_with("cannot open it"));
    fs::remove_file(&path).unwrap();
    link("nowhere", &path);
    assert_eq!(problem(&world).message, "it is a link to nothing; nothing is loaded");
}

#[test]
fn a_file_of_unreasonable_size_is_not_read() {
    let world = World::new();
    let path = world.write("home/.ollm/hooks/x.json", "");
    File::options().write(true).open(path).unwrap().set_len(200_000_000).unwrap();
    let problem = problem(&world);
    assert_eq!(problem.message, "it has 200000000 bytes, at most 4194304 are read");
    assert_eq!(problem.help.as_deref(), Some("make it smaller or move it away"));
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let world = World::new();
    world.write("home/.ollm/hooks/x.json", b"{\n \"\xc3\xb6\": \"\xff\"}");
    let problem = problem(&world);
    assert_eq!((problem.line, problem.column, problem.value.as_deref()), (2, 8, Some("0xff")));
    assert_eq!(problem.help.as_deref(), Some("save it as UTF-8"));
}

#[test]
fn a_byte_order_mark_does_no_harm_and_shifts_nothing() {
    let world = World::new();
    world.write("home/.ollm/hooks/x.json", "\u{feff}{\"before_tool\": [{\"command\": \"\"}]}");
    let problem = problem(&world);
    assert_eq!((problem.line, problem.column), (1, 30));
}

#[test]
fn a_file_that_may_not_be_read_says_so() {
    let world = World::new();
    let path = world.write("home/.ollm/hooks/x.json", "{}");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        return; // The superuser may read everything.
    }
    let problem = problem(&world);
    assert!(problem.message.starts_with("cannot open it"));
    assert_eq!(problem.help.as_deref(), Some("make it readable for its owner (chmod u+r)"));
}

#[test]
fn a_file_in_the_place_of_the_hooks_folder_is_named() {
    let world = World::new();
    fs::remove_dir(world.path("home/.ollm/hooks")).unwrap();
    let file = world.write("home/.ollm/hooks", "");
    let (problem, _) = world.problem();
    assert_eq!(problem.file, file);
    assert!(problem.message.starts_with("cannot look into it"), "{}", problem.message);
}
