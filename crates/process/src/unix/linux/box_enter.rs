//! What a new process does to enter a box, before it becomes its program: it only makes system calls.

use std::os::fd::RawFd;

use libc::{c_int, c_ulong};

use super::box_filter::SystemCallFilter;
use super::box_mounts::enter;
use super::box_watch::WatchEntry;

/// How many files it needs at most.
pub(super) const BOX_FILES: usize = 4;

/// The parts of a box, by their file descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxEntry<'a> {
    /// The user namespace and the mount namespace.
    pub(super) namespaces: Option<(RawFd, RawFd)>,
    /// Landlock rules.
    pub(super) rules: Option<RawFd>,
    /// Whether to drop all privileges also when there are no namespaces.
    pub(super) drops: bool,
    /// A filter of system calls.
    pub(super) filter: Option<&'a SystemCallFilter>,
    /// The entry to the watch over the box.
    pub(super) watch: Option<WatchEntry<'a>>,
}

impl BoxEntry<'_> {
    /// The file descriptors that it needs.
    pub(super) fn files(&self) -> [Option<RawFd>; BOX_FILES] {
        let (user, mount) = self.namespaces.unzip();
        [user, mount, self.rules, self.watch.map(|watch| watch.line)]
    }

    /// Joins the namespaces. After this, the working directory is the root of the box.
    ///
    /// # Safety
    ///
    /// Changes the whole process for good: only for a new one.
    pub(super) unsafe fn join(&self) -> Result<(), i32> {
        match self.namespaces {
            // SAFETY: as the caller promised.
            Some((user, mount)) => unsafe { enter(user, mount) },
            None => Ok(()),
        }
    }

    /// Gives up all privileges for good, and applies the rules.
    ///
    /// # Safety
    ///
    /// As for [`Self::join`].
    pub(super) unsafe fn seal(&self) -> Result<(), i32> {
        // SAFETY: as the caller promised; all are plain system calls on valid arguments.
        unsafe {
            if self.namespaces.is_some() {
                keep_root_plain()?;
            }
            if self.namespaces.is_some() || self.drops {
                drop_capabilities()?;
            }
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as c_ulong, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong))?;
            if let Some(rules) = self.rules {
                check(call(libc::syscall(libc::SYS_landlock_restrict_self, rules, 0 as c_ulong)))?;
            }
            let filter = match self.watch {
                Some(watch) if watch.start()? => watch.refusing,
                _ => self.filter,
            };
            if let Some(filter) = filter {
                let (mode, program) = (c_ulong::from(libc::SECCOMP_MODE_FILTER), filter.program());
                check(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program))?;
            }
        }
        Ok(())
    }
}

/// Makes sure that no later program gets privileges, neither by running as root nor by its own file capabilities. Only
/// a process with all privileges can do so.
///
/// # Safety
///
/// As for [`BoxEntry::join`].
unsafe fn keep_root_plain() -> Result<(), i32> {
    const NO_ROOT_AND_NO_AMBIENT: c_ulong = 0b1100_0011;
    const LAST: c_ulong = 63;
    // SAFETY: as the caller promised; all are plain system calls on valid arguments.
    unsafe {
        check(libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT_AND_NO_AMBIENT))?;
        for capability in 0..=LAST {
            // There are fewer capabilities than that: the first that does not exist ends the loop.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability) == -1 {
                break;
            }
        }
    }
    Ok(())
}

/// Drops all capabilities. A process with a namespace's capabilities could unmount the protection, and one with root's
/// can read and write every file. Without new privileges, no program gets them back.
///
/// # Safety
///
/// As for [`BoxEntry::join`].
unsafe fn drop_capabilities() -> Result<(), i32> {
    const VERSION: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION, 0];
    let none: [u32; 6] = [0; 6];
    // SAFETY: as the caller promised; a plain system call on valid arguments.
    unsafe { check(call(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))) }
}

/// The result of a call that returns zero or fails.
fn call(result: libc::c_long) -> c_int {
    if result == -1 { -1 } else { 0 }
}

fn check(result: c_int) -> Result<(), i32> {
    if result == -1 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    Ok(())
}
