//! The second guard: writes to the files that decide which guards run.

mod own;
mod repository;
mod roots;
mod search;
pub(crate) mod tool;
mod watch;

use std::{
    cell::LazyCell,
    collections::BTreeSet,
    ffi::OsStr,
    ops::Deref,
    path::{Path, PathBuf},
};

pub use ollm_protocol::protected::{From, Lock, PROTECTED, Protected, Row, moved};
use ollm_protocol::protected::{of_repository, protected};
use ollm_protocol::{Event, Verdict};

use crate::{
    call::{self, Script},
    destructive::{Finding, keeps_content, strongest},
    field::{Field, ShellPlace},
    loose::loose,
    path,
    program::Files,
    text,
    walk::{Run, ScriptAction},
    writes::{self, Touch},
};
use watch::{Hit, Reach, Watch};

/// The places that are to be protected, and where relative paths begin.
///
/// ```
/// use ollm_guard::{ProtectedPlaces, tampering};
/// use ollm_protocol::{Event, EventKind, Flow};
/// use serde_json::json;
/// use std::path::Path;
///
/// let home = Path::new("/home/ada");
/// let shelter = ProtectedPlaces {
///     ollm_home: home.join(".ollm"),
///     projects: vec![home.join("project")],
///     cwd: home.join("project"),
///     home: Some(home.to_owned()),
///     ..ProtectedPlaces::default()
/// };
/// let data = [("tool_name", json!("write_file")), ("args", json!({ "path": "../.ollm/config.yaml" }))];
/// assert_eq!(tampering(&Event::unchecked(EventKind::BeforeTool, data), &shelter).flow, Flow::Block);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProtectedPlaces {
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// Where our own files are.
    pub ollm_home: PathBuf,
    /// The roots of the projects around; without one, the folder of the event counts.
    pub projects: Vec<PathBuf>,
    /// Our own program.
    pub executable: Option<PathBuf>,
    /// The folder of the machine's policy.
    pub policy: Option<PathBuf>,
    /// What is protected in folders that variables name ([`moved`]).
    pub moved: Vec<Protected>,
    /// The folder that counts where an event names none.
    pub cwd: PathBuf,
}

impl ProtectedPlaces {
    /// Everything that is protected from a call in the folder that counts where an event names none.
    pub fn protected(&self) -> Vec<Protected> {
        let (home, projects, single) = self.roots(&self.cwd);
        let lock = |path: &Path| match path.file_name().and_then(|name| name.to_str()) {
            Some("config" | "config.worktree") => Lock::Compared,
            _ => Lock::Locked,
        };
        let elsewhere: Vec<PathBuf> = projects.iter().flat_map(|project| repository::elsewhere(project)).collect();
        let single = single.into_iter().map(|path| {
            let lock = if elsewhere.contains(&path) { lock(&path) } else { Lock::Locked };
            Protected { path, from: From::Everybody, lock }
        });
        // `git` looks for a repository in every folder around.
        let around = projects.iter().chain(&home).flat_map(|folder| folder.ancestors());
        let around: BTreeSet<&Path> = around.filter(|folder| !projects.iter().any(|known| known == folder)).collect();
        let table = protected(home.as_deref(), &projects).into_iter().chain(around.into_iter().flat_map(of_repository));
        table.chain(self.moved.iter().cloned()).chain(single).collect()
    }

    /// Whether a field may name our own program, by its last part alone; of all files in a folder, by the folder.
    fn may_be_program(&self, field: &Field, place: &ShellPlace) -> bool {
        let text = field.tail.as_deref().unwrap_or(&field.text);
        // Most words end otherwise, in any folder.
        let ends = |name: &[u8]| {
            let start = text.len().checked_sub(name.len());
            start.and_then(|start| text.as_bytes().get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(name))
        };
        let last = self.executable.as_deref().and_then(|own| own.as_os_str().as_encoded_bytes().last());
        let may_end = ends(b"ollm") || ends(b".exe") || last.is_some_and(|last| ends(&[*last]));
        if !field.glob && text.is_ascii() && !may_end {
            return false;
        }
        let own = self.executable.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
        let mut names = std::iter::once("ollm").chain(own);
        let name = path::base_name(text);
        if field.glob && name == "*" && !field.open() {
            let folder = text.strip_suffix('*').unwrap_or(text);
            let own = self.executable.as_deref().and_then(Path::parent);
            let has_programs = |folder: PathBuf| folder.ends_with("bin") || own == Some(&folder);
            return place.folders.iter().any(|here| has_programs(path::join(here, folder)));
        }
        names.any(|own| if field.glob { path::fits(&name, own) } else { own.eq_ignore_ascii_case(&name) })
    }

    /// Everything that is protected from a call in this folder.
    fn watch(&self, here: &Path) -> Watch {
        let (home, projects, single) = self.roots(here);
        Watch::new(home, projects, single).with_program(self.executable.as_deref())
    }

