//! The files that code of other languages writes.

use super::strings::{call_before, quoted};

/// Calls that write the file which they are given first.
const WRITE_CALLS: &[&str] = &[
    "appendfile(",
    "appendfilesync(",
    "bun.write(",
    "createwritestream(",
    "file.write(",
    "file_put_contents(",
    "io.write(",
    "truncate(",
    "truncatesync(",
    "writefile(",
    "writefilesync(",
    "writetextfile(",
    "writetextfilesync(",
];

/// Calls that write the file which they are given second.
const COPY_CALLS: &[&str] = &["copy", "copy2", "copyfile", "copyfilesync", "cpsync", "move", "rename", "renamesync"];

/// The files that code names to calls which write them, in the forms that most languages have.
pub(super) fn written_files(code: &str) -> impl Iterator<Item = &str> {
    let mut redirected = false;
    quoted(code).filter_map(move |(before, string, behind)| {
        // Perl's `open(F, ">", "x")` and `open(F, ">x")`.
        let is_target = std::mem::take(&mut redirected) && before.trim_end().ends_with(',');
        let file = string.trim_start_matches(['+', '<', '>', ' ']);
        let redirects = string.starts_with('>') || string.starts_with("+<") || string.starts_with("+>");
        redirected = redirects && file.is_empty();
        let is_path = file.starts_with(['/', '~', '.']);
        (is_path && (is_target || redirects || is_written(before, behind))).then_some(file)
    })
}

/// Whether the file between these parts of code is written: `open("x", "w")`, `writeFile("x")`, `Path("x").write_text()`.
pub(super) fn is_written(before: &str, behind: &str) -> bool {
    let called = call_before(before);
    let behind = behind.trim_start();
    let mode = behind
        .strip_prefix(',')
        .map(|mode| mode.trim_start().trim_start_matches("mode=").trim_start_matches(['"', '\'']));
    let mode = mode.and_then(|mode| mode.split(['"', '\'']).next());
    let writes =
        |mode: &str| mode.contains(['w', 'a', 'x', '+']) && mode.bytes().all(|byte| b"abrtwx+".contains(&byte));
    // `copyfile("x", "y")`
    let second = called.strip_suffix(',').and_then(|first| first.rsplit_once('(')).map(|(call, _)| call);
    let flags = || {
        behind
            .split(')')
            .next()
            .is_some_and(|flags| ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| flags.contains(flag)))
    };
    WRITE_CALLS.iter().any(|call| called.ends_with(call))
        || second.is_some_and(|call| COPY_CALLS.iter().any(|known| call.ends_with(known)))
        || (called.ends_with("open(") && flags())
        || (called.ends_with("open(") || called.ends_with("opensync(")) && mode.is_some_and(writes)
        || [").write_", ").truncate", ").open(\"w", ").open('w"].iter().any(|call| behind.starts_with(call))
}
