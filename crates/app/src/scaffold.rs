//! Hooks and extensions to begin with: a working script for each purpose and language, its declaration, and golden cases.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ollm_protocol::dialect::{OLLM, UnknownEvent, by_spelling, event_named};
use ollm_shell::shell_word;
use serde_json::{Map, Value, json};

use crate::error::{AppError, ErrorKind};

/// Where an extension keeps the scripts of its hooks, below its folder.
pub const HOOKS: &str = "hooks";

/// What a scaffolded hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Refuse a tool call that must not happen.
    Validation,
    /// Keep a log of tool calls.
    Logging,
    /// Tell the agent something before it begins.
    Context,
}

/// What it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The shell.
    Sh,
    /// Python 3.
    Python,
    /// JavaScript, for Node.
    Node,
    /// Rust, built by `cargo`.
    Rust,
}

/// A hook to begin with.
#[derive(Clone, Copy, Debug)]
pub struct Scaffold<'a> {
    /// Its name, and that of its extension.
    pub name: &'a str,
    /// What it is for.
    pub purpose: Purpose,
    /// What it is written in.
    pub language: Language,
}

/// A file to write, below the folder of the hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Where, in that folder.
    pub path: String,
    /// What is in it.
    pub content: String,
}

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("scaffold/templates/", $name))
    };
}

impl Purpose {
    /// The event such a hook is for.
    fn event(self) -> &'static str {
        match self {
            Purpose::Validation => "before_tool",
            Purpose::Logging => "after_tool",
            Purpose::Context => "before_agent",
        }
    }

    /// What such a hook does.
    fn description(self) -> &'static str {
        match self {
            Purpose::Validation => "Refuses shell commands that force a push",
            Purpose::Logging => "Keeps a log of tool calls",
            Purpose::Context => "Tells the agent which branch is checked out",
        }
    }

    /// Golden cases: their name, their data, and what is expected.
    fn cases(self) -> Vec<(&'static str, Value, Value)> {
        let shell = |command: &str| json!({"tool_name": "shell", "args": {"command": command}});
        match self {
            Purpose::Validation => vec![
                ("refuses-a-forced-push", shell("git push --force"), json!({"flow": "block", "reason": "forced push"})),
                ("lets-a-push-pass", shell("git push"), json!({"flow": "no_opinion"})),
            ],
            Purpose::Logging => vec![("never-stands-in-the-way", shell("ls"), json!({"flow": "no_opinion"}))],
            Purpose::Context => {
                vec![("names-the-branch", json!({"prompt": "Tidy up"}), json!({"systemMessage": "branch"}))]
            }
        }
    }
}

impl Language {
    fn script(self, purpose: Purpose) -> &'static str {
        match (self, purpose) {
            (Language::Sh, Purpose::Validation) => template!("validation.sh"),
            (Language::Sh, Purpose::Logging) => template!("logging.sh"),
            (Language::Sh, Purpose::Context) => template!("context.sh"),
            (Language::Python, Purpose::Validation) => template!("validation.py"),
            (Language::Python, Purpose::Logging) => template!("logging.py"),
            (Language::Python, Purpose::Context) => template!("context.py"),
            (Language::Node, Purpose::Validation) => template!("validation.mjs"),
            (Language::Node, Purpose::Logging) => template!("logging.mjs"),
            (Language::Node, Purpose::Context) => template!("context.mjs"),
            (Language::Rust, Purpose::Validation) => template!("validation.rs.template"),
            (Language::Rust, Purpose::Logging) => template!("logging.rs.template"),
            (Language::Rust, Purpose::Context) => template!("context.rs.template"),
        }
    }

    /// Where the script goes.
    fn path(self, name: &str) -> String {
        match self {
            Language::Sh => format!("{name}.sh"),
            Language::Python => format!("{name}.py"),
            Language::Node => format!("{name}.mjs"),
            Language::Rust => format!("{name}/src/main.rs"),
        }
    }

    /// The command and its arguments.
    fn command(self, name: &str) -> (String, Vec<String>) {
        let program = match self {
            Language::Sh => "sh",
            Language::Python => "python3",
            Language::Node => "node",
            Language::Rust => return (format!("./{name}/target/release/{name}"), Vec::new()),
        };
        (program.to_owned(), vec![self.path(name)])
    }

    /// What must be done before the hook in this folder can run.
    pub fn build_command(self, folder: &Path, name: &str) -> Option<String> {
        let manifest = folder.join(name).join("Cargo.toml").display().to_string();
        (self == Language::Rust).then(|| format!("cargo build --release --manifest-path {}", shell_word(&manifest)))
    }

    /// What must be done before the hook of the extension in this folder can run.
    pub fn install_command(self, folder: &Path, name: &str) -> Option<String> {
        let package = folder.join(HOOKS).join(name).display().to_string();
        let (package, root) = (shell_word(&package), folder.display().to_string());
        let target = "--target-dir \"$(mktemp -d)\" --no-track";
        (self == Language::Rust)
            .then(|| format!("cargo install --path {package} --root {} {target}", shell_word(&root)))
    }
}

