//! Creates hooks and extensions to start from: a working script for each purpose and language, its declaration, and
//! golden cases.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ollm_protocol::Code;
use ollm_protocol::dialect::{AGENT, OLLM, UnknownEvent, by_spelling, event_named};
use ollm_shell::{shell_word, single_quoted};
use serde_json::{Map, Value, json};

use crate::error::AppError;

mod purpose;

pub use purpose::Purpose;

/// Where an extension keeps the scripts of its hooks, below its folder.
pub const HOOKS: &str = "hooks";

/// The language of a hook's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The shell.
    Sh,
    /// Bash.
    Bash,
    /// Python 3.
    Python,
    /// JavaScript, for Node.
    Node,
    /// Rust, built by `cargo`.
    Rust,
}

/// A new hook.
#[derive(Clone, Debug)]
pub struct Scaffold<'a> {
    /// Its name, and that of its extension.
    pub name: &'a str,
    /// The purpose of the hook.
    pub purpose: Purpose,
    /// The language of the script.
    pub language: Language,
}

/// A file to write, below the folder of the hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its path in that folder.
    pub path: String,
    /// Its content.
    pub content: String,
    /// Whether it is executable.
    pub executable: bool,
}

impl NewFile {
    fn new(path: impl Into<String>, content: impl Into<String>) -> NewFile {
        NewFile { path: path.into(), content: content.into(), executable: false }
    }

    fn json(path: impl Into<String>, content: &Value) -> NewFile {
        NewFile::new(path, format!("{content:#}\n"))
    }
}

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("scaffold/templates/", $name))
    };
}

impl Language {
    /// The template of the script for a purpose.
    fn template(self, purpose: &Purpose) -> &'static str {
        use Purpose::{AskBefore, Context, ContextFrom, DenyCommands, DenyFiles, Logging};
        match (self, purpose) {
            (Language::Sh | Language::Bash, DenyFiles(_)) => template!("files.sh"),
            (Language::Sh | Language::Bash, DenyCommands(_) | AskBefore(_)) => template!("commands.sh"),
            (Language::Sh | Language::Bash, Logging) => template!("logging.sh"),
            (Language::Sh | Language::Bash, Context) => template!("context.sh"),
            (Language::Sh | Language::Bash, ContextFrom(_)) => template!("file.sh"),
            (Language::Python, DenyFiles(_)) => template!("files.py"),
            (Language::Python, DenyCommands(_) | AskBefore(_)) => template!("commands.py"),
            (Language::Python, Logging) => template!("logging.py"),
            (Language::Python, Context) => template!("context.py"),
            (Language::Python, ContextFrom(_)) => template!("file.py"),
            (Language::Node, DenyFiles(_)) => template!("files.mjs"),
            (Language::Node, DenyCommands(_) | AskBefore(_)) => template!("commands.mjs"),
            (Language::Node, Logging) => template!("logging.mjs"),
            (Language::Node, Context) => template!("context.mjs"),
            (Language::Node, ContextFrom(_)) => template!("file.mjs"),
            (Language::Rust, DenyFiles(_)) => template!("files.rs.template"),
            (Language::Rust, DenyCommands(_) | AskBefore(_)) => template!("commands.rs.template"),
            (Language::Rust, Logging) => template!("logging.rs.template"),
            (Language::Rust, Context) => template!("context.rs.template"),
            (Language::Rust, ContextFrom(_)) => template!("file.rs.template"),
        }
    }

    /// A text as a literal of the language.
    fn literal(self, text: &str) -> String {
        match self {
            Language::Sh | Language::Bash => single_quoted(text),
            // JSON text without control characters has the escapes of all three languages.
            Language::Python | Language::Node | Language::Rust => Value::from(text).to_string(),
        }
    }

    /// A guard's patterns in the form that the script compares.
    fn patterns(self, purpose: &Purpose) -> String {
        let patterns = purpose.patterns();
        if !matches!(self, Language::Sh | Language::Bash) {
            return Value::from(patterns).to_string();
        }
        let case = |pattern: &String| match purpose {
            Purpose::DenyFiles(_) => format!("*/{}/*", shell_case(pattern)),
            // The first word may be a program's path.
            _ => {
                pattern.split_whitespace().enumerate().fold(String::new(), |case, (at, part)| {
                    let before = if at == 0 { "*[' /']" } else { "*' '" };
                    format!("{case}{before}{}' '", shell_case(part))
                }) + "*"
            }
        };
        patterns.iter().map(case).collect::<Vec<_>>().join(" | ")
    }

    /// The path of the script.
    fn path(self, name: &str) -> String {
        match self {
            Language::Sh | Language::Bash => format!("{name}.sh"),
            Language::Python => format!("{name}.py"),
            Language::Node => format!("{name}.mjs"),
            Language::Rust => format!("{name}/src/main.rs"),
        }
    }

    /// The command and its arguments.
    fn command(self, name: &str) -> (String, Vec<String>) {
        let program = match self {
            Language::Sh => "sh",
            Language::Bash => "bash",
            Language::Python => "python3",
            Language::Node => "node",
            Language::Rust => return (format!("./{name}/target/release/{name}"), Vec::new()),
        };
        (program.to_owned(), vec![self.path(name)])
    }

    /// The command that builds the hook in this folder before it can run.
    pub fn build_command(self, folder: &Path, name: &str) -> Option<String> {
        let manifest = folder.join(name).join("Cargo.toml").display().to_string();
        (self == Language::Rust).then(|| format!("cargo build --release --manifest-path {}", shell_word(&manifest)))
    }

    /// The command that builds the hook of the extension in this folder before it can run.
    pub fn install_command(self, folder: &Path, name: &str) -> Option<String> {
        let package = folder.join(HOOKS).join(name).display().to_string();
        let (package, root) = (shell_word(&package), folder.display().to_string());
        let target = "--target-dir \"$(mktemp -d)\" --no-track";
        (self == Language::Rust)
            .then(|| format!("cargo install --path {package} --root {} {target}", shell_word(&root)))
    }
}

