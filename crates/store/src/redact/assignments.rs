//! Finds values that are assigned to secret names inside a text, as in a shell command: `export API_TOKEN=…`,
//! `?password=…`.

use std::borrow::Cow;

use super::looks_secret;

/// The replacement for such a value.
const REDACTED: &str = "[redacted]";
/// Shorter values are flags and numbers.
const SHORTEST: usize = 4;
/// A longer word is not a name.
const LONGEST_NAME: usize = 64;

/// The text without values that are assigned to secret names. A variable as the value reveals nothing, and stays.
///
/// ```
/// use ollm_store::hide_assignments;
/// assert_eq!(hide_assignments("export AWS_SECRET_ACCESS_KEY=abc/123; ls"), "export AWS_SECRET_ACCESS_KEY=[redacted]; ls");
/// assert_eq!(hide_assignments("curl \"$URL?token=$TOKEN\" --max-tokens=4096"), "curl \"$URL?token=$TOKEN\" --max-tokens=4096");
/// ```
pub fn hide_assignments(text: &str) -> Cow<'_, str> {
    let (mut hidden, mut done) = (String::new(), 0);
    for (at, _) in text.match_indices('=') {
        let Some(before) = text.get(done..at) else { continue };
        let value = text.get(at + 1..).unwrap_or_default();
        let (start, length) = extent(value);
        let is_variable = value.get(start..).is_some_and(|value| value.starts_with(['$', '`', '=']));
        if length < SHORTEST || is_variable || !looks_secret(name_before(before)) {
            continue;
        }
        hidden.extend([before, "=", value.get(..start).unwrap_or_default(), REDACTED]);
        done = at + 1 + start + length;
    }
    if done == 0 {
        return text.into();
    }
    hidden.push_str(text.get(done..).unwrap_or_default());
    hidden.into()
}

/// The name at the end of a text.
fn name_before(text: &str) -> &str {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let before = text.trim_end_matches(is_of_name);
    let name = text.get(before.len()..).unwrap_or_default().trim_start_matches('-');
    if name.len() > LONGEST_NAME { "" } else { name }
}

/// The start of a value after its quote, and its length.
fn extent(value: &str) -> (usize, usize) {
    if let Some(quote) = value.chars().next().filter(|letter| ['"', '\''].contains(letter)) {
        let inner = value.get(1..).unwrap_or_default();
        return (1, inner.find(quote).unwrap_or(inner.len()));
    }
    let ends = |letter: char| letter.is_whitespace() || ";&|<>()\"'`,".contains(letter);
    (0, value.find(ends).unwrap_or(value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_names_of_secrets_go_and_all_else_stays() {
        for (text, clean) in [
            ("password=hunter2&user=ada", "password=[redacted]&user=ada"),
            ("a TOKEN='x y z' b", "a TOKEN='[redacted]' b"),
            ("--auth-token=abcdef --size=5000", "--auth-token=[redacted] --size=5000"),
            ("GITHUB_TOKEN=\"ghx_öä\"\nPATH=/usr/bin", "GITHUB_TOKEN=\"[redacted]\"\nPATH=/usr/bin"),
            ("TOKEN=$(pass show x)", "TOKEN=$(pass show x)"),
            ("if password==secret", "if password==secret"),
            ("MAX_TOKENS=4096", "MAX_TOKENS=4096"),
            ("A_SECRET=one B_SECRET=twotwo", "A_SECRET=one B_SECRET=[redacted]"),
            ("=", "="),
            ("öTOKEN=abcdefg", "öTOKEN=[redacted]"),
        ] {
            assert_eq!(hide_assignments(text), clean);
        }
    }
}