    /// The home, the projects, and the files that are protected by themselves, for a call in this folder.
    fn roots(&self, here: &Path) -> (Option<PathBuf>, Vec<PathBuf>, Vec<PathBuf>) {
        let mut projects: Vec<&Path> = self.projects.iter().map(PathBuf::as_path).collect();
        // Agents look for their files where they work, too; a home is none of their projects.
        if projects.is_empty() || !projects.contains(&here) && self.home.as_deref() != Some(here) {
            projects.push(here);
        }
        // One that was built in the project is built anew all the time.
        let program = self.executable.iter().filter(|program| projects.iter().all(|root| !program.starts_with(root)));
        let single = std::iter::once(&self.ollm_home).chain(program).chain(&self.policy).cloned();
        let single = single.chain(projects.iter().flat_map(|project| repository::elsewhere(project)));
        let moved = self.moved.iter().filter(|one| one.from == From::Everybody).map(|one| one.path.clone());
        let single = single.chain(moved);
        let single = single.map(|path| path::tidy(&path)).collect();
        let projects = projects.into_iter().map(path::tidy).collect();
        (self.home.as_deref().map(path::tidy), projects, single)
    }
}

/// Refuses tool calls that would change a protected file or switch a guard off.
pub fn tampering(event: &Event, shelter: &ProtectedPlaces) -> Verdict {
    let here = call::here(event, &shelter.cwd);
    judged(event, &call::scripts(event, &here, shelter.home.as_deref()), &here, shelter)
}

/// This guard's verdict on the effects of a call.
pub(crate) fn judged(event: &Event, scripts: &[Script], here: &Path, shelter: &ProtectedPlaces) -> Verdict {
    let (effects, home) = (call::effects(event), shelter.home.as_deref());
    let place = ShellPlace::new(vec![here.to_owned()], home);
    // The list of what is protected is only made ready once something is written at all.
    let watch = LazyCell::new(|| shelter.watch(here));
    let by_tool = tool::written(&effects, home);
    let by_tool = by_tool.iter().filter_map(|file| {
        let personal = || watch.personal(&file.field, &place, file.reach).map(|hit| finding(hit, &file.field));
        found(&watch, &file.field, &place, file.reach).or_else(personal)
    });
    // A tool's name that suggests reading is not a declaration.
    let named = tool::named(event, &effects, home);
    let by_name = named.iter().filter_map(|file| found(&watch, file, &place, Reach::File).map(softened));
    let by_shell = scripts.iter().flat_map(|script| {
        let findings = script.deeds.iter().flat_map(|deed| judge(deed, &place, &watch, shelter));
        findings.filter_map(|finding| script.weigh(finding)).collect::<Vec<_>>()
    });
    let loose = loose(event);
    let by_text = loose.paths().filter_map(|text| {
        let field = Field::literal(path::spelled(text, home));
        found(&watch, &field, &place, Reach::File).map(softened)
    });
    strongest(by_tool.chain(by_name).chain(by_shell).chain(by_text).chain(unclear(event, scripts, &watch)))
}

/// A command that cannot be followed, or writes to a place that is not written out, and names something of ours.
fn unclear(event: &Event, scripts: &[Script], watch: &impl Deref<Target = Watch>) -> Option<Finding> {
    let reason = scripts.iter().flat_map(|script| &script.deeds).find_map(open_deed)?;
    let text = event.data.get("args")?.to_string();
    let lower = text.to_lowercase();
    let named = own::PROCESSES.iter().any(|name| lower.contains(name)) || watch.mentioned(&text).is_some();
    named.then(|| Finding::ask(format!("the command names what is protected, and {reason}")))
}

/// Why the changes of a deed are unknown.
fn open_deed(deed: &ScriptAction) -> Option<String> {
    let written =
        |target: &Field| format!("writes to a place that is not written out: {}", text::excerpt(&target.shown()));
    match deed {
        ScriptAction::Unclear(reason) => Some(reason.clone()),
        ScriptAction::Guess(guess) if matches!(**guess, ScriptAction::Unclear(_)) => open_deed(guess),
        ScriptAction::Write { target, .. } if target.open() => Some(written(target)),
        ScriptAction::Run(run) if run.name == "kill" && run.args.iter().any(Field::open) => {
            Some("ends a process that is not written out".to_owned())
        }
        ScriptAction::Run(run) if run.args.iter().any(Field::open) => {
            run.touches().iter().find_map(|touch| match touch {
                Touch::Content(field)
                | Touch::Appended(field)
                | Touch::Whole(field)
                | Touch::Becomes(field)
                | Touch::Merge(field)
                    if field.open() =>
                {
                    Some(written(field))
                }
                _ => None,
            })
        }
        _ => None,
    }
}

