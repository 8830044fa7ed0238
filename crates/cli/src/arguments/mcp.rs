//! The command line of `ollm mcp`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List all servers, where they come from, and whether they are trusted; starts none
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Add a server, as its documentation prints it
    #[command(
        after_help = "Examples:\n  ollm mcp add time -- uvx mcp-server-time\n  ollm mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'\n  ollm mcp add '{\"mcpServers\": {\"time\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}}}'\n  ollm mcp add time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'\n  ollm mcp add - < snippet.json\n  ollm mcp add -- claude mcp add time -- uvx mcp-server-time"
    )]
    Add(AddArguments),
    /// Take a server out of the settings again
    Remove {
        /// The server's name
        name: String,
        /// Take it out of the project's settings
        #[arg(long)]
        project: bool,
    },
    /// Show how servers are, also in the chats and runs of this project
    Status {
        /// The servers' names; all without one
        names: Vec<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Try servers: start them, remember their tools, and stop them
    Start {
        /// The servers' names; all without one
        names: Vec<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Stop servers of the chats and runs of this project
    Stop {
        /// The servers' names; all without one
        names: Vec<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Restart servers of the chats and runs of this project; without any, forget what is known of them and try them anew
    Restart {
        /// The servers' names; all without one
        names: Vec<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// List the tools of servers; those whose tools are not known yet are started
    Tools {
        /// The servers' names; all without one
        names: Vec<String>,
        /// Ask all servers anew
        #[arg(long)]
        refresh: bool,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Call a tool
    Call(CallArguments),
    /// List the resources of a server, or read one
    Resources {
        /// The server's name
        server: String,
        /// The resource to read
        uri: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the prompts of a server, or fill one in
    Prompts {
        /// The server's name
        server: String,
        /// The prompt to fill in
        prompt: Option<String>,
        /// What it is filled in with, as a JSON object
        #[arg(long, value_name = "JSON", requires = "prompt")]
        args: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve a server as now declared
    Trust {
        /// The server's name
        name: String,
        /// Approve without a terminal by naming the digest that `ollm mcp list --json` prints
        #[arg(long, value_name = "sha256:…")]
        digest: Option<String>,
        /// Approve it also if it runs files or packages that no approval covers
        #[arg(long)]
        uncovered: bool,
    },
    /// Look at tools of a server that are new or changed, and offer them
    Review {
        /// The server's name
        name: String,
        /// Offer them without a terminal by naming the digest that `--json` prints
        #[arg(long, value_name = "sha256:…")]
        digest: Option<String>,
        /// Print as JSON what waits, and offer nothing; with --digest what was offered
        #[arg(long)]
        json: bool,
    },
    /// Withdraw the approval of servers
    Untrust {
        /// The servers' names
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Log in to a server on the web, in a browser
    Login(LoginArguments),
    /// Forget what was granted by a login, and give it back
    Logout {
        /// The server's name
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what a server said on its standard error: in the chats and runs of this project, or when it last ran
    Logs {
        /// The server's name
        server: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// The server's name; or a JSON snippet that names it; or - for a snippet on standard input
    pub(crate) name: Option<String>,
    /// Its address, or its declaration in JSON
    pub(crate) target: Option<String>,
    /// The program and its arguments, behind --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// A variable for the program; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for the address; may be repeated
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// How the server is spoken to
    #[arg(long, short, value_parser = ["stdio", "http", "sse"])]
    pub(crate) transport: Option<String>,
    /// Write it into the project's settings, for everybody who works there; it needs approval
    #[arg(long)]
    pub(crate) project: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// The server's name
    pub(crate) name: String,
    /// Open no browser: only show the page to open
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// What to ask for, if not what the server says; may be repeated
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// How long it may take to find out where to log in and for the person to do so, such as 90s; 5 minutes without it
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ollm mcp call time get_current_time timezone=Europe/Berlin\n  ollm mcp call mcp__files__read_file path=README.md\n  ollm mcp call files search --args '{\"query\": {\"text\": \"x\"}}'"
)]
pub(crate) struct CallArguments {
    /// The server's name; or the tool as mcp__server__tool, which names the server as well
    pub(crate) server: String,
    /// The tool, by the server's own name for it, or as mcp__server__tool
    pub(crate) tool: Option<String>,
    /// Arguments; a value is text where the tool wants text, and otherwise JSON or text
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) values: Vec<String>,
    /// The arguments as a JSON object; - reads them from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// How long it may take without a sign of progress, such as 90s
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Print all of a large result, instead of keeping it in a file
    #[arg(long)]
    pub(crate) full: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl CallArguments {
    /// Whether the first word names server and tool, so that the second one is an argument.
    pub(crate) fn names_both(&self) -> bool {
        self.server.starts_with("mcp__") && self.tool.as_ref().is_some_and(|tool| tool.contains('='))
    }
}
