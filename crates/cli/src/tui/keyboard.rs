//! Parses bytes of the terminal into keys, clicks and pasted text.
//!
//! Nothing here waits. An incomplete sequence or pasted text ends after a time limit, so that it cannot block the
//! keyboard.

use std::time::{Duration, Instant};

use ollm_process::after;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use terminput_crossterm::to_crossterm;

/// After this pause an escape is the key itself.
const ESCAPE_PAUSE: Duration = Duration::from_millis(50);
/// After this pause the rest of a sequence does not come any more.
const SEQUENCE_PAUSE: Duration = Duration::from_millis(500);
/// After this pause a pasted text is over, whether its end came or not.
const PASTE_PAUSE: Duration = Duration::from_secs(5);
/// No key is longer.
const LONGEST_SEQUENCE: usize = 64;
/// More of a pasted text is left out.
const LONGEST_PASTE: usize = 2 << 20;

const ESCAPE: u8 = 0x1b;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Ctrl-C and Ctrl-Q.
const LEAVING: [&[u8]; 2] = [b"\x03", b"\x11"];

/// What is known of the keys so far.
#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    /// A sequence whose end has not come yet.
    half: Vec<u8>,
    /// A pasted text whose end has not come yet.
    paste: Option<Vec<u8>>,
    /// Whether the incomplete sequence or text will be dropped.
    is_dropping: bool,
    last: Option<Instant>,
}

impl Keyboard {
    /// Reads what came at once.
    pub(crate) fn take(&mut self, bytes: &[u8], now: Instant, events: &mut Vec<Event>) {
        self.last = Some(now);
        // A single key in the middle of a pasted text comes from a person who gave up waiting.
        if self.paste.is_some() && LEAVING.contains(&bytes) {
            self.forget();
        }
        for byte in bytes {
            if self.paste.is_some() { self.take_pasted(*byte, events) } else { self.take_byte(*byte, events) }
        }
    }

    /// When something that has begun is over without its end.
    pub(crate) fn due(&self) -> Option<Instant> {
        let pause = match (self.half.as_slice(), &self.paste) {
            ([ESCAPE], _) => ESCAPE_PAUSE,
            (_, Some(_)) => PASTE_PAUSE,
            ([], None) => return None,
            _ => SEQUENCE_PAUSE,
        };
        Some(after(self.last?, pause))
    }

