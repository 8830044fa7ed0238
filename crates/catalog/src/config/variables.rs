//! Reads settings from environment variables; no variable loosens a guard.

use std::path::Path;

use serde_json::Value;

use ollm_protocol::Code;

use super::layer::unheard;
use super::policy::objection;
use super::{Config, IgnoredValue, KEYS, Key, Origin, Safety, Setting};
use crate::file::whole_file;
use crate::node::Node;
use crate::problem::{Problem, Severity};
use crate::value::ReadValue;

/// Applies the settings in the environment.
pub(super) fn hear(config: &mut Config, env: &dyn Fn(&str) -> Option<String>, problems: &mut Vec<Problem>) {
    for key in KEYS {
        let own = key.variable.map(|name| (name, key.kind));
        for (name, kind) in key.older_variable.into_iter().chain(own) {
            let Some(text) = env(name).filter(|text| !text.trim().is_empty()) else { continue };
            match kind.read(&Node::Text(text.clone())) {
                ReadValue::Exact(value) | ReadValue::Converted(value) if loosens(config, key, &value) => {
                    problems.push(loose_variable(key, name, &text));
                }
                ReadValue::Exact(value) | ReadValue::Converted(value) => {
                    let origin = Origin::Variable(name.into());
                    let setting = Setting { path: key.path.to_owned(), key, value, origin };
                    if let Some(why) = objection(config, &setting) {
                        problems.push(unheard(Path::new(name), key.path, &why, &format!("unset {name}")));
                        config.ignored.push(IgnoredValue { setting, why });
                        continue;
                    }
                    config.own.retain(|own| own.key != key);
                    config.hear(setting);
                }
                ReadValue::Wrong => problems.push(bad_variable(key, name, &text, &kind.expected())),
            }
        }
    }
}

/// Whether a variable would make a guard looser than in the files.
fn loosens(config: &Config, key: &Key, value: &Value) -> bool {
    let only = key.variable_only.and_then(|only| serde_json::from_str::<Value>(only).ok());
    only.is_some_and(|only| *value != only && *value != config.value(key.path))
}

fn loose_variable(key: &Key, name: &str, text: &str) -> Problem {
    let message = format!("the variable cannot loosen `{}`; it is ignored", key.path);
    Problem {
        field: name.to_owned(),
        value: Some(Node::Text(text.to_owned()).shown()),
        help: Some(format!("set `{}` in ~/.ollm/config.yaml, or unset {name}", key.path)),
        ..whole_file(Code::InvalidVariable, Severity::Warning, Path::new(name), message)
    }
}

fn bad_variable(key: &Key, name: &str, text: &str, expected: &str) -> Problem {
    let critical = key.safety == Safety::Critical;
    let (severity, then) = if critical { (Severity::Fatal, "") } else { (Severity::Warning, "; it is ignored") };
    Problem {
        field: name.to_owned(),
        value: Some(Node::Text(text.to_owned()).shown()),
        help: Some(format!("correct it or unset {name}")),
        ..whole_file(Code::InvalidVariable, severity, Path::new(name), format!("the variable must be {expected}{then}"))
    }
}

/// Variables whose names are similar to one of ours, but not equal.
pub fn mistyped_variables<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Problem> {
    /// The most wrong letters. Names with more are names of their own with the same prefix.
    const SLIPS: usize = 2;
    let ours = || KEYS.iter().flat_map(|key| key.variable.into_iter().chain(key.older_variable.map(|(name, _)| name)));
    let unknown = names.filter(|name| name.starts_with("OLLM_") && name.len() <= 64 && !ours().any(|own| own == *name));
    let near = unknown.filter_map(|name| {
        let distance = |own: &str| strsim::damerau_levenshtein(name, own);
        let nearest = ours().min_by_key(|own| distance(own)).filter(|own| distance(own) <= SLIPS)?;
        Some(Problem {
            field: name.to_owned(),
            help: Some(format!("did you mean {nearest}?")),
            ..whole_file(
                Code::InvalidVariable,
                Severity::Warning,
                Path::new(name),
                "no setting has this variable; it is ignored".to_owned(),
            )
        })
    });
    near.collect()
}
