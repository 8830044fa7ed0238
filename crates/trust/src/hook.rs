//! Makes hooks approvable.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_protocol::dialect::agent_named;
use ollm_protocol::hook::action::ActionText;
use ollm_protocol::hook::key::{HOOK_KEYS, KeyKind};
use ollm_protocol::units::bytes;
use ollm_protocol::{Basis, Hook, HookSpec, Layer, Needs, Origin, Reach, Remedy, Requires, Source, dialect};
use ollm_shell::shell_word;
use ollm_store::looks_secret;
use serde_json::Value;

use crate::approvable::{Approvable, Definition, Row};
use crate::context::TrustContext;
use crate::coverage::{COPY_FOLDER, CommandLine};
use crate::identity::{StartRefusal, existing, on_path};

impl Approvable for Hook {
    fn source(&self) -> String {
        match self.script() {
            Some(path) => path.display().to_string(),
            None => format!("{}#{}", self.spec.origin.file.display(), self.spec.own_id()),
        }
    }

    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.spec.own_id())
    }

    fn origin(&self) -> Source {
        self.spec.source
    }

    fn layer(&self) -> Layer {
        self.spec.layer
    }

    fn project<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path> {
        self.spec.project.as_deref().or(context.project)
    }

    fn declared_in(&self) -> Option<&Path> {
        Some(&self.spec.origin.file)
    }

    fn definition(&self) -> Option<Definition> {
        Some(Definition::of_text(&Hook::definition(self).to_string()))
    }

    fn program(&self, context: &TrustContext<'_>) -> Result<PathBuf, StartRefusal> {
        match self.spec.action.needs() {
            Needs::Nothing | Needs::Address(_) | Needs::Tool { .. } => Ok(PathBuf::new()),
            Needs::Shell(_) => Ok(PathBuf::from("/bin/sh")),
            Needs::Program { program, .. } if Path::new(program).is_absolute() => {
                existing(self.own_file(program).unwrap_or(Path::new(program)))
            }
            Needs::Program { program, .. } => on_path(program, context),
        }
    }

    fn command_line(&self, context: &TrustContext<'_>) -> Option<CommandLine> {
        let spec = &self.spec;
        let line = match spec.action.needs() {
            Needs::Program { program, args } => {
                CommandLine { program: program.to_owned(), args: args.to_vec(), ..CommandLine::default() }
            }
            Needs::Shell(line) => CommandLine { shell: Some(line.to_owned()), ..CommandLine::default() },
            Needs::Nothing | Needs::Address(_) | Needs::Tool { .. } => return None,
        };
        let own = spec.origin.file.parent().map(Path::to_owned);
        let project = self.project(context).map(Path::to_owned);
        let home = context.home.map(Path::to_owned);
        let others =
            agent_named(self.dialect.name()).map_or(&["CLAUDE_PROJECT_DIR"][..], |agent| agent.home.project_variables);
        let others = others.iter().map(|name| (*name, project.clone()));
        // An extension is copied as a whole, so a place in its folder is the same place in the copy.
        let copied = (COPY_FOLDER, spec.tree.clone());
        let folders = [("OLLM_HOOK_DIR", own), copied, ("OLLM_PROJECT_DIR", project.clone()), ("HOME", home)];
        let folders = folders.into_iter().chain(others).filter_map(|(name, folder)| Some((name, folder?))).collect();
        Some(CommandLine { env: spec.env.clone(), cwd: spec.cwd.clone(), folders, ..line })
    }

    fn folder<'a>(&'a self, context: &TrustContext<'a>) -> Option<&'a Path> {
        let own = || self.script().map_or(&self.spec.origin.file, |script| script).parent();
        self.spec.tree.as_deref().or(self.project(context)).or_else(own)
    }

    fn script(&self) -> Option<&Path> {
        Hook::script(self).map(PathBuf::as_path)
    }

    fn inputs(&self) -> &[PathBuf] {
        &self.spec.inputs
    }

    fn tree(&self) -> Option<&Path> {
        self.spec.tree.as_deref()
    }

    fn trusts_with_workspace(&self) -> bool {
        true
    }

    fn rows(&self) -> Vec<Row> {
        let spec = &self.spec;
        let events: Vec<&str> = self.events.iter().map(|kind| kind.name()).collect();
        let mut rows = vec![
            ("hook", self.spec.id.clone()),
            ("name", spec.name.clone()),
            ("declared", format!("{} ({})", place(&spec.origin), spec.source.name())),
            ("events", format!("{}, matcher {}", events.join(", "), self.matcher.text())),
            ("runs", command_text(self)),
            ("dialect", self.dialect.name().to_owned()),
            ("timeout", format!("{:?} (from the {})", self.timeout.value, self.timeout.basis.name())),
            ("on failure", format!("{} (from the {})", self.on_failure.value.name(), self.on_failure.basis.name())),
            ("enabled", self.off.clone().unwrap_or_else(|| spec.enabled.to_string())),
        ];
        rows.extend(surroundings(self));
        rows.extend(spec.description.clone().map(|description| ("description", description)));
        rows
    }

    fn title(&self) -> String {
        format!("{} hook `{}`", self.spec.source.name(), self.spec.id)
    }

    fn remedy(&self) -> Remedy {
        match &self.spec.extension {
            Some(extension) => Remedy::ApproveExtension(extension.clone()),
            None => Remedy::ApproveHook(self.spec.id.clone()),
        }
    }
}

/// The command line a person should see before approving it.
pub fn command_text(hook: &Hook) -> String {
    match hook.spec.action.descriptor().shown() {
        _ if hook.broken.is_some() => "nothing".to_owned(),
        ActionText::Words(words) => words.into_iter().map(shell_word).collect::<Vec<_>>().join(" "),
        ActionText::Text(text) => text,
    }
}

