//! Which files of a project a command covers: their content is part of what is approved.
//!
//! A program takes the names of files in many ways. Every word that names an existing file of the folder counts: too many
//! files only mean that somebody is asked once more. Files that hold code are read in turn, for what they load. What
//! cannot be followed that way is *uncovered*: it is named, and nothing that has such a part is approved for good unless a
//! person says so.
//!
//! This module looks up names; [`shell`] and [`script`] find them in text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_store::read_bounded;

use crate::approvable::Approvable;
use crate::context::TrustContext;

mod edit;
mod runner;
mod script;
mod shell;

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
#[derive(Debug)]
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

/// What a command covers.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The folder whose files count.
    pub(crate) top: Option<PathBuf>,
    /// The files whose content is part of what is approved.
    pub(crate) files: Vec<PathBuf>,
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
            let Ok(Some(bytes)) = read_bounded(&file, LARGEST_CODE) else {
                if file.is_file() {
                    let short = self.short(&file);
                    self.coverage.uncovered.push(format!("`{short}` is too long to be read through for what it loads"));
                }
                continue;
            };
            if bytes.iter().take(1024).any(|byte| *byte == 0) {
                continue;
            }
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

    /// The files that a text mentions.
    fn text(&mut self, text: &str) -> Result<(), CoverageError> {
        let (known, from_here) = (self.coverage.files.len(), self.from_here);
        self.every_name(text)?;
        if self.mentioned == Mentioned::Code {
            let found = self.coverage.files.split_off(known);
            self.coverage.files.extend(found.into_iter().filter(|file| script::looks_like_code(file)));
            self.from_here &= from_here || self.coverage.files.len() > known;
        }
        Ok(())
    }

    /// Everything in a text that may name a file.
    fn every_name(&mut self, text: &str) -> Result<(), CoverageError> {
        let option = text.strip_prefix('-');
        let joined = option.and_then(|_| text.split_once('=')).map_or(text, |(_, value)| value);
        self.named(joined)?;
        // `-rFILE`
        if let Some(value) = option.filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..)) {
            self.named(value)?;
        }
        let breaks = |letter: char| letter.is_whitespace() || MARKS.contains(&letter);
        if text.contains(breaks) {
            for part in text.split_whitespace().chain(text.split(breaks)) {
                self.named(part)?;
            }
        }
        Ok(())
    }

    /// A name that may be one of a file; a file counts from now on.
    fn named(&mut self, word: &str) -> Result<Found, CoverageError> {
        let address = word.strip_prefix("file://").map(local);
        let word = address.as_deref().unwrap_or(word);
        if word.is_empty() || word.len() > LONGEST_PATH || word.contains('\0') {
            return Ok(Found::Nothing);
        }
        let mut found = Found::Nothing;
        for here in self.here.clone() {
            let known = self.coverage.files.len();
            let at = self.at(&here.join(word))?;
            self.from_here |= Path::new(word).is_relative() && self.coverage.files.len() > known;
            match at {
                Found::Nothing => {}
                // What is nearest to the beginning is what is meant, but what runs elsewhere counts as well.
                other if matches!(found, Found::Nothing) => found = other,
                _ => {}
            }
        }
        Ok(found)
    }

    /// What stands at a path, if it stands in the folder; a link of the folder may lead out of it.
    fn at(&mut self, path: &Path) -> Result<Found, CoverageError> {
        self.words += 1;
        if self.words > MOST_WORDS || self.coverage.files.len() > MOST_FILES {
            return Err(CoverageError::TooMuch);
        }
        let clean = plain(path);
        let top = &self.places.top;
        if clean.starts_with(top) {
            // Whether a name exists changes with the folder that would hold it.
            let nearest = clean.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
            self.seen.extend(nearest.map(Path::to_owned));
        }
        let Ok(real) = path.canonicalize() else { return Ok(Found::Nothing) };
        let parent = || path.parent().and_then(|parent| parent.canonicalize().ok());
        let inside =
            real.starts_with(top) || clean.starts_with(top) || parent().is_some_and(|parent| parent.starts_with(top));
        if !inside {
            return Ok(Found::Nothing);
        }
        if real.is_dir() {
            return Ok(Found::Folder(real));
        }
        if !real.is_file() {
            return Ok(Found::Nothing);
        }
        if !self.coverage.files.contains(&real) {
            self.coverage.files.push(real.clone());
        }
        Ok(Found::File(real))
    }

    /// The files that Python runs for a module, wherever it looks.
    fn module(&mut self, name: &str) -> Result<(), CoverageError> {
        for folder in self.here.clone() {
            if self.module_in(name, &folder, &folder)? {
                self.coverage.needs_its_place = true;
                self.coverage.modules = self.places.here.first().cloned();
                self.from_here = true;
            }
        }
        for folder in self.roots.clone() {
            self.module_in(name, &folder, &folder)?;
        }
        Ok(())
    }

    /// Whether there is such a module in a folder; its files count from now on.
    fn module_in(&mut self, name: &str, folder: &Path, root: &Path) -> Result<bool, CoverageError> {
        let mut place = folder.to_owned();
        let mut found = false;
        for part in name.split('.').filter(|part| !part.is_empty()) {
            let file = place.join(format!("{part}.py"));
            place.push(part);
            for file in [file, place.join("__init__.py"), place.join("__main__.py")] {
                if let Found::File(file) = self.at(&file)? {
                    self.code.push((file, Some(Language::Python), root.to_owned()));
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// Every module of a folder.
    fn modules_in(&mut self, folder: &Path) -> Result<(), CoverageError> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            self.seen.insert(folder.clone());
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            entries.sort_unstable();
            for entry in entries {
                let is_code =
                    entry.extension().is_some_and(|extension| ["py", "pth", "so"].iter().any(|e| extension == *e));
                if entry.is_dir() && !entry.is_symlink() {
                    folders.push(entry);
                } else if is_code {
                    self.at(&entry)?;
                }
            }
        }
        Ok(())
    }

    fn whole_folder(&mut self, folder: &Path) {
        let short = self.short(folder);
        self.coverage.uncovered.push(format!("`{short}` is a folder, and anything in it may run"));
    }

    fn made_up(&mut self, name: &str, file: Option<&Path>) {
        let place = file.map(|file| format!(" in `{}`", self.short(file))).unwrap_or_default();
        self.coverage.uncovered.push(format!("`{name}`{place} is a name that is made up when it runs"));
    }

    /// A path in the words of somebody who stands in the folder.
    fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.places.top) {
            Ok(place) if place == Path::new("") => ".".to_owned(),
            Ok(place) => place.display().to_string(),
            Err(_) => path.display().to_string(),
        }
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

/// The path in the rest of a `file://` address.
fn local(rest: &str) -> String {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let escaped = (*first == b'%').then(|| rest.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        left = if byte.is_some() { rest.get(2..).unwrap_or_default() } else { rest };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
