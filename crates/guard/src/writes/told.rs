//! Programs that write files, called with options by which they only read them.

use super::{operands, options};
use crate::walk::Run;

/// A program, the options of which one tells it to write nothing, and others that change nothing about that.
#[rustfmt::skip]
const CHECKS: &[(&str, &[&str], &[&str])] = &[
    ("black", &["--check"], &["--diff", "--quiet", "-q"]),
    ("gofmt", &["-d", "-l"], &["-e", "-s"]),
    ("prettier", &["--check", "--list-different", "-c", "-l"], &["--ignore-unknown", "-u"]),
    ("shfmt", &["-d", "-l"], &["-s"]),
];

/// The options of Python's `json.tool`, which writes only what is named behind the file that it reads.
const JSON_TOOL: &[&str] = &["--compact", "--json-lines", "--no-ensure-ascii", "--no-indent", "--sort-keys", "--tab"];

/// Whether all of its options are known to write nothing, and one says so.
pub(crate) fn only_reads(run: &Run) -> bool {
    if let [module, tool, rest @ ..] = &*run.args
        && run.name.starts_with("python")
        && module.text == "-m"
        && tool.text == "json.tool"
    {
        return options(rest).all(|option| JSON_TOOL.contains(&option)) && operands(rest).len() < 2;
    }
    CHECKS.iter().any(|(name, checks, others)| {
        let known = |option: &str| checks.contains(&option) || others.contains(&option);
        run.name == *name && options(&run.args).any(|option| checks.contains(&option)) && options(&run.args).all(known)
    })
}