    /// Ends an incomplete sequence or text if its time is over.
    pub(crate) fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let (half, paste) = (std::mem::take(&mut self.half), self.paste.take());
        match (half.as_slice(), paste) {
            ([ESCAPE], paste) => {
                // In a pasted text this key means that the text is not wanted.
                self.is_dropping &= paste.is_none();
                self.emit(key(KeyCode::Esc, KeyModifiers::NONE), events);
            }
            (_, Some(text)) => self.emit(Event::Paste(String::from_utf8_lossy(&text).into_owned()), events),
            ([ESCAPE, byte], None) => self.emit(key(KeyCode::Char(char::from(*byte)), KeyModifiers::ALT), events),
            _ => self.is_dropping = false,
        }
    }

    /// Drops an incomplete sequence or text; its rest will be no key.
    pub(crate) fn drop_half(&mut self) {
        self.is_dropping = !self.half.is_empty() || self.paste.is_some();
    }

    fn forget(&mut self) {
        (self.half, self.paste, self.is_dropping) = (Vec::new(), None, false);
    }

    fn take_byte(&mut self, byte: u8, events: &mut Vec<Event>) {
        match self.half.as_slice() {
            [ESCAPE] if byte == ESCAPE => {
                self.half.clear();
                self.emit(key(KeyCode::Esc, KeyModifiers::NONE), events);
            }
            // A control character ends a sequence that it cannot be a part of.
            [ESCAPE, _, ..] if byte.is_ascii_control() => self.forget(),
            _ => {}
        }
        self.half.push(byte);
        if self.half == [ESCAPE] {
            return;
        }
        if self.half == PASTE_START {
            self.half.clear();
            self.paste = Some(Vec::new());
            return;
        }
        if is_off_screen(&self.half) {
            return self.forget();
        }
        match terminput::Event::parse_from(&self.half) {
            Ok(None) if self.half.len() < LONGEST_SEQUENCE => {}
            Ok(Some(event)) => {
                self.half.clear();
                match to_crossterm(event) {
                    Ok(Event::Key(tab)) if tab.code == KeyCode::Tab && tab.modifiers == KeyModifiers::SHIFT => {
                        // Terminals that tell keys apart write it another way.
                        self.emit(key(KeyCode::BackTab, KeyModifiers::SHIFT), events);
                    }
                    Ok(event) => self.emit(event, events),
                    Err(_) => self.is_dropping = false,
                }
            }
            // Neither a key nor the beginning of one.
            Ok(None) | Err(_) => self.forget(),
        }
    }

    fn take_pasted(&mut self, byte: u8, events: &mut Vec<Event>) {
        if byte == ESCAPE || !self.half.is_empty() {
            self.half.push(byte);
            if self.half == PASTE_END {
                self.half.clear();
                let text = self.paste.take().unwrap_or_default();
                return self.emit(Event::Paste(String::from_utf8_lossy(&text).into_owned()), events);
            }
            if PASTE_END.starts_with(&self.half) {
                return;
            }
        }
        let text = self.paste.get_or_insert_default();
        let more = if self.half.is_empty() { vec![byte] } else { std::mem::take(&mut self.half) };
        if text.len() + more.len() <= LONGEST_PASTE {
            text.extend(more);
        }
    }

    fn emit(&mut self, event: Event, events: &mut Vec<Event>) {
        if !std::mem::take(&mut self.is_dropping) {
            events.push(event);
        }
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

/// Whether it is a mouse beyond the first row or column, which the parser takes for a mistake of its own.
fn is_off_screen(sequence: &[u8]) -> bool {
    let Some(places) =
        sequence.strip_prefix(b"\x1b[").and_then(|rest| rest.strip_suffix(b"M").or(rest.strip_suffix(b"m")))
    else {
        return false;
    };
    let is_zero = |place: &[u8]| !place.is_empty() && place.iter().all(|byte| *byte == b'0');
    places.split(|byte| *byte == b';').skip(1).any(is_zero)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
        for piece in pieces {
            keyboard.take(piece, Instant::now(), &mut events);
        }
        events
    }

    fn later(keyboard: &mut Keyboard) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(due) = keyboard.due() {
            keyboard.expire(due, &mut events);
        }
        events
    }

    fn chars(text: &str) -> Vec<Event> {
        text.chars().map(|char| key(KeyCode::Char(char), KeyModifiers::NONE)).collect()
    }

    #[test]
    fn keys_are_the_same_whatever_their_pieces() {
        let typed =
            "aä漢\x1b[1;5C\x1b[A\x1bOP\x1b[3~\x1b[200~one\r\ntwo\x1b[201~\x1b[Z\x1bx\x1b[<0;5;6M\x03\r\x7f".as_bytes();
        let whole = read(&[typed]);
        assert_eq!(whole.len(), 14, "{whole:?}");
        assert!(whole.contains(&Event::Paste("one\r\ntwo".to_owned())));
        assert!(whole.contains(&key(KeyCode::BackTab, KeyModifiers::SHIFT)), "{whole:?}");
        assert!(whole.contains(&key(KeyCode::Char('x'), KeyModifiers::ALT)));
        let bytes: Vec<&[u8]> = typed.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn shift_and_tab_is_one_key_however_it_is_written() {
        for written in [&b"\x1b[Z"[..], b"\x1b[9;2u"] {
            assert_eq!(read(&[written]), [key(KeyCode::BackTab, KeyModifiers::SHIFT)], "{written:?}");
        }
    }

    #[test]
    fn half_a_sequence_is_over_after_a_while() {
        for (half, expected) in [
            (&b"\x1b"[..], vec![key(KeyCode::Esc, KeyModifiers::NONE)]),
            (b"\x1bO", vec![key(KeyCode::Char('O'), KeyModifiers::ALT)]),
            (b"\x1b[1;", Vec::new()),
            (b"\xe6\xbc", Vec::new()),
        ] {
            let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
            keyboard.take(half, Instant::now(), &mut events);
            assert_eq!((events.len(), later(&mut keyboard)), (0, expected), "{half:?}");
            keyboard.take(b"q", Instant::now(), &mut events);
            assert_eq!((events, keyboard.due()), (chars("q"), None), "{half:?}");
        }
    }

    #[test]
    fn what_is_no_key_takes_no_other_with_it() {
        assert_eq!(read(&[b"\x1bOjq"]), chars("q"));
        assert_eq!(read(&[b"\x1b[1;\x1b[Bq"]).len(), 2);
        assert_eq!(read(&[b"\x1b[1;\x03"]), [key(KeyCode::Char('c'), KeyModifiers::CONTROL)]);
        assert_eq!(read(&[b"\x1b[<0;0;0Mq", b"\x1b[32;0;1Mq"]), chars("qq"));
    }

    #[test]
    fn half_a_paste_leaves_the_keyboard_to_the_person() {
        for (way_out, leaving) in [
            (&b"\x03"[..], vec![key(KeyCode::Char('c'), KeyModifiers::CONTROL)]),
            (b"\x11", vec![key(KeyCode::Char('q'), KeyModifiers::CONTROL)]),
            (b"\x1b", vec![key(KeyCode::Esc, KeyModifiers::NONE)]),
        ] {
            let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
            keyboard.take(b"\x1b[200~half", Instant::now(), &mut events);
            keyboard.take(way_out, Instant::now(), &mut events);
            events.extend(later(&mut keyboard));
            keyboard.take(b"q", Instant::now(), &mut events);
            assert_eq!(events, [leaving, chars("q")].concat());
        }
        let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
        keyboard.take(b"\x1b[200~half", Instant::now(), &mut events);
        assert_eq!(later(&mut keyboard), [Event::Paste("half".to_owned())]);
    }

    #[test]
    fn what_had_begun_before_it_was_dropped_does_not_come_later() {
        let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
        keyboard.take(b"\x1b[200~y", Instant::now(), &mut events);
        keyboard.drop_half();
        keyboard.take(b"es\x1b[201~n", Instant::now(), &mut events);
        assert_eq!(events, chars("n"));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(pieces: Vec<Vec<u8>>) {
            let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
            for piece in pieces {
                keyboard.take(&piece, Instant::now(), &mut events);
                keyboard.take(b"\x1b[", Instant::now(), &mut events);
            }
            later(&mut keyboard);
            later(&mut keyboard);
            prop_assert_eq!(keyboard.due(), None);
        }

        #[test]
        fn no_sequence_is_too_odd(sequences in prop::collection::vec("\x1b(\\[[<?>]?[0-9;:]{0,12}|O)[ -~]", 1..8)) {
            let (mut keyboard, mut events) = (Keyboard::default(), Vec::new());
            for sequence in sequences {
                keyboard.take(sequence.as_bytes(), Instant::now(), &mut events);
            }
            later(&mut keyboard);
            later(&mut keyboard);
            prop_assert_eq!(keyboard.due(), None);
        }
    }
}
