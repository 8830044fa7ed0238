//! Determines which extensions should be on, and the values of their settings.

use std::path::Path;

use ollm_protocol::{Code, Commands, HeldText, Layer, Variable, did_you_mean};
use ollm_store::{SecretPlace, Secrets, Switch};
use serde_json::Value;

use super::fault::{Fault, Field};
use super::find::MANIFEST;
use super::read::{LARGEST_FILE, fingerprint};
use super::setting::{SettingSpec, text_of};
use super::{Extension, ExtensionState, Extensions, SettingValue, Surroundings};
use crate::config::{ExtensionSettings, Origin, Setting};
use crate::file;
use crate::problem::{Problem, Severity};

/// Resolves switches and settings, separately for each extension.
pub(super) fn resolve(
    all: &mut [Extension],
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
    problems: &mut Vec<Problem>,
) {
    for extension in all.iter_mut().filter(|extension| extension.state == ExtensionState::On) {
        if let Some(why) = off(extension, surroundings, settings) {
            extension.state = ExtensionState::Off(why);
        }
        let specs = extension.manifest.settings.clone();
        let mut missing = Vec::new();
        for spec in specs {
            let value = value(extension, &spec, surroundings, settings).unwrap_or_else(|fault| {
                fail(extension, fault);
                SettingValue { spec: spec.clone(), value: None, kept: None, origin: Origin::Default }
            });
            if spec.required && !value.is_set() {
                missing.push(spec);
            }
            extension.values.push(value);
        }
        if let Some(fault) = unset(extension, &missing, surroundings.commands) {
            fail(extension, fault);
        }
        undeclared(extension, settings, problems);
    }
}

/// Marks an extension as failed. An extension that is off does not need its settings.
fn fail(extension: &mut Extension, fault: Fault) {
    if extension.is_on() {
        extension.fail(fault);
    }
}

/// The required settings that are missing, in one fault.
fn unset(extension: &Extension, missing: &[SettingSpec], commands: Commands) -> Option<Fault> {
    let (first, more) = missing.split_first()?;
    if more.is_empty() {
        let message = format!("setting `{}` is required and not set", first.name);
        return Some(settable(extension, first, message));
    }
    let names: Vec<String> = missing.iter().map(|spec| format!("`{}`", spec.name)).collect();
    let known = missing.iter().filter_map(|spec| commands.command(&spec.remedy(&extension.name)));
    let known: Vec<String> = known.map(|command| format!("`{command}`")).collect();
    let help = if known.is_empty() { "set them".to_owned() } else { format!("set them: {}", known.join(", ")) };
    let message = format!("settings {} are required and not set", names.join(", "));
    Some(fault(Code::MissingKey, first, message, help))
}

fn fault(code: Code, spec: &SettingSpec, message: String, help: String) -> Fault {
    Fault { code, at: Field::Setting(spec.name.clone()), message, help: Some(help), remedy: None }
}

/// The same fault, for a setting that a person only has to set.
fn settable(extension: &Extension, spec: &SettingSpec, message: String) -> Fault {
    let remedy = Some(Box::new(spec.remedy(&extension.name)));
    Fault { code: Code::MissingKey, at: Field::Setting(spec.name.clone()), message, help: None, remedy }
}

/// Why an extension is off.
fn off(extension: &Extension, surroundings: &Surroundings<'_>, settings: &ExtensionSettings) -> Option<String> {
    let enabling = || surroundings.commands.tell(&extension.enabling());
    match surroundings.switches.get(&extension.switch_name(), surroundings.now) {
        Some(Switch { on: true, .. }) => None,
        Some(Switch { on: false, .. }) => Some(format!("switched off; {}", enabling())),
        None if settings.auto_enable => None,
        None => Some(format!("new, and extensions.autoEnable is false; {}", enabling())),
    }
}

