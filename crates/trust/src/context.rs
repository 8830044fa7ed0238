//! The surroundings that decide which program and which files would run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ollm_process::find_program;

/// The surroundings of everything that can be approved, as values.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrustContext<'a> {
    /// The variables of the process that would start it.
    pub variables: &'a [(OsString, OsString)],
    /// The root of the project at hand, if there is one.
    pub project: Option<&'a Path>,
    /// The user's home, if it is known.
    pub home: Option<&'a Path>,
    /// The folder it would run in; without it, the root of the project.
    pub folder: Option<&'a Path>,
}

impl<'a> TrustContext<'a> {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&'a OsStr> {
        self.variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_os_str())
    }

    /// The search path for programs.
    pub fn search_path(&self) -> &'a OsStr {
        self.get("PATH").unwrap_or_else(|| OsStr::new("/usr/local/bin:/usr/bin:/bin"))
    }

    /// The program of this name on the search path.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.search_path())
    }

    /// The name of the user.
    pub fn user(&self) -> String {
        let names = ["USER", "LOGNAME", "USERNAME"].iter().filter_map(|name| self.get(name)?.to_str());
        names.map(str::to_owned).next().unwrap_or_else(|| "user".to_owned())
    }
}
