//! The settings and limits of a session.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::tool::{Reach, ShellSettings};

/// The settings of a session. Nothing is read from elsewhere.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The session's id.
    pub session_id: String,
    /// The name of the person, if known.
    pub user: Option<String>,
    /// Data about the person that hooks may use.
    pub user_data: UserData,
    /// How the agent is used, for hooks: `run` or `chat`, or a word of the embedding program.
    pub mode: String,
    /// The folder the session works in.
    pub cwd: PathBuf,
    /// Other folders that tools may access.
    pub allowed: Vec<PathBuf>,
    /// The first message to the model.
    pub system_prompt: String,
    /// The folders whose instructions for agents are read, outermost first; those below `cwd` are read when a tool goes
    /// there.
    pub instructions: Vec<PathBuf>,
    /// The model's temperature, if one is set.
    pub temperature: Option<f64>,
    /// When the person is asked for approval.
    pub approval: Approval,
    /// How shell commands are run.
    pub shell: ShellSettings,
    /// The limits of the session.
    pub limits: Limits,
}

impl Settings {
    /// A session in this folder that asks before changes, with the default limits.
    pub fn new(session_id: impl Into<String>, cwd: impl Into<PathBuf>, shell: ShellSettings) -> Settings {
        Settings {
            session_id: session_id.into(),
            user: None,
            user_data: UserData::default(),
            mode: "run".to_owned(),
            cwd: cwd.into(),
            allowed: Vec::new(),
            system_prompt: String::new(),
            instructions: Vec::new(),
            temperature: None,
            approval: Approval::Ask,
            shell,
            limits: Limits::default(),
        }
    }
}

/// Data about the person that hooks may use, part of every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserData {
    /// Preferences.
    pub preferences: Map<String, Value>,
    /// Settings.
    pub settings: Map<String, Value>,
}

impl UserData {
    /// The data as JSON for events.
    pub fn to_json(&self) -> Value {
        json!({"preferences": self.preferences, "settings": self.settings})
    }
}

/// When the person is asked before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Before every change.
    #[default]
    Ask,
    /// Before every change, except edits in the workspace.
    Auto,
    /// Never.
    Yolo,
}

impl Approval {
    /// Every mode by its name.
    pub const ALL: [(&'static str, Approval); 3] =
        [("ask", Approval::Ask), ("auto", Approval::Auto), ("yolo", Approval::Yolo)];

    /// The mode's name.
    pub fn name(self) -> &'static str {
        match self {
            Approval::Ask => "ask",
            Approval::Auto => "auto",
            Approval::Yolo => "yolo",
        }
    }

    /// Whether a tool with this reach needs the person's approval.
    pub(crate) fn asks(self, reach: Reach) -> bool {
        match (self, reach) {
            (Approval::Yolo, _) | (_, Reach::Looks) | (Approval::Auto, Reach::Edits) => false,
            (Approval::Ask, Reach::Edits) | (_, Reach::Acts) => true,
        }
    }
}

/// The limits of a session. The agent reports when it reaches one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls of the model per turn.
    pub model_calls: usize,
    /// Tool calls per answer; the rest are not run.
    pub tool_calls: usize,
    /// How often the same call may be repeated in a row.
    pub repeats: usize,
    /// How often hooks may keep a turn going.
    pub refusals: usize,
    /// How often they may do so with the same reason.
    pub same_reason: usize,
    /// Prompts that hooks may add to one prompt of the person.
    pub asked: usize,
    /// The longest chain of such prompts, each caused by the one before.
    pub chain: u32,
    /// The model's window in tokens, if the person sets it; else the server is asked.
    pub context: Option<u64>,
    /// The most bytes of one answer that are kept.
    pub answer: usize,
    /// The most bytes of one result that the model is shown.
    pub result: usize,
    /// How deep sub-agents may be nested.
    pub agent_depth: usize,
    /// How many sub-agents a session may have.
    pub agents: usize,
    /// How long a tool of a [`ToolSource`](crate::ToolSource) may take.
    pub source_call: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            model_calls: 50,
            tool_calls: 32,
            repeats: 3,
            refusals: 8,
            same_reason: 2,
            asked: 16,
            chain: 3,
            context: None,
            answer: 1 << 20,
            result: 64 << 10,
            agent_depth: 2,
            agents: 64,
            source_call: Duration::from_mins(2),
        }
    }
}
