//! Finds the known word that an unknown word probably means.

/// Longer words are not compared: they are hardly typing mistakes, and comparing costs the product of both lengths.
const LONGEST: usize = 64;

/// The known word nearest to an unknown one, if it is near enough.
///
/// ```
/// assert_eq!(ollm_condition::nearest("timout", ["timeout", "time"]), Some("timeout"));
/// assert_eq!(ollm_condition::nearest("colour", ["timeout", "time"]), None);
/// ```
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let folded = word.to_lowercase();
    let short = known.into_iter().filter(|known| known.len() <= LONGEST);
    let near = short.map(|known| (strsim::damerau_levenshtein(&folded, &known.to_lowercase()), known));
    let near = near.filter(|(distance, known)| *distance <= known.len().div_ceil(3) && *distance < known.len());
    near.min().map(|(_, known)| known)
}

/// The nearest word as a question for a person: "did you mean `timeout`?".
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}
