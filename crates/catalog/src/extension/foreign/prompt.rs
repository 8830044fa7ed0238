//! Converts skills and commands of other agents into our skills: prompts with placeholders.

use std::path::Path;

use serde_json::{Value, json};

use super::super::name::is_plain;
use super::super::skill::front_matter;
use super::{files_below, read};
use crate::file::{Syntax, parse};
use crate::node::{Cursor, Node};

/// The deepest folder with skills. Deeper folders hold files that skills use.
const DEEPEST: usize = 4;
const LONGEST_NAME: usize = 64;

/// A skill with its file. The error says why it is left out.
type FoundSkill = (String, Result<Value, String>);

/// The skills in folders of their own: `skills/NAME/SKILL.md`.
pub(super) fn skills_in(root: &Path, folder: &str) -> Vec<FoundSkill> {
    let files = files_below(root, folder, DEEPEST).into_iter().filter(|file| file.ends_with("/SKILL.md"));
    let skill = |file: String| {
        let stem = file.rsplit('/').nth(1).unwrap_or_default().to_owned();
        (file.clone(), markdown(root, &file, &stem, &typed))
    };
    files.map(skill).collect()
}

/// The commands: `commands/NAME.md`, or `.toml` for Gemini CLI. Folders become part of the name.
pub(super) fn commands_in(root: &Path, folder: &str) -> Vec<FoundSkill> {
    let start = folder.strip_prefix("./").unwrap_or(folder).trim_end_matches('/');
    let command = |file: String| {
        let below = file.strip_prefix(start).unwrap_or(&file).trim_start_matches('/');
        let (stem, kind) = below.rsplit_once('.').unwrap_or((below, ""));
        let stem = stem.replace('/', "-");
        let read = match kind {
            "md" => markdown(root, &file, &stem, &arguments),
            "toml" => table(root, &file, &stem),
            _ => return None,
        };
        Some((file, read))
    };
    files_below(root, start, DEEPEST).into_iter().filter_map(command).collect()
}

/// A file with front matter above the prompt.
fn markdown(
    root: &Path,
    file: &str,
    stem: &str,
    blanks: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Value, String> {
    let text = read(root, file)?.unwrap_or_default();
    let (head, body) = front_matter(&text).map_or(("", text.as_str()), |(head, body)| {
        (text.get(..head).unwrap_or_default(), text.get(body..).unwrap_or_default())
    });
    let node = parse(head, Syntax::Yaml).unwrap_or(Node::Null);
    let root = Cursor::root(&node);
    let field = |key: &str| root.get(key).and_then(|at| at.node.as_text().map(str::to_owned));
    skill(field("name").as_deref().unwrap_or(stem), field("description"), &blanks(body.trim())?)
}

/// A command of Gemini CLI.
fn table(root: &Path, file: &str, stem: &str) -> Result<Value, String> {
    let text = read(root, file)?.unwrap_or_default();
    let node = parse(&text, Syntax::Toml).map_err(|broken| broken.message)?;
    let root = Cursor::root(&node);
    let field = |key: &str| root.get(key).and_then(|at| at.node.as_text().map(str::to_owned));
    let prompt = field("prompt").ok_or("it has no prompt")?;
    if prompt.contains("!{") || prompt.contains("@{") {
        return Err("it runs commands or reads files while it is filled in".to_owned());
    }
    skill(stem, field("description"), &prompt)
}

/// The prompt of a command. In a skill's prompt, `$1` is usually example code.
fn arguments(prompt: &str) -> Result<String, String> {
    let numbered = |number: u8| prompt.contains(&format!("${number}"));
    if (1..=9).any(numbered) {
        return Err("it counts the words that are typed after it".to_owned());
    }
    typed(prompt)
}

/// A prompt with one placeholder for the text that the person typed.
fn typed(prompt: &str) -> Result<String, String> {
    if prompt.contains("!`") {
        return Err("it runs commands while it is filled in".to_owned());
    }
    Ok(prompt.replace("$ARGUMENTS", "{{arguments}}"))
}

fn skill(name: &str, description: Option<String>, prompt: &str) -> Result<Value, String> {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
    let name: String = name.chars().map(plain).take(LONGEST_NAME).collect();
    if !is_plain(&name) {
        return Err(format!("`{name}` cannot be the name of a skill"));
    }
    if prompt.trim().is_empty() {
        return Err("it has no prompt".to_owned());
    }
    let description =
        description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| format!("The command {name}"));
    Ok(json!({"name": name, "description": description, "prompt": prompt}))
}
