//! The mark that everything we start bears in its environment, so that it is found again wherever it went.
//!
//! The variable holds a list: what we were started with ourselves, if another one of us did that, and then our own. Each
//! entry is the mark of a [`Children`](crate::Children), 128 random bits, and the number of a start: `0f…e3-7,`. So the
//! beginning of an entry finds everything that was started through one `Children`, and all of it what one start led to.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::random;

/// The name of the variable.
pub(in crate::unix) const VARIABLE: &str = "OLLM_LIFELINE";
/// What ends an entry.
const END: u8 = b',';
/// Hexadecimal digits of a mark.
const DIGITS: usize = 32;
/// Digits and the dash after them.
const LENGTH: usize = DIGITS + 1;
/// An entry that was passed on to us is no longer than this.
const LONGEST: usize = LENGTH + 20 + 1;
/// How many entries are passed on; deeper nesting is not legitimate.
const MOST: usize = 31;

/// The mark of everything that is started through one `Children`: the beginning of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark([u8; LENGTH]);

impl Mark {
    /// A new, random mark.
    pub(super) fn new() -> io::Result<Self> {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = [0; DIGITS / 2];
        random(&mut bytes)?;
        let mut mark = [b'-'; LENGTH];
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        for (place, digit) in mark.iter_mut().zip(digits) {
            *place = HEX.get(usize::from(digit)).copied().unwrap_or(b'0');
        }
        Ok(Self(mark))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The whole entry of one start.
    pub(super) fn entry(&self, start: u64) -> Vec<u8> {
        let mut entry = self.0.to_vec();
        entry.extend(start.to_string().bytes());
        entry.push(END);
        entry
    }
}

/// The list for a new program: what was passed on to us, as far as it is a list, and the program's own entry.
pub(super) fn list(inherited: Option<&OsStr>, mut entry: Vec<u8>) -> Vec<u8> {
    let inherited = inherited.map_or(&[][..], OsStrExt::as_bytes);
    let mut list: Vec<u8> = inherited
        .split_inclusive(|byte| *byte == END)
        .filter(|entry| is_entry(entry))
        .take(MOST)
        .flatten()
        .copied()
        .collect();
    list.append(&mut entry);
    list
}

fn is_entry(bytes: &[u8]) -> bool {
    let number = |rest: &[u8]| rest.split_last().is_some_and(|(end, digits)| *end == END && is_number(digits));
    bytes.len() <= LONGEST
        && bytes.split_at_checked(DIGITS).is_some_and(|(digits, rest)| {
            digits.iter().all(u8::is_ascii_hexdigit) && rest.strip_prefix(b"-").is_some_and(number)
        })
}

fn is_number(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Looks for an entry that begins with certain bytes in an environment that comes in pieces.
///
/// Neither allocates nor panics: the guard uses it.
#[derive(Debug)]
pub(super) struct Search<'a> {
    wanted: &'a [u8],
    place: Place,
}

/// Where in an environment we are.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// So many bytes into a name that is, so far, that of the variable.
    Name(usize),
    /// In a variable that is another one.
    Elsewhere,
    /// So many bytes into an entry that is, so far, the wanted one.
    Entry(usize),
    /// In an entry that is another one.
    Other,
}

impl<'a> Search<'a> {
    pub(super) fn new(wanted: &'a [u8]) -> Self {
        Self { wanted, place: Place::Name(0) }
    }

