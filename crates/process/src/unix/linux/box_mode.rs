//! Changes of file modes. Landlock does not control them, so the watch makes them for the program, where the program
//! may write. It checks the file that it has opened for this, so no other file can take its place meanwhile.

use std::fs::{self, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::c_long;
use rustix::fs::{Mode, OFlags, chmod, open};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::box_call::{CallAccess, CallReader, HERE, absolute, descriptor, path_at};
use crate::BoxAccess;

/// The newest of these calls; its number is the same on all machines.
const FCHMODAT2: c_long = 452;

/// A mode change that a program requests.
struct ModeChange {
    folder: u64,
    /// The address of the path in the program's memory; if absent, the folder itself is the file.
    path: Option<u64>,
    mode: u64,
    flags: u64,
}

/// The result of a change.
pub(super) struct ChangedMode {
    pub(super) result: Result<(), Errno>,
    pub(super) access: Option<CallAccess>,
}

/// The system calls that change modes.
pub(super) fn mode_calls() -> Vec<c_long> {
    let mut calls = vec![libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2];
    #[cfg(target_arch = "x86_64")]
    calls.push(libc::SYS_chmod);
    calls
}

impl CallReader {
    /// Makes the mode change that a call requests; `None` for any other call.
    pub(super) fn change_mode(
        &self,
        asked: &libc::seccomp_notif,
        is_waiting: &dyn Fn() -> bool,
    ) -> Option<ChangedMode> {
        let change = mode_change(c_long::from(asked.data.nr), asked.data.args)?;
        Some(
            self.changed(asked.pid, &change, is_waiting)
                .unwrap_or_else(|error| ChangedMode { result: Err(error), access: None }),
        )
    }

    fn changed(&self, process: u32, change: &ModeChange, is_waiting: &dyn Fn() -> bool) -> Result<ChangedMode, Errno> {
        let is_link_meant = change.flags & u64::from(libc::AT_SYMLINK_NOFOLLOW.unsigned_abs()) != 0;
        let follow = if is_link_meant { OFlags::NOFOLLOW } else { OFlags::empty() };
        let file = open(change.place(process)?, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?;
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let real = fs::read_link(&own).map_err(|_| Errno::PERM)?;
        let data = fs::metadata(&own).map_err(|_| Errno::PERM)?;
        // The id may belong to another process by now.
        if !is_waiting() {
            return Err(Errno::SRCH);
        }
        let is_ours = data.uid() == geteuid().as_raw();
        let is_allowed = is_ours && (self.may_change(&real) || has_no_name(&real, &data));
        let mode = Mode::from_raw_mode(u32::try_from(change.mode & 0o7777).unwrap_or_default());
        let result = if is_allowed { chmod(&own, mode) } else { Err(Errno::PERM) };
        let access = BoxAccess::Write { path: real.clone(), within: real };
        Ok(ChangedMode { result, access: Some(CallAccess { access, refused: is_ours && !is_allowed }) })
    }
}

/// Whether no name leads to this file: a pipe, or a removed file.
fn has_no_name(real: &Path, data: &Metadata) -> bool {
    !real.is_absolute() || data.nlink() == 0
}

impl ModeChange {
    /// The path of the file from our point of view.
    fn place(&self, process: u32) -> Result<PathBuf, Errno> {
        let path = self.path.map(|path| path_at(process, path).ok_or(Errno::FAULT)).transpose()?;
        let named = path.filter(|path| !path.as_os_str().is_empty());
        let Some(path) = named else {
            return Ok(format!("/proc/{process}/fd/{}", descriptor(self.folder)).into());
        };
        let path = absolute(process, self.folder, &path).ok_or(Errno::NOENT)?;
        // For us these would be our own files.
        let own = [("/proc/self", ""), ("/proc/thread-self", ""), ("/dev/fd", "fd")];
        let own = own.iter().find_map(|(own, name)| Some((path.strip_prefix(own).ok()?, name)));
        Ok(own.map_or(path.clone(), |(rest, name)| Path::new(&format!("/proc/{process}/{name}")).join(rest)))
    }
}

fn mode_change(number: c_long, args: [u64; 6]) -> Option<ModeChange> {
    let [first, second, third, fourth, ..] = args;
    let change = |folder, path, mode, flags| Some(ModeChange { folder, path, mode, flags });
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_chmod {
        return change(HERE, Some(first), second, 0);
    }
    match number {
        libc::SYS_fchmod => change(first, None, second, 0),
        libc::SYS_fchmodat => change(first, Some(second), third, 0),
        FCHMODAT2 => change(first, Some(second), third, fourth),
        _ => None,
    }
}
