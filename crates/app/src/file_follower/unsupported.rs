//! Where the system does not tell of folders in a way that is used here.

use std::convert::Infallible;
use std::os::fd::BorrowedFd;
use std::path::Path;

use ollm_catalog::StampedPaths;

/// There are none.
pub(super) struct FolderWatches(Infallible);

pub(super) struct Touched(Infallible);

impl Touched {
    pub(super) fn counts(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn is_below(&self, _: &Path) -> bool {
        match self.0 {}
    }
}

impl FolderWatches {
    pub(super) fn new() -> Option<FolderWatches> {
        None
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub(super) fn set(&mut self, _: StampedPaths) -> Option<bool> {
        match self.0 {}
    }

    pub(super) fn take(&mut self) -> Touched {
        match self.0 {}
    }
}
