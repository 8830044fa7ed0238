//! Options of programs that mostly read, but can be told a file to write.
//!
//! The table has the options that write nothing. The word behind another option may be the name of a file to write.

use super::{Touch, named_files};
use crate::{field::Field, program, walk::Run};

/// The options of a program that write no file.
struct HarmlessOptions {
    name: &'static str,
    /// One-letter options, as `getopt` takes them: with a colon behind those that have a value.
    letters: &'static str,
    /// Long options, and those that begin with one dash; separated by spaces.
    long: &'static str,
}

const fn harmless(name: &'static str, letters: &'static str, long: &'static str) -> HarmlessOptions {
    HarmlessOptions { name, letters, long }
}

const AWK: (&str, &str) = ("F:f:v:bcnrSt", "assign field-separator file posix re-interval sandbox version");
const LESS: (&str, &str) =
    ("aeEfFgGiIJKmMnNqQrRsSuUwWXp:P:t:x:", "chop-long-lines LINE-NUMBERS no-init quit-if-one-screen RAW-CONTROL-CHARS");
const TAR: (&str, &str) = (
    "acdhijJkmOpPrStuUvwWxzZb:C:f:I:T:X:",
    "append auto-compress bzip2 create dereference directory exclude exclude-from exclude-vcs extract file files-from \
     get group gzip list mtime no-same-owner no-recursion numeric-owner owner preserve-permissions sort \
     strip-components to-stdout transform update verbose wildcards xz zstd",
);
const SED: (&str, &str) = (
    "nrEsuze:f:l:",
    "expression file line-length null-data posix quiet regexp-extended separate silent unbuffered zero-terminated",
);

/// Sorted by name. Programs that read and are not here have no option that writes.
#[rustfmt::skip]
const PROGRAMS: &[HarmlessOptions] = &[
    harmless("awk", AWK.0, AWK.1),
    harmless("base64", "dDib:w:", "decode ignore-garbage wrap"),
    harmless("bsdtar", TAR.0, TAR.1),
    harmless("cloc", "vV", "by-file by-file-by-lang csv diff exclude-dir exclude-ext exclude-lang exclude-list-file \
        include-ext include-lang json list-file md quiet vcs xml yaml"),
    harmless("curl", "fgGiIjkLnNpqRsSvZ#012346A:b:C:d:e:E:F:H:K:m:r:T:u:U:x:X:y:Y:z:",
        "basic cacert cert compressed config connect-timeout cookie data data-ascii data-binary data-raw \
        data-urlencode fail fail-with-body form form-string get globoff head header http1.1 http2 include insecure json \
        key location max-time netrc netrc-file no-progress-meter oauth2-bearer progress-bar proxy request retry \
        retry-delay show-error silent unix-socket upload-file url url-query user user-agent verbose"),
    harmless("file", "bDEhiIkLnNprsSvzZe:f:F:P:", "brief dereference files-from mime mime-encoding mime-type"),
    harmless("find", "HLP", "a amin and anewer atime cmin cnewer ctime daystart depth empty exec execdir executable false \
        follow group iname inum ipath iregex links lname ls maxdepth mindepth mmin mount mtime name newer newermt not o ok \
        okdir or path perm print print0 printf prune quit readable regex regextype samefile size true type user \
        wholename writable xdev delete"),
    harmless("gawk", AWK.0, AWK.1),
    harmless("gsed", SED.0, SED.1),
    harmless("gtar", TAR.0, TAR.1),
    harmless("iconv", "clsf:t:", "from-code list silent to-code"),
    harmless("info", "f:n:", "file node"),
    harmless("less", LESS.0, LESS.1),
    harmless("mawk", AWK.0, AWK.1),
    harmless("nawk", AWK.0, AWK.1),
    harmless("patch", "bEflNRstuvd:F:i:p:", "dry-run forward input reverse silent strip"),
    harmless("rsync", "0aAbcCdDEghHikKlLmnNopPqrRStuUvWxXyze:f:",
        "archive checksum compress copy-links cvs-exclude delete delete-after delete-before delete-excluded dry-run exclude \
        exclude-from existing files-from filter group human-readable ignore-existing include include-from info \
        itemize-changes links no-group no-owner no-perms out-format owner partial password-file perms progress quiet \
        recursive relative rsh size-only stats times update verbose"),
    harmless("sed", SED.0, SED.1),
    harmless("shuf", "erzi:n:", "echo head-count input-range repeat zero-terminated"),
    harmless("sort", "bcCdfghimMnrRsuVzk:S:t:", "check field-separator files0-from general-numeric-sort \
        human-numeric-sort ignore-case key merge numeric-sort parallel random-sort reverse stable unique version-sort \
        zero-terminated"),
    harmless("tar", TAR.0, TAR.1),
    harmless("tree", "aACdDfFghiJlnNpqQrsStuUvxXI:L:P:", "charset dirsfirst du filelimit gitignore inodes matchdirs \
        metafirst noreport prune sort"),
    harmless("unzip", "aCjLlnopqtuvzZd:P:x:", ""),
    harmless("wget", "46bcdEFhHkKLmNpqrSvVxD:A:i:I:l:Q:R:t:T:U:w:X:",
        "body-data body-file ca-certificate certificate continue header input-file load-cookies max-redirect method mirror \
        no-check-certificate no-clobber no-parent no-verbose page-requisites password post-data post-file private-key \
        quiet recursive server-response show-progress spider timeout timestamping tries user user-agent wait"),
    harmless("xmllint", "", "c14n debug encode format html huge nocdata noblanks noent nonet noout noenc pattern pretty \
        push quiet recover relaxng schema schematron stream timing valid walker xinclude xpath"),
    harmless("yq", "CcejMnNPrRy0p:I:o:", "arg argjson colors compact-output exit-status expression from-file indent \
        input-format no-colors no-doc null-input output-format prettyPrint raw-output slurp unwrapScalar"),
    harmless("zless", LESS.0, LESS.1),
];

