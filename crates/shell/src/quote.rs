//! Words that can be copied into a shell without harm.

use std::borrow::Cow;

/// A word as a shell reads it back: as it is if it is plain, else in single quotes.
///
/// ```
/// assert_eq!(ollm_shell::shell_word("user:guard.json"), "user:guard.json");
/// assert_eq!(ollm_shell::shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(single_quoted(word))
}

/// A word in single quotes, whatever is in it.
pub fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
