//! A box: what a program may do to files, whatever it is and however it spells their names.
//!
//! The kernel holds it, so it also holds for all descendants of the program. This file has the values; how the kernel is
//! told is a matter of the platform.

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(unix)]
use crate::unix as platform;
#[cfg(windows)]
use crate::windows as platform;

/// What a program in a box may not do. Paths are absolute; a folder stands for all that is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoxRules {
    /// Cannot be written, removed, renamed or replaced. What does not exist cannot be protected this way.
    pub read_only: Vec<PathBuf>,
    /// Look empty, and cannot be written either.
    pub hidden: Vec<PathBuf>,
    /// The only places that can be written; all others when absent. What is read-only stays so within them.
    pub writable: Option<Vec<PathBuf>>,
    /// The only places that can be read and run, beside those that can be written; all when absent. Landlock holds this,
    /// also for a box by namespaces.
    pub readable: Option<Vec<PathBuf>>,
    /// Folders that stay writable as a whole under Landlock, which cannot forbid what lies below a folder that it allows.
    pub whole: Vec<PathBuf>,
    /// Whether the network can be used.
    pub network: BoxNetwork,
    /// A folder in which the box makes one of its own, writable, which goes with the box.
    pub temporary: Option<PathBuf>,
    /// Whether the program shares a person's terminal: nothing can be typed there in their place then.
    pub terminal: bool,
    /// The newest version of Landlock that is used where it holds the box; what the kernel has when absent. So a box can be
    /// seen as older kernels hold it.
    pub landlock: Option<u8>,
    /// What is noted of what programs do; only where Landlock holds the box.
    pub watch: BoxWatch,
}

/// What is noted of what programs in a box do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxWatch {
    /// Nothing.
    #[default]
    Nothing,
    /// What the box refuses of changes and sockets. Programs read so many files that being asked about each would slow them
    /// down by a third.
    Refused,
    /// All that is opened, made, removed and reached.
    Everything,
}

/// Something that a program in a box did, or was kept from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoxAccess {
    /// It opened this to read it.
    Read(PathBuf),
    /// It opened, made or removed a file.
    Write {
        /// The file.
        path: PathBuf,
        /// What has to be writable for that: the file, or the folder in which a name is made or removed.
        within: PathBuf,
    },
    /// It opened a socket of the network.
    Network,
    /// It opened a socket of this machine.
    Service,
    /// It reached this address.
    Connect(String),
}

/// An access that was noted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedAccess {
    /// What was done.
    pub access: BoxAccess,
    /// Whether the box refused it.
    pub refused: bool,
}

/// Whether the network can be used in a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxNetwork {
    /// As outside.
    #[default]
    Open,
    /// No new socket of any kind, so neither the network nor a service on this machine is reached.
    Closed,
}

/// By which means the kernel holds a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxMeans {
    /// Read-only mounts in a user and mount namespace of its own.
    Namespaces,
    /// Landlock rules: a list of what is allowed.
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

/// Why there is no box by these means.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BoxError {
    /// What was tried.
    pub means: BoxMeans,
    /// What the kernel lacks or refuses.
    pub reason: String,
}

impl BoxError {
    pub(crate) fn new(means: BoxMeans, reason: impl fmt::Display) -> Self {
        Self { means, reason: reason.to_string() }
    }
}

/// A box that is ready for any number of programs ([`Job::process_box`](crate::Job::process_box)).
///
/// It holds for what existed when it was made: for a file that appeared or was replaced since, another box is needed.
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
    /// Makes a box by these means.
    pub fn new(means: BoxMeans, rules: &BoxRules) -> Result<Self, BoxError> {
        let (inner, notes) = platform::PlatformBox::new(means, rules).map_err(|reason| BoxError::new(means, reason))?;
        Ok(Self { inner, means, notes, rules: rules.clone() })
    }

    /// By which means the kernel holds it.
    pub fn means(&self) -> BoxMeans {
        self.means
    }

    /// The rules that it was made by.
    pub fn rules(&self) -> &BoxRules {
        &self.rules
    }

    /// What was noted so far of what programs in it did ([`BoxRules::watch`]). What a program did that has ended is all here,
    /// but for what could not be read of it.
    pub fn accesses(&self) -> Vec<WatchedAccess> {
        self.inner.accesses()
    }

    /// What this kernel cannot hold of the rules.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The temporary folder of its own, if the rules ask for one.
    pub fn temporary(&self) -> Option<&Path> {
        self.inner.temporary()
    }
}
