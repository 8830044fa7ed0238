//! The queue of files that may have changed. A file that changes all the time does not delay the others.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use super::cause::Chain;

/// Files to look at, each once.
#[derive(Debug, Default)]
pub(super) struct ChangeQueue {
    order: VecDeque<PathBuf>,
    /// The chain that led to the change of each.
    chains: HashMap<PathBuf, Chain>,
}

impl ChangeQueue {
    /// Adds a file; a file that is already queued keeps its place.
    pub(super) fn push(&mut self, path: PathBuf, chain: Chain) {
        if self.chains.insert(path.clone(), chain).is_none() {
            self.order.push_back(path);
        }
    }

    /// The first file that need not wait.
    pub(super) fn pop(&mut self, waits: &mut dyn FnMut(&Path) -> bool) -> Option<(PathBuf, Chain)> {
        let at = self.order.iter().position(|path| !waits(path))?;
        let path = self.order.remove(at)?;
        let chain = self.chains.remove(&path).unwrap_or_default();
        Some((path, chain))
    }

    /// Whether there is a file that need not wait.
    pub(super) fn has(&self, waits: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.order.iter().any(|path| !waits(path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_in_which_they_were_noticed_and_once_each() {
        let mut queue = ChangeQueue::default();
        for path in ["z", "b", "a", "z"] {
            queue.push(path.into(), Chain::default());
        }
        let mut next = |left: &str| queue.pop(&mut |path| path == Path::new(left)).map(|(path, _)| path);
        assert_eq!(next("z"), Some("b".into()));
        assert_eq!(next(""), Some("z".into()));
        assert_eq!(next("a"), None);
        assert_eq!(next(""), Some("a".into()));
        assert!(queue.is_empty());
    }
}
