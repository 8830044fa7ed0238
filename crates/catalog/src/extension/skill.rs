//! Skills: prompts with placeholders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::Code;

use super::check::Check;
use super::key::{ManifestPart, RowKind, required};
use super::name::{PLAIN, is_plain};
use crate::file::{self, Document, Finding, ParsedText, Syntax, SyntaxFault, whole_file};
use crate::node::{Cursor, Node, Part, Spot};
use crate::path::{self, PathCache};
use crate::problem::{Problem, Severity};
use crate::value::{self, ReadValue};

/// A skill in the manifest.
pub(super) const SKILL: ManifestPart<Skill> = ManifestPart {
    name: "skills",
    what: "a skill",
    example: r#"{"name": "review", "description": "…", "prompt": "…"}"#,
    refusal: None,
    promise: None,
    rows: &[
        required("name", "What it is called.", RowKind::Name(|skill, name| skill.name = name)),
        required("description", "What it is for.", RowKind::Words(|skill, text| skill.description = text)),
        required("prompt", "The prompt, with `{{placeholders}}`.", RowKind::Words(|skill, text| skill.prompt = text)),
    ],
};

/// The largest skill file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;
/// The most skill files in one folder.
const MOST_FILES: usize = 200;

/// A prompt that an extension brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The prompt, with `{{placeholders}}`.
    pub prompt: String,
    /// Its own file, if it is not in the manifest.
    pub file: Option<PathBuf>,
}

impl Skill {
    /// The names of the placeholders in order of first use, each once.
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

