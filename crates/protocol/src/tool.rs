//! Tools: what a model can call, and the results. The same types serve built-in tools and those of MCP servers.

use serde_json::{Map, Value};

mod effect;
mod guess;
mod patch;
pub mod schema;
pub mod table;
mod vocabulary;

pub(crate) use effect::effects_of_text;
pub(crate) use patch::patched_files;

pub use effect::{CallEffect, Declaration, Effect, ForeignTool, Operand, declared, effects_of, unknown_values};
pub use vocabulary::{add_canonical, misfit, patched, remove_others, spelled_for};

/// Something a model can call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name the model uses.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The schema of its arguments.
    pub input: ToolSchema,
    /// The schema of its structured result, if it promises one.
    pub output: Option<ToolSchema>,
    /// Whether it promises to change nothing; a hint, not a proof.
    pub read_only: bool,
}

/// A JSON Schema, with every keyword as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSchema(pub Map<String, Value>);

/// One part of a result.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Content {
    Text(String),
    /// A picture, in base64.
    Image {
        data: String,
        mime_type: String,
    },
    /// A sound, in base64.
    Audio {
        data: String,
        mime_type: String,
    },
    /// A whole resource: its text, or its bytes in base64.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: Option<String>,
        blob: Option<String>,
    },
    /// The address of a resource.
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        mime_type: Option<String>,
    },
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// The text for the model.
    pub content: Vec<Content>,
    /// The same for programs, if the tool promises it.
    pub structured: Option<Value>,
    /// Whether the tool reports a failure.
    pub is_error: bool,
}

impl ToolResult {
    /// A result with one text.
    pub fn text(text: impl Into<String>) -> ToolResult {
        ToolResult { content: vec![Content::Text(text.into())], ..ToolResult::default() }
    }

    /// A failure with one text.
    pub fn error(text: impl Into<String>) -> ToolResult {
        ToolResult { is_error: true, ..ToolResult::text(text) }
    }
}
