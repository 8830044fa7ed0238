//! Combines the layers: the machine's policy, the user's file, the project's, the environment, the command line.

use std::path::{Path, PathBuf};

use ollm_protocol::{Code, Layer};
use ollm_store::{check_owner, current_uid, looks_secret};
use serde_json::Value;

use super::edit::says;
use super::key::all;
use super::kind::{ConfigKind, duration, milliseconds};
use super::policy::{self, objection};
use super::settings::USUAL_TIMEOUT;
use super::variables;
use super::written::{self, WrittenValue};
use super::{Config, IgnoredValue, Key, LARGEST_FILE, Origin, Overrides, Project, Safety, Setting, find_key};
use crate::budget::Budget;
use crate::file::{self, Document, Finding, Syntax, parse_yaml, whole_file};
use crate::load::StampSet;
use crate::mcp;
use crate::node::{Cursor, Node};
use crate::place::{Places, same_place};
use crate::problem::{Problem, Severity};
use crate::value::ReadValue;

/// The configuration of the files, combined with the sources that override them.
pub(crate) fn said_around(
    mut config: Config,
    env: &dyn Fn(&str) -> Option<String>,
    overrides: &Overrides,
    problems: &mut Vec<Problem>,
) -> Config {
    variables::hear(&mut config, env, problems);
    override_with(&mut config, overrides, problems);
    config
}

/// Reads the user's file and those of projects, within a budget.
pub(crate) fn read_files(
    places: &Places,
    budget: &mut Option<Budget>,
    looked: &mut StampSet,
    problems: &mut Vec<Problem>,
) -> Config {
    let mut config = user_config(places, looked, problems);
    let user = places.config();
    for project in places.projects() {
        let path = project.join(".ollm/config.yaml");
        let size = path.metadata().map(|meta| meta.len());
        if same_place(&path, &user)
            || budget.as_mut().zip(size.ok()).is_some_and(|(budget, size)| !budget.allows(&path, size))
        {
            continue;
        }
        // A project's server is only for work in that very project. Settings that tighten apply to all projects within.
        let is_inner = places.project.as_deref() == Some(project);
        read(&path, project, Severity::Error, problems, |document, root| {
            looked.read(&path, document.state);
            let (said, mut findings) = written::read(root, Severity::Warning);
            for (setting, said) in settings(document, said, &of(Layer::Workspace)) {
                if is_inner || !setting.path.starts_with("mcp.servers.") {
                    findings.extend(tighten(&mut config, setting, said));
                }
            }
            findings
        });
    }
    config
}

/// The files of the user and of projects, each with the folder from which on no other user may write.
pub(crate) fn owned_files(places: &Places) -> impl Iterator<Item = (PathBuf, &Path)> {
    let of_projects = places.projects().map(|project| (project.join(".ollm/config.yaml"), project));
    std::iter::once((places.config(), places.top())).chain(of_projects)
}

/// The machine's policy and the user's file.
fn user_config(places: &Places, looked: &mut StampSet, problems: &mut Vec<Problem>) -> Config {
    let mut config = Config::default();
    policy::read(places, &mut config, problems);
    read(&places.config(), places.top(), Severity::Fatal, problems, |document, root| {
        looked.read(document.path, document.state);
        let (said, mut findings) = written::read(root, Severity::Fatal);
        for (setting, said) in settings(document, said, &of(Layer::User)) {
            match objection(&config, &setting) {
                Some(why) => {
                    let name = setting.key.path.rsplit('.').next().unwrap_or_default();
                    findings.push(ignored(said, format!("`{name}` is ignored: {why}"), "remove it from this file"));
                    config.ignored.push(IgnoredValue { setting, why });
                }
                None => config.hear(setting),
            }
        }
        findings
    });
    config
}

/// A value of a file of this layer.
fn of(layer: Layer) -> impl Fn(PathBuf, usize, usize) -> Origin {
    move |file, line, column| Origin::File { layer, file, line, column }
}

/// Reads a file if no other user could have written it, up to the folder `top`. `lost` is the severity of a failure.
///
/// The user's file holds the user's prohibitions. If it is unreadable, the defaults would allow what it forbids.
fn read(
    path: &Path,
    top: &Path,
    lost: Severity,
    problems: &mut Vec<Problem>,
    take: impl FnOnce(&Document<'_>, &Cursor<'_>) -> Vec<Finding>,
) {
    if path.exists()
        && let Err(why) = check_owner(path, top, current_uid())
    {
        let message = format!("{}: {why}", means(lost));
        return problems.push(file::whole_file(Code::UnsafePath, lost, path, message));
    }
    parse(path, lost, problems, take);
}