impl Scaffold<'_> {
    /// The files of a hook in a folder of hooks, for its usual event or for another event in any dialect's spelling.
    pub fn hook(&self, event: Option<&str>) -> Result<Vec<NewFile>, UnknownEvent> {
        let event = event.unwrap_or_else(|| self.purpose.event());
        let named = event_named(event)?;
        let mut entry = self.entry("");
        if let Some(map) = entry.as_object_mut() {
            // Only events about tools have a tool matcher.
            if !named.kinds.iter().all(|kind| kind.subject_field() == Some("tool_name")) {
                map.shift_remove("matcher");
            }
            self.speak(event, map);
        }
        let mut files = self.scripts();
        files.extend(self.cases(event));
        files.extend(self.sample(event));
        // The declaration comes last, so that everything it names exists by then.
        let declared = json!({"hooks": Map::from_iter([(event.to_owned(), json!([entry]))])});
        files.push(NewFile::json(format!("{}.json", self.name), &declared));
        Ok(files)
    }

    /// Sets the dialect of the script, if the spelling of the event would choose another one.
    fn speak(&self, event: &str, entry: &mut Map<String, Value>) {
        // Only this dialect can ask; its hooks run for sub-agents only if they say so.
        let asks = matches!(self.purpose, Purpose::AskBefore(_));
        let dialect = if asks { AGENT } else { OLLM };
        if by_spelling(event).name() != dialect.name() {
            entry.insert("dialect".to_owned(), dialect.name().into());
        }
        if asks {
            entry.insert("scope".to_owned(), "all".into());
        }
    }

    /// The files of an extension with this one hook, in the extension's own folder.
    pub fn extension(&self) -> Vec<NewFile> {
        let Scaffold { name, purpose, language } = self;
        let below = |file: NewFile| NewFile { path: format!("{HOOKS}/{}", file.path), ..file };
        let mut files: Vec<NewFile> = self.scripts().into_iter().map(below).collect();
        files.extend(self.cases(purpose.event()));
        let mut entry = self.entry(HOOKS);
        // An extension contains no compiler output: a Rust program is installed into `bin`.
        if let (Language::Rust, Some(map)) = (*language, entry.as_object_mut()) {
            map.insert("command".to_owned(), format!("./bin/{name}").into());
        }
        if let Some(map) = entry.as_object_mut() {
            self.speak(purpose.event(), map);
        }
        // A hook of an extension runs in a box, which forbids writing elsewhere.
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
        // The manifest comes last too.
        files.push(NewFile::json("manifest.json", &manifest));
        files
    }

    /// The entry of the hook in a hook file or a manifest; paths are relative to `folder`.
    fn entry(&self, folder: &str) -> Value {
        let Scaffold { name, purpose, language } = self;
        let (command, args) = language.command(name);
        let prefixed = |path: String| if folder.is_empty() { path } else { format!("{folder}/{path}") };
        let mut args: Vec<String> = args.into_iter().map(prefixed).collect();
        args.extend(purpose.arguments(*language).iter().map(|&argument| argument.to_owned()));
        let mut entry = json!({"name": name, "description": purpose.description(), "command": command});
        if let Some(map) = entry.as_object_mut() {
            if !args.is_empty() {
                map.insert("args".to_owned(), args.into());
            }
            let guards = [("matcher", purpose.matcher()), ("onFailure", purpose.on_failure())];
            map.extend(guards.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))));
        }
        entry
    }

    fn scripts(&self) -> Vec<NewFile> {
        let Scaffold { name, purpose, language } = self;
        let mut files = vec![NewFile {
            executable: *language != Language::Rust,
            ..NewFile::new(language.path(name), self.filled(language.template(purpose)))
        }];
        if *language == Language::Rust {
            files.push(NewFile::new(format!("{name}/Cargo.toml"), self.filled(template!("Cargo.toml.template"))));
        }
        files
    }

    /// A template with its values filled in. The person's own values come last, so that nothing in them is replaced.
    fn filled(&self, template: &str) -> String {
        let Scaffold { name, purpose, language } = self;
        let shell = if *language == Language::Bash { "/usr/bin/env bash" } else { "/bin/sh" };
        let file = if let Purpose::ContextFrom(file) = purpose { file } else { "" };
        let answer = language.literal(&purpose.answer().to_string());
        let values = [
            ("__SHELL__", shell.to_owned()),
            ("__NAME__", (*name).to_owned()),
            ("__PATTERNS__", language.patterns(purpose)),
            ("__ANSWER__", answer),
            ("__FILE__", language.literal(file)),
        ];
        fill(template, &values)
    }

    fn cases(&self, event: &str) -> impl Iterator<Item = NewFile> {
        self.purpose.cases().into_iter().map(move |(case, data, expect)| {
            let content = json!({"event": event, "data": data, "expect": expect});
            NewFile::json(format!("cases/{}/{case}.json", self.name), &content)
        })
    }

    /// The event of the first case by itself, as `ollm hook run` reads it.
    fn sample(&self, event: &str) -> Option<NewFile> {
        let (_, data, _) = self.purpose.cases().into_iter().next()?;
        Some(NewFile::json(format!("cases/{}.event.json", self.name), &json!({"event": event, "data": data})))
    }
}

