//! Sleeps until one of several files has changed.
//!
//! The system reports changes in their folders, and stamps decide whether these matter. If the system cannot report
//! changes, stamps are compared every second instead.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ollm_catalog::{FileStamps, StampedPaths};

use crate::app::App;
use crate::app_context::AppContext;
use crate::servers::Servers;
use crate::wake_signal::{Wait, WakeSignal};

mod folder_watches;

use folder_watches::{FolderWatches, TouchedFolders};

/// How often stamps are compared if the system cannot report changes.
const POLL: Duration = Duration::from_secs(1);
/// How long files must be quiet before a change counts, because programs write a file in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// A change counts after this long, even if the files are not quiet.
const LONGEST: Duration = Duration::from_secs(1);

/// Takes the stamps of the files.
type Look<'a> = Box<dyn Fn() -> (FileStamps, StampedPaths) + Send + 'a>;

/// Follows files from the moment it is made.
pub struct FileFollower<'a> {
    look: Look<'a>,
    seen: FileStamps,
    /// `None` if the system cannot report on all of them.
    watches: Option<FolderWatches>,
    /// Every change in this folder counts.
    live: Option<PathBuf>,
    /// Whether a change counts before the files are quiet.
    is_eager: bool,
    /// Whether there is a change that was not reported yet.
    is_due: bool,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowResult {
    Changed,
    /// Nothing has changed; another thread woke us.
    Woken,
    Ended,
}

