//! Which of its declared limits ended a hook, as far as its end and its last words tell.

use ollm_process::End;
use ollm_protocol::Hook;

/// The signals by which the kernel holds a process to its limits on Linux; a shell adds 128 to them.
const OUT_OF_CPU: i32 = 24;
const FILE_TOO_LARGE: i32 = 25;
const KILLED: i32 = 9;

/// Words of programs that were refused memory, a process or a file, in lower case.
const NO_MEMORY: &[&str] =
    &["out of memory", "memoryerror", "cannot allocate memory", "memory allocation of", "bad_alloc"];
const NO_PROCESS: &[&str] = &["resource temporarily unavailable", "can't start new thread", "cannot fork"];
const NO_FILE: &[&str] = &["too many open files"];
const LARGE_FILE: &[&str] = &["file too large"];

/// The limit that the hook's process ran into, with its value, as in ``its limit `cpu` of 5s``.
pub(crate) fn exceeded(hook: &Hook, end: &End, stderr: &[u8]) -> Option<String> {
    let limits = &hook.spec.limits;
    let said = String::from_utf8_lossy(stderr).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let by = |signal| ended_by(end, signal);
    let bound = |name: &str, value: String| format!("its limit `{name}` of {value}");
    if let Some(cpu) = limits.cpu.filter(|_| by(OUT_OF_CPU) || by(KILLED)) {
        return Some(bound("cpu", format!("{cpu:?}")));
    }
    let counted = [
        ("fileSize", limits.file_size, by(FILE_TOO_LARGE) || says(LARGE_FILE), " bytes"),
        ("memory", limits.memory, says(NO_MEMORY), " bytes"),
        ("files", limits.files, says(NO_FILE), ""),
        ("processes", limits.processes, says(NO_PROCESS), ""),
    ];
    let found = counted.into_iter().find(|(_, limit, met, _)| limit.is_some() && *met);
    found.and_then(|(name, limit, _, unit)| Some(bound(name, format!("{}{unit}", limit?))))
}

/// Whether this signal ended the process, or a program that a shell waited for.
fn ended_by(end: &End, signal: i32) -> bool {
    match end {
        End::Signalled(found) => *found == signal,
        End::Exited(status) => *status == 128 + signal,
        _ => false,
    }
}
