//! A box: limits what the programs in it may do to files, under every spelling of their names.
//!
//! The kernel enforces it, so it also holds for all descendants of the program. This file has the types; the platform's
//! code passes them to the kernel.

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use crate::unix as platform;
#[cfg(windows)]
use crate::windows as platform;

/// What a program in a box may not do. Paths are absolute; a folder stands for everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoxRules {
    /// Cannot be written, removed, renamed or replaced. A missing file cannot be protected this way.
    pub read_only: Vec<PathBuf>,
    /// Cannot be removed, renamed or replaced; their content can change. Mounts enforce this, Landlock cannot.
    pub pinned: Vec<PathBuf>,
    /// Look empty, and cannot be written either. Mounts enforce this, Landlock cannot.
    pub hidden: Vec<PathBuf>,
    /// Look empty as well, and under Landlock no program can read or write them. Under Landlock, new files beside them
    /// cannot be read, unless the whole place can be written.
    pub secret: Vec<PathBuf>,
    /// The only places that can be written; all places when absent. Read-only paths stay so within them.
    pub writable: Option<Vec<PathBuf>>,
    /// The only places that can be read and run, beside those that can be written; all places when absent. Landlock
    /// enforces this, also in a box by namespaces.
    pub readable: Option<Vec<PathBuf>>,
    /// Folders that stay writable as a whole under Landlock, which cannot forbid anything below a folder that it
    /// allows.
    pub whole: Vec<PathBuf>,
    /// Whether the network can be used.
    pub network: BoxNetwork,
    /// A folder in which the box makes its own writable folder, which is removed with the box.
    pub temporary: Option<PathBuf>,
    /// Whether the program shares a person's terminal. If so, the program cannot type there in the person's place.
    pub terminal: bool,
    /// The newest version of Landlock that may enforce the box; the kernel's version when absent. With it, the box can
    /// be tried as older kernels enforce it.
    pub landlock: Option<u8>,
    /// Which accesses are recorded; only where Landlock enforces the box.
    pub watch: BoxWatch,
}

/// Which accesses of programs in a box are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxWatch {
    /// Nothing.
    #[default]
    Nothing,
    /// Refused changes and sockets. Reads are not included: programs read so many files that asking about each would
    /// slow them down by a third.
    Refused,
    /// All files that are opened, made or removed, and all addresses that are reached.
    Everything,
}

/// Something that a program in a box did, or tried and was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoxAccess {
    /// It opened this to read it.
    Read(PathBuf),
    /// It opened, made or removed a file.
    Write {
        /// The file.
        path: PathBuf,
        /// What must be writable for that: the file, or the folder in which a name is made or removed.
        within: PathBuf,
    },
    /// It opened a socket of the network.
    Network,
    /// It opened a socket of this machine.
    Service,
    /// It reached this address.
    Connect(String),
}

/// A recorded access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedAccess {
    /// What was done.
    pub access: BoxAccess,
    /// Whether the box refused it.
    pub refused: bool,
}

/// Whether a box allows the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxNetwork {
    /// As outside the box.
    #[default]
    Open,
    /// No new socket of any kind, so the program reaches neither the network nor a service on this machine.
    Closed,
}

/// The kernel feature that enforces a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxMeans {
    /// Read-only mounts in a separate user and mount namespace.
    Namespaces,
    /// Landlock rules: a list of allowed accesses.
    Landlock,
}

impl BoxMeans {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            BoxMeans::Namespaces => "namespaces",
            BoxMeans::Landlock => "Landlock",
        }
    }
}

/// Why a box by these means cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BoxError {
    /// The means that were tried.
    pub means: BoxMeans,
    /// The feature that the kernel lacks or refuses.
    pub reason: String,
}

impl BoxError {
    pub(crate) fn new(means: BoxMeans, reason: impl fmt::Display) -> Self {
        Self { means, reason: reason.to_string() }
    }
}

/// A box that is ready for any number of programs ([`Job::process_box`](crate::Job::process_box)).
///
/// It holds for files that existed when it was made: a file that was created or replaced since needs another box.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use std::sync::Arc;
/// use ollm_process::{BoxMeans, BoxRules, Children, End, Job, ProcessBox};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("settings");
/// std::fs::write(&file, "guarded")?;
/// let rules = BoxRules { read_only: vec![file.clone()], ..BoxRules::default() };
/// // Some kernels and containers allow no namespaces.
/// if let Ok(made) = ProcessBox::new(BoxMeans::Namespaces, &rules) {
///     let args = vec!["-c".into(), "rm -f \"$1\"".into(), "sh".into(), file.clone().into()];
///     let job = Job { args, process_box: Some(Arc::new(made)), ..Job::new("/bin/sh") };
///     let outcome = Children::new().run(job);
///     assert!(!matches!(outcome.end, End::Exited(0)));
///     assert_eq!(std::fs::read_to_string(&file)?, "guarded");
/// }
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ProcessBox {
    pub(crate) inner: platform::PlatformBox,
    means: BoxMeans,
    notes: Vec<String>,
    rules: BoxRules,
}

impl ProcessBox {
    /// The version of Landlock that this kernel has, if it has one.
    pub fn landlock_version() -> Option<i64> {
        platform::PlatformBox::landlock_version()
    }

    /// Makes a box by these means.
    pub fn new(means: BoxMeans, rules: &BoxRules) -> Result<Self, BoxError> {
        let (inner, notes) = platform::PlatformBox::new(means, rules).map_err(|reason| BoxError::new(means, reason))?;
        Ok(Self { inner, means, notes, rules: rules.clone() })
    }

    /// The means by which the kernel enforces it.
    pub fn means(&self) -> BoxMeans {
        self.means
    }

    /// The rules that it was made from.
    pub fn rules(&self) -> &BoxRules {
        &self.rules
    }

    /// The recorded accesses so far ([`BoxRules::watch`]). Accesses of programs that have ended are complete, except
    /// where the kernel hid their details.
    pub fn accesses(&self) -> Vec<WatchedAccess> {
        self.inner.accesses()
    }

    /// The rules that this kernel cannot enforce.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The box's own temporary folder, if the rules ask for one.
    pub fn temporary(&self) -> Option<&Path> {
        self.inner.temporary()
    }
}
