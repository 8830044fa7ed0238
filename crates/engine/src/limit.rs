//! Finds out which declared limit ended a hook, by its exit and its last output, and which limits have no effect.

use ollm_process::End;
use ollm_protocol::Hook;
use ollm_store::current_uid;

/// The signals by which the kernel enforces limits on Linux. A shell adds 128 to them.
const OUT_OF_CPU: i32 = 24;
const FILE_TOO_LARGE: i32 = 25;
const KILLED: i32 = 9;
/// The signals that end programs which were refused memory and did not handle that.
const CRASHES: [i32; 3] = [5, 6, 11];

/// Messages of programs that were refused memory, a process or a file, in lower case.
const NO_MEMORY: &[&str] = &[
    "out of memory",
    "memoryerror",
    "cannot allocate memory",
    "memory allocation of",
    "allocation failed",
    "bad_alloc",
];
const NO_PROCESS: &[&str] = &["resource temporarily unavailable", "can't start new thread", "cannot fork"];
const NO_FILE: &[&str] = &["too many open files"];
const LARGE_FILE: &[&str] = &["file too large"];

/// The limit that the hook's process ran into, with its value, as in ``it ran into its limit `cpu` of 5s``.
pub(crate) fn exceeded(hook: &Hook, end: &End, stderr: &[u8]) -> Option<String> {
    let limits = &hook.spec.limits;
    let said = String::from_utf8_lossy(stderr).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let by = |signal| ended_by(end, signal);
    let bound = |name: &str, value: String| format!("it ran into its limit `{name}` of {value}");
    if matches!(end, End::TimedOut) {
        // The error already names `timeout`.
        let time = limits.time?.duration(hook.dialect.defaults().timeout_unit)?;
        let is_timeout = hook.spec.timeout.is_some() && hook.timeout.value < time;
        return (!is_timeout).then(|| bound("time", format!("{time:?}")));
    }
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
    if let Some((name, limit, _, unit)) = found {
        return Some(bound(name, format!("{}{unit}", limit?)));
    }
    let memory = limits.memory.filter(|_| CRASHES.into_iter().any(by))?;
    Some(format!("perhaps {}", bound("memory", format!("{memory} bytes"))))
}

/// The declared limit that has no effect here: the kernel does not count root's processes.
pub fn unbound_limit(hook: &Hook) -> Option<&'static str> {
    let is_unbound = hook.spec.limits.processes.is_some() && current_uid() == 0;
    is_unbound.then_some("its limit `processes` does not hold for root")
}

/// Whether this signal ended the process, or a program that the process, a shell, waited for.
fn ended_by(end: &End, signal: i32) -> bool {
    match end {
        End::Signalled(found) => *found == signal,
        End::Exited(status) => *status == 128 + signal,
        _ => false,
    }
}
