//! Signal masks of the calling thread and signal set-up of a new process.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{
    SIG_BLOCK, SIG_DFL, SIG_SETMASK, SIG_UNBLOCK, SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP,
    SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGXFSZ, c_int, sigset_t, timespec,
};

/// The highest number of a signal.
const LAST_SIGNAL: c_int = 64;
/// Signals that programs often ignore for a while, but rarely from their start.
const OFTEN_CHANGED: [c_int; 13] =
    [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ];
/// The kernel's structure for a signal's action, which begins with the handler; longer than on any machine.
type Action = [u64; 8];
/// The default action without flags.
const DEFAULT: Action = [0; 8];
/// Bytes of the kernel's set of signals, one bit each.
const KERNEL_SET: usize = 8;

/// Blocks all signals on this thread; the drop restores the earlier mask.
#[derive(Debug)]
pub(super) struct BlockedSignals(sigset_t);

impl BlockedSignals {
    pub(super) fn all() -> Self {
        Self(mask(SIG_SETMASK, &full()))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        mask(SIG_SETMASK, &self.0);
    }
}

/// Keeps signals that ask us to end from this thread and the threads that it starts, until dropped. Then they take
/// effect.
#[derive(Debug)]
pub struct SignalShield {
    before: sigset_t,
    /// A mask belongs to its thread, and so does this value.
    _here: PhantomData<*const ()>,
}

impl SignalShield {
    /// Raises the shield on this thread.
    pub fn raise() -> Self {
        Self { before: mask(SIG_BLOCK, &set_of([SIGTERM, SIGINT, SIGHUP, SIGQUIT])), _here: PhantomData }
    }
}

impl Drop for SignalShield {
    fn drop(&mut self) {
        mask(SIG_SETMASK, &self.before);
    }
}

/// While it lives, a write to a closed pipe on this thread is an error, however `SIGPIPE` is handled.
#[derive(Debug)]
pub struct PipeShield {
    before: sigset_t,
    /// A mask belongs to its thread, and so does this value.
    _here: PhantomData<*const ()>,
}

impl PipeShield {
    /// Raises the shield on this thread.
    pub fn raise() -> Self {
        Self { before: mask(SIG_BLOCK, &only(SIGPIPE)), _here: PhantomData }
    }

    /// Whether a broken pipe would have any effect without it; most programs ignore the signal.
    pub fn is_needed() -> bool {
        action(SIGPIPE).is_none_or(|action| action.sa_sigaction != libc::SIG_IGN)
    }
}

impl Drop for PipeShield {
    fn drop(&mut self) {
        if contains(&self.before, SIGPIPE) {
            return;
        }
        let pipe = only(SIGPIPE);
        let no_wait = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: set and time are valid; no information about the signal is asked for.
        unsafe { libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const no_wait) };
        mask(SIG_UNBLOCK, &pipe);
    }
}

/// Gives signals their default action and blocks none. A new process calls it before it becomes the program, which
/// would otherwise inherit ignored and blocked signals. Actions come first, so that no handler of ours runs in the new
/// process.
pub(super) fn reset(signals: &[c_int]) {
    for signal in signals {
        kernel_action(*signal, Some(&DEFAULT), None);
    }
    mask(SIG_SETMASK, &empty());
}

/// The signals that a new process resets: those without their default action now, and those that often lose it later.
/// Resetting all of them would cost a hundredth of each start.
pub(super) fn to_reset() -> Vec<c_int> {
    let is_changed = |signal: &c_int| {
        let mut action = DEFAULT;
        kernel_action(*signal, None, Some(&mut action));
        action.first() != Some(&(SIG_DFL as u64))
    };
    let others = (1..=LAST_SIGNAL).filter(|signal| !OFTEN_CHANGED.contains(signal));
    OFTEN_CHANGED.into_iter().chain(others.filter(is_changed)).collect()
}

/// Sets or reads an action. It bypasses the C library, which hides two of its own signals that can also be ignored. For
/// signals that cannot be changed, the kernel refuses without effect.
fn kernel_action(signal: c_int, new: Option<&Action>, old: Option<&mut Action>) {
    let new = new.map_or(ptr::null(), |action| action.as_ptr());
    let old = old.map_or(ptr::null_mut(), |action| action.as_mut_ptr());
    // SAFETY: both are null or valid, and longer than the kernel's structure.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, KERNEL_SET) };
}

/// Undoes an inherited setting to ignore `SIGCHLD`, under which the kernel discards exit statuses.
pub(super) fn keep_exit_statuses() {
    let Some(mut action) = action(SIGCHLD) else {
        return;
    };
    if action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0 {
        if action.sa_sigaction == libc::SIG_IGN {
            action.sa_sigaction = SIG_DFL;
        }
        action.sa_flags &= !libc::SA_NOCLDWAIT;
        // SAFETY: the action is the one read before, at most with the default effect.
        unsafe { libc::sigaction(SIGCHLD, &raw const action, ptr::null_mut()) };
    }
}

/// Blocks no signal on this thread.
pub(in crate::unix) fn let_signals_through() {
    mask(SIG_SETMASK, &empty());
}

/// Whether a signal has its default action in this process.
pub(super) fn has_default_effect(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == SIG_DFL)
}

/// The blocked signals of this thread.
pub(super) fn current_mask() -> sigset_t {
    mask(SIG_BLOCK, &empty())
}

/// The action of a signal in this process.
fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut current = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: only reads the action into the room given for it.
    let read = unsafe { libc::sigaction(signal, ptr::null(), current.as_mut_ptr()) };
    // SAFETY: a call that succeeded has filled it.
    (read == 0).then(|| unsafe { current.assume_init() })
}

/// Changes the mask of this thread; returns the earlier one.
pub(super) fn mask(how: c_int, set: &sigset_t) -> sigset_t {
    let mut before = empty();
    // SAFETY: both sets are valid for the call, and `how` is one of the three known ways.
    unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    before
}

fn empty() -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills the whole set and cannot fail on a valid address.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn full() -> sigset_t {
    let mut set = empty();
    // SAFETY: the set is valid.
    unsafe { libc::sigfillset(&raw mut set) };
    set
}

pub(super) fn only(signal: c_int) -> sigset_t {
    set_of([signal])
}

pub(super) fn set_of(signals: impl IntoIterator<Item = c_int>) -> sigset_t {
    let mut set = empty();
    for signal in signals {
        // SAFETY: the set is valid.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

pub(super) fn contains(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is valid.
    unsafe { libc::sigismember(set, signal) == 1 }
}
