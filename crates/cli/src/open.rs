//! Programs a person works with: the editor, the browser, and ourselves once more. The only place beside `process` that starts
//! anything.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use ollm_process::{absolute_entries, find_program};

/// Opens a file in the person's editor and waits for it; false where that did not end well.
///
/// Relative folders of the search path do not count: what lies in a project would run before anybody approved it.
pub(crate) fn editor(editor: &str, path: Option<&OsStr>, file: &Path, line: usize) -> bool {
    // The variable may hold options; a person wrote it, and no shell reads it.
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
    command.arg(file).status().is_ok_and(|status| status.success())
}

/// Opens a web address in the person's browser, without waiting for it; false where there is none.
///
/// The address is one argument of one program, and holds nothing but what an address may hold: no shell reads it, and
/// what hands it on to a browser finds nothing to read either.
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
    let Ok(mut child) = command.spawn() else { return false };
    // Nobody waits for a browser, but somebody has to bury what started it.
    std::thread::spawn(move || child.wait());
    true
}

/// Ourselves once more, with no surroundings but the terminal.
pub(crate) fn ourselves(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/").args(arguments);
    command
}

/// A program with our own surroundings, but for the entries of the search path that depend on where we are.
fn command(program: &Path, path: Option<&OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("PATH").envs(path.and_then(absolute_entries).map(|path| ("PATH", path)));
    command
}
