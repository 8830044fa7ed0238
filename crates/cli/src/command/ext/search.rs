//! `ollm ext search`: what the indexes have.

use std::ops::ControlFlow;

use ollm_app::install::{Hit, Registry, installed};
use ollm_app::{App, AppContext};
use ollm_store::one_line;
use serde_json::{Value, json};

use super::install::reach;
use crate::arguments::ext::SearchArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;
use crate::table::table;

pub(super) fn run(arguments: &SearchArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    let query = arguments.words.join(" ");
    let mut bar = output.progress();
    let registry =
        Registry::load(&app.config.downloads(), reach(arguments.offline), context, &mut |what, done, total| {
            bar.step(what, done, total);
            ControlFlow::Continue(())
        });
    bar.clear();
    registry.notes.iter().for_each(|note| output.tell(note));
    let hits = registry.search(&query);
    let here = installed(context);
    let version = |hit: &Hit| here.iter().find(|one| one.name == hit.entry.name).map(|one| one.version.as_str());
    if arguments.json {
        output.pretty_json(&hits.iter().map(|hit| entry(hit, version(hit))).collect())?;
        return Ok(if hits.is_empty() { FINDING } else { OK });
    }
    if hits.is_empty() {
        output.tell(&format!("no index has anything about `{query}`"));
        return Ok(FINDING);
    }
    let line = |hit: &Hit| {
        let entry = &hit.entry;
        let texts = [
            &entry.name,
            &entry.version.to_string(),
            version(hit).unwrap_or("-"),
            &entry.description,
            &hit.shown_index(),
        ];
        texts.map(one_line)
    };
    let head = ["NAME", "VERSION", "INSTALLED", "DESCRIPTION", "INDEX"];
    output.text(&table(head, hits.iter().map(line)))?;
    Ok(OK)
}

fn entry(hit: &Hit, installed: Option<&str>) -> Value {
    let mut value = hit.entry.to_json();
    if let Value::Object(entry) = &mut value {
        entry.extend([("index".to_owned(), json!(hit.shown_index())), ("installed".to_owned(), json!(installed))]);
    }
    value
}
