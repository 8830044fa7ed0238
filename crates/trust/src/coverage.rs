//! Which files of a project a command covers: their content is part of what is approved.
//!
//! A program takes the names of files in many ways. Every word that names an existing file of the folder counts: too many
//! files only mean that somebody is asked once more. Files that hold code are read in turn, for what they load. What
//! cannot be followed that way is *uncovered*: it is named, and nothing that has such a part is approved for good unless a
//! person says so.
//!
//! [`shell`] and [`script`] find names in text, [`lookup`] finds what they mean, and [`edit`] leads them to the copy.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_store::{Digest, digest_bytes, read_bounded};

use crate::approvable::Approvable;
use crate::context::TrustContext;

mod edit;
mod lookup;
mod runner;
mod script;
mod shell;

pub(crate) use script::is_binary;

pub use edit::COPY_FOLDER;
pub(crate) use edit::{Edit, Replacement, ScriptEdits, rewritten};
use script::Language;
pub(crate) use script::absolute_interpreter;

/// More words are not looked up.
const MOST_WORDS: usize = 10_000;
/// More files are nobody's command line.
const MOST_FILES: usize = 1_000;
/// No system opens a file by a longer name.
const LONGEST_PATH: usize = 4096;
/// Longer code is not read through.
const LARGEST_CODE: u64 = 1 << 20;
/// What stands around the names of files in code and in lists.
const MARKS: &[char] =
    &['\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '[', ']', ',', '=', ':', '$', '\\'];
/// Options of Node that load code before the script.
const PRELOADS: &[&str] = &["-r", "--require", "--import", "--loader", "--experimental-loader"];
/// Variables that name code to be loaded before anything else.
const LOADING: &[&str] = &["BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "LD_PRELOAD"];
/// Variables that name folders in which programs and libraries are looked up.
const SEARCHED: &[&str] = &["PATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "LD_LIBRARY_PATH", "CLASSPATH"];

/// What is started: a program with its arguments, or a line of shell.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// The program, as written.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// A line for a shell, in place of program and arguments.
    pub shell: Option<String>,
    /// The variables it is given.
    pub env: Vec<(String, String)>,
    /// The folder it runs in, if that is declared.
    pub cwd: Option<PathBuf>,
    /// Variables that are known to name folders.
    pub folders: Vec<(&'static str, PathBuf)>,
    /// Which files count that are only mentioned, where nothing says that they run.
    pub mentioned: Mentioned,
}

/// Which files count that a command only mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mentioned {
    /// Those that look like code: a hook may write its log to any other, and must not undo its own approval by that.
    #[default]
    Code,
    /// All of them.
    Any,
}

/// Where names are looked up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The folder, as written.
    written: PathBuf,
    /// The folder whose files count, without links.
    top: PathBuf,
    /// The folders that a relative name may be meant from.
    here: Vec<PathBuf>,
    /// Files that are hashed anyway.
    own: Vec<PathBuf>,
}

impl Places {
    /// `folder` is the one it would run in, if that is another one.
    pub(crate) fn new(
        top: PathBuf,
        line: &CommandLine,
        folder: Option<&Path>,
        context: &TrustContext<'_>,
        thing: &(impl Approvable + ?Sized),
    ) -> Places {
        let written = thing.folder(context).map_or_else(|| top.clone(), Path::to_owned);
        let at = |folder: &Path| line.cwd.as_ref().map_or_else(|| folder.to_owned(), |cwd| folder.join(cwd));
        let mut here = vec![at(&top)];
        if let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()).map(|folder| at(&folder))
            && !here.contains(&folder)
        {
            here.push(folder);
        }
        let own = thing.script().into_iter().chain(thing.inputs().iter().map(PathBuf::as_path));
        let own = own.filter_map(|file| file.canonicalize().ok()).collect();
        Places { written, top, here, own }
    }
}

/// What a file held when it was looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text with this digest.
    Text(Digest),
    /// A program, by the zero byte near its beginning.
    Binary,
}

