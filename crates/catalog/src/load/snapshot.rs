//! Stores the declarations of files between events in a form that is fast to read. So a process that starts for each
//! event need not parse all files again.
//!
//! A snapshot only holds the declarations of files: no digest, no approval, nothing from the environment or the command
//! line. It is only valid while all files it depends on are unchanged. The machine's policy is never stored, because
//! the user could then loosen it through the snapshot.
//!
//! The form: a line with the version, a line with lengths and a sum, the head, and then one section for each event and
//! matcher, of which only those are read that fit.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ollm_protocol::{DefaultBox, EventKind, Hook, HookSpec, Layer, Rules};
use ollm_store::raw::{open_own, write_unsynced};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use serde::{Deserialize, Serialize};

use super::stamp::{Stamp, StampSet, hold, is_absent};
use super::{Moment, ReadFiles, Snapshots, in_place, settings_off};
use crate::config::{Config, HookSettings};
use crate::extension::{KeptExtension, ReadExtensions, Terms};
use crate::place::Places;

/// Another version may write it differently.
const FIRST_LINE: &str = concat!("ollm snapshot 2, ", env!("CARGO_PKG_VERSION"), "\n");
/// The length of the second line: two numbers of sixteen digits, each with what follows it.
const SECOND_LINE: usize = 2 * 17;
/// Where the system says which program runs.
const PROGRAM: &str = "/proc/self/exe";
/// The largest snapshot, in bytes.
const LARGEST: usize = 8 << 20;
/// So much is read at first; the head of most is in it. Each further page costs a fault.
const FIRST_READ: usize = 4 << 10;
/// The most snapshots that are kept.
const MOST: usize = 64;

/// What is said of all sections.
#[derive(Serialize, Deserialize)]
struct Head {
    /// How long the whole file is.
    length: u64,
    whose: SnapshotOwner,
    stamps: Vec<(PathBuf, Stamp)>,
    /// What the files say as configuration.
    config: Config,
    basis: Basis,
    extensions: Vec<KeptExtension>,
    sections: Vec<Section>,
}

/// The owner of the files, and the program that read them: another build may understand the same files differently.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
struct SnapshotOwner {
    program: Option<Stamp>,
    home: PathBuf,
    user_home: Option<PathBuf>,
    projects: Vec<PathBuf>,
}

/// The values that hooks depend on, apart from their files.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct Basis {
    whitelist: Vec<String>,
    timeout: Option<Duration>,
    workspace_timeout: Option<Duration>,
    default_box: DefaultBox,
    settings_off: bool,
    /// The agents whose hooks are read where they are, the folders that their variables name, and their files.
    read: Vec<String>,
    moved: Vec<Option<String>>,
    in_place: Vec<PathBuf>,
    /// The folders in which extensions are looked for; none where no extension is loaded.
    extensions: Option<Vec<(PathBuf, Layer)>>,
}

/// The hooks for one event with one matcher.
#[derive(Serialize, Deserialize)]
struct Section {
    event: String,
    matcher: String,
    start: u64,
    length: usize,
    sum: u64,
}

/// A hook, and its place among all.
#[derive(Serialize, Deserialize)]
struct KeptHook {
    place: usize,
    /// The place of its extension among all.
    extension: Option<usize>,
    spec: HookSpec,
    off: Option<String>,
}

impl SnapshotOwner {
    fn of(places: &Places) -> SnapshotOwner {
        let projects = places.projects().map(Path::to_owned).collect();
        let program = fs::metadata(PROGRAM).ok().map(|meta| Stamp::of_state(&meta));
        SnapshotOwner { program, home: places.home.clone(), user_home: places.user_home.clone(), projects }
    }

    fn file(&self, folder: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        folder.join(format!("{:016x}", hasher.finish()))
    }
}

