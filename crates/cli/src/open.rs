//! Programs a person works with: the pager, the editor. The only place beside `process` that starts anything.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use ollm_process::find_program;

/// What fits on a usual screen needs no pager.
const SCREEN: usize = 40;

/// Shows a long text in a pager from the search path; false where it is short, nobody looks, or there is no pager.
///
/// Relative folders of the search path do not count: what lies in a project would run before anybody approved it.
pub(crate) fn page(text: &str, path: Option<&OsStr>) -> bool {
    let wanted = text.lines().count() > SCREEN && std::io::stdin().is_terminal();
    if !wanted {
        return false;
    }
    let Some(less) = find_program("less", path.unwrap_or_default()) else { return false };
    let pager = Command::new(less).args(["-R", "-F", "-X"]).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = pager else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // The person may leave the pager before its end.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok_and(|status| status.success())
}

/// Opens a file in the person's editor and waits for it; false where that did not end well. The editor is looked for like
/// the pager.
pub(crate) fn editor(editor: &str, path: Option<&OsStr>, file: &Path, line: usize) -> bool {
    // The variable may hold options; a person wrote it, and no shell reads it.
    let mut words = editor.split_whitespace();
    let Some(program) = words.next() else { return false };
    let found = if Path::new(program).is_absolute() {
        Some(program.into())
    } else {
        find_program(program, path.unwrap_or_default())
    };
    let Some(found) = found else { return false };
    let mut command = Command::new(found);
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
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    // Nobody waits for a browser, but somebody has to bury what started it.
    std::thread::spawn(move || child.wait());
    true
}
