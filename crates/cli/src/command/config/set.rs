//! `ollm config set` and `unset`: changes one setting in one file; everything else in the file stays unchanged.

use ollm_app::model::key::SETTING;
use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::{ConfigEdit, Edit, EditError, Origin, Safety, change_config, find_key};
use ollm_protocol::Layer;
use serde_json::json;

use super::key;
use super::{discreet, load, origin, plain, refused, short};
use crate::command::ext;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn set(
    key: &str,
    value: Option<&str>,
    layer: Layer,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    if key == SETTING {
        if layer == Layer::Workspace {
            return Err(Failure::usage("a key is yours, not the project's").hint("leave `--project` out"));
        }
        return key::set(value, &load(context).0, context, output);
    }
    let value = value.ok_or_else(|| {
        Failure::usage(format!("a value for `{key}` is missing")).hint(format!("write `ollm config set {key} VALUE`"))
    })?;
    // An extension checks the settings it declares, and its secrets do not belong in this file.
    if layer == Layer::User
        && let Some(done) = ext::set::through_config(key, Some(value), context, output)
    {
        return done;
    }
    let edited = change(key, Edit::Set(value), layer, context)?;
    let place = format!("{}:{}:{}", short(&edited.file, context), edited.line, edited.column);
    let already = if edited.changed { "" } else { " already" };
    output.changed(
        json!({"setting": key, "file": edited.file.to_string_lossy(), "line": edited.line, "column": edited.column}),
    );
    output.tell(&format!("`{key}` is set{already} ({place})"));
    tell_who_decides(key, &edited, context, output);
    Ok(OK)
}

pub(super) fn unset(key: &str, layer: Layer, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let kept = layer == Layer::User && key == SETTING;
    // A key in the file is removed from the file.
    if kept && load(context).0.get(key).is_none_or(|setting| setting.value.is_null()) {
        return key::unset(&load(context).0, context, output);
    }
    if layer == Layer::User
        && let Some(done) = ext::set::through_config(key, None, context, output)
    {
        return done;
    }
    let edited = change(key, Edit::Unset, layer, context)?;
    let file = short(&edited.file, context);
    let said = if edited.changed { "is no longer set" } else { "was not set" };
    if edited.changed {
        output.changed(json!({"setting": key, "removedFrom": edited.file.to_string_lossy()}));
    }
    output.tell(&format!("`{key}` {said} in {file}"));
    tell_who_decides(key, &edited, context, output);
    Ok(OK)
}

/// Changes a setting. Settings that guard something can be changed only by people.
fn change(key: &str, edit: Edit<'_>, layer: Layer, context: &AppContext) -> Result<ConfigEdit, Failure> {
    let found = find_key(key).map_err(|near| refused(EditError::Unknown { path: key.to_owned(), near }))?;
    if found.safety != Safety::Plain {
        refuse_agents(context, &format!("change `{key}`"))?;
    }
    change_config(&context.places, layer, key, edit).map_err(refused)
}

/// Tells a person who changed a value if another one takes precedence.
fn tell_who_decides(key: &str, edited: &ConfigEdit, context: &AppContext, output: &mut Output) {
    let (config, _) = load(context);
    let Some(setting) = config.get(key) else { return };
    let is_here = matches!(&setting.origin, Origin::File { file, .. } if *file == edited.file);
    let for_own = config.own().iter().any(|own| own.path == key);
    if !is_here && !for_own && setting.origin != Origin::Default {
        let value = plain(&discreet(&setting));
        output.tell(&format!("what applies is {value}, because {} says so", origin(&setting, context)));
    }
}
