//! Filters of system calls: those that a box refuses because neither mounts nor Landlock cover them, and those that the
//! kernel asks us about.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::box_call::file_calls;
use super::box_mode::mode_calls;
use crate::{BoxNetwork, BoxRules, BoxWatch};

/// The offset of a second set of numbers for the same calls, which some `x86_64` kernels accept.
const X32: i64 = 0x4000_0000;

/// What a filter has to know of one set of numbers.
#[derive(Clone, Copy)]
struct CallNumbers {
    ioctl: i64,
    prlimit: i64,
}

/// Those of this machine's own programs.
const OWN: CallNumbers = CallNumbers { ioctl: libc::SYS_ioctl, prlimit: libc::SYS_prlimit64 };
const OWN_X32: CallNumbers = CallNumbers { ioctl: X32 + 514, prlimit: X32 + libc::SYS_prlimit64 };

/// Those of programs with 32 bits, which the same kernel runs, and the number of the machine that they are made for.
#[cfg(target_arch = "x86_64")]
const NARROW: Option<(u32, CallNumbers)> = Some((0x4000_0003, CallNumbers { ioctl: 54, prlimit: 340 }));
#[cfg(target_arch = "aarch64")]
const NARROW: Option<(u32, CallNumbers)> = Some((0x4000_0028, CallNumbers { ioctl: 54, prlimit: 369 }));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NARROW: Option<(u32, CallNumbers)> = None;

/// The instruction that ends a filter with a result.
const RETURN: u16 = 0x06;
/// The instruction that goes on so many instructions later.
const JUMP: u16 = 0x05;
/// Where a filter compares the machine, and where it ends for every other one.
const MACHINE: usize = 1;
const OTHER_MACHINE: usize = 2;

/// System calls by their numbers, each with conditions on its arguments; an empty list matches any arguments.
type SystemCalls = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls that open a file, each with the index of its flags argument. One further call passes its flags in memory,
/// which a filter cannot read.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u8)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u8)] = &[(libc::SYS_openat, 2)];

/// A filter, ready for the kernel.
#[derive(Debug)]
pub(super) struct SystemCallFilter(BpfProgram);

impl SystemCallFilter {
    /// The filter of calls that a box refuses; `None` if every call is allowed, or if this machine filters none and no
    /// call must be refused.
    pub(super) fn new(rules: &BoxRules) -> Result<Option<Self>, String> {
        Self::refusing(rules, rules.network == BoxNetwork::Closed)
    }

    /// The same filter for a box whose watch refuses sockets.
    pub(super) fn beside_watch(rules: &BoxRules) -> Result<Option<Self>, String> {
        Self::refusing(rules, false)
    }

    /// The filter of calls that the kernel asks us about.
    pub(super) fn asking(rules: &BoxRules) -> Result<Self, String> {
        let mut calls: SystemCalls =
            file_calls().into_iter().chain(mode_calls()).map(|call| (call, Vec::new())).collect();
        calls.extend((rules.network == BoxNetwork::Closed).then_some((libc::SYS_socket, Vec::new())));
        if rules.watch == BoxWatch::Everything {
            calls.insert(libc::SYS_connect, Vec::new());
        } else {
            for (call, flags) in OPENING {
                let changing = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC].into_iter();
                let changing: Result<_, _> = changing.map(|flag| has_flag(*flags, flag)).collect();
                calls.insert(*call, changing.map_err(|error: BackendError| error.to_string())?);
            }
        }
        // The library has no action for asking, so another action stands for it.
        let mut program = compiled(calls, SeccompAction::Trap)?;
        for instruction in program.iter_mut().filter(|instruction| instruction.code == RETURN) {
            if instruction.k == libc::SECCOMP_RET_TRAP {
                instruction.k = libc::SECCOMP_RET_USER_NOTIF;
            }
        }
        Ok(Self(program))
    }

    fn refusing(rules: &BoxRules, sockets: bool) -> Result<Option<Self>, String> {
        let is_closed = rules.network == BoxNetwork::Closed;
        if machine().is_err() && !is_closed && !rules.terminal {
            return Ok(None);
        }
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let told = |error: BackendError| error.to_string();
        let mut calls = calls_by(OWN, rules).map_err(told)?;
        calls.extend(calls_by(OWN_X32, rules).map_err(told)?);
        if is_closed {
            // An `io_uring` also opens sockets, and no filter can read its requests.
            let rings = [libc::SYS_io_uring_setup, libc::SYS_io_uring_setup + X32, libc::SYS_socket + X32].into_iter();
            let own = sockets.then_some(libc::SYS_socket);
            calls.extend(rings.chain(own).map(|call| (call, Vec::new())));
        }
        let program = compiled(calls, refused.clone())?;
        match NARROW {
            // Programs with 32 bits open sockets in more ways, so they do not run where nothing may.
            Some((other, numbers)) if !is_closed => {
                let calls = calls_by(numbers, rules).map_err(told)?;
                joined(program, compiled(calls, refused)?, other).map(|program| Some(Self(program)))
            }
            _ => Ok(Some(Self(program))),
        }
    }

    /// The filter in the kernel's form; valid as long as this value is.
    pub(super) fn program(&self) -> libc::sock_fprog {
        libc::sock_fprog {
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            // Both types are the kernel's instruction.
            filter: self.0.as_ptr().cast_mut().cast(),
        }
    }
}

/// The calls that every box refuses, and those that it refuses on a terminal.
fn calls_by(numbers: CallNumbers, rules: &BoxRules) -> Result<SystemCalls, BackendError> {
    // Limits of another process of the same user keep it from opening files, or end it. Without new limits they are only read.
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let changes = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let mut refused = SystemCalls::from([(numbers.prlimit, vec![SeccompRule::new(vec![other, changes])?])]);
    if rules.terminal {
        let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(argument).into_iter();
        refused.insert(numbers.ioctl, typing.collect::<Result<_, _>>()?);
    }
    Ok(refused)
}

/// One program that asks another one about calls by the numbers of another machine.
fn joined(mut program: BpfProgram, mut narrow: BpfProgram, other: u32) -> Result<BpfProgram, String> {
    let length = program.len();
    let unknown = || "the filter of system calls is not as it was".to_owned();
    let end = program.get_mut(OTHER_MACHINE).filter(|end| end.code == RETURN).ok_or_else(unknown)?;
    let distance = u32::try_from(length - OTHER_MACHINE - 1).map_err(|error| error.to_string())?;
    *end = sock_filter { code: JUMP, jt: 0, jf: 0, k: distance };
    narrow.get_mut(MACHINE).ok_or_else(unknown)?.k = other;
    program.append(&mut narrow);
    Ok(program)
}

fn machine() -> Result<TargetArch, String> {
    let machine = std::env::consts::ARCH.try_into();
    machine.map_err(|_| "this machine's system calls cannot be filtered".to_owned())
}

/// A filter program that gives this result for these calls, and allows all others.
fn compiled(calls: SystemCalls, answer: SeccompAction) -> Result<BpfProgram, String> {
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, machine()?);
    filter.and_then(TryInto::try_into).map_err(|error| error.to_string())
}

/// Matches a call with this flag.
fn has_flag(place: u8, flag: libc::c_int) -> Result<SeccompRule, BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    let is_set = SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
    SeccompRule::new(vec![is_set])
}

/// Matches a call whose second argument is this request; the kernel compares only its lower half.
fn argument(request: libc::Ioctl) -> Result<SeccompRule, BackendError> {
    let value = u64::from(u32::try_from(request).unwrap_or_default());
    SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}
