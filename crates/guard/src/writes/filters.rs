//! `sed`, `awk` and their like: languages in which people mostly print, and what they write.

use super::{letters, options};
use crate::{field::Field, filter, walk::Run};

/// Whether it writes its result into the files that it reads.
pub(super) fn in_place(run: &Run) -> bool {
    options(&run.args).any(|option| match run.name.as_str() {
        // The option has a value: the library that does it.
        name if filter::is_awk(name) => option.starts_with("-i") || option.starts_with("--i"),
        "yq" => letters(option, &['i']) || matches!(option, "--inplace" | "--in-place"),
        // Long options may be cut short.
        _ => letters(option, &['i']) || option.starts_with("--i"),
    })
}

/// What of its arguments is code that may write, with the names that the code may write to.
pub(super) fn code(run: &Run) -> Vec<String> {
    let scripts = filter::scripts(&run.name, &run.args);
    if !scripts.iter().any(|script| script.text.contains(['>', 'w', 'W', '|'])) {
        return Vec::new();
    }
    let mut code: Vec<String> = scripts.iter().map(|script| script.shown()).collect();
    if filter::is_awk(&run.name) {
        // A variable may hold the name of a file, and the files that are read have names, too.
        let writes = scripts.iter().any(|script| script.text.contains(['>', '|']));
        let names_read = scripts.iter().any(|script| script.text.contains("FILENAME") || script.text.contains("ARG"));
        let named = |arg: &&Field| writes && (names_read || arg.text.contains('='));
        code.extend(run.args.iter().filter(named).map(Field::shown));
    }
    code
}
