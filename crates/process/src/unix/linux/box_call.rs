//! Reads a system call that a watched program is about to make: which file it accesses, and whether Landlock allows
//! that.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use libc::{c_int, c_long};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::BoxAccess;

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;
/// A path is read in pieces that do not cross a page, because the next page may not be mapped.
const PAGE: u64 = 4096;

/// One access of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallAccess {
    pub(super) access: BoxAccess,
    pub(super) refused: bool,
}

/// How a call uses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileUse {
    Read,
    Write,
    /// Writes it, and creates it if it is missing.
    Create,
    /// Makes the name, which must not exist.
    Make,
    /// Removes the name, which must exist.
    Remove,
    /// Makes the name, whether or not it exists.
    Replace,
}

/// The files that a box allows to read and write, with links resolved.
#[derive(Debug)]
pub(super) struct CallReader {
    pub(super) reads: Vec<PathBuf>,
    pub(super) writes: Vec<PathBuf>,
    /// Paths inside them that cannot be written.
    pub(super) closed: Vec<PathBuf>,
}

/// The folder of a path, the path, and its use, in the call's own form.
type Named = (u64, u64, FileUse);

/// Stands for a path relative to the program's working directory.
#[expect(clippy::cast_sign_loss, reason = "arguments of a call have no sign")]
pub(super) const HERE: u64 = libc::AT_FDCWD as u64;

impl CallReader {
    /// The accesses of a call; empty if they cannot be read, or do not matter to a box.
    pub(super) fn read(&self, asked: &libc::seccomp_notif) -> Vec<CallAccess> {
        let (process, args) = (asked.pid, asked.data.args);
        let [first, second, third, ..] = args;
        match c_long::from(asked.data.nr) {
            libc::SYS_socket => {
                let family = c_int::try_from(first).unwrap_or_default();
                let is_network = matches!(family, libc::AF_INET | libc::AF_INET6);
                let access = if is_network { BoxAccess::Network } else { BoxAccess::Service };
                vec![CallAccess { access, refused: true }]
            }
            libc::SYS_connect => address(process, second, third)
                .map(|address| CallAccess { access: BoxAccess::Connect(address), refused: false })
                .into_iter()
                .collect(),
            number => {
                named(number, args, process).into_iter().filter_map(|named| self.opened(process, named)).collect()
            }
        }
    }

    fn opened(&self, process: u32, (folder, path, how): Named) -> Option<CallAccess> {
        let path = absolute(process, folder, &path_at(process, path)?)?;
        // In the watched program these lead to its own files, but for us to other files; a box leaves them open.
        let own = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/pts"];
        if own.iter().any(|own| path.starts_with(own)) {
            return None;
        }
        match how {
            FileUse::Read => self.read_of(&path),
            FileUse::Write => Some(self.write_of(path.canonicalize().ok()?)),
            FileUse::Create => match path.canonicalize() {
                Ok(real) => Some(self.write_of(real)),
                Err(_) => self.change_of(&path),
            },
            FileUse::Replace => self.change_of(&path),
            // The kernel itself refuses `Make` if the name exists, and `Remove` if it does not.
            FileUse::Make => self.change_of(&path).filter(|_| path.symlink_metadata().is_err()),
            FileUse::Remove => self.change_of(&path).filter(|_| path.symlink_metadata().is_ok()),
        }
    }

    fn read_of(&self, path: &Path) -> Option<CallAccess> {
        let real = path.canonicalize().ok()?;
        let allowed = self.reads.iter().chain(&self.writes).any(|root| real.starts_with(root));
        let refused = !allowed && could(&real, Access::READ_OK);
        Some(CallAccess { access: BoxAccess::Read(real), refused })
    }

    pub(super) fn may_change(&self, real: &Path) -> bool {
        let is_below = |root: &PathBuf| real.starts_with(root);
        self.writes.iter().any(is_below) && !self.closed.iter().any(is_below)
    }

    fn write_of(&self, real: PathBuf) -> CallAccess {
        let refused = !self.may_change(&real) && could(&real, Access::WRITE_OK);
        CallAccess { access: BoxAccess::Write { path: real.clone(), within: real }, refused }
    }

    /// A name that is made or removed belongs to its folder.
    fn change_of(&self, path: &Path) -> Option<CallAccess> {
        let folder = path.parent()?.canonicalize().ok()?;
        let path = folder.join(path.file_name()?);
        let allowed = self.may_change(&folder) && !self.closed.contains(&path);
        let refused = !allowed && could(&folder, Access::WRITE_OK);
        Some(CallAccess { access: BoxAccess::Write { path, within: folder }, refused })
    }
}

/// Whether we may do it ourselves; if not, the refusal does not come from the box.
fn could(path: &Path, access: Access) -> bool {
    accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}

