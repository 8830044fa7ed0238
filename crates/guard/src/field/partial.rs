//! Fields under construction, one for each way in which a word may expand.

use super::{Field, Fields};

/// How many ways of expanding one command are followed.
pub(super) const MOST_WAYS: usize = 64;

/// Fields under construction.
#[derive(Clone, Default)]
pub(super) struct PartialFields {
    pub(super) done: Fields,
    pub(super) current: Option<Field>,
}

impl PartialFields {
    pub(super) fn open(&mut self) -> &mut Field {
        self.current.get_or_insert_with(|| Field::literal(""))
    }

    /// The same, going on with another field.
    pub(super) fn with(&self, field: &Field) -> PartialFields {
        let mut way = self.clone();
        way.open().append(field);
        way
    }

    /// The same, going on with a field that falls apart at blanks.
    fn with_parts(&self, field: &Field) -> PartialFields {
        let mut way = self.clone();
        way.split(&field.text);
        if let Some(tail) = &field.tail {
            let unset =
                field.hollow.as_deref().and_then(|hollow| hollow.strip_prefix(&*field.text)?.strip_suffix(&**tail));
            match unset {
                Some(unset) => way.open().lose_unset(unset),
                None => way.open().lose(),
            }
            way.split(tail);
        }
        way
    }

    /// The same, going on with several fields: the first and the last are joined with what is around them.
    pub(super) fn with_all(&self, fields: &[Field]) -> PartialFields {
        let mut way = self.clone();
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                way.done.extend(way.current.take());
            }
            way.open().append(field);
        }
        way
    }

    /// Adds text that falls apart at blanks.
    pub(super) fn split(&mut self, text: &str) {
        let glob = is_pattern(text);
        let mut parts = text.split([' ', '\t', '\n']).peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                let field = self.open();
                field.push(part);
                field.glob |= glob;
            }
            if parts.peek().is_some() {
                self.done.extend(self.current.take());
            }
        }
    }

    pub(super) fn finish(mut self) -> Fields {
        self.done.extend(self.current);
        self.done
    }
}

pub(super) fn push(ways: &mut [PartialFields], text: &str) {
    for way in ways {
        way.open().push(text);
    }
}

pub(super) fn lose(ways: &mut [PartialFields]) {
    for way in ways {
        way.open().lose();
    }
}

/// Goes on with each of several fields.
pub(super) fn go_on(ways: &mut Vec<PartialFields>, fields: &[Field], quoted: bool) {
    if ways.len() * fields.len() > MOST_WAYS {
        return lose(ways);
    }
    let with = |way: &PartialFields, field: &Field| {
        let falls_apart = !quoted && !field.listed && field.shown().contains([' ', '\t', '\n']);
        if falls_apart { way.with_parts(field) } else { way.with(field) }
    };
    *ways = ways.iter().flat_map(|way| fields.iter().map(|field| with(way, field))).collect();
}

/// Whether a shell would look for files that fit this text.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'*' | b'?') || (byte == b'[' && text.len() > 1))
}

/// Goes on with each of several texts.
pub(super) fn choose(ways: &mut Vec<PartialFields>, texts: &[String], quoted: bool) {
    if ways.len() * texts.len() > MOST_WAYS {
        lose(ways);
        return;
    }
    *ways = ways
        .iter()
        .flat_map(|way| {
            texts.iter().map(move |text| {
                let mut way = way.clone();
                if quoted {
                    way.open().push(text);
                } else {
                    way.split(text);
                }
                way
            })
        })
        .collect();
}

/// Every way followed by every choice.
pub(super) fn combined(mut ways: Vec<Fields>, choices: &[Fields]) -> Vec<Fields> {
    if let [choice] = choices {
        for way in &mut ways {
            way.extend(choice.iter().cloned());
        }
        return ways;
    }
    let longer = |way: &Fields| choices.iter().map(|choice| [way.as_slice(), choice].concat()).collect::<Vec<_>>();
    ways.iter().flat_map(longer).collect()
}
