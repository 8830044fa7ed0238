//! How a program begins: without what the standard library does before `main` to be able to name a stack overflow.
//!
//! For that it reads and parses the list of our memory and sets up a stack of its own for the handler, which takes a tenth
//! as long as a small program needs to start and end. A stack that overflows still ends the process: the kernel keeps a gap
//! below it.

use std::ffi::c_int;
use std::io;
use std::panic;
use std::process;

/// The exit code of a program that panicked, as the standard library has it.
const PANICKED: c_int = 101;

/// Makes a function of type `fn() -> u8` the program, which ends with the exit code that it gives back.
///
/// On Linux with the GNU C library the program starts without the standard library's handler for stack overflows, so that
/// it starts sooner. Its main file says so, too:
///
/// ```ignore
/// #![cfg_attr(all(not(test), target_os = "linux", target_env = "gnu"), no_main)]
///
/// ollm_process::program!(run);
/// ```
#[macro_export]
macro_rules! program {
    ($run:path) => {
        #[cfg(not(test))]
        const _: () = {
            #[unsafe(export_name = "main")]
            extern "C" fn main() -> ::std::ffi::c_int {
                $crate::run_program($run)
            }
        };
        #[cfg(test)]
        fn main() -> ::std::process::ExitCode {
            ::std::process::ExitCode::from($run())
        }
    };
}

/// Runs a program from its first instruction to its end. [`program!`](crate::program) calls it.
#[doc(hidden)]
pub fn run_program(run: fn() -> u8) -> c_int {
    open_streams();
    ignore_broken_pipes();
    let code = panic::catch_unwind(run).map_or(PANICKED, c_int::from);
    // Not by returning: what is left in the buffer of standard output is written here.
    process::exit(code)
}

/// Opens the standard streams that we were started without, so that no file of ours takes their place.
fn open_streams() {
    for stream in 0..3 {
        // SAFETY: plain system calls on a number and on a constant text.
        let opened = unsafe {
            libc::fcntl(stream, libc::F_GETFD) != -1
                || io::Error::last_os_error().raw_os_error() != Some(libc::EBADF)
                || libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) != -1
        };
        if !opened {
            process::abort();
        }
    }
}

/// Makes a write to a closed pipe an error, as in every Rust program.
fn ignore_broken_pipes() {
    // SAFETY: sets the effect of one signal while there is only one thread.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
