//! Programs a person looks through: the pager. The only place beside `process` that starts anything.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// What fits on a usual screen needs no pager.
const SCREEN: usize = 40;

/// Shows a long text in a pager; false where it is short, nobody looks, or there is no pager.
pub(crate) fn page(text: &str) -> bool {
    let wanted = text.lines().count() > SCREEN && std::io::stdin().is_terminal();
    if !wanted {
        return false;
    }
    let pager = Command::new("less").args(["-R", "-F", "-X"]).stdin(Stdio::piped()).spawn();
    let Ok(mut pager) = pager else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // The person may leave the pager before its end.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().is_ok_and(|status| status.success())
}
