//! Standard streams that bypass the mounts of a box. A file or folder opened outside belongs to the outer mount, so a
//! program could write protected files through it. Such a stream is reopened inside, where the box applies.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, SeekFrom, fcntl_getfl, fstat, open, seek, tell};
use rustix::io::Errno;

use crate::BoxRules;

/// A stream of ours, and the file that it reads.
#[derive(Debug)]
pub(super) struct OuterStream {
    number: RawFd,
    path: CString,
    /// The device and the inode of the file.
    file: (u64, u64),
}

/// Our streams that bypass the mounts of a box. A stream opened for writing is left unchanged, because writing through
/// it is intended.
pub(super) fn outer_streams(rules: &BoxRules) -> Vec<OuterStream> {
    let is_locked = |path: &Path| {
        let mut locked = rules.read_only.iter().filter_map(|locked| locked.canonicalize().ok());
        locked.any(|locked| path.starts_with(locked))
    };
    let outer = |number: RawFd| {
        let link = format!("/proc/self/fd/{number}");
        let data = fs::metadata(&link).ok().filter(|data| data.is_dir() || data.is_file() && is_read_only(number))?;
        let path = fs::read_link(&link).ok().filter(|path| data.is_dir() || is_locked(path))?;
        let path = CString::new(path.into_os_string().into_vec()).ok()?;
        Some(OuterStream { number, path, file: (data.dev(), data.ino()) })
    };
    (0..=2).filter_map(outer).collect()
}

fn is_read_only(number: RawFd) -> bool {
    // SAFETY: the standard streams stay open while a program is started.
    let stream = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_getfl(stream).is_ok_and(|flags| (flags & OFlags::ACCMODE) == OFlags::RDONLY)
}

impl OuterStream {
    /// Reopens it at the present location of the process.
    ///
    /// # Safety
    ///
    /// Changes the whole process for good: only for a new one. It makes nothing but system calls.
    pub(super) unsafe fn reopen(&self) -> Result<(), Errno> {
        let file = open(self.path.as_c_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let found = fstat(&file)?;
        if (found.st_dev, found.st_ino) != self.file {
            return Err(Errno::STALE);
        }
        // SAFETY: as the caller promised; the stream is open.
        unsafe {
            seek(&file, SeekFrom::Start(tell(BorrowedFd::borrow_raw(self.number))?))?;
            if libc::dup2(file.as_raw_fd(), self.number) == -1 {
                return Err(Errno::BADF);
            }
        }
        Ok(())
    }
}
