//! Skills: prompts with blanks to fill in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::check::Check;
use super::name::{PLAIN, is_plain};
use crate::file::{self, parse_yaml, whole_file};
use crate::node::{Cursor, Node};
use crate::path::{self, Walked};
use crate::problem::{Problem, Severity};
use crate::value::{self, Reading};

const KEYS: &[&str] = &["name", "description", "prompt"];
/// Larger skill files are not read.
const LARGEST_FILE: u64 = 1 << 20;
/// More skill files in one folder are not looked at.
const MOST_FILES: usize = 200;

/// A prompt that an extension brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The prompt, with `{{placeholders}}`.
    pub prompt: String,
    /// Its own file, where it does not stand in the manifest.
    pub file: Option<PathBuf>,
}

impl Skill {
    /// The names of the placeholders, each once, in the order in which they are met.
    pub fn placeholders(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for piece in pieces(&self.prompt) {
            if let Piece::Blank(name) = piece
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// The prompt with every placeholder filled in, in a single pass: what a value holds stays as it is. Otherwise the
    /// names of those that have no value.
    ///
    /// ```
    /// use ollm_catalog::Skill;
    /// let skill = Skill { name: "pr".into(), description: "…".into(), prompt: "Title: {{ title }}".into(), file: None };
    /// let values = [("title".to_owned(), "{{x}}".to_owned())].into();
    /// assert_eq!(skill.render(&values), Ok("Title: {{x}}".to_owned()));
    /// assert_eq!(skill.render(&Default::default()), Err(vec!["title"]));
    /// ```
    pub fn render(&self, values: &BTreeMap<String, String>) -> Result<String, Vec<&str>> {
        let mut text = String::with_capacity(self.prompt.len());
        let mut missing = Vec::new();
        for piece in pieces(&self.prompt) {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Blank(name) => match values.get(name) {
                    Some(value) => text.push_str(value),
                    None if missing.contains(&name) => {}
                    None => missing.push(name),
                },
            }
        }
        if missing.is_empty() { Ok(text) } else { Err(missing) }
    }
}

enum Piece<'a> {
    Text(&'a str),
    Blank(&'a str),
}

/// A prompt in pieces; braces around anything but a name are text.
fn pieces(prompt: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = prompt;
    while let Some((before, after)) = rest.split_once("{{") {
        let blank = after.split_once("}}").filter(|(name, _)| is_blank(name.trim()));
        if let Some((name, after)) = blank {
            pieces.extend([Piece::Text(before), Piece::Blank(name.trim())]);
            rest = after;
        } else {
            // One brace further there may be a placeholder: `{{{name}}`.
            let (text, after) = rest.split_at(before.len() + 1);
            pieces.push(Piece::Text(text));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn is_blank(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-.".contains(letter))
}

/// The skills of a manifest.
pub(super) fn read(check: &mut Check<'_>, at: &Cursor<'_>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    check.list(at, |check, item| {
        let Some(skill) = read_one(check, item) else { return };
        if skills.iter().any(|known| known.name == skill.name) {
            let message = format!("there are two skills named `{}`", skill.name);
            return check.refuse(item, message, Some("rename one of them"));
        }
        skills.push(skill);
    });
    skills
}

fn read_one(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<Skill> {
    let (mut name, mut description, mut prompt) = (None, None, None);
    check.map(at, "a skill", |check, key, value| match key {
        "name" => {
            name = check.words(value);
            if name.as_deref().is_some_and(|name| !is_plain(name)) {
                check.refuse(value, "that cannot be the name of a skill", Some(PLAIN));
            }
        }
        "description" => description = check.words(value),
        "prompt" => prompt = check.words(value),
        _ => check.unknown(value, KEYS),
    });
    check.demand(at, "the skill", "name", name.is_some());
    check.demand(at, "the skill", "description", description.is_some());
    check.demand(at, "the skill", "prompt", prompt.is_some());
    Some(Skill { name: name?, description: description?, prompt: prompt?, file: None })
}

/// The skills that have files of their own: `skills/*.md`. One that cannot be read hides no other.
pub(super) fn in_folder(root: &Path) -> (Vec<Skill>, Vec<Problem>) {
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    let Ok(entries) = fs::read_dir(root.join("skills")) else { return (skills, problems) };
    let mut names: Vec<PathBuf> = entries.flatten().map(|entry| PathBuf::from(entry.file_name())).collect();
    names.retain(|name| name.extension().is_some_and(|extension| extension == "md"));
    names.sort_unstable();
    for name in names.iter().take(MOST_FILES) {
        match read_file(root, name) {
            Ok(skill) => skills.push(skill),
            Err(problem) => problems.push(*problem),
        }
    }
    (skills, problems)
}

fn read_file(root: &Path, name: &Path) -> Result<Skill, Box<Problem>> {
    let written = Path::new("skills").join(name);
    let path = path::inside(root, &written.to_string_lossy(), &Walked::default()).map_err(|outside| {
        let message = format!("it leads out of the extension, to {}; the skill is not loaded", outside.path.display());
        Box::new(whole_file(Severity::Error, &root.join(&written), message))
    })?;
    let wrong = |message: &str| {
        let help = Some("begin it with ---, `description: …`, --- and put the prompt below".to_owned());
        let message = format!("{message}; the skill is not loaded");
        Box::new(Problem { help, ..whole_file(Severity::Error, &path, message) })
    };
    let text = file::text(&path, LARGEST_FILE)?.ok_or_else(|| wrong("it is gone"))?;
    let (head, prompt) = front_matter(&text).ok_or_else(|| wrong("it has no front matter"))?;
    let head =
        parse_yaml(head).map_err(|broken| wrong(&format!("its front matter is not YAML: {}", broken.message)))?;
    let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = field(&head, "name").unwrap_or(stem);
    if !is_plain(&name) {
        return Err(wrong(&format!("`{name}` cannot be the name of a skill ({PLAIN})")));
    }
    let description = field(&head, "description").ok_or_else(|| wrong("its front matter has no `description`"))?;
    if prompt.trim().is_empty() {
        return Err(wrong("it has no prompt"));
    }
    Ok(Skill { name, description, prompt: prompt.trim().to_owned(), file: Some(path) })
}

/// What stands between the two lines of dashes, and what stands below.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((rest.get(..at)?, rest.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn field(head: &Node, key: &str) -> Option<String> {
    let root = Cursor::root(head);
    let at = root.get(key)?;
    match value::word(at.node) {
        Reading::Exact(text) | Reading::Converted(text) => Some(text),
        Reading::Wrong => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_between_double_braces_are_placeholders() {
        let skill =
            |prompt: &str| Skill { name: "s".into(), description: "d".into(), prompt: prompt.into(), file: None };
        let values = BTreeMap::from([("a".to_owned(), "{{b}}".to_owned()), ("b".to_owned(), "B".to_owned())]);
        for (prompt, rendered) in [
            ("{{a}}{{b}}", "{{b}}B"),
            ("{{ b }}", "B"),
            ("{{{b}}}", "{B}"),
            ("{{", "{{"),
            ("{{}}", "{{}}"),
            ("{{b", "{{b"),
            ("{{no name}} {{b}}", "{{no name}} B"),
            ("{{\n{{b}}", "{{\nB"),
        ] {
            assert_eq!(skill(prompt).render(&values).as_deref(), Ok(rendered), "{prompt}");
        }
        assert_eq!(skill("{{x}}{{b}}{{y}}{{x}}").render(&values), Err(vec!["x", "y"]));
        assert_eq!(skill("{{x}}{{b}}{{x}}").placeholders(), ["x", "b"]);
    }

    #[test]
    fn front_matter_stands_between_two_lines_of_dashes() {
        assert_eq!(front_matter("---\na: 1\n---\nbody\n"), Some(("a: 1\n", "body\n")));
        assert_eq!(front_matter("---\r\na: 1\r\n---\r\nbody"), Some(("a: 1\r\n", "body")));
        for text in ["", "---", "---\na: 1\n", "a: 1\n---\n", "--- x\n---\n"] {
            assert_eq!(front_matter(text), None, "{text}");
        }
    }
}
