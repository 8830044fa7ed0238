//! Which extensions are meant to be on, and what their settings are.

use ollm_protocol::{Layer, Variable};
use ollm_store::Switch;
use serde_json::Value;

use super::setting::{SettingSpec, text_of};
use super::{Extension, SettingValue, State, Surroundings};
use crate::config::{ExtensionSettings, Origin};
use crate::problem::{Problem, Severity};

/// Switches and settings, each extension by itself.
pub(super) fn resolve(
    all: &mut [Extension],
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
    problems: &mut Vec<Problem>,
) {
    for extension in all.iter_mut().filter(|extension| extension.state == State::On) {
        if let Some(why) = off(extension, surroundings, settings) {
            extension.state = State::Off(why);
        }
        let specs = extension.manifest.settings.clone();
        for spec in specs {
            match value(extension, &spec, surroundings, settings) {
                Ok((value, origin)) => {
                    if value.is_none() && spec.required {
                        let command = spec.command(&extension.name);
                        fail(extension, format!("setting `{}` is required and not set; `{command}`", spec.name));
                    }
                    extension.values.push(SettingValue { spec, value, origin });
                }
                Err(why) => {
                    let command = spec.command(&extension.name);
                    fail(extension, format!("{why}; `{command}` mends it"));
                    extension.values.push(SettingValue { spec, value: None, origin: Origin::Default });
                }
            }
        }
        undeclared(extension, settings, problems);
    }
}

/// An extension that is off need not have its settings.
fn fail(extension: &mut Extension, why: String) {
    if extension.is_on() {
        extension.fail(why);
    }
}

/// Why an extension is off.
fn off(extension: &Extension, surroundings: &Surroundings<'_>, settings: &ExtensionSettings) -> Option<String> {
    match surroundings.switches.get(&extension.switch_name(), surroundings.now) {
        Some(Switch { on: true, .. }) => None,
        Some(Switch { on: false, .. }) => Some(format!("switched off; {}", extension.enabling())),
        None if settings.auto_enable => None,
        None => Some(format!("new, and extensions.autoEnable is false; {}", extension.enabling())),
    }
}

/// What applies: the declared variable, what a person set, the default.
fn value(
    extension: &Extension,
    spec: &SettingSpec,
    surroundings: &Surroundings<'_>,
    settings: &ExtensionSettings,
) -> Result<(Option<Value>, Origin), String> {
    let variable = spec.env_var.as_ref().and_then(|name| Some((name, (surroundings.env)(name)?)));
    if let Some((name, text)) = variable.filter(|(_, text)| !text.is_empty()) {
        let value = spec.read(&text).map_err(|why| format!("{why} ({name})"))?;
        return Ok((Some(value), Origin::Variable(name.clone().into())));
    }
    if let Some(secret) = surroundings.secrets.get(&extension.secret_name(&spec.name)) {
        let file = surroundings.places.secrets();
        let origin = Origin::File { layer: Layer::User, file, line: 0, column: 0 };
        return Ok((Some(spec.read(secret)?), origin));
    }
    let path = format!("extensions.settings.{}.{}", extension.name, spec.name);
    if let Some(said) = settings.settings.iter().find(|setting| setting.path == path) {
        let value = spec.check(said.value.clone()).map_err(|why| format!("{why} ({})", said.origin))?;
        return Ok((Some(value), said.origin.clone()));
    }
    Ok((spec.default.clone(), Origin::Default))
}

/// Tells of what is set for the extension although it knows no such setting.
fn undeclared(extension: &Extension, settings: &ExtensionSettings, problems: &mut Vec<Problem>) {
    let prefix = format!("extensions.settings.{}.", extension.name);
    for said in &settings.settings {
        let Some(name) = said.path.strip_prefix(&prefix) else { continue };
        if extension.setting(name).is_some() {
            continue;
        }
        if let Origin::File { file, line, column, .. } = &said.origin {
            let message = format!("extension `{}` has no setting `{name}`; it is ignored", extension.name);
            let known: Vec<&str> = extension.manifest.settings.iter().map(|setting| setting.name.as_str()).collect();
            let help = crate::value::nearest(name, &known).map(|near| format!("did you mean `{near}`?"));
            let place = Problem::of_file(Severity::Warning, file, message);
            problems.push(Problem { line: *line, column: *column, field: said.path.clone(), help, ..place });
        }
    }
}

/// The variables in which an extension's hooks get its settings: the declared one and ours.
pub(super) fn variables(extension: &str, values: &[SettingValue]) -> Vec<Variable> {
    let mut variables = Vec::new();
    for SettingValue { spec, value, .. } in values {
        let Some(text) = value.as_ref().map(text_of) else { continue };
        let names = spec.env_var.clone().into_iter().chain([spec.variable(extension)]);
        variables.extend(names.map(|name| Variable { name, value: text.clone(), secret: spec.sensitive }));
    }
    variables
}
