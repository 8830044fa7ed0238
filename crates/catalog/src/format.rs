//! Reads hooks in all their forms, one module per form. The collector makes hooks from the entries of every form.

use std::collections::HashMap;
use std::path::Path;

use ollm_condition::{Condition, ConditionError};
use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::{ActionSpec, Code, Hook, HookSpec, Layer, Remedy, Rules, Source, dialect};

use crate::entry::{self, Draft, MANY, OwnKeys, canonical, meant, not_loaded};
use crate::file::{Document, Finding};
use crate::node::{Cursor, Node, Part, Spot};
use crate::path::PathCache;
use crate::problem::Severity;
use valid::Invalid;

pub(crate) mod agent;
pub(crate) mod events;
mod fail_closed_placeholder;
mod form;
pub(crate) mod in_place;
mod modern;
mod valid;
mod when_then;

pub use form::Form;

/// Takes in every hook of a file, in any of the forms.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    match Form::of(root) {
        Some(Form::Events) => events::take(root, intake),
        Some(Form::Modern) => modern::take(root, intake),
        Some(Form::WhenThen) => when_then::take(root, intake),
        Some(Form::Agent) => agent::take(root, intake),
        None => intake.findings.push(form::strange(root)),
    }
}

/// A file with hooks, with the context for reading them.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// Where its relative files are.
    pub(crate) folder: &'a Path,
    /// The file's part of an id.
    pub(crate) label: &'a str,
    pub(crate) source: Source,
    pub(crate) layer: Layer,
    /// The group whose members are approved together.
    pub(crate) group: Option<&'static str>,
    /// The agent whose own file it is.
    pub(crate) agent: Option<&'static AgentDialect>,
    /// The extension it is the manifest of; then all of its folder belongs to each hook.
    pub(crate) extension: Option<&'a str>,
    /// The project it is in.
    pub(crate) project: Option<&'a Path>,
    /// Whether that is a project around the one we are in.
    pub(crate) encloses: bool,
    pub(crate) rules: &'a Rules,
    /// What was found out about the files in the folder.
    pub(crate) walked: &'a PathCache,
}

impl Context<'_> {
    pub(crate) fn is_users_own(&self) -> bool {
        self.source == Source::User
    }

    /// Notes where a hook comes from.
    pub(crate) fn place(&self, spec: &mut HookSpec) {
        self.path.clone_into(&mut spec.origin.file);
        spec.project = self.project.map(Path::to_owned);
        if let Some(project) = self.project.filter(|_| self.encloses) {
            spec.id = HookSpec::id_in(project, &spec.id);
        }
    }

    fn scope(&self) -> &'static str {
        match self.layer {
            Layer::User if self.source == Source::Policy => "policy",
            Layer::User => "user",
            Layer::Workspace => "workspace",
        }
    }
}

/// The ids in use.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// Each id and, for those a person chose, where that was.
    taken: HashMap<String, Option<String>>,
    /// How often each generated id was requested.
    asked: HashMap<String, usize>,
}

/// Collects the hooks of one file.
#[derive(Debug)]
pub(crate) struct HookCollector<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) ids: &'a mut Ids,
    pub(crate) hooks: Vec<Hook>,
    /// Where each hook stands.
    pub(crate) spots: Vec<Spot>,
    pub(crate) findings: Vec<Finding>,
}

/// A hook that could not be collected.
#[derive(Debug, Default)]
pub(crate) struct RejectedHook {
    /// The id that was made up for it, if it came so far.
    id: Option<String>,
}

/// Where an entry stands: under an event, perhaps in a group.
#[derive(Clone, Copy)]
pub(crate) struct EntryLocation<'a> {
    pub(crate) event: &'a str,
    pub(crate) group: Option<&'a Cursor<'a>>,
    pub(crate) entry: &'a Cursor<'a>,
}

