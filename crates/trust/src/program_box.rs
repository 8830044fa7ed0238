//! The box of a program that came with a project or an extension: what it may read, write and reach.
//!
//! System folders, programs on the search path with their libraries, its own files and the project can be read, a temporary
//! folder of its own can be written. Everything else is what its permissions name. What is protected stays so within that.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ollm_process::{BoxAccess, BoxError, BoxMeans, BoxNetwork, BoxRules, BoxWatch, Job, ProcessBox, WatchedAccess};
use ollm_protocol::PermissionsSpec;
use ollm_protocol::protected::protected;

use crate::TrustContext;

/// What every program needs to read.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/proc", "/sys", "/dev"];
/// What every program writes to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm"];
/// What lies beside a folder of programs and belongs to them. Settings, which may hold secrets, do not.
const LIBRARIES: &[&str] = &["lib", "lib32", "lib64", "libexec", "opt", "Cellar", "pyvenv.cfg"];
/// Git does not work if it cannot read the settings that it sees.
const GIT_SETTINGS: &str = "GIT_CONFIG_GLOBAL";
/// So many refusals are named; the others are counted.
const MOST_NAMED: usize = 5;
/// So many complaints of a program are looked at.
const MOST_LINES: usize = 50;

/// A program, what came with it, and what it is held to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ProgramBox {
    /// What it may do beyond the least.
    pub permissions: PermissionsSpec,
    /// Whether it declares them: then it does not run where they cannot be held.
    pub declared: bool,
    pub program: PathBuf,
    /// The root of the project that it works in.
    pub project: PathBuf,
    /// Its script, if it has one.
    pub script: Option<PathBuf>,
    /// The copy of what was approved, if it runs from one.
    pub copy: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Where its user's programs are.
    pub search_path: OsString,
    /// Where its own temporary folder is made.
    pub temporary: PathBuf,
    /// What is noted of what it does.
    pub watch: BoxWatch,
}

impl ProgramBox {
    /// A program without files of its own, which is held to the least.
    pub fn new(program: impl Into<PathBuf>, project: impl Into<PathBuf>, context: &TrustContext<'_>) -> ProgramBox {
        ProgramBox {
            permissions: PermissionsSpec::default(),
            declared: false,
            program: program.into(),
            project: project.into(),
            script: None,
            copy: None,
            home: context.home.map(Path::to_owned),
            search_path: context.search_path().to_owned(),
            temporary: context.get("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from),
            watch: BoxWatch::Refused,
        }
    }

    /// The job in its box. Where this kernel has none, only a program that declares no permissions runs, as it is.
    pub fn hold(&self, mut job: Job) -> Result<Job, BoxError> {
        // Landlock knows only what is there. What is declared as a folder can be made beforehand; if not, it stays closed.
        for folder in self.permissions.write.iter().filter(|path| path.ends_with('/')) {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(self.place(folder));
        }
        let rules = self.rules();
        match made(&rules) {
            Ok(made) => {
                let reads_settings = || {
                    let file = self.home.as_ref().map(|home| home.join(".gitconfig"));
                    file.is_some_and(|file| rules.readable.iter().flatten().any(|path| file.starts_with(path)))
                };
                if !job.env.iter().any(|(name, _)| name == GIT_SETTINGS) && !reads_settings() {
                    job.env.push((GIT_SETTINGS.into(), "/dev/null".into()));
                }
                Ok(job.in_box(made))
            }
            // What fails for another reason, such as a full disk, opens nothing.
            Err(_) if !self.declared && ProcessBox::new(BoxMeans::Landlock, &BoxRules::default()).is_err() => Ok(job),
            Err(error) => Err(error),
        }
    }

    fn rules(&self) -> BoxRules {
        let mut readable = self.readable();
        readable.extend(self.permissions.read.iter().map(|path| self.place(path)));
        let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        writable.extend(self.permissions.write.iter().map(|path| self.place(path)));
        BoxRules {
            read_only: self.closed(),
            readable: Some(readable),
            writable: Some(writable),
            temporary: Some(self.temporary.clone()),
            network: if self.permissions.net { BoxNetwork::Open } else { BoxNetwork::Closed },
            watch: self.watch,
            ..BoxRules::default()
        }
    }

    /// What is protected within the places that can be written, and not named itself: that stays as it is.
    fn closed(&self) -> Vec<PathBuf> {
        let places: Vec<PathBuf> = self.permissions.write.iter().map(|path| self.place(path)).collect();
        let real: Vec<PathBuf> = places.iter().filter_map(|place| place.canonicalize().ok()).collect();
        if real.is_empty() {
            return Vec::new();
        }
        let table = protected(self.home.as_deref(), std::slice::from_ref(&self.project));
        let paths = table.into_iter().filter_map(|one| one.path.canonicalize().ok());
        let is_inside = |path: &PathBuf| !real.contains(path) && real.iter().any(|place| path.starts_with(place));
        paths.filter(is_inside).collect()
    }

    /// The place of a path that permissions name.
    fn place(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => self.project.join(path),
        }
    }