/// Replaces each name by its value in one pass, so that names inside values stay.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("__") {
        let (before, here) = rest.split_at(at);
        text.push_str(before);
        let known = values.iter().find_map(|(name, value)| Some((here.strip_prefix(name)?, value.as_str())));
        let (after, value) = known.unwrap_or_else(|| (here.get(2..).unwrap_or_default(), "__"));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// A pattern for a shell's `case`, in which only `*` and `?` are special.
fn shell_case(pattern: &str) -> String {
    let mut case = String::new();
    for part in pattern.split_inclusive(['*', '?']) {
        let (text, wild) = part.split_at(part.len() - usize::from(part.ends_with(['*', '?'])));
        if !text.is_empty() {
            case.push_str(&single_quoted(text));
        }
        case.push_str(wild);
    }
    case
}

/// Whether a name can be a file name, a part of an id and a word on a command line.
pub fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.len() <= 64
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}

/// Writes new files and returns their paths. Writes nothing if one of them exists.
pub fn write_new(folder: &Path, files: &[NewFile]) -> Result<Vec<PathBuf>, AppError> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    if let Some(taken) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(AppError::new(Code::AlreadyThere, format!("{} is there already", taken.display()))
            .hint("choose another name, or move the file away"));
    }
    let is_new = !folder.exists();
    for (index, (path, file)) in paths.iter().zip(files).enumerate() {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| create(path, file));
        if let Err(error) = written {
            take_back(folder, paths.get(..=index).unwrap_or(&paths), is_new);
            let message = format!("{} cannot be written: {error}", path.display());
            return Err(AppError::new(Code::NotWritten, message).hint("nothing of it was left behind"));
        }
    }
    Ok(paths)
}