/// What a command covers.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The folder whose files count.
    pub(crate) top: Option<PathBuf>,
    /// The files whose content is part of what is approved.
    pub(crate) files: Vec<PathBuf>,
    /// The files that were read for what they load, with what they held: the rest means nothing for other content.
    pub(crate) read: Vec<(PathBuf, Content)>,
    /// What may run without being part of what is approved.
    pub(crate) uncovered: Vec<String>,
    /// Arguments that name code or are shell text, each with what replaces it.
    pub(crate) code_arguments: Vec<(String, Replacement)>,
    /// Words of the line for a shell that name code.
    pub(crate) line: Vec<Edit>,
    /// Words of scripts that name code by the working folder, script by script.
    pub(crate) scripts: Vec<ScriptEdits>,
    /// The folder in which Python finds a module of it by the working folder.
    pub(crate) modules: Option<PathBuf>,
    /// The folder that relative names are meant from.
    pub(crate) here: Option<PathBuf>,
    /// Whether the program is named by its path, not found on the search path.
    pub(crate) program_is_named: bool,
    /// Whether the code looks for files beside itself, or for packages of the folder.
    pub(crate) needs_its_place: bool,
    /// The folder it runs in, where a relative name stands for a file in it: from any other folder the same name would
    /// mean another file, or none.
    pub(crate) runs_in: Option<PathBuf>,
}

/// Why nobody can say what a command covers.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// It names more than anybody looks through.
    #[error("its arguments and variables hold too many words to look for files among them; put the code into a file")]
    TooMuch,
    /// A first line names an interpreter that depends on the working folder.
    #[error(
        "the first line of {} names `{name}`, which means another program in every folder; write an absolute path behind `#!`, \
         or `/usr/bin/env NAME`",
        file.display()
    )]
    RelativeInterpreter {
        /// The script.
        file: PathBuf,
        /// The interpreter, as written.
        name: String,
    },
}

/// Whether a variable names code that is loaded.
pub(crate) fn loads_code(variable: &str) -> bool {
    variable == "PYTHONPATH" || LOADING.contains(&variable)
}

/// The files that a command covers; `looked` is told every file and folder that the answer depends on.
pub(crate) fn files_covered(
    line: &CommandLine,
    program: Option<&Path>,
    places: &Places,
    looked: &mut dyn FnMut(&Path),
) -> Result<Coverage, CoverageError> {
    let coverage = Coverage {
        top: Some(places.written.clone()),
        here: places.here.first().cloned(),
        program_is_named: Path::new(&line.program).is_absolute(),
        ..Coverage::default()
    };
    let mut search = Search {
        places,
        here: places.here.clone(),
        roots: Vec::new(),
        folders: &line.folders,
        mentioned: line.mentioned,
        coverage,
        code: Vec::new(),
        edits: Vec::new(),
        seen: BTreeSet::new(),
        words: 0,
        from_here: false,
    };
    search.line(line, program)?;
    search.follow()?;
    let Search { mut coverage, seen, from_here, .. } = search;
    coverage.runs_in = places.here.first().filter(|_| from_here && places.here.len() == 1).cloned();
    for path in &seen {
        looked(path);
    }
    let written = |file: &PathBuf| {
        file.strip_prefix(&places.top).map_or_else(|_| file.clone(), |place| places.written.join(place))
    };
    coverage.files.retain(|file| !places.own.contains(file));
    coverage.files = coverage.files.iter().map(written).collect();
    let line = coverage.line.iter_mut().map(|edit| &mut edit.with);
    let scripts = coverage.scripts.iter_mut().flat_map(|script| &mut script.edits).map(|edit| &mut edit.with);
    let replacements = coverage.code_arguments.iter_mut().map(|(_, with)| with).chain(line).chain(scripts);
    replacements.for_each(|with| with.map(&written));
    let paths = coverage.scripts.iter_mut().map(|script| &mut script.file);
    let paths = paths.chain(coverage.read.iter_mut().map(|(file, _)| file));
    let paths = paths.chain(&mut coverage.modules).chain(&mut coverage.here);
    paths.for_each(|path| *path = written(path));
    coverage.uncovered.sort_unstable();
    coverage.uncovered.dedup();
    Ok(coverage)
}

struct Search<'a> {
    places: &'a Places,
    /// The folders that a relative name may be meant from, those of the line's own `cd` among them.
    here: Vec<PathBuf>,
    /// The folders in which Python looks for modules, beside that of the script.
    roots: Vec<PathBuf>,
    folders: &'a [(&'static str, PathBuf)],
    mentioned: Mentioned,
    coverage: Coverage,
    /// Code that was found and not read yet, with the folder of what was started first.
    code: Vec<(PathBuf, Option<Language>, PathBuf)>,
    /// What names code in the text that is read.
    edits: Vec<Edit>,
    /// Files and folders that the answer depends on.
    seen: BTreeSet<PathBuf>,
    /// How many words were looked up.
    words: usize,
    /// Whether a file was found by a relative name.
    from_here: bool,
}

/// A name, and what it was found to be.
enum Found {
    Nothing,
    File(PathBuf),
    Folder(PathBuf),
}

