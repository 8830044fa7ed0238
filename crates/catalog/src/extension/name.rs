//! The names of extensions, which are also parts of ids, paths and variables.

/// Names with another meaning where extensions are named.
const RESERVED: &[&str] =
    &["all", "builtin", "default", "extension", "extensions", "none", "ollm", "project", "user", "workspace"];

/// Names that are devices in every folder on some systems.
const DEVICES: &[&str] = &["aux", "con", "nul", "prn"];
const NUMBERED_DEVICES: &[&str] = &["com", "lpt"];

const LONGEST: usize = 64;

/// Why a text is not a valid name for an extension.
pub fn check_extension_name(name: &str) -> Result<(), String> {
    let letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is a reserved name"));
    }
    if is_device(name) {
        return Err(format!("`{name}` is a device on some systems, and can be no folder there"));
    }
    let plain = name.chars().all(|each| letter(each) || each == '-');
    if !plain || !name.starts_with(letter) || !name.ends_with(letter) {
        return Err(
            "a name has lower-case letters, digits and hyphens, and begins and ends with a letter or digit".into()
        );
    }
    if name.len() > LONGEST {
        return Err(format!("a name has at most {LONGEST} characters"));
    }
    Ok(())
}

/// The names that are refused although their form is valid.
pub(super) fn reserved() -> Vec<String> {
    let numbered = NUMBERED_DEVICES.iter().flat_map(|device| (1..=9).map(move |number| format!("{device}{number}")));
    RESERVED.iter().chain(DEVICES).map(|name| (*name).to_owned()).chain(numbered).collect()
}

fn is_device(name: &str) -> bool {
    let number = NUMBERED_DEVICES.iter().find_map(|device| name.strip_prefix(device));
    DEVICES.contains(&name) || number.is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
}

/// Whether a text is a valid name for a setting, a skill or a server.
pub(super) fn is_plain(name: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphanumeric();
    name.len() <= LONGEST
        && name.starts_with(letter)
        && name.chars().all(|each| letter(each) || each == '-' || each == '_')
}

pub(super) const PLAIN: &str = "use letters, digits, `-` and `_`, at most 64, beginning with a letter or digit";

/// The words of a name in upper snake case: `github-integration` and `defaultRepo` become `GITHUB_INTEGRATION` and
/// `DEFAULT_REPO`.
pub(super) fn upper_snake(name: &str) -> String {
    let mut upper = String::with_capacity(name.len() + 4);
    let mut before = '_';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let next_is_lower = letters.peek().is_some_and(char::is_ascii_lowercase);
        let begins_word = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && next_is_lower));
        if begins_word {
            upper.push('_');
        }
        upper.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' });
        before = letter;
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_paths_or_reserved_are_refused() {
        for name in ["a", "github-integration", "a1", "0", "com", "com0", "com10", "console", "lpt-1"] {
            assert_eq!(check_extension_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(65);
        for name in [
            "", ".", "..", "a/b", "/a", "A", "a_b", "-a", "a-", "a b", "ollm", "user", "ä", "a\0", &long, "con", "nul",
            "aux", "prn", "com1", "com9", "lpt1", "lpt9",
        ] {
            assert!(check_extension_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_become_upper_snake_case() {
        for (name, upper) in [
            ("github-integration", "GITHUB_INTEGRATION"),
            ("defaultRepo", "DEFAULT_REPO"),
            ("githubToken", "GITHUB_TOKEN"),
            ("baseURL", "BASE_URL"),
            ("URLBase", "URL_BASE"),
            ("v2Api", "V2_API"),
            ("plain", "PLAIN"),
            ("snake_case", "SNAKE_CASE"),
        ] {
            assert_eq!(upper_snake(name), upper, "{name}");
        }
    }
}
