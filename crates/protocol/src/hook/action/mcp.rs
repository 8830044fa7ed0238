//! `mcp`: calls a tool of an MCP server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Action, ActionDescriptor, ActionSpec, ActionText, ActionType, Needs};
use crate::event::EventKind;
use crate::hook::key::{HookKey, KeyKind, ROW, TextForm, text};
use crate::hook::{HookError, HookSpec, Rules};

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct McpSpec {
    /// The server.
    pub server: String,
    /// The tool's name on the server.
    pub tool: String,
    /// Its arguments, whose texts may have templates.
    pub args: Map<String, Value>,
}

impl McpSpec {
    pub(super) const TYPE: &ActionType = &ActionType {
        name: "mcp",
        about: "Calls a tool of an MCP server",
        keys: &[
            HookKey {
                name: "server",
                about: "The server",
                required: true,
                kind: KeyKind::Text(text("text that is not empty", TextForm::Word), field!(Mcp.server)),
                approved: part!(Mcp.server),
                ..ROW
            },
            HookKey {
                name: "tool",
                about: "The tool, by the server's own name for it",
                required: true,
                kind: KeyKind::Text(text("text that is not empty", TextForm::Word), field!(Mcp.tool)),
                approved: part!(Mcp.tool),
                ..ROW
            },
            HookKey {
                name: "args",
                about: "Its arguments; texts in them may hold templates",
                kind: KeyKind::Object(field!(Mcp.args)),
                approved: part!(Mcp.args),
                ..ROW
            },
        ],
        blank: Some(|| ActionSpec::Mcp(McpSpec::default())),
    };
}

impl ActionDescriptor for McpSpec {
    fn kind(&self) -> &'static ActionType {
        McpSpec::TYPE
    }

    fn check(&self, _: &HookSpec, _: &[EventKind], _: &Rules) -> Result<Action, HookError> {
        for (key, value) in [("server", &self.server), ("tool", &self.tool)] {
            if value.trim().is_empty() {
                return Err(HookError::empty(key));
            }
        }
        Ok(Action::Tool(self.clone()))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Tool { server: &self.server, tool: &self.tool }
    }

    fn words(&self) -> Vec<&str> {
        vec![McpSpec::TYPE.name, &self.server, &self.tool]
    }

    fn title(&self) -> String {
        self.summary()
    }

    fn summary(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }

    fn shown(&self) -> ActionText<'_> {
        let McpSpec { server, tool, args } = self;
        ActionText::Text(format!("calls {tool} of MCP server {server} with {}", Value::from(args.clone())))
    }
}
