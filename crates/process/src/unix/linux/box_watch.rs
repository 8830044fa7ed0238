//! Records which files programs in a box open, and which addresses they reach.
//!
//! The kernel asks us before each of these calls (`seccomp` user notification). We record the call and let it continue,
//! because Landlock decides about files. A call cannot end before we have recorded it and answered, so the record is
//! complete once a program has ended. Only a socket in a box without a network is refused here. If this process is
//! gone, the kernel refuses all of these calls.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use libc::{c_int, c_long, c_ulong, c_void};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use super::box_call::{CallAccess, CallReader};
use super::box_filter::SystemCallFilter;
use super::box_landlock::{readable, written};
use super::box_mode::ChangedMode;
use super::signals::BlockedSignals;
use crate::unix::pipes::clear_of_stdio;
use crate::{BoxNetwork, BoxRules, BoxWatch, WatchedAccess};

/// The most different accesses that are recorded.
const MOST: usize = 2000;
/// The stack of the thread: it needs little more than space for a few paths.
const STACK: usize = 256 << 10;
/// Makes the kernel switch to us and back on one processor, which is faster. Older kernels do not support it.
const SYNC_WAKE_UP: u64 = 1;

/// The watch over all programs that enter one box.
#[derive(Debug)]
pub(super) struct Watch {
    filter: SystemCallFilter,
    refusing: Option<SystemCallFilter>,
    /// A program sends its listener, the file descriptor of the kernel's requests, over this line.
    line: OwnedFd,
    seen: Arc<Mutex<BTreeSet<WatchedAccess>>>,
    /// Closing it ends the thread.
    _stop: OwnedFd,
}

impl Watch {
    /// Starts watching, if the rules ask for it. `closed` are paths inside the writable places that mounts keep
    /// read-only.
    pub(super) fn new(rules: &BoxRules, closed: &[PathBuf]) -> io::Result<Option<Self>> {
        if rules.watch == BoxWatch::Nothing {
            return Ok(None);
        }
        let filter = SystemCallFilter::asking(rules).map_err(io::Error::other)?;
        let refusing = SystemCallFilter::beside_watch(rules).map_err(io::Error::other)?;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let line = clear_of_stdio(theirs)?;
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let seen = Arc::default();
        let watcher = Watcher {
            reader: CallReader {
                reads: readable(rules),
                writes: written(rules),
                closed: closed.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            },
            refuses_sockets: rules.network == BoxNetwork::Closed,
            everything: rules.watch == BoxWatch::Everything,
            seen: Arc::clone(&seen),
        };
        let thread = thread::Builder::new().name("ollm-box".to_owned()).stack_size(STACK);
        // Signals must go to the thread that runs the jobs.
        let blocked = BlockedSignals::all();
        thread.spawn(move || watcher.run(&ours, &stopped))?;
        drop(blocked);
        Ok(Some(Self { filter, refusing, line, seen, _stop: stop }))
    }

    /// The accesses recorded so far.
    pub(super) fn accesses(&self) -> Vec<WatchedAccess> {
        locked(&self.seen).iter().cloned().collect()
    }

    /// The values that a new process needs to be watched.
    pub(super) fn entry(&self) -> WatchEntry<'_> {
        WatchEntry { filter: &self.filter, refusing: self.refusing.as_ref(), line: self.line.as_raw_fd() }
    }
}

/// The values that a new process needs to be watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchEntry<'a> {
    filter: &'a SystemCallFilter,
    /// The calls that are refused without asking us.
    pub(super) refusing: Option<&'a SystemCallFilter>,
    pub(super) line: RawFd,
}

impl WatchEntry<'_> {
    /// Makes the kernel ask us from now on. Returns false if it cannot, because another process already watches us.
    ///
    /// # Safety
    ///
    /// Changes the whole process for good: only for a new one. It makes nothing but system calls.
    pub(super) unsafe fn start(&self) -> Result<bool, i32> {
        let program = self.filter.program();
        // SAFETY: as the caller promised; the program is valid as long as the filter is.
        let install = |flags: c_ulong| unsafe {
            let mode = c_ulong::from(libc::SECCOMP_SET_MODE_FILTER);
            libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
        };
        let own = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // With this flag a signal does not restart the call; some runtimes would otherwise repeat it forever.
        let mut listener = install(own | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
        if listener == -1 {
            listener = install(own);
        }
        if listener == -1 {
            return Ok(false);
        }
        // SAFETY: as the caller promised.
        unsafe { send_file(self.line, listener) }.map(|()| true)
    }
}