impl Scaffold<'_> {
    /// The files of a hook in a folder of hooks, for its usual event or another one in any dialect's spelling.
    pub fn hook(&self, event: Option<&str>) -> Result<Vec<NewFile>, UnknownEvent> {
        let event = event.unwrap_or_else(|| self.purpose.event());
        let named = event_named(event)?;
        let mut entry = self.entry("");
        if let Some(map) = entry.as_object_mut() {
            // Only events about tools have tools to choose among.
            if !named.kinds.iter().all(|kind| kind.subject_field() == Some("tool_name")) {
                map.shift_remove("matcher");
            }
            // The spelling of an event chooses the dialect; the scripts speak this one.
            if by_spelling(event).name() != OLLM.name() {
                map.insert("dialect".to_owned(), OLLM.name().into());
            }
        }
        let mut files = self.scripts();
        files.extend(self.cases(event));
        files.extend(self.sample(event));
        // The declaration comes last: what it names is there by then.
        let declared = json!({"hooks": Map::from_iter([(event.to_owned(), json!([entry]))])});
        files.push(NewFile { path: format!("{}.json", self.name), content: format!("{declared:#}\n") });
        Ok(files)
    }

    /// The files of an extension with this one hook, in the extension's own folder.
    pub fn extension(&self) -> Vec<NewFile> {
        let Scaffold { name, purpose, language } = *self;
        let below = |file: NewFile| NewFile { path: format!("{HOOKS}/{}", file.path), ..file };
        let mut files: Vec<NewFile> = self.scripts().into_iter().map(below).collect();
        files.extend(self.cases(purpose.event()));
        let mut entry = self.entry(HOOKS);
        // What a compiler leaves behind is no part of an extension: a program of Rust is installed into `bin`.
        if let (Language::Rust, Some(map)) = (language, entry.as_object_mut()) {
            map.insert("command".to_owned(), format!("./bin/{name}").into());
        }
        // A hook of an extension runs in a box, which keeps it from writing elsewhere.
        if let (Purpose::Logging, Some(map)) = (purpose, entry.as_object_mut()) {
            map.insert("permissions".to_owned(), json!({"write": ["~/.local/state/ollm-hooks/"]}));
        }
        let manifest = json!({
            "manifestVersion": 1,
            "name": name,
            "version": "0.1.0",
            "description": purpose.description(),
            "hooks": Map::from_iter([(purpose.event().to_owned(), json!([entry]))]),
            "settings": [],
            "skills": [],
        });
        // The manifest comes last, too.
        files.push(NewFile { path: "manifest.json".to_owned(), content: format!("{manifest:#}\n") });
        files
    }

    /// The entry of the hook, as it stands in a hook file or a manifest; paths are relative to `folder`.
    fn entry(&self, folder: &str) -> Value {
        let Scaffold { name, purpose, language } = *self;
        let (command, args) = language.command(name);
        let prefixed = |path: String| if folder.is_empty() { path } else { format!("{folder}/{path}") };
        let args: Vec<String> = args.into_iter().map(prefixed).collect();
        let mut entry = json!({"name": name, "description": purpose.description(), "command": command});
        if let Some(map) = entry.as_object_mut() {
            if !args.is_empty() {
                map.insert("args".to_owned(), args.into());
            }
            if purpose == Purpose::Validation {
                map.insert("matcher".to_owned(), "shell".into());
            }
        }
        entry
    }

    fn scripts(&self) -> Vec<NewFile> {
        let Scaffold { name, purpose, language } = *self;
        let named = |text: &str| text.replace("__NAME__", name);
        let mut files = vec![NewFile { path: language.path(name), content: named(language.script(purpose)) }];
        if language == Language::Rust {
            let content = named(template!("Cargo.toml.template"));
            files.push(NewFile { path: format!("{name}/Cargo.toml"), content });
        }
        files
    }

    fn cases(&self, event: &str) -> impl Iterator<Item = NewFile> {
        self.purpose.cases().into_iter().map(move |(case, data, expect)| {
            let content = json!({"event": event, "data": data, "expect": expect});
            NewFile { path: format!("cases/{}/{case}.json", self.name), content: format!("{content:#}\n") }
        })
    }

    /// The event of the first case by itself, as `ollm hook run` reads it.
    fn sample(&self, event: &str) -> Option<NewFile> {
        let (_, data, _) = self.purpose.cases().into_iter().next()?;
        let content = format!("{:#}\n", json!({"event": event, "data": data}));
        Some(NewFile { path: format!("cases/{}.event.json", self.name), content })
    }
}

