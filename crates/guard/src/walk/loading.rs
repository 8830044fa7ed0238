//! Variables that have a program load code or settings from a file, whatever its arguments say.
//!
//! Options of interpreters (`NODE_OPTIONS`), folders of modules (`PYTHONPATH`) and files that a shell sources (`BASH_ENV`) are
//! none of them: who sets these runs code of a project, as everybody does all day.

use crate::program::is_in;

/// Variables that name a file or a folder.
#[rustfmt::skip]
const FILES: &[&str] = &[
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GCONV_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH",
    "LESSKEYIN", "LESSKEY_SYSTEM", "MAKEFILES", "OLLM_HOME", "OPENSSL_CONF", "PYTHONSTARTUP", "SYSTEM_WGETRC", "WGETRC",
];

/// Variables that hold options, commands or names of libraries, with files only where there is a slash.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "DYLD_INSERT_LIBRARIES", "EXINIT", "LD_AUDIT", "LD_PRELOAD", "LESSCLOSE", "LESSOPEN", "PERL5DB", "PERL5OPT", "RUBYOPT",
    "VIMINIT",
];

/// Where programs and libraries of the system are.
const SYSTEM: &[&str] = &["/bin/", "/dev/null", "/lib/", "/lib64/", "/opt/homebrew/", "/sbin/", "/usr/"];

/// Whether this value of a variable may have a program load code that nobody knows; nothing stands for a value that is not
/// written out.
pub(super) fn loads_code(name: &str, value: Option<&str>) -> bool {
    let (is_file, is_words) = (is_in(FILES, name), is_in(WORDS, name));
    if !is_file && !is_words {
        return false;
    }
    let is_unknown = |word: &str| {
        let has_file = is_file || word.contains('/');
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
        assert!(FILES.is_sorted() && WORDS.is_sorted());
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