    /// Whether it is found with this next piece.
    pub(super) fn finds(&mut self, piece: &[u8]) -> bool {
        piece.iter().any(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        self.place = match (self.place, byte) {
            (_, 0) => Place::Name(0),
            (Place::Name(count), _) => match VARIABLE.as_bytes().get(count) {
                Some(own) if *own == byte => Place::Name(count + 1),
                None if byte == b'=' => Place::Entry(0),
                _ => Place::Elsewhere,
            },
            (Place::Elsewhere, _) => Place::Elsewhere,
            (Place::Entry(count), _) if self.wanted.get(count) == Some(&byte) => Place::Entry(count + 1),
            (Place::Entry(_) | Place::Other, END) => Place::Entry(0),
            (Place::Entry(_) | Place::Other, _) => Place::Other,
        };
        matches!(self.place, Place::Entry(count) if count == self.wanted.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(wanted: &[u8], environment: &[u8], size: usize) -> bool {
        let mut search = Search::new(wanted);
        environment.chunks(size).any(|piece| search.finds(piece))
    }

    #[test]
    fn no_two_marks_are_the_same() {
        let (one, two) = (Mark::new().unwrap(), Mark::new().unwrap());
        assert_ne!(one, two);
        assert!(is_entry(&one.entry(0)) && is_entry(&two.entry(u64::MAX)));
    }

    #[test]
    fn an_entry_is_found_wherever_it_stands_and_in_no_other_variable() {
        let mark = Mark::new().unwrap();
        let text = String::from_utf8(mark.entry(7)).unwrap();
        let other = String::from_utf8(Mark::new().unwrap().entry(7)).unwrap();
        let found = |environment: &str, start: u64| {
            [1, 2, 3, 7, 1000].map(|size| {
                let environment = environment.as_bytes();
                (found(mark.bytes(), environment, size), found(&mark.entry(start), environment, size))
            })
        };
        for environment in [
            format!("OLLM_LIFELINE={text}"),
            format!("OLLM_LIFELINE={text}\0"),
            format!("A=1\0OLLM_LIFELINE={other}{text}\0B=2\0"),
            format!("OLLM_LIFELINE=OLLM_LIFELINE=,{text}{other}\0"),
        ] {
            assert_eq!(found(&environment, 7), [(true, true); 5], "{environment:?}");
            assert_eq!(found(&environment, 70), [(true, false); 5], "{environment:?}");
        }
        for environment in [
            String::new(),
            format!("OLLM_LIFELINE={other}\0"),
            format!("XOLLM_LIFELINE={text}\0OLLM_LIFELIN={text}\0OLLM_LIFELINES={text}\0"),
            format!("A=OLLM_LIFELINE={text}\0=\0\0{text}"),
            format!("OLLM_LIFELINE=x{text}\0"),
            format!("OLLM_LIFELINE={}\0", &text[..LENGTH - 1]),
        ] {
            assert_eq!(found(&environment, 7), [(false, false); 5], "{environment:?}");
        }
        let longer = format!("OLLM_LIFELINE={}\0", text.replace(',', "0,"));
        assert_eq!(found(&longer, 7), [(true, false); 5]);
    }

    #[test]
    fn only_what_is_a_list_is_passed_on() {
        let mark = Mark::new().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (own, one) = (text(mark.entry(1)), text(Mark::new().unwrap().entry(u64::MAX)));
        let passed = |given: &str| text(list(Some(given.as_ref()), mark.entry(1)));
        assert_eq!(text(list(None, mark.entry(1))), own);
        assert_eq!(passed(&one), format!("{one}{own}"));
        assert_eq!(passed(one.trim_end_matches(',')), own, "it has no end");
        let odd = ["", ",", "x,", &one.replace('-', "+"), &one.replace(',', "x,"), &one.replace(',', "0,")];
        for odd in odd {
            assert_eq!(passed(odd), own, "{odd}");
            assert_eq!(passed(&format!("{odd},{one}")), passed(&one), "{odd}");
        }
        assert_eq!(passed(&one.repeat(MOST + 5)), one.repeat(MOST) + &own);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn in_whatever_pieces_an_environment_comes_the_same_is_found(
            before in "[A-Z_=a-f0-9,\0-]{0,60}",
            after in "[A-Z_=a-f0-9,\0-]{0,60}",
            listed in any::<bool>(),
            size in 1_usize..100,
        ) {
            let mark = Mark([b'a'; LENGTH]);
            let entry = if listed { "OLLM_LIFELINE=".to_owned() + &"a".repeat(LENGTH) } else { String::new() };
            let environment = format!("{before}\0{entry}{after}");
            let whole = found(mark.bytes(), environment.as_bytes(), usize::MAX);
            prop_assert_eq!(found(mark.bytes(), environment.as_bytes(), size), whole);
            prop_assert!(whole || !listed);
        }
    }
}
