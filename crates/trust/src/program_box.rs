//! Makes the box of a program from a project or an extension: what it may read, write and reach.
//!
//! The program can read system folders, programs on the search path with their libraries, its own files, and the
//! project. It can write a temporary folder of its own. Its permissions name everything else. Protected paths stay
//! protected within that.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ollm_process::{BoxAccess, BoxError, BoxMeans, BoxNetwork, BoxRules, BoxWatch, Job, ProcessBox, WatchedAccess};
use ollm_protocol::PermissionsSpec;
use ollm_protocol::protected::protected;

use crate::TrustContext;
use crate::declared_path::{DeclaredPath, PathRoots, resolved};

/// Folders that every program needs to read.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/proc", "/sys", "/dev"];
/// Devices that every program may write to.
pub const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
/// Entries beside a folder of programs that belong to the programs. Settings are not among them, because they may hold
/// secrets.
const LIBRARIES: &[&str] = &["lib", "lib32", "lib64", "libexec", "opt", "Cellar", "pyvenv.cfg"];
/// Git fails if it cannot read the settings file that this variable names.
const GIT_SETTINGS: &str = "GIT_CONFIG_GLOBAL";
/// The most refusals that are named; further ones are counted.
const MOST_NAMED: usize = 5;
/// The most error lines of a program that are searched for paths.
const MOST_LINES: usize = 50;

/// A program with its files and permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ProgramBox {
    /// The permissions that it has in addition to the minimum.
    pub permissions: PermissionsSpec,
    /// Whether it declares permissions. If so, it does not run where they cannot be enforced.
    pub declared: bool,
    pub program: PathBuf,
    /// The root of the project that it works in.
    pub project: PathBuf,
    /// Its script, if it has one.
    pub script: Option<PathBuf>,
    /// The copy of what was approved, if it runs from one.
    pub copy: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// The folders of the user's programs.
    pub search_path: OsString,
    /// The folder in which its temporary folder is made.
    pub temporary: PathBuf,
    /// Which accesses are noted.
    pub watch: BoxWatch,
}

impl ProgramBox {
    /// A program without files of its own, with the minimum of permissions.
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

    /// Puts the job into its box. On a kernel without boxes, only a program that declares no permissions runs, without
    /// a box.
    pub fn hold(&self, mut job: Job) -> Result<Job, BoxError> {
        // Landlock can only allow existing paths. A declared folder is created beforehand if possible; otherwise it
        // stays closed.
        for path in self.permissions.read.iter().chain(&self.permissions.write) {
            if let Err(real) = DeclaredPath::new(path, self.roots()) {
                let real = real.display();
                let reason =
                    format!("the path `{path}` of its permissions leads to {real} by a link; declare that path itself");
                return Err(BoxError { means: BoxMeans::Landlock, reason });
            }
        }
        for folder in self.permissions.write.iter().filter(|path| path.ends_with('/')) {
            for declared in self.places(std::slice::from_ref(folder)) {
                let _ = DirBuilder::new().recursive(true).mode(0o700).create(declared.real);
            }
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
            // Other errors, such as a full disk, must not let the program run without a box.
            Err(_) if !self.declared && ProcessBox::new(BoxMeans::Landlock, &BoxRules::default()).is_err() => Ok(job),
            Err(error) => Err(error),
        }
    }

    fn rules(&self) -> BoxRules {
        let mut readable = self.readable();
        readable.extend(self.places(&self.permissions.read).into_iter().map(|place| place.real));
        let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        writable.extend(self.places(&self.permissions.write).into_iter().map(|place| place.real));
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

    /// The protected paths within writable places that the permissions do not name themselves. They stay read-only.
    fn closed(&self) -> Vec<PathBuf> {
        let places = self.places(&self.permissions.write);
        if places.is_empty() {
            return Vec::new();
        }
        let is_closed = |path: &PathBuf| {
            let is_around = |place: &DeclaredPath| path.starts_with(&place.real);
            // A link that leads into the path does not name the path.
            let leads_in = |place: &DeclaredPath| place.by_link && place.real.starts_with(path);
            let is_named = places.iter().any(|place| !place.by_link && place.real == *path);
            !is_named && places.iter().any(|place| is_around(place) || leads_in(place))
        };
        self.protected().into_iter().filter(is_closed).filter(|path| path.exists()).collect()
    }

    /// The protected paths, with links resolved.
    fn protected(&self) -> Vec<PathBuf> {
        let table = protected(self.home.as_deref(), std::slice::from_ref(&self.project));
        table.into_iter().map(|one| resolved(&one.path)).collect()
    }

    /// The targets of these paths of permissions. A path that leads elsewhere allows nothing.
    fn places(&self, paths: &[String]) -> Vec<DeclaredPath> {
        paths.iter().filter_map(|path| DeclaredPath::new(path, self.roots()).ok()).collect()
    }

    fn roots(&self) -> PathRoots<'_> {
        PathRoots { project: &self.project, home: self.home.as_deref() }
    }

