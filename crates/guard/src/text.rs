//! Text for people: short, and without characters that hide or reorder what they see.

/// How much of a command a reason shows.
const LONGEST: usize = 160;

/// A piece of a command to show in a reason.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    for (count, next) in text.chars().enumerate() {
        if count == LONGEST {
            shown.push('…');
            break;
        }
        if next == '\n' {
            shown.push_str("\\n");
        } else if next.is_control() || is_hidden(next) {
            shown.extend(next.escape_unicode());
        } else {
            shown.push(next);
        }
    }
    shown
}

/// Whether text holds characters that make it look other than it is.
pub(crate) fn is_disguised(text: &str) -> bool {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte) || matches!(byte, b'\n' | b'\t' | b'\r')) {
        return false;
    }
    let mut before = ' ';
    for next in text.chars() {
        let control = next.is_control() && !matches!(next, '\n' | '\t' | '\r');
        // Joiners belong into emoji and some scripts; between plain letters they only hide.
        let joiner = matches!(next, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
        let hidden = is_hidden(next) && (!joiner || before.is_ascii_alphanumeric());
        if control || (hidden && !matches!(next, '\u{fe00}'..='\u{fe0f}')) {
            return true;
        }
        before = next;
    }
    false
}

/// Characters that take no room or change the direction of others.
pub(crate) fn is_hidden(next: char) -> bool {
    matches!(next,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
