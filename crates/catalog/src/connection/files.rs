//! Finds the hook files that people wrote for other agents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ollm_protocol::dialect::AgentDialect;

use crate::load::is_absent;

/// The most files of one folder.
const MOST_FILES: usize = 1000;

/// A file with hooks for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its path below the home or the project, without the effect of a variable.
    pub label: String,
    /// Whether it came with a project.
    pub in_project: bool,
}

/// The place of an agent's file, usually `below` a person's home. The agent's variable may replace the first folder.
pub fn in_home(
    agent: &AgentDialect,
    below: &str,
    home: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let (first, rest) = below.split_once('/').unwrap_or((below, ""));
    Some(agent_folder(agent, first, home, env)?.join(rest))
}

/// The hook files for an agent in a person's home.
pub fn written_by_user(
    agent: &AgentDialect,
    home: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<WrittenFile> {
    found(agent.home.written.user, false, |first| agent_folder(agent, first, home, env))
}

/// The hook files for an agent in a project.
pub fn written_in_project(agent: &AgentDialect, project: &Path) -> Vec<WrittenFile> {
    found(agent.home.written.project, true, |first| Some(project.join(first)))
}

fn agent_folder(
    agent: &AgentDialect,
    first: &str,
    home: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let moved = agent.home.variable.and_then(env).filter(|folder| !folder.is_empty());
    moved.map(PathBuf::from).or_else(|| Some(home?.join(first)))
}

fn found(patterns: &[&'static str], in_project: bool, folder: impl Fn(&str) -> Option<PathBuf>) -> Vec<WrittenFile> {
    let below = |pattern: &&'static str| {
        let (first, rest) = pattern.split_once('/')?;
        Some(matching(&folder(first)?, rest).into_iter().map(move |(path, label)| WrittenFile {
            path,
            label: format!("{first}/{label}"),
            in_project,
        }))
    };
    patterns.iter().filter_map(below).flatten().collect()
}

/// The files below a folder that match a pattern, with their paths below it, in order.
fn matching(folder: &Path, pattern: &str) -> Vec<(PathBuf, String)> {
    let (part, rest) = pattern.split_once('/').map_or((pattern, None), |(part, rest)| (part, Some(rest)));
    let names = match part.split_once('*') {
        None => Ok(vec![part.to_owned()]),
        Some((start, end)) => names(folder, start, end),
    };
    let names = match names {
        Ok(names) => names,
        Err(error) if is_absent(&error) => return Vec::new(),
        // The reader reports why it cannot be opened.
        Err(_) => return vec![(folder.to_owned(), part.to_owned())],
    };
    let deeper = |name: String| {
        let path = folder.join(&name);
        match rest {
            None if is_there(&path, part.contains('*')) => vec![(path, name)],
            None => Vec::new(),
            Some(rest) => {
                matching(&path, rest).into_iter().map(|(path, label)| (path, format!("{name}/{label}"))).collect()
            }
        }
    };
    names.into_iter().flat_map(deeper).collect()
}

/// Whether there is something to read or to report: an unreadable path must not count as missing. Of several matches,
/// only files count.
fn is_there(path: &Path, one_of_many: bool) -> bool {
    match path.metadata() {
        Ok(meta) => meta.is_file() || !one_of_many,
        Err(error) => !is_absent(&error),
    }
}

/// The names in a folder with this prefix and suffix. Hidden names belong to editors and tools.
fn names(folder: &Path, start: &str, end: &str) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let fits = |name: &String| !name.starts_with('.') && name.starts_with(start) && name.ends_with(end);
    let mut names: Vec<String> = names.filter(fits).take(MOST_FILES).collect();
    names.sort_unstable();
    Ok(names)
}
