//! Starts the programs that a person works with: the editor, the browser, and our own program. Only this module and the
//! crate `process` start programs.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use ollm_process::{SparedChild, absolute_entries, find_program};

/// Opens a file in the person's editor and waits for it; false if the editor failed.
///
/// Relative folders of the search path are ignored: a program in a project would run without an approval.
pub(crate) fn editor(editor: &str, path: Option<&OsStr>, file: &Path, line: usize) -> bool {
    // The variable may contain options. A person wrote it, and no shell reads it.
    let mut words = editor.split_whitespace();
    let Some(program) = words.next() else { return false };
    let found = if Path::new(program).is_absolute() {
        Some(Path::new(program).to_owned())
    } else {
        find_program(program, path.unwrap_or_default())
    };
    let Some(found) = found else { return false };
    let mut command = command(&found, path);
    command.args(words);
    let name = program.rsplit('/').next().unwrap_or(program);
    if line > 0 && ["vi", "vim", "nvim", "nano", "emacs", "micro", "kak"].contains(&name) {
        command.arg(format!("+{line}"));
    }
    let ended = SparedChild::spawn(command.arg(file)).and_then(|mut child| child.wait());
    ended.is_ok_and(|status| status.success())
}

/// Opens a web address in the person's browser, without waiting for it; false if there is no browser.
///
/// The address is one argument of one program, and contains only characters that are allowed in addresses. So neither a
/// shell nor the program that starts the browser can misread it.
pub(crate) fn browser(url: &str, path: Option<&OsStr>) -> bool {
    const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!&+,;=%".contains(&byte);
    if !(url.starts_with("https://") || url.starts_with("http://")) || !url.bytes().all(allowed) {
        return false;
    }
    let found = OPENERS.iter().find_map(|name| find_program(name, path.unwrap_or_default()));
    let Some(program) = found else { return false };
    let mut command = command(&program, path);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = SparedChild::spawn(&mut command) else { return false };
    // Nothing else waits for the browser's starter, so this thread reaps it.
    std::thread::spawn(move || child.wait());
    true
}

/// Our own program, with no environment except the terminal's.
pub(crate) fn ourselves(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").args(arguments);
    command
}

/// A program with our environment, without the search path's relative folders.
fn command(program: &Path, path: Option<&OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("PATH").envs(path.and_then(absolute_entries).map(|path| ("PATH", path)));
    command
}
