//! Signs that an agent, not a person, started us: an agent may not approve hooks for itself.

use std::path::Path;

use crate::error::{AppError, ErrorKind};
use crate::world::World;

/// Variables that agents set on the commands they run; ours is set on every process we start.
const SIGNS: &[&str] = &[
    "OLLM_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "GEMINI_CLI",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "QWEN_CODE",
    "OPENCODE",
    "GOOSE_TERMINAL",
    "AIDER",
];

/// A chain of parents longer than this has been made to be long.
const MOST_ANCESTORS: usize = 64;

/// Refuses when an agent started us.
pub fn refuse_agents(world: &World, what: &str) -> Result<(), AppError> {
    let variable = SIGNS.iter().find(|name| world.variable(name).is_some_and(|value| !value.is_empty()));
    let sign = variable.map(|name| format!("{name} is set")).or_else(|| ancestor(Path::new("/proc")));
    sign.map_or(Ok(()), |sign| {
        Err(AppError::new(ErrorKind::Untrusted, format!("an agent may not {what}: {sign}"))
            .hint("run this command yourself, in a terminal that no agent controls"))
    })
}

/// Whether an agent started another process; one that cannot be looked at might have been.
pub fn agent_above(process: u32) -> Option<String> {
    let processes = Path::new("/proc");
    match parent(&processes.join(process.to_string())) {
        Some(parent) => climb(processes, parent),
        None => Some(format!("process {process} is gone")),
    }
}

/// An ancestor of ours that runs hooks, servers or an agent, as far as the system lets us look.
fn ancestor(processes: &Path) -> Option<String> {
    climb(processes, parent(&processes.join("self"))?)
}

fn climb(processes: &Path, mut process: u32) -> Option<String> {
    for _ in 0..MOST_ANCESTORS {
        let folder = processes.join(process.to_string());
        let line = std::fs::read(folder.join("cmdline")).ok()?;
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        if is_agent(&words) {
            return Some(format!("process {process} (`{}`) started us", words.join(" ").trim()));
        }
        process = parent(&folder).filter(|parent| *parent > 1)?;
    }
    Some("we have more ancestors than we can look at".to_owned())
}

fn is_agent(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    let program = words.next().unwrap_or_default();
    let ours = program.rsplit('/').next() == Some("ollm");
    ours && match command(&mut words) {
        // Nothing at all is a chat, too.
        None | Some("run" | "chat" | "emit") => true,
        Some("session") => words.next() == Some("resume"),
        Some("skill") => words.next() == Some("run"),
        Some("ext") => words.next() == Some("test"),
        Some("hook") => matches!(words.next(), Some("run" | "background" | "test" | "trigger")),
        // These start servers, which are other people's programs as well.
        Some("mcp") => {
            matches!(words.next(), Some("start" | "restart" | "tools" | "call" | "resources" | "prompts" | "review"))
        }
        _ => false,
    }
}

/// The first word that is neither an option in front of the command nor the value of one.
fn command<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    loop {
        match words.next()? {
            "--set" => drop(words.next()),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
}

/// The fourth field of `stat`; the second is the name, in brackets, and may hold anything.
fn parent(folder: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_hooks_or_an_agent_is_an_agent() {
        for (line, agent) in [
            ("/usr/bin/ollm hook run", true),
            ("ollm run fix it", true),
            ("ollm chat", true),
            ("ollm", true),
            ("ollm --set hooks.timeout=5s", true),
            ("ollm hook background", true),
            ("ollm hook test guard", true),
            ("ollm hook trigger lint", true),
            ("ollm emit deployed", true),
            ("ollm --verbose emit deployed", true),
            ("ollm --set hooks.timeout=5s --set=log.level=off hook run", true),
            ("ollm --set run hook list", false),
            ("ollm hook list", false),
            ("ollm mcp call s t", true),
            ("ollm mcp tools", true),
            ("ollm mcp list", false),
            ("ollm skill run review --agent", true),
            ("ollm skill list", false),
            ("ollm ext test guard", true),
            ("ollm ext list", false),
            ("bash -c ollm hook run", false),
            ("", false),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(is_agent(&words), agent, "{line}");
        }
    }

    #[test]
    fn the_parent_is_read_behind_any_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stat"), "7 (a) b (c)) S 42 7 7").unwrap();
        assert_eq!(parent(folder.path()), Some(42));
    }

    #[test]
    fn an_ancestor_that_runs_hooks_is_found() {
        let processes = tempfile::tempdir().unwrap();
        let write = |process: &str, parent: u32, line: &str| {
            let folder = processes.path().join(process);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("stat"), format!("1 (x) S {parent} 1 1")).unwrap();
            std::fs::write(folder.join("cmdline"), line.replace(' ', "\0")).unwrap();
        };
        write("self", 30, "ollm hook trust x");
        write("30", 20, "sh");
        write("20", 10, "/opt/ollm hook run");
        assert!(ancestor(processes.path()).unwrap().contains("process 20"));
        std::fs::write(processes.path().join("20/cmdline"), "bash").unwrap();
        assert_eq!(ancestor(processes.path()), None);
    }
}
