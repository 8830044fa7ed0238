use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

use tempfile::{TempDir, tempdir};

use super::*;

const SOMEBODY: u32 = 65_534;

/// A temporary folder with `home/top/folder/file`.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempdir().unwrap());
        fs::create_dir_all(world.path("home/top/folder")).unwrap();
        fs::write(world.path("home/top/folder/file"), b"").unwrap();
        for place in ["home", "home/top", "home/top/folder", "home/top/folder/file"] {
            world.mode(place, 0o700);
        }
        world
    }

    fn path(&self, place: &str) -> PathBuf {
        // The path to the temporary folder may contain links.
        self.0.path().canonicalize().unwrap().join(place)
    }

    fn mode(&self, place: &str, mode: u32) {
        fs::set_permissions(self.path(place), Permissions::from_mode(mode)).unwrap();
    }

    fn check(&self, place: &str) -> Result<(), (PathBuf, Why)> {
        let checked = check_owner(&self.path(place), &self.path("home/top"), current_uid());
        checked.map_err(|found| (found.path, found.why))
    }

    fn found(&self, place: &str, why: Why) -> Result<(), (PathBuf, Why)> {
        Err((self.path(place), why))
    }
}

const FILE: &str = "home/top/folder/file";

#[test]
fn modes_are_judged_by_who_else_can_write() {
    // New files get our group, except below a folder that passes on its own group.
    let ours = |world: &World| fs::metadata(world.path(FILE)).unwrap().gid() == current_gid();
    for (place, mode, fine) in [
        (FILE, 0o600, true),
        (FILE, 0o644, true),
        (FILE, 0o755, true),
        (FILE, 0o4755, true),
        (FILE, 0o664, true),
        (FILE, 0o646, false),
        (FILE, 0o666, false),
        (FILE, 0o1666, false),
        ("home/top/folder", 0o755, true),
        ("home/top/folder", 0o775, true),
        ("home/top/folder", 0o777, false),
        ("home/top/folder", 0o1777, false),
        ("home/top", 0o755, true),
        ("home/top", 0o1777, false),
        ("home/top", 0o703, false),
        ("home", 0o755, true),
        ("home", 0o775, true),
        ("home", 0o777, false),
        ("home", 0o1777, true),
    ] {
        let world = World::new();
        world.mode(place, mode);
        let wanted = if fine { Ok(()) } else { world.found(place, Why::Writable) };
        if ours(&world) {
            assert_eq!(world.check(FILE), wanted, "{place} {mode:04o}");
        }
    }
}

#[test]
fn a_group_that_is_not_ours_may_not_write() {
    let world = World::new();
    world.mode(FILE, 0o660);
    let group = fs::metadata(world.path(FILE)).unwrap().gid();
    let check = |gid| Owners::new(current_uid(), gid).check(&world.path(FILE), &world.path("home/top"));
    assert_eq!(check(group), Ok(()));
    let found = check(group + 1).unwrap_err();
    assert_eq!((found.path, found.mode, found.why), (world.path(FILE), 0o660, Why::Writable));
    world.mode(FILE, 0o640);
    assert_eq!(check(group + 1), Ok(()));
}

#[test]
fn what_belongs_to_somebody_else_is_unsafe() {
    if current_uid() != 0 {
        eprintln!("skipped: only root can give files away");
        return;
    }
    for place in [FILE, "home/top/folder", "home/top", "home"] {
        let world = World::new();
        chown(world.path(place), Some(SOMEBODY), None).unwrap();
        assert_eq!(world.check(FILE), world.found(place, Why::Foreign), "{place}");
    }
}

