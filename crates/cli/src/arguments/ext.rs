//! The command line of extensions and skills.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ollm_app::scaffold::{Language, Purpose};

use super::agent::AgentArguments;
use super::{languages, purposes};

#[derive(Debug, Subcommand)]
pub(crate) enum ExtCommand {
    /// List all extensions, whether they are on, approved, or cannot be loaded
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one extension: what it brings, what it wants, what is set
    #[command(visible_alias = "show")]
    Info {
        /// The extension's name, or the folder of one that is not installed; also a package of another agent
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Switch extensions on; on a terminal, show what they bring and approve it
    #[command(
        after_help = "Exit codes: 0 on, 1 switched on but not loaded (a setting or another extension is missing), 3 its manifest is broken, 4 not approved by the person who was asked, or an agent asked.\nWithout a terminal an extension is switched on, but runs nothing until it is approved: `ollm ext trust NAME --digest sha256:…`."
    )]
    Enable {
        /// The extensions' names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Switch extensions off, with everything they bring
    Disable {
        /// The extensions' names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Read extensions anew, and tell what differs from what was approved
    #[command(after_help = "Exit codes: 0 fine, 1 an extension cannot be loaded.")]
    Reload {
        /// The extension's name; all of them without it
        name: Option<String>,
    },
    /// Approve an extension in its present state, with all its hooks
    Trust {
        /// The extension's name
        name: String,
        /// Approve without a terminal by naming the digest that `ollm ext list --json` prints
        #[arg(long, value_name = "sha256:…")]
        digest: Option<String>,
        /// Approve it also if it runs files or packages that no approval covers
        #[arg(long)]
        uncovered: bool,
    },
    /// Search the indexes for extensions to install
    #[command(after_help = "Exit codes: 0 found, 1 nothing fits.\nIndexes are named by `extensions.indexes`.")]
    Search(SearchArguments),
    /// Install an extension from a folder, an archive, a git repository or an index
    #[command(after_help = INSTALL_HELP)]
    Install(InstallArguments),
    /// Update installed extensions from where they came from, and show only what is different
    #[command(
        after_help = "Exit codes: 0 fine, 1 one of several was not updated, 3 the new version is refused, 5 it cannot be had or written, 64 it is lower or was not accepted.\nA lower version is refused unless `--to` names it."
    )]
    Update(UpdateArguments),
    /// Hold an installed extension to a version, a commit or a digest
    Pin(PinArguments),
    /// Remove an extension's folder, its approval, its switches, its settings and its secrets
    #[command(visible_alias = "remove")]
    Uninstall {
        /// The extension's name
        name: String,
        /// Do not ask; its secrets go as well
        #[arg(long, short)]
        yes: bool,
    },
    /// Make an index of extensions that others can install from
    #[command(subcommand)]
    Index(IndexCommand),
    /// Give settings of an extension a value; sensitive ones go into the system keyring, or a file that only you can read
    Set(SetArguments),
    /// Write an extension that works, with golden cases, to begin from
    New(NewExtension),
    /// Check an extension's folder: manifest, files, golden cases
    #[command(after_help = "Exit codes: 0 fine, 1 something is wrong.")]
    Validate {
        /// The extension's folder or name
        #[arg(default_value = ".")]
        target: String,
        /// Print a JSON array of problems
        #[arg(long)]
        json: bool,
    },
    /// Work on an extension: whenever a file of it changes, check it and run its golden cases, without an approval each time
    #[command(
        after_help = "Only on a terminal, and only for the events of its golden cases: nothing is approved, and no other program runs its hooks."
    )]
    Dev {
        /// The extension's folder, or the name of one of yours
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Run the golden cases of an extension's hooks
    #[command(after_help = "Exit codes: 0 fine, 1 a case differs, 4 not approved.")]
    Test {
        /// The extension's name
        name: String,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
}

const INSTALL_HELP: &str = "Exit codes: 0 installed, 3 the package is refused, 4 an agent asked, 5 it cannot be had or written, 64 not accepted.
Nothing runs until it is approved: on a terminal that is the next question, in a script `ollm ext trust NAME --digest sha256:…`.

  ollm ext install git-guard                    by name, from an index
  ollm ext install git-guard@1.0.0              that version
  ollm ext install ./folder                     a folder
  ollm ext install ./guard.tar.gz               an archive, also .zip
  ollm ext install https://example.org/x.zip    an archive on a server
  ollm ext install https://example.org/x.git    a repository; --ref names a branch, tag or commit";

/// How a change is accepted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Acceptance {
    /// Accept what is shown without being asked; it approves nothing
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Words to look for in names, descriptions, tags and authors; everything without them
    pub(crate) words: Vec<String>,
    /// Ask no server; what was fetched before has to do
    #[arg(long)]
    pub(crate) offline: bool,
    /// Nothing is asked here; taken so that scripts can give it to every command
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// A folder, an archive, an address, or a name that an index has
    pub(crate) source: String,
    /// The branch, tag or commit of a repository
    #[arg(long = "ref", value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// The version it must have; only then may it be lower than what is installed
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: Option<String>,
    /// The digest that its archive must have
    #[arg(long, value_name = "sha256:…")]
    pub(crate) checksum: Option<String>,
    /// Ask no server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) acceptance: Acceptance,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// The extensions' names; all that were installed without them
    pub(crate) names: Vec<String>,
    /// The version to have, also a lower one
    #[arg(long, value_name = "VERSION", requires = "names")]
    pub(crate) to: Option<String>,
    /// Have the version from before the last update again
    #[arg(long, requires = "names", conflicts_with = "to")]
    pub(crate) rollback: bool,
    /// Ask no server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) acceptance: Acceptance,
}

