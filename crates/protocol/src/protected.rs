//! The table of protected files, agent by agent. `docs/security.md` shows the same table, and a test compares them.

use std::path::{Component, Path, PathBuf};

use crate::dialect::AGENTS;

/// The protected files of an agent. A folder protects everything in it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The agent, or the purpose of the files.
    pub agent: &'static str,
    /// Paths below the home.
    pub home: &'static [&'static str],
    /// Paths below the project, and below the agent's working folder.
    pub project: &'static [&'static str],
    /// The programs that may not change them.
    pub from: From,
    /// How a box protects them.
    pub lock: Lock,
}

/// The programs that may not change a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Neither file tools nor shell commands.
    Everybody,
    /// File tools ask first. A shell command that adds a line is ordinary work.
    FileTools,
}

/// How a box protects a file. The box restrains programs and does not read commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// No program can change it.
    Locked,
    /// Ordinary work must be able to change it, so it is compared afterwards.
    Compared,
}

/// The files that decide which guards run, and those that run later by themselves: ours, each agent's, and others.
pub const PROTECTED: &[Row] = &all();

#[rustfmt::skip]
const OWN: &[Row] = &[
    row("ollm",
        &[".ollm", ".cargo/bin/ollm", ".local/bin/ollm"],
        &[".ollm"]),
    row("agent, cli-agent",
        &[".config/agent/settings.json", ".config/agent/settings.local.json", ".config/cli-agent/settings.json"],
        &[".config/agent/settings.json", ".config/agent/settings.local.json", ".config/cli-agent/settings.json"]),
];

#[rustfmt::skip]
const OTHERS: &[Row] = &[
    row("aider",
        &[".aider.conf.yml"],
        &[".aider.conf.yml"]),
    row("Amazon Q",
        &[".aws/amazonq/mcp.json", ".aws/amazonq/cli-agents"],
        &[".amazonq/mcp.json", ".amazonq/cli-agents"]),
    row("Amp",
        &[".config/amp/settings.json"],
        &[".amp/settings.json"]),
    row("Antigravity",
        &[".gemini/antigravity/mcp_config.json"],
        &[]),
    row("Augment",
        &[".augment/settings.json"],
        &[".augment/settings.json"]),
    row("Continue",
        &[".continue/config.yaml", ".continue/config.json", ".continue/mcpServers"],
        &[".continue/mcpServers"]),
    row("Crush",
        &[".config/crush/crush.json"],
        &["crush.json", ".crush.json"]),
    row("Junie",
        &[".junie/mcp"],
        &[".junie/mcp"]),
    row("Pi",
        &[".pi/agent/settings.json", ".pi/agent/extensions"],
        &[".pi/settings.json", ".pi/extensions"]),
    row("Roo Code",
        &[],
        &[".roo/mcp.json"]),
    row("Trae",
        &[],
        &[".trae/mcp.json"]),
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
        &[".bashrc", ".bashrc.d", ".bash_completion", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
          ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh", ".config/zsh", ".kshrc",
          ".mkshrc", ".shrc", ".yashrc", ".yash_profile", ".config/yash", ".cshrc", ".tcshrc", ".login", ".logout",
          ".config/fish/config.fish", ".config/fish/conf.d", ".config/fish/functions",
          ".local/share/fish/vendor_conf.d", ".config/nushell/config.nu", ".config/nushell/env.nu",
          ".config/nushell/login.nu", ".config/nushell/autoload", ".local/share/nushell/vendor/autoload",
          ".elvish/rc.elv", ".config/elvish/rc.elv", ".xonshrc", ".config/xonsh/rc.xsh", ".config/xonsh/rc.d",
          ".config/powershell/profile.ps1", ".config/powershell/Microsoft.PowerShell_profile.ps1", ".cargo/env",
          ".config/direnv/direnvrc", ".config/direnv/direnv.toml", ".local/share/direnv/allow",
          ".local/state/mise/trusted-configs", ".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc",
          ".config/autostart", ".config/environment.d", ".config/systemd/user", ".local/share/systemd/user",
          ".ssh/authorized_keys", ".ssh/rc", ".ssh/config", ".ssh/environment", ".ssh/id_rsa", ".ssh/id_ecdsa",
          ".ssh/id_ed25519", ".ssh/id_ecdsa_sk", ".ssh/id_ed25519_sk", ".gitconfig", ".config/git/config"],
        &[]) },
];

#[expect(clippy::indexing_slicing, reason = "it is evaluated when the program is compiled")]
const fn all() -> [Row; OWN.len() + AGENTS.len() + OTHERS.len()] {
    let mut rows = [OWN[0]; _];
    let mut at = 0;
    while at < rows.len() {
        rows[at] = if at < OWN.len() {
            OWN[at]
        } else if at < OWN.len() + AGENTS.len() {
            AGENTS[at - OWN.len()].protected
        } else {
            OTHERS[at - OWN.len() - AGENTS.len()]
        };
        at += 1;
    }
    rows
}