fn judge(
    deed: &ScriptAction,
    here: &ShellPlace,
    watch: &impl Deref<Target = Watch>,
    shelter: &ProtectedPlaces,
) -> Vec<Finding> {
    let is_ours =
        |field: &Field, place: &ShellPlace| shelter.may_be_program(field, place) && watch.is_program(field, place);
    match deed {
        ScriptAction::Unclear(_) | ScriptAction::Bomb { .. } => Vec::new(),
        ScriptAction::Read { file, place } => is_ours(file, place).then(|| own::read(file)).into_iter().collect(),
        ScriptAction::Write { target, place, appends } => {
            let personal = || watch.replaced(target, place, Reach::File).filter(|_| !appends);
            let found = found(watch, target, place, Reach::File);
            found.or_else(|| personal().map(|hit| finding(hit, target))).into_iter().collect()
        }
        ScriptAction::Run(run) => {
            let by_file = run.touches().iter().filter_map(|touch| by_touch(touch, run, watch));
            let by_name = own::command(run).or_else(|| own::copy(run, |field| is_ours(field, &run.place)));
            by_file.chain(by_name).chain(where_it_runs(run, here, watch)).collect()
        }
        ScriptAction::Guess(deed) => judge(deed, here, watch, shelter).into_iter().map(softened).collect(),
    }
}

/// A program of which nothing is known may change the folder where it runs: many unpack there.
fn where_it_runs(run: &Run, here: &ShellPlace, watch: &impl Deref<Target = Watch>) -> Option<Finding> {
    // Where no folder is hidden, none of an agent is.
    let apart = run.place.has_folders_of(here)
        && run.place.unwritten.is_empty()
        && !run.place.folders.iter().any(|folder| path::has_hidden_part(folder));
    if apart || run.program.files == Files::Known || run.place.elsewhere || writes::only_reads(run) {
        return None;
    }
    watch.works_inside(&run.place).map(|path| {
        let command = run.shown();
        Finding::ask(format!("it runs beside or inside the protected {}, and may change it: {command}", shown(&path)))
    })
}

fn by_touch(touch: &Touch, run: &Run, watch: &impl Deref<Target = Watch>) -> Option<Finding> {
    let replaced = |field: &Field, reach| {
        let hit = watch.replaced(field, &run.place, reach).filter(|_| !keeps_content(&run.name));
        hit.map(|hit| finding(hit, field))
    };
    match touch {
        Touch::Appended(field) => found(watch, field, &run.place, Reach::File),
        Touch::Content(field) => found(watch, field, &run.place, Reach::File).or_else(|| replaced(field, Reach::File)),
        Touch::Whole(field) => found(watch, field, &run.place, Reach::Tree).or_else(|| replaced(field, Reach::Tree)),
        Touch::Becomes(field) => {
            found(watch, field, &run.place, Reach::Replacement).or_else(|| replaced(field, Reach::File))
        }
        Touch::Unpacked(_) if watch.is_project(&run.place) && watch.works_inside(&run.place).is_none() => None,
        Touch::Merge(field) | Touch::Unpacked(field) => {
            let hit = watch.check(field, &run.place, Reach::Tree).filter(|hit| !watch.is_absent_program(hit));
            hit.map(|hit| softened(finding(hit, field)))
        }
        Touch::Alias(field) => found(watch, field, &run.place, Reach::Tree).map(softened),
        Touch::Perhaps(field) => found(watch, field, &run.place, Reach::File)
            .or_else(|| watch.agents_folder(field, &run.place).map(|hit| finding(hit, field)))
            .map(softened),
        Touch::Found(search) => {
            let hit = watch.found(search, &run.place).or_else(|| watch.agents_folder(&search.root, &run.place));
            hit.map(|hit| finding(hit, &search.root))
        }
        Touch::Project(field) => watch.new_project(field, &run.place).then(|| {
            let written = text::excerpt(&field.shown());
            Finding::ask(format!("{written} becomes a project of its own, where the hooks of this one may not count"))
        }),
        Touch::Code(code) => watch.mentioned(code).map(|path| {
            Finding::ask(format!("{} runs code that names the protected {}", text::excerpt(&run.name), shown(&path)))
        }),
    }
}

fn softened(finding: Finding) -> Finding {
    Finding::ask(finding.reason)
}

fn found(watch: &impl Deref<Target = Watch>, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Finding> {
    if matches!(field.known(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")) {
        return None;
    }
    watch.check(field, place, reach).map(|hit| finding(hit, field))
}

fn finding(hit: Hit, field: &Field) -> Finding {
    let written = text::excerpt(&field.shown());
    match hit {
        Hit::Sure(path) => Finding::block(format!("{written} is or holds the protected {}", shown(&path))),
        Hit::Perhaps(path) => Finding::ask(format!("{written} may be the protected {}", shown(&path))),
    }
}

fn shown(path: &Path) -> String {
    text::excerpt(&path.to_string_lossy())
}
