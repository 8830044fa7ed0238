//! Programs in their boxes: no set of permissions allows what it does not name.

use std::fs;
use std::path::Path;

use ollm_process::{BoxMeans, BoxRules, Children, End, Job, ProcessBox};
use ollm_protocol::PermissionsSpec;
use ollm_trust::{ProgramBox, TrustContext};
use proptest::prelude::*;

/// Folders as permissions spell them, each with its place below the root of the scene.
const FOLDERS: [(&str, &str); 6] = [
    ("~/notes", "home/notes"),
    ("~/notes/inner", "home/notes/inner"),
    ("~/.config", "home/.config"),
    ("build", "home/project/build"),
    ("src", "home/project/src"),
    ("../other", "home/other"),
];

fn named(chosen: [bool; 6]) -> Vec<String> {
    FOLDERS.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|((name, _), _)| (*name).to_owned()).collect()
}

/// Whether a folder is named, or lies in one that is.
fn is_named(place: &str, chosen: [bool; 6]) -> bool {
    FOLDERS.iter().zip(chosen).any(|((_, named), chosen)| chosen && Path::new(place).starts_with(named))
}

/// For each folder whether it could be read and written, and whether a socket could be opened.
fn tried(root: &Path, permissions: PermissionsSpec) -> Option<String> {
    let home = root.join("home");
    let variables = vec![("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), root.join("tmp").into())];
    let context = TrustContext { variables: &variables, home: Some(&home), ..TrustContext::default() };
    let own = ProgramBox::new("/bin/sh", home.join("project"), &context);
    let own = ProgramBox { permissions, declared: true, ..own };
    let places: Vec<String> = FOLDERS.iter().map(|(_, place)| root.join(place).display().to_string()).collect();
    let script = format!(
        "try() {{ if \"$@\" > /dev/null 2>&1; then printf 1; else printf 0; fi; }}
        put() {{ echo x > \"$1/new\"; }}
        for d in {}; do try cat $d/file; try put $d; done
        try perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 1'",
        places.join(" ")
    );
    let job = Job { args: vec!["-c".into(), script.into()], env: variables.clone(), ..Job::new("/bin/sh") };
    let job = own.hold(Job { cwd: Some(home.join("project")), ..job }).ok()?;
    let outcome = Children::new().run(job);
    assert!(matches!(outcome.end, End::Exited(0)), "{outcome:?}");
    Some(String::from_utf8(outcome.stdout).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn no_set_of_permissions_allows_what_it_does_not_name(
        read in proptest::array::uniform6(any::<bool>()),
        write in proptest::array::uniform6(any::<bool>()),
        net: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("tmp")).unwrap();
        for (_, place) in FOLDERS {
            fs::create_dir_all(root.join(place)).unwrap();
            fs::write(root.join(place).join("file"), "x").unwrap();
        }
        let permissions = PermissionsSpec { read: named(read), write: named(write), net };
        let Some(could) = tried(&root, permissions.clone()) else { return Ok(()) };
        let mut wanted = String::new();
        for (_, place) in FOLDERS {
            let writes = is_named(place, write);
            let reads = writes || is_named(place, read) || Path::new(place).starts_with("home/project");
            wanted.extend([reads, writes].map(|can| if can { '1' } else { '0' }));
        }
        wanted.push(if net { '1' } else { '0' });
        prop_assert_eq!(could, wanted, "{:?}", permissions);
        prop_assert_eq!(fs::read_dir(root.join("tmp")).unwrap().count(), 0, "its temporary folder is gone");
    }
}

#[test]
fn a_program_in_the_home_opens_neither_the_home_nor_what_lies_beside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["home/bin", "home/.local/bin", "home/.local/lib", "home/.local/share", "home/project"] {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("file"), name).unwrap();
    }
    fs::write(root.join("home/secret"), "secret").unwrap();
    let home = root.join("home");
    let search_path = format!("{}/bin:{}/.local/bin:/usr/bin:/bin", home.display(), home.display());
    let variables = vec![("PATH".into(), search_path.into()), ("TMPDIR".into(), root.clone().into())];
    let context = TrustContext { variables: &variables, home: Some(&home), ..TrustContext::default() };
    for program in ["home/bin/sh", "home/.local/bin/sh"] {
        fs::copy("/bin/sh", root.join(program)).unwrap();
        let script = "for f in bin/file .local/bin/file .local/lib/file .local/share/file secret; do
            if cat ../$f > /dev/null 2>&1; then printf 1; else printf 0; fi; done";
        let own = ProgramBox { declared: true, ..ProgramBox::new(root.join(program), home.join("project"), &context) };
        let args = vec!["-c".into(), script.into()];
        let job = Job { args, env: variables.clone(), cwd: Some(home.join("project")), ..Job::new(root.join(program)) };
        let Ok(job) = own.hold(job) else { return };
        let outcome = Children::new().run(job);
        assert_eq!(String::from_utf8_lossy(&outcome.stdout), "11100", "{program}: {outcome:?}");
    }
}

#[test]
fn a_folder_that_is_declared_as_one_is_made_before_the_program_starts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("project")).unwrap();
    let context = TrustContext { home: Some(&root), ..TrustContext::default() };
    let write = vec!["~/state/log/".to_owned(), "absent".to_owned()];
    let permissions = PermissionsSpec { write, ..PermissionsSpec::default() };
    let own = ProgramBox { permissions, ..ProgramBox::new("/bin/sh", root.join("project"), &context) };
    let args = vec!["-c".into(), "echo x > ../state/log/file; mkdir absent".into()];
    let Ok(job) = own.hold(Job { args, cwd: Some(root.join("project")), ..Job::new("/bin/sh") }) else { return };
    Children::new().run(job);
    assert!(root.join("state/log/file").exists() && !root.join("project/absent").exists());
}

#[test]
fn a_program_whose_box_cannot_be_made_where_there_are_boxes_does_not_run_without() {
    let folder = tempfile::tempdir().unwrap();
    let own = ProgramBox::new("/bin/sh", folder.path(), &TrustContext::default());
    let own = ProgramBox { temporary: folder.path().join("absent"), ..own };
    let has_boxes = ProcessBox::new(BoxMeans::Landlock, &BoxRules::default()).is_ok();
    assert_eq!(own.hold(Job::new("/bin/sh")).is_err(), has_boxes);
}
