//! System calls that a box refuses: those for which there are neither mounts nor Landlock rules.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::{BoxNetwork, BoxRules};

/// A second set of numbers for the same calls, which some kernels for `x86_64` take.
const X32: i64 = 0x4000_0000;
/// The number of `ioctl` in that set.
const X32_IOCTL: i64 = X32 + 514;

/// A filter, ready for the kernel.
#[derive(Debug)]
pub(super) struct SystemCallFilter(BpfProgram);

impl SystemCallFilter {
    /// Nothing if every call is allowed.
    pub(super) fn new(rules: &BoxRules) -> Result<Option<Self>, String> {
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        if rules.network == BoxNetwork::Closed {
            // Rings of requests open sockets, too, and no filter sees what is in them.
            for call in [libc::SYS_socket, libc::SYS_io_uring_setup] {
                refused.insert(call, Vec::new());
                refused.insert(call + X32, Vec::new());
            }
        }
        if rules.terminal {
            for call in [libc::SYS_ioctl, X32_IOCTL] {
                let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(argument).into_iter();
                let typing: Result<_, _> = typing.collect();
                refused.insert(call, typing.map_err(|error: seccompiler::BackendError| error.to_string())?);
            }
        }
        if refused.is_empty() {
            return Ok(None);
        }
        let machine = std::env::consts::ARCH.try_into();
        let machine = machine.map_err(|_| "this machine's system calls cannot be filtered".to_owned())?;
        let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(refused, SeccompAction::Allow, refusal, machine);
        let program = filter.and_then(TryInto::try_into).map_err(|error| error.to_string())?;
        Ok(Some(Self(program)))
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

/// Fits a call whose second argument is this request; the kernel looks at its lower half only.
fn argument(request: libc::Ioctl) -> Result<SeccompRule, seccompiler::BackendError> {
    let value = u64::from(u32::try_from(request).unwrap_or_default());
    SeccompRule::new(vec![SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}
