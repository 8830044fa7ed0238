//! `ollm ext index build`: archives and their list, for any web server to hold.

use ollm_app::install::build_index;
use ollm_app::{App, AppContext};
use ollm_store::one_line;
use serde_json::{Value, json};

use crate::arguments::ext::IndexArguments;
use crate::error::Failure;
use crate::output::{Output, shown};

pub(super) fn run(arguments: &IndexArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    let folders: Vec<_> = arguments.folders.iter().map(|folder| context.cwd.join(folder)).collect();
    output.busy("packing extensions");
    let made = build_index(&folders, &context.cwd.join(&arguments.out), jiff::Timestamp::now(), &app)?;
    made.notes.iter().for_each(|note| output.tell(note));
    if arguments.json {
        let entries: Vec<Value> = made.entries.iter().map(|(entry, _)| entry.to_json()).collect();
        return output.pretty_json(&json!({"index": shown(&made.index), "extensions": entries}));
    }
    for (entry, path) in &made.entries {
        output.line(&one_line(&format!("{} {} {}", entry.name, entry.version, path.display())))?;
    }
    output.line(&one_line(&made.index.display().to_string()))
}
