//! Checks the paths of entries: which ones are safe on every system, and which two mean the same file on some systems.

use icu_normalizer::ComposingNormalizer;

use crate::collect::Refusal;

/// The longest path; longer ones cannot be written on every system.
const LONGEST_PATH: usize = 1024;
/// The longest name; longer ones cannot be written on any system.
const LONGEST_NAME: usize = 255;
const DEEPEST: usize = 40;

/// The path of an entry with `/` between its parts; `None` for the root itself.
pub(crate) fn checked(raw: &[u8]) -> Result<Option<String>, Refusal> {
    let refused = |why: &'static str| Refusal::Path { path: shown(raw), why };
    let text = std::str::from_utf8(raw).map_err(|_| refused("is not UTF-8 text"))?;
    if text.is_empty() {
        return Err(refused("is empty"));
    }
    if text.starts_with('/') {
        return Err(refused("is absolute"));
    }
    if text.chars().any(is_odd) {
        return Err(refused("has control or invisible characters"));
    }
    if text.contains('\\') {
        return Err(refused("has a backslash, which separates folders on some systems"));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(refused("leads out of the package"));
    }
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(refused("is part of a repository"));
    }
    // `c:` names a drive, `x:y` a stream inside a file.
    if parts.iter().any(|part| part.contains(':') || part.ends_with(['.', ' '])) {
        return Err(refused("means another file on some systems"));
    }
    let path = parts.join("/");
    if path.len() > LONGEST_PATH || parts.len() > DEEPEST || parts.iter().any(|part| part.len() > LONGEST_NAME) {
        return Err(refused("is too long"));
    }
    Ok((!path.is_empty()).then_some(path))
}

/// The form of a path that two paths share if some system treats them as one file: case and composed letters are
/// unified.
pub(crate) fn folded(path: &str) -> String {
    let normal = ComposingNormalizer::new_nfc();
    // Maps each letter to small, capital and small again: `ς` and `σ` share their capital, and so do `ß` and `ss`.
    let lower = normal.normalize(path).chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    let folded: String = lower.into_iter().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    normal.normalize(&folded).into_owned()
}

/// The target of a link, relative to the folder of the link (`from`, empty for the root); `None` if it leads outside.
pub(crate) fn joined(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// A path as a message can show it.
pub(crate) fn shown(raw: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(raw);
    let shown: String = text.chars().take(MOST).flat_map(|letter| EscapedChar::of(letter).0).collect();
    if text.chars().count() > MOST { format!("{shown}…") } else { shown }
}

struct EscapedChar(Vec<char>);

impl EscapedChar {
    fn of(letter: char) -> EscapedChar {
        EscapedChar(if is_odd(letter) { letter.escape_unicode().collect() } else { vec![letter] })
    }
}

/// Characters that are invisible, or that change how other characters appear.
fn is_odd(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_or_deceive_are_refused() {
        for good in ["a", "./a", "a//b", "a/./b", "ä/ü", ".hidden", "a b", "-x"] {
            assert!(checked(good.as_bytes()).is_ok(), "{good}");
        }
        let long = "x".repeat(256);
        let deep = "x/".repeat(41);
        for bad in [
            "",
            "/a",
            "//a",
            "..",
            "a/../b",
            "a/..",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            "a\u{200b}b",
            ".git/config",
            "x/.GIT/y",
            "c:/x",
            "a:b",
            "a.",
            "a ",
            &long,
            &deep,
        ] {
            assert!(checked(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(checked(b"a\xff").is_err() && checked(b"a\0b").is_err());
        assert_eq!(checked(b"./"), Ok(None));
        assert_eq!(checked(b"./a//b/"), Ok(Some("a/b".to_owned())));
    }

    #[test]
    fn paths_that_are_one_file_somewhere_are_told() {
        for (one, other) in [
            ("README", "readme"),
            ("\u{e9}", "e\u{301}"),
            ("\u{c9}", "e\u{301}"),
            ("\u{17f}h", "sh"),
            ("\u{212a}", "k"),
            ("\u{df}", "SS"),
            ("\u{1e9e}", "\u{df}"),
            ("\u{fb01}x", "fix"),
            ("\u{39f}\u{3a3}", "\u{3bf}\u{3c3}"),
            ("\u{3c2}", "\u{3c3}"),
        ] {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        assert_ne!(folded("a"), folded("b"));
    }

    #[test]
    fn links_are_followed_inside_only() {
        assert_eq!(joined("a/b", "../c"), Some("a/c".to_owned()));
        assert_eq!(joined("", "./x"), Some("x".to_owned()));
        assert_eq!(joined("a", "../../x"), None);
        assert_eq!(joined("a", "/etc/passwd"), None);
    }
}