impl Basis {
    pub(super) fn new(
        settings: &HookSettings,
        config: &Config,
        places: &Places,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Basis {
        Basis {
            whitelist: settings.whitelist.clone(),
            timeout: settings.timeout,
            workspace_timeout: settings.workspace_timeout,
            default_box: settings.default_box,
            settings_off: settings_off(env),
            read: settings.read.clone(),
            moved: in_place::agents(settings).map(|agent| agent.home.variable.and_then(env)).collect(),
            in_place: in_place::files_in_place(settings, places, env),
            extensions: config.extension_folders(places),
        }
    }
}

/// A snapshot that counts, as long as its hooks are built with the same.
pub(super) struct Snapshot {
    file: File,
    head: Head,
}

impl Snapshot {
    /// Whether there is a snapshot of these places, valid or not.
    pub(super) fn is_kept(folder: &Path, places: &Places) -> bool {
        !is_governed(places) && SnapshotOwner::of(places).file(folder).exists()
    }

    /// The snapshot of these places, if there is one and nothing has changed.
    pub(super) fn open(folder: &Path, places: &Places) -> Option<Snapshot> {
        if is_governed(places) {
            return None;
        }
        let whose = SnapshotOwner::of(places);
        let (file, meta) = open_own(&whose.file(folder)).filter(|(_, meta)| meta.len() <= LARGEST as u64)?;
        let mut bytes = read_at(&file, 0, usize::try_from(meta.len()).ok()?.min(FIRST_READ))?;
        let rest = bytes.strip_prefix(FIRST_LINE.as_bytes())?;
        let numbers = std::str::from_utf8(rest.get(..SECOND_LINE)?).ok()?;
        let (length, sum) = numbers.trim_end().split_once(' ')?;
        let length = usize::from_str_radix(length, 16).ok().filter(|length| *length <= LARGEST)?;
        let sum = u64::from_str_radix(sum, 16).ok()?;
        let start = FIRST_LINE.len() + SECOND_LINE;
        if let Some(missing) = (start + length).checked_sub(bytes.len()).filter(|missing| *missing > 0) {
            let read = bytes.len() as u64;
            bytes.extend(read_at(&file, read, missing)?);
        }
        let head = bytes.get(start..start + length)?;
        if sum_of(head) != sum {
            return None;
        }
        let head: Head = serde_json::from_slice(head).ok()?;
        let holds = head.length == meta.len() && head.whose == whose && hold(&head.stamps);
        holds.then_some(Snapshot { file, head })
    }

    /// What the files say as configuration.
    pub(super) fn config(&self) -> &Config {
        &self.head.config
    }

    /// The hooks that may fit, and the extensions with theirs, where they are built with the same as then.
    pub(super) fn declared(
        self,
        moment: &Moment,
        basis: &Basis,
        now: SystemTime,
    ) -> Option<(Vec<Hook>, ReadExtensions)> {
        if self.head.basis != *basis {
            return None;
        }
        let mut found = Vec::new();
        for section in self.head.sections.iter().filter(|section| moment.may_fit(&section.event, &section.matcher)) {
            let bytes = read_at(&self.file, section.start, section.length)?;
            if sum_of(&bytes) != section.sum {
                return None;
            }
            found.extend(serde_json::from_slice::<Vec<KeptHook>>(&bytes).ok()?);
        }
        found.sort_by_key(|kept| kept.place);
        let whitelist = basis.whitelist.clone();
        let user = Rules { whitelist, timeout: basis.timeout, default_box: basis.default_box };
        let terms = Terms::new(user, basis.workspace_timeout);
        let (mut hooks, mut of_extensions) = (Vec::new(), Vec::new());
        for KeptHook { extension, spec, off, .. } in found {
            let rules = terms.rules(spec.layer);
            let hook = Hook { off, ..Hook::new(spec, rules).ok()? };
            match extension {
                Some(extension) => of_extensions.push((extension, hook)),
                None => hooks.push(hook),
            }
        }
        Some((hooks, ReadExtensions::recalled(self.head.extensions, of_extensions, terms, now)?))
    }
}

/// What is to be kept.
pub(super) struct Findings<'a> {
    pub(super) files: ReadFiles,
    pub(super) hooks: &'a [Hook],
    pub(super) extensions: &'a ReadExtensions,
    /// What was looked at for the extensions.
    pub(super) looked: StampSet,
}

