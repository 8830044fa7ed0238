//! Prepares text for people and models: hides secrets and cuts long texts.

use std::borrow::Cow;
use std::mem;

use ollm_protocol::Hook;
use ollm_store::{Redactor, cut, looks_secret};
use serde_json::{Map, Value};

use crate::environment::Environment;
use crate::report::{Outcome, Report};

/// Longer texts are cut, with a note.
const LONGEST_TEXT: usize = 10 << 10;

/// Hides secrets in every text of a report, and cuts what is too long.
pub(crate) fn presentable(mut report: Report, environment: &Environment) -> Report {
    let verdict = &mut report.verdict;
    let lists = [
        &mut verdict.reasons,
        &mut verdict.system_messages,
        &mut verdict.messages,
        &mut verdict.context,
        &mut verdict.prompts,
        &mut report.warnings,
    ];
    let spoken = report.process.as_mut().and_then(|process| process.spoken.as_mut());
    let spoken = spoken.into_iter().flat_map(|spoken| [&mut spoken.stdout, &mut spoken.stderr]);
    let mut texts: Vec<&mut String> =
        lists.into_iter().flatten().chain(&mut report.error).chain(&mut report.stack).chain(spoken).collect();
    if texts.is_empty() && verdict.metadata.is_empty() {
        return report;
    }
    let redactor = redactor(std::iter::once(report.hook.as_ref()), environment);
    for text in &mut texts {
        let short = cut(&redactor.redact_str(text), LONGEST_TEXT).into_owned();
        **text = short;
    }
    hide(&mut verdict.metadata, &redactor);
    report
}

/// Hides secrets in the data that leaves the engine. Among the hooks, the data passed unchanged.
pub(crate) fn leaving(mut outcome: Outcome, environment: &Environment) -> Outcome {
    if !outcome.verdict.data.is_empty() {
        let redactor = redactor(outcome.reports.iter().map(|report| report.hook.as_ref()), environment);
        hide(&mut outcome.verdict.data, &redactor);
    }
    outcome
}

/// Both keys and values may be secrets.
fn hide(map: &mut Map<String, Value>, redactor: &Redactor) {
    for (key, mut value) in mem::take(map) {
        hide_in(&mut value, redactor);
        map.insert(redactor.redact_str(&key).into_owned(), value);
    }
}

fn hide_in(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact_str(text).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(|value| hide_in(value, redactor)),
        Value::Object(map) => hide(map, redactor),
        Value::Number(number) => {
            // If a number is a secret, the placeholder text replaces it.
            if let Cow::Owned(hidden) = redactor.redact_str(&number.to_string()) {
                *value = hidden.into();
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// A redactor for the secrets of the environment and of these hooks.
pub(crate) fn redactor<'a>(hooks: impl Iterator<Item = &'a Hook>, environment: &Environment) -> Redactor {
    Redactor::new(environment.secrets().chain(hooks.flat_map(|hook| declared(hook, environment))).collect::<Vec<_>>())
}

fn declared(hook: &Hook, environment: &Environment) -> impl Iterator<Item = (String, String)> {
    let own = hook.spec.env.iter().filter(|(name, _)| looks_secret(name)).cloned().chain(credentials(hook));
    let passed =
        hook.spec.pass_env.iter().filter_map(|name| Some((name.clone(), environment.get(name)?.to_str()?.to_owned())));
    let settings = hook.settings.iter().filter(|setting| setting.secret);
    // A secret that was never fetched cannot appear in any text.
    let settings = settings.filter_map(|setting| Some((setting.name.clone(), setting.value.known()?.to_owned())));
    own.chain(passed).chain(settings)
}

/// The credentials in a hook's headers, both whole and without the scheme in front.
fn credentials(hook: &Hook) -> Vec<(String, String)> {
    let headers = hook.spec.action.descriptor().headers();
    let telling =
        |name: &str| looks_secret(name) || ["authorization", "cookie"].contains(&name.to_ascii_lowercase().as_str());
    let telling = headers.iter().filter(|(name, _)| telling(name));
    telling
        .flat_map(|(name, value)| {
            [value.as_str(), value.rsplit(' ').next().unwrap_or_default()].map(|value| (name.clone(), value.to_owned()))
        })
        .collect()
}
