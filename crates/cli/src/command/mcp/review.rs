//! What a person sees of a server before approving it: all that the approval is bound to.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use ollm_catalog::{Address, Oauth, ServerSpec, server_files};
use ollm_protocol::{LimitsSpec, shell_word};
use ollm_store::{looks_secret, read_bounded};
use ollm_trust::Standing;

use crate::servers::{Known, Servers, came_with, variable};

/// More of a file is not shown.
const LARGEST_SHOWN: u64 = 256 << 10;

type Rows = Vec<(&'static str, String)>;

/// What would be started, whole: it came from elsewhere and must be seen.
pub(super) fn review(known: &Known, servers: &Servers<'_>) -> String {
    let spec = &known.spec;
    let files = files(known, servers);
    let mut rows = origin(spec);
    rows.extend(address(known));
    rows.extend(spec.oauth.as_ref().map(login).unwrap_or_default());
    rows.extend(terms(spec));
    rows.push(("covers", covered(&files, servers)));
    rows.extend(before(known, servers).map(|text| ("changed", text)));
    rows.extend(known.digest.as_ref().map(|digest| ("digest", digest.to_string())));
    let mut text = String::new();
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<13}{}", value.replace('\n', "\n             "));
    }
    for file in files {
        let _ = write!(text, "\n--- {}\n{}\n---\n", file.display(), content(&file));
    }
    text
}

fn origin(spec: &ServerSpec) -> Rows {
    let origin = &spec.origin;
    vec![
        ("server", spec.name.clone()),
        ("declared", format!("{}:{}:{} ({})", origin.file.display(), origin.line, origin.column, spec.source.name())),
    ]
}

fn address(known: &Known) -> Rows {
    let mut rows = Rows::new();
    match &known.spec.address {
        Address::Command { command, args, env, cwd, limits } => {
            let words = std::iter::once(command).chain(args).map(|word| shell_word(word)).collect::<Vec<_>>();
            rows.push(("runs", words.join(" ")));
            let program = known.program.as_ref().ok().into_iter().flatten();
            rows.extend(program.map(|path| ("program", path.display().to_string())));
            rows.extend(cwd.as_ref().map(|cwd| ("folder", cwd.display().to_string())));
            let variable = |(name, value): &(String, String)| format!("{name}={}", shell_word(&shown(name, value)));
            rows.extend(env.0.iter().map(|pair| ("variable", variable(pair))));
            rows.extend(bounds(limits).map(|limits| ("limits", limits)));
        }
        Address::Url { url, headers, .. } => {
            rows.push(("address", url.clone()));
            rows.push(("transport", known.spec.address.transport().to_owned()));
            rows.extend(headers.0.iter().map(|(name, value)| ("header", format!("{name}: {}", shown(name, value)))));
        }
    }
    rows
}

fn bounds(limits: &LimitsSpec) -> Option<String> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let said = [
        ("cpu", limits.cpu.map(|time| format!("{time:?}"))),
        ("memory", number(limits.memory)),
        ("processes", number(limits.processes)),
        ("files", number(limits.files)),
        ("fileSize", number(limits.file_size)),
    ];
    let said: Vec<String> = said.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?))).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn login(oauth: &Oauth) -> Rows {
    let secret = oauth.client_secret.as_deref().map(|secret| shown("clientSecret", secret).into_owned());
    let scopes = (!oauth.scopes.is_empty()).then(|| oauth.scopes.join(" "));
    let rows = [
        ("logs in as", oauth.client_id.clone()),
        ("proved by", secret),
        ("described at", oauth.metadata_url.clone()),
        ("asks for", scopes),
        ("comes back to", oauth.redirect.clone()),
        ("callbackPort", oauth.port.map(|port| port.to_string())),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What else is declared, by the keys it is declared with.
fn terms(spec: &ServerSpec) -> Rows {
    let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
    let list = |names: &[String]| names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ");
    let rows = [
        ("enabled", (!spec.enabled).then(|| "false".to_owned())),
        ("timeout", spec.timeout.map(|time| format!("{time:?}"))),
        ("toolTimeout", spec.tool_timeout.map(|time| format!("{time:?}"))),
        ("idleTimeout", spec.idle_timeout.map(|time| format!("{time:?}"))),
        ("lazy", flag(spec.lazy)),
        ("autoRestart", flag(spec.auto_restart)),
        (
            "allowTools",
            spec.allow.as_deref().map(|names| if names.is_empty() { "none".to_owned() } else { list(names) }),
        ),
        ("denyTools", (!spec.deny.is_empty()).then(|| list(&spec.deny))),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn files(known: &Known, servers: &Servers<'_>) -> Vec<PathBuf> {
    let (spec, world) = (&known.spec, servers.world);
    let program = known.program.as_ref().ok().and_then(|program| program.as_deref());
    server_files(spec, program, came_with(spec, world).as_deref(), &|name| variable(world, name)).unwrap_or_default()
}

/// The files whose content is approved, in the words of somebody who stands in the project.
fn covered(files: &[PathBuf], servers: &Servers<'_>) -> String {
    let project = servers.world.places.project.as_ref().and_then(|project| project.canonicalize().ok());
    let short = |file: &PathBuf| {
        let inside = project.as_ref().and_then(|project| file.strip_prefix(project).ok());
        inside.unwrap_or(file).display().to_string()
    };
    if files.is_empty() {
        return "no file: what it runs may change without being asked about again".to_owned();
    }
    files.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// What is known of the state that was approved before.
fn before(known: &Known, servers: &Servers<'_>) -> Option<String> {
    let approval = (known.trust == Standing::Modified).then(|| servers.approval(&known.spec)).flatten()?;
    Some(format!("since it was approved {} as {}", approval.approved_at, approval.digest))
}

/// A value for review. What sounds secret is only counted, unless it names a variable: who is sent that must be seen.
fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if looks_secret(name) && !value.contains("${") {
        return format!("[hidden, {} characters]", value.chars().count()).into();
    }
    Cow::Borrowed(value)
}

fn content(file: &Path) -> String {
    match read_bounded(file, LARGEST_SHOWN) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => "(it does not exist)".to_owned(),
        Err(error) => format!("(not shown here: {error}; read it before you approve it)"),
    }
}