/// Sends a file descriptor over a line, with one byte.
///
/// # Safety
///
/// Only makes a system call; both numbers must be open files.
unsafe fn send_file(line: RawFd, file: c_long) -> Result<(), i32> {
    #[repr(C, align(8))]
    struct Control([u8; 24]);
    let file = c_int::try_from(file).unwrap_or(-1);
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast::<c_void>(), iov_len: 1 };
    let mut control = Control([0; 24]);
    // SAFETY: all pointers are to values of this function; the buffer has room for one header and one number.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() {
            return Err(libc::EINVAL);
        }
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(file);
        if libc::sendmsg(line, &raw const message, libc::MSG_NOSIGNAL) == -1 {
            return Err(*libc::__errno_location());
        }
    }
    Ok(())
}

fn locked(seen: &Mutex<BTreeSet<WatchedAccess>>) -> MutexGuard<'_, BTreeSet<WatchedAccess>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the thread.
struct Watcher {
    reader: CallReader,
    refuses_sockets: bool,
    everything: bool,
    seen: Arc<Mutex<BTreeSet<WatchedAccess>>>,
}

impl Watcher {
    /// Answers requests until the box is no longer needed.
    fn run(self, line: &OwnedFd, stopped: &OwnedFd) {
        let mut listeners: Vec<OwnedFd> = Vec::new();
        loop {
            let mut files = vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(line, PollFlags::IN)];
            files.extend(listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
            match poll(&mut files, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let ready: Vec<PollFlags> = files.iter().map(PollFd::revents).collect();
            let [stop, offered, asked @ ..] = ready.as_slice() else { return };
            if !stop.is_empty() {
                return;
            }
            for (listener, flags) in listeners.iter().zip(asked) {
                if flags.contains(PollFlags::IN) {
                    self.answer(listener);
                }
            }
            let mut gone = asked
                .iter()
                .map(|flags| flags.intersects(PollFlags::HUP | PollFlags::ERR))
                .collect::<Vec<_>>()
                .into_iter();
            listeners.retain(|_| !gone.next().unwrap_or(false));
            if offered.contains(PollFlags::IN) {
                listeners.extend(received(line));
            }
        }
    }

    /// Reads one request, records its accesses, and answers it.
    fn answer(&self, listener: &OwnedFd) {
        // SAFETY: both are plain values that may be all zeros, as the kernel demands of the first.
        let (mut asked, mut reply): (libc::seccomp_notif, libc::seccomp_notif_resp) = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills in a value of this size.
        if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) } == -1 {
            return;
        }
        let is_socket = c_long::from(asked.data.nr) == libc::SYS_socket;
        let changed = self.reader.change_mode(&asked, &|| is_waiting(listener, asked.id));
        let (accesses, done) = match changed {
            Some(ChangedMode { result, access }) => (access.into_iter().collect(), Some(result)),
            None => (self.reader.read(&asked), (is_socket && self.refuses_sockets).then_some(Err(Errno::PERM))),
        };
        for CallAccess { access, refused } in accesses {
            // The id may belong to another process by now; then the data read from it is discarded.
            if (refused || self.everything) && is_waiting(listener, asked.id) {
                let mut seen = locked(&self.seen);
                if seen.len() < MOST {
                    seen.insert(WatchedAccess { access, refused });
                }
            }
        }
        reply.id = asked.id;
        match done {
            Some(result) => reply.error = result.err().map_or(0, |error| -error.raw_os_error()),
            None => reply.flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1),
        }
        // A program that was ended meanwhile needs no answer. SAFETY: the kernel reads a value of this size.
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut reply) };
    }
}

/// Whether the process still waits for the answer.
fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// The file descriptor that a new program has sent.
fn received(line: &OwnedFd) -> Option<OwnedFd> {
    let mut byte = [0_u8; 1];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    recvmsg(line, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT).ok()?;
    let mut files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files.collect::<Vec<OwnedFd>>()),
        _ => None,
    });
    let listener = files.next()?.into_iter().next()?;
    // SAFETY: a plain number for a file of ours; kernels that do not know it refuse it.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
    Some(listener)
}