#[derive(Debug, Args)]
pub(crate) struct PinArguments {
    /// The extension's name
    pub(crate) name: String,
    /// A version, a commit, or the digest of an archive; what is installed without it
    pub(crate) value: Option<String>,
    /// Take the pin away
    #[arg(long, conflicts_with = "value")]
    pub(crate) remove: bool,
    /// Nothing is asked here; taken so that scripts can give it to every command
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Pack folders of extensions and list them in an index, for any web server to hold
    #[command(
        after_help = "A signature that minisign left beside an archive (NAME-VERSION.tar.gz.minisig) goes into the index: sign the archives and build it again."
    )]
    Build(IndexArguments),
}

#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// The folders of extensions
    #[arg(required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// The folder for the archives and their index.json; what that lists already stays
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "KEY alone asks for the value on a terminal, without showing it; KEY=- reads it from standard input."
)]
pub(crate) struct SetArguments {
    /// The extension's name
    pub(crate) name: String,
    /// Settings and their values
    #[arg(value_name = "KEY=VALUE", required_unless_present = "unset")]
    pub(crate) set: Vec<String>,
    /// A setting whose value is to be forgotten
    #[arg(long, value_name = "KEY")]
    pub(crate) unset: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NewExtension {
    /// The extension's name
    pub(crate) name: String,
    /// What its hook is for
    #[arg(long = "for", value_name = "PURPOSE", value_parser = purposes(), default_value = "validation")]
    pub(crate) purpose: Purpose,
    /// What its hook is written in
    #[arg(long = "in", visible_alias = "lang", value_name = "LANGUAGE", value_parser = languages(), default_value = "python")]
    pub(crate) language: Language,
    /// Put it into the project instead of your own folder
    #[arg(long, conflicts_with = "folder")]
    pub(crate) project: bool,
    /// Put it into this folder, under its name
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillCommand {
    /// List the skills of all extensions that are on
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show one skill: its prompt and what has to be filled in
    Show {
        /// EXTENSION.SKILL, or the skill's name if no other extension has one of that name
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a skill's prompt with everything filled in, or hand it to the agent
    #[command(after_help = SKILL_HELP)]
    Run(SkillArguments),
}

const SKILL_HELP: &str = "What has no value is asked for on a terminal; without one it is an error that names it.
With --agent the prompt is handed to the agent, as `ollm run PROMPT` does, with the same options, output and exit codes.
Behind `skill run`, --set fills a placeholder; a setting for one run stands in front: `ollm --set KEY=VALUE skill run …`.";

#[derive(Debug, Args)]
pub(crate) struct SkillArguments {
    /// EXTENSION.SKILL, or the skill's name if no other extension has one of that name
    pub(crate) name: String,
    /// The value of a placeholder; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Hand the prompt to the agent instead of printing it
    #[arg(long = "agent")]
    pub(crate) hand_over: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// With --agent: print everything that happens, one JSON object per line
    #[arg(long, conflicts_with = "json", requires = "hand_over")]
    pub(crate) stream_json: bool,
}
