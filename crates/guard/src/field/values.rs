//! The possible values of a variable, and the surroundings of the script that uses it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    rc::Rc,
};

use ollm_shell::{Elements, Piece};

use super::{
    Expander, FARTHEST, Field, Fields,
    partial::{MOST_WAYS, PartialFields, combined},
    variables::{Assigned, AssignedText, KnownValues, ValueKind, all_elements},
};
use crate::program;

/// What surrounds a script: the one that runs it, and what that one has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct OuterScript {
    /// Variables that are set there, and every value they may have; nothing if some of them are not known.
    pub(crate) names: Rc<HashMap<String, Option<Vec<String>>>>,
    /// Whether any variable may be set there.
    pub(crate) anything: bool,
    /// Whether values may fall apart at other separators.
    pub(crate) separators_change: bool,
    /// `$1`, `$2` and so on, if the script is given them.
    pub(crate) positional: Option<Fields>,
}

impl OuterScript {
    /// Adds a variable of which no value is known.
    pub(crate) fn taint(&mut self, name: &str) {
        Rc::make_mut(&mut self.names).insert(name.to_owned(), None);
    }
}

/// What a variable may hold.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Texts(Vec<String>),
    /// Names of files that were listed, and values of which only a part is known, or that hold what the user has set.
    Files(Fields),
    /// The user's value, or none.
    Unset,
    Unknown,
}

impl Values {
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Values::Unset | Values::Unknown)
    }
}