impl Search<'_> {
    fn line(&mut self, line: &CommandLine, program: Option<&Path>) -> Result<(), CoverageError> {
        if let Some(text) = &line.shell {
            self.coverage.line = self.shell(text)?;
        } else {
            self.command(line, program)?;
        }
        for (name, value) in &line.env {
            self.variable(name, value)?;
        }
        Ok(())
    }

    fn command(&mut self, line: &CommandLine, program: Option<&Path>) -> Result<(), CoverageError> {
        // A program outside of the folder is known by its place, as any other.
        let real = program.and_then(|program| program.canonicalize().ok());
        if let Some(real) = real.filter(|real| real.starts_with(&self.places.top)) {
            self.coverage.files.push(real.clone());
            self.push_code(real, None);
        }
        if let Some(environment) = program.and_then(|program| program.ancestors().nth(2))
            && let Found::File(_) = self.at(&environment.join("pyvenv.cfg"))?
        {
            let short = self.short(environment);
            self.coverage.uncovered.push(format!("packages in `{short}` are not looked through"));
        }
        let CommandLine { program: command, args, .. } = line;
        let running = runs(command, args);
        for arg in args {
            self.text(arg)?;
        }
        // Others may start Python, as in `uv run python -m tool`; a shell has text of its own.
        if Language::of_interpreter(command) != Some(Language::Shell) {
            for module in modules(args, running) {
                self.module(module)?;
            }
        }
        self.runs(command, args, running)?;
        let uncovered = runner::uncovered(command, args, &self.places.top);
        self.coverage.uncovered.extend(uncovered);
        Ok(())
    }

    /// The code among the arguments of a program.
    fn runs(&mut self, command: &str, args: &[String], running: Runs) -> Result<(), CoverageError> {
        let language = Language::of_interpreter(command);
        if language == Some(Language::Node) {
            for (_, prefix, name) in preloads(args) {
                self.code_argument(&prefix, name, Language::Node)?;
            }
        }
        match running {
            Runs::Script(index) => {
                if let (Some(arg), Some(language)) = (args.get(index), language) {
                    self.script_argument(arg, language)?;
                }
            }
            Runs::Code => {
                for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !arg.starts_with('-')) {
                    match language {
                        Some(Language::Shell) => {
                            let edits = self.shell(arg)?;
                            if shell_code(args) == Some(index) && !edits.is_empty() {
                                let with = Replacement::Code { text: arg.clone(), edits };
                                self.coverage.code_arguments.push((arg.clone(), with));
                            }
                        }
                        Some(language) => self.read(arg, language, None)?,
                        None => {}
                    }
                }
            }
            Runs::Itself | Runs::Input | Runs::Nothing => {}
        }
        Ok(())
    }

    fn script_argument(&mut self, arg: &str, language: Language) -> Result<(), CoverageError> {
        if arg.contains("{{") {
            self.made_up(arg, None);
            return Ok(());
        }
        self.code_argument("", arg, language)
    }

    fn code_argument(&mut self, prefix: &str, name: &str, language: Language) -> Result<(), CoverageError> {
        if let Some(file) = self.code_file(name, language)? {
            let with = Replacement::File { prefix: prefix.to_owned(), file };
            self.coverage.code_arguments.push((format!("{prefix}{name}"), with));
        }
        Ok(())
    }

    /// The code that an interpreter means by a name.
    fn code_file(&mut self, name: &str, language: Language) -> Result<Option<PathBuf>, CoverageError> {
        let candidates = match language {
            Language::Node => script::node_files(name),
            _ => vec![name.to_owned()],
        };
        for candidate in candidates {
            match self.named(&candidate)? {
                Found::File(file) => {
                    self.push_code(file.clone(), Some(language));
                    return Ok(Some(file));
                }
                Found::Folder(folder) => self.whole_folder(&folder),
                Found::Nothing => {}
            }
        }
        Ok(None)
    }

    fn variable(&mut self, name: &str, value: &str) -> Result<(), CoverageError> {
        let before = self.coverage.files.len();
        if LOADING.contains(&name) {
            self.every_name(value)?;
            let found: Vec<PathBuf> = self.coverage.files.get(before..).unwrap_or_default().to_vec();
            for file in found {
                self.push_code(file, None);
            }
        } else {
            self.text(value)?;
        }
        for part in value.split(':').filter(|part| !part.is_empty()) {
            let Found::Folder(folder) = self.named(part)? else { continue };
            if name == "PYTHONPATH" {
                // A new file there stands before every module of that name, so all of them count.
                self.modules_in(&folder)?;
                self.roots.push(folder);
            } else if SEARCHED.contains(&name) {
                self.whole_folder(&folder);
            }
        }
        Ok(())
    }

    /// Reads what was found, until nothing new comes of it.
    fn follow(&mut self) -> Result<(), CoverageError> {
        let mut done = BTreeSet::new();
        while let Some((file, language, root)) = self.code.pop() {
            if !done.insert(file.clone()) {
                continue;
            }
            self.seen.insert(file.clone());
            // A program names nothing that we could read, however long it is.
            if script::is_binary(&file) {
                self.coverage.read.push((file, Content::Binary));
                continue;
            }
            let Ok(Some(bytes)) = read_bounded(&file, LARGEST_CODE) else {
                if file.is_file() {
                    let short = self.short(&file);
                    self.coverage.uncovered.push(format!("`{short}` is too long to be read through for what it loads"));
                }
                continue;
            };
            self.coverage.read.push((file.clone(), Content::Text(digest_bytes(&bytes))));
            let text = String::from_utf8_lossy(&bytes);
            self.shebang(&file, &text)?;
            if let Some(language) = Language::of_file(&file, &text).or(language) {
                self.read(&text, language, Some((&file, &root)))?;
            }
            // Words of text that was mended to be read stand elsewhere in the file.
            if matches!(text, Cow::Owned(_))
                && let Some(ScriptEdits { edits, .. }) = self.coverage.scripts.pop_if(|script| script.file == file)
            {
                for edit in &edits {
                    self.stays(&edit.with, Some(&file));
                }
            }
        }
        Ok(())
    }

    /// What the first line of a script names counts; a name that depends on the working folder is refused.
    fn shebang(&mut self, file: &Path, text: &str) -> Result<(), CoverageError> {
        script::absolute_interpreter(file, text)?;
        for word in script::first_line(text) {
            if let Found::File(found) = self.named(word)? {
                if Path::new(word).is_relative() {
                    return Err(CoverageError::RelativeInterpreter { file: file.to_owned(), name: word.to_owned() });
                }
                self.push_code(found, None);
            }
        }
        Ok(())
    }

    /// What code loads; `at` is its file, and the folder of the script that was started.
    fn read(&mut self, text: &str, language: Language, at: Option<(&Path, &Path)>) -> Result<(), CoverageError> {
        self.coverage.needs_its_place |= language.looks_beside_itself(text);
        match language {
            Language::Shell => self.shell_script(text, at.map(|(file, _)| file)),
            Language::Python => self.python(text, at),
            Language::Node => self.node(text, at.map(|(file, _)| file)),
            Language::Other => self.literals(text, at.map(|(file, _)| file)),
        }
    }

    fn push_code(&mut self, file: PathBuf, language: Option<Language>) {
        let root = file.parent().unwrap_or(Path::new("/")).to_owned();
        self.code.push((file, language, root));
    }
}

