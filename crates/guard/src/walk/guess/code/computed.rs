//! Code that runs text which it gets from elsewhere or puts together.

use super::{RUNS, evaluated::has_numbered_letters};

/// Calls that make text of other text.
#[rustfmt::skip]
const DECODES: &[&str] = &[
    "atob", "b16decode", "b32decode", "b64decode", "b85decode", "base64_decode", "buffer.from", "decode64",
    "decode_base64", "decompress", "fromcharcode", "fromhex", "gzinflate", "gzuncompress", "hex2bin", "pack", "string.char",
    "unhexlify", "unpack", "unpack1",
];

/// The call that makes one letter.
const CHARACTER: &[&str] = &["chr"];

/// The same, whatever they are given.
const SCRAMBLES: &[&str] = &["\"%c%c", "join(chr(", "join(map(chr", "marshal.loads", "rot13", "rot_13"];

/// What makes other text of text that is given to a call.
const TURNS: &[&str] = &["[::-1]", ".translate(", "reverse", "strrev"];

/// Calls that run text of their own language.
const CODE_RUNS: &[&str] = &["loadstring", "load(", "new function("];

/// Calls of Perl that run what a variable holds.
const RUNS_VARIABLE: &[&str] = &["`$", "exec $", "exec($", "qx($", "qx{$", "system $", "system($"];

/// Calls whose first argument runs.
const RUNS_DIRECTLY: &[&str] =
    &["os.system(", "exec(", "eval(", "execsync(", "popen(", "spawn(", "system(", "shell_exec(", "os.execute("];

/// Whether code may run what another machine answers.
pub(super) fn runs_what_it_fetches(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    has(&["exec(", "eval(", "eval "]) && has(&["http://", "https://"])
}

/// Whether code runs text that it makes of other text which is written in it.
pub(super) fn runs_what_it_decodes(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    if !has(RUNS) && !has(CODE_RUNS) {
        return false;
    }
    let is_written = |given: &str| {
        let text = given.trim_start_matches(['(', '[', ' ', 'b', 'r', 'u']);
        text.starts_with(['"', '\'', '`', '<']) || is_letter(text)
    };
    let is_inside = || {
        let ran = RUNS_DIRECTLY.iter().flat_map(|call| folded.match_indices(call).map(|(at, _)| at + call.len()));
        let mut given = ran.filter_map(|at| folded.get(at..)?.split(['\n', ';']).next());
        given.any(|given| {
            calls_of(given, DECODES).chain(calls_of(given, CHARACTER)).next().is_some()
                || TURNS.iter().any(|turn| given.contains(turn))
                || has_numbered_letters(given)
        })
    };
    let characters = calls_of(&folded, CHARACTER).filter(|given| is_letter(given.trim_start_matches(['(', ' '])));
    let translates = folded.contains("tr/") && has(RUNS_VARIABLE);
    translates || has(SCRAMBLES) || calls_of(&folded, DECODES).any(is_written) || is_inside() || characters.count() > 1
}

/// Whether text begins with the number of a letter: a newline or a quote is made of its number, too.
pub(super) fn is_letter(text: &str) -> bool {
    let number = text.split(|next: char| !next.is_ascii_digit()).next().and_then(|digits| digits.parse::<u8>().ok());
    number.is_some_and(|number| number.is_ascii_alphabetic())
}

/// What stands behind each call of one of these names.
pub(super) fn calls_of<'c>(code: &'c str, names: &'c [&str]) -> impl Iterator<Item = &'c str> {
    let called = names.iter().flat_map(move |name| code.match_indices(name));
    called.filter_map(move |(at, name)| {
        let before = code.get(..at)?;
        let behind = code.get(at + name.len()..)?;
        let is_whole = !before.ends_with(|next: char| next.is_ascii_alphanumeric() || "_'\"".contains(next));
        (is_whole && (behind.starts_with('(') || behind.starts_with(" \""))).then_some(behind)
    })
}

/// Code with strings that stand in a list to be joined written as one: `''.join(['r', 'm'])`.
pub(super) fn joined_lists(code: &str) -> Option<String> {
    if !code.contains("join(") {
        return None;
    }
    let joined =
        ["', '", "','", "\", \"", "\",\""].iter().fold(code.to_owned(), |code, between| code.replace(between, ""));
    (joined.len() < code.len()).then_some(joined)
}
