//! `ollm trust …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Make a key for your approvals, or sign again those there are: without its signature, none counts
    Init,
    /// Say which key approvals must be signed with, whether they are, and what the machine's policy fixes
    #[command(after_help = "Exit codes: 0 all is well, 1 no approval counts, 3 configuration error.")]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}
