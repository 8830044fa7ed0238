//! A text that is known, or that is fetched at first use.

use std::fmt;
use std::sync::{Arc, OnceLock};

type Fetch = dyn Fn() -> Result<String, String> + Send + Sync;

/// A text that is known, or that is fetched at first use. All clones share a fetched text. After a failed fetch, the
/// next use tries again.
#[derive(Clone)]
pub struct HeldText(Arc<Inner>);

struct Inner {
    label: String,
    text: OnceLock<String>,
    fetch: Box<Fetch>,
}

impl HeldText {
    /// A text to be fetched from its store; the error says why that fails. The label identifies the text without its
    /// content: different texts have different labels.
    pub fn kept(label: String, fetch: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> HeldText {
        HeldText(Arc::new(Inner { label, text: OnceLock::new(), fetch: Box::new(fetch) }))
    }

    /// The text.
    pub fn get(&self) -> Result<&str, String> {
        if let Some(text) = self.0.text.get() {
            return Ok(text);
        }
        let text = (self.0.fetch)()?;
        Ok(self.0.text.get_or_init(|| text))
    }

    /// The text, if it is already known.
    pub fn known(&self) -> Option<&str> {
        self.0.text.get().map(String::as_str)
    }
}

impl From<String> for HeldText {
    fn from(text: String) -> HeldText {
        let fetch = Box::new(|| Err("it is known".to_owned()));
        HeldText(Arc::new(Inner { label: String::new(), text: text.into(), fetch }))
    }
}

impl From<&str> for HeldText {
    fn from(text: &str) -> HeldText {
        text.to_owned().into()
    }
}

/// Hides the text, because it may be a secret.
impl fmt::Debug for HeldText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.known().is_some() { "Held(known)" } else { "Held(kept)" })
    }
}

impl PartialEq for HeldText {
    fn eq(&self, other: &HeldText) -> bool {
        match (self.0.label.as_str(), other.0.label.as_str()) {
            ("", "") => self.known() == other.known(),
            (own, others) => own == others,
        }
    }
}

impl Eq for HeldText {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_was_fetched_once_is_known_to_all_and_what_was_not_is_asked_for_again() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let held = HeldText::kept("pin#1".to_owned(), move || match count.fetch_add(1, Ordering::Relaxed) {
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
        let kept = |label: &str| HeldText::kept(label.to_owned(), || Ok("a".to_owned()));
        assert_eq!(kept("pin#1"), kept("pin#1"));
        assert_ne!(kept("pin#1"), kept("pin#2"));
        assert_eq!(HeldText::from("a"), HeldText::from("a"));
        assert_ne!(HeldText::from("a"), kept("pin#1"));
    }
}