/// A row of files that neither file tools nor shell commands may change.
pub(crate) const fn row(agent: &'static str, home: &'static [&'static str], project: &'static [&'static str]) -> Row {
    Row { agent, home, project, from: From::Everybody, lock: Lock::Locked }
}

/// A protected path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The file or folder; it need not exist.
    pub path: PathBuf,
    /// Which programs may not change it.
    pub from: From,
    /// How a box protects it.
    pub lock: Lock,
}

/// The paths of the table for these folders.
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

/// The paths of the table that decide what `git` runs in the repository of a folder.
pub fn of_repository(folder: &Path) -> impl Iterator<Item = Protected> {
    in_repository(folder.join(".git"))
}

/// The paths of the table in a repository, whatever its name.
fn in_repository(repository: PathBuf) -> impl Iterator<Item = Protected> {
    let rows = PROTECTED.iter().flat_map(|row| row.project.iter().map(move |name| (row, name)));
    let rows = rows.filter_map(|(row, name)| Some((row, name.strip_prefix(".git/")?)));
    rows.map(move |(row, name)| Protected { path: repository.join(name), from: row.from, lock: row.lock })
}

/// The folders of the repositories that variables name in place of those that `git` would find.
pub fn named_repositories(variable: &dyn Fn(&str) -> Option<String>, here: &Path) -> Vec<PathBuf> {
    let names = ["GIT_DIR", "GIT_COMMON_DIR"].into_iter().filter_map(variable);
    names.filter(|name| !name.is_empty()).map(|name| tidy(&here.join(name))).collect()
}

/// The protected paths that variables of `git` name; relative ones are meant from here on.
pub fn named_for_git(variable: &dyn Fn(&str) -> Option<String>, here: &Path) -> Vec<Protected> {
    let files = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable);
    let files = files.filter(|name| !name.is_empty()).map(|name| tidy(&here.join(name)));
    // `/dev/null` is a usual value: no settings.
    let files = files.filter(|path| !path.starts_with("/dev"));
    let files = files.map(|path| Protected { path, from: From::FileTools, lock: Lock::Locked });
    named_repositories(variable, here).into_iter().flat_map(in_repository).chain(files).collect()
}

/// The path without `.` and `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}

/// The files that zsh reads in the folder of `ZDOTDIR`.
const ZSH: [&str; 5] = [".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"];

/// The protected paths in folders that variables give instead of those in the home.
pub fn moved(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Protected> {
    let agents = AGENTS.iter().filter_map(|agent| Some((agent.home.variable?, agent.home.user.split_once('/')?.0)));
    let named = |(name, below): (&str, &'static str)| {
        let folder = variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute())?;
        Some((folder, below))
    };
    let folders: Vec<(PathBuf, &str)> = agents.chain([("XDG_CONFIG_HOME", ".config")]).filter_map(named).collect();
    let mut paths = Vec::new();
    for row in PROTECTED {
        let mut add = |path| paths.push(Protected { path, from: row.from, lock: row.lock });
        for name in row.home {
            for (folder, below) in &folders {
                let inside = name.strip_prefix(below).and_then(|rest| rest.strip_prefix('/'));
                // The file beside its folder moves into the folder.
                let beside = name.strip_suffix(".json").filter(|name| name == below).map(|_| *name);
                inside.or(beside).into_iter().for_each(|rest| add(folder.join(rest)));
            }
            let zsh = variable("ZDOTDIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
            if let Some(folder) = zsh.filter(|_| ZSH.contains(name)) {
                add(folder.join(name));
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rows: &[&str], file: &str) -> bool {
        // A pattern protects everything in its folder.
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

    #[test]
    fn what_a_variable_of_git_names_is_protected_from_the_folder_on() {
        let named = |name: &'static str, value: &'static str| {
            let variable = move |asked: &str| (asked == name).then(|| value.to_owned());
            let paths = named_for_git(&variable, Path::new("/srv/here")).into_iter();
            paths.map(|one| (one.path.display().to_string(), one.lock)).collect::<Vec<_>>()
        };
        for (value, repository) in [("/srv/x.git", "/srv/x.git"), ("../x/./.git", "/srv/x/.git")] {
            for (name, lock) in [("hooks", Lock::Locked), ("commondir", Lock::Locked), ("config", Lock::Compared)] {
                let wanted = (format!("{repository}/{name}"), lock);
                assert!(named("GIT_DIR", value).contains(&wanted), "{wanted:?}");
            }
        }
        assert_eq!(named("GIT_CONFIG_GLOBAL", "/srv/settings"), [("/srv/settings".to_owned(), Lock::Locked)]);
        assert_eq!((named("GIT_CONFIG_GLOBAL", "/dev/null"), named("GIT_DIR", "")), (vec![], vec![]));
    }

    #[test]
    fn what_a_variable_moves_is_protected_where_it_is() {
        let variable = |name: &str| {
            let folder = match name {
                "CLAUDE_CONFIG_DIR" => "/cc",
                "XDG_CONFIG_HOME" => "/xdg",
                "ZDOTDIR" => "/zsh",
                "CODEX_HOME" => "relative",
                _ => return None,
            };
            Some(folder.to_owned())
        };
        let moved = moved(&variable);
        let has = |path: &str| moved.iter().any(|one| one.path == Path::new(path));
        for path in
            ["/cc/settings.json", "/cc/hooks", "/cc/.claude.json", "/xdg/opencode", "/xdg/git/config", "/zsh/.zshrc"]
        {
            assert!(has(path), "{path}: {moved:#?}");
        }
        assert!(moved.iter().all(|one| one.path.is_absolute()));
    }
}
