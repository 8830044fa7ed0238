//! Finds the files that a finished tool call changed, because most agents have no event for that.

use std::collections::HashSet;

use serde_json::Value;

use super::AgentDialect;
use crate::dialect::Request;
use crate::event::{COMMON, Event, EventKind};
use crate::tool::table::APPLY_PATCH;
use crate::tool::{Effect, declared, patched_files};

impl AgentDialect {
    /// The file events in a request, unless the agent sends file events itself.
    ///
    /// A file that a write tool wrote counts as edited: only a patch says whether a file was new.
    pub fn file_events(&self, request: &Request) -> Vec<Event> {
        let call = &request.event;
        if call.kind != EventKind::AfterTool || self.tells_files() || failed(call) {
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let changes = changes(call).into_iter().filter(|change| seen.insert(*change));
        changes.map(|(kind, path)| file_event(call, kind, path)).collect()
    }

    /// Whether we are registered for file events of the agent.
    pub fn tells_files(&self) -> bool {
        self.events.iter().any(|event| event.kind.is_file() && self.asks_at(event))
    }
}

/// A file event at the same time as a call, with the call's id.
fn file_event(call: &Event, kind: EventKind, path: &str) -> Event {
    let kept = COMMON.iter().map(|(name, _)| *name).chain(["call_id"]);
    let kept = kept.filter_map(|name| Some((name, call.data.get(name)?.clone())));
    Event::unchecked(kind, kept.chain([("path", path.into())]))
}

/// The files that a call certainly changed, according to its tool's declaration.
fn changes(call: &Event) -> Vec<(EventKind, &str)> {
    let Some(tool) = call.text("tool_name").and_then(declared) else { return Vec::new() };
    // A patch says what happens to each file, which is more than a list of files beside it.
    let is_patch = tool.name == APPLY_PATCH.name;
    let is_meant = |effect: Effect| !is_patch || effect == Effect::AppliesPatch;
    let effects = call.effects().into_iter().filter(|found| found.sure && is_meant(found.effect));
    let texts = effects.filter_map(|found| Some((found.effect, found.text()?)));
    texts
        .flat_map(|(effect, text)| match effect {
            Effect::WritesPath => vec![(EventKind::FileEdited, text)],
            Effect::AppliesPatch => patched_files(text),
            _ => Vec::new(),
        })
        .collect()
}

/// Whether a call ended with an error, in any agent's format.
fn failed(call: &Event) -> bool {
    let is_error = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let result = call.data.get("result");
    let word = |name: &str| result.and_then(|result| result.get(name)?.as_str());
    is_error(call.data.get("error"))
        || is_error(result.and_then(|result| result.get("error")))
        || ["result_type", "resultType"].into_iter().filter_map(word).any(|word| word != "success")
}
