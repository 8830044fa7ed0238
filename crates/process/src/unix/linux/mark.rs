//! The mark in the environment of everything we start, by which it is found again anywhere.
//!
//! The variable holds a list: the entries that we inherited, if another such process started us, and then our own. Each
//! entry is the mark of a [`Children`](crate::Children), 128 random bits, and the number of a start: `0f…e3-7,`. So the
//! beginning of an entry finds everything that one `Children` started, and the whole entry finds what one start led to.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::random;

/// The name of the variable.
pub(in crate::unix) const VARIABLE: &str = "OLLM_LIFELINE";
/// The character that ends an entry.
const END: u8 = b',';
/// Hexadecimal digits of a mark.
const DIGITS: usize = 32;
/// Digits and the dash after them.
const LENGTH: usize = DIGITS + 1;
/// The longest inherited entry.
const LONGEST: usize = LENGTH + 20 + 1;
/// The most entries that are passed on; deeper nesting is not legitimate.
const MOST: usize = 31;

/// The mark of everything that one `Children` starts: the beginning of an entry.
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

/// The list for a new program: the valid inherited entries, and the program's own entry.
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
    place: EnvironmentPlace,
}

/// The position in an environment.
#[derive(Clone, Copy, Debug)]
enum EnvironmentPlace {
    /// This many bytes into a name that so far equals the variable's.
    Name(usize),
    /// In another variable.
    Elsewhere,
    /// This many bytes into an entry that so far equals the wanted one.
    Entry(usize),
    /// In another entry.
    Other,
}

impl<'a> Search<'a> {
    pub(super) fn new(wanted: &'a [u8]) -> Self {
        Self { wanted, place: EnvironmentPlace::Name(0) }
    }

    /// Whether the next piece completes the wanted entry.
    pub(super) fn finds(&mut self, piece: &[u8]) -> bool {
        piece.iter().any(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        self.place = match (self.place, byte) {
            (_, 0) => EnvironmentPlace::Name(0),
            (EnvironmentPlace::Name(count), _) => match VARIABLE.as_bytes().get(count) {
                Some(own) if *own == byte => EnvironmentPlace::Name(count + 1),
                None if byte == b'=' => EnvironmentPlace::Entry(0),
                _ => EnvironmentPlace::Elsewhere,
            },
            (EnvironmentPlace::Elsewhere, _) => EnvironmentPlace::Elsewhere,
            (EnvironmentPlace::Entry(count), _) if self.wanted.get(count) == Some(&byte) => {
                EnvironmentPlace::Entry(count + 1)
            }
            (EnvironmentPlace::Entry(_) | EnvironmentPlace::Other, END) => EnvironmentPlace::Entry(0),
            (EnvironmentPlace::Entry(_) | EnvironmentPlace::Other, _) => EnvironmentPlace::Other,
        };
        matches!(self.place, EnvironmentPlace::Entry(count) if count == self.wanted.len())
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