/// The value that applies: from the declared variable, from a person, or the default.
fn value(
    extension: &Extension,
    spec: &SettingSpec,
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
) -> Result<SettingValue, Fault> {
    let given = |value, origin| SettingValue { spec: spec.clone(), value, kept: None, origin };
    let path = format!("extensions.settings.{}.{}", extension.name, spec.name);
    let said = settings.settings.iter().find(|setting| setting.path == path);
    let secret_place = surroundings.secrets.place(&extension.secret_name(&spec.name));
    if let Some(said) = said.filter(|said| said.origin == Origin::Flag) {
        // A value that was stored as a secret stays one, even if the manifest no longer says so.
        let spec = SettingSpec { sensitive: spec.sensitive || secret_place.is_some(), ..spec.clone() };
        let help = || "the command line sets it: correct it there, or leave it out".to_owned();
        let value = spec.check(said.value.clone()).map_err(|why| fault(Code::WrongValue, &spec, why, help()))?;
        return Ok(SettingValue { spec, value: Some(value), kept: None, origin: Origin::Flag });
    }
    let variable = spec.env_var.as_ref().and_then(|name| Some((name, (surroundings.env)(name)?)));
    if let Some((name, text)) = variable.filter(|(_, text)| !text.is_empty()) {
        let origin = Origin::Variable(name.clone().into());
        if !is_vouched(extension, surroundings) {
            return Ok(SettingValue { kept: Some(unread(spec, name, text)), ..given(None, origin) });
        }
        let help = || format!("the variable {name} is set: unset or correct it");
        let value = read_variable(spec, name, &text).map_err(|why| fault(Code::WrongValue, spec, why, help()))?;
        return Ok(given(Some(value), origin));
    }
    if let Some(place) = secret_place {
        return secret(extension, &SettingSpec { sensitive: true, ..spec.clone() }, place, surroundings);
    }
    let mending = |why: String| settable(extension, spec, why);
    if let Some(said) = said {
        let value =
            spec.check(said.value.clone()).map_err(|why| mending(format!("{why}, as {} has it", said.origin)))?;
        return Ok(given(Some(value), said.origin.clone()));
    }
    Ok(given(spec.default.clone(), Origin::Default))
}

/// Whether a person approved its manifest, if that is known. Only then may its variables be read; otherwise a project
/// could have any variable shown.
pub(super) fn is_vouched(extension: &Extension, surroundings: &Surroundings<'_>) -> bool {
    let Some(copy_of) = surroundings.vouched else { return true };
    let of_file = |path: &Path| Some(fingerprint(&file::bytes(path, LARGEST_FILE).ok()??));
    let approved = || of_file(&copy_of(&extension.root)?.join(MANIFEST));
    let own = || extension.fingerprint.or_else(|| of_file(&extension.file()));
    extension.held.is_some() || approved().is_some_and(|approved| own() == Some(approved))
}

/// A variable that is only read when an allowed hook or server needs it.
fn unread(spec: &SettingSpec, name: &str, text: String) -> HeldText {
    let (spec, variable) = (spec.clone(), name.to_owned());
    HeldText::kept(format!("${name}"), move || read_variable(&spec, &variable, &text).map(|value| text_of(&value)))
}

/// The value of a variable. Messages do not show it, because the variable may have another purpose.
fn read_variable(spec: &SettingSpec, name: &str, text: &str) -> Result<Value, String> {
    let quiet = SettingSpec { sensitive: true, ..spec.clone() };
    quiet.read(text).map_err(|why| format!("{why}, and the value of ${name} is not"))
}

/// The value in the keyring or in the file of secrets.
fn secret(
    extension: &Extension,
    spec: &SettingSpec,
    place: SecretPlace,
    surroundings: &Surroundings<'_>,
) -> Result<SettingValue, Fault> {
    let name = extension.secret_name(&spec.name);
    if place == SecretPlace::Keyring {
        let setting = surroundings.commands.tell(&spec.remedy(&extension.name));
        let kept = kept(spec, surroundings.secrets.clone(), name, setting);
        return Ok(SettingValue { spec: spec.clone(), value: None, kept: Some(kept), origin: Origin::Keyring });
    }
    let mending = |why: String| settable(extension, spec, why);
    let text = surroundings.secrets.get(&name).map_err(|error| mending(error.to_string()))?;
    let value = text.map(|text| spec.read(&text)).transpose().map_err(mending)?;
    let origin = Origin::File { layer: Layer::User, file: surroundings.places.secrets(), line: 0, column: 0 };
    Ok(SettingValue { spec: spec.clone(), value, kept: None, origin })
}

