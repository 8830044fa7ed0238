//! A live application: events pass through it, and between turns it is reloaded.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::app::App;

/// An application that several parts of a session share. Every thread may read it; only the reload between turns
/// changes it.
#[derive(Debug)]
pub struct LiveApp(RwLock<App>);

impl LiveApp {
    /// An application, ready to be used.
    pub fn new(app: App) -> LiveApp {
        LiveApp(RwLock::new(app))
    }

    /// The present application. A reload waits until the guard is dropped.
    pub fn read(&self) -> RwLockReadGuard<'_, App> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The application, for the reload that changes it.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, App> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The application, once the session is over.
    pub fn into_inner(self) -> App {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
