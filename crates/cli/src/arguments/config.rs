//! The command line of `ollm config`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, who says so, and what was ignored and why
    Show {
        /// Only this section, such as hooks, or this setting
        section: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what applies for one setting, or for all of a section
    Get {
        /// The setting, such as hooks.timeout, or a section, such as hooks
        key: String,
        /// Print a JSON object with the value and who says so
        #[arg(long)]
        json: bool,
    },
    /// Give a setting a value in config.yaml; everything else in the file stays unchanged
    #[command(
        after_help = "VALUE is text, a number, true or false, a list such as \"a,b\" or \"[a, b]\", or a map such as \"{command: npx}\".\nSettings that guard something cannot be changed by an agent.\nmodel.apiKey is the key for the model's server. It is asked for, or read from standard input with \"-\", and kept in the\nsystem keyring, or in a file that only you can read where there is none."
    )]
    Set {
        /// The setting, such as hooks.timeout
        key: String,
        /// Its value
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        /// Set it for this project instead of for you; a project may only make things stricter
        #[arg(long)]
        project: bool,
    },
    /// Take a setting out of config.yaml, so that the default applies again
    Unset {
        /// The setting, such as hooks.timeout
        key: String,
        /// Take it out of the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Check both files and the environment; exit 1 if something is wrong, 3 if it stops the program
    Validate {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Replace older names of settings by today's, and keep a copy of the file
    Migrate {
        /// Migrate the project's file instead of yours
        #[arg(long)]
        project: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print where the files are
    Path {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}
