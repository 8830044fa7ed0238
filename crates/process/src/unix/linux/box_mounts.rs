//! Makes the mounts of a box, in a process that borrows our memory: it only makes system calls.

use std::cell::Cell;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use libc::{AT_EMPTY_PATH, AT_FDCWD, AT_RECURSIVE, AT_SYMLINK_NOFOLLOW, c_int, c_long, c_ulong, c_void};

use super::box_plan::{MountKind, MountPlan, MountStep};
use super::memory::Stack;
use super::vfork::vfork;

/// Changes a copy of a mount before it is put in its place.
const ATTRIBUTE_READ_ONLY: u64 = 1;
/// What a mount gets and what it loses; two fields more are not used.
type MountAttributes = [u64; 4];
/// The file of this name in any folder is the folder itself.
const SELF: &CStr = c"";

/// Makes all mounts in these namespaces; whoever enters them later finds them there.
pub(super) fn mount_all(plan: &MountPlan, user: BorrowedFd<'_>, mount: BorrowedFd<'_>) -> Result<(), MountFailure> {
    let stack = Stack::new().map_err(|error| MountFailure { place: String::new(), error })?;
    let context = MountContext { plan, user: user.as_raw_fd(), mount: mount.as_raw_fd(), failure: Cell::new(None) };
    // SAFETY: `mount_main` only makes system calls on what the context holds, which outlives the call, and then exits.
    let started = unsafe { vfork(&stack, mount_main, (&raw const context).cast_mut().cast(), 0) };
    let (pid, _) = started.map_err(|error| MountFailure { place: String::new(), error })?;
    // SAFETY: no status is asked for; the process has exited, since it never becomes a program.
    while unsafe { libc::waitpid(pid.as_raw_nonzero().get(), std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    let Some((index, errno)) = context.failure.get() else { return Ok(()) };
    let place = plan.steps.get(index).map(|step| step.place.to_string_lossy().into_owned()).unwrap_or_default();
    Err(MountFailure { place, error: io::Error::from_raw_os_error(errno) })
}

/// A mount that the kernel refused.
#[derive(Debug)]
pub(super) struct MountFailure {
    /// Empty if it was none of the plan's.
    pub(super) place: String,
    pub(super) error: io::Error,
}

struct MountContext<'a> {
    plan: &'a MountPlan,
    user: RawFd,
    mount: RawFd,
    /// Which step failed, and with which error number; one past the steps for what comes before them.
    failure: Cell<Option<(usize, i32)>>,
}

extern "C" fn mount_main(context: *mut c_void) -> c_int {
    // SAFETY: `mount_all` passes a context that outlives this process.
    let context = unsafe { &*context.cast::<MountContext<'_>>() };
    // SAFETY: this is the new process.
    let made = unsafe { enter(context.user, context.mount) }
        .map_err(|error| (usize::MAX, error))
        .and_then(|()| make(context.plan));
    context.failure.set(made.err());
    // SAFETY: ends the new process without running anything of ours.
    unsafe { libc::_exit(0) }
}

/// Joins a user namespace and then a mount namespace of it.
///
/// # Safety
///
/// Changes the whole process for good: only for a new one.
pub(super) unsafe fn enter(user: RawFd, mount: RawFd) -> Result<(), i32> {
    // SAFETY: plain system calls on open files.
    unsafe {
        check(c_long::from(libc::setns(user, libc::CLONE_NEWUSER)))?;
        check(c_long::from(libc::setns(mount, libc::CLONE_NEWNS)))?;
    }
    Ok(())
}

fn make(plan: &MountPlan) -> Result<(), (usize, i32)> {
    let before = |error| (usize::MAX, error);
    // Nothing of ours reaches the namespace that we came from; mounts that a person makes there still reach us.
    let flags: c_ulong = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: a plain system call on constant strings.
    let slave = unsafe { libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()) };
    check(c_long::from(slave)).map_err(before)?;
    if plan.all_read_only {
        change(AT_FDCWD, c"/", AT_RECURSIVE, [ATTRIBUTE_READ_ONLY, 0, 0, 0]).map_err(before)?;
    }
    for (index, step) in plan.steps.iter().enumerate() {
        match put(step) {
            // What has gone meanwhile cannot be changed either.
            Ok(()) | Err(libc::ENOENT) => {}
            Err(error) => return Err((index, error)),
        }
    }
    Ok(())
}

fn put(step: &MountStep) -> Result<(), i32> {
    let own = || copy(&step.place);
    match step.kind {
        MountKind::Pin => own()?.lay_over(&step.place),
        MountKind::ReadOnly => {
            let copy = own()?;
            change(copy.0, SELF, AT_EMPTY_PATH | AT_RECURSIVE, [ATTRIBUTE_READ_ONLY, 0, 0, 0])?;
            copy.lay_over(&step.place)
        }
        MountKind::Writable => {
            let copy = own()?;
            let writable = [0, ATTRIBUTE_READ_ONLY, 0, 0];
            // A mount in it that was read-only from the start stays so, and would have the kernel refuse all of them.
            change(copy.0, SELF, AT_EMPTY_PATH | AT_RECURSIVE, writable)
                .or_else(|_| change(copy.0, SELF, AT_EMPTY_PATH, writable))?;
            copy.lay_over(&step.place)
        }
        MountKind::HideFile => self::copy(c"/dev/null")?.lay_over(&step.place),
        MountKind::HideFolder => {
            let flags: c_ulong = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            let (kind, options) = (c"tmpfs".as_ptr(), c"mode=0555,size=4k".as_ptr());
            // SAFETY: a plain system call on strings that outlive it.
            let made = unsafe { libc::mount(kind, step.place.as_ptr(), kind, flags, options.cast()) };
            check(c_long::from(made))
        }
    }
}

/// A copy of the mounts at a place, which is in no place yet.
struct DetachedMount(RawFd);

fn copy(place: &CStr) -> Result<DetachedMount, i32> {
    const CLONE: c_int = 1;
    let flags = CLONE | libc::O_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW;
    // SAFETY: a plain system call on a string that outlives it.
    let file = unsafe { libc::syscall(libc::SYS_open_tree, AT_FDCWD, place.as_ptr(), flags) };
    check(file)?;
    Ok(DetachedMount(RawFd::try_from(file).unwrap_or(-1)))
}

impl DetachedMount {
    /// Puts it in a place, over what is there.
    fn lay_over(self, place: &CStr) -> Result<(), i32> {
        const FROM_EMPTY_PATH: c_int = 4;
        // SAFETY: a plain system call on strings that outlive it.
        let moved = unsafe {
            let to = (AT_FDCWD, place.as_ptr());
            libc::syscall(libc::SYS_move_mount, self.0, SELF.as_ptr(), to.0, to.1, FROM_EMPTY_PATH)
        };
        check(moved)
    }
}

impl Drop for DetachedMount {
    fn drop(&mut self) {
        // SAFETY: the file is ours, and nobody uses it any more.
        unsafe { libc::close(self.0) };
    }
}

fn change(file: RawFd, path: &CStr, flags: c_int, attributes: MountAttributes) -> Result<(), i32> {
    // SAFETY: a plain system call on values that outlive it.
    let changed = unsafe {
        let (attributes, length) = (attributes.as_ptr(), size_of::<MountAttributes>());
        libc::syscall(libc::SYS_mount_setattr, file, path.as_ptr(), flags, attributes, length)
    };
    check(changed)
}

/// The error number of a call that has just failed.
fn check(result: c_long) -> Result<(), i32> {
    if result == -1 {
        return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    Ok(())
}
