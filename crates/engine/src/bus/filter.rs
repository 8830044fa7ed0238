//! Which messages a listener wants.

use ollm_protocol::dialect::{NamedEvents, UnknownEvent, event_named};
use ollm_protocol::{Event, EventKind};

use super::message::{COMPLETE, ERROR, Message, MessageBody, START};

/// Which messages a listener wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `None` means all messages.
    picks: Option<Vec<Pick>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pick {
    Event(EventKind),
    Custom(String),
    Hook(&'static str),
}

impl Filter {
    /// All messages.
    pub fn all() -> Filter {
        Filter { picks: None }
    }

    /// Only messages with these names: events in the spelling of any dialect, `custom:NAME`, and
    /// `hook_execution_start`, `hook_execution_complete`, `hook_execution_error`.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Filter, UnknownEvent> {
        let mut picks = Vec::new();
        for name in names {
            if let Some(phase) = [START, COMPLETE, ERROR].into_iter().find(|phase| *phase == name) {
                picks.push(Pick::Hook(phase));
                continue;
            }
            let NamedEvents { kinds, custom } = event_named(name)?;
            match custom {
                Some(custom) => picks.push(Pick::Custom(custom)),
                None => picks.extend(kinds.into_iter().map(Pick::Event)),
            }
        }
        Ok(Filter { picks: Some(picks) })
    }

    /// Whether a message is wanted.
    pub fn fits(&self, message: &Message) -> bool {
        match &message.body {
            MessageBody::Event(event) => self.wants(event),
            _ => self.picks(|pick| *pick == Pick::Hook(message.event_type())),
        }
    }

    /// Whether the message about an event is wanted.
    pub(super) fn wants(&self, event: &Event) -> bool {
        self.picks(|pick| match pick {
            Pick::Event(kind) => *kind == event.kind,
            Pick::Custom(name) => event.kind == EventKind::Custom && event.subject() == Some(name),
            Pick::Hook(_) => false,
        })
    }

    fn picks(&self, fits: impl Fn(&Pick) -> bool) -> bool {
        self.picks.as_ref().is_none_or(|picks| picks.iter().any(fits))
    }
}
