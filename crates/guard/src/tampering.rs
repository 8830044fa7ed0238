//! The second guard: writes to the files that decide which guards run.

mod tool;
mod watch;

use std::{
    cell::LazyCell,
    ops::Deref,
    path::{Path, PathBuf},
};

use ollm_protocol::{Event, Verdict};

use crate::{
    call::{self, Script},
    destructive::{Finding, strongest},
    field::{Field, Place},
    text,
    walk::{Deed, Run},
    writes::{Touch, touches},
};
use watch::{Hit, Reach, Watch};

/// What is to be protected, and where relative paths begin.
///
/// ```
/// use ollm_guard::{Shelter, tampering, usual};
/// use ollm_protocol::{Event, EventKind, Flow};
/// use serde_json::json;
/// use std::path::Path;
///
/// let home = Path::new("/home/ada");
/// let shelter = Shelter {
///     protected: usual(Some(home), &home.join(".ollm"), Some(&home.join("project"))),
///     cwd: home.join("project"),
///     home: Some(home.to_owned()),
/// };
/// let data = [("tool_name", json!("write_file")), ("args", json!({ "path": "../.ollm/config.yaml" }))];
/// assert_eq!(tampering(&Event::new(EventKind::BeforeTool, data), &shelter).flow, Flow::Block);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shelter {
    /// Files and folders nobody may change through a tool, whether they exist or not.
    pub protected: Vec<PathBuf>,
    /// The folder that counts where an event names none.
    pub cwd: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
}

/// The files that usually need protection: our own, and the hook files of other agents, at home and in the project.
pub fn usual(home: Option<&Path>, ollm_home: &Path, project: Option<&Path>) -> Vec<PathBuf> {
    const OWN: &[&str] =
        &["config.yaml", "config.yml", "trusted-hooks.json", "hooks", "extensions", "settings", "state", "store"];
    const OTHERS: &[&str] = &[
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".gemini/settings.json",
        ".codex/hooks.json",
        ".codex/config.toml",
        ".cursor/hooks.json",
        ".config/agent/settings.json",
        ".config/agent/settings.local.json",
        ".config/cli-agent/settings.json",
    ];
    let mut paths = vec![ollm_home.to_owned()];
    paths.extend(home.map(|home| home.join(".ollm")));
    paths.extend(project.into_iter().flat_map(|project| OWN.iter().map(move |name| project.join(".ollm").join(name))));
    paths.extend(home.into_iter().chain(project).flat_map(|root| OTHERS.iter().map(move |name| root.join(name))));
    paths.dedup();
    paths
}

/// Refuses tool calls that would change a protected file or switch a guard off.
pub fn tampering(event: &Event, shelter: &Shelter) -> Verdict {
    let (here, home) = (call::here(event, &shelter.cwd), shelter.home.as_deref());
    let effects = call::effects(event);
    let scripts = call::scripts(&effects, &here, home);
    let place = Place { folders: vec![here], lost: false, home: shelter.home.clone() };
    // The list of what is protected is only made ready once something is written at all.
    let watch = LazyCell::new(|| Watch::new(&shelter.protected));
    let by_tool = tool::written(&effects, home);
    let by_tool = by_tool.iter().filter_map(|file| found(&watch, &file.field, &place, file.reach));
    let by_shell = scripts.iter().flat_map(|script| {
        let findings = script.deeds.iter().flat_map(|deed| judge(deed, &watch));
        findings.filter_map(|finding| script.weigh(finding)).collect::<Vec<_>>()
    });
    strongest(by_tool.chain(by_shell).chain(unclear(event, &scripts, &watch)))
}

/// A command that cannot be followed and names something of ours.
fn unclear(event: &Event, scripts: &[Script], watch: &impl Deref<Target = Watch>) -> Option<Finding> {
    let reason = scripts.iter().flat_map(|script| &script.deeds).find_map(|deed| match deed {
        Deed::Unclear(reason) => Some(reason),
        _ => None,
    })?;
    let text = event.data.get("args")?.to_string();
    let named = watch.mentioned(&text).is_some() || text.to_lowercase().contains("ollm");
    named.then(|| Finding::ask(format!("the command names what is protected, and {reason}")))
}

fn judge(deed: &Deed, watch: &impl Deref<Target = Watch>) -> Vec<Finding> {
    match deed {
        Deed::Unclear(_) | Deed::Bomb { .. } => Vec::new(),
        Deed::Write { target, place } => found(watch, target, place, Reach::File).into_iter().collect(),
        Deed::Run(run) => {
            let by_file = touches(run).into_iter().filter_map(|touch| by_touch(touch, run, watch));
            by_file.chain(own_command(run)).collect()
        }
    }
}

fn by_touch(touch: Touch, run: &Run, watch: &impl Deref<Target = Watch>) -> Option<Finding> {
    match touch {
        Touch::Content(field) => found(watch, &field, &run.place, Reach::File),
        Touch::Whole(field) => found(watch, &field, &run.place, Reach::Tree),
        Touch::Becomes(field) => found(watch, &field, &run.place, Reach::Replacement),
        Touch::Merge(field) | Touch::Alias(field) => found(watch, &field, &run.place, Reach::Tree).map(softened),
        Touch::Code(code) => watch.mentioned(&code).map(|path| {
            Finding::ask(format!("{} runs code that names the protected {}", text::excerpt(&run.name), shown(&path)))
        }),
    }
}

fn softened(finding: Finding) -> Finding {
    Finding::ask(finding.reason)
}

fn found(watch: &impl Deref<Target = Watch>, field: &Field, place: &Place, reach: Reach) -> Option<Finding> {
    if matches!(field.known(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")) {
        return None;
    }
    let written = text::excerpt(&field.shown());
    match watch.check(field, place, reach)? {
        Hit::Sure(path) => Some(Finding::block(format!("{written} is or holds the protected {}", shown(&path)))),
        Hit::Perhaps(path) => Some(Finding::ask(format!("{written} may be the protected {}", shown(&path)))),
    }
}

fn shown(path: &Path) -> String {
    text::excerpt(&path.to_string_lossy())
}

/// What of our own command line changes which guards run.
const VERBS: &[(&str, &[&str])] = &[
    ("hook", &["trust", "untrust", "enable", "disable", "remove", "add", "edit"]),
    ("ext", &["trust", "enable", "disable", "install", "uninstall", "update", "pin", "set"]),
    ("mcp", &["trust", "untrust", "add", "remove", "review"]),
    ("config", &["set", "unset", "migrate"]),
    ("host", &["install", "uninstall", "import"]),
    ("git-hook", &["install", "uninstall"]),
];

/// An agent that runs our own command line to approve or switch off its guards.
fn own_command(run: &Run) -> Option<Finding> {
    const REASON: &str = "an agent may not approve or switch off its own guards";
    if run.name != "ollm" {
        return None;
    }
    // Options and their values (`--set KEY=VALUE`) may stand before the command, any number of them.
    let is_option = |arg: &&Field| arg.text.starts_with('-') || (arg.text.contains('=') && !arg.open());
    let words: Vec<&Field> = run.args.iter().filter(|arg| !is_option(arg)).take(6).collect();
    let has = |wanted: &str| words.iter().any(|word| word.text.eq_ignore_ascii_case(wanted));
    let forbidden = VERBS.iter().any(|(noun, verbs)| has(noun) && verbs.iter().any(|verb| has(verb)));
    if forbidden {
        return Some(Finding::block(format!("{REASON}: {}", run.shown())));
    }
    words.iter().any(|word| word.open()).then(|| Finding::ask(format!("{REASON}, and this may: {}", run.shown())))
}