    /// What can be read without being named.
    fn readable(&self) -> Vec<PathBuf> {
        let real = self.program.canonicalize().ok();
        let programs: Vec<&Path> = [Some(self.program.as_path()), real.as_deref()].into_iter().flatten().collect();
        let beside = programs.iter().filter_map(|program| program.parent()).map(Path::to_owned);
        let folders = std::env::split_paths(&self.search_path).chain(beside);
        let folders = folders.filter(|folder| folder.is_absolute() && !is_of_system(folder));
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(folders.flat_map(|folder| programs_in(&folder)));
        // Its own files: where its script is, and the copy of all that was approved. Arguments may hold what an event says,
        // and open nothing.
        readable.extend(self.script.as_deref().and_then(Path::parent).map(Path::to_owned));
        // A folder around the home does not open the home.
        readable.retain(|folder| self.home.as_ref().is_none_or(|home| !home.starts_with(folder)));
        readable.extend(programs.into_iter().map(Path::to_owned));
        let own = [&self.script, &self.copy, &Some(self.project.clone())];
        readable.extend(own.into_iter().flatten().cloned());
        readable
    }

    /// What the box refused, and the line that would allow it; nothing if it refused nothing. Of files that could not be read
    /// only those are known that the program names in what it `said`.
    pub fn refusals(&self, accesses: &[WatchedAccess], said: &str) -> Option<String> {
        // Programs ask services of the machine for the names of users and the like, and do without them. One that complains of
        // a file means another refusal.
        let needs_service = said.lines().any(|line| complains(line) && !line.contains('/'));
        let is_needed = |seen: &&WatchedAccess| seen.access != BoxAccess::Service || needs_service;
        let mut accesses: Vec<WatchedAccess> = accesses.iter().filter(is_needed).cloned().collect();
        let unread =
            self.unread(said).into_iter().map(|path| WatchedAccess { access: BoxAccess::Read(path), refused: true });
        accesses.extend(unread.filter(|seen| !accesses.contains(seen)).collect::<Vec<_>>());
        let closed = self.closed();
        let mut wanted = self.permissions.clone();
        let mut names: Vec<String> = Vec::new();
        for seen in accesses.iter().filter(|seen| seen.refused) {
            let (name, list, path) = match &seen.access {
                BoxAccess::Write { path, .. } if closed.iter().any(|one| path.starts_with(one)) => {
                    names.push(format!("writing {}, which is protected", path.display()));
                    continue;
                }
                BoxAccess::Read(path) => (format!("reading {}", path.display()), &mut wanted.read, path),
                BoxAccess::Write { path, within } => (format!("writing {}", path.display()), &mut wanted.write, within),
                BoxAccess::Network | BoxAccess::Service | BoxAccess::Connect(_) => {
                    wanted.net = true;
                    let is_network = seen.access == BoxAccess::Network;
                    names.push(if is_network { "the network" } else { "a socket of this machine" }.to_owned());
                    continue;
                }
            };
            names.push(name);
            let spelled = self.spelled(path);
            if !list.contains(&spelled) {
                list.push(spelled);
            }
        }
        if names.is_empty() {
            return None;
        }
        let more = names.len().saturating_sub(MOST_NAMED);
        names.truncate(MOST_NAMED);
        names.extend((more > 0).then(|| format!("{more} more")));
        let line = if wanted == self.permissions { String::new() } else { format!("; {} allows it", wanted.line()) };
        Some(format!("its box refused {}{line}", names.join(", ")))
    }

