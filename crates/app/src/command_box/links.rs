//! Links on the way to a protected path. A command that replaces such a link, or the last link's target, replaces the
//! protected path.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::content::may_change;

/// The kernel's limit of links in one path.
const MOST_LINKS: usize = 40;

/// The links on the way to a path, and the final target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinkedWay {
    /// The links that a command could replace, each at its real path.
    pub(super) links: Vec<PathBuf>,
    /// The final target, which may not exist.
    pub(super) target: PathBuf,
}

/// The way to a path, if a command could replace a link on it.
pub(super) fn linked_way(path: &Path) -> Option<LinkedWay> {
    let (mut links, mut followed) = (Vec::new(), 0);
    let mut here = PathBuf::from("/");
    let mut rest = names(path);
    while let Some(name) = rest.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&name);
        match fs::read_link(&next) {
            Ok(target) if followed < MOST_LINKS => {
                followed += 1;
                links.extend(may_change(&here).then_some(next));
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                rest.extend(names(&target));
            }
            _ => here = next,
        }
    }
    (!links.is_empty()).then_some(LinkedWay { links, target: here })
}

/// The names in a path, the last one first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_named_and_where_the_last_one_leads() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("dot/v1/codex")).unwrap();
        for (link, target) in
            [(".codex", "dot/current/codex"), ("dot/current", "v1"), (".zshrc", "dot/../dot/zshrc"), ("loop", "loop")]
        {
            symlink(target, root.join(link)).unwrap();
        }
        let way = |path: &str| {
            let way = linked_way(&root.join(path))?;
            let below = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            Some((way.links.iter().map(below).collect::<Vec<_>>().join(" "), below(&way.target)))
        };
        let told = |links: &str, target: &str| Some((links.to_owned(), target.to_owned()));
        assert_eq!(way("dot/v1/codex"), None);
        assert_eq!(way(".codex/config.toml"), told(".codex dot/current", "dot/v1/codex/config.toml"));
        assert_eq!(way(".zshrc"), told(".zshrc", "dot/zshrc"));
        assert!(way("loop").is_some());
    }
}
