//! Names in tables, found with one look however many tables there are; and maps whose keys need no hashing.

use std::{collections::HashMap, hash::BuildHasherDefault, hash::Hasher};

/// A map by addresses or by hashes.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Spreads numbers over all bits. An attacker who chooses the keys can make many of them alike; that costs only speed.
#[derive(Default)]
pub(crate) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        self.write_u64(rest.iter().fold(rest.len() as u64, |number, byte| (number << 8) | u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// No name is longer.
const LONGEST: usize = 32;

/// Some tables of names: which of them have a name.
pub(crate) struct Names<const ROOM: usize> {
    /// Each name, and the tables that have it as bits. A name stands at its hash, or behind it where that is taken.
    slots: [(&'static str, u16); ROOM],
}

#[expect(clippy::indexing_slicing, reason = "it is evaluated when the program is compiled")]
impl<const ROOM: usize> Names<ROOM> {
    /// Of these tables: the first is bit 0. There is room for twice as many names, or it does not compile.
    pub(crate) const fn of(mut tables: &[&[&'static str]]) -> Names<ROOM> {
        let mut names = Names { slots: [("", 0); ROOM] };
        let (mut bit, mut count) = (1, 0);
        while let Some((table, others)) = tables.split_first() {
            let mut rest = *table;
            while let Some((name, behind)) = rest.split_first() {
                names = names.with(name, bit);
                count += 1;
                rest = behind;
            }
            bit <<= 1;
            tables = others;
        }
        assert!(count * 2 <= ROOM && ROOM.is_power_of_two());
        names
    }

    /// Of one name more.
    pub(crate) const fn with(mut self, name: &'static str, bits: u16) -> Names<ROOM> {
        assert!(name.len() <= LONGEST);
        let mut at = hash(name) % ROOM;
        while self.slots[at].1 != 0 && !self.slots[at].0.eq_ignore_ascii_case(name) {
            at = (at + 1) % ROOM;
        }
        self.slots[at] = (name, self.slots[at].1 | bits);
        self
    }

    /// Of all parts of these paths.
    pub(crate) const fn with_parts(mut self, mut paths: &[&'static str], bits: u16) -> Names<ROOM> {
        while let Some((path, behind)) = paths.split_first() {
            let mut rest = *path;
            let mut at = 0;
            while at < rest.len() {
                if rest.as_bytes()[at] == b'/' {
                    let (part, slashed) = rest.split_at(at);
                    self = self.with(part, bits);
                    (_, rest) = slashed.split_at(1);
                    at = 0;
                } else {
                    at += 1;
                }
            }
            self = self.with(rest, bits);
            paths = behind;
        }
        self
    }

    /// The tables that have this name, in letters of either case.
    pub(crate) fn tables_with(&self, name: &str) -> u16 {
        if name.len() > LONGEST {
            return 0;
        }
        let mut at = hash(name) % ROOM;
        while let Some((known, tables)) = self.slots.get(at).filter(|(_, tables)| *tables != 0) {
            if *known == name || known.eq_ignore_ascii_case(name) {
                return *tables;
            }
            at = (at + 1) % ROOM;
        }
        0
    }
}

/// FNV-1a, of letters of either case: a few letters are hashed faster than two names are compared.
const fn hash(name: &str) -> usize {
    let mut rest = name.as_bytes();
    let mut hash = 0x811c_9dc5_u32;
    while let Some((byte, behind)) = rest.split_first() {
        hash = (hash ^ (*byte | 0x20) as u32).wrapping_mul(0x0100_0193);
        rest = behind;
    }
    (hash ^ (hash >> 15)) as usize
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn every_table_that_has_a_name_is_found() {
        const NAMES: Names<16> = Names::of(&[&["a", "b", "c"], &["b", "d", "e", "f"]]).with("g", 4);
        let found = ["a", "B", "c", "d", "g", "h", "", "aa"].map(|name| NAMES.tables_with(name));
        assert_eq!(found, [1, 3, 1, 2, 4, 0, 0, 0]);
        let parts = Names::<16>::of(&[]).with_parts(&[".x/Y/z", "w"], 1);
        assert_eq!([".x", "y", "z", "w", "x", ".x/Y"].map(|name| parts.tables_with(name)), [1, 1, 1, 1, 0, 0]);
    }
}
