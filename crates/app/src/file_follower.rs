//! Sleeps until one of some files has changed.
//!
//! The system tells that something happened in their folders, and stamps tell whether it matters. Where the system cannot tell,
//! stamps are compared every second instead.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ollm_catalog::{FileStamps, StampedPaths};

use crate::app::App;
use crate::app_context::AppContext;
use crate::servers::Servers;
use crate::wake_signal::{Wait, WakeSignal};

mod folder_watches;

use folder_watches::{FolderWatches, Touched};

/// How often stamps are compared where the system cannot tell.
const POLL: Duration = Duration::from_secs(1);
/// How long nothing may change before it counts: a file is written in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// It counts after this long even if it goes on.
const LONGEST: Duration = Duration::from_secs(1);

/// Looks at files.
type Look<'a> = Box<dyn Fn() -> (FileStamps, StampedPaths) + Send + 'a>;

/// Follows files from the moment it is made.
pub struct FileFollower<'a> {
    look: Look<'a>,
    seen: FileStamps,
    /// None where the system cannot tell of all of them.
    watches: Option<FolderWatches>,
    /// Whatever happens in this folder counts.
    live: Option<PathBuf>,
    /// Whether a change counts before it has settled.
    is_eager: bool,
}

/// What came of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    Changed,
    /// Nothing has changed; somebody woke us.
    Woken,
    Ended,
}

impl<'a> FileFollower<'a> {
    pub(crate) fn new(look: Look<'a>) -> FileFollower<'a> {
        let seen = look().0;
        let mut follower = FileFollower { look, seen, watches: FolderWatches::new(), live: None, is_eager: false };
        follower.seen = follower.look();
        follower
    }

    /// Follows everything that an application was loaded from.
    pub fn of_app(app: &'a App, context: &'a AppContext) -> FileFollower<'a> {
        FileFollower::new(Box::new(move || stamped(context, &app.directories, &app.files_in_place())))
    }

    /// Follows all that is known of servers, also in the conversations that run.
    pub fn of_servers(servers: &'a Servers<'a>) -> FileFollower<'a> {
        let (live, files) = (crate::control::folder(servers.context), servers.files());
        let folder = live.clone();
        let look = move || {
            let (stamps, mut paths) = stamped(servers.context, servers.directories(), &files);
            paths.roots.insert(folder.clone());
            paths.folders.extend(folder.is_dir().then(|| folder.clone()));
            (stamps, paths)
        };
        FileFollower { live: Some(live), ..FileFollower::new(Box::new(look)) }
    }

    /// Follows these files; what is written counts at once.
    pub fn of_files(files: Vec<PathBuf>) -> FileFollower<'a> {
        FileFollower { is_eager: true, ..FileFollower::new(Box::new(move || FileStamps::of_files(&files))) }
    }

    /// Waits until one of the files has changed; false once `wake` has ended.
    pub fn has_changed(&mut self, wake: &WakeSignal) -> bool {
        loop {
            match self.wait(wake) {
                Followed::Changed => return true,
                Followed::Woken => {}
                Followed::Ended => return false,
            }
        }
    }

    /// Waits until one of the files has changed, or somebody wakes us.
    pub(crate) fn wait(&mut self, wake: &WakeSignal) -> Followed {
        loop {
            let longest = self.watches.is_none().then_some(POLL);
            if let Some(watches) = &self.watches {
                watches.wake(wake);
            }
            let waited = wake.wait(longest);
            if waited == Wait::Ended {
                return Followed::Ended;
            }
            let touched = self.watches.as_mut().map(FolderWatches::take);
            if touched.as_ref().is_some_and(Touched::is_other) {
                return Followed::Woken;
            }
            let is_live = touched.is_some_and(|touched| self.live.as_ref().is_some_and(|live| touched.is_below(live)));
            let Some(now) = self.settled(wake) else { return Followed::Ended };
            if std::mem::replace(&mut self.seen, now) != now || is_live {
                return Followed::Changed;
            }
            if waited == Wait::Woken {
                return Followed::Woken;
            }
        }
    }

    /// Looks until two looks see the same: what differs is still being written. None once `wake` has ended.
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

    /// Looks at the files, and has the system tell of all their folders from then on.
    fn look(&mut self) -> FileStamps {
        loop {
            let (stamps, paths) = (self.look)();
            let Some(watches) = &mut self.watches else { return stamps };
            match watches.set(paths) {
                // What happened in a folder before it was watched is seen by another look.
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

/// The files that decide what is declared, and may run, with these of other agents.
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
        assert_eq!(follower.wait(&wake), Followed::Woken);
    }
}