/// The modules that Python is told to run or to import.
fn modules(args: &[String], running: Runs) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        match arg.strip_prefix("-m") {
            Some("") => found.extend(args.get(index + 1).map(String::as_str)),
            Some(name) => found.push(name),
            None if running == Runs::Code => {
                let letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
                found.extend(arg.split(|other| !letter(other)).filter(|word| !word.is_empty()));
            }
            None => {}
        }
    }
    found
}

/// The names of what Node loads before its script, each with its index and what stands before it in its argument.
fn preloads(args: &[String]) -> Vec<(usize, String, &str)> {
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let (option, value) = arg.split_once('=').map_or((arg.as_str(), None), |(o, v)| (o, Some(v)));
        if !PRELOADS.contains(&option) {
            continue;
        }
        match (value, args.get(index + 1)) {
            (Some(value), _) => found.push((index, format!("{option}="), value)),
            (None, Some(next)) => found.push((index + 1, String::new(), next)),
            (None, None) => {}
        }
    }
    found
}

/// The argument of a shell that is the text it runs; those behind it are its parameters.
fn shell_code(args: &[String]) -> Option<usize> {
    let is_option = |arg: &str| arg.starts_with(['-', '+']);
    let tells = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
    let option = args.iter().position(tells)?;
    let mut index = option;
    while args.get(index).is_some_and(|arg| is_option(arg)) {
        // `-o` takes the next argument.
        let takes_value = args.get(index).is_some_and(|arg| !arg.starts_with("--") && arg.ends_with(['o', 'O']));
        index += if takes_value { 2 } else { 1 };
    }
    (index < args.len()).then_some(index)
}

/// A path without its dots, by its words alone.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