    /// The paths that the program can read without declaring them.
    fn readable(&self) -> Vec<PathBuf> {
        let real = self.program.canonicalize().ok();
        let programs: Vec<&Path> = [Some(self.program.as_path()), real.as_deref()].into_iter().flatten().collect();
        let beside = programs.iter().filter_map(|program| program.parent()).map(Path::to_owned);
        let folders = std::env::split_paths(&self.search_path).chain(beside);
        let folders = folders.filter(|folder| folder.is_absolute() && !is_of_system(folder));
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(folders.flat_map(|folder| programs_in(&folder)));
        // The program's own files: the folder of its script, and the copy of all approved content. Arguments may hold
        // values of an event, so they allow nothing.
        readable.extend(self.script.as_deref().and_then(Path::parent).map(Path::to_owned));
        // A folder that contains the home does not open the home.
        readable.retain(|folder| self.home.as_ref().is_none_or(|home| !home.starts_with(folder)));
        readable.extend(programs.into_iter().map(Path::to_owned));
        let own = [&self.script, &self.copy, &Some(self.project.clone())];
        readable.extend(own.into_iter().flatten().cloned());
        readable
    }

    /// The refusals of the box, and the permissions line that would allow them; `None` without refusals. The box does
    /// not see which reads fail. So refused reads are only known if the program's output `said` names the file.
    pub fn refusals(&self, accesses: &[WatchedAccess], said: &str) -> Option<String> {
        // Programs ask local services for user names and the like, and work without them. If a program complains about
        // a file, the cause is another refusal.
        let needs_service = said.lines().any(|line| complains(line) && !line.contains('/'));
        let is_needed = |seen: &&WatchedAccess| seen.access != BoxAccess::Service || needs_service;
        let mut accesses: Vec<WatchedAccess> = accesses.iter().filter(is_needed).cloned().collect();
        let unread =
            self.unread(said).into_iter().map(|path| WatchedAccess { access: BoxAccess::Read(path), refused: true });
        accesses.extend(unread.filter(|seen| !accesses.contains(seen)).collect::<Vec<_>>());
        let closed = self.protected();
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
            if !self.is_private(path) && !list.contains(&spelled) {
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

    /// Whether allowing this path would open too much: the home, a folder around it, or keys.
    fn is_private(&self, path: &Path) -> bool {
        let Some(home) = self.home.as_ref().and_then(|home| home.canonicalize().ok()) else { return false };
        home.starts_with(path) || path.starts_with(home.join(".ssh"))
    }

    /// The files that a program's output says it could not read, and that it really could not.
    fn unread(&self, said: &str) -> Vec<PathBuf> {
        let is_between = |letter: char| letter.is_whitespace() || "'\"`,;:()[]<>".contains(letter);
        // A path with spaces stands between quotes.
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

    /// A path in the notation of permissions.
    fn spelled(&self, path: &Path) -> String {
        // Noted paths have their links resolved.
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

/// Makes a box by these rules. Landlock alone cannot protect entries of an allowed folder: without mounts, nothing new
/// can be created in that folder.
fn made(rules: &BoxRules) -> Result<ProcessBox, BoxError> {
    let by_mounts = || ProcessBox::new(BoxMeans::Namespaces, rules).ok();
    let mounted = if rules.read_only.is_empty() { None } else { by_mounts() };
    mounted.map_or_else(|| ProcessBox::new(BoxMeans::Landlock, rules), Ok)
}

/// Whether an output line says that something was refused.
fn complains(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["permission denied", "eacces", "eperm", "not permitted"].iter().any(|words| line.contains(words))
}

/// A folder of programs, and the folders that belong to its programs.
fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    match (folder.file_name().and_then(|name| name.to_str()), folder.parent()) {
        (Some("bin"), Some(prefix)) => found.extend(LIBRARIES.iter().map(|name| prefix.join(name))),
        // The shims of version managers look for the program in the folder around their own.
        (Some("shims"), Some(prefix)) => found.push(prefix.to_owned()),
        _ => {}
    }
    found
}

/// Whether a path belongs to the system, so that every program may read it.
pub fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}
