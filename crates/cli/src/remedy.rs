//! The commands of this program for each remedy. Libraries know the remedy, but not the command.

use ollm_protocol::{Commands, Remedy};
use ollm_shell::shell_word;

/// The commands of this program.
pub(crate) const COMMANDS: Commands = Commands::new(command);

fn command(remedy: &Remedy) -> Option<String> {
    let named = |command: &str, name: &str| format!("ollm {command} {}", shell_word(name));
    Some(match remedy {
        Remedy::ApproveHook(id) => named("hook trust", id),
        Remedy::ApproveExtension(name) => named("ext trust", name),
        Remedy::ApproveServer(name) => named("mcp trust", name),
        Remedy::SignApprovals => "ollm trust init".to_owned(),
        Remedy::EnableHook(id) => named("hook enable", id),
        Remedy::EnableExtension(name) => named("ext enable", name),
        Remedy::DisableExtension(name) => named("ext disable", name),
        Remedy::ShowExtension(name) => named("ext info", name),
        Remedy::NewExtension => "ollm ext new NAME".to_owned(),
        Remedy::SearchExtensions => "ollm ext search".to_owned(),
        Remedy::InstallVersion { name, version } => format!("{} --to {version}", named("ext update", name)),
        Remedy::UninstallExtension(name) => named("ext uninstall", name),
        Remedy::SetSetting { extension, setting, sensitive } => {
            let value = if *sensitive { "" } else { "=VALUE" };
            format!("{} {}{value}", named("ext set", extension), shell_word(setting))
        }
        Remedy::LogIn(server) | Remedy::AskForRights(server) => named("mcp login", server),
        Remedy::RestartServer(server) => named("mcp restart", server),
        Remedy::ReviewTools(server) => named("mcp review", server),
        Remedy::ConnectAgent(name) => named("connect", name),
        Remedy::ConnectInProject(name) => named("connect --project", name),
        Remedy::DisconnectAgent { name, is_project: false } => named("disconnect", name),
        Remedy::DisconnectAgent { name, is_project: true } => named("disconnect --project", name),
        Remedy::OpenFile { file, line } => {
            let file = shell_word(&file.display().to_string()).into_owned();
            let line = if *line > 0 { format!("+{line} ") } else { String::new() };
            format!("${{EDITOR:-vi}} {line}{file}")
        }
        Remedy::EditHook(id) => named("hook edit", id),
        Remedy::InstallProgram(program) => return installing(program),
        Remedy::InstallGitHook => "ollm git-hook install".to_owned(),
        Remedy::WatchFiles => "ollm watch".to_owned(),
        Remedy::DeclareScript { event, path } => {
            named(&format!("hook add {}", event.unwrap_or("EVENT")), &path.display().to_string())
        }
        Remedy::ShowRuns(id) => named("trace list --hook", id),
        Remedy::ListHooks => "ollm hook list".to_owned(),
        Remedy::FindFaults => "ollm doctor".to_owned(),
        Remedy::ListServers => "ollm mcp list".to_owned(),
        Remedy::ListSessions => "ollm session list".to_owned(),
        Remedy::ListEvents => "ollm schema".to_owned(),
        Remedy::Configure { key, value: Some(value) } => format!("ollm config set {key} {value}"),
        Remedy::Configure { key, value: None } => format!("ollm config set {key}"),
        Remedy::ShowConfiguration(section) => format!("ollm config show {section}"),
        Remedy::MigrateConfiguration => "ollm config migrate".to_owned(),
        Remedy::NameModel => "ollm run --model openai:NAME@http://HOST:PORT/v1 …".to_owned(),
        Remedy::PullModel(name) => named("model pull", name),
        Remedy::RecordModel => "ollm run --record FILE".to_owned(),
        Remedy::Demonstrate => "ollm demo".to_owned(),
        _ => return None,
    })
}

/// The command that installs a program on Debian; other systems use the same package names.
fn installing(program: &str) -> Option<String> {
    Some(match program {
        "uv" | "uvx" => "pipx install uv".to_owned(),
        "npx" => "sudo apt install npm".to_owned(),
        "node" => "sudo apt install nodejs".to_owned(),
        "python" => "sudo apt install python-is-python3".to_owned(),
        "python3" | "ruby" | "perl" | "bash" | "zsh" | "jq" | "git" => format!("sudo apt install {program}"),
        "pwsh" => "sudo snap install powershell --classic".to_owned(),
        "deno" | "bun" => format!("npm install -g {program}"),
        _ => return None,
    })
}
