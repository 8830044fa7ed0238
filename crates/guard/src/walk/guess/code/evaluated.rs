//! Code that has text of its own language run, where that text is not written in it.

use super::{
    computed::is_letter,
    strings::{end_of, string_end},
};

/// Calls that run text of their own language, in whatever language has them.
#[rustfmt::skip]
const EVALUATES: &[&str] = &[
    "class_eval", "create_function", "eval", "eval_string", "evalstring", "include_string", "instance_eval", "loadstring",
    "module_eval", "new function", "runincontext", "runinnewcontext", "runinthiscontext",
];

/// The same in languages of which the name begins so; to others they are something else.
const EVALUATES_IN: &[(&str, &str)] =
    &[("ipython", "exec"), ("lua", "load"), ("nvim", "load"), ("php", "assert"), ("pypy", "exec"), ("python", "exec")];

/// Languages in which a call needs no bracket behind it: `eval $code`, `(eval code)`.
#[rustfmt::skip]
const BARE: &[&str] = &[
    "bb", "clisp", "clojure", "emacs", "guile", "perl", "racket", "ruby", "sbcl", "scheme",
];

/// Calls that make code of text which they are given.
const PARSES: &[&str] = &["compile(", "meta.parse(", "parse(text=", "parse(text ="];

/// Calls that read a file.
#[rustfmt::skip]
const READS: &[&str] = &[
    "file.read(", "file_get_contents(", "fs.readfilesync(", "io.open(", "open(", "path(", "pathlib.path(", "readfilesync(",
    "require('fs').readfilesync(", "require(\"fs\").readfilesync(",
];

/// Whether code of this language has other code run that is not written in it, nor in a file of which the name is.
pub(super) fn runs_unwritten_code(language: &str, code: &str) -> bool {
    let own = EVALUATES_IN.iter().filter(|(name, _)| language.starts_with(name)).map(|(_, call)| *call);
    let mut calls = EVALUATES.iter().copied().chain(own).filter(|call| {
        let first = call.bytes().next().unwrap_or_default();
        code.bytes().any(|byte| byte.eq_ignore_ascii_case(&first))
    });
    let folded = code.to_ascii_lowercase();
    let is_bare = BARE.contains(&ollm_shell::program_stem(language));
    calls.any(|call| given(&folded, call, is_bare).any(|given| !is_written(given)))
}

/// What stands behind each call of this name.
fn given<'c>(code: &'c str, name: &'c str, is_bare: bool) -> impl Iterator<Item = &'c str> {
    code.match_indices(name).filter_map(move |(at, _)| {
        let (before, behind) = (code.get(..at)?, code.get(at + name.len()..)?);
        let is_part = before.ends_with(|next: char| next.is_alphanumeric() || "_$-'\"".contains(next));
        // `cursor.exec(…)` belongs to something else.
        let of_other = before.ends_with('.') && name == "exec" && !end_of(before, 16).contains("builtins");
        let in_bracket = behind.trim_start_matches(' ').strip_prefix('(');
        let bare = || behind.strip_prefix([' ', ';']).or(behind.is_empty().then_some("")).filter(|_| is_bare);
        if is_part || of_other { None } else { in_bracket.or_else(bare) }
    })
}

/// Whether what a call is given is text as it stands there, or a file like any script.
fn is_written(given: &str) -> bool {
    let mut text = given.trim_start();
    while let Some(inner) = PARSES.iter().find_map(|call| text.strip_prefix(call)) {
        text = inner.trim_start();
    }
    if let Some(file) = READS.iter().find_map(|call| text.strip_prefix(call)) {
        let name = file.strip_prefix(['"', '\'']);
        return name.is_some_and(|name| !["/dev/", "/proc/", "-", "http"].iter().any(|start| name.starts_with(start)));
    }
    // A block is code, and so is nothing.
    if text.starts_with([')', '{', '&']) {
        return true;
    }
    let marks = text.trim_start_matches(['b', 'r', 'u']);
    let text = if marks.starts_with(['"', '\'']) { marks } else { text };
    let Some(quote) = text.get(..1).filter(|quote| ["\"", "'", "`"].contains(quote)) else { return false };
    let quote = if text.starts_with(&quote.repeat(3)) { &quote.repeat(3) } else { quote };
    let Some(behind) = text.get(quote.len()..) else { return false };
    let Some((string, rest)) = string_end(behind, quote).and_then(|end| behind.split_at_checked(end)) else {
        return false;
    };
    let rest = rest.get(quote.len()..).unwrap_or_default().trim_start_matches(' ');
    let varies = quote != "'" && (string.contains('$') || string.contains("#{"));
    // Something is added to it, or made of it.
    let goes_on = rest.starts_with(['+', '.', '%', '[', '*', '<', '~']) || rest.starts_with("x ");
    !goes_on && !varies && !has_numbered_letters(string)
}

/// Whether letters stand in a string as their numbers, of eight or of ten: `\162`, `\114`.
pub(super) fn has_numbered_letters(string: &str) -> bool {
    string.split('\\').skip(1).any(|behind| {
        let digits = behind.get(..behind.bytes().take(3).take_while(u8::is_ascii_digit).count()).unwrap_or_default();
        let octal = u8::from_str_radix(digits, 8).is_ok_and(|number| number.is_ascii_alphabetic());
        digits.len() > 1 && (octal || is_letter(digits))
    })
}
