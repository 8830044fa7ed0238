//! Adds data to every event that its sender does not know: the person's own values from the configuration, and the path
//! of a file in the project.

use std::borrow::Cow;
use std::path::Path;

use ollm_agent::UserData;
use ollm_catalog::Config;
use ollm_protocol::Event;
use ollm_store::plain_path;
use serde_json::{Map, Value};

use crate::app_context::AppContext;

/// The event with missing data added; its own fields stay unchanged.
pub(crate) fn complete<'e>(event: &'e Event, config: &Config, context: &AppContext) -> Cow<'e, Event> {
    let user = user_data(config);
    let user = (!event.data.contains_key("user") && user != UserData::default()).then(|| user.to_json());
    let file = event.kind.is_file().then(|| file_data(event, context)).flatten();
    if user.is_none() && file.is_none() {
        return Cow::Borrowed(event);
    }
    let mut event = event.clone();
    event.data.extend(user.map(|user| ("user".to_owned(), user)));
    if let Some(file) = file {
        for (name, of_file) in [("path", "absolutePath"), ("diff", "changes")] {
            if let (false, Some(value)) = (event.data.contains_key(name), file.get(of_file)) {
                event.data.insert(name.to_owned(), value.clone());
            }
        }
        event.data.insert("file".to_owned(), file.into());
    }
    Cow::Owned(event)
}

/// The values that the person configured for hooks.
pub(crate) fn user_data(config: &Config) -> UserData {
    UserData { preferences: config.user("preferences"), settings: config.user("settings") }
}

/// The path of an event's file in the project and its absolute path, with the difference; `None` if the event has no
/// path as text.
fn file_data(event: &Event, context: &AppContext) -> Option<Map<String, Value>> {
    let mut file = match event.data.get("file") {
        Some(Value::Object(file)) => file.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    let told = event.text("path").or_else(|| file.get("absolutePath").or_else(|| file.get("path"))?.as_str())?;
    let cwd = event.text("cwd").map_or(context.cwd.as_path(), Path::new);
    let whole = plain_path(&context.cwd.join(cwd).join(told));
    let project = context.places.project.as_deref().unwrap_or(&context.cwd);
    let inside = whole.strip_prefix(project).unwrap_or(&whole);
    let paths = [("path", inside), ("absolutePath", whole.as_path())];
    let paths: Option<Vec<_>> = paths.into_iter().map(|(name, path)| Some((name, path.to_str()?))).collect();
    file.extend(paths?.into_iter().map(|(name, path)| (name.to_owned(), path.into())));
    if let Some(diff) = event.text("diff").filter(|_| !file.contains_key("changes")) {
        file.insert("changes".to_owned(), diff.into());
    }
    Some(file)
}
