//! Completes input in a conversation: commands, their words, names of known things, and files after `@`.

use std::path::Path;

use ollm_app::model::{self, ModelConfig};
use ollm_app::{App, AppContext};

use super::slash::{COMMANDS, Names};
use crate::arguments::{NameSource, names};

/// The limit of candidates.
const MOST: usize = 200;

/// The candidates for the word at the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The position where the completed word begins, in bytes.
    pub(crate) start: usize,
    /// The candidates as whole words.
    pub(crate) candidates: Vec<String>,
}

impl Completion {
    /// The longest common prefix of all candidates.
    pub(crate) fn common(&self) -> &str {
        let Some((first, rest)) = self.candidates.split_first() else { return "" };
        let shared = |other: &String| first.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
        let length = rest.iter().map(shared).min().unwrap_or(first.len());
        first.get(..first.floor_char_boundary(length)).unwrap_or_default()
    }
}

/// The completion of this text, in a conversation whose model was typed like this; `None` if there is none.
///
/// The part of a name before the colon can be left out: the provider of a model, the source of a hook.
pub(crate) fn complete(before: &str, typed_model: Option<&str>, context: &AppContext) -> Option<Completion> {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = before.get(start..)?;
    let mut candidates = match word.strip_prefix('@') {
        Some(path) => files(path, &context.cwd).into_iter().map(|path| format!("@{path}")).collect(),
        None if before.starts_with('/') => words(before.get(..start)?, typed_model, context),
        None => Vec::new(),
    };
    let bare = |one: &str| one.split_once(':').is_some_and(|(_, bare)| bare.starts_with(word));
    candidates.retain(|one| one.starts_with(word) || bare(one));
    candidates.sort_unstable();
    candidates.dedup();
    candidates.truncate(MOST);
    (!candidates.is_empty()).then_some(Completion { start, candidates })
}

/// The words that may follow these words.
fn words(before: &str, typed_model: Option<&str>, context: &AppContext) -> Vec<String> {
    let given: Vec<&str> = before.split_whitespace().collect();
    let mut found = Vec::new();
    for row in COMMANDS {
        let usage: Vec<&str> = row.usage.split_whitespace().collect();
        let fits = |(word, part): (&&str, &&str)| is_name(part) || part.split('|').any(|one| one == *word);
        let Some(next) = usage.get(given.len()) else { continue };
        if !given.iter().zip(&usage).all(fits) {
            continue;
        }
        if is_name(next) {
            found.extend(match row.names {
                Names::Models => models(typed_model, context),
                names => named(names, context),
            });
        } else if !next.starts_with(['[', '…']) {
            found.extend(next.split('|').map(str::to_owned));
        }
    }
    found
}

/// Whether a part of a usage stands for a name.
fn is_name(part: &str) -> bool {
    part.trim_matches(['[', ']']).chars().all(|char| char.is_ascii_uppercase())
}

fn named(source: Names, context: &AppContext) -> Vec<String> {
    match source {
        Names::None | Names::Models => Vec::new(),
        Names::Approvals => ollm_agent::Approval::ALL.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Names::Hooks => names(NameSource::Hooks, context),
        Names::Servers => names(NameSource::Servers, context),
        Names::Extensions => names(NameSource::Extensions, context),
        Names::Sessions => names(NameSource::Sessions, context),
        Names::Skills => names(NameSource::Skills, context),
    }
}

/// The models that are named or served.
fn models(typed: Option<&str>, context: &AppContext) -> Vec<String> {
    let Ok(app) = App::load(context) else { return Vec::new() };
    model::names(typed, &ModelConfig::of(&app.config), context)
}

/// The files and folders with this prefix, relative to the working folder.
fn files(typed: &str, cwd: &Path) -> Vec<String> {
    let (folder, start) = typed.rsplit_once('/').map_or(("", typed), |(folder, start)| (folder, start));
    let looked_in = if typed.starts_with('/') { Path::new("/").join(folder) } else { cwd.join(folder) };
    let prefix = if typed.contains('/') { format!("{folder}/") } else { String::new() };
    let Ok(entries) = std::fs::read_dir(looked_in) else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let is_plain = !name.chars().any(|char| char.is_whitespace() || char.is_control());
        let is_wanted = name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.'));
        if is_plain && is_wanted {
            let end = if entry.path().is_dir() { "/" } else { "" };
            found.push(format!("{prefix}{name}{end}"));
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_beginning_ends_within_no_character() {
        let of = |list: &[&str]| {
            let candidates = list.iter().map(|one| (*one).to_owned()).collect();
            Completion { start: 0, candidates }.common().to_owned()
        };
        assert_eq!(of(&["/hooks"]), "/hooks");
        assert_eq!(of(&["/mcp", "/model"]), "/m");
        assert_eq!(of(&["ä", "å"]), "");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn names_in_a_usage_are_told_from_words() {
        assert!(is_name("ID") && is_name("[NAME]") && !is_name("start|stop") && !is_name("/hooks"));
    }
}
