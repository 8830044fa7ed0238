//! The normalised definition of a hook: what an approval is bound to.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Action, ActionSpec, Hook, LimitsSpec, Timeout};

impl Hook {
    /// Every field that changes what the hook does, independent of where in its file it stands.
    ///
    /// Left out are `enabled` and `description`, the id and the position, and everything the configuration decides.
    pub fn definition(&self) -> Value {
        let spec = &self.spec;
        let mut definition = json!({
            "name": spec.name,
            "version": spec.version,
            "events": self.events.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
            "matcher": self.matcher.text(),
            "action": action(&self.action, &spec.action),
            "dialect": self.dialect.name(),
            "timeout": spec.timeout.map(|_| self.timeout.value.as_secs_f64()),
            "onFailure": spec.on_failure.map(super::OnFailure::name),
            "priority": spec.priority.name(),
            "parallel": spec.parallel,
            "async": spec.detached,
            "filePatterns": spec.file_patterns,
            "if": spec.condition,
            "rateLimit": {
                "perMinute": spec.rate_limit.per_minute,
                "cooldown": spec.rate_limit.cooldown.as_ref().map(Duration::as_secs_f64),
            },
            "requires": {
                "commands": spec.requires.commands,
                "files": spec.requires.files,
                "services": spec.requires.services,
            },
            "scope": spec.reach.map(super::Reach::name),
            "env": spec.env.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
            "passEnv": spec.pass_env,
            "cwd": spec.cwd.as_deref().map(path),
            "inputs": spec.inputs.iter().map(|input| path(input)).collect::<Vec<_>>(),
            "limits": limits(&spec.limits, self.dialect.defaults().timeout_unit),
            "source": spec.source.name(),
            "extension": spec.extension,
        });
        // Only where it is set: what was approved before there was such a key stays approved.
        if let (true, Some(fields)) = (spec.persistent, definition.as_object_mut()) {
            fields.insert("persistent".to_owned(), true.into());
        }
        if let (Some(why), Some(fields)) = (&self.broken, definition.as_object_mut()) {
            fields.insert("broken".to_owned(), why.as_str().into());
        }
        definition
    }
}

fn action(valid: &Action, declared: &ActionSpec) -> Value {
    match declared {
        ActionSpec::Command { command, args, script } => {
            json!({"command": command, "args": args, "script": script.as_deref().map(path)})
        }
        ActionSpec::Shell { script } => json!({"shell": script}),
        ActionSpec::AskAgent { prompt } => json!({"askAgent": prompt}),
        ActionSpec::RunCommand { line, .. } => {
            let script = if let Action::RunCommand { script, .. } = valid { script.as_deref().map(path) } else { None };
            json!({"runCommand": line, "script": script})
        }
        ActionSpec::Http { url, headers } => json!({"http": url, "headers": headers}),
        ActionSpec::Mcp { server, tool, args } => json!({"mcp": server, "tool": tool, "args": args}),
        ActionSpec::Builtin(_) => json!("builtin"),
    }
}

/// A path as text, or as bytes where it is no text: two different paths never look the same.
fn path(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_encoded_bytes().into(), Value::from)
}

fn limits(limits: &LimitsSpec, unit: Duration) -> Value {
    let time = limits.time.map(|time| match time {
        Timeout::Bare(number) => number * unit.as_secs_f64(),
        Timeout::Exact(duration) => duration.as_secs_f64(),
    });
    let fields = [
        ("time", time.map(Value::from)),
        ("cpu", limits.cpu.as_ref().map(Duration::as_secs_f64).map(Value::from)),
        ("memory", limits.memory.map(Value::from)),
        ("processes", limits.processes.map(Value::from)),
        ("files", limits.files.map(Value::from)),
        ("fileSize", limits.file_size.map(Value::from)),
        ("output", limits.output.map(Value::from)),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(set.collect::<Map<_, _>>())
}
