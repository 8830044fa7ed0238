//! `ollm hook new`: a hook that works, to be changed into the one that is wanted.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use ollm_app::{World, refuse_agents};
use ollm_protocol::dialect::{OLLM, by_spelling, event_named};
use serde_json::{Map, Value, json};

use crate::arguments::hook::NewArguments;
use crate::error::{Failure, Kind, OK};
use crate::output::Output;
use crate::scaffold::{self, NewFile};

pub(super) fn run(arguments: &NewArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let NewArguments { name, purpose, language, event, project } = arguments;
    if !scaffold::is_plain(name) {
        return Err(Failure::usage(format!("`{name}` cannot be the name of a hook"))
            .hint("a name has letters, digits, `-` and `_`, and begins with a letter or digit"));
    }
    if !project {
        // What stands in the user's own folder needs no approval.
        refuse_agents(world, "declare hooks of the user")?;
    }
    let folder = folder(*project, world)?;
    let event = event.as_deref().unwrap_or_else(|| purpose.event());
    let named = event_named(event)?;
    let mut entry = scaffold::entry(name, *purpose, *language, "");
    // Only events about tools have tools to choose among.
    let about_tools = named.kinds.iter().all(|kind| kind.subject_field() == Some("tool_name"));
    if let Some(map) = entry.as_object_mut().filter(|_| !about_tools) {
        map.shift_remove("matcher");
    }
    // The spelling of an event chooses the dialect; the scripts speak this one.
    if let Some(map) = entry.as_object_mut().filter(|_| by_spelling(event).name() != OLLM.name()) {
        map.insert("dialect".to_owned(), OLLM.name().into());
    }
    let declared = Map::from_iter([(event.to_owned(), json!([entry]))]);
    let declaration = NewFile { path: format!("{name}.json"), content: format!("{:#}\n", json!({"hooks": declared})) };
    // The declaration comes last: what it names is there by then.
    let mut files = scaffold::files(name, *purpose, *language);
    for case in files.iter_mut().filter(|file| file.path.starts_with("cases/")) {
        case.content = with_event(&case.content, event);
    }
    files.extend(sample(name, &files));
    files.push(declaration);
    write(&folder, &files)?;
    for file in &files {
        output.line(&folder.join(&file.path).display().to_string())?;
    }
    let shown = ollm_shell::shell_word(&folder.display().to_string()).into_owned();
    let trust = project.then(|| format!("ollm hook trust {name}"));
    let next = [language.build(&shown, name), trust, Some(format!("ollm hook test {name}"))];
    let next: Vec<String> = next.into_iter().flatten().collect();
    output.tell(&format!("try it: {}", next.join(" && ")));
    Ok(OK)
}

/// Where hooks of the user, or of the project, are declared.
pub(super) fn folder(project: bool, world: &World) -> Result<std::path::PathBuf, Failure> {
    match (project, &world.places.project) {
        (false, _) => Ok(world.places.home.join("hooks")),
        (true, Some(project)) => Ok(project.join(".ollm/hooks")),
        (true, None) => Err(Failure::usage("--project: this folder is in no project")
            .hint("a project is a folder with `.git` or `.ollm`; `mkdir .ollm` makes this one")),
    }
}

/// A case of the purpose, for another event than its usual one.
fn with_event(case: &str, event: &str) -> String {
    let mut case: Value = serde_json::from_str(case).unwrap_or_default();
    if let Some(map) = case.as_object_mut() {
        map.insert("event".to_owned(), event.into());
    }
    format!("{case:#}\n")
}

/// The event of the first case by itself, as `ollm hook run` reads it.
fn sample(name: &str, files: &[NewFile]) -> Option<NewFile> {
    let case = files.iter().find(|file| file.path.starts_with("cases/"))?;
    let mut event: Value = serde_json::from_str(&case.content).ok()?;
    event.as_object_mut()?.shift_remove("expect");
    Some(NewFile { path: format!("cases/{name}.event.json"), content: format!("{event:#}\n") })
}

/// Writes files that are not there yet; nothing is written when one of them is.
pub(crate) fn write(folder: &Path, files: &[NewFile]) -> Result<(), Failure> {
    if let Some(taken) = files.iter().map(|file| folder.join(&file.path)).find(|path| path.symlink_metadata().is_ok()) {
        return Err(Failure::new(Kind::Usage, format!("{} is there already", taken.display()))
            .hint("choose another name, or move the file away"));
    }
    let is_new = !folder.exists();
    for (index, file) in files.iter().enumerate() {
        let path = folder.join(&file.path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| create(&path, &file.content));
        if let Err(error) = written {
            take_back(folder, files.get(..=index).unwrap_or(files), is_new);
            let message = format!("{} cannot be written: {error}", path.display());
            return Err(Failure::new(Kind::Environment, message).hint("nothing of it was left behind"));
        }
    }
    Ok(())
}

/// Removes what was written so far: half of it would look like the whole. Folders go only where nothing else is in them.
fn take_back(folder: &Path, files: &[NewFile], is_new: bool) {
    for file in files {
        let path = folder.join(&file.path);
        // The last one may not be there; what cannot be removed stays.
        let _ = fs::remove_file(&path);
        path.ancestors().skip(1).take_while(|above| *above != folder).for_each(|above| drop(fs::remove_dir(above)));
    }
    if is_new {
        let _ = fs::remove_dir(folder);
    }
}

fn create(path: &Path, content: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())
}