/// Whether a name can be a file, a part of an id and a word on a command line.
pub fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.len() <= 64
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}

/// Writes files that are not there yet, and returns their paths; nothing is written when one of them is.
pub fn write_new(folder: &Path, files: &[NewFile]) -> Result<Vec<PathBuf>, AppError> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    if let Some(taken) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(AppError::usage(format!("{} is there already", taken.display()))
            .hint("choose another name, or move the file away"));
    }
    let is_new = !folder.exists();
    for (index, (path, file)) in paths.iter().zip(files).enumerate() {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| create(path, &file.content));
        if let Err(error) = written {
            take_back(folder, paths.get(..=index).unwrap_or(&paths), is_new);
            let message = format!("{} cannot be written: {error}", path.display());
            return Err(AppError::new(ErrorKind::Environment, message).hint("nothing of it was left behind"));
        }
    }
    Ok(paths)
}

/// Removes what was written so far: half of it would look like the whole. Folders go only where nothing else is in them.
fn take_back(folder: &Path, paths: &[PathBuf], is_new: bool) {
    for path in paths {
        // The last one may not be there; what cannot be removed stays.
        let _ = fs::remove_file(path);
        path.ancestors().skip(1).take_while(|above| *above != folder).for_each(|above| drop(fs::remove_dir(above)));
    }
    if is_new {
        let _ = fs::remove_dir(folder);
    }
}

fn create(path: &Path, content: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scaffold_has_a_script_and_cases_under_its_own_name() {
        for purpose in [Purpose::Validation, Purpose::Logging, Purpose::Context] {
            for language in [Language::Sh, Language::Python, Language::Node, Language::Rust] {
                let scaffold = Scaffold { name: "mine", purpose, language };
                let hook = scaffold.hook(None).unwrap();
                assert!(hook.iter().all(|file| file.path.contains("mine")));
                for files in [hook, scaffold.extension()] {
                    assert!(files.iter().all(|file| !file.content.contains("__NAME__")));
                    assert!(files.iter().any(|file| file.path.starts_with("cases/mine/")));
                }
            }
        }
    }

    #[test]
    fn names_that_are_paths_or_options_are_not_plain() {
        for (name, plain) in
            [("no-push", true), ("a_1", true), ("", false), ("-x", false), ("a/b", false), ("..", false)]
        {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
