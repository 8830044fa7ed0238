//! The possible results of expanding a word in the shell, as far as they can be known in advance.
//!
//! A variable counts as every value that the script gives it anywhere. Unknown parts stay visible: a [`Field`] keeps
//! the text before and after the unknown part.

use std::{ops::Deref, sync::Arc};

mod brace;
mod expander;
mod output;
mod partial;
mod place;
mod values;
mod variables;

pub(crate) use expander::{Expander, FARTHEST, UNSEEN_STREAM};
pub(crate) use output::formatted;
pub(crate) use partial::is_pattern;
pub(crate) use place::ShellPlace;
pub(crate) use values::OuterScript;
pub(crate) use variables::{Variables, literal};

/// One argument as a program would receive it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The text, or the part before what is not known.
    pub(crate) text: String,
    /// The part behind what is not known; `None` when all is known.
    pub(crate) tail: Option<String>,
    /// Whether wildcards in it count.
    pub(crate) glob: bool,
    /// What it would be if the variables that nothing in the script sets were empty; only where they alone are not known.
    pub(crate) hollow: Option<String>,
    /// Whether a search or a listing named it: it is something below the text, and its name fits the part behind.
    pub(crate) listed: bool,
}

impl Field {
    /// A field whose text is known.
    pub(crate) fn literal(text: impl Into<String>) -> Field {
        Field { text: text.into(), ..Field::default() }
    }

    /// A field with unknown content.
    pub(crate) fn unknown() -> Field {
        Field::below("")
    }

    /// A field of which only the beginning is known.
    pub(crate) fn below(text: impl Into<String>) -> Field {
        Field { text: text.into(), tail: Some(String::new()), ..Field::default() }
    }

    /// The whole text, when it is known and stands for itself.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.tail.is_none() && !self.glob).then_some(self.text.as_str())
    }

    /// Whether part of it is not known.
    pub(crate) fn open(&self) -> bool {
        self.tail.is_some()
    }

    /// Whether part of it is not known, and part of it is.
    pub(crate) fn is_partly_known(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| !tail.is_empty() || !self.text.is_empty())
    }

    /// A relative path as seen from the folder that this names.
    pub(crate) fn with_path(&self, path: &Field) -> Option<Field> {
        if path.text.starts_with('/') || (path.open() && path.text.is_empty()) {
            return None;
        }
        let mut field = self.clone();
        if field.tail.as_deref().unwrap_or(&field.text) != "/" {
            field.push("/");
        }
        field.append(path);
        Some(field)
    }

    fn push(&mut self, text: &str) {
        self.tail.as_mut().unwrap_or(&mut self.text).push_str(text);
        if let Some(hollow) = &mut self.hollow {
            hollow.push_str(text);
        }
    }

    fn lose(&mut self) {
        self.tail = Some(String::new());
        self.hollow = None;
    }

    /// Goes on with the value of a variable that nothing sets here: any value, or this one.
    fn lose_unset(&mut self, otherwise: &str) {
        let before = if self.tail.is_none() { Some(self.text.clone()) } else { self.hollow.take() };
        self.hollow = before.map(|before| before + otherwise);
        self.tail = Some(String::new());
    }

    /// What it would be if the variables that nothing in the script sets were empty, if that is known.
    fn without_unset(&self) -> Option<&str> {
        if self.open() { self.hollow.as_deref() } else { Some(&self.text) }
    }

    /// Goes on with another field.
    fn append(&mut self, other: &Field) {
        let hollow = match (other.open(), self.without_unset(), other.without_unset()) {
            (true, Some(before), Some(behind)) => Some([before, behind].concat()),
            _ => None,
        };
        self.push(&other.text);
        self.glob |= other.glob;
        self.listed |= other.listed;
        if let Some(tail) = &other.tail {
            self.lose();
            self.push(tail);
            self.hollow = hollow;
        }
    }

    /// The field as written, more or less.
    pub(crate) fn shown(&self) -> String {
        match &self.tail {
            None => self.text.clone(),
            Some(tail) => format!("{}…{tail}", self.text),
        }
    }
}

/// The words of a command from one of them on; those behind a wrapper are its own words, not copies.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    words: Arc<Fields>,
    from: usize,
    to: usize,
}

impl Tail {
    /// The same without so many words in front.
    pub(crate) fn skip(&self, count: usize) -> Tail {
        Tail { from: self.to.min(self.from + count), ..self.clone() }
    }

    /// Its first words.
    pub(crate) fn head(&self, count: usize) -> Tail {
        Tail { to: self.to.min(self.from + count), ..self.clone() }
    }
}

impl Deref for Tail {
    type Target = [Field];

    fn deref(&self) -> &[Field] {
        self.words.get(self.from..self.to).unwrap_or_default()
    }
}

impl From<Fields> for Tail {
    fn from(words: Fields) -> Tail {
        Tail { from: 0, to: words.len(), words: Arc::new(words) }
    }
}

impl FromIterator<Field> for Tail {
    fn from_iter<I: IntoIterator<Item = Field>>(words: I) -> Tail {
        Fields::from_iter(words).into()
    }
}

/// The fields one word may become.
pub(crate) type Fields = Vec<Field>;