impl<'a> HookCollector<'a> {
    pub(crate) fn new(context: &'a Context<'a>, ids: &'a mut Ids) -> HookCollector<'a> {
        HookCollector { context, ids, hooks: Vec::new(), spots: Vec::new(), findings: Vec::new() }
    }

    /// The hooks, each with its place in the document, and what is wrong with others.
    pub(crate) fn located(mut self, document: &Document<'_>) -> (Vec<Hook>, Vec<Finding>) {
        for (hook, spot) in self.hooks.iter_mut().zip(&self.spots) {
            let at = document.locate(spot);
            (hook.spec.origin.line, hook.spec.origin.column) = (at.line, at.column);
        }
        (self.hooks, self.findings)
    }
}

impl HookCollector<'_> {
    /// Adds one hook, if it is valid.
    fn take(&mut self, draft: Draft, action: ActionSpec, at: EntryLocation<'_>) -> Result<(), RejectedHook> {
        let chosen = draft.id().map(str::to_owned);
        let made_up = chosen.is_none().then(|| self.made_up(&draft, at.event));
        let id = chosen.clone().or_else(|| made_up.clone()).unwrap_or_default();
        let mut spec = draft.spec(id, at.event, action, self.context);
        self.context.place(&mut spec);
        let hook = match valid::hook(spec, self.context.rules) {
            Ok(hook) => hook,
            Err(error) => {
                self.findings.push(invalid(&error, at));
                return Err(RejectedHook { id: made_up });
            }
        };
        if let Some(Err(error)) = &hook.condition {
            let meaning = if hook.is_gate() { "it refuses whatever it is for" } else { "it does not run" };
            self.findings.push(bad_condition(error, &format!("until that is mended {meaning}"), at));
        }
        if let Some(earlier) = self.ids.taken.get(hook.spec.own_id()) {
            let earlier = earlier.as_deref().unwrap_or("a hook without an id of its own");
            let message = format!("id `{}` is taken by {earlier}", hook.id());
            let cursor = at.entry.get("id").unwrap_or(*at.entry);
            self.findings.push(not_loaded(Code::Duplicate, &cursor, &message, Some("choose another id".to_owned())));
            return Err(RejectedHook::default());
        }
        let place = chosen.map(|_| match at.entry.spot(Part::Value).field {
            field if field.is_empty() => self.context.path.display().to_string(),
            field => format!("{field} in {}", self.context.path.display()),
        });
        self.ids.taken.insert(hook.spec.own_id().to_owned(), place);
        self.spots.push(at.entry.spot(Part::Value));
        self.hooks.push(hook);
        Ok(())
    }

    /// Takes in the only hook of a file, which names its event itself.
    fn take_single(&mut self, root: &Cursor<'_>, event: &str, own: OwnKeys) {
        let before = self.findings.len();
        if let Err(untaken) = self.single(root, event, own) {
            self.reject(before, untaken, EntryLocation { event: "", group: None, entry: root });
        }
    }

    /// Tells all that is wrong with an entry that could not be taken, and lets a placeholder stand for it if it must
    /// refuse. The faults since `before` are known.
    fn reject(&mut self, before: usize, untaken: RejectedHook, at: EntryLocation<'_>) {
        if self.findings.len() < MANY {
            self.tell_the_rest(before, at);
        }
        self.fail_closed_placeholder(before, untaken, at);
    }

    /// Checks the keys that are not reached if an earlier one cannot be read.
    fn tell_the_rest(&mut self, before: usize, at: EntryLocation<'_>) {
        let mut spec = entry::read_in_part(at.entry, self.context);
        at.complete(&mut spec);
        let faults = spec.faults(self.context.rules).into_iter().map(|fault| invalid(&fault.into(), at));
        let condition = spec.condition.as_deref().and_then(|text| Condition::parse(text).err());
        let condition = condition.map(|error| bad_condition(&error, "the hook is not loaded", at));
        let field = |finding: &Finding| finding.spot.as_ref().map(|spot| spot.field.clone()).unwrap_or_default();
        let entry = at.entry.spot(Part::Value).field;
        for fault in faults.chain(condition) {
            let key = field(&fault);
            // A key that is not there is told of by whoever needs it.
            let below = format!("{key}.");
            let is_it = |field: String| field == key || field.starts_with(&below);
            let known = self.findings.iter().skip(before).any(|known| is_it(field(known)));
            if key != entry && !known {
                self.findings.push(fault);
            }
        }
    }

    fn single(&mut self, root: &Cursor<'_>, event: &str, own: OwnKeys) -> Result<(), RejectedHook> {
        let draft = entry::read(root, self.context, &mut self.findings, own);
        let mut draft = draft.ok_or_else(RejectedHook::default)?;
        let Some(first) = draft.spec.events.first().cloned() else {
            let help = Some("name one such as \"fileEdited\" or \"before_tool\"".to_owned());
            self.findings.push(not_loaded(Code::MissingKey, root, &format!("the hook has no `{event}`"), help));
            return Err(RejectedHook::default());
        };
        let action = root.get("action").or_else(|| root.get("then"));
        let action = draft.act(action.as_ref().unwrap_or(root), self.context, &mut self.findings);
        let action = action.ok_or_else(RejectedHook::default)?;
        self.take(draft, action, EntryLocation { event: &first, group: None, entry: root })
    }