    /// The files that a program says it could not read, as far as it could not.
    fn unread(&self, said: &str) -> Vec<PathBuf> {
        let is_between = |letter: char| letter.is_whitespace() || "'\"`,;:()[]<>".contains(letter);
        // A path with blanks stands between quotes.
        let quoted = |line: &str| line.split(['\'', '"', '`']).map(str::to_owned).collect::<Vec<_>>();
        let words = |line: &str| line.split(is_between).map(str::to_owned).collect::<Vec<_>>();
        let lines = said.lines().filter(|line| complains(line)).take(MOST_LINES);
        let paths = lines.flat_map(|line| [quoted(line), words(line)].concat());
        let real = paths.map(PathBuf::from).filter(|path| path.is_absolute());
        let real: Vec<PathBuf> = real.filter_map(|path| path.canonicalize().ok()).collect();
        if real.is_empty() {
            return Vec::new();
        }
        let rules = self.rules();
        let open: Vec<PathBuf> = [&rules.readable, &rules.writable].into_iter().flatten().flatten().cloned().collect();
        let open: Vec<PathBuf> = open.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut unread: Vec<PathBuf> = Vec::new();
        for path in real.into_iter().filter(|path| !open.iter().any(|root| path.starts_with(root))) {
            if !unread.contains(&path) {
                unread.push(path);
            }
        }
        unread
    }

    /// A path as permissions name it.
    fn spelled(&self, path: &Path) -> String {
        // What was seen has its links resolved.
        let below = |root: &Path| {
            let root = root.canonicalize().ok()?;
            path.strip_prefix(root).ok().map(|rest| rest.display().to_string())
        };
        match (below(&self.project), self.home.as_deref().and_then(below)) {
            (Some(rest), _) if rest.is_empty() => ".".to_owned(),
            (Some(rest), _) => rest,
            (None, Some(rest)) => format!("~/{rest}"),
            (None, None) => path.display().to_string(),
        }
    }
}

/// A box by these rules. Landlock alone cannot keep what lies below a folder that it allows: without mounts, nothing new
/// can be made beside it.
fn made(rules: &BoxRules) -> Result<ProcessBox, BoxError> {
    let by_mounts = || ProcessBox::new(BoxMeans::Namespaces, rules).ok();
    let mounted = if rules.read_only.is_empty() { None } else { by_mounts() };
    mounted.map_or_else(|| ProcessBox::new(BoxMeans::Landlock, rules), Ok)
}

/// Whether a line of a program says that something was refused.
fn complains(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["permission denied", "eacces", "eperm", "not permitted"].iter().any(|words| line.contains(words))
}

/// A folder of programs, and what belongs to these.
fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    match (folder.file_name().and_then(|name| name.to_str()), folder.parent()) {
        (Some("bin"), Some(prefix)) => found.extend(LIBRARIES.iter().map(|name| prefix.join(name))),
        // Those of version managers only look for the program, in the folder around theirs.
        (Some("shims"), Some(prefix)) => found.push(prefix.to_owned()),
        _ => {}
    }
    found
}

/// Whether a path belongs to the system: every program may read it.
pub fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}
