//! Brace expansion: `{a,b}` becomes two words.

use ollm_shell::Piece;

/// How many words one may become before it counts as unknown.
const MOST: usize = 64;

/// How often braces may be taken apart.
const MOST_STEPS: usize = 512;

/// The words an unquoted text becomes, or nothing if that is too much to follow.
pub(super) fn expand(text: &str) -> Option<Vec<String>> {
    if text.matches('{').count() > MOST {
        return None;
    }
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    let mut steps = 0;
    while let Some(text) = open.pop() {
        steps += 1;
        if steps > MOST_STEPS || open.len() > MOST || done.len() > MOST {
            return None;
        }
        let Some(group) = first_group(&text) else {
            done.push(text);
            continue;
        };
        // The last goes on the stack first, so that words come out in order.
        let mut add = |choice: &str| open.push([group.before, choice, group.behind].concat());
        match group.choices.as_slice() {
            [range] => series(range)?.iter().rev().for_each(|choice| add(choice)),
            choices => choices.iter().rev().for_each(|choice| add(choice)),
        }
    }
    Some(done)
}

/// Whether there may be a brace pair in it that expands.
pub(super) fn may_expand(text: &str) -> bool {
    text.contains('{') && text.contains([',', '.'])
}

/// The text before the first brace.
pub(super) fn stem(text: &str) -> &str {
    text.split('{').next().unwrap_or_default()
}

/// Whether braces may reach over quotes or expansions.
pub(super) fn spread(word: &[Piece]) -> bool {
    let plain = |wanted: &[char]| word.iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains(wanted)));
    plain(&['{']) && plain(&['}']) && plain(&[',', '.'])
}

struct Group<'a> {
    before: &'a str,
    choices: Vec<&'a str>,
    behind: &'a str,
}

/// The first brace pair that expands: one with a comma, or a range.
fn first_group(text: &str) -> Option<Group<'_>> {
    if !may_expand(text) {
        return None;
    }
    for (start, _) in text.match_indices('{') {
        let inside = text.get(start + 1..)?;
        let mut level = 0_usize;
        let mut choices = Vec::new();
        let mut from = 0;
        for (index, next) in inside.char_indices() {
            match next {
                '{' => level += 1,
                '}' if level > 0 => level -= 1,
                ',' if level == 0 => {
                    choices.push(inside.get(from..index)?);
                    from = index + 1;
                }
                '}' => {
                    choices.push(inside.get(from..index)?);
                    let [single] = choices.as_slice() else {
                        return Some(Group { before: text.get(..start)?, choices, behind: inside.get(index + 1..)? });
                    };
                    if single.contains("..") && !single.contains('{') {
                        return Some(Group { before: text.get(..start)?, choices, behind: inside.get(index + 1..)? });
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

/// `1..9` or `a..f`; other ranges are not followed.
fn series(range: &str) -> Option<Vec<String>> {
    let (first, last) = range.split_once("..")?;
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let (low, high) = (first.min(last), first.max(last));
        return (high.checked_sub(low)? < 32).then(|| (low..=high).map(|number| number.to_string()).collect());
    }
    let (mut first, mut last) = (first.chars(), last.chars());
    let (low, high) = (first.next()?, last.next()?);
    let single = first.next().is_none() && last.next().is_none();
    let (low, high) = (low.min(high), low.max(high));
    (single && high.is_ascii_alphanumeric()).then(|| (low..=high).map(String::from).collect())
}
