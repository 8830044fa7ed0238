//! Something that may run, and the copy it runs from: the result of all checks.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_protocol::{Commands, Hook};
use ollm_shell::{program_variable, shell_word};
use ollm_store::{Digest, tree};

use crate::approvable::Approvable;
use crate::content_store::StoredCopy;
use crate::coverage::{COPY_FOLDER, Coverage, Edit, Replacement, rewritten};

/// Something that may run, with the program that runs it.
///
/// Only [`Trust::trust`](crate::Trust::trust) makes one, so running something unapproved does not compile:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
/// use ollm_trust::Trusted;
///
/// fn forge(hook: Arc<ollm_protocol::Hook>) -> Trusted<ollm_protocol::Hook> {
///     Trusted { thing: hook, run: Default::default(), commands: Default::default() }
/// }
/// ```
#[derive(Debug)]
pub struct Trusted<T> {
    pub(super) thing: Arc<T>,
    pub(super) run: Arc<Run>,
    pub(super) commands: Commands,
}

/// The program to start, and its copy. It stays the same for every event until something changes.
#[derive(Debug)]
pub(crate) struct Run {
    /// The program that was approved.
    program: PathBuf,
    /// The program to start: the copy, if there is one.
    start: PathBuf,
    /// Whether the copy of the program is not executable.
    is_no_program: bool,
    pub(super) digest: Option<Digest>,
    pub(super) copy: Option<Arc<StoredCopy>>,
    coverage: Arc<Coverage>,
}

impl Run {
    pub(super) fn new(
        program: PathBuf,
        digest: Option<Digest>,
        copy: Option<Arc<StoredCopy>>,
        coverage: Arc<Coverage>,
    ) -> Run {
        let copied = copy.as_ref().and_then(|copy| copy.path_of(&program));
        let meta = copied.as_ref().and_then(|copy| copy.metadata().ok());
        let is_no_program = meta.is_some_and(|meta| meta.is_file() && !tree::is_executable(&meta));
        let start = copied.unwrap_or_else(|| program.clone());
        Run { program, start, is_no_program, digest, copy, coverage }
    }

    /// The program that was approved.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The copy it runs from.
    pub(crate) fn copy(&self) -> Option<&StoredCopy> {
        self.copy.as_deref()
    }
}

impl<T> Clone for Trusted<T> {
    fn clone(&self) -> Trusted<T> {
        Trusted { thing: Arc::clone(&self.thing), run: Arc::clone(&self.run), commands: self.commands }
    }
}

impl<T> Trusted<T> {
    /// The thing that may run.
    pub fn thing(&self) -> &Arc<T> {
        &self.thing
    }

    /// The approved digest; `None` if no approval was needed.
    pub fn digest(&self) -> Option<&Digest> {
        self.run.digest.as_ref()
    }

    /// Whether it runs from a copy of exactly what was approved.
    pub fn runs_from_copy(&self) -> bool {
        self.run.copy.is_some()
    }

    /// The program to start.
    pub fn program(&self) -> PathBuf {
        self.run.start.clone()
    }

    /// The folder with the copy of everything that was approved.
    pub fn copy_folder(&self) -> Option<&Path> {
        self.run.copy.as_ref().map(|copy| copy.folder.as_path())
    }

    /// The copy of a file that was approved together with it.
    pub fn approved(&self, path: &Path) -> Option<PathBuf> {
        self.run.copy.as_ref()?.path_of(path)
    }

    /// The folder it runs in, if it names files of that folder by relative paths.
    pub fn runs_in(&self) -> Option<&Path> {
        self.run.coverage.runs_in.as_deref()
    }

    /// An argument that names code, with that name replaced by the copy's.
    pub fn code_argument(&self, argument: &str) -> Option<OsString> {
        match self.run.coverage.code_arguments.iter().find(|(written, _)| written == argument)? {
            (_, Replacement::File { prefix, file }) => {
                let mut replaced = OsString::from(prefix);
                replaced.push(self.approved(file)?);
                Some(replaced)
            }
            (_, Replacement::Code { text, edits }) => Some(self.led_to_copy(text, edits)?.into()),
        }
    }

