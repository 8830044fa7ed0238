//! A user namespace and a mount namespace inside it, kept alive by two file descriptors. A process that enters them is
//! in the box.
//!
//! The kernel makes them together with a process. That process is a copy of ours, so its memory is closed to others, as
//! ours is. The kernel then lets only root write its maps of ids. So the process first releases its copy of our memory.
//! Then it opens itself to others while its maps are written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use libc::{CLONE_NEWNS, CLONE_NEWUSER, c_int, c_ulong, c_void};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{DumpableBehavior, getegid, geteuid, getpid, set_dumpable_behavior};

use super::files::keep_only;
use super::memory::Stack;
use super::reaper::{end, listen_once};
use super::release_memory::release_memory;
use super::signals::BlockedSignals;
use crate::unix::pipes::clear_of_stdio;

/// Both namespaces.
#[derive(Debug)]
pub(super) struct Namespaces {
    user: OwnedFd,
    mount: OwnedFd,
}

impl Namespaces {
    /// Makes new namespaces that contain only our own user and group, under the same ids as outside.
    pub(super) fn new() -> Result<Self, String> {
        let own = fs::read_link("/proc/self").ok();
        if own.as_deref() != Some(Path::new(&getpid().as_raw_nonzero().to_string())) {
            return Err("`/proc` is not mounted, or belongs to other processes".to_owned());
        }
        let line = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = line.map_err(|error| error.to_string())?;
        let theirs = clear_of_stdio(theirs).map_err(|error| error.to_string())?;
        let stack = Stack::new().map_err(|error| error.to_string())?;
        let context = HolderContext { line: theirs.as_raw_fd() };
        let blocked = BlockedSignals::all();
        // No exit signal, so a wait for "any child" does not meet it. SAFETY: without CLONE_VM the new process runs on
        // its own copy of the stack and of `context`. `holder_main` only makes system calls.
        let pid = unsafe {
            let flags = CLONE_NEWUSER | CLONE_NEWNS;
            libc::clone(holder_main, stack.top(), flags, (&raw const context).cast_mut().cast())
        };
        let failure = io::Error::last_os_error();
        drop(blocked);
        drop(theirs);
        let holder = (pid > 0).then(|| rustix::process::Pid::from_raw(pid)).flatten();
        let holder = holder.ok_or_else(|| format!("the kernel allows no user namespace: {failure}"))?;
        let made = if listen_once(&ours) {
            Self::of(&format!("/proc/{pid}"))
        } else {
            Err("the new namespaces did not answer".to_owned())
        };
        drop(ours);
        end(holder);
        made
    }

    /// The namespaces of a process, after its ids are mapped.
    fn of(process: &str) -> Result<Self, String> {
        let told = |what: &str, error: &io::Error| format!("{what} cannot be set in a user namespace: {error}");
        let write = |name: &str, text: &str| -> io::Result<()> {
            OpenOptions::new().write(true).open(format!("{process}/{name}"))?.write_all(text.as_bytes())
        };
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        write("uid_map", &format!("{user} {user} 1")).map_err(|error| told("the user", &error))?;
        // Kernels without this file do not need it.
        match write("setgroups", "deny") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(told("the groups", &error)),
            _ => {}
        }
        write("gid_map", &format!("{group} {group} 1")).map_err(|error| told("the group", &error))?;
        let open = |name: &str| File::open(format!("{process}/ns/{name}")).map(OwnedFd::from);
        let opened = open("user").and_then(|user| Ok(Self { user, mount: open("mnt")? }));
        opened.map_err(|error| format!("the new namespaces cannot be opened: {error}"))
    }

    pub(super) fn user(&self) -> BorrowedFd<'_> {
        self.user.as_fd()
    }

    pub(super) fn mount(&self) -> BorrowedFd<'_> {
        self.mount.as_fd()
    }
}

struct HolderContext {
    /// Its end of the line; never a standard stream.
    line: RawFd,
}

/// Waits until our end of the line is closed. All signals are blocked before it starts, so only `SIGKILL` ends it
/// early.
extern "C" fn holder_main(context: *mut c_void) -> c_int {
    // SAFETY: `Namespaces::new` passes a context whose copy is valid until memory is given back.
    let line = unsafe { (*context.cast::<HolderContext>()).line };
    let mut byte = 0_u8;
    // SAFETY: this is a new process, and no other code uses its files and memory. What is used of the latter is on this
    // stack.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        keep_only(&mut [line]);
        release_memory(&[(&raw const byte).addr(), libc::__errno_location().addr()]);
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        libc::send(line, (&raw const byte).cast(), 1, libc::MSG_NOSIGNAL);
        while libc::recv(line, (&raw mut byte).cast(), 1, 0) > 0 {}
        libc::_exit(0)
    }
}
