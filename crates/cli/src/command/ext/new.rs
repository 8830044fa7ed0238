//! `ollm ext new`: an extension that works, to be changed into the one that is wanted.

use std::path::PathBuf;

use ollm_app::World;
use ollm_catalog::check_extension_name;
use ollm_shell::shell_word;
use serde_json::{Map, json};

use crate::arguments::ext::NewExtension;
use crate::command::hook::write_new;
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::scaffold::{self, NewFile};

/// Where the scripts are, below the extension's folder.
pub(super) const HOOKS: &str = "hooks";

pub(super) fn run(arguments: &NewExtension, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let NewExtension { name, language, .. } = arguments;
    check_extension_name(name)
        .map_err(|why| Failure::usage(format!("`{name}` cannot be the name of an extension")).hint(why))?;
    let folder = folder(arguments, world)?.join(name);
    let files = files(arguments);
    write_new(&folder, &files)?;
    for file in &files {
        output.line(&folder.join(&file.path).display().to_string())?;
    }
    let shown = shell_word(&folder.display().to_string()).into_owned();
    let build = language.install(&shown, name);
    let next = [build, Some(format!("ollm ext validate {shown}"))].into_iter().flatten();
    let found = arguments.folder.is_none().then(|| [format!("ollm ext trust {name}"), format!("ollm ext test {name}")]);
    let next: Vec<String> = next.chain(found.into_iter().flatten()).collect();
    output.tell(&format!("try it: {}", next.join(" && ")));
    Ok(OK)
}

fn folder(arguments: &NewExtension, world: &World) -> Result<PathBuf, Failure> {
    match (&arguments.folder, arguments.project, &world.places.project) {
        (Some(folder), _, _) => Ok(world.cwd.join(folder)),
        (None, false, _) => Ok(world.places.home.join("extensions")),
        (None, true, Some(project)) => Ok(project.join(".ollm/extensions")),
        (None, true, None) => Err(Failure::usage("--project: this folder is in no project")
            .hint("a project is a folder with `.git` or `.ollm`; `mkdir .ollm` makes this one")),
    }
}

/// The manifest last: what it names is there by then.
fn files(arguments: &NewExtension) -> Vec<NewFile> {
    let NewExtension { name, purpose, language, .. } = arguments;
    let mut files = scaffold::files(name, *purpose, *language);
    for file in files.iter_mut().filter(|file| !file.path.starts_with("cases/")) {
        file.path = format!("{HOOKS}/{}", file.path);
    }
    let entry = scaffold::extension_entry(name, *purpose, *language, HOOKS);
    let manifest = json!({
        "manifestVersion": 1,
        "name": name,
        "version": "0.1.0",
        "description": purpose.description(),
        "hooks": Map::from_iter([(purpose.event().to_owned(), json!([entry]))]),
        "settings": [],
        "skills": [],
    });
    files.push(NewFile { path: "manifest.json".to_owned(), content: format!("{manifest:#}\n") });
    files
}
