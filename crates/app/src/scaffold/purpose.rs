//! The purpose of a scaffolded hook: its event, its answer, and golden cases that show it.

use ollm_protocol::Code;
use ollm_protocol::pattern::fits_name;
use ollm_shell::single_quoted;
use serde_json::{Value, json};

use super::Language;
use crate::error::AppError;

/// The purpose of a scaffolded hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Refuses calls that name files of these patterns.
    DenyFiles(Vec<String>),
    /// Refuses commands of these patterns.
    DenyCommands(Vec<String>),
    /// Asks a person about commands of these patterns.
    AskBefore(Vec<String>),
    /// Logs tool calls.
    Logging,
    /// Tells the agent at the start which branch is checked out.
    Context,
    /// Gives the agent the content of a file at the start.
    ContextFrom(String),
}

/// Longer patterns are probably mistakes.
const LONGEST_PATTERN: usize = 256;
/// The command of a case that no pattern matches.
const OTHER_COMMAND: &str = "ollm-golden-case";
const OTHER_FILE: &str = "ollm-golden-case.txt";

/// A golden case: its name, its data, and what is expected.
pub(super) type SampleCase = (&'static str, Value, Value);

impl Purpose {
    /// The usual example: no forced push.
    pub fn validation() -> Purpose {
        Purpose::DenyCommands(["git push --force*", "git push -f"].map(str::to_owned).into())
    }

    /// Fails if a pattern or the file cannot be written into a script, and says why.
    pub fn check(&self) -> Result<(), AppError> {
        match self {
            Purpose::DenyFiles(patterns) => patterns.iter().try_for_each(|pattern| {
                if let Some(odd) = pattern.chars().find(|char| "[]{}!\\".contains(*char)) {
                    return Err(AppError::new(Code::InvalidValue, format!("the pattern `{pattern}` holds `{odd}`"))
                        .hint("`*` and `?` are the only wildcards here; give the option once for each pattern"));
                }
                check_text("pattern", if from_any_folder(pattern).is_empty() { "" } else { pattern })
            }),
            Purpose::DenyCommands(patterns) | Purpose::AskBefore(patterns) => {
                patterns.iter().try_for_each(|pattern| check_command(pattern.trim()))
            }
            Purpose::ContextFrom(file) => check_text("file", file),
            Purpose::Logging | Purpose::Context => Ok(()),
        }
    }

    /// The event of such a hook.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Purpose::DenyFiles(_) | Purpose::DenyCommands(_) | Purpose::AskBefore(_) => "before_tool",
            Purpose::Logging => "after_tool",
            Purpose::Context | Purpose::ContextFrom(_) => "before_agent",
        }
    }

    /// The description of such a hook, also for a person whose call is refused.
    pub(super) fn description(&self) -> String {
        match self {
            Purpose::DenyFiles(patterns) => format!("Refuses calls that name files like {}", listed(patterns)),
            Purpose::DenyCommands(patterns) => format!("Refuses commands like {}", listed(patterns)),
            Purpose::AskBefore(patterns) => format!("Asks before commands like {}", listed(patterns)),
            Purpose::Logging => "Keeps a log of tool calls".to_owned(),
            Purpose::Context => "Tells the agent which branch is checked out".to_owned(),
            Purpose::ContextFrom(file) => format!("Tells the agent what {file} says"),
        }
    }

    /// The tool matcher of such a hook; `None` if it is for all tools.
    pub(super) fn matcher(&self) -> Option<&'static str> {
        // A tool of a server may run commands under any name.
        matches!(self, Purpose::DenyCommands(_) | Purpose::AskBefore(_)).then_some("shell|write_stdin|mcp__*")
    }

    /// The failure policy of such a hook: a guard that fails refuses.
    pub(super) fn on_failure(&self) -> Option<&'static str> {
        match self {
            Purpose::DenyFiles(_) | Purpose::DenyCommands(_) => Some("block"),
            Purpose::AskBefore(_) => Some("ask"),
            Purpose::Logging | Purpose::Context | Purpose::ContextFrom(_) => None,
        }
    }

    /// The script's arguments from the event, in addition to the event on its input.
    pub(super) fn arguments(&self, language: Language) -> &'static [&'static str] {
        match (self, language) {
            (Purpose::DenyFiles(_), _) => &["{{paths}}", "{{commands}}"],
            (Purpose::DenyCommands(_) | Purpose::AskBefore(_), _) => &["{{commands}}"],
            // A shell script cannot read the event.
            (Purpose::Logging, Language::Sh | Language::Bash) => &["{{tool_name}}"],
            (Purpose::Logging | Purpose::Context | Purpose::ContextFrom(_), _) => &[],
        }
    }

    /// The guard's answer to a call that it stops.
    pub(super) fn answer(&self) -> Value {
        match self {
            Purpose::AskBefore(_) => json!({"decision": "ask", "reason": self.description()}),
            _ => json!({"continue": false, "systemMessage": self.description()}),
        }
    }

    /// The patterns in the form that scripts compare.
    pub(super) fn patterns(&self) -> Vec<String> {
        match self {
            Purpose::DenyFiles(patterns) => patterns.iter().map(|pattern| from_any_folder(pattern)).collect(),
            Purpose::DenyCommands(patterns) | Purpose::AskBefore(patterns) => patterns.clone(),
            Purpose::Logging | Purpose::Context | Purpose::ContextFrom(_) => Vec::new(),
        }
    }

    /// Golden cases.
    pub(super) fn cases(&self) -> Vec<SampleCase> {
        let flow = |flow: &str| json!({ "flow": flow });
        match self {
            Purpose::DenyFiles(_) => self.file_cases(),
            Purpose::DenyCommands(_) => self.command_cases(&json!({"flow": "block", "reason": self.description()})),
            Purpose::AskBefore(_) => self.command_cases(&flow("ask")),
            Purpose::Logging => vec![("never-stands-in-the-way", shell("ls"), flow("no_opinion"))],
            Purpose::Context => {
                vec![("names-the-branch", json!({"prompt": "Tidy up"}), json!({"systemMessage": "branch"}))]
            }
            Purpose::ContextFrom(_) => {
                vec![(
                    "never-stands-in-the-way",
                    json!({"prompt": "Tidy up"}),
                    json!({"flow": "no_opinion", "status": "ok"}),
                )]
            }
        }
    }

    fn command_cases(&self, expected: &Value) -> Vec<SampleCase> {
        let patterns = self.patterns();
        let example = patterns.first().map(|pattern| example(pattern)).unwrap_or_default();
        let quoted: Vec<String> = example.split_whitespace().map(single_quoted).collect();
        let behind = format!("cd . && {} <&-", quoted.join("  "));
        let mut cases = vec![
            ("finds-the-command", shell(&example), expected.clone()),
            ("finds-it-in-quotes-behind-another", shell(&behind), expected.clone()),
            (
                "finds-it-under-another-agents-names",
                json!({"tool_name": "exec_command", "args": {"cmd": example}}),
                expected.clone(),
            ),
        ];
        let is_other =
            |pattern: &String| !pattern.split_whitespace().all(|part| fits_name(&stars(part), OTHER_COMMAND));
        if patterns.iter().all(is_other) {
            cases.push(("lets-others-pass", shell(OTHER_COMMAND), json!({"flow": "no_opinion"})));
        }
        cases
    }

    fn file_cases(&self) -> Vec<SampleCase> {
        let patterns = self.patterns();
        let file = patterns.first().map(|pattern| example(pattern)).unwrap_or_default();
        let expected = json!({"flow": "block", "reason": self.description()});
        let mut cases = vec![
            ("refuses-to-read-it", json!({"tool_name": "read_file", "args": {"path": file}}), expected.clone()),
            (
                "refuses-to-write-it-elsewhere",
                json!({"tool_name": "Write", "args": {"file_path": format!("./some where/{file}"), "content": "x"}}),
                expected.clone(),
            ),
            ("refuses-commands-that-name-it", shell(&format!("cat < {}", single_quoted(&file))), expected),
        ];
        if patterns.iter().all(|pattern| !fits_name(&stars(pattern), OTHER_FILE)) {
            let other = json!({"tool_name": "read_file", "args": {"path": OTHER_FILE}});
            cases.push(("lets-others-pass", other, json!({"flow": "no_opinion"})));
        }
        cases
    }
}