#[test]
fn root_and_the_user_are_both_fine() {
    if current_uid() != 0 {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let world = World::new();
    for place in [FILE, "home/top/folder", "home"] {
        chown(world.path(place), Some(SOMEBODY), None).unwrap();
    }
    // The temporary folder belongs to root, and so does home/top.
    assert_eq!(check_owner(&world.path(FILE), &world.path("home/top"), SOMEBODY), Ok(()));
    let stranger = check_owner(&world.path(FILE), &world.path("home/top"), SOMEBODY - 1).unwrap_err();
    assert_eq!((stranger.path, stranger.owner, stranger.why), (world.path("home"), SOMEBODY, Why::Foreign));
}

#[test]
fn a_link_is_as_safe_as_itself_and_the_way_to_where_it_leads() {
    let world = World::new();
    fs::create_dir_all(world.path("away/deep")).unwrap();
    world.mode("away", 0o755);
    world.mode("away/deep", 0o755);
    fs::write(world.path("away/deep/script"), b"").unwrap();
    symlink(world.path("away/deep/script"), world.path("home/top/absolute")).unwrap();
    symlink("../../away/deep/script", world.path("home/top/relative")).unwrap();
    symlink("relative", world.path("home/top/chain")).unwrap();
    symlink("../../../away", world.path("home/top/folder/out")).unwrap();
    let links = ["absolute", "relative", "chain"].map(|name| format!("home/top/{name}"));
    let all = |wanted: &Result<(), (PathBuf, Why)>| {
        for link in &links {
            assert_eq!(world.check(link), *wanted, "{link}");
        }
    };
    all(&Ok(()));
    world.mode("away/deep/script", 0o666);
    all(&world.found("away/deep/script", Why::Writable));
    world.mode("away/deep/script", 0o644);
    world.mode("away/deep", 0o777);
    all(&world.found("away/deep", Why::Writable));
    // Other users cannot replace our file in a sticky folder. A linked folder counts as ours, so they must not add
    // files to it.
    world.mode("away/deep", 0o1777);
    all(&Ok(()));
    world.mode("away/deep", 0o755);
    world.mode("away", 0o1777);
    all(&Ok(()));
    assert_eq!(world.check("home/top/folder/out/deep/script"), world.found("away", Why::Writable));
    world.mode("away", 0o755);
    assert_eq!(world.check("home/top/folder/out/deep/script"), Ok(()));
    if current_uid() == 0 {
        lchown(world.path("home/top/relative"), Some(SOMEBODY), None).unwrap();
        assert_eq!(world.check("home/top/chain"), world.found("home/top/relative", Why::Foreign));
    }
}

#[test]
fn a_link_to_a_folder_on_the_way_is_judged_as_its_place() {
    let world = World::new();
    world.mode("home", 0o1777);
    assert_eq!(world.check(FILE), Ok(()));
    symlink("..", world.path("home/top/up")).unwrap();
    symlink(world.path("home"), world.path("home/top/home")).unwrap();
    for place in ["home/top/up/top/folder/file", "home/top/home/top/folder/file"] {
        assert_eq!(world.check(place), world.found("home", Why::Writable), "{place}");
    }
    world.mode("home", 0o755);
    assert_eq!(world.check("home/top/up/top/up/top/folder/file"), Ok(()));
    symlink("/", world.path("home/top/root")).unwrap();
    let through = world.path("home/top/root").join(world.path(FILE).strip_prefix("/").unwrap());
    // `/tmp`, where the test probably runs, is sticky, and now counts as a folder that must be ours.
    assert_eq!(check_owner(&through, &world.path("home/top"), current_uid()).is_ok(), no_sticky_above(&world));
}

fn no_sticky_above(world: &World) -> bool {
    world.path("home").ancestors().all(|folder| fs::metadata(folder).unwrap().mode() & 0o1002 == 0)
}

#[test]
fn circles_missing_files_and_relative_paths_end_in_an_answer() {
    let world = World::new();
    symlink("b", world.path("home/top/a")).unwrap();
    symlink("a", world.path("home/top/b")).unwrap();
    assert_eq!(world.check("home/top/a"), world.found("home/top/a", Why::Loop));
    symlink("self/self", world.path("home/top/self")).unwrap();
    assert_eq!(world.check("home/top/self"), world.found("home/top/self", Why::Loop));
    let missing = Why::Unknown(io::ErrorKind::NotFound);
    assert_eq!(world.check("home/top/none"), world.found("home/top/none", missing));
    let below = Why::Unknown(io::ErrorKind::NotADirectory);
    assert_eq!(world.check("home/top/folder/file/x"), world.found("home/top/folder/file/x", below));
    let relative = check_owner(Path::new("a/b"), Path::new("a"), current_uid()).unwrap_err();
    assert_eq!(relative.why, Why::Relative);
}

#[test]
fn a_file_of_ours_in_the_shared_temporary_folder_is_safe() {
    let Ok(shared) = fs::metadata("/tmp") else { return };
    if shared.mode() & 0o1002 != 0o1002 || shared.uid() != 0 {
        eprintln!("skipped: /tmp is not a sticky folder of root");
        return;
    }
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    assert_eq!(check_owner(file.path(), Path::new("/nowhere"), current_uid()), Ok(()));
    let found = check_owner(file.path(), Path::new("/tmp"), current_uid()).unwrap_err();
    assert_eq!((found.path.to_str(), found.why), (Some("/tmp"), Why::Writable));
    let found = check_owner(Path::new("/tmp"), Path::new("/nowhere"), current_uid()).unwrap_err();
    assert_eq!(found.why, Why::Writable);
}

#[test]
fn folders_are_looked_at_once_but_files_each_time() {
    let world = World::new();
    let owners = Owners::new(current_uid(), current_gid());
    let check = |place: &str| owners.check(&world.path(place), &world.path("home/top"));
    assert_eq!(check(FILE), Ok(()));
    world.mode(FILE, 0o666);
    assert_eq!(check(FILE).unwrap_err().why, Why::Writable);
    world.mode(FILE, 0o600);
    world.mode("home/top/folder", 0o777);
    assert_eq!(check(FILE), Ok(()), "remembered");
    // A result above one `top` does not count below another one.
    world.mode("home", 0o1777);
    let owners = Owners::new(current_uid(), current_gid());
    world.mode("home/top/folder", 0o700);
    assert_eq!(owners.check(&world.path(FILE), &world.path("home/top")), Ok(()));
    let stricter = owners.check(&world.path(FILE), &world.path("home")).unwrap_err();
    assert_eq!((stricter.path, stricter.why), (world.path("home"), Why::Writable));
}

#[test]
fn complaints_name_the_way_out() {
    let text = |path: &str, why| Unsafe { path: path.into(), mode: 0o777, owner: 1234, why }.to_string();
    assert_eq!(text("/x/y", Why::Writable), "/x/y is writable by others (mode 0777); `chmod go-w /x/y` mends it");
    assert_eq!(
        text("/x/it's y", Why::Writable),
        r"/x/it's y is writable by others (mode 0777); `chmod go-w '/x/it'\''s y'` mends it"
    );
    assert_eq!(
        text("/x/y", Why::Foreign),
        "/x/y belongs to uid 1234, not to you; move it away, or look through it and take it over with \
        `sudo chown \"$(id -u)\" /x/y`"
    );
}

#[test]
fn what_was_found_safe_holds_until_an_owner_a_mode_or_a_link_on_the_way_is_another() {
    type Change = fn(&World);
    let changes: [(Change, bool); 7] = [
        (|world| fs::write(world.path(FILE), b"other").unwrap(), true),
        (|world| fs::write(world.path("home/top/folder/new"), b"").unwrap(), true),
        (|world| world.mode(FILE, 0o666), false),
        (|world| world.mode("home/top/folder", 0o777), false),
        (|world| world.mode("home", 0o777), false),
        (
            |world| {
                fs::remove_file(world.path("home/top/link")).unwrap();
                symlink("/tmp", world.path("home/top/link")).unwrap();
            },
            false,
        ),
        (|world| fs::remove_file(world.path(FILE)).unwrap(), false),
    ];
    for (number, (change, holds)) in changes.into_iter().enumerate() {
        let world = World::new();
        symlink("folder", world.path("home/top/link")).unwrap();
        let owners = Owners::new(current_uid(), current_gid());
        owners.check(&world.path("home/top/link/file"), &world.path("home/top")).unwrap();
        assert!(owners.still_hold(), "{number}");
        change(&world);
        assert_eq!(owners.still_hold(), holds, "{number}");
    }
}