/// A secret that is only fetched when a hook or server needs it.
fn kept(spec: &SettingSpec, secrets: Secrets, secret: String, way_out: String) -> HeldText {
    let spec = spec.clone();
    let label = format!("{secret}#{}", secrets.edition(&secret));
    HeldText::kept(label, move || {
        let missed = |why: &str| format!("setting `{}` cannot be had: {why}; {way_out}", spec.name);
        let text = secrets.get(&secret).map_err(|error| missed(&error.to_string()))?;
        let value = spec.read(&text.ok_or_else(|| missed("it is gone"))?).map_err(|why| missed(&why))?;
        Ok(text_of(&value))
    })
}

/// Reports values that are set for settings which the extension does not have.
fn undeclared(extension: &Extension, settings: &ExtensionSettings, problems: &mut Vec<Problem>) {
    let prefix = format!("extensions.settings.{}.", extension.name);
    for said in &settings.settings {
        let Some(name) = said.path.strip_prefix(&prefix) else { continue };
        problems.extend(unknown(extension, name, said));
    }
}

fn unknown(extension: &Extension, name: &str, said: &Setting) -> Option<Problem> {
    if extension.setting(name).is_some() {
        return None;
    }
    let message = format!("extension `{}` has no setting `{name}`; it is ignored", extension.name);
    let known: Vec<&str> = extension.manifest.settings.iter().map(|setting| setting.name.as_str()).collect();
    let help = did_you_mean(name, known.iter().copied());
    Some(Problem { help, ..written(Code::UnknownKey, said, Severity::Warning, message)? })
}

/// Faults in the configuration's settings of extensions: invalid values, unknown settings, unknown extensions.
pub(super) fn misset(extensions: &Extensions, settings: &ExtensionSettings) -> Vec<Problem> {
    let wrong = |said: &Setting| {
        let (extension, name) = said.path.strip_prefix("extensions.settings.")?.split_once('.')?;
        let Some(found) = extensions.get(extension) else {
            let message =
                format!("there is no extension `{extension}`; what is set for it counts once it is installed");
            let known: Vec<&str> = extensions.iter().map(|one| one.name.as_str()).collect();
            let help = did_you_mean(extension, known.iter().copied());
            return Some(Problem { help, ..written(Code::Ignored, said, Severity::Warning, message)? });
        };
        // The declarations of a broken manifest are unknown.
        if found.is_broken() {
            return None;
        }
        let Some(spec) = found.setting(name) else { return unknown(found, name, said) };
        let why = spec.check(said.value.clone()).err()?;
        let value = Some(said.value.to_string()).filter(|_| !spec.sensitive);
        let message = format!("extension `{extension}`: {why}");
        let remedy = Some(spec.remedy(extension));
        Some(Problem { value, remedy, ..written(Code::WrongValue, said, Severity::Error, message)? })
    };
    settings.settings.iter().filter_map(wrong).collect()
}

/// A problem with a setting in a file.
fn written(code: Code, said: &Setting, severity: Severity, message: String) -> Option<Problem> {
    let (Origin::Policy { file, line, column } | Origin::File { file, line, column, .. }) = &said.origin else {
        return None;
    };
    let place = Problem::of_file(code, severity, file, message);
    Some(Problem { line: *line, column: *column, field: said.path.clone(), ..place })
}

/// The variables with an extension's settings for its hooks: the declared one and ours.
pub(super) fn variables(extension: &str, values: &[SettingValue]) -> Vec<Variable> {
    let mut variables = Vec::new();
    for SettingValue { spec, value, kept, .. } in values {
        let Some(value) = value.as_ref().map(|value| text_of(value).into()).or_else(|| kept.clone()) else { continue };
        let names = spec.env_var.clone().into_iter().chain([spec.variable(extension)]);
        variables.extend(names.map(|name| Variable { name, value: HeldText::clone(&value), secret: spec.sensitive }));
    }
    variables
}
