//! Which files of a project a server's declaration names: their content is part of what is approved.
//!
//! A program takes the names of files in many ways. Whatever could be one, and is one, counts: too many files only mean
//! that somebody is asked once more. Names that a program makes up itself cannot be known.

use std::path::{Component, Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};

use super::identity::Unclear;
use super::{Address, ServerSpec, expand};

/// More words are not looked up.
const MOST_WORDS: usize = 10_000;
/// More files are nobody's command line.
const MOST_FILES: usize = 1_000;
/// No system opens a file by a longer name.
const LONGEST_PATH: usize = 4096;
/// What stands around the names of files in code and in lists.
const MARKS: &[char] =
    &['\'', '"', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '[', ']', ',', '=', ':', '$', '\\'];

/// The files that a server's declaration names in the folder it came from: the project, or the extension.
pub fn server_files(
    server: &ServerSpec,
    program: Option<&Path>,
    folder: Option<&Path>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<PathBuf>, Unclear> {
    // As it will be started: `${NONE:-server.py}` is a file of the project as well.
    let (server, _) = expand(server, get);
    let Address::Command { command, args, env, cwd, .. } = &server.address else { return Ok(Vec::new()) };
    let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) else { return Ok(Vec::new()) };
    let here = cwd.as_ref().map_or_else(|| folder.clone(), |cwd| folder.join(cwd));
    let mut search = Search { folder, here, files: Vec::new(), words: 0 };
    search.program(program);
    let running = runs(command, args);
    for (index, arg) in args.iter().enumerate() {
        let folder = search.text(arg)?;
        if let (Some(folder), true) = (folder, running == Runs::Script(index)) {
            return Err(Unclear::Folder(folder));
        }
    }
    for module in modules(args, running) {
        search.module(module)?;
    }
    for (_, value) in &env.0 {
        search.text(value)?;
    }
    Ok(search.files)
}

struct Search {
    folder: PathBuf,
    /// Where the server runs.
    here: PathBuf,
    files: Vec<PathBuf>,
    /// How many were looked up.
    words: usize,
}

impl Search {
    /// A program outside of the folder is known by its place, as any other.
    fn program(&mut self, program: Option<&Path>) {
        let real = program.and_then(|program| self.here.join(program).canonicalize().ok());
        self.files.extend(real.filter(|real| real.starts_with(&self.folder)));
    }

    /// Everything in a text that may name a file; the folder that it names as a whole.
    fn text(&mut self, text: &str) -> Result<Option<PathBuf>, Unclear> {
        let option = text.strip_prefix('-');
        let joined = option.and_then(|_| text.split_once('=')).map_or(text, |(_, value)| value);
        let named = self.word(joined)?;
        // `-rFILE`
        if let Some(value) = option.filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..)) {
            self.word(value)?;
        }
        let breaks = |letter: char| letter.is_whitespace() || MARKS.contains(&letter);
        if text.contains(breaks) {
            for part in text.split_whitespace().chain(text.split(breaks)) {
                self.word(part)?;
            }
        }
        Ok(named)
    }

    /// A name that may be one of a file; the folder, if it is one of those.
    fn word(&mut self, word: &str) -> Result<Option<PathBuf>, Unclear> {
        let address = word.strip_prefix("file://").map(local);
        let word = address.as_deref().unwrap_or(word);
        if word.is_empty() || word.len() > LONGEST_PATH {
            return Ok(None);
        }
        self.words += 1;
        if self.words > MOST_WORDS || self.files.len() > MOST_FILES {
            return Err(Unclear::Long);
        }
        let Some(real) = self.find(word) else { return Ok(None) };
        if real.is_file() && !self.files.contains(&real) {
            self.files.push(real);
            return Ok(None);
        }
        Ok(Some(real).filter(|real| real.is_dir()))
    }

    /// The files that Python runs for a module.
    fn module(&mut self, name: &str) -> Result<(), Unclear> {
        let mut folder = String::new();
        for part in name.split('.') {
            let path = format!("{folder}{part}");
            folder = format!("{path}/");
            for file in [format!("{path}.py"), format!("{folder}__init__.py"), format!("{folder}__main__.py")] {
                self.word(&file)?;
            }
        }
        Ok(())
    }

    /// Where a name leads, if it stands in the folder; a link of the folder may lead out of it.
    fn find(&self, word: &str) -> Option<PathBuf> {
        let path = self.here.join(word);
        let real = path.canonicalize().ok()?;
        let parent = || path.parent().and_then(|parent| parent.canonicalize().ok());
        let inside = real.starts_with(&self.folder)
            || plain(&path).starts_with(&self.folder)
            || parent().is_some_and(|parent| parent.starts_with(&self.folder));
        inside.then_some(real)
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

/// A path without its dots, by its words alone.
fn plain(path: &Path) -> PathBuf {
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
