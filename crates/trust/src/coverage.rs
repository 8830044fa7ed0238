//! Which files of a project a command covers: their content is part of what is approved.
//!
//! A program takes the names of files in many ways. Every word that names an existing file of the folder counts: too many
//! files only mean that somebody is asked once more. Files that hold code are read in turn, for what they load. What
//! cannot be followed that way is *uncovered*: it is named, and nothing that has such a part is approved for good unless a
//! person says so.
//!
//! [`command`], [`shell`], [`script`] and [`launch`] find names, [`loader`] knows options that name code, [`lookup`] finds what they mean, and [`edit`] leads them to the copy.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_store::{Digest, digest_bytes, read_bounded};

use crate::approvable::Approvable;
use crate::context::TrustContext;

mod command;
mod edit;
mod inline;
mod launch;
mod loader;
mod lookup;
mod runner;
mod script;
mod shell;

pub(crate) use script::is_binary;

pub use edit::COPY_FOLDER;
pub(crate) use edit::{Edit, Replacement, ScriptEdits, rewritten};
pub use runner::fetches_packages;
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
/// Variables that name code to be loaded before anything else.
const LOADING: &[&str] = &["BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "LD_PRELOAD"];

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
    /// Where programs are looked up that a line for a shell names.
    search_path: OsString,
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
        Places { written, top, here, own, search_path: context.search_path().to_owned() }
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
    /// Those of the files that are links, with what they lead to outside of the folder.
    pub(crate) leads_out: Vec<(PathBuf, PathBuf)>,
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
    /// Whether Python runs code that has no file, and takes modules from the working folder unless it is told not to.
    pub(crate) is_inline_python: bool,
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
    let paths = paths.chain(coverage.leads_out.iter_mut().map(|(link, _)| link));
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
        if let Some((file, _)) = at {
            self.launches(text, language, file)?;
        }
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

#[cfg(test)]
mod tests;
