//! The command line of `ollm run`, `ollm chat` and `ollm session`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ollm_agent::Approval;
use ollm_app::session::{Resume, SessionKind, SessionOptions};
use ollm_protocol::Code;

use crate::error::Failure;

pub(super) const TASK_HELP: &str = "What is piped in is added to the prompt. Without --model, OLLM_MODEL is used, else `model` of the configuration, else the latest model of a local
Ollama that can call tools. Tools of MCP servers are offered beside the built-in ones.
Keys come from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, or OLLM_MODEL_KEY for any server), or from `ollm config set model.apiKey`.
Exit codes: 0 done, 1 ended by a bound, an answer that is not whole, or an expectation of a replay, 2 refused by a hook, 5 no answer, 64 usage, 130 interrupted (143 by TERM, 129 by HUP).";

pub(super) const CHAT_HELP: &str = "A backslash at the end of a line goes on with the next one. Ctrl-C interrupts the model, Ctrl-D leaves; /help lists
the commands. Models and keys are found as by `ollm run`.";

pub(super) const TUI_HELP: &str =
    "`?` lists the keys. `NO_COLOR=1` draws without colours. `ollm chat` is the same conversation line by line.";

/// Who says nothing is asked.
const USUAL_APPROVAL: &str = "ask";

#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    /// What to do; without it, what is piped in
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
    /// Print one JSON object when all is over
    #[arg(long)]
    pub(crate) json: bool,
    /// Print everything that happens, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    pub(crate) stream_json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct TuiArguments {
    /// The panel to begin with
    #[arg(long, value_name = "NAME")]
    pub(crate) panel: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// The model: ollama:NAME, openai:NAME@URL for any server that speaks OpenAI's protocol, responses:NAME, anthropic:NAME,
    /// or replay:FILE
    #[arg(long, value_name = "PROVIDER:NAME[@BASE_URL]")]
    pub(crate) model: Option<String>,
    /// When to ask before a tool runs: before every change, before all but edits of files here, or never
    #[arg(long, value_name = "MODE", value_parser = ["ask", "auto", "yolo"], default_value = USUAL_APPROVAL)]
    pub(crate) approval: String,
    /// Another folder that tools may touch
    #[arg(long, value_name = "FOLDER")]
    pub(crate) allow: Vec<PathBuf>,
    /// Write the model's answers to a new file, for --model replay:FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with an earlier conversation
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Go on with the latest conversation of this folder
    #[arg(long = "continue")]
    pub(crate) continue_last: bool,
}

impl Default for AgentArguments {
    fn default() -> AgentArguments {
        AgentArguments {
            model: None,
            approval: USUAL_APPROVAL.to_owned(),
            allow: Vec::new(),
            record: None,
            resume: None,
            continue_last: false,
        }
    }
}

impl AgentArguments {
    /// What they ask of a session.
    pub(crate) fn options(&self, kind: SessionKind) -> Result<SessionOptions, Failure> {
        let approval = Approval::ALL.iter().find(|(name, _)| *name == self.approval);
        let (_, approval) = approval
            .ok_or_else(|| Failure::new(Code::InvalidValue, format!("--approval {}: no such mode", self.approval)))?;
        let mut options = SessionOptions::default();
        options.kind = kind;
        options.model.clone_from(&self.model);
        options.approval = *approval;
        options.allow.clone_from(&self.allow);
        options.record.clone_from(&self.record);
        options.resume = self.resume.clone().map(Resume::Id).or(self.continue_last.then_some(Resume::Latest));
        Ok(options)
    }

    /// Whether any of them was given.
    pub(crate) fn is_used(&self) -> bool {
        let AgentArguments { model, approval, allow, record, resume, continue_last } = self;
        let given = [model.is_some(), record.is_some(), resume.is_some(), *continue_last, !allow.is_empty()];
        approval != USUAL_APPROVAL || given.contains(&true)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models there are, the latest first
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model
    Pull {
        /// Its name, for instance qwen3:4b
        name: String,
    },
    /// Show what a model can do and how many tokens it can look at
    Show {
        /// Its name
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the conversations there are, the latest first
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Go on with a conversation on the terminal, as `ollm chat --resume` does
    Resume {
        /// Its id, or the beginning of it; without it, you pick one
        id: Option<String>,
        #[command(flatten)]
        agent: AgentArguments,
    },
    /// Show one conversation
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}
