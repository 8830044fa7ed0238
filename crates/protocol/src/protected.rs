//! The one table of what is protected, agent by agent. `docs/security.md` shows the same table, and a test compares them.

use std::path::{Path, PathBuf};

/// Whose files, and which: a folder stands for all that is in it.
#[derive(Debug)]
pub struct Row {
    /// The agent, or what the files are for.
    pub agent: &'static str,
    /// Below the home.
    pub home: &'static [&'static str],
    /// Below the project, and below the folder where the agent works.
    pub project: &'static [&'static str],
    /// Who may not change them.
    pub from: From,
    /// How a box keeps them.
    pub lock: Lock,
}

/// Who may not change a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Neither file tools nor shell commands.
    Everybody,
    /// File tools ask first; a shell command that adds a line is everyday work.
    FileTools,
}

/// How a box keeps a file, which holds programs back and reads no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No program can change it.
    Locked,
    /// Ordinary work has to change it; it is looked at afterwards.
    Compared,
}

/// What decides which guards run, and what runs by itself later.
#[rustfmt::skip]
pub const PROTECTED: &[Row] = &[
    row("ollm",
        &[".ollm", ".cargo/bin/ollm", ".local/bin/ollm"],
        &[".ollm"]),
    row("agent, cli-agent",
        &[".config/agent/settings.json", ".config/agent/settings.local.json", ".config/cli-agent/settings.json"],
        &[".config/agent/settings.json", ".config/agent/settings.local.json", ".config/cli-agent/settings.json"]),
    row("Claude Code",
        &[".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/plugins", ".claude.json"],
        &[".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/plugins", ".mcp.json"]),
    row("Codex",
        &[".codex/hooks.json", ".codex/hooks", ".codex/config.toml"],
        &[".codex/hooks.json", ".codex/hooks", ".codex/config.toml"]),
    row("Gemini CLI",
        &[".gemini/settings.json", ".gemini/trustedFolders.json", ".gemini/trusted_hooks.json", ".gemini/hooks", ".gemini/extensions"],
        &[".gemini/settings.json", ".gemini/hooks", ".gemini/extensions"]),
    row("Qwen Code",
        &[".qwen/settings.json", ".qwen/trustedFolders.json", ".qwen/hooks", ".qwen/extensions"],
        &[".qwen/settings.json", ".qwen/hooks", ".qwen/extensions"]),
    row("Cursor",
        &[".cursor/hooks.json", ".cursor/hooks", ".cursor/mcp.json", ".cursor/cli-config.json"],
        &[".cursor/hooks.json", ".cursor/hooks", ".cursor/mcp.json", ".cursor/cli.json"]),
    row("Copilot, VS Code",
        &[".copilot/hooks", ".copilot/settings.json", ".copilot/config.json", ".copilot/mcp-config.json"],
        &[".github/hooks", ".github/copilot/settings.json", ".github/copilot/settings.local.json", ".vscode/mcp.json"]),
    row("Kiro",
        &[".kiro/hooks", ".kiro/settings", ".kiro/agents"],
        &[".kiro/hooks", ".kiro/settings", ".kiro/agents"]),
    row("Windsurf",
        &[".codeium/windsurf/hooks.json", ".codeium/windsurf/mcp_config.json"],
        &[".windsurf/hooks.json", ".windsurf/hooks"]),
    row("goose",
        &[".config/goose", ".agents/plugins"],
        &[".agents/plugins"]),
    row("Droid",
        &[".factory/hooks.json", ".factory/hooks", ".factory/settings.json", ".factory/mcp.json"],
        &[".factory/hooks.json", ".factory/hooks", ".factory/settings.json", ".factory/mcp.json"]),
    row("Cline",
        &["Documents/Cline/Hooks", ".cline"],
        &[".clinerules/hooks"]),
    row("opencode",
        &[".config/opencode"],
        &[".opencode", "opencode.json", "opencode.jsonc"]),
    row("git",
        &[],
        &[".git/hooks", ".git/commondir"]),
    Row { lock: Lock::Compared, ..row("git, its settings",
        &[],
        &[".git/config", ".git/config.worktree"]) },
    Row { from: From::FileTools, lock: Lock::Compared, ..row("ssh, the hosts it knows",
        &[".ssh/known_hosts"],
        &[]) },
    Row { from: From::FileTools, ..row("what a login runs",
        &[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
          ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".config/fish/config.fish", ".config/fish/conf.d", ".xprofile",
          ".xinitrc", ".config/autostart", ".config/systemd/user", ".ssh/authorized_keys", ".ssh/rc", ".ssh/config",
          ".ssh/environment", ".ssh/id_rsa", ".ssh/id_ecdsa", ".ssh/id_ed25519", ".ssh/id_ecdsa_sk", ".ssh/id_ed25519_sk",
          ".gitconfig", ".config/git/config"],
        &[]) },
];

const fn row(agent: &'static str, home: &'static [&'static str], project: &'static [&'static str]) -> Row {
    Row { agent, home, project, from: From::Everybody, lock: Lock::Locked }
}

/// A protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The file or folder; it need not exist.
    pub path: PathBuf,
    /// Who may not change it.
    pub from: From,
    /// How a box keeps it.
    pub lock: Lock,
}

/// The table, written out for these folders.
pub fn protected(home: Option<&Path>, projects: &[PathBuf]) -> Vec<Protected> {
    let mut paths = Vec::new();
    for row in PROTECTED {
        let mut add = |root: &Path, names: &[&str]| {
            for name in names {
                let mut path = PathBuf::with_capacity(root.as_os_str().len() + 1 + name.len());
                path.push(root);
                path.push(name);
                paths.push(Protected { path, from: row.from, lock: row.lock });
            }
        };
        if let Some(home) = home {
            add(home, row.home);
        }
        for project in projects {
            add(project, row.project);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use crate::dialect::AGENTS;

    use super::*;

    fn covers(rows: &[&str], file: &str) -> bool {
        // A pattern stands for all that is in its folder.
        let place = file.split('*').next().unwrap_or_default().trim_end_matches('/');
        rows.iter().any(|row| Path::new(place).starts_with(row))
    }

    #[test]
    fn every_file_in_which_an_agent_has_hooks_is_in_the_table() {
        let home: Vec<&str> = PROTECTED.iter().flat_map(|row| row.home).copied().collect();
        let project: Vec<&str> = PROTECTED.iter().flat_map(|row| row.project).copied().collect();
        for agent in AGENTS {
            let (own, written) = (&agent.home, &agent.home.written);
            for file in written.user.iter().copied().chain([own.user]) {
                assert!(covers(&home, file), "{}: ~/{file}", agent.name);
            }
            for file in written.project.iter().copied().chain(own.project) {
                assert!(covers(&project, file), "{}: {file}", agent.name);
            }
        }
    }
}
