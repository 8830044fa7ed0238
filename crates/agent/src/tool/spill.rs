//! Results that are too long for the model: it gets the beginning and the end, and can read the rest from a file.

use std::fs;
use std::path::{Path, PathBuf};

/// How many whole results are kept.
const MOST_KEPT: usize = 50;

/// The note in a cut text about the file with the whole text.
const PLACE: (&str, &str) = (" left out; all of it is in ", "; read it in parts with offset and limit]");

/// A text of at most `most` bytes, if the note fits into them. A longer text is replaced by its beginning, its end, and
/// the path of the whole. A text that was already cut is not saved again, because it already contains the path.
pub(crate) fn fit(text: &str, most: usize, what: &str, folder: &Path) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let earlier = places(text, folder);
    let place = if earlier.is_empty() {
        spill(text.as_bytes(), what, folder).map(|path| path.display().to_string())
    } else {
        Ok(earlier.join(" and "))
    };
    let note = |left_out: &str| match &place {
        Ok(place) => format!("\n[{left_out}{}{place}{}\n", PLACE.0, PLACE.1),
        Err(error) => format!("\n[{left_out} left out; it could not be kept: {error}]\n"),
    };
    let half = most.saturating_sub(note(&format!("{} bytes", text.len())).len()) / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let left_out =
        if earlier.is_empty() { format!("{} bytes", text.len() - head.len() - tail.len()) } else { "more".into() };
    format!("{head}{}{tail}", note(&left_out))
}

/// The paths in a cut text to the file with the whole text.
fn places<'t>(text: &'t str, folder: &Path) -> Vec<&'t str> {
    let notes = text.split(PLACE.0).skip(1).filter_map(|rest| Some(rest.split_once(PLACE.1)?.0));
    notes.flat_map(|places| places.split(" and ")).filter(|place| Path::new(place).starts_with(folder)).collect()
}

fn spill(bytes: &[u8], what: &str, folder: &Path) -> Result<PathBuf, ollm_store::FileError> {
    let path = folder.join(format!("{what}-{}.txt", crate::time::unique()));
    ollm_store::write_atomic(&path, bytes)?;
    forget(folder);
    Ok(path)
}

/// Removes the oldest files when there are too many.
fn forget(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<_> =
        entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort_unstable();
    let old = files.len().saturating_sub(MOST_KEPT);
    for (_, path) in files.into_iter().take(old) {
        // A file that cannot be removed now may be removed next time.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_again_and_again_says_where_all_of_it_is_and_is_kept_once() {
        let folder = tempfile::tempdir().unwrap();
        let whole = (0..2000).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
        let mut text = whole.clone();
        for most in [4000, 1000, 500, 10] {
            text = fit(&text, most, "x", folder.path());
            assert!(text.len() <= most || most == 10, "{text}");
            let [place] = places(&text, folder.path())[..] else { panic!("{text}") };
            assert_eq!(fs::read_to_string(place).unwrap(), whole);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_text_that_names_files_of_others_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[9 bytes{}/etc/passwd{}{}", PLACE.0, PLACE.1, "x".repeat(900));
        let cut = fit(&text, 400, "x", folder.path());
        assert_eq!(fs::read_to_string(places(&cut, folder.path())[0]).unwrap(), text);
    }
}
