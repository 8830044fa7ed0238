//! Finds the project files that a command covers: their content is part of what is approved.
//!
//! Programs take file names in many ways, so every word that names an existing file of the folder counts. If too many
//! files count, a person is only asked once more. Files with code are read in turn to find what they load. Code that
//! cannot be followed that way is *uncovered*. The uncovered parts are listed. Nothing that has any is approved for
//! good unless a person says so.
//!
//! [`command`], [`shell`], [`script`] and [`launch`] find names, and [`loader`] knows the options that name code.
//! [`lookup`] finds the files behind the names, and [`edit`] replaces the names by names in the copy.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_store::{Digest, digest_bytes, read_bounded};

use crate::approvable::Approvable;
use crate::context::TrustContext;

mod argument;
mod command;
mod edit;
mod inline;
mod launch;
mod loader;
mod lookup;
mod runner;
mod script;
mod shell;
mod starters;

pub(crate) use script::is_binary;

pub use edit::COPY_FOLDER;
pub(crate) use edit::{Edit, Replacement, ScriptEdits, rewritten};
pub use runner::fetches_packages;
use script::Language;
pub(crate) use script::absolute_interpreter;

/// The most words that are looked up.
const MOST_WORDS: usize = 10_000;
/// The most files of one command line.
const MOST_FILES: usize = 1_000;
/// The longest file name that any system opens.
const LONGEST_PATH: usize = 4096;
/// The longest code that is read through.
const LARGEST_CODE: u64 = 1 << 20;
/// Characters around file names in code and in lists.
const MARKS: &[char] =
    &['\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '[', ']', ',', '=', ':', '$', '\\'];

/// The command to start: a program with its arguments, or a line of shell.
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
    /// Variables that name folders, each with its folder.
    pub folders: Vec<(&'static str, PathBuf)>,
    /// Which of the merely mentioned files count, if nothing shows that they run.
    pub mentioned: MentionedFiles,
}

/// Which of the files that a command only mentions count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MentionedFiles {
    /// Those that look like code. A hook may write its log to any other file, and that must not revoke its own
    /// approval.
    #[default]
    Code,
    /// All of them.
    Any,
}

/// The folders in which names are looked up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The folder, as written.
    written: PathBuf,
    /// The folder whose files count, without links.
    top: PathBuf,
    /// The folders that a relative name may start from.
    here: Vec<PathBuf>,
    /// Files that are hashed in any case.
    own: Vec<PathBuf>,
    /// The search path for programs in a shell line.
    search_path: OsString,
}

impl Places {
    /// `folder` is the folder it would run in, if that is a different one.
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

/// The content of a file when it was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text with this digest.
    Text(Digest),
    /// A program, recognised by a zero byte near its beginning.
    Binary,
}

/// The files that a command covers, and the parts that are uncovered.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The folder whose files count.
    pub(crate) top: Option<PathBuf>,
    /// The files whose content is part of what is approved.
    pub(crate) files: Vec<PathBuf>,
    /// The covered files that are links out of the folder, each with its target.
    pub(crate) leads_out: Vec<(PathBuf, PathBuf)>,
    /// The files that were searched for what they load, with their content. This coverage is valid only for that
    /// content.
    pub(crate) read: Vec<(PathBuf, Content)>,
    /// Code that may run without being part of what is approved.
    pub(crate) uncovered: Vec<String>,
    /// Arguments that name code or are shell text, each with its replacement.
    pub(crate) code_arguments: Vec<(String, Replacement)>,
    /// Words of the shell line that name code.
    pub(crate) line: Vec<Edit>,
    /// Words of scripts that name code relative to the working folder, by script.
    pub(crate) scripts: Vec<ScriptEdits>,
    /// The folder in which Python finds a module through the working folder.
    pub(crate) modules: Option<PathBuf>,
    /// Whether Python runs inline code, and so takes modules from the working folder by default.
    pub(crate) is_inline_python: bool,
    /// The folder that relative names start from.
    pub(crate) here: Option<PathBuf>,
    /// Whether the command names the program by its path instead of by `PATH`.
    pub(crate) program_is_named: bool,
    /// Whether the code looks for files beside itself, or for packages of the folder.
    pub(crate) needs_its_place: bool,
    /// The folder it runs in, if a relative name means a file in that folder. In any other folder, the same name would
    /// mean another file, or none.
    pub(crate) runs_in: Option<PathBuf>,
}

/// Why the coverage of a command could not be found.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// The command names more files than a person can check.
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

/// The files that a command covers. `looked` gets every file and folder that the answer depends on.
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
    /// The folders that a relative name may start from, including those that the line enters with `cd`.
    here: Vec<PathBuf>,
    /// The folders in which Python looks for modules, in addition to that of the script.
    roots: Vec<PathBuf>,
    folders: &'a [(&'static str, PathBuf)],
    mentioned: MentionedFiles,
    coverage: Coverage,
    /// Code that was found and not yet read, each with the folder of the script that was started first.
    code: Vec<(PathBuf, Option<Language>, PathBuf)>,
    /// Words that name code in the text being read.
    edits: Vec<Edit>,
    /// Files and folders that the answer depends on.
    seen: BTreeSet<PathBuf>,
    /// How many words were looked up.
    words: usize,
    /// Whether a relative name led to a file.
    from_here: bool,
}

/// The result of looking up a name.
enum FoundName {
    Nothing,
    File(PathBuf),
    Folder(PathBuf),
}

impl Search<'_> {
    /// Reads the code that was found, until no new code turns up.
    fn follow(&mut self) -> Result<(), CoverageError> {
        let mut done = BTreeSet::new();
        while let Some((file, language, root)) = self.code.pop() {
            if !done.insert(file.clone()) {
                continue;
            }
            self.seen.insert(file.clone());
            // A binary names no files that we could read, however long it is.
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
            // If invalid UTF-8 was replaced, the positions in the text differ from those in the file.
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

    /// Covers the files in the first line of a script. Refuses a name that depends on the working folder.
    fn shebang(&mut self, file: &Path, text: &str) -> Result<(), CoverageError> {
        script::absolute_interpreter(file, text)?;
        for word in script::first_line(text) {
            if let FoundName::File(found) = self.named(&word)? {
                if Path::new(&word).is_relative() {
                    return Err(CoverageError::RelativeInterpreter { file: file.to_owned(), name: word });
                }
                self.push_code(found, None);
            }
        }
        for what in script::runs_beside(text) {
            let short = self.short(file);
            self.coverage
                .uncovered
                .push(format!("`{what}` in the first line of `{short}` is code that is looked up when it runs"));
        }
        Ok(())
    }

    /// Finds what code loads. `at` is its file, and the folder of the script that was started.
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