fn shell(command: &str) -> Value {
    json!({"tool_name": "shell", "args": {"command": command}})
}

fn listed(patterns: &[String]) -> String {
    patterns.iter().map(|pattern| pattern.trim()).collect::<Vec<_>>().join(", ")
}

fn check_text(what: &str, text: &str) -> Result<(), AppError> {
    if text.is_empty() {
        return Err(AppError::new(Code::InvalidValue, format!("the {what} is empty"))
            .hint("for instance '*.env', or 'git push --force*'"));
    }
    if text.len() > LONGEST_PATTERN {
        return Err(AppError::new(
            Code::InvalidValue,
            format!("the {what} has {} bytes, more than {LONGEST_PATTERN}", text.len()),
        ));
    }
    match text.chars().find(|char| char.is_control()) {
        Some(odd) => Err(AppError::new(
            Code::InvalidValue,
            format!("the {what} holds the character {:?}", odd.escape_debug().to_string()),
        )),
        None => Ok(()),
    }
}

/// Fails for a pattern that would not find a command with just its words.
fn check_command(pattern: &str) -> Result<(), AppError> {
    check_text("pattern", pattern)?;
    let example = example(pattern);
    let is_found = ollm_shell::commands(&example).iter().any(|words| words.iter().eq(example.split_whitespace()));
    if is_found {
        return Ok(());
    }
    Err(AppError::new(Code::InvalidValue, format!("the pattern `{pattern}` is not the words of one command")).hint(
        "write them as the program gets them, without quotes, variables, `|` and `&&`; give the option once for each command",
    ))
}

/// Makes a file pattern match in any folder and any case, because agents name files relative to the project or to the
/// root.
fn from_any_folder(pattern: &str) -> String {
    let mut rest = pattern.trim();
    while let Some(shorter) = ["./", "~/", "**/", "/"].iter().find_map(|start| rest.strip_prefix(start)) {
        rest = shorter;
    }
    let mut rest = rest.trim_end_matches('/').to_lowercase();
    while rest.contains("**") {
        rest = rest.replace("**", "*");
    }
    rest
}

/// An example that matches a pattern.
fn example(pattern: &str) -> String {
    let part = |part: &str| match part.replace('*', "").replace('?', "x") {
        empty if empty.is_empty() => "x".to_owned(),
        part => part,
    };
    let word = |word: &str| word.split('/').map(part).collect::<Vec<_>>().join("/");
    pattern.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// A pattern with the star as only wildcard, which matches at least as much.
fn stars(pattern: &str) -> String {
    pattern.replace('?', "*")
}
