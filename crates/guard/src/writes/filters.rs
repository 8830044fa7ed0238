//! `sed`, `awk` and their like: languages in which people mostly print, and what they write.

use super::{letters, options};
use crate::{field::Field, walk::Run};

/// Whether it writes its result into the files that it reads.
pub(super) fn in_place(run: &Run) -> bool {
    options(&run.args).any(|option| match run.name.as_str() {
        // The option has a value: the library that does it.
        name if name.ends_with("awk") => option.starts_with("-i") || option.starts_with("--i"),
        "yq" => letters(option, &['i']) || matches!(option, "--inplace" | "--in-place"),
        // Long options may be cut short.
        _ => letters(option, &['i']) || option.starts_with("--i"),
    })
}

/// What of its arguments is code that may write, with the names that the code may write to.
pub(super) fn code(run: &Run) -> Vec<String> {
    let scripts = scripts(run);
    if !scripts.iter().any(|script| script.text.contains(['>', 'w', '|'])) {
        return Vec::new();
    }
    let mut code: Vec<String> = scripts.iter().map(|script| script.shown()).collect();
    if run.name.ends_with("awk") {
        // A variable may hold the name of a file, and the files that are read have names, too.
        let writes = scripts.iter().any(|script| script.text.contains(['>', '|']));
        let names_read = scripts.iter().any(|script| script.text.contains("FILENAME") || script.text.contains("ARG"));
        let named = |arg: &&Field| writes && (names_read || arg.text.contains('='));
        code.extend(run.args.iter().filter(named).map(Field::shown));
    }
    code
}

/// The scripts among its arguments: those behind options, or else the first that is no option.
fn scripts(run: &Run) -> Vec<&Field> {
    let awk = run.name.ends_with("awk");
    let (mut scripts, mut first) = (Vec::new(), None);
    let mut named = false;
    let mut args = run.args.iter();
    while let Some(arg) = args.next() {
        match arg.text.as_str() {
            "-e" | "--expression" | "--source" => scripts.extend(args.next()),
            "-f" | "--file" | "--from-file" => {
                named = true;
                args.next();
            }
            "-v" | "-F" | "--assign" | "--field-separator" if awk => drop(args.next()),
            "-l" | "--line-length" if !awk => drop(args.next()),
            text if text.len() > 1 && text.starts_with('-') => {
                // What is attached to an option may be a script, or a bundle may end in `e`.
                scripts.extend(text.contains('e').then_some(arg));
                if !awk && !text.starts_with("--") && text.ends_with('e') {
                    scripts.extend(args.next());
                }
            }
            _ if first.is_none() => first = Some(arg),
            _ => {}
        }
    }
    let attached = |arg: &&Field| !arg.text.starts_with("--") || arg.text.contains('=');
    scripts.retain(attached);
    if scripts.is_empty() && !named {
        scripts.extend(first);
    }
    // A space tells code from names of files.
    scripts.extend(run.args.iter().filter(|arg| arg.text.contains([' ', '(', ';', '\n'])));
    scripts
}
