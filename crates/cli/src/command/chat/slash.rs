//! The commands of the chat.

use ollm_store::escape_for_people;
use serde_json::Value;

use super::super::hook::{columns, overview};
use super::Chat;
use crate::error::Failure;
use crate::model::{self, Wish};
use crate::output::one_line;

/// What the commands are for.
const HELP: &str = "\
/hooks                       the hooks there are, and whether they may run
/mcp                         the MCP servers, and how they are
/mcp NAME                    the tools of one of them
/mcp start|stop|restart NAME
/tools                       the tools the model has
/model [NAME]                the model, or another one
/session                     this conversation
/trigger NAME                tell the hooks of user_triggered
/help                        this list
/quit                        leave (as Ctrl-D does)";

/// A description is cut to this many characters in a table.
const GIST: usize = 80;

impl Chat<'_, '_> {
    /// Takes one input; says whether more is wanted.
    pub(super) fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => {}
            ("/quit" | "/exit", _) => return Ok(false),
            ("/help", _) => self.tell(HELP)?,
            ("/tools", _) => self.tell(&self.tools(""))?,
            ("/hooks", _) => self.tell(&overview(self.desk.app))?,
            ("/mcp", rest) => self.tell(&self.mcp(rest))?,
            ("/model", name) => self.model(name)?,
            ("/trigger", name) if !name.is_empty() => drop(self.session.trigger(name, Value::Null)),
            ("/session", _) => self.tell(&format!("{}  {} messages", self.id, self.session.messages().len()))?,
            // A path is no command.
            _ if word.starts_with('/') && !word.get(1..).is_some_and(|rest| rest.contains('/')) => {
                self.tell(&format!("there is no command {word}\n{HELP}"))?;
            }
            _ => self.say(line),
        }
        Ok(true)
    }

    /// Says something to the model, which then has the tools of the servers that could be started.
    fn say(&mut self, line: &str) {
        if let Some(toolbox) = &self.desk.app.toolbox {
            toolbox.settle(&self.cancel, &mut |text| self.desk.output.borrow_mut().tell(text));
        }
        self.session.say(line, None);
    }

    fn tell(&self, text: &str) -> Result<(), Failure> {
        let text = format!("{}\n", escape_for_people(text.trim_end()));
        self.desk.output.borrow_mut().text(&text).map(drop)
    }

    /// The tools whose names begin like this.
    fn tools(&self, start: &str) -> String {
        let tools = self.session.tools();
        let rows: Vec<[String; 2]> = tools
            .into_iter()
            .filter(|tool| tool.name.starts_with(start))
            .map(|tool| {
                let text = one_line(&tool.description);
                let gist: String = text.chars().take(GIST).collect();
                [tool.name, if gist.len() < text.len() { format!("{gist}…") } else { gist }]
            })
            .collect();
        if rows.is_empty() { "there are no tools".to_owned() } else { columns(&rows) }
    }

    fn mcp(&self, rest: &str) -> String {
        let Some(toolbox) = &self.desk.app.toolbox else { return "there are no servers".to_owned() };
        let (word, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let done = match (word, name.trim()) {
            ("", _) => return servers(&toolbox.rows()),
            ("start" | "restart", name) if !name.is_empty() => toolbox.restart(name),
            ("stop", name) if !name.is_empty() => toolbox.stop(name),
            (name, _) => match toolbox.prefix(name) {
                Ok(prefix) => return self.tools(&prefix),
                Err(why) => Err(why),
            },
        };
        done.map_or_else(|why| why, |()| servers(&toolbox.rows()))
    }

    fn model(&mut self, name: &str) -> Result<(), Failure> {
        if !name.is_empty() {
            match model::open(Some(name), &Wish::of(&self.desk.app.config), self.desk.world) {
                Ok(model) => {
                    if let Some(questions) = self.desk.app.toolbox.as_ref().and_then(|toolbox| toolbox.questions()) {
                        questions.set_model(name);
                    }
                    self.session.set_model(model);
                }
                Err(failure) => return self.tell(&failure.message),
            }
        }
        self.tell(self.session.model())
    }
}

fn servers(rows: &[[String; 4]]) -> String {
    if rows.is_empty() {
        return "there are no servers; `ollm mcp add` declares one".to_owned();
    }
    let head = ["NAME", "STATE", "TOOLS", "PROBLEM"].map(str::to_owned);
    columns(&std::iter::once(head).chain(rows.iter().cloned()).collect::<Vec<_>>())
}
