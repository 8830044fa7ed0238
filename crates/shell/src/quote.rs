//! Quotes words so that they can be pasted into a shell safely.

use std::borrow::Cow;

/// A word in the form that a shell reads back: unquoted if it is plain, else in single quotes.
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

/// Any word in single quotes.
pub fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