impl<'a> FileFollower<'a> {
    pub(crate) fn new(look: Look<'a>) -> FileFollower<'a> {
        let seen = look().0;
        let watches = FolderWatches::new();
        let mut follower = FileFollower { look, seen, watches, live: None, is_eager: false, is_due: false };
        follower.seen = follower.look();
        follower
    }

    /// Follows the files that will be loaded here, starting before the load.
    pub fn before_load(context: &'a AppContext) -> FileFollower<'a> {
        FileFollower::new(Box::new(move || stamped(context, &[], &[])))
    }

    /// Follows everything that an application was loaded from.
    pub fn follow_app(&mut self, app: &App, context: &'a AppContext) {
        let (directories, files) = (app.directories.clone(), app.files_in_place());
        self.follow(Box::new(move || stamped(context, &directories, &files)));
    }

    /// Follows all files about servers, including those of running conversations.
    pub fn follow_servers(&mut self, servers: &Servers<'a>) {
        let (context, directories, files) = (servers.context, servers.directories().to_vec(), servers.files());
        let folder = crate::control::folder(context);
        self.live = Some(folder.clone());
        self.follow(Box::new(move || {
            let (stamps, mut paths) = stamped(context, &directories, &files);
            paths.roots.insert(folder.clone());
            paths.folders.extend(folder.is_dir().then(|| folder.clone()));
            (stamps, paths)
        }));
    }

    /// Follows other files. A change since the last look counts too, because it may not have been read.
    fn follow(&mut self, look: Look<'a>) {
        self.look = look;
        self.is_due = self.look() != self.seen;
    }

    /// Follows these files; a change counts at once.
    pub fn of_files(files: Vec<PathBuf>) -> FileFollower<'a> {
        FileFollower { is_eager: true, ..FileFollower::new(Box::new(move || FileStamps::of_files(&files))) }
    }

    /// Waits until one of the files has changed; false once `wake` has ended.
    pub fn has_changed(&mut self, wake: &WakeSignal) -> bool {
        loop {
            match self.wait(wake) {
                FollowResult::Changed => return true,
                FollowResult::Woken => {}
                FollowResult::Ended => return false,
            }
        }
    }

    /// Waits until one of the files has changed, or another thread wakes us.
    pub(crate) fn wait(&mut self, wake: &WakeSignal) -> FollowResult {
        loop {
            let longest = self.watches.is_none().then_some(POLL);
            if let Some(watches) = &self.watches {
                watches.wake(wake);
            }
            let waited = if self.is_due { Wait::Elapsed } else { wake.wait(longest) };
            if waited == Wait::Ended {
                return FollowResult::Ended;
            }
            let touched = self.watches.as_mut().map(FolderWatches::take);
            if touched.as_ref().is_some_and(TouchedFolders::is_other) {
                return FollowResult::Woken;
            }
            let is_live = touched.is_some_and(|touched| self.live.as_ref().is_some_and(|live| touched.is_below(live)));
            let Some(now) = self.settled(wake) else { return FollowResult::Ended };
            self.is_due = false;
            if std::mem::replace(&mut self.seen, now) != now || is_live {
                return FollowResult::Changed;
            }
            if waited == Wait::Woken {
                return FollowResult::Woken;
            }
        }
    }

    /// Looks until two looks are equal; until then a file may still be half written. `None` once `wake` has ended.
    fn settled(&mut self, wake: &WakeSignal) -> Option<FileStamps> {
        let (began, mut now) = (Instant::now(), self.look());
        while now != self.seen && !self.is_eager && began.elapsed() < LONGEST {
            if wake.wait(Some(QUIET)) == Wait::Ended {
                return None;
            }
            let before = std::mem::replace(&mut now, self.look());
            if before == now {
                break;
            }
        }
        Some(now)
    }

    /// Takes the stamps of the files, and watches all their folders from then on.
    fn look(&mut self) -> FileStamps {
        loop {
            let (stamps, paths) = (self.look)();
            let Some(watches) = &mut self.watches else { return stamps };
            match watches.set(paths) {
                // A second look sees changes from before the folder was watched.
                Some(is_more) if is_more => {}
                Some(_) => return stamps,
                None => {
                    self.watches = None;
                    return stamps;
                }
            }
        }
    }
}

/// The files that decide what is declared and what may run, with these files of other agents.
pub(crate) fn stamped(
    context: &AppContext,
    directories: &[PathBuf],
    in_place: &[PathBuf],
) -> (FileStamps, StampedPaths) {
    let reviewed = crate::servers::reviewed_tools(context);
    let mut files = vec![context.switches(), context.approvals(), context.places.secrets(), reviewed];
    files.extend_from_slice(in_place);
    FileStamps::take_with_paths(&context.places, directories, &files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_changes_while_something_is_loaded_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let wake = WakeSignal::new().unwrap();
        let mut follower = FileFollower::of_files(vec![file.clone()]);
        fs::write(&file, "one").unwrap();
        assert!(follower.has_changed(&wake));
        fs::write(&file, "two, which came too late for those who read the file").unwrap();
        let files = vec![file];
        follower.follow(Box::new(move || FileStamps::of_files(&files)));
        assert!(follower.has_changed(&wake));
        assert!(!follower.is_due);
    }

    #[test]
    fn a_change_of_a_file_wakes_also_where_its_folder_is_made_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/file");
        let wake = WakeSignal::new().unwrap();
        let mut follower = FileFollower::of_files(vec![file.clone()]);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "one").unwrap();
        assert!(follower.has_changed(&wake));
        for text in ["two", "three"] {
            let aside = file.with_extension("new");
            fs::write(&aside, text).unwrap();
            fs::rename(&aside, &file).unwrap();
            assert!(follower.has_changed(&wake));
        }
        fs::remove_dir_all(folder.path().join("deep")).unwrap();
        assert!(follower.has_changed(&wake));
        wake.end();
        assert!(!follower.has_changed(&wake));
    }

    #[test]
    fn what_a_link_leads_to_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("here/link"), folder.path().join("there/target"));
        for path in [&link, &target] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&target, "one").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let wake = WakeSignal::new().unwrap();
        let mut follower = FileFollower::of_files(vec![link]);
        fs::write(&target, "longer than before").unwrap();
        assert!(follower.has_changed(&wake));
    }

    #[test]
    fn where_the_system_cannot_tell_the_stamps_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mut follower = FileFollower::of_files(vec![file.clone()]);
        follower.watches = None;
        fs::write(&file, "one").unwrap();
        assert!(follower.has_changed(&WakeSignal::new().unwrap()));
    }

    #[test]
    fn other_files_of_a_folder_wake_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let wake = WakeSignal::new().unwrap();
        let mut follower = FileFollower::of_files(vec![folder.path().join("file")]);
        fs::write(folder.path().join("other"), "x").unwrap();
        wake.wake();
        assert_eq!(follower.wait(&wake), FollowResult::Woken);
    }
}
