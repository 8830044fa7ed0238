//! What may run, and from which copy: the end of every check.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_protocol::{Commands, Hook};
use ollm_shell::shell_word;
use ollm_store::Digest;

use crate::approvable::Approvable;
use crate::content_store::StoredCopy;
use crate::coverage::{COPY_FOLDER, Coverage, Edit, Replacement, loads_code, rewritten};

/// Something that may run, with the program that runs it.
///
/// Only [`Trust::trust`] makes one, so running what nobody approved does not compile:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
/// use ollm_trust::Trusted;
///
/// fn forge(hook: Arc<ollm_protocol::Hook>) -> Trusted<ollm_protocol::Hook> {
///     Trusted { thing: hook, program: "/bin/sh".into(), digest: None, copy: None, coverage: Default::default() }
/// }
/// ```
#[derive(Debug)]
pub struct Trusted<T> {
    pub(super) thing: Arc<T>,
    pub(super) program: PathBuf,
    pub(super) digest: Option<Digest>,
    pub(super) copy: Option<Arc<StoredCopy>>,
    pub(super) coverage: Arc<Coverage>,
    pub(super) commands: Commands,
}

impl<T> Clone for Trusted<T> {
    fn clone(&self) -> Trusted<T> {
        Trusted {
            thing: Arc::clone(&self.thing),
            program: self.program.clone(),
            digest: self.digest,
            copy: self.copy.clone(),
            coverage: Arc::clone(&self.coverage),
            commands: self.commands,
        }
    }
}

impl<T> Trusted<T> {
    /// What may run.
    pub fn thing(&self) -> &Arc<T> {
        &self.thing
    }

    /// The digest that was approved, for what needs approval.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Whether it runs from a copy of exactly what was approved.
    pub fn runs_from_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// The program to start.
    pub fn program(&self) -> PathBuf {
        self.approved(&self.program).unwrap_or_else(|| self.program.clone())
    }

    /// The copy of a file that was approved along with it.
    pub fn approved(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
    }

    /// The folder it runs in, where it names files of that folder by relative paths.
    pub fn runs_in(&self) -> Option<&Path> {
        self.coverage.runs_in.as_deref()
    }

    /// An argument that names code, with the copy of that code in place of its name.
    pub fn code_argument(&self, argument: &str) -> Option<OsString> {
        match self.coverage.code_arguments.iter().find(|(written, _)| written == argument)? {
            (_, Replacement::File { prefix, file }) => {
                let mut replaced = OsString::from(prefix);
                replaced.push(self.approved(file)?);
                Some(replaced)
            }
            (_, Replacement::Code { text, edits }) => Some(self.led_to_copy(text, edits)?.into()),
        }
    }

    /// Its line for a shell, with the copies of the code it names in place of their names.
    pub fn shell_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        self.led_to_copy(line, &self.coverage.line).map_or(Cow::Borrowed(line), Cow::Owned)
    }

    fn led_to_copy(&self, text: &str, edits: &[Edit]) -> Option<String> {
        let copy = self.copy.as_ref().filter(|_| !edits.is_empty())?;
        Some(rewritten(text, edits, &|file| copy.place_of(file)))
    }

    /// The value of a variable that loads code, with the copies of that code in place of their names.
    pub fn code_variable(&self, name: &str, value: &str) -> Option<OsString> {
        let (copy, here) = (self.copy.as_ref()?, self.coverage.here.as_ref()?);
        if !loads_code(name) {
            return None;
        }
        let in_copy = |part: &str| {
            let copy =
                copy.path_of(&here.join(part)).filter(|_| !part.is_empty())?.into_os_string().into_string().ok()?;
            // There is no way to quote it in some of them.
            (!copy.contains(char::is_whitespace)).then_some(copy)
        };
        let parts = value.split_inclusive([' ', ':', '=']).map(|part| {
            let name = part.trim_end_matches([' ', ':', '=']);
            in_copy(name).map_or_else(|| part.to_owned(), |copy| part.replace(name, &copy))
        });
        Some(parts.collect::<String>().into())
    }

    /// What it is told about its copy: where that is, and that Python takes modules from there.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let Some(copy) = &self.copy else { return Vec::new() };
        let mut told = vec![(COPY_FOLDER, copy.folder.clone().into())];
        if let Some(modules) = self.coverage.modules.as_ref().and_then(|folder| copy.path_of(folder)) {
            told.extend([("PYTHONPATH", modules.into()), ("PYTHONSAFEPATH", "1".into())]);
        }
        told
    }
}

impl Trusted<Hook> {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        &self.thing
    }
}

impl<T: Approvable> Trusted<T> {
    /// Why the program cannot be started although it is what was approved: what was approved is no program.
    pub fn unready(&self) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;
        let copy = self.approved(&self.program)?;
        let mode = copy.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
        if mode & 0o111 != 0 {
            return None;
        }
        let file = self.program.display();
        let mend = format!("chmod +x {}", shell_word(&file.to_string()));
        let again = self.commands.command(&self.thing.remedy());
        let again = again.map(|command| format!(": `{command}`")).unwrap_or_default();
        Some(format!("`{file}` is not executable; run `{mend}`, then approve it again, for it is changed{again}"))
    }
}
