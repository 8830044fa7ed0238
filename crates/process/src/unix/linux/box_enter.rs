//! What a new process does to be in a box, before it becomes its program: it only makes system calls.

use std::os::fd::RawFd;

use libc::{c_int, c_ulong};

use super::box_filter::SystemCallFilter;
use super::box_mounts::enter;
use super::box_watch::WatchEntry;

/// What a box is made of, by the numbers of its files.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxEntry<'a> {
    /// The user namespace and the mount namespace.
    pub(super) namespaces: Option<(RawFd, RawFd)>,
    /// Landlock rules.
    pub(super) rules: Option<RawFd>,
    /// A filter of system calls.
    pub(super) filter: Option<&'a SystemCallFilter>,
    /// The watch over it.
    pub(super) watch: Option<WatchEntry<'a>>,
}

impl BoxEntry<'_> {
    /// The files that it needs.
    pub(super) fn files(&self) -> impl Iterator<Item = RawFd> {
        let namespaces = self.namespaces.into_iter().flat_map(|(user, mount)| [user, mount]);
        namespaces.chain(self.rules).chain(self.watch.map(|watch| watch.line))
    }

    /// Joins the namespaces. The working directory is that of the box's own root after this.
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

    /// Gives up every privilege for good, and takes on the rules.
    ///
    /// # Safety
    ///
    /// As for [`Self::join`].
    pub(super) unsafe fn seal(&self) -> Result<(), i32> {
        // SAFETY: as the caller promised; all are plain system calls on valid arguments.
        unsafe {
            if self.namespaces.is_some() {
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

/// Whoever has a namespace's privileges could unmount what protects. They are all given up, and cannot be got back: neither
/// by running a program as root nor by one that has some of its own.
///
/// # Safety
///
/// As for [`BoxEntry::join`].
unsafe fn drop_capabilities() -> Result<(), i32> {
    const NO_ROOT_AND_NO_AMBIENT: c_ulong = 0b1100_0011;
    const VERSION: u32 = 0x2008_0522;
    const LAST: c_ulong = 63;
    let header: [u32; 2] = [VERSION, 0];
    let none: [u32; 6] = [0; 6];
    // SAFETY: as the caller promised; all are plain system calls on valid arguments.
    unsafe {
        check(libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT_AND_NO_AMBIENT))?;
        for capability in 0..=LAST {
            // There are fewer than that: the first one that does not exist ends it.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability) == -1 {
                break;
            }
        }
        check(call(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr())))
    }
}

/// The result of a call that gives zero or fails.
fn call(result: libc::c_long) -> c_int {
    if result == -1 { -1 } else { 0 }
}

fn check(result: c_int) -> Result<(), i32> {
    if result == -1 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    Ok(())
}
