//! What a session is given to know, and how far it may go.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::tool::{Reach, ShellSettings};

/// How a session is to be run. Everything comes in as a value.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The session's id.
    pub session_id: String,
    /// Who the person is, if that is known.
    pub user: Option<String>,
    /// What the person configured for hooks to know.
    pub user_data: UserData,
    /// How the agent is used, as hooks are told: `run` or `chat`, or a word of the embedding program.
    pub mode: String,
    /// The folder the session works in.
    pub cwd: PathBuf,
    /// Other folders that tools may touch.
    pub allowed: Vec<PathBuf>,
    /// What the model is told before everything else.
    pub system_prompt: String,
    /// The folders whose instructions for agents are read, outermost first; those below `cwd` are read when a tool goes
    /// there.
    pub instructions: Vec<PathBuf>,
    /// The temperature the model works at, if one was chosen.
    pub temperature: Option<f64>,
    /// When the person is asked.
    pub approval: Approval,
    /// How shell commands are run.
    pub shell: ShellSettings,
    /// How far everything may go.
    pub limits: Limits,
}

impl Settings {
    /// A session in this folder that asks before it changes something, within the usual bounds.
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

/// What the person configured for hooks to know, as every event tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserData {
    /// Preferences.
    pub preferences: Map<String, Value>,
    /// Settings.
    pub settings: Map<String, Value>,
}

impl UserData {
    /// As it stands in an event.
    pub fn to_json(&self) -> Value {
        json!({"preferences": self.preferences, "settings": self.settings})
    }
}

/// When the person is asked before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Before everything that changes something.
    #[default]
    Ask,
    /// Before everything but edits in the workspace.
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

    /// Whether a tool of this reach waits for the person.
    pub(crate) fn asks(self, reach: Reach) -> bool {
        match (self, reach) {
            (Approval::Yolo, _) | (_, Reach::Looks) | (Approval::Auto, Reach::Edits) => false,
            (Approval::Ask, Reach::Edits) | (_, Reach::Acts) => true,
        }
    }
}

/// The bounds of a session. Whoever reaches one is told so.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls of the model per turn.
    pub model_calls: usize,
    /// Tool calls per answer; the rest are not run.
    pub tool_calls: usize,
    /// How often the very same call may follow itself.
    pub repeats: usize,
    /// How often hooks may keep a turn going.
    pub refusals: usize,
    /// How often they may do so with the same words.
    pub same_reason: usize,
    /// Prompts that hooks may add to one prompt of the person.
    pub asked: usize,
    /// How long a chain of such prompts, each caused by the one before, may be.
    pub chain: u32,
    /// Tokens that the model can look at, where the person says so; else its server is asked.
    pub context: Option<u64>,
    /// Bytes of one answer that are kept.
    pub answer: usize,
    /// Bytes of one result that the model is shown.
    pub result: usize,
    /// How deep sub-agents may start others.
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
