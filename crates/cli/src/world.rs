//! What the process was started with. Nothing else reads the environment, the home or the clock.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_catalog::{Places, find_project};

use crate::error::{Failure, Kind};

/// The process's surroundings, read once.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) places: Places,
    /// What was odd about the surroundings.
    pub(crate) notices: Vec<String>,
}

impl World {
    pub(crate) fn of_this_process() -> Result<World, Failure> {
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(Kind::Environment, format!("the current folder cannot be found: {error}"))
                .hint("change into a folder that exists")
        })?;
        Ok(World::new(std::env::vars_os().collect(), cwd, std::env::home_dir()))
    }

    pub(crate) fn new(variables: Vec<(OsString, OsString)>, cwd: PathBuf, user_home: Option<PathBuf>) -> World {
        let user_home = user_home.filter(|home| home.is_absolute());
        let own = user_home.as_deref().unwrap_or(Path::new("/nonexistent")).join(".ollm");
        let moved = variables.iter().find(|(name, value)| name == "OLLM_HOME" && !value.is_empty());
        let moved = moved.map(|(_, value)| cwd.join(value));
        let mut notices = Vec::new();
        let mut home = own.clone();
        if let Some(moved) = moved {
            // A repository that could name our home could approve itself.
            if find_project(&cwd, &own).is_some_and(|project| lies_in(&moved, &project)) {
                notices.push(format!("OLLM_HOME={} lies inside the project and is ignored", moved.display()));
            } else {
                home = moved;
            }
        }
        let project = find_project(&cwd, &home);
        World { variables, cwd, places: Places { home, user_home, project }, notices }
    }

    /// The value of a variable that is text.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(variable, _)| variable == name);
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned)
    }

    /// The time, in ISO 8601.
    #[expect(clippy::unused_self, reason = "the clock is part of the world")]
    pub(crate) fn now(&self) -> String {
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Where approvals are kept.
    pub(crate) fn approvals(&self) -> PathBuf {
        self.places.home.join("trusted-hooks.json")
    }
}

fn lies_in(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    match (real(path), real(folder)) {
        (Some(path), Some(folder)) => path.starts_with(folder),
        _ => path.starts_with(folder),
    }
}