/// Reads a file from any author.
pub(super) fn parse(
    path: &Path,
    lost: Severity,
    problems: &mut Vec<Problem>,
    take: impl FnOnce(&Document<'_>, &Cursor<'_>) -> Vec<Finding>,
) {
    match file::read(path, Syntax::Yaml, LARGEST_FILE) {
        Ok(None) => {}
        Ok(Some((document, node))) => {
            let findings = take(&document, &Cursor::root(&node));
            let mut found: Vec<Problem> = document.problems(findings).into_iter().map(discreet).collect();
            mcp::hide_secrets(&mut found, &node);
            problems.append(&mut found);
        }
        Err(mut problem) => {
            problem.severity = lost;
            problem.message = format!("{}; {}", problem.message, means(lost));
            problems.push(discreet(*problem));
        }
    }
}

/// The text on what a failure to read a file means.
fn means(lost: Severity) -> &'static str {
    match lost {
        Severity::Fatal => "nothing runs until it is corrected",
        Severity::Error | Severity::Warning => "none of its settings apply",
    }
}

/// The settings in one file, with their positions.
pub(super) fn settings(
    document: &Document<'_>,
    said: Vec<WrittenValue>,
    origin: &dyn Fn(PathBuf, usize, usize) -> Origin,
) -> impl Iterator<Item = (Setting, WrittenValue)> {
    let said = as_written(document, said);
    said.into_iter().map(move |said| {
        let at = document.locate(&said.spot);
        let origin = origin(document.path.to_owned(), at.line, at.column);
        (Setting { path: said.path.clone(), key: said.key, value: said.value.clone(), origin }, said)
    })
}

/// Keeps the original text of extension settings that look like numbers or flags. Only the extension's manifest knows
/// whether `01234` is a number.
fn as_written(document: &Document<'_>, mut said: Vec<WrittenValue>) -> Vec<WrittenValue> {
    let open = |said: &&mut WrittenValue| {
        said.key.kind == ConfigKind::Setting && (said.value.is_number() || said.value.is_boolean())
    };
    for said in said.iter_mut().filter(open) {
        // A quoted or tagged value is not only this text.
        let means = |letters: &&str| parse_yaml(letters).is_ok_and(|node| node.to_json() == said.value);
        let letters = document.letters(&said.spot);
        if let Some(letters) = letters.filter(|letters| !says(&said.value, letters) && means(letters)) {
            said.value = letters.into();
        }
    }
    said
}

/// The result for a project's value.
enum ProjectWord {
    Counts,
    CountsForOwn,
    /// It repeats the value that already applies.
    Same,
    Ignored(String),
}

/// Applies a project's value if it makes something stricter.
fn tighten(config: &mut Config, setting: Setting, said: WrittenValue) -> Option<Finding> {
    let heard = objection(config, &setting).map_or_else(|| judge(config, &setting), ProjectWord::Ignored);
    match heard {
        ProjectWord::Counts => config.put(setting),
        ProjectWord::CountsForOwn => config.own.push(setting),
        ProjectWord::Same => {}
        ProjectWord::Ignored(why) => {
            let name = said.path.rsplit('.').next().unwrap_or_default();
            let message = format!("`{name}` is ignored in a project: {why}");
            let finding = ignored(said, message, "set it in the user's own config.yaml");
            config.ignored.push(IgnoredValue { setting, why });
            return Some(finding);
        }
    }
    None
}

fn judge(config: &Config, setting: &Setting) -> ProjectWord {
    let key = setting.key;
    let now = if key.is_open() {
        config.said(&setting.path).map(|said| said.value.clone())
    } else {
        Some(config.value(key.path)).filter(|value| !value.is_null())
    };
    let same = now.as_ref() == Some(&setting.value);
    match key.project {
        Project::Only(value, why) => match serde_json::from_str::<Value>(value) {
            Ok(only) if only == setting.value => ProjectWord::Counts,
            _ => ProjectWord::Ignored(why.to_owned()),
        },
        Project::Any => ProjectWord::Counts,
        _ if same => ProjectWord::Same,
        Project::Never(why) => ProjectWord::Ignored(why.to_owned()),
        Project::New(why) => now.map_or(ProjectWord::Counts, |_| ProjectWord::Ignored(why.to_owned())),
        Project::More(why) if lacks(&setting.value, now.as_ref()) => ProjectWord::Ignored(why.to_owned()),
        Project::More(_) => ProjectWord::Counts,
        Project::Lower => match now.filter(|now| setting.value.as_f64() > now.as_f64()) {
            Some(now) => ProjectWord::Ignored(format!("it may only be less than {now}")),
            None => ProjectWord::Counts,
        },
        Project::OwnLower => {
            let usual = now.as_ref().and_then(duration).unwrap_or(USUAL_TIMEOUT);
            match duration(&setting.value) {
                Some(time) if time < usual => ProjectWord::CountsForOwn,
                Some(time) if time == usual => ProjectWord::Same,
                _ => ProjectWord::Ignored(format!("it may only be shorter than {usual:?}")),
            }
        }
    }
}

