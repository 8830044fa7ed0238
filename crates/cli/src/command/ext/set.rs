//! `ollm ext set`: sets an extension's settings. Sensitive ones are stored outside the configuration, readable only by
//! their owner.

use std::io::Read;

use ollm_app::{App, AppContext, refuse_agents, secrets};
use ollm_catalog::{Edit, Extension, SettingSpec, change_config, check_config_target};
use ollm_protocol::{Code, Layer};
use ollm_store::Redactor;
use serde_json::{Value, json};

use super::named;
use crate::arguments::ext::SetArguments;
use crate::ask::Asker;
use crate::command::config::refused;
use crate::error::{Failure, OK};
use crate::output::Output;

/// Longer values are no settings.
const LONGEST_VALUE: u64 = 64 << 10;

pub(super) fn run(arguments: &SetArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "change settings of extensions")?;
    let app = App::load(context)?;
    let extension = named(&arguments.name, &app)?;
    // All values are checked before the first one is stored.
    let mut changes: Vec<(&SettingSpec, Option<String>)> = Vec::new();
    if arguments.set.iter().filter(|assignment| assignment.ends_with("=-")).count() > 1 {
        return Err(Failure::usage("only one setting can be read from standard input"));
    }
    for assignment in &arguments.set {
        let (key, typed) =
            assignment.split_once('=').map_or((assignment.as_str(), None), |(key, value)| (key, Some(value)));
        let spec = declared(extension, key)?;
        let value = given(spec, typed, output.asker())?;
        read(spec, &value)?;
        changes.push((spec, Some(value)));
    }
    for key in &arguments.unset {
        changes.push((declared(extension, key)?, None));
    }
    check_config_target(&context.places, Layer::User).map_err(refused)?;
    for (spec, value) in changes {
        let place = keep(extension, spec, value.as_deref(), context)?;
        let said = if value.is_some() { "is set" } else { "is no longer set" };
        output.changed(json!({"extension": extension.name, "setting": spec.name}));
        output.tell(&format!("`{}` of `{}` {said}{place}", spec.name, extension.name));
        if spec.sensitive && value.is_some_and(|value| value.trim().len() < Redactor::SHORTEST) {
            let shortest = Redactor::SHORTEST;
            output.tell(&format!(
                "`{}` is shorter than {shortest} bytes and is not hidden where hooks and servers say it; take a longer one",
                spec.name
            ));
        }
    }
    tell_outcome(&extension.name, context, output)
}

/// Sets `extensions.settings.NAME.KEY`, if that is what the path is and the extension is known.
pub(crate) fn through_config(
    path: &str,
    value: Option<&str>,
    context: &AppContext,
    output: &mut Output,
) -> Option<Result<u8, Failure>> {
    let (name, key) = path.strip_prefix("extensions.settings.")?.split_once('.')?;
    let app = App::load(context).ok()?;
    let extension = app.extensions.get(name)?;
    // The settings of a broken manifest are unknown. A setting that is no longer declared may still be removed.
    if extension.setting(key).is_none() && (extension.is_broken() || value.is_none()) {
        return None;
    }
    let (set, unset) = match value {
        Some(value) => (vec![format!("{key}={value}")], Vec::new()),
        None => (Vec::new(), vec![key.to_owned()]),
    };
    Some(run(&SetArguments { name: name.to_owned(), set, unset }, context, output))
}

fn declared<'a>(extension: &'a Extension, key: &str) -> Result<&'a SettingSpec, Failure> {
    extension.setting(key).ok_or_else(|| {
        let known: Vec<&str> = extension.manifest.settings.iter().map(|setting| setting.name.as_str()).collect();
        let there = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        Failure::new(Code::UnknownSetting, format!("extension `{}` has no setting `{key}`", extension.name)).hint(there)
    })
}

/// The value as typed, from standard input, or from the person.
fn given(spec: &SettingSpec, typed: Option<&str>, asker: &Asker) -> Result<String, Failure> {
    match typed {
        Some("-") => {
            let mut value = String::new();
            let read = std::io::stdin().lock().take(LONGEST_VALUE + 1).read_to_string(&mut value);
            read.map_err(|error| Failure::new(Code::Unreadable, format!("standard input cannot be read: {error}")))?;
            if value.len() as u64 > LONGEST_VALUE {
                let message = format!("`{}` may have at most {LONGEST_VALUE} bytes; nothing was changed", spec.name);
                return Err(Failure::new(Code::InvalidValue, message));
            }
            Ok(value.trim_end_matches(['\r', '\n']).to_owned())
        }
        Some(value) => Ok(value.to_owned()),
        None if !asker.is_there() => {
            Err(Failure::usage(format!("`{}` has no value, and there is no terminal to ask on", spec.name))
                .hint(format!("write {0}=VALUE, or {0}=- to read it from standard input", spec.name)))
        }
        None => match asker.ask_secret(&format!("{} ({}): ", spec.name, spec.description)) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(Failure::new(Code::InvalidValue, format!("`{}` got no value; nothing was changed", spec.name))),
        },
    }
}

fn read(spec: &SettingSpec, value: &str) -> Result<Value, Failure> {
    spec.read(value).map_err(|why| Failure::new(Code::InvalidValue, format!("{why}; nothing was changed")))
}

/// Stores a value where it belongs, and removes it elsewhere; returns the place of a secret.
fn keep(
    extension: &Extension,
    spec: &SettingSpec,
    value: Option<&str>,
    context: &AppContext,
) -> Result<String, Failure> {
    let path = format!("extensions.settings.{}.{}", extension.name, spec.name);
    let name = extension.secret_name(&spec.name);
    let place = if let Some(secret) = value.filter(|_| spec.sensitive) {
        secrets::keep(&name, secret, context)?
    } else {
        secrets::remove(&[name], context)?;
        String::new()
    };
    // The value has the type of the setting. A text is quoted, so that it cannot be read as a number.
    let value = value.filter(|_| !spec.sensitive).map(|value| read(spec, value)).transpose()?;
    let edit = match &value {
        Some(value) => Edit::Value(value),
        _ if !context.places.config().exists() => return Ok(place),
        _ => Edit::Unset,
    };
    change_config(&context.places, Layer::User, &path, edit).map_err(refused)?;
    Ok(place)
}

/// Tells whether a new value takes effect, and whether the extension is on now.
fn tell_outcome(name: &str, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    let Some(extension) = app.extensions.get(name) else { return Ok(OK) };
    for one in &extension.values {
        if let ollm_catalog::Origin::Variable(variable) = &one.origin {
            output.tell(&format!(
                "what applies for `{}` is the variable {variable}, which is set; unset or correct it",
                one.spec.name
            ));
        }
    }
    if let Some(why) = extension.error() {
        output.tell(&format!("extension `{name}` is not loaded: {why}"));
    }
    Ok(OK)
}