/// The hook's unusual settings, other than its command, events and matcher: for a list of many hooks.
pub fn unusual_rows(hook: &Hook) -> Vec<Row> {
    let mut rows = Vec::new();
    // The dialect decides the defaults, such as the meaning of a failure.
    if hook.dialect.name() != dialect::OLLM.name() {
        rows.push(("dialect", hook.dialect.name().to_owned()));
    }
    if hook.timeout.basis == Basis::Hook {
        rows.push(("timeout", format!("{:?}", hook.timeout.value)));
    }
    if hook.on_failure.basis == Basis::Hook {
        rows.push(("on failure", hook.on_failure.value.name().to_owned()));
    }
    rows.extend((!hook.spec.enabled).then(|| ("enabled", "false".to_owned())));
    rows.extend(surroundings(hook));
    rows
}

/// The rules for when a hook runs, and its surroundings, as far as they are unusual.
fn surroundings(hook: &Hook) -> Vec<Row> {
    let (spec, mut rows) = (&hook.spec, rules(hook));
    rows.extend(spec.cwd.as_ref().map(|cwd| ("folder", cwd.display().to_string())));
    let variables = spec.env.iter();
    rows.extend(variables.map(|(name, value)| ("variable", format!("{name}={}", shown_value(hook, name, value)))));
    rows.extend(spec.pass_env.iter().map(|name| ("variable", format!("{name}, passed on"))));
    rows.extend(spec.inputs.iter().map(|input| ("input", input.display().to_string())));
    rows.extend(others(hook));
    rows
}

/// The keys that have a text of their own here.
const WORDED: &[&str] = &[
    "name",
    "events",
    "matcher",
    "action",
    "dialect",
    "timeout",
    "onFailure",
    "async",
    "filePatterns",
    "if",
    "rateLimit",
    "requires",
    "scope",
    "env",
    "passEnv",
    "cwd",
    "inputs",
    "permissions",
    "source",
    "extension",
];

/// All other keys that an approval is bound to, if they are unusual. They appear by name, so that none is approved
/// unseen.
fn others(hook: &Hook) -> Vec<Row> {
    let spec = HookSpec::new("", "", hook.spec.action.clone());
    let plain = Hook { spec, ..hook.clone() };
    let keys = HOOK_KEYS.iter().filter(|key| !WORDED.contains(&key.name));
    let unusual =
        keys.filter_map(|key| Some((key, key.part(hook).filter(|part| Some(part) != key.part(&plain).as_ref())?)));
    unusual.map(|(key, part)| (key.name, words(&key.kind, &part))).collect()
}

/// The part of a key in words, with the unit that its kind has in the definition.
fn words(kind: &KeyKind, value: &Value) -> String {
    match (kind, value) {
        (_, Value::String(text)) => text.clone(),
        (KeyKind::Section(keys), Value::Object(map)) => {
            let parts = keys.iter().filter_map(|key| Some((key, map.get(key.name)?)));
            parts.map(|(key, part)| format!("{} {}", key.name, words(&key.kind, part))).collect::<Vec<_>>().join(", ")
        }
        (KeyKind::Time(_) | KeyKind::Span(_), seconds) => {
            let time = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            time.map_or_else(|| seconds.to_string(), |time| format!("{time:?}"))
        }
        (KeyKind::Size(_), size) => size.as_u64().map_or_else(|| size.to_string(), bytes),
        (_, other) => other.to_string(),
    }
}

/// When the hook runs, as far as that is unusual.
fn rules(hook: &Hook) -> Vec<Row> {
    let spec = &hook.spec;
    let mut rows = Vec::new();
    if (hook.reach.value, hook.reach.basis) != (Reach::All, Basis::Dialect) {
        rows.push(("scope", format!("{} (from the {})", hook.reach.value.name(), hook.reach.basis.name())));
    }
    rows.extend((!spec.file_patterns.is_empty()).then(|| ("files", spec.file_patterns.join(", "))));
    rows.extend(spec.condition.clone().map(|condition| ("if", condition)));
    rows.extend(spec.rate_limit.describe().map(|limit| ("at most", limit)));
    let Requires { commands, files, services } = &spec.requires;
    rows.extend(commands.iter().chain(files).chain(services).map(|thing| ("requires", thing.clone())));
    let detached = hook.events.iter().any(|kind| hook.detached(*kind));
    rows.extend(detached.then(|| ("async", "runs in the background and decides nothing".to_owned())));
    rows.extend(hook.permissions.as_ref().map(|allowed| ("box", allowed.describe_as(spec.permissions.is_some()))));
    let headers = spec.action.descriptor().headers().iter();
    rows.extend(headers.map(|(name, value)| ("header", format!("{name}: {}", header(hook, name, value)))));
    rows
}

/// Hides the user's own secrets. Values from elsewhere must be visible.
fn header(hook: &Hook, name: &str, value: &str) -> String {
    let secret = is_own(hook) && (looks_secret(name) || name.eq_ignore_ascii_case("authorization"));
    if secret && !value.contains("${") { "(hidden)".to_owned() } else { value.to_owned() }
}

fn shown_value(hook: &Hook, name: &str, value: &str) -> String {
    let secret = is_own(hook) && looks_secret(name);
    if secret { "(hidden)".to_owned() } else { shell_word(value).into_owned() }
}

fn is_own(hook: &Hook) -> bool {
    matches!(hook.spec.source, Source::Policy | Source::User)
}

/// Where a hook is declared, as far as that is known.
fn place(origin: &Origin) -> String {
    let file = origin.file.display();
    if origin.line == 0 { file.to_string() } else { format!("{file}:{}:{}", origin.line, origin.column) }
}
