//! Variables that have a program load code or settings from a file, with any arguments. Ordinary work never sets them.
//!
//! Options of interpreters (`NODE_OPTIONS`), folders of modules (`PYTHONPATH`) and files that a shell sources
//! (`BASH_ENV`) are none of them. With these, everyday work runs code of a project.

use ollm_shell::program_variable;

/// Where programs and libraries of the system are.
const SYSTEM: &[&str] = &["/bin/", "/dev/null", "/lib/", "/lib64/", "/opt/homebrew/", "/sbin/", "/usr/"];

/// Whether this value of a variable may have a program load unknown code; nothing stands for a value that is not written
/// out.
pub(super) fn loads_code(name: &str, value: Option<&str>) -> bool {
    let Some(variable) = program_variable(name).filter(|variable| variable.is_unusual) else { return false };
    let is_unknown = |word: &str| {
        let has_file = variable.holds.is_path() || word.contains('/');
        has_file && (word.contains("..") || !SYSTEM.iter().any(|folder| word.starts_with(folder)))
    };
    let mut words = value.unwrap_or("/").split([' ', ':', '|', '=', '"', '\'']).filter(|word| !word.is_empty());
    words.any(is_unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_system_is_known_and_another_is_not() {
        for (name, value, loads) in [
            ("GIT_CONFIG_GLOBAL", Some("evil"), true),
            ("GIT_CONFIG_GLOBAL", Some("/dev/null"), false),
            ("GIT_CONFIG_GLOBAL", Some(""), false),
            ("GIT_CONFIG_GLOBAL", None, true),
            ("LD_PRELOAD", Some("libjemalloc.so.2"), false),
            ("LD_PRELOAD", Some("/usr/lib/libjemalloc.so.2"), false),
            ("LD_PRELOAD", Some("/usr/lib/../../tmp/x.so"), true),
            ("LD_PRELOAD", Some("./x.so"), true),
            ("LESSOPEN", Some("| /usr/bin/lesspipe %s"), false),
            ("LESSOPEN", Some("|./x %s"), true),
            ("RUBYOPT", Some("-W0"), false),
            ("PYTHONPATH", Some("."), false),
        ] {
            assert_eq!(loads_code(name, value), loads, "{name} {value:?}");
        }
    }
}
