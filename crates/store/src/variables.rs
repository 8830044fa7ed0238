//! Which environment variables every program that we start may see.

use crate::redact::looks_secret;

const SHARED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TERM",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];
const SHARED_PREFIXES: &[&str] = &["LC_", "XDG_", "OLLM_"];

/// Whether every program that we start may see a variable without declaring it.
///
/// ```
/// assert!(ollm_store::is_shared_variable("LC_ALL"));
/// assert!(!ollm_store::is_shared_variable("OLLM_MODEL_KEY"));
/// assert!(!ollm_store::is_shared_variable("GITHUB_TOKEN"));
/// ```
pub fn is_shared_variable(name: &str) -> bool {
    SHARED.contains(&name) || (SHARED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !looks_secret(name))
}
