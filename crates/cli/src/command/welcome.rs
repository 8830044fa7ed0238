//! `ollm` without arguments: shows what is set up, and three next steps.

use std::fs::{self, DirEntry};
use std::path::Path;

use ollm_app::AppContext;
use ollm_app::connect::{AgentStatus, agents};
use ollm_protocol::units::counted;

use crate::error::Failure;
use crate::output::Output;

/// Whether nothing is set up yet, and no model is named.
pub(crate) fn is_first(context: &AppContext) -> bool {
    let written = |home: &Path| {
        fs::read_dir(home).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| is_own(&entry))))
    };
    !context.own_home().is_some_and(written) && context.variable("OLLM_MODEL").is_none()
}

/// Whether a person made this entry, and not the program; an empty folder does not count.
fn is_own(entry: &DirEntry) -> bool {
    let is_ours = matches!(entry.file_name().to_str(), Some("state" | "store" | "ollm.log"));
    let is_empty = fs::read_dir(entry.path()).is_ok_and(|mut inside| inside.next().is_none());
    !is_ours && !is_empty
}

pub(crate) fn run(context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let agents = agents(context);
    let connected = agents.iter().filter(|agent| !agent.askers.is_empty()).count();
    let hooks = own_hooks(context);
    let state = match (hooks, connected) {
        (0, 0) => "Nothing is set up yet. Three ways to begin:".to_owned(),
        (hooks, connected) => {
            format!("You have {} and {}. What is next:", counted(hooks, "hook"), counted(connected, "connected agent"))
        }
    };
    output.text(&format!(
        "ollm runs your hooks at every step of an AI agent, and can stop it.\n\n{state}\n\n{}\n\
         `ollm --help` lists all commands, `ollm doctor` looks over what is set up.\n",
        steps(&agents, hooks)
    ))
}

/// Three commands, the most useful ones first.
fn steps(agents: &[AgentStatus], hooks: usize) -> String {
    let installed = agents.iter().find(|agent| agent.program.is_some() && agent.askers.is_empty());
    let connect = match installed {
        Some(found) => (
            format!("ollm connect {}", found.agent.name),
            format!("{} is installed: let it ask your hooks", found.agent.title),
        ),
        None => ("ollm connect".to_owned(), "list the agents that can ask your hooks".to_owned()),
    };
    let write = (
        "ollm hook new no-force --deny-commands 'git push --force*'".to_owned(),
        "write a hook, with its tests".to_owned(),
    );
    let try_all = ("ollm hook test --all".to_owned(), "run the tests of your hooks".to_owned());
    let demo = ("ollm demo".to_owned(), "watch a whole session with hooks; nothing of yours is touched".to_owned());
    let look = ("ollm explain before_tool".to_owned(), "see which hooks run when a tool is called, and why".to_owned());
    let three = if hooks == 0 { [demo, connect, write] } else { [look, connect, try_all] };
    three.map(|(command, about)| format!("  {command}\n      {about}\n")).concat()
}

/// How many hooks there are besides the built-in ones.
fn own_hooks(context: &AppContext) -> usize {
    let variable = |name: &str| context.variable(name);
    let (catalog, _) = ollm_catalog::load(&context.places, &variable, &context.overrides);
    catalog.hooks.len()
}
