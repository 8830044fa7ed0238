//! `ollm demo`: a throwaway home with a few hooks, and events that pass through them.
//!
//! Everything is real: the files are written, loaded, planned, cleared and run as a user's would be.

use std::fs;
use std::path::Path;

use ollm_catalog::Positions;
use ollm_protocol::{Event, EventKind, Source};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{Failure, Kind, OK};
use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN, timeline};
use crate::world::World;

const USER_FILES: &[(&str, &str)] = &[
    ("demo.json", include_str!("demo/hooks.json")),
    ("greet.sh", include_str!("demo/greet.sh")),
    ("no-force-push.sh", include_str!("demo/no-force-push.sh")),
    ("dry-run.sh", include_str!("demo/dry-run.sh")),
    ("keep-out.sh", include_str!("demo/keep-out.sh")),
    ("slow-log.sh", include_str!("demo/slow-log.sh")),
    ("tally.sh", include_str!("demo/tally.sh")),
];
const PROJECT_FILES: &[(&str, &str)] =
    &[("demo.json", include_str!("demo/workspace.json")), ("surprise.sh", "touch surprise\n")];

pub(super) fn run(world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let home = tempfile::tempdir().map_err(|error| unwritable(&error))?;
    let world = furnish(home.path(), world).map_err(|error| unwritable(&error))?;
    // Without it, what double-forks away from a hook is merely not waited for.
    let _ = ollm_process::become_subreaper();
    let app = App::load(&world, Positions::OnDemand)?;
    if !as_json {
        output.text(&format!(
            "{BOLD}{} hooks{PLAIN} in a throwaway home; seven events pass through them.\n",
            app.hooks().iter().filter(|hook| hook.spec.source != Source::Builtin).count()
        ))?;
    }
    let children = app.engine.children();
    children.hold_signals();
    let shown = show(&app, as_json, output);
    children.reap_strays();
    // Whoever asked us to end meanwhile has waited for the hooks, and waits for this.
    drop(home);
    children.release_signals();
    shown?;
    if !as_json {
        output.text(&format!(
            "\n{DIM}Your own hooks go into ~/.ollm/hooks/; `ollm hook list` shows them, and an agent asks them with\n\
             echo '{{\"event\": \"before_tool\", \"data\": {{…}}}}' | ollm hook run{PLAIN}\n"
        ))?;
    }
    Ok(OK)
}

/// Passes the events through the hooks, until somebody asks us to end.
fn show(app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    for (title, event) in events() {
        let outcome = app.engine.dispatch(&event);
        if app.engine.children().interrupted() {
            break;
        }
        if as_json {
            output.json(&super::hook::to_json(&outcome))?;
        } else {
            output.text(&timeline(title, &outcome))?;
        }
    }
    Ok(OK)
}

fn unwritable(error: &std::io::Error) -> Failure {
    Failure::new(Kind::Environment, format!("the demo's throwaway home cannot be written: {error}"))
        .hint("point TMPDIR to a folder with some space")
}

/// A home of its own and a project beside it.
fn furnish(root: &Path, world: &World) -> std::io::Result<World> {
    let home = root.join("home");
    let project = root.join("project");
    write(&home.join(".ollm/hooks"), USER_FILES)?;
    write(&project.join(".ollm/hooks"), PROJECT_FILES)?;
    let mut variables = world.variables.clone();
    variables.retain(|(name, _)| {
        !name.to_str().is_some_and(|name| name == "HOME" || name.contains("HOOKS_") || name.starts_with("OLLM_"))
    });
    variables.push(("HOME".into(), home.clone().into()));
    Ok(World::new(variables, project, Some(home)))
}

fn write(folder: &Path, files: &[(&str, &str)]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))
}

fn events() -> Vec<(&'static str, Event)> {
    let tool = |kind, name: &str, args: Value| {
        Event::new(kind, [("session_id", "demo".into()), ("tool_name", name.into()), ("args", args)])
    };
    let before = EventKind::BeforeTool;
    vec![
        ("a session starts", Event::new(EventKind::SessionStart, [("session_id", "demo".into())])),
        ("shell: ls", tool(before, "shell", json!({"command": "ls"}))),
        ("shell: git push", tool(before, "shell", json!({"command": "git push"}))),
        ("shell: git push --force", tool(before, "shell", json!({"command": "git push --force"}))),
        ("read_file: README.md", tool(before, "read_file", json!({"path": "README.md"}))),
        ("read_file: secrets/key", tool(before, "read_file", json!({"path": "secrets/key"}))),
        ("shell is done", tool(EventKind::AfterTool, "shell", json!({"command": "ls"}))),
    ]
}