    /// Fills in every placeholder in one pass; placeholders in a value stay unchanged. The error names the placeholders
    /// without a value.
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

/// A prompt in pieces. Braces around anything but a name are text.
fn pieces(prompt: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = prompt;
    while let Some((before, after)) = rest.split_once("{{") {
        let blank = after.split_once("}}").filter(|(name, _)| is_blank(name.trim()));
        if let Some((name, after)) = blank {
            pieces.extend([Piece::Text(before), Piece::Blank(name.trim())]);
            rest = after;
        } else {
            // There may be a placeholder one brace later: `{{{name}`.
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
    let mut skill = Skill::default();
    SKILL.read(check, at, &mut skill);
    // Missing parts were already reported.
    let whole = [&skill.name, &skill.description, &skill.prompt].iter().all(|text| !text.is_empty());
    whole.then_some(skill)
}

/// The skills in files of their own, `skills/*.md`, each with its place. An unreadable one hides no other.
pub(super) fn in_folder(root: &Path) -> (Vec<(Skill, SkillFile)>, Vec<Problem>) {
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    let Ok(entries) = fs::read_dir(root.join("skills")) else { return (skills, problems) };
    let mut names: Vec<PathBuf> = entries.flatten().map(|entry| PathBuf::from(entry.file_name())).collect();
    names.retain(|name| name.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")));
    names.sort_unstable();
    for name in names.iter().take(MOST_FILES) {
        match read_file(root, name) {
            Ok(read) => skills.push(read),
            Err(problem) => problems.push(*problem),
        }
    }
    (skills, problems)
}

/// A file with a skill in it.
#[derive(Debug)]
pub(super) struct SkillFile {
    path: PathBuf,
    text: String,
    /// The length of the front matter, including the line of dashes above it.
    head: usize,
    /// The place of the name, if there is one.
    name: Option<Spot>,
    /// The parsed front matter, once it is read.
    parsed: Option<ParsedText>,
}

impl SkillFile {
    /// The problem that another skill has its name.
    pub(super) fn taken(self, skill: &Skill) -> Problem {
        let message = format!("there is another skill named `{}`", skill.name);
        *self.wrong(self.name.clone(), Some(skill.name.clone()), &message, "rename one of them")
    }

    /// A problem with its front matter.
    fn wrong(&self, spot: Option<Spot>, value: Option<String>, message: &str, help: &str) -> Box<Problem> {
        let message = format!("{message}; the skill is not loaded");
        let (severity, help) = (Severity::Error, Some(help.to_owned()));
        let finding = Finding {
            code: Code::WrongValue,
            severity,
            spot,
            value,
            message: message.clone(),
            help: help.clone(),
            remedy: None,
        };
        let document = |parsed| Document::parsed(&self.path, Syntax::Yaml, self.head(), parsed);
        let located = self.parsed.as_ref().and_then(|parsed| document(parsed).problems(vec![finding]).pop());
        let located = located.filter(|problem| problem.line > 0);
        // A missing key has no place of its own.
        Box::new(located.unwrap_or_else(|| self.at_line(1, message, help)))
    }

    fn at_line(&self, line: usize, message: String, help: Option<String>) -> Problem {
        Problem { help, ..file::problem_at(Code::WrongValue, &self.path, &self.text, line, message) }
    }

    fn head(&self) -> &str {
        self.text.get(..self.head).unwrap_or_default()
    }
}

const BEGIN: &str = "begin it with ---, `description: …`, --- and put the prompt below";

const CLOSE: &str = "put a line of --- below it, and the prompt below that";

fn read_file(root: &Path, name: &Path) -> Result<(Skill, SkillFile), Box<Problem>> {
    let written = Path::new("skills").join(name);
    let path = path::inside(root, &written.to_string_lossy(), &PathCache::default()).map_err(|outside| {
        let (why, help) = outside.of_extension();
        let place = whole_file(
            Code::UnsafePath,
            Severity::Error,
            &root.join(&written),
            format!("{why}; the skill is not loaded"),
        );
        Box::new(Problem { help: Some(help.to_owned()), ..place })
    })?;
    let gone = || {
        Box::new(whole_file(
            Code::UnreadableFile,
            Severity::Error,
            &path,
            "it is gone; the skill is not loaded".to_owned(),
        ))
    };
    let text = file::text(&path, LARGEST_FILE)?.ok_or_else(gone)?;
    let mut file = SkillFile { path, text, head: 0, name: None, parsed: None };
    let Some((head, body)) = front_matter(&file.text) else {
        let begun = file.text.lines().next().is_some_and(|line| line.trim_end() == "---");
        let (what, help) =
            if begun { ("its front matter has no end", CLOSE) } else { ("it has no front matter", BEGIN) };
        return Err(file.wrong(None, None, what, help));
    };
    file.head = head;
    let parsed = match file::parse_marked(file.head(), Syntax::Yaml) {
        Ok(parsed) => parsed,
        Err(broken) => {
            let document = Document::new(&file.path, Syntax::Yaml, file.text.clone());
            let message = format!("{}; the skill is not loaded", broken.message);
            return Err(Box::new(document.broken(SyntaxFault { message, ..broken })));
        }
    };
    let node = parsed.node.clone();
    file.parsed = Some(parsed);
    let root = Cursor::root(&node);
    let prompt = file.text.get(body..).unwrap_or_default().trim();
    if prompt.is_empty() {
        let below = file.head().lines().count() + 1;
        let message = "it has no prompt; the skill is not loaded".to_owned();
        return Err(Box::new(file.at_line(below, message, Some("put the prompt below this line".to_owned()))));
    }
    let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (name, description) = fields(&file, &root, stem)?;
    let skill = Skill { name, description, prompt: prompt.to_owned(), file: Some(file.path.clone()) };
    let name = root.get("name").map(|at| at.spot(Part::Value));
    Ok((skill, SkillFile { name, ..file }))
}

/// The name, which defaults to the file's, and the description.
fn fields(file: &SkillFile, root: &Cursor<'_>, stem: String) -> Result<(String, String), Box<Problem>> {
    if !matches!(root.node, Node::Map(_) | Node::Null) {
        let message = format!("its front matter must be a map, not {}", root.node.kind());
        return Err(file.wrong(Some(root.spot(Part::Value)), None, &message, BEGIN));
    }
    let text = |key: &str| {
        let Some(at) = root.get(key) else { return Ok(None) };
        match value::word(at.node) {
            ReadValue::Exact(text) | ReadValue::Converted(text) => Ok(Some((text, at.spot(Part::Value)))),
            ReadValue::Wrong => {
                let message = format!("`{key}` must be text that is not empty, not {}", at.node.kind());
                Err(file.wrong(Some(at.spot(Part::Value)), Some(at.node.shown()), &message, "write some words"))
            }
        }
    };
    let named = text("name")?;
    let name = named.as_ref().map_or(stem, |(name, _)| name.clone());
    if !is_plain(&name) {
        let message = format!("`{name}` cannot be the name of a skill");
        return Err(file.wrong(named.map(|(_, spot)| spot), Some(name), &message, PLAIN));
    }
    let Some((description, _)) = text("description")? else {
        let help = "add `description: …`, which says what it is for";
        return Err(file.wrong(Some(root.spot(Part::Value)), None, "its front matter has no `description`", help));
    };
    Ok((name, description))
}

/// The end of the front matter, which begins with a line of dashes, and the start of the text below it.
pub(super) fn front_matter(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = text.len() - rest.len();
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((at, at + line.len()));
        }
        at += line.len();
    }
    None
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
        let parts = |text: &'static str| front_matter(text).map(|(head, body)| (&text[..head], &text[body..]));
        assert_eq!(parts("---\na: 1\n---\nbody\n"), Some(("---\na: 1\n", "body\n")));
        assert_eq!(parts("---\r\na: 1\r\n---\r\nbody"), Some(("---\r\na: 1\r\n", "body")));
        for text in ["", "---", "---\na: 1\n", "a: 1\n---\n", "--- x\n---\n"] {
            assert_eq!(front_matter(text), None, "{text}");
        }
    }
}
