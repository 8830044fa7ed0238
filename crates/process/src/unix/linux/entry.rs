//! The start of a program, without the set-up by which the standard library reports a stack overflow before `main`.
//!
//! For that set-up, the standard library reads and parses the list of our memory, and allocates a separate stack for
//! the handler. This takes a tenth as long as a small program needs to start and end. A stack overflow still ends the
//! process, because the kernel keeps a gap below the stack.
//!
//! The program also brings the two functions of C's `libm` that libraries of its panels and progress bars call. Finding,
//! mapping and binding that library for them takes another tenth.

use std::ffi::c_int;
use std::io;
use std::panic;
use std::process;

/// The exit code of a program that panicked, as in the standard library.
const PANICKED: c_int = 101;

/// Makes a function of type `fn() -> u8` the main function of the program, which ends with the returned exit code.
///
/// On Linux with the GNU C library, the program starts sooner, because it skips the standard library's handler for
/// stack overflows. Its main file must say so, too:
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

            #[unsafe(export_name = "pow")]
            extern "C" fn power(base: f64, exponent: f64) -> f64 {
                $crate::math::pow(base, exponent)
            }

            #[unsafe(export_name = "log10")]
            extern "C" fn decimal_logarithm(value: f64) -> f64 {
                $crate::math::log10(value)
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
    // Exits instead of returning, so that the buffer of standard output is flushed.
    process::exit(code)
}

/// Opens standard streams that are missing at the start, so that no later file takes their numbers.
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
