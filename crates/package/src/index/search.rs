//! Search: every word of the query must be found in some field; the field decides the rank.

use super::IndexEntry;

/// How well a query fits an entry; `None` if one of its words is found in no field. An empty query fits all entries
/// equally.
///
/// The name counts most, then the description, the tags and the author. A whole word counts more than the beginning of
/// a word, and that more than another part.
pub fn rank(query: &str, entry: &IndexEntry) -> Option<u32> {
    let fields = [
        (100, entry.name.as_str()),
        (40, entry.description.as_str()),
        (20, &*entry.tags.join(" ")),
        (10, entry.author.as_deref().unwrap_or_default()),
    ];
    let mut total = u32::from(entry.name.eq_ignore_ascii_case(query.trim())) * 1000;
    for word in query.split_whitespace() {
        let word = word.to_lowercase();
        let best = fields.iter().filter_map(|(weight, text)| Some(weight * fit(&word, text)?)).max()?;
        total = total.saturating_add(best);
    }
    Some(total)
}

/// How well a word fits a text.
fn fit(word: &str, text: &str) -> Option<u32> {
    let text = text.to_lowercase();
    let words = || text.split(|letter: char| !letter.is_alphanumeric());
    if words().any(|one| one == word) || text == word {
        Some(4)
    } else if words().any(|one| one.starts_with(word)) || text.starts_with(word) {
        Some(2)
    } else {
        text.contains(word).then_some(1)
    }
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::*;

    fn entry(name: &str, description: &str, tags: &[&str], author: &str) -> IndexEntry {
        IndexEntry {
            name: name.to_owned(),
            version: Version::new(1, 0, 0),
            description: description.to_owned(),
            author: Some(author.to_owned()),
            repository: None,
            download_url: String::new(),
            checksum: String::new(),
            size: None,
            signature: None,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            updated_at: None,
        }
    }

    #[test]
    fn name_comes_before_description_tags_and_author() {
        let by_author = entry("a", "x", &[], "Guard");
        let by_text = entry("b", "a guard", &[], "");
        let by_tag = entry("c", "x", &["guard"], "");
        let by_part = entry("safeguards", "x", &[], "");
        let by_word = entry("git-guard", "x", &[], "");
        let by_name = entry("guard", "x", &[], "");
        let ranks: Vec<u32> = [&by_author, &by_tag, &by_part, &by_text, &by_word, &by_name]
            .iter()
            .filter_map(|one| rank("guard", one))
            .collect();
        assert_eq!(ranks.len(), 6);
        assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:?}");
    }

    #[test]
    fn every_word_must_be_found() {
        let one = entry("git-guard", "refuses forced pushes", &[], "");
        assert!(rank("push git", &one).is_some());
        assert_eq!(rank("git svn", &one), None);
        assert_eq!(rank("", &one), Some(0));
    }
}
