//! The panel of MCP servers: the state of each, here and in running conversations, its tools, and keys for `ollm mcp`.

use ollm_app::{AppContext, FileFollower};
use ollm_store::{escape_for_people, one_line};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::form::{Field, Form};
use super::list_panel::{Batch, Feed, KeyAction, ListContent, ListItem, dotted};
use super::panel::{Binding, Key};
use super::text::{fitted, heading, plain};
use super::theme::Theme;
use crate::arguments::Command;
use crate::arguments::mcp::{AddArguments, LoginArguments, McpCommand};
use crate::command::mcp::{ServerOverview, overview};
use crate::error::Failure;
use crate::output::Output;
use crate::table::pairs;

/// The commands of this panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpKey {
    Tools,
    Health,
    Logs,
    Start,
    Stop,
    Restart,
    Approve,
    ChangedTools,
    Withdraw,
    Login,
    Logout,
    Add,
    Delete,
}

const KEYS: &[Binding<McpKey>] = &[
    Binding {
        keys: &[Key::Plain(KeyCode::Enter), Key::Plain(KeyCode::Char('t'))],
        shown: "Enter, T",
        help: "list its tools",
        command: McpKey::Tools,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('s'))], shown: "S", help: "start", command: McpKey::Start },
    Binding { keys: &[Key::Plain(KeyCode::Char('x'))], shown: "X", help: "stop", command: McpKey::Stop },
    Binding { keys: &[Key::Plain(KeyCode::Char('r'))], shown: "R", help: "restart", command: McpKey::Restart },
    Binding { keys: &[Key::Plain(KeyCode::Char('l'))], shown: "L", help: "logs", command: McpKey::Logs },
    Binding { keys: &[Key::Plain(KeyCode::Char('o'))], shown: "O", help: "log in", command: McpKey::Login },
    Binding { keys: &[Key::Plain(KeyCode::Char('v'))], shown: "V", help: "review, approve", command: McpKey::Approve },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('c'))],
        shown: "C",
        help: "changed tools",
        command: McpKey::ChangedTools,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('w'))],
        shown: "W",
        help: "withdraw approval",
        command: McpKey::Withdraw,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('h'))], shown: "H", help: "health", command: McpKey::Health },
    Binding { keys: &[Key::Plain(KeyCode::Char('f'))], shown: "F", help: "forget the login", command: McpKey::Logout },
    Binding { keys: &[Key::Plain(KeyCode::Char('a'))], shown: "A", help: "add", command: McpKey::Add },
    Binding { keys: &[Key::Plain(KeyCode::Char('d'))], shown: "D", help: "delete", command: McpKey::Delete },
];

/// One server.
pub(crate) struct ServerItem {
    name: String,
    overview: ServerOverview,
}

impl ServerItem {
    pub(super) fn new(overview: ServerOverview) -> ServerItem {
        let name = overview.entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        ServerItem { name, overview }
    }

    fn text(&self, key: &str) -> &str {
        self.overview.entry.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_running(&self) -> bool {
        self.overview.entry.get("running") == Some(&Value::Bool(true))
    }

    fn has_conversation(&self) -> bool {
        self.overview.entry.get("chats").and_then(Value::as_array).is_some_and(|chats| !chats.is_empty())
    }

    fn waits(&self) -> bool {
        !self.text("error").is_empty() || matches!(self.text("trust"), "untrusted" | "modified")
    }

    /// What is known of it, row by row.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let entry = &self.overview.entry;
        let part = |key: &str, field: &str| entry.get(key)?.get(field)?.as_str().map(str::to_owned);
        let state = match self.text("status") {
            "" => self.text("state").to_owned(),
            status => format!("{} ({status})", self.text("state")),
        };
        let mut rows = vec![("name", self.name.clone()), ("state", state)];
        let words = [
            ("trust", "trust"),
            ("problem", "error"),
            ("transport", "transport"),
            ("source", "source"),
            ("revision", "revision"),
            ("digest", "digest"),
        ];
        rows.extend(
            words.map(|(name, key)| (name, self.text(key).to_owned())).into_iter().filter(|(_, text)| !text.is_empty()),
        );
        if let (Some(at), Some(message)) = (part("lastFailure", "at"), part("lastFailure", "message")) {
            rows.push(("failed", format!("{at}: {message}")));
        }
        rows.extend(part("login", "issuer").map(|issuer| ("logged in", format!("at {issuer}"))));
        let chats = entry.get("chats").and_then(Value::as_array).into_iter().flatten();
        rows.extend(chats.map(|chat| {
            let text = |key: &str| chat.get(key).and_then(Value::as_str).unwrap_or_default();
            let process = chat.get("pid").map(ToString::to_string).unwrap_or_default();
            ("runs in", format!("conversation {} (process {process}): {}", text("session"), text("state")))
        }));
        rows
    }
}

impl ListItem for ServerItem {
    fn id(&self) -> &str {
        &self.name
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn row(&self, width: usize, theme: &Theme) -> Line<'static> {
        let mut line = dotted(&self.name, self.is_running(), self.waits(), width, theme);
        let state = format!(" {}", one_line(self.text("state")));
        line.push_span(Span::styled(fitted(&state, width.saturating_sub(line.width())), theme.faint));
        line
    }

