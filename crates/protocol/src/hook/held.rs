//! A value that is known, or that is fetched when it is first wanted.

use std::fmt;
use std::sync::{Arc, OnceLock};

type Fetch = dyn Fn() -> Result<String, String> + Send + Sync;

/// A text that is known, or that somebody keeps and gives out when it is first wanted. All clones know what one of them
/// fetched; what could not be fetched is asked for again.
#[derive(Clone)]
pub struct Held(Arc<Inner>);

struct Inner {
    label: String,
    text: OnceLock<String>,
    fetch: Box<Fetch>,
}

impl Held {
    /// A text that is fetched from whoever keeps it; otherwise why it cannot be had. The label says which text it is,
    /// without saying what it is: another text has another label.
    pub fn kept(label: String, fetch: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Held {
        Held(Arc::new(Inner { label, text: OnceLock::new(), fetch: Box::new(fetch) }))
    }

    /// The text.
    pub fn get(&self) -> Result<&str, String> {
        if let Some(text) = self.0.text.get() {
            return Ok(text);
        }
        let text = (self.0.fetch)()?;
        Ok(self.0.text.get_or_init(|| text))
    }

    /// The text, if it is known by now.
    pub fn known(&self) -> Option<&str> {
        self.0.text.get().map(String::as_str)
    }
}

impl From<String> for Held {
    fn from(text: String) -> Held {
        let fetch = Box::new(|| Err("it is known".to_owned()));
        Held(Arc::new(Inner { label: String::new(), text: text.into(), fetch }))
    }
}

impl From<&str> for Held {
    fn from(text: &str) -> Held {
        text.to_owned().into()
    }
}

/// Shows no text: it may be a secret.
impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.known().is_some() { "Held(known)" } else { "Held(kept)" })
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        match (self.0.label.as_str(), other.0.label.as_str()) {
            ("", "") => self.known() == other.known(),
            (own, others) => own == others,
        }
    }
}

impl Eq for Held {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_was_fetched_once_is_known_to_all_and_what_was_not_is_asked_for_again() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let held = Held::kept("pin#1".to_owned(), move || match count.fetch_add(1, Ordering::Relaxed) {
            0 => Err("locked".to_owned()),
            _ => Ok("s3cret".to_owned()),
        });
        let clone = held.clone();
        assert_eq!((held.known(), held.get()), (None, Err("locked".to_owned())));
        assert_eq!((held.get(), clone.get(), clone.known()), (Ok("s3cret"), Ok("s3cret"), Some("s3cret")));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert!(!format!("{held:?}").contains("s3cret"));
    }

    #[test]
    fn two_are_the_same_if_their_labels_or_what_is_known_of_them_say_so() {
        let kept = |label: &str| Held::kept(label.to_owned(), || Ok("a".to_owned()));
        assert_eq!(kept("pin#1"), kept("pin#1"));
        assert_ne!(kept("pin#1"), kept("pin#2"));
        assert_eq!(Held::from("a"), Held::from("a"));
        assert_ne!(Held::from("a"), kept("pin#1"));
    }
}