    /// Whether the key is the name of an event; if not, that is a finding.
    fn is_event(&mut self, name: &str, at: &Cursor<'_>) -> bool {
        if dialect::is_event(name) {
            return true;
        }
        let shown: String = name.chars().take(80).collect();
        let likely = (self.findings.len() < MANY).then(|| dialect::event_named(name).err()).flatten();
        let near = likely.as_ref().is_some_and(|unknown| unknown.nearest.is_some());
        let unknown = likely.map_or_else(|| format!("unknown event `{shown}`"), |unknown| unknown.to_string());
        self.findings.push(Finding {
            code: Code::UnknownEvent,
            severity: Severity::Error,
            spot: Some(at.spot(Part::Key)),
            value: Some(shown),
            message: if unknown.ends_with('?') {
                format!("{unknown} Its hooks are not loaded")
            } else {
                format!("{unknown}; its hooks are not loaded")
            },
            help: (!near).then(|| "name one such as before_tool, or custom:NAME for one of your own".to_owned()),
            remedy: (!near).then_some(Remedy::ListEvents),
        });
        false
    }

    /// Whether the node is a list; if not, that is a finding.
    fn is_list(&mut self, what: &str, at: &Cursor<'_>) -> bool {
        let is_list = matches!(at.node, Node::List(_));
        if !is_list {
            self.findings.push(Finding {
                code: Code::WrongForm,
                severity: Severity::Error,
                spot: Some(at.spot(Part::Value)),
                value: Some(at.node.shown()),
                message: format!("{what} must be a list, not {}; its hooks are not loaded", at.node.kind()),
                help: Some("put it in square brackets".to_owned()),
                remedy: None,
            });
        }
        is_list
    }

    fn unknown_key(&mut self, key: &str, at: &Cursor<'_>, known: &[&str]) {
        self.findings.push(Finding {
            code: Code::UnknownKey,
            severity: Severity::Warning,
            spot: Some(at.spot(Part::Key)),
            value: Some(at.node.shown()),
            message: format!("unknown key `{key}` is ignored"),
            help: if self.findings.len() < MANY { meant(key, known) } else { None },
            remedy: None,
        });
    }

    fn base(&self, event: &str, name: &str) -> String {
        format!("{}:{}:{event}:{name}", self.context.scope(), self.context.label)
    }

    /// An id that stays the same as long as the file, the event and the name or command do.
    fn made_up(&mut self, draft: &Draft, event: &str) -> String {
        let hex = || ollm_store::digest_bytes(draft.line().as_bytes()).hex().chars().take(8).collect();
        let name = if draft.spec.name.is_empty() { hex() } else { draft.spec.name.clone() };
        let base = self.base(event, &name);
        let asked = self.ids.asked.entry(base.clone()).or_default();
        loop {
            *asked += 1;
            let id = if *asked == 1 { base.clone() } else { format!("{base}#{asked}") };
            if !self.ids.taken.contains_key(&id) {
                return id;
            }
        }
    }
}

/// The finding at a condition that cannot be read.
fn bad_condition(error: &ConditionError, meaning: &str, at: EntryLocation<'_>) -> Finding {
    let cursor = at.entry.get("if").unwrap_or(*at.entry);
    Finding {
        code: Code::InvalidCondition,
        severity: Severity::Error,
        spot: Some(cursor.spot(Part::Inside(error.offset))),
        value: Some(cursor.node.shown()),
        message: format!("{error}; {meaning}"),
        help: None,
        remedy: None,
    }
}

/// The finding at the key that is at fault, wherever its form keeps that key.
fn invalid(error: &Invalid, at: EntryLocation<'_>) -> Finding {
    let field = error.field();
    let action = at.entry.get("action").or_else(|| at.entry.get("then"));
    let when = at.entry.get("when");
    let group = at.group.and_then(|group| group.get(field));
    let key = if field == "event" { "eventType" } else { field };
    let own = at.entry.entries().find(|(written, _)| canonical(written) == key);
    let deep = action.as_ref().and_then(|action| action.get(field)).or_else(|| match field {
        "action" => action,
        "event" => when.as_ref()?.get("type"),
        "filePatterns" => when.as_ref()?.get("patterns"),
        _ => None,
    });
    let cursor = own.map(|(_, value)| value).or(deep).or(group).unwrap_or(*at.entry);
    not_loaded(error.code(), &cursor, &error.to_string(), None)
}
