//! Older names of settings: still read, with a notice; `config migrate` replaces them.

use std::time::Duration;

use super::key::{KeyPlace, place};
use super::kind::ConfigKind;

/// An older name, the present path, and its kind if the older unit was different.
type OlderName = (&'static str, &'static str, Option<ConfigKind>);

/// The flat names from before there were sections, and the spelling of 004, whose timeout is in seconds.
const OLDER: &[OlderName] = &[
    ("hooksEnabled", "hooks.enabled", None),
    ("hooks_enabled", "hooks.enabled", None),
    ("hookTimeout", "hooks.timeout", None),
    ("hooksTimeout", "hooks.timeout", None),
    ("hooks_timeout", "hooks.timeout", Some(ConfigKind::Time(Duration::from_secs(1)))),
    ("trustWorkspace", "hooks.trustWorkspace", None),
    ("trustedWorkspace", "hooks.trustWorkspace", None),
    ("trust_workspace", "hooks.trustWorkspace", None),
    ("hooks.trustedWorkspace", "hooks.trustWorkspace", None),
    ("extensionsEnabled", "extensions.enabled", None),
    ("extensions_enabled", "extensions.enabled", None),
    ("extensionDirectories", "extensions.directories", None),
    ("mcpEnabled", "mcp.enabled", None),
    ("mcp_enabled", "mcp.enabled", None),
    ("mcpServers", "mcp.servers", None),
    ("mcp_servers", "mcp.servers", None),
    ("hooks.rateLimit.cooldown", "hooks.rateLimit.cooldownMs", None),
];

/// The present path for an older one: a flat name, or a known name in `snake_case` or `kebab-case`.
pub(crate) fn today(path: &[&str]) -> Option<(Vec<String>, Option<ConfigKind>)> {
    let written = path.join(".");
    if let Some((_, today, kind)) = OLDER.iter().find(|(older, ..)| *older == written) {
        return Some((today.split('.').map(str::to_owned).collect(), *kind));
    }
    let (last, section) = path.split_last()?;
    let name = camel(last)?;
    let today: Vec<&str> = section.iter().copied().chain([name.as_str()]).collect();
    let known = matches!(place(&today), KeyPlace::Leaf(_) | KeyPlace::Section);
    known.then(|| (today.iter().map(|&name| name.to_owned()).collect(), None))
}

/// The name in camelCase, if it is written with `_` or `-` between its words.
pub(crate) fn camel(name: &str) -> Option<String> {
    let mut words = name.split(['_', '-']);
    let first = words.next().filter(|first| !first.is_empty())?.to_owned();
    let rest = words
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>())
        })
        .collect::<Option<String>>()?;
    (!rest.is_empty()).then(|| first + &rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::key::KEYS;

    #[test]
    fn every_older_name_leads_to_a_setting_there_is_and_is_none_itself() {
        for (older, today, _) in OLDER {
            let parts: Vec<&str> = today.split('.').collect();
            assert!(matches!(place(&parts), KeyPlace::Leaf(_) | KeyPlace::Section), "{today}");
            assert!(KEYS.iter().all(|key| key.path != *older), "{older}");
        }
    }

    #[test]
    fn lines_between_words_are_an_older_spelling() {
        let path = |path: &[&str]| today(path).map(|(today, _)| today.join("."));
        assert_eq!(path(&["hooks", "trust_workspace"]).as_deref(), Some("hooks.trustWorkspace"));
        assert_eq!(path(&["hooks", "rate-limit"]).as_deref(), Some("hooks.rateLimit"));
        assert_eq!(path(&["model", "base_url"]).as_deref(), Some("model.baseUrl"));
        assert_eq!(path(&["hooks", "trustworkspace"]), None);
        assert_eq!(path(&["hooks", "_enabled"]), None);
    }
}
