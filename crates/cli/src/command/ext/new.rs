//! `ollm ext new`: an extension that works, to be changed into the one that is wanted.

use std::path::PathBuf;

use ollm_app::scaffold::{Scaffold, write_new};
use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::check_extension_name;
use ollm_protocol::Code;
use ollm_shell::shell_word;
use serde_json::json;

use crate::arguments::ext::NewExtension;
use crate::command::hook::project_folder;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(arguments: &NewExtension, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let NewExtension { name, purpose, language, .. } = arguments;
    check_extension_name(name).map_err(|why| {
        Failure::new(Code::InvalidValue, format!("`{name}` cannot be the name of an extension")).hint(why)
    })?;
    let folder = folder(arguments, context)?.join(name);
    if folder.starts_with(&context.places.home) {
        refuse_agents(context, "write extensions of the user")?;
    }
    let scaffold = Scaffold { name, purpose: purpose.clone(), language: *language };
    for path in write_new(&folder, &scaffold.extension())? {
        output.changed(json!({"file": path.to_string_lossy()}));
        output.data(&path.display().to_string())?;
    }
    let validate = format!("ollm ext validate {}", shell_word(&folder.display().to_string()));
    let next = [language.install_command(&folder, name), Some(validate)].into_iter().flatten();
    let found = arguments.folder.is_none().then(|| [format!("ollm ext trust {name}"), format!("ollm ext test {name}")]);
    let next: Vec<String> = next.chain(found.into_iter().flatten()).collect();
    output.tell(&format!("try it: {}", next.join(" && ")));
    Ok(OK)
}

fn folder(arguments: &NewExtension, context: &AppContext) -> Result<PathBuf, Failure> {
    match &arguments.folder {
        Some(folder) => Ok(context.cwd.join(folder)),
        None if arguments.project => Ok(project_folder(context)?.join("extensions")),
        None => Ok(context.places.home.join("extensions")),
    }
}
