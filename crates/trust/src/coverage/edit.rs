//! Replaces names of code in shell text when the code runs from its copy.
//!
//! A file that is found through the working folder could be replaced after the check. The working folder itself stays
//! the same. So each word that names code becomes a name in the copy: a reference to [`COPY_FOLDER`] and the file's
//! place in it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ollm_shell::{replaceable, single_quoted};

/// The variable that names the folder of the copy.
pub const COPY_FOLDER: &str = "OLLM_COPY_DIR";

/// A word of shell text with its replacement.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) span: Range<usize>,
    pub(crate) with: Replacement,
}

/// The edits of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptEdits {
    pub(crate) file: PathBuf,
    pub(crate) edits: Vec<Edit>,
}

/// The replacement of a word.
#[derive(Clone, Debug)]
pub(crate) enum Replacement {
    /// The file's name in the copy, after a prefix of the word.
    File { prefix: String, file: PathBuf },
    /// A word that is itself shell text, with edits of its own.
    Code { text: String, edits: Vec<Edit> },
}

impl Replacement {
    /// The files whose names are replaced.
    pub(crate) fn files(&self) -> Vec<&Path> {
        match self {
            Replacement::File { file, .. } => vec![file],
            Replacement::Code { edits, .. } => edits.iter().flat_map(|edit| edit.with.files()).collect(),
        }
    }

    /// Changes the paths of the files.
    pub(crate) fn map(&mut self, path: &dyn Fn(&PathBuf) -> PathBuf) {
        match self {
            Replacement::File { file, .. } => *file = path(file),
            Replacement::Code { edits, .. } => edits.iter_mut().for_each(|edit| edit.with.map(path)),
        }
    }

    /// The replacement as a word of shell text; `None` if the copy does not have the file.
    fn word(&self, place: &dyn Fn(&Path) -> Option<PathBuf>) -> Option<String> {
        match self {
            Replacement::File { prefix, file } => {
                let place = place(file)?;
                let prefix = if prefix.is_empty() { String::new() } else { single_quoted(prefix) };
                Some(format!("{prefix}\"${{{COPY_FOLDER}}}\"/{}", single_quoted(place.to_str()?)))
            }
            Replacement::Code { text, edits } => Some(single_quoted(&rewritten(text, edits, place))),
        }
    }
}

/// Applies edits to a text. `place` gives the place of a file in the copy.
pub(crate) fn rewritten(text: &str, edits: &[Edit], place: &dyn Fn(&Path) -> Option<PathBuf>) -> String {
    let mut new = String::with_capacity(text.len());
    let mut from = 0;
    for Edit { span, with } in edits {
        let Some(word) = with.word(place) else { continue };
        new.push_str(text.get(from..span.start).unwrap_or_default());
        new.push_str(&word);
        from = span.end;
    }
    new.push_str(text.get(from..).unwrap_or_default());
    new
}

/// The possible edits in the order of the text, and the impossible ones.
pub(super) fn possible(text: &str, mut edits: Vec<Edit>) -> (Vec<Edit>, Vec<Edit>) {
    // Of nested words, the outermost counts.
    edits.sort_by_key(|edit| (edit.span.start, usize::MAX - edit.span.end));
    let mut end = 0;
    edits.retain(|edit| {
        let apart = edit.span.start >= end;
        end = end.max(edit.span.end);
        apart
    });
    if edits.is_empty() {
        return (edits, Vec::new());
    }
    let spans: Vec<Range<usize>> = edits.iter().map(|edit| edit.span.clone()).collect();
    let mut possible = replaceable(text, &spans).into_iter();
    edits.into_iter().partition(|_| possible.next().unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_replaced_whole_and_nested_text_is_quoted_anew() {
        let file = |span, file: &str| Edit {
            span,
            with: Replacement::File { prefix: String::new(), file: PathBuf::from(file) },
        };
        let place = |file: &Path| (file != Path::new("gone")).then(|| file.to_owned());
        let text = "sh 'a b' && sh gone";
        let made = rewritten(text, &[file(3..8, "a b"), file(15..19, "gone")], &place);
        assert_eq!(made, "sh \"${OLLM_COPY_DIR}\"/'a b' && sh gone");
        let with = Replacement::Code { text: ". it's".to_owned(), edits: vec![file(2..6, "it's")] };
        let made = rewritten("sh -c X", &[Edit { span: 6..7, with }], &place);
        assert_eq!(made, r#"sh -c '. "${OLLM_COPY_DIR}"/'\''it'\''\'\'''\''s'\'''"#);
    }

    #[test]
    fn of_words_within_words_the_outermost_is_replaced_and_nothing_in_backticks() {
        let edit = |span| Edit { span, with: Replacement::File { prefix: String::new(), file: PathBuf::new() } };
        let text = "sh $(x y) `z`";
        let (made, left) = possible(text, vec![edit(11..12), edit(5..6), edit(3..9)]);
        let spans = |edits: &[Edit]| edits.iter().map(|edit| format!("{:?}", edit.span)).collect::<Vec<_>>().join(" ");
        assert_eq!((spans(&made).as_str(), spans(&left).as_str()), ("3..9", "11..12"));
    }
}