impl<'a> Expander<'a> {
    /// Every text a variable may hold, if all are known.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        match &*self.values(name, 0) {
            Values::Texts(texts) => Some(texts.clone()),
            Values::Files(_) | Values::Unset | Values::Unknown => None,
        }
    }

    /// Every value a variable may have; looked up once for each place.
    pub(super) fn values(&self, name: &str, far: usize) -> Rc<Values> {
        if !matches!(self.variables.of(name), Assigned::Values(_)) {
            return Rc::new(self.looked_up(name, far));
        }
        if let Some(known) = self.variables.known.borrow().get(name).and_then(|known| known.at(self.place)) {
            return known;
        }
        // In its own value a variable has what the user has set, or what is assigned elsewhere, which is looked at as well.
        if self.variables.sought.borrow().iter().any(|sought| sought == name) {
            return Rc::new(self.unset(name));
        }
        // However a value leads back to itself, the search for it ends.
        let level = self.variables.level.get();
        self.variables.level.set(level + 1);
        self.variables.sought.borrow_mut().push(name.to_owned());
        let values = Rc::new(if level < FARTHEST { self.looked_up(name, far) } else { Values::Unknown });
        self.variables.level.set(level);
        self.variables.sought.borrow_mut().pop();
        if far == 0 && level == 0 {
            let known = KnownValues::new(self.place, &values);
            self.variables.known.borrow_mut().insert(name.to_owned(), known);
        }
        values
    }

    /// Every list of elements that an array may have, where all are known that are assigned.
    pub(super) fn arrays(&self, name: &str, far: usize) -> Option<Vec<Fields>> {
        const MOST_ADDED: usize = 4;
        let assigned = self.variables.array(name).filter(|_| far < FARTHEST)?;
        let words = assigned.iter().map(|(_, words)| words.len() + 1).sum();
        let is_sought = self.variables.sought.borrow().iter().any(|sought| sought == name);
        if is_sought || self.outer.anything || self.outer.names.contains_key(name) || !self.variables.affords(words) {
            return None;
        }
        self.variables.sought.borrow_mut().push(name.to_owned());
        let of_kind = |wanted: Elements| {
            let words = assigned.iter().filter(move |(elements, _)| *elements == wanted).map(|(_, words)| *words);
            words.map(|words| self.ways(words, far + 1)).collect::<Vec<_>>()
        };
        let (whole, added) = (of_kind(Elements::All), of_kind(Elements::More));
        self.variables.sought.borrow_mut().pop();
        let mut arrays: Vec<Fields> = whole.concat();
        // Each is added, or is not: it may stand in a branch.
        for more in &added {
            if arrays.len() * (more.len() + 1) > MOST_WAYS || added.len() > MOST_ADDED {
                return None;
            }
            let longer = combined(arrays.clone(), more);
            arrays.extend(longer);
        }
        (!arrays.is_empty() && arrays.len() <= MOST_WAYS).then_some(arrays)
    }

    fn looked_up(&self, name: &str, far: usize) -> Values {
        let mut values: Vec<String> = match name {
            "HOME" => self.place.home.iter().filter_map(|home| utf8(home)).collect(),
            "PWD" if self.place.lost => return Values::Unknown,
            "PWD" => self.place.folders.iter().filter_map(|folder| utf8(folder)).collect(),
            _ => Vec::new(),
        };
        let mut files = Fields::new();
        if matches!(self.variables.of(name), Assigned::Read) && !self.fed.is_empty() {
            return Values::Files(self.fed.to_vec());
        }
        match self.outer.names.get(name) {
            None => {}
            Some(None) => return Values::Unknown,
            Some(Some(outer)) => values.extend(outer.iter().cloned()),
        }
        match self.variables.of(name) {
            Assigned::Never if !values.is_empty() => {}
            Assigned::Never => return self.unset(name),
            Assigned::Read | Assigned::Unknown => return Values::Unknown,
            Assigned::Values(_) if far >= FARTHEST => return Values::Unknown,
            Assigned::Values(assigned) => {
                for value in assigned {
                    if let Some(array) = all_elements(value.rest).filter(|_| value.kind == ValueKind::Element) {
                        let Some(arrays) = self.arrays(array, far + 1) else { return Values::Unknown };
                        files.extend(arrays.into_iter().flatten());
                        continue;
                    }
                    if let ("", [Piece::Output { list, .. }]) = (value.lead, value.rest)
                        && let Some(listed) = self.listed(list, far)
                    {
                        files.extend(listed);
                        continue;
                    }
                    for fields in self.value(value, far + 1) {
                        if let [field] = fields.as_slice()
                            && (field.hollow.is_some() || field.is_partly_known())
                        {
                            files.push(field.clone());
                            continue;
                        }
                        let [Field { text, tail: None, glob, .. }] = fields.as_slice() else { return Values::Unknown };
                        match value.kind {
                            ValueKind::Listing => values.extend(text.split_whitespace().map(str::to_owned)),
                            ValueKind::Element if *glob => files.push(Field { glob: true, ..Field::literal(text) }),
                            _ => values.push(text.clone()),
                        }
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
        if !files.is_empty() {
            files.extend(values.into_iter().map(Field::literal));
            let mut distinct = Fields::new();
            for file in files {
                if distinct.len() > MOST_WAYS {
                    return Values::Unknown;
                }
                if !distinct.contains(&file) {
                    distinct.push(file);
                }
            }
            return Values::Files(distinct);
        }
        if values.is_empty() || values.len() > MOST_WAYS { Values::Unknown } else { Values::Texts(values) }
    }

    /// A variable that nothing in the script sets: the user's, or empty.
    fn unset(&self, name: &str) -> Values {
        if self.outer.anything
            || self.variables.anything
            || self.variables.sourced
            || name == "HOME"
            || program::is_precious_variable(name)
        {
            return Values::Unknown;
        }
        program::by_convention(name).map_or(Values::Unset, |word| Values::Texts(vec![self.own_name(word)]))
    }

    /// A word that a program or a variable says; the name of the user is that of the home.
    pub(super) fn own_name(&self, word: &str) -> String {
        let home = self.place.home.as_deref().and_then(Path::file_name).and_then(std::ffi::OsStr::to_str);
        home.filter(|_| word == program::SELF).unwrap_or(word).to_owned()
    }

    /// A value is expanded like a quoted word: it is not split.
    fn value(&self, value: &AssignedText<'a>, far: usize) -> Vec<Fields> {
        let mut ways = vec![PartialFields::default()];
        if let [way] = ways.as_mut_slice() {
            way.open();
        }
        if !value.lead.is_empty() {
            self.plain(&mut ways, value.lead, true);
        }
        for (index, piece) in value.rest.iter().enumerate() {
            self.piece(&mut ways, piece, index == 0 && value.lead.is_empty(), Some(true), far);
        }
        ways.into_iter().map(PartialFields::finish).collect()
    }
}

pub(super) fn utf8(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}
