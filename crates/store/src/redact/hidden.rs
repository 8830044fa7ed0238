//! Secrets that were fetched while the program runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Secrets that were fetched, shared with all code that writes output, so that it can hide them. Clones share one list.
///
/// ```
/// use ollm_store::{Hidden, Redactor};
/// let hidden = Hidden::default();
/// hidden.clone().add([("PIN".to_owned(), "74185296300".to_owned())]);
/// assert_eq!(Redactor::new(hidden.list()).redact_str("it is 74185296300"), "it is [redacted:PIN]");
/// ```
#[derive(Clone, Default)]
pub struct Hidden(Arc<Mutex<Vec<(String, String)>>>);

impl Hidden {
    /// Remembers these names and values.
    pub fn add(&self, secrets: impl IntoIterator<Item = (String, String)>) {
        let mut secrets = secrets.into_iter().peekable();
        if secrets.peek().is_none() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if !known.contains(&secret) {
                known.push(secret);
            }
        }
    }

    /// All names and values so far.
    pub fn list(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `Debug` shows no values.
impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.list().iter().map(|(name, _)| name)).finish()
    }
}
