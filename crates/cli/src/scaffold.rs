//! Hooks to begin with: a working script for each purpose and language, its declaration, and golden cases.

use serde_json::{Value, json};

/// What a scaffolded hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Purpose {
    /// Refuse a tool call that must not happen
    Validation,
    /// Keep a log of tool calls
    Logging,
    /// Tell the agent something before it begins
    Context,
}

/// What it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    Sh,
    Python,
    Node,
    Rust,
}

/// A file to write, below the folder of the hooks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) path: String,
    pub(crate) content: String,
}

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("scaffold/templates/", $name))
    };
}

impl Purpose {
    /// The event such a hook is for.
    pub(crate) fn event(self) -> &'static str {
        match self {
            Purpose::Validation => "before_tool",
            Purpose::Logging => "after_tool",
            Purpose::Context => "before_agent",
        }
    }

    /// What such a hook does.
    pub(crate) fn description(self) -> &'static str {
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

    /// What must be done before the hook can run.
    pub(crate) fn build(self, folder: &str, name: &str) -> Option<String> {
        (self == Language::Rust).then(|| format!("cargo build --release --manifest-path {folder}/{name}/Cargo.toml"))
    }

    /// What must be done before the hook of an extension can run.
    pub(crate) fn install(self, folder: &str, name: &str) -> Option<String> {
        let target = "--target-dir \"$(mktemp -d)\" --no-track";
        (self == Language::Rust).then(|| format!("cargo install --path {folder}/hooks/{name} --root {folder} {target}"))
    }
}

/// The entry of a hook, as it stands in a hook file or a manifest; paths are relative to `folder`.
pub(crate) fn entry(name: &str, purpose: Purpose, language: Language, folder: &str) -> Value {
    let (command, args) = language.command(name);
    let prefixed = |path: String| if folder.is_empty() { path } else { format!("{folder}/{path}") };
    let (command, args) = match language {
        Language::Rust if !folder.is_empty() => (format!("./{folder}/{}", command.trim_start_matches("./")), args),
        Language::Rust => (command, args),
        _ => (command, args.into_iter().map(prefixed).collect()),
    };
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

/// The entry of a hook in a manifest. What a compiler leaves behind is no part of an extension: a program of Rust is
/// installed into `bin`.
pub(crate) fn extension_entry(name: &str, purpose: Purpose, language: Language, folder: &str) -> Value {
    let mut entry = entry(name, purpose, language, folder);
    if let (Language::Rust, Some(map)) = (language, entry.as_object_mut()) {
        map.insert("command".to_owned(), format!("./bin/{name}").into());
    }
    entry
}

/// The script of a hook and its golden cases, without its declaration.
pub(crate) fn files(name: &str, purpose: Purpose, language: Language) -> Vec<NewFile> {
    let named = |text: &str| text.replace("__NAME__", name);
    let mut files = vec![NewFile { path: language.path(name), content: named(language.script(purpose)) }];
    if language == Language::Rust {
        let content = named(template!("Cargo.toml.template"));
        files.push(NewFile { path: format!("{name}/Cargo.toml"), content });
    }
    for (case, data, expect) in purpose.cases() {
        let content = json!({"event": purpose.event(), "data": data, "expect": expect});
        files.push(NewFile { path: format!("cases/{name}/{case}.json"), content: format!("{content:#}\n") });
    }
    files
}

/// Whether a name can be a file, a part of an id and a word on a command line.
pub(crate) fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.len() <= 64
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_scaffold_has_a_script_and_cases_under_its_own_name() {
        for purpose in Purpose::value_variants() {
            for language in Language::value_variants() {
                let files = files("mine", *purpose, *language);
                assert!(files.iter().all(|file| file.path.contains("mine") && !file.content.contains("__NAME__")));
                assert!(files.iter().any(|file| file.path.starts_with("cases/mine/")));
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