/// Whether a list lacks something that another one has.
pub(super) fn lacks(list: &Value, other: Option<&Value>) -> bool {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let has = items(list);
    other.map(items).unwrap_or_default().iter().any(|item| !has.contains(item))
}

fn ignored(said: WrittenValue, message: String, help: &str) -> Finding {
    Finding {
        code: Code::Ignored,
        severity: Severity::Warning,
        value: said.shown,
        message,
        help: Some(help.to_owned()),
        spot: Some(said.spot),
        remedy: None,
    }
}

/// Applies the settings of the command line.
fn override_with(config: &mut Config, overrides: &Overrides, problems: &mut Vec<Problem>) {
    let Overrides { enabled, timeout, settings, tightening } = overrides;
    let enabled = enabled.map(|enabled| ("hooks.enabled", Value::from(enabled)));
    let timeout = timeout.map(|timeout| ("hooks.timeout", milliseconds(timeout)));
    let settings = settings.iter().map(|(path, value)| (path.as_str(), value.clone()));
    for (path, value) in settings.chain(enabled).chain(timeout) {
        let Ok(key) = find_key(path) else { continue };
        let setting = Setting { path: path.to_owned(), key, value, origin: Origin::Flag };
        let objection = match objection(config, &setting) {
            Some(why) => Some((why, "leave it out")),
            None => {
                loose(config, &setting, *tightening).map(|why| (why.to_owned(), "a person may set it in config.yaml"))
            }
        };
        if let Some((why, help)) = objection {
            problems.push(unheard(Path::new("the command line"), path, &why, help));
            config.ignored.push(IgnoredValue { setting, why });
            continue;
        }
        config.own.retain(|own| own.key != key);
        config.hear(setting);
    }
}

/// Why the command line may not set this: it is a guard, and would become looser than in the files.
///
/// Rules about approvals are never loosened for one run. An agent behind a process that hides it looks like a person,
/// and an approval lasts longer than the run.
fn loose(config: &Config, setting: &Setting, by_agent: bool) -> Option<&'static str> {
    let key = setting.key;
    let about_approvals = matches!(key.project, Project::Only(..)) && config.said(key.path).is_some();
    let is_loose = key.safety == Safety::Critical
        && (by_agent || about_approvals)
        && config.value(key.path) != setting.value
        && matches!(judge(config, setting), ProjectWord::Ignored(_));
    is_loose.then_some(if by_agent { "an agent may only make it stricter" } else { "only a file may make it looser" })
}

pub(super) fn unheard(from: &Path, path: &str, why: &str, help: &str) -> Problem {
    Problem {
        field: path.to_owned(),
        help: Some(help.to_owned()),
        ..whole_file(Code::Ignored, Severity::Warning, from, format!("`{path}` is ignored: {why}"))
    }
}

/// Removes possible secrets from a problem: the value and its line are hidden if a name suggests a secret. They are
/// also hidden for settings of extensions, because only a manifest knows which of those are secret.
pub(crate) fn discreet(problem: Problem) -> Problem {
    let known = |word: &str| all().any(|key| key.path.rsplit('.').next() == Some(word));
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    // This includes misspelt names; a long word is not a misspelling.
    let is_settings = |word: &str| word.len() < 16 && strsim::damerau_levenshtein(word, "settings") <= 2;
    let promises = |word: &str| (looks_secret(word) && !known(word)) || is_settings(word);
    let betrays = |text: &str| text.split(|letter| !is_part(letter)).any(promises);
    let line = problem.snippet.as_ref().map(|snippet| snippet.text.as_str()).unwrap_or_default();
    if !betrays(&problem.field) && !betrays(line) && !problem.value.as_deref().is_some_and(betrays) {
        return problem;
    }
    Problem { value: problem.value.map(|_| "(hidden)".to_owned()), snippet: None, ..problem }
}

/// Why a file of this layer may not set this value.
pub(crate) fn refusal(places: &Places, layer: Layer, key: &'static Key, path: &str, node: &Node) -> Option<String> {
    let mut problems = Vec::new();
    let mut config = Config::default();
    policy::read(places, &mut config, &mut problems);
    let (ReadValue::Exact(value) | ReadValue::Converted(value)) = key.kind.read(node) else { return None };
    let setting = Setting { path: path.to_owned(), key, value, origin: Origin::Default };
    if let Some(why) = objection(&config, &setting) {
        return Some(why);
    }
    if layer == Layer::User {
        return None;
    }
    match judge(&user_config(places, &mut StampSet::default(), &mut problems), &setting) {
        ProjectWord::Ignored(why) => Some(why),
        ProjectWord::Counts | ProjectWord::CountsForOwn | ProjectWord::Same => None,
    }
}
