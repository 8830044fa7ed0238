//! Which messages a listener wants.

use ollm_protocol::EventKind;
use ollm_protocol::dialect::{Named, UnknownEvent, event_named};

use super::message::{COMPLETE, ERROR, Matter, Message, START};

/// Which messages a listener wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// None stands for all.
    picks: Option<Vec<Pick>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pick {
    Event(EventKind),
    Custom(String),
    Hook(&'static str),
}

impl Filter {
    /// Everything.
    pub fn all() -> Filter {
        Filter { picks: None }
    }

    /// Only these: events in the spelling of any dialect, `custom:NAME`, and `hook_execution_start`,
    /// `hook_execution_complete`, `hook_execution_error`.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Filter, UnknownEvent> {
        let mut picks = Vec::new();
        for name in names {
            if let Some(phase) = [START, COMPLETE, ERROR].into_iter().find(|phase| *phase == name) {
                picks.push(Pick::Hook(phase));
                continue;
            }
            let Named { kinds, custom } = event_named(name)?;
            match custom {
                Some(custom) => picks.push(Pick::Custom(custom)),
                None => picks.extend(kinds.into_iter().map(Pick::Event)),
            }
        }
        Ok(Filter { picks: Some(picks) })
    }

    /// Whether a message is wanted.
    pub fn fits(&self, message: &Message) -> bool {
        let fits = |pick: &Pick| match (pick, &message.matter) {
            (Pick::Event(kind), Matter::Event(event)) => *kind == event.kind,
            (Pick::Custom(name), Matter::Event(event)) => {
                event.kind == EventKind::Custom && event.subject() == Some(name)
            }
            (Pick::Hook(phase), _) => *phase == message.event_type(),
            _ => false,
        };
        self.picks.as_ref().is_none_or(|picks| picks.iter().any(fits))
    }
}