    /// Its shell line, with names of code replaced by those of the copies.
    pub fn shell_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        self.led_to_copy(line, &self.run.coverage.line).map_or(Cow::Borrowed(line), Cow::Owned)
    }

    fn led_to_copy(&self, text: &str, edits: &[Edit]) -> Option<String> {
        let copy = self.run.copy.as_ref().filter(|_| !edits.is_empty())?;
        Some(rewritten(text, edits, &|file| copy.place_of(file)))
    }

    /// Sets its variables to find code in the copy. `declared` has those that may name code by its original place.
    ///
    /// Python takes modules from the copy, then from the folders in `env`, and never from the working folder. Code that
    /// runs from a copy writes no compiled files there.
    pub fn lead_to_copy(&self, declared: &[(String, String)], env: &mut Vec<(OsString, OsString)>) {
        for (name, value) in declared {
            if let Some(value) = self.code_variable(name, value) {
                set(env, name, value);
            }
        }
        if self.runs_from_copy() && !env.iter().any(|(name, _)| name == NO_BYTECODE) {
            env.push((NO_BYTECODE.into(), "1".into()));
        }
        let Coverage { modules, is_inline_python, uncovered, .. } = &*self.run.coverage;
        let copied = self.run.copy.as_ref().inspect(|copy| set(env, COPY_FOLDER, copy.folder.clone().into()));
        let copied = copied.zip(modules.as_ref()).and_then(|(copy, folder)| copy.path_of(folder));
        // Python must find the files that an approval leaves uncovered. A program that runs in its own place must find
        // its own files.
        if copied.is_some() || *is_inline_python && modules.is_none() && uncovered.is_empty() {
            set(env, "PYTHONSAFEPATH", "1".into());
        }
        if let Some(modules) = copied {
            let mut folders = OsString::from(modules);
            if let Some((_, more)) = env.iter().find(|(name, _)| name == MODULES) {
                folders.push(":");
                folders.push(more);
            }
            set(env, MODULES, folders);
        }
    }

    /// The value of a variable that loads code, with names of code replaced by those of the copies.
    fn code_variable(&self, name: &str, value: &str) -> Option<OsString> {
        let (copy, here) = (self.run.copy.as_ref()?, self.run.coverage.here.as_ref()?);
        program_variable(name).filter(|variable| name == MODULES || variable.holds.names_code())?;
        let in_copy = |part: &str| {
            let copy =
                copy.path_of(&here.join(part)).filter(|_| !part.is_empty())?.into_os_string().into_string().ok()?;
            // Some of these variables have no way to quote a path.
            (!copy.contains(char::is_whitespace)).then_some(copy)
        };
        let parts = value.split_inclusive([' ', ':', '=']).map(|part| {
            let name = part.trim_end_matches([' ', ':', '=']);
            in_copy(name).map_or_else(|| part.to_owned(), |copy| part.replace(name, &copy))
        });
        Some(parts.collect::<String>().into())
    }
}

impl Trusted<Hook> {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        &self.thing
    }
}

impl<T: Approvable> Trusted<T> {
    /// Why the approved program cannot start: its file is not executable.
    pub fn unready(&self) -> Option<String> {
        if !self.run.is_no_program {
            return None;
        }
        let file = self.run.program.display();
        let mend = format!("chmod +x {}", shell_word(&file.to_string()));
        let again = self.commands.command(&self.thing.remedy());
        let again = again.map(|command| format!(": `{command}`")).unwrap_or_default();
        Some(format!("`{file}` is not executable; run `{mend}`, then approve it again, for it is changed{again}"))
    }
}

/// Python's variable for module folders.
const MODULES: &str = "PYTHONPATH";
/// Keeps Python from writing cache files into the copy, which would then differ from the approved content.
const NO_BYTECODE: &str = "PYTHONDONTWRITEBYTECODE";

fn set(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(known, _)| known != name);
    env.push((name.into(), value));
}
