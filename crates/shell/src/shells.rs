//! Recognises shells by their program names.

/// Shells with the language of `sh`.
pub const POSIX_SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "yash", "rksh", "rzsh", "pdksh", "lksh", "oksh",
    "posh", "hush", "bosh", "osh",
];

/// Shells with their own language.
pub const OTHER_SHELLS: &[&str] = &["fish", "csh", "tcsh", "elvish", "nu", "xonsh"];

/// Whether a program is a shell of any kind, by its name or path.
///
/// ```
/// use ollm_shell::{is_posix_shell, is_shell};
/// assert!(is_shell("/usr/bin/fish") && is_shell("ksh93") && !is_shell("ssh"));
/// assert!(is_posix_shell("bash-5.2") && !is_posix_shell("fish"));
/// ```
pub fn is_shell(program: &str) -> bool {
    is_posix_shell(program) || is_called(program, OTHER_SHELLS)
}

/// Whether a program is a shell with the language of `sh`.
pub fn is_posix_shell(program: &str) -> bool {
    is_called(program, POSIX_SHELLS)
}

fn is_called(program: &str, names: &[&str]) -> bool {
    names.contains(&program_stem(program))
}

/// The name of a program without its folder and its version: `python3.12`, `ksh93`, `bash-5.2`.
///
/// ```
/// assert_eq!(ollm_shell::program_stem("/usr/bin/python3.12"), "python");
/// ```
pub fn program_stem(program: &str) -> &str {
    program_name(program).trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'))
}

/// The name of a program without its folder.
pub(crate) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}
