//! What a person can do about a problem, as a value. Libraries know the problem, and only the program knows its
//! commands.

use std::fmt;
use std::path::PathBuf;

/// What a person can do. It reads as a clause, with or without a command.
///
/// ```
/// use ollm_protocol::{Commands, Remedy};
///
/// let remedy = Remedy::ApproveHook("user:lint".to_owned());
/// assert_eq!(remedy.to_string(), "review and approve it");
/// let commands = Commands::new(|remedy| match remedy {
///     Remedy::ApproveHook(id) => Some(format!("mine approve {id}")),
///     _ => None,
/// });
/// assert_eq!(commands.tell(&remedy), "review and approve it with `mine approve user:lint`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Approve the hook with this id.
    ApproveHook(String),
    /// Approve the extension of this name.
    ApproveExtension(String),
    /// Approve the MCP server of this name.
    ApproveServer(String),
    /// Look through the list of approvals, and sign it.
    SignApprovals,
    /// Switch on the hook with this id.
    EnableHook(String),
    /// Switch on the extension of this name.
    EnableExtension(String),
    /// Switch off the extension of this name.
    DisableExtension(String),
    /// See what is wrong with the extension of this name.
    ShowExtension(String),
    /// Begin an extension.
    NewExtension,
    /// Search for extensions that can be installed.
    SearchExtensions,
    /// Install this version of an extension although it is lower.
    InstallVersion {
        /// The name of the extension.
        name: String,
        /// The version.
        version: String,
    },
    /// Remove the extension of this name.
    UninstallExtension(String),
    /// Give a setting of an extension its value.
    SetSetting {
        /// The name of the extension.
        extension: String,
        /// The name of the setting.
        setting: String,
        /// Whether the value is a secret, which is asked for and not written into a command.
        sensitive: bool,
    },
    /// Log in to the MCP server of this name.
    LogIn(String),
    /// Log in to the MCP server of this name for more rights than we have.
    AskForRights(String),
    /// Start the MCP server of this name again.
    RestartServer(String),
    /// Look at the new and changed tools of the MCP server of this name, and offer them.
    ReviewTools(String),
    /// Let the agent of this name ask us.
    ConnectAgent(&'static str),
    /// Let the agent of this name ask us in a project, for everyone who works there.
    ConnectInProject(&'static str),
    /// Stop the agent of this name from asking in one of two places.
    DisconnectAgent {
        /// The name of the agent.
        name: &'static str,
        /// Whether the place is that of the project.
        is_project: bool,
    },
    /// Open a file and correct it by hand.
    OpenFile {
        /// The file.
        file: PathBuf,
        /// The line; zero for the whole file.
        line: usize,
    },
    /// Change the hook with this id where it is declared.
    EditHook(String),
    /// Install the program of this name.
    InstallProgram(String),
    /// Turn the commits of this repository into events.
    InstallGitHook,
    /// Turn the changed files of this project into events.
    WatchFiles,
    /// Declare a script as a hook.
    DeclareScript {
        /// The event that its name suggests, if any.
        event: Option<&'static str>,
        /// The script.
        path: PathBuf,
    },
    /// See how the hook with this id ran.
    ShowRuns(String),
    /// See the hooks there are.
    ListHooks,
    /// See what is wrong, wherever that is.
    FindFaults,
    /// See the MCP servers there are.
    ListServers,
    /// See the sessions there are.
    ListSessions,
    /// See the events there are.
    ListEvents,
    /// Set a key of the configuration, to this value or one that the person chooses.
    Configure {
        /// The key.
        key: &'static str,
        /// The value, or a placeholder for it; `None` for a secret, which the command asks for.
        value: Option<&'static str>,
    },
    /// See where this section of the configuration was set.
    ShowConfiguration(&'static str),
    /// Replace older names in the configuration.
    MigrateConfiguration,
    /// Name the model for one run.
    NameModel,
    /// Fetch the model of this name.
    PullModel(String),
    /// Record the answers of a model.
    RecordModel,
    /// Try the program without a model.
    Demonstrate,
}

impl Remedy {
    /// The start of the clause without a command, and the text before and after a command.
    fn clause(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Remedy::ApproveHook(_) | Remedy::ApproveExtension(_) | Remedy::ApproveServer(_) => {
                ("review and approve it", "review and approve it with ", "")
            }
            Remedy::SignApprovals => ("look through it and sign it", "", " shows it, and signs it anew"),
            Remedy::EnableHook(_) | Remedy::EnableExtension(_) => ("switch it on", "", " switches it on"),
            Remedy::DisableExtension(_) => ("switch it off to end it", "", " ends it"),
            Remedy::ShowExtension(_) => ("see what is wrong with it", "", " says why"),
            Remedy::NewExtension => ("write one first", "", " writes one to begin with"),
            Remedy::SearchExtensions => ("look what there is", "", " shows what there is"),
            Remedy::InstallVersion { .. } => ("name the version to have it all the same", "", " has it all the same"),
            Remedy::UninstallExtension(_) => ("remove it", "", " removes it"),
            Remedy::SetSetting { .. } => ("set it", "", " sets it"),
            Remedy::Configure { .. } => ("set ", "", ""),
            Remedy::LogIn(_) => ("log in", "", " logs in"),
            Remedy::AskForRights(_) => ("log in again to ask for them", "", " asks for them"),
            Remedy::RestartServer(_) => ("start it again", "", " starts it again"),
            Remedy::ReviewTools(_) => ("look at it, and approve it", "", " shows and offers it"),
            Remedy::ConnectAgent(_) | Remedy::ConnectInProject(_) => ("connect it again", "", " connects it again"),
            Remedy::DisconnectAgent { .. } => ("take one of the two out", "", " takes this one out"),
            Remedy::OpenFile { .. } => ("mend the file", "open it with ", ""),
            Remedy::EditHook(_) => ("change its declaration", "", " changes it"),
            Remedy::InstallProgram(_) => ("install it", "install it, for instance with ", ""),
            Remedy::InstallGitHook => ("have its commits become events", "", " has its commits do so"),
            Remedy::WatchFiles => ("watch it", "", " tells them of all others, too"),
            Remedy::DeclareScript { .. } => ("declare it in a hook file", "", " declares it"),
            Remedy::ShowRuns(_) => ("look at its runs", "", " shows its runs"),
            Remedy::ListHooks => ("look at the hooks there are", "", " shows the hooks there are"),
            Remedy::FindFaults => ("look for what is wrong", "", " shows what is wrong"),
            Remedy::ListServers => ("look at the servers there are", "", " shows the servers there are"),
            Remedy::ListSessions => ("look at the sessions there are", "", " shows the sessions there are"),
            Remedy::ListEvents => ("look at the events there are", "", " lists the events there are"),
            Remedy::ShowConfiguration(_) => ("look where it was set", "", " shows where it was set"),
            Remedy::MigrateConfiguration => ("write today's name", "", " writes today's name"),
            Remedy::NameModel => ("name one, or set OLLM_MODEL", "name one: ", ", or set OLLM_MODEL"),
            Remedy::PullModel(_) => ("fetch a model first", "", " fetches one"),
            Remedy::RecordModel => ("record one first", "", " writes one"),
            Remedy::Demonstrate => ("try it without a model", "try it without a model: ", ""),
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.clause().0)?;
        match self {
            Remedy::Configure { key, .. } => formatter.write_str(key),
            _ => Ok(()),
        }
    }
}

/// The commands of a program for remedies. The default has none, so messages then only name the action.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commands(Option<fn(&Remedy) -> Option<String>>);

impl Commands {
    /// The commands of a program, as a person types them; `None` for a remedy without a command.
    pub const fn new(commands: fn(&Remedy) -> Option<String>) -> Commands {
        Commands(Some(commands))
    }

    /// The command for a remedy.
    pub fn command(self, remedy: &Remedy) -> Option<String> {
        self.0.and_then(|command| command(remedy))
    }

    /// The clause that tells a person what to do, with the command if there is one.
    pub fn tell(self, remedy: &Remedy) -> String {
        let (_, before, after) = remedy.clause();
        self.command(remedy).map_or_else(|| remedy.to_string(), |command| format!("{before}`{command}`{after}"))
    }
}