/// Keeps what was found, if that can be relied on the next time. Otherwise the next process reads the files again.
pub(super) fn keep(Snapshots { folder, now }: Snapshots<'_>, places: &Places, findings: Findings<'_>) {
    let Findings { files: ReadFiles { mut looked, config, basis }, hooks, extensions, looked: others } = findings;
    looked.extend(others.stamps());
    let Some(stamps) = looked.settled(now).filter(|stamps| !is_governed(places) && hold(stamps)) else { return };
    // A folder behind a link is not ours to change.
    if folder.is_symlink() {
        return;
    }
    let mut sections: BTreeMap<(EventKind, String), Vec<KeptHook>> = BTreeMap::new();
    let of_extensions = extensions.kept_hooks().map(|(extension, hook)| (Some(extension), hook));
    let all = hooks.iter().map(|hook| (None, hook)).chain(of_extensions);
    for (place, (extension, hook)) in all.enumerate() {
        for event in &hook.events {
            let kept = KeptHook { place, extension, spec: hook.spec.clone(), off: hook.off.clone() };
            sections.entry((*event, hook.matcher.text())).or_default().push(kept);
        }
    }
    let whose = SnapshotOwner::of(places);
    let file = whose.file(folder);
    let head = Head { length: 0, whose, stamps, config, basis, extensions: extensions.kept(), sections: Vec::new() };
    let Some(bytes) = written(head, sections) else { return };
    if write_unsynced(&file, &bytes).is_ok() {
        drop_oldest(folder);
    }
}

/// The bytes of a snapshot; nothing where something cannot be written down, or is too much.
fn written(mut head: Head, sections: BTreeMap<(EventKind, String), Vec<KeptHook>>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    for ((event, matcher), hooks) in sections {
        let bytes = serde_json::to_vec(&hooks).ok()?;
        let (start, length, sum) = (body.len() as u64, bytes.len(), sum_of(&bytes));
        head.sections.push(Section { event: event.name().to_owned(), matcher, start, length, sum });
        body.extend(bytes);
        if body.len() > LARGEST {
            return None;
        }
    }
    // Numbers in the head say where the sections are, and how long the head is depends on the numbers: it is filled up.
    let room = serde_json::to_vec(&head).ok()?.len() + 20 * (head.sections.len() + 1);
    let start = FIRST_LINE.len() + SECOND_LINE + room;
    for section in &mut head.sections {
        section.start += start as u64;
    }
    head.length = (start + body.len()) as u64;
    let mut text = serde_json::to_vec(&head).ok()?;
    text.resize(room, b' ');
    let mut bytes = format!("{FIRST_LINE}{:016x} {:016x}\n", room, sum_of(&text)).into_bytes();
    bytes.extend(text);
    bytes.extend(body);
    (bytes.len() <= LARGEST).then_some(bytes)
}

/// Whether the machine has a policy.
fn is_governed(places: &Places) -> bool {
    let is_there = |path: &Path| fs::symlink_metadata(path).map_or_else(|error| !is_absent(&error), |_| true);
    places.policy.as_ref().is_some_and(|policy| is_there(&policy.path) || is_there(&policy.folder().join("hooks")))
}

/// Removes all snapshots, so that no removed data remains in one.
pub fn drop_snapshots(folder: &Path) {
    for entry in kept(folder) {
        // Another process may have been faster.
        let _ = fs::remove_file(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

/// The snapshots in a folder, and nothing else that is there.
fn kept(folder: &Path) -> impl Iterator<Item = DirEntry> {
    let folder = Some(folder).filter(|folder| !folder.is_symlink());
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.filter(|entry| {
        let name = entry.file_name();
        name.len() == 16 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit)
    })
}

/// If there are too many, removes those that were not written for the longest time.
fn drop_oldest(folder: &Path) {
    let age = |entry: DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut files: Vec<(SystemTime, PathBuf)> = kept(folder).filter_map(age).collect();
    files.sort_unstable();
    for (_, path) in files.iter().take(files.len().saturating_sub(MOST)) {
        // Another process may have been faster.
        let _ = fs::remove_file(path);
    }
}

/// Bytes of a file. The memory for them is not filled with zeros first.
fn read_at(file: &File, start: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(Some(length).filter(|length| *length <= LARGEST)?);
    while bytes.len() < length {
        let at = start + bytes.len() as u64;
        match pread(file, spare_capacity(&mut bytes), at) {
            Ok(0) => return None,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    // Memory may have room for more than was asked for.
    bytes.truncate(length);
    Some(bytes)
}

fn sum_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
