//! System calls that a box refuses, those for which there are neither mounts nor Landlock rules; and those that it is asked about.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::box_call::file_calls;
use crate::{BoxNetwork, BoxRules, BoxWatch};

/// A second set of numbers for the same calls, which some kernels for `x86_64` take.
const X32: i64 = 0x4000_0000;
/// The number of `ioctl` in that set.
const X32_IOCTL: i64 = X32 + 514;

/// The instruction that ends a filter with an answer.
const RETURN: u16 = 0x06;

/// System calls by their numbers, each with what its arguments must be; any will do where nothing is said.
type SystemCalls = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls that open a file, each with the place of its flags among the arguments. Of one more, a filter cannot see them.
#[cfg(target_arch = "x86_64")]
const OPENING: &[(i64, u8)] = &[(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENING: &[(i64, u8)] = &[(libc::SYS_openat, 2)];

/// A filter, ready for the kernel.
#[derive(Debug)]
pub(super) struct SystemCallFilter(BpfProgram);

impl SystemCallFilter {
    /// The calls that a box refuses; nothing if every call is allowed.
    pub(super) fn new(rules: &BoxRules) -> Result<Option<Self>, String> {
        let mut refused = Self::beside_watch_calls(rules)?;
        if rules.network == BoxNetwork::Closed {
            refused.insert(libc::SYS_socket, Vec::new());
        }
        Self::refusing(refused)
    }

    /// The same where the watch refuses sockets.
    pub(super) fn beside_watch(rules: &BoxRules) -> Result<Option<Self>, String> {
        Self::refusing(Self::beside_watch_calls(rules)?)
    }

    /// The calls that the kernel asks us about.
    pub(super) fn asking(rules: &BoxRules) -> Result<Self, String> {
        let mut calls: SystemCalls = file_calls().into_iter().map(|call| (call, Vec::new())).collect();
        calls.extend((rules.network == BoxNetwork::Closed).then_some((libc::SYS_socket, Vec::new())));
        if rules.watch == BoxWatch::Everything {
            calls.insert(libc::SYS_connect, Vec::new());
        } else {
            for (call, flags) in OPENING {
                let changing = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC].into_iter();
                let changing: Result<_, _> = changing.map(|flag| has_flag(*flags, flag)).collect();
                calls.insert(*call, changing.map_err(|error: seccompiler::BackendError| error.to_string())?);
            }
        }
        // The library has no word for asking, so another one stands for it.
        let mut program = compiled(calls, SeccompAction::Trap)?;
        for instruction in program.iter_mut().filter(|instruction| instruction.code == RETURN) {
            if instruction.k == libc::SECCOMP_RET_TRAP {
                instruction.k = libc::SECCOMP_RET_USER_NOTIF;
            }
        }
        Ok(Self(program))
    }

    fn refusing(refused: SystemCalls) -> Result<Option<Self>, String> {
        if refused.is_empty() {
            return Ok(None);
        }
        compiled(refused, SeccompAction::Errno(libc::EPERM.unsigned_abs())).map(|program| Some(Self(program)))
    }

    fn beside_watch_calls(rules: &BoxRules) -> Result<SystemCalls, String> {
        let mut refused = SystemCalls::new();
        if rules.network == BoxNetwork::Closed {
            // Rings of requests open sockets, too, and no filter sees what is in them.
            for call in [libc::SYS_io_uring_setup, libc::SYS_io_uring_setup + X32, libc::SYS_socket + X32] {
                refused.insert(call, Vec::new());
            }
        }
        if rules.terminal {
            for call in [libc::SYS_ioctl, X32_IOCTL] {
                let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(argument).into_iter();
                let typing: Result<_, _> = typing.collect();
                refused.insert(call, typing.map_err(|error: seccompiler::BackendError| error.to_string())?);
            }
        }
        Ok(refused)
    }

    /// The filter as the kernel takes it; valid as long as this value is.
    pub(super) fn program(&self) -> libc::sock_fprog {
        libc::sock_fprog {
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            // Both types are the kernel's instruction.
            filter: self.0.as_ptr().cast_mut().cast(),
        }
    }
}

/// A program that answers these calls so, and allows all others.
fn compiled(calls: SystemCalls, answer: SeccompAction) -> Result<BpfProgram, String> {
    let machine = std::env::consts::ARCH.try_into();
    let machine = machine.map_err(|_| "this machine's system calls cannot be filtered".to_owned())?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, answer, machine);
    filter.and_then(TryInto::try_into).map_err(|error| error.to_string())
}

/// Fits a call with this flag.
fn has_flag(place: u8, flag: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    let is_set = SeccompCondition::new(place, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
    SeccompRule::new(vec![is_set])
}

/// Fits a call whose second argument is this request; the kernel looks at its lower half only.
fn argument(request: libc::Ioctl) -> Result<SeccompRule, seccompiler::BackendError> {
    let value = u64::from(u32::try_from(request).unwrap_or_default());
    SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}
