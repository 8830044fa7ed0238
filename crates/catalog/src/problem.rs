//! Problems of files: the place, the fault, and the remedy.

use std::fmt;
use std::path::{Path, PathBuf};

use ollm_protocol::{Code, Commands, Remedy};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// A setting that guards something makes no sense; going on would be a guess about safety.
    Fatal,
    /// Something that was declared is not there.
    Error,
    /// All parts are loaded, but a value differs from what was written.
    Warning,
}

impl Severity {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Fatal => "fatal",
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// Something wrong in a file, or in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is; the same in every version.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The file; for an environment variable its name.
    pub file: PathBuf,
    /// The line, counted from one; zero when unknown.
    pub line: usize,
    /// The column in characters, counted from one; zero when unknown.
    pub column: usize,
    /// The path of the field, such as `hooks.before_tool[0].timeout`; empty when the whole file is meant.
    pub field: String,
    /// The value as written, cut to 80 characters.
    pub value: Option<String>,
    /// What happened, and what it means.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
    /// The way out for which a program may have a command, beside `help`.
    pub remedy: Option<Remedy>,
    /// The line of the file, or the part of it around the column.
    pub snippet: Option<Snippet>,
}

/// A line of a file, or the part of a long one around a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The text.
    pub text: String,
    /// The column in the text, counted from one.
    pub column: usize,
}

impl Problem {
    /// A problem with a file as a whole.
    pub fn of_file(code: Code, severity: Severity, path: &Path, message: String) -> Problem {
        Problem {
            code,
            severity,
            file: path.to_owned(),
            line: 0,
            column: 0,
            field: String::new(),
            value: None,
            message,
            help: None,
            remedy: None,
            snippet: None,
        }
    }

    /// The whole remedy, with the program's commands.
    pub fn way_out(&self, commands: Commands) -> Option<String> {
        let remedy = self.remedy.as_ref().map(|remedy| commands.tell(remedy));
        let parts: Vec<String> = self.help.clone().into_iter().chain(remedy).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The whole problem in one line without its code, for those who show that elsewhere.
    pub fn sentence(&self) -> String {
        let place = if self.line > 0 { format!(":{}:{}", self.line, self.column) } else { String::new() };
        let field = match (&self.field, &self.value) {
            (field, _) if field.is_empty() => String::new(),
            (field, Some(value)) => format!(" ({field} = {value})"),
            (field, None) => format!(" ({field})"),
        };
        let way_out = self.way_out(Commands::default()).map(|way_out| format!("; {way_out}")).unwrap_or_default();
        format!("{}{place}: {}{field}{way_out}", self.file.display(), self.message)
    }

    /// The same with the whole way out in its help, for those who show it as text.
    #[must_use]
    pub fn told(self, commands: Commands) -> Problem {
        Problem { help: self.way_out(commands), remedy: None, ..self }
    }
}

/// The whole problem in one line, with its code at the end.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} [{}]", self.sentence(), self.code)
    }
}
