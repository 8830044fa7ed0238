//! Commands that do no harm with any plain name as a word. One look is enough for all values of that word.

use ollm_shell::{Piece, Word, bare};

use super::does_harm;
use crate::{
    field::Field,
    path,
    program::{Arguments, Files, Program},
};

/// Whether a command is a program that only reads, or of which nothing is known, and gets nothing but plain names.
pub(in crate::walk) fn is_inert(fields: &[Field]) -> bool {
    let is_inert_word = |field: &Field| field.known().is_some_and(is_inert_text);
    fields.first().is_some_and(|first| is_inert_program(&first.text)) && fields.iter().all(is_inert_word)
}

/// Whether one word of a command has values, and with any plain name for it the command would be inert.
pub(in crate::walk) fn varies_inertly(words: &[Word]) -> bool {
    let text = |word: &Word| match word.pieces.as_slice() {
        [Piece::Plain(text) | Piece::Quoted(text)] => Some(is_inert_text(text)),
        _ => None,
    };
    let name = words.first().and_then(|word| bare(word));
    words.iter().filter(|word| text(word).is_none()).count() == 1
        && words.iter().all(|word| text(word) != Some(false))
        && name.is_some_and(is_inert_program)
}

/// Whether a word is a plain name, and not of a program that does harm.
pub(in crate::walk) fn is_inert_text(text: &str) -> bool {
    path::is_plain(text) && !text.contains(['/', '.', '=']) && !does_harm(text)
}

fn is_inert_program(name: &str) -> bool {
    let name = path::base_name(name);
    let program = Program::of(&name);
    let reads = program.only_reads && !matches!(name.as_ref(), "uniq" | "xxd" | "read");
    reads || (program.arguments, program.files) == (Arguments::MayRun, Files::MayWrite)
}