/// Removes the files written so far, because an incomplete set would look complete. Removes folders only if they are
/// empty.
fn take_back(folder: &Path, paths: &[PathBuf], is_new: bool) {
    for path in paths {
        // The last file may be missing; a file that cannot be removed stays.
        let _ = fs::remove_file(path);
        path.ancestors().skip(1).take_while(|above| *above != folder).for_each(|above| drop(fs::remove_dir(above)));
    }
    if is_new {
        let _ = fs::remove_dir(folder);
    }
}

fn create(path: &Path, file: &NewFile) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if file.executable {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
    }
    options.open(path)?.write_all(file.content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scaffold_has_a_script_and_cases_under_its_own_name() {
        let patterns = vec!["a' __NAME__ *".to_owned()];
        for purpose in [
            Purpose::DenyFiles(patterns.clone()),
            Purpose::DenyCommands(patterns.clone()),
            Purpose::AskBefore(patterns),
            Purpose::Logging,
            Purpose::Context,
            Purpose::ContextFrom("__ANSWER__".to_owned()),
        ] {
            for language in [Language::Sh, Language::Bash, Language::Python, Language::Node, Language::Rust] {
                let scaffold = Scaffold { name: "mine", purpose: purpose.clone(), language };
                let hook = scaffold.hook(None).unwrap();
                assert!(hook.iter().all(|file| file.path.contains("mine")));
                for files in [hook, scaffold.extension()] {
                    for unfilled in ["__PATTERNS__", "__SHELL__", "__FILE__"] {
                        assert!(files.iter().all(|file| !file.content.contains(unfilled)), "{unfilled}");
                    }
                    assert!(files.iter().any(|file| file.path.starts_with("cases/mine/")));
                }
            }
        }
    }

    #[test]
    fn patterns_that_no_script_can_compare_are_refused() {
        for (purpose, fine) in [
            (Purpose::DenyFiles(vec!["*.env".into()]), true),
            (Purpose::DenyFiles(vec!["~/.ssh/**".into(), "it's \"odd\".txt".into()]), true),
            (Purpose::DenyFiles(vec!["*.{env,pem}".into()]), false),
            (Purpose::DenyFiles(vec!["./".into()]), false),
            (Purpose::DenyFiles(vec!["a\nb".into()]), false),
            (Purpose::DenyCommands(vec!["git push [x]".into()]), true),
            (Purpose::DenyCommands(vec!["  curl  *  ".into(), "rm -rf ~/?".into(), "*".into()]), true),
            (Purpose::DenyCommands(vec!["curl * | sh*".into()]), false),
            (Purpose::DenyCommands(vec!["cd x && make".into()]), false),
            (Purpose::AskBefore(vec!["sh -c 'rm *'".into()]), false),
            (Purpose::AskBefore(vec!["it's*".into()]), false),
            (Purpose::AskBefore(vec!["CI=1 make".into()]), false),
            (Purpose::AskBefore(vec!["echo $(id)".into()]), false),
            (Purpose::DenyCommands(vec!["  ".into()]), false),
            (Purpose::AskBefore(vec!["x".repeat(300)]), false),
            (Purpose::ContextFrom(String::new()), false),
        ] {
            assert_eq!(purpose.check().is_ok(), fine, "{purpose:?}");
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