/// The files that a call names.
fn named(number: c_long, args: [u64; 6], process: u32) -> Vec<Named> {
    let [first, second, third, fourth, ..] = args;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_open => return by_flags(HERE, first, second).into_iter().collect(),
        libc::SYS_creat => return vec![(HERE, first, FileUse::Create)],
        libc::SYS_mkdir | libc::SYS_mknod => return vec![(HERE, first, FileUse::Make)],
        libc::SYS_rmdir | libc::SYS_unlink => return vec![(HERE, first, FileUse::Remove)],
        libc::SYS_rename => return vec![(HERE, first, FileUse::Remove), (HERE, second, FileUse::Replace)],
        libc::SYS_link | libc::SYS_symlink => return vec![(HERE, second, FileUse::Make)],
        _ => {}
    }
    match number {
        libc::SYS_openat => by_flags(first, second, third).into_iter().collect(),
        libc::SYS_openat2 => {
            let flags = memory_at::<8>(process, third).map(u64::from_ne_bytes);
            flags.and_then(|flags| by_flags(first, second, flags)).into_iter().collect()
        }
        libc::SYS_mkdirat | libc::SYS_mknodat => vec![(first, second, FileUse::Make)],
        libc::SYS_unlinkat => vec![(first, second, FileUse::Remove)],
        RENAMEAT | libc::SYS_renameat2 => vec![(first, second, FileUse::Remove), (third, fourth, FileUse::Replace)],
        libc::SYS_linkat => vec![(third, fourth, FileUse::Make)],
        libc::SYS_symlinkat => vec![(second, third, FileUse::Make)],
        libc::SYS_truncate => vec![(HERE, first, FileUse::Write)],
        _ => Vec::new(),
    }
}

/// Some machines do not have this call.
const RENAMEAT: c_long =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { libc::SYS_renameat } else { -1 };

fn by_flags(folder: u64, path: u64, flags: u64) -> Option<Named> {
    let has = |flag: c_int| flags & u64::from(flag.unsigned_abs()) != 0;
    let how = match () {
        // A file opened like this can neither be read nor written.
        () if has(libc::O_PATH) => return None,
        () if has(libc::O_CREAT) => FileUse::Create,
        () if has(libc::O_WRONLY | libc::O_RDWR | libc::O_TRUNC) => FileUse::Write,
        () => FileUse::Read,
    };
    Some((folder, path, how))
}

/// The system calls that access files.
pub(super) fn file_calls() -> Vec<c_long> {
    let mut calls = vec![
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_mkdirat,
        libc::SYS_unlinkat,
        libc::SYS_mknodat,
        RENAMEAT,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_truncate,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_open,
        libc::SYS_creat,
        libc::SYS_mkdir,
        libc::SYS_rmdir,
        libc::SYS_unlink,
        libc::SYS_mknod,
        libc::SYS_rename,
        libc::SYS_link,
        libc::SYS_symlink,
    ]);
    calls.retain(|call| *call >= 0);
    calls
}

/// The file descriptor in an argument of a call.
#[expect(clippy::cast_possible_truncation, reason = "the kernel reads the lower half")]
pub(super) fn descriptor(argument: u64) -> c_int {
    argument as c_int
}

/// A path as the program resolves it.
pub(super) fn absolute(process: u32, folder: u64, path: &Path) -> Option<PathBuf> {
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    let number = descriptor(folder);
    let place = match number {
        libc::AT_FDCWD => fs::read_link(format!("/proc/{process}/cwd")),
        number => fs::read_link(format!("/proc/{process}/fd/{number}")),
    };
    let has_name = path.components().any(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let place = place.ok().filter(|place| place.is_absolute())?;
    Some(if has_name { place.join(path) } else { place })
}

/// Reads a path from a process's memory.
pub(super) fn path_at(process: u32, mut address: u64) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST_PATH {
        let mut piece = [0_u8; LONGEST_PATH];
        let room = usize::try_from(PAGE - address % PAGE).ok()?;
        let read = copy(process, address, piece.get_mut(..room)?)?;
        let piece = piece.get(..read).filter(|piece| !piece.is_empty())?;
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend_from_slice(piece.get(..end)?);
                return Some(PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)));
            }
            None => bytes.extend_from_slice(piece),
        }
        address = address.checked_add(u64::try_from(read).ok()?)?;
    }
    None
}

fn memory_at<const LENGTH: usize>(process: u32, address: u64) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    (copy(process, address, &mut bytes)? == LENGTH).then_some(bytes)
}

/// Copies from the memory of another process; `None` if that is closed to us.
fn copy(process: u32, address: u64, into: &mut [u8]) -> Option<usize> {
    let ours = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let theirs = libc::iovec { iov_base: usize::try_from(address).ok()? as *mut libc::c_void, iov_len: into.len() };
    let process = libc::pid_t::try_from(process).ok()?;
    // SAFETY: the kernel writes at most as many bytes as our buffer has; what it reads is not ours.
    let read = unsafe { libc::process_vm_readv(process, &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(read).ok()
}

/// A network address in its usual notation.
fn address(process: u32, at: u64, length: u64) -> Option<String> {
    let mut bytes = [0_u8; 128];
    let length = usize::try_from(length).ok()?.min(bytes.len());
    let read = copy(process, at, bytes.get_mut(..length)?)?;
    let bytes = bytes.get(..read)?;
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    match c_int::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let host = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            Some(SocketAddr::new(host.into(), u16::from_be_bytes(*port)).to_string())
        }
        libc::AF_INET6 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let host = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            Some(SocketAddr::new(host.into(), u16::from_be_bytes(*port)).to_string())
        }
        libc::AF_UNIX => {
            let name = rest.split(|byte| *byte == 0).find(|part| !part.is_empty())?;
            Some(String::from_utf8_lossy(name).into_owned())
        }
        _ => None,
    }
}