/// Files that stand behind options of which it is not known that they only read.
pub(super) fn touches(run: &Run) -> Vec<Touch> {
    let args = &run.args;
    if run.name == "git" {
        return git(args, run);
    }
    let Ok(at) = PROGRAMS.binary_search_by_key(&run.name.as_str(), |program| program.name) else { return Vec::new() };
    let Some(program) = PROGRAMS.get(at) else { return Vec::new() };
    let mut touches = Vec::new();
    for (at, arg) in before_operands(args) {
        if let Some(value) = program.unknown_part(arg) {
            touches.extend(perhaps(&value, run));
            let next = args.get(at + 1).filter(|next| !next.text.starts_with('-'));
            touches.extend(next.into_iter().flat_map(|next| perhaps(next, run)));
        }
    }
    touches
}

/// The options, and where each stands.
fn before_operands(args: &[Field]) -> impl Iterator<Item = (usize, &Field)> {
    let until = args.iter().enumerate().take_while(|(_, arg)| arg.text != "--");
    until.filter(|(_, arg)| arg.text.len() > 1 && arg.text.starts_with('-'))
}

fn perhaps(field: &Field, run: &Run) -> Vec<Touch> {
    named_files(field, run).into_iter().map(Touch::Perhaps).collect()
}

impl HarmlessOptions {
    /// What of an option is not known to write nothing: all of it, or the letters from one on.
    fn unknown_part(&self, option: &Field) -> Option<Field> {
        let text = option.text.trim_start_matches('-');
        let name = text.split('=').next().unwrap_or_default();
        if self.long.split_ascii_whitespace().any(|known| known == name) && !name.is_empty() {
            return None;
        }
        if option.text.starts_with("--") || self.name == "find" && name.len() > 1 {
            return Some(option.clone());
        }
        for (at, letter) in text.char_indices() {
            let Some((_, behind)) = self.letters.split_once(letter).filter(|_| letter != ':') else {
                return Some(Field { text: format!("-{}", text.get(at..).unwrap_or_default()), ..option.clone() });
            };
            if behind.starts_with(':') {
                return None;
            }
        }
        None
    }
}

/// Verbs of `git` whose options are mostly switches, with files behind them that are read or that `git` itself keeps.
#[rustfmt::skip]
const SWITCHES: &[&str] = &[
    "add", "annotate", "blame", "cat-file", "check-attr", "check-ignore", "checkout", "clean", "commit", "describe", "diff",
    "diff-files", "diff-index", "diff-tree", "fetch", "grep", "hash-object", "help", "log", "ls-files", "ls-tree", "merge",
    "mv", "pull", "push", "range-diff", "reflog", "reset", "restore", "rev-list", "rev-parse", "rm", "shortlog", "show",
    "stage", "stash", "status", "switch", "tag", "update-index", "whatchanged",
];

/// Whether the verb of `git` is one of them.
pub(super) fn has_switches(args: &[Field]) -> bool {
    let verb = program::verb("git", args).and_then(|at| args.get(at));
    verb.is_some_and(|verb| SWITCHES.contains(&verb.text.as_str()))
}

/// `git` has too many options to know them all: those that name their file in the same word, and those of rare verbs.
fn git(args: &[Field], run: &Run) -> Vec<Touch> {
    const READ: &[&str] = &[
        "author",
        "exclude",
        "exclude-from",
        "file",
        "format",
        "git-dir",
        "grep",
        "include",
        "message",
        "pathspec-from-file",
        "pretty",
        "template",
        "work-tree",
    ];
    let verb = program::verb("git", args).unwrap_or(args.len());
    let rare = verb < args.len() && !has_switches(args);
    let mut touches = Vec::new();
    for (at, arg) in before_operands(args).filter(|(at, _)| *at > verb) {
        let name = arg.text.strip_prefix("--").and_then(|long| long.split_once('=')).map(|(name, _)| name);
        if name.is_some_and(|name| !READ.contains(&name)) || arg.text.starts_with("-o") {
            touches.extend(perhaps(arg, run));
        }
        let next = args.get(at + 1).filter(|next| rare && !arg.text.contains('=') && !next.text.starts_with('-'));
        touches.extend(next.into_iter().flat_map(|next| perhaps(next, run)));
    }
    touches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_sorted() {
        assert!(PROGRAMS.is_sorted_by_key(|program| program.name));
    }

    #[test]
    fn an_option_that_is_not_known_is_told_from_one_that_is() {
        for (program, option, unknown) in [
            ("sort", "-u", None),
            ("sort", "-k2o", None),
            ("sort", "-uo.x", Some("-o.x")),
            ("sort", "--outpu=.x", Some("--outpu=.x")),
            ("find", "-name", None),
            ("find", "-fprint", Some("-fprint")),
            ("xmllint", "--noout", None),
            ("curl", "--trace", Some("--trace")),
        ] {
            let program = PROGRAMS.iter().find(|known| known.name == program).unwrap();
            let part = program.unknown_part(&Field::literal(option)).map(|field| field.text);
            assert_eq!(part.as_deref(), unknown, "{option}");
        }
    }
}
