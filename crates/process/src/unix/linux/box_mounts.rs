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
/// The attributes that a mount gets and loses; two further fields are unused.
type MountAttributes = [u64; 4];
/// The empty name means the opened folder or file itself.
const SELF: &CStr = c"";
/// The limit on mount namespaces in the writer's user namespace and those below it.
const MOST_NAMESPACES: &CStr = c"/proc/sys/user/max_mnt_namespaces";

/// Makes all mounts in these namespaces; every process that enters them later finds them there.
pub(super) fn mount_all(plan: &MountPlan, user: BorrowedFd<'_>, mount: BorrowedFd<'_>) -> Result<(), MountFailure> {
    let failed = |error| MountFailure { stage: MountStage::Entering, error };
    let stack = Stack::new().map_err(failed)?;
    let context = MountContext { plan, user: user.as_raw_fd(), mount: mount.as_raw_fd(), failure: Cell::new(None) };
    // SAFETY: `mount_main` only makes system calls on what the context holds, which outlives the call, and then exits.
    let started = unsafe { vfork(&stack, mount_main, (&raw const context).cast_mut().cast(), 0) };
    let (pid, _) = started.map_err(failed)?;
    // SAFETY: no status is asked for; the process has exited, since it never becomes a program.
    while unsafe { libc::waitpid(pid.as_raw_nonzero().get(), std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    let Some((stage, errno)) = context.failure.get() else { return Ok(()) };
    Err(MountFailure { stage, error: io::Error::from_raw_os_error(errno) })
}

/// What the kernel refused, and at which stage.
#[derive(Debug)]
pub(super) struct MountFailure {
    pub(super) stage: MountStage,
    pub(super) error: io::Error,
}

/// A stage of making the mounts.
#[derive(Clone, Copy, Debug)]
pub(super) enum MountStage {
    /// Entering the namespaces, and separating from the others.
    Entering,
    /// Forbidding further namespaces.
    Closing,
    /// A step of the plan, by its index.
    Step(usize),
}

struct MountContext<'a> {
    plan: &'a MountPlan,
    user: RawFd,
    mount: RawFd,
    /// The stage that failed, and its error number.
    failure: Cell<Option<(MountStage, i32)>>,
}

extern "C" fn mount_main(context: *mut c_void) -> c_int {
    // SAFETY: `mount_all` passes a context that outlives this process.
    let context = unsafe { &*context.cast::<MountContext<'_>>() };
    let made = enter_and_make(context);
    context.failure.set(made.err());
    // SAFETY: ends the new process without running anything of ours.
    unsafe { libc::_exit(0) }
}

/// Joins a user namespace and then a mount namespace inside it.
///
/// # Safety
///
/// Changes the whole process for good: only for a new one.
pub(super) unsafe fn enter(user: RawFd, mount: RawFd) -> Result<(), i32> {
    join(user, libc::CLONE_NEWUSER)?;
    join(mount, libc::CLONE_NEWNS)
}

fn join(namespace: RawFd, kind: c_int) -> Result<(), i32> {
    // SAFETY: a plain system call on an open file.
    check(c_long::from(unsafe { libc::setns(namespace, kind) }))
}

/// Makes the mounts, and prevents programs in the box from making mount namespaces. In a new namespace without these
/// mounts, a program could remove or move a protected file through a folder that it opened before: the kernel checks
/// only the mounts of the current namespace.
fn enter_and_make(context: &MountContext<'_>) -> Result<(), (MountStage, i32)> {
    let (entering, closing) = (|error| (MountStage::Entering, error), |error| (MountStage::Closing, error));
    join(context.user, libc::CLONE_NEWUSER).map_err(entering)?;
    // The file belongs to the user namespace that opens it, so it is opened before the mounts lock it. It is written
    // after the mounts are made, because the kernel counts each copy of a mount namespace.
    // SAFETY: a plain system call on a constant string.
    let limit = unsafe { libc::open(MOST_NAMESPACES.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    check(c_long::from(limit)).map_err(closing)?;
    join(context.mount, libc::CLONE_NEWNS).map_err(entering)?;
    make(context.plan)?;
    // SAFETY: a plain system call on constant bytes.
    let written = unsafe { libc::write(limit, c"0".as_ptr().cast(), 1) };
    check(written as c_long).map_err(closing)
}

fn make(plan: &MountPlan) -> Result<(), (MountStage, i32)> {
    let before = |error| (MountStage::Entering, error);
    // Our mounts do not spread to the original namespace; mounts that a person makes there still spread to ours.
    let flags: c_ulong = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: a plain system call on constant strings.
    let slave = unsafe { libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()) };
    check(c_long::from(slave)).map_err(before)?;
    if plan.all_read_only {
        change(AT_FDCWD, c"/", AT_RECURSIVE, [ATTRIBUTE_READ_ONLY, 0, 0, 0]).map_err(before)?;
    }
    for (index, step) in plan.steps.iter().enumerate() {
        match put(step) {
            // A path that has gone meanwhile needs no protection.
            Ok(()) | Err(libc::ENOENT) => {}
            Err(error) => return Err((MountStage::Step(index), error)),
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
            // An inner mount that was read-only from the start stays so, and makes the kernel refuse the recursive
            // change.
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

/// A detached copy of the mounts at a place.
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
    /// Attaches it at a place, over the existing content.
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
        // SAFETY: the file is ours, and no other code uses it any more.
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

/// The error number of a failed call.
fn check(result: c_long) -> Result<(), i32> {
    if result == -1 {
        return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    Ok(())
}
