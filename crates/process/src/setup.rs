//! The set-up of a whole process. Only a program that runs other programs makes it, once; a library never makes it.

use std::io;

#[cfg(unix)]
use crate::unix as platform;
#[cfg(windows)]
use crate::windows as platform;

/// The set-up of a process whose program runs other programs. The program makes one at the start of `main`.
///
/// From the first job or resident of any [`Children`](crate::Children) on, this process adopts descendants whose
/// parents die. It also keeps the exit statuses of its children, even if it was started with `SIGCHLD` ignored. Both
/// hold for the whole process. Dropped at the end of `main`, it kills and reaps the descendants that are left, except
/// those that [`Children::release`](crate::Children::release) started and each [`SparedChild`](crate::SparedChild).
///
/// On Linux, other programs of the same user can no longer read the memory and the environment of this process. The
/// same holds for guard and reapers. So the programs that we start cannot read secrets out of `/proc`. Debuggers are
/// shut out too.
///
/// ```standalone_crate
/// use ollm_process::{Children, Job, ProcessSetup};
///
/// let _setup = ProcessSetup::new();
/// # #[cfg(unix)]
/// Children::new().run(Job::new("/bin/true"));
/// // The drop ends what `true` left behind.
/// ```
#[derive(Debug)]
#[must_use = "dropped, it ends all descendants"]
pub struct ProcessSetup {
    _private: (),
}

impl ProcessSetup {
    /// Sets this process up.
    #[expect(clippy::new_without_default, reason = "a set-up of the whole process is no harmless default")]
    pub fn new() -> Self {
        platform::hide_memory();
        platform::adopt_from_first_start();
        Self { _private: () }
    }

    /// Leaves the terminal and the group that this process was started in, so that no signal meant for them reaches it.
    /// Also unblocks the signals that its starter had blocked. For a program that was started by
    /// [`Children::release`](crate::Children::release).
    pub fn leave_session(&self) -> io::Result<()> {
        platform::leave_session()
    }
}

impl Drop for ProcessSetup {
    fn drop(&mut self) {
        platform::kill_adopted();
    }
}

/// Makes a function of type `fn() -> u8` the main function of the program, which ends with the returned exit code.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
#[macro_export]
macro_rules! program {
    ($run:path) => {
        fn main() -> ::std::process::ExitCode {
            ::std::process::ExitCode::from($run())
        }
    };
}
