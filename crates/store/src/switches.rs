//! What a person has switched on or off, permanently or for a time, stored apart from the declarations.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::versioned::{self, Loaded, Trouble, UpdateError, broken};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 1 << 20;

/// The state of one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Whether the thing is on.
    pub on: bool,
    /// When it returns to the declared state, to the second.
    pub until: Option<SystemTime>,
}

/// All switches of a file, by the name of the switched thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches(BTreeMap<String, Switch>);

impl Switches {
    /// Reads the switches. A file that cannot be trusted counts as empty, and the trouble says why.
    pub fn load(path: &Path) -> (Switches, Option<Trouble>) {
        match versioned::load(path, VERSION, MAX_BYTES) {
            Loaded::Missing => (Switches::default(), None),
            Loaded::Current(document) => match entries(path, &document) {
                Ok(entries) => (Switches(entries.iter().filter_map(read).collect()), None),
                Err(trouble) => (Switches::default(), Some(trouble)),
            },
            Loaded::Refused(trouble) => (Switches::default(), Some(trouble)),
        }
    }

    /// The switch of a thing, if it is set and has not expired.
    pub fn get(&self, name: &str, now: SystemTime) -> Option<Switch> {
        self.0.get(name).copied().filter(|switch| switch.until.is_none_or(|until| until > now))
    }

    /// The names of all things with a switch, also expired ones.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether nothing is switched.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Sets switches, or removes them with `None`; expired switches are removed as well.
pub fn set_switches(path: &Path, changes: &[(String, Option<Switch>)], now: SystemTime) -> Result<(), UpdateError> {
    versioned::update(path, VERSION, MAX_BYTES, |document| {
        let mut document = document.unwrap_or_else(|| json!({"version": VERSION, "switches": {}}));
        let mut switches = entries(path, &document)?.clone();
        switches.retain(|name, value| {
            let over = read((name, value)).and_then(|(_, switch)| switch.until).is_some_and(|until| until <= now);
            !over && !changes.iter().any(|(changed, _)| changed == name)
        });
        for (name, switch) in changes {
            if let Some(switch) = switch {
                switches.insert(name.clone(), write(switch));
            }
        }
        if let Some(map) = document.as_object_mut() {
            map.insert("switches".to_owned(), switches.into());
        }
        Ok((Some(document), ()))
    })
}

fn entries<'a>(path: &Path, document: &'a Value) -> Result<&'a Map<String, Value>, Trouble> {
    let entries = document.get("switches").and_then(Value::as_object);
    entries.ok_or_else(|| broken(path, format!("{} has no object \"switches\"", path.display())))
}

fn read((name, value): (&String, &Value)) -> Option<(String, Switch)> {
    let until = match value.get("until") {
        None => None,
        Some(seconds) => Some(UNIX_EPOCH.checked_add(Duration::from_secs(seconds.as_u64()?))?),
    };
    Some((name.clone(), Switch { on: value.get("on")?.as_bool()?, until }))
}

fn write(switch: &Switch) -> Value {
    let mut entry = Map::from_iter([("on".to_owned(), switch.on.into())]);
    let seconds = switch.until.and_then(|until| until.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
    entry.extend(seconds.map(|seconds| ("until".to_owned(), seconds.into())));
    entry.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_switch_holds_until_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switches.json");
        let off = Switch { on: false, until: Some(at(NOW + 600)) };
        set_switches(&path, &[("hook:a".to_owned(), Some(off))], at(NOW)).unwrap();
        let (switches, trouble) = Switches::load(&path);
        assert_eq!((switches.get("hook:a", at(NOW + 599)), trouble), (Some(off), None));
        assert_eq!((switches.get("hook:a", at(NOW + 600)), switches.get("hook:b", at(NOW))), (None, None));
    }

    #[test]
    fn a_change_leaves_the_others_and_drops_what_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switches.json");
        let off = Switch { on: false, until: None };
        let short = Switch { on: false, until: Some(at(NOW + 1)) };
        let first = [("a".to_owned(), Some(off)), ("b".to_owned(), Some(short)), ("c".to_owned(), Some(off))];
        set_switches(&path, &first, at(NOW)).unwrap();
        set_switches(&path, &[("c".to_owned(), None)], at(NOW + 2)).unwrap();
        let (switches, _) = Switches::load(&path);
        assert_eq!(switches, Switches(BTreeMap::from_iter([("a".to_owned(), off)])));
    }

    #[test]
    fn a_broken_or_newer_file_switches_nothing_and_is_left_alone() {
        for text in ["{", "{}", r#"{"version": 1}"#, r#"{"version": 2, "switches": {"a": {"on": false}}}"#] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("switches.json");
            fs::write(&path, text).unwrap();
            let (switches, trouble) = Switches::load(&path);
            assert!(switches.is_empty() && trouble.is_some(), "{text}");
            assert!(set_switches(&path, &[("a".to_owned(), None)], at(NOW)).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
