//! File systems that other machines or programs change without a notice to this system.

use std::path::Path;

/// NFS, SMB in three versions, 9P, what a program provides (FUSE), and Lustre.
#[cfg(target_os = "linux")]
const REMOTE: [u32; 7] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546, 0x0BD0_0BD0];

/// Whether a folder is on such a file system.
#[cfg(target_os = "linux")]
pub(crate) fn is_remote(folder: &Path) -> bool {
    let kind = rustix::fs::statfs(folder).ok().and_then(|found| u32::try_from(found.f_type).ok());
    kind.is_some_and(|kind| REMOTE.contains(&kind))
}

/// Whether a folder is on such a file system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_remote(_: &Path) -> bool {
    false
}