    fn details(&self, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = plain(&escape_for_people(&pairs(&self.rows())), Style::new());
        let tools = &self.overview.tools;
        lines.push(Line::default());
        lines.push(match tools.len() {
            0 => Line::styled("No tools are known yet; T lists them.", theme.faint),
            1 => heading("1 tool"),
            number => heading(&format!("{number} tools")),
        });
        for [name, arguments, description] in tools {
            let arguments = format!(" {}", one_line(arguments));
            lines.push(Line::from(vec![Span::styled(one_line(name), theme.accent), Span::raw(arguments)]));
            lines.extend(plain(&format!("  {}", one_line(description)), theme.faint));
        }
        lines
    }
}

/// A server that is to be added.
pub(crate) struct NewServer;

#[derive(Default)]
pub(crate) struct Servers;

impl ListContent for Servers {
    type Item = ServerItem;
    type Key = McpKey;
    type Purpose = NewServer;

    const NOUN: &'static str = "server";
    const LOAD: &'static str = "reading servers";
    const EMPTY: &'static str = "Enter leaves this panel. A adds a server.";
    const KEYS: &'static [Binding<McpKey>] = KEYS;

    fn load(context: &AppContext, feed: &Feed<ServerItem>, _: &mut Output) -> Result<(), Failure> {
        let (mut shown, mut files) = (None, FileFollower::before_load(context));
        loop {
            let servers = ollm_app::servers::Servers::load(context)?;
            files.follow_servers(&servers);
            let now = overview(&servers);
            if shown.as_ref() != Some(&now) {
                let note = if now.1.is_empty() { "" } else { ", a conversation does not answer" };
                feed.send(Batch::All(now.0.iter().cloned().map(ServerItem::new).collect(), note.to_owned()));
                shown = Some(now);
            }
            if !feed.waits_for(&mut files) {
                return Ok(());
            }
        }
    }

    fn command(&mut self, key: McpKey, chosen: Option<&ServerItem>) -> KeyAction<NewServer> {
        if key == McpKey::Add {
            return KeyAction::Fill(NewServer, add_form());
        }
        let Some(server) = chosen else { return KeyAction::None };
        let name = server.name.clone();
        let (names, json) = (vec![name.clone()], false);
        let (title, command) = match key {
            McpKey::Add => return KeyAction::None,
            McpKey::Tools => ("tools of", McpCommand::Tools { names, refresh: false, json }),
            McpKey::Health => ("health of", McpCommand::Status { names, json }),
            McpKey::Logs => ("logs of", McpCommand::Logs { server: name.clone(), json }),
            McpKey::Start if server.is_running() => {
                let text = format!("server `{}` runs already; R restarts it", one_line(&name));
                return KeyAction::Say(format!("starting {}", one_line(&name)), text);
            }
            // In a conversation it keeps running; without one it is only tried.
            McpKey::Start if server.has_conversation() => ("starting", McpCommand::Restart { names, json }),
            McpKey::Start => ("starting", McpCommand::Start { names, json }),
            McpKey::Stop => ("stopping", McpCommand::Stop { names, json }),
            McpKey::Restart => ("restarting", McpCommand::Restart { names, json }),
            McpKey::Approve => ("reviewing", McpCommand::Trust { name: name.clone(), digest: None, uncovered: false }),
            McpKey::ChangedTools => {
                ("reviewing the tools of", McpCommand::Review { name: name.clone(), digest: None, json })
            }
            McpKey::Withdraw => ("withdrawing the approval of", McpCommand::Untrust { names }),
            McpKey::Login => ("logging in to", McpCommand::Login(login_of(name.clone()))),
            McpKey::Logout => ("logging out of", McpCommand::Logout { name: name.clone(), json }),
            McpKey::Delete => {
                let project = server.text("source") == "workspace";
                let command = Command::Mcp { command: McpCommand::Remove { name: name.clone(), project } };
                let name = one_line(&name);
                let question = format!("Remove server `{name}` from the settings it is declared in?");
                return KeyAction::Confirm(question, format!("deleting {name}"), command);
            }
        };
        KeyAction::Run(format!("{title} {}", one_line(&name)), Command::Mcp { command })
    }

    fn save(&mut self, _: &NewServer, values: &[String]) -> KeyAction<NewServer> {
        let arguments = added(values);
        let title = format!("adding {}", one_line(arguments.name.as_deref().unwrap_or_default()));
        KeyAction::Run(title, Command::Mcp { command: McpCommand::Add(arguments) })
    }
}

fn login_of(name: String) -> LoginArguments {
    LoginArguments { name, no_browser: false, scope: Vec::new(), timeout: None, json: false }
}

fn add_form() -> Form {
    Form::new(
        "Add a server",
        vec![
            Field::text("name", "what it is called here", ""),
            Field::text("server", "a program and its arguments, an address, or JSON", ""),
            Field::choice("for", "you, or everybody who works in this project", &["you", "project"], ""),
        ],
    )
}

fn added(filled: &[String]) -> AddArguments {
    let value = |at: usize| filled.get(at).filter(|value| !value.is_empty()).cloned();
    let line = value(1).unwrap_or_default();
    // Text that is not a shell line goes to the command, which says what is wrong with it.
    let is_program = !line.starts_with('{') && !line.contains("://");
    let command = ollm_shell::split_loosely(&line).ok().filter(|_| is_program);
    AddArguments {
        name: value(0),
        target: if command.is_none() { Some(line) } else { None },
        command: command.unwrap_or_default(),
        env: Vec::new(),
        header: Vec::new(),
        transport: None,
        project: value(2).as_deref() == Some("project"),
    }
}
