//! The commands of the chat.

use std::ffi::OsString;
use std::sync::Arc;

use ollm_app::model::{self, ModelConfig};
use ollm_app::servers::McpTools;
use ollm_store::{escape_for_people, one_line};
use serde_json::Value;

use super::super::hook::overview;
use super::super::skill;
use super::Chat;
use crate::arguments;
use crate::error::{Failure, OK};
use crate::table::{columns, table};

/// What the commands are for.
const HELP: &str = "\
/hooks                       the hooks there are, and whether they may run
/hooks show|enable|disable|trust|untrust ID
/mcp                         the MCP servers, and how they are
/mcp NAME                    the tools of one of them
/mcp start|stop|restart NAME
/mcp login|logout|trust|untrust|logs NAME
/ext                         the extensions, and whether they are on
/ext NAME                    what one of them is and brings
/ext enable|disable|trust NAME
/ext reload                  read everything anew (changed files are noticed before each turn)
/skill                       the skills of the extensions that are on
/skill NAME [KEY=VALUE …]    say what a skill says
/tools                       the tools the model has
/model [NAME]                the model, or another one
/compress                    make this conversation shorter, with a summary by the model
/session                     this conversation
/trigger NAME [JSON]         tell the hooks of user_triggered
/emit NAME [JSON]            tell the hooks of an event of your own
/help                        this list
/quit                        leave (as Ctrl-D does)";

/// What can be done with one server.
const MCP_WORDS: [&str; 8] = ["start", "stop", "restart", "login", "logout", "trust", "untrust", "logs"];

/// A description is cut to this many characters in a table.
const GIST: usize = 80;

impl Chat<'_, '_> {
    /// Takes one input; says whether more is wanted.
    pub(super) fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => {}
            ("/quit" | "/exit", "") => return Ok(false),
            ("/help", "") => self.tell(HELP)?,
            ("/tools", "") => self.tell(&self.tools(""))?,
            ("/hooks", rest) => self.hooks(rest)?,
            ("/mcp", rest) => self.mcp(rest)?,
            ("/ext", rest) => self.ext(rest)?,
            ("/skill" | "/skills", rest) => self.skill(rest)?,
            ("/model", name) => self.model(name)?,
            ("/trigger" | "/emit", rest) => self.send(word, rest)?,
            ("/quit" | "/exit" | "/help" | "/tools" | "/session" | "/compress", rest) if !rest.is_empty() => {
                self.tell(&format!("{word} takes no further words; `{rest}` was not understood"))?;
            }
            ("/compress", _) => self.compress()?,
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
        if let Some(mcp_tools) = self.mcp_tools() {
            mcp_tools.settle(&self.cancel, &mut |text| self.output.lock().tell(text));
        }
        let session = &mut self.session;
        self.files.turn(|| drop(session.say(line, None)));
    }

    /// Makes the conversation shorter, and shows what stands for the rest.
    fn compress(&mut self) -> Result<(), Failure> {
        match self.session.compress() {
            Ok(summary) => self.tell(&summary),
            Err(why) => self.tell(&format!("the conversation stays as it is: {why}")),
        }
    }

    /// Tells the hooks of an event of the person's own, or that the person triggers something.
    fn send(&mut self, word: &str, rest: &str) -> Result<(), Failure> {
        let (name, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            let example = format!("{word} deployed {{\"target\": \"staging\"}}");
            return self.tell(&format!("write {word} NAME [JSON], for instance {example}"));
        }
        let data = if data.trim().is_empty() { Ok(Value::Null) } else { serde_json::from_str(data) };
        match data {
            Ok(data) if word == "/trigger" => drop(self.session.trigger(name, data)),
            Ok(data) => drop(self.session.custom(name, data, Some("chat"))),
            Err(error) => self.tell(&format!("{word} {name}: what follows the name is not valid JSON: {error}"))?,
        }
        Ok(())
    }

    /// The hooks, or what `ollm hook` does with some of them; what comes of it counts at once.
    fn hooks(&mut self, rest: &str) -> Result<(), Failure> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => {
                let text = overview(&self.desk.app.borrow(), false);
                self.show(&text)
            }
            ["list", "--long"] => {
                let text = overview(&self.desk.app.borrow(), true);
                self.show(&text)
            }
            ["show" | "enable" | "disable" | "trust" | "untrust", _, ..] => {
                self.command("hook", &words);
                Ok(())
            }
            _ => self.tell("write /hooks, or /hooks show|enable|disable|trust|untrust ID"),
        }
    }

    /// Runs a command of the program as if it had been typed in a shell.
    fn command(&mut self, group: &str, words: &[&str]) {
        let typed: Vec<OsString> = std::iter::once(&group).chain(words).map(OsString::from).collect();
        {
            let mut output = self.output.lock();
            let context = self.lookout.context();
            let done = match arguments::parse(&typed, &mut output) {
                Ok(Some(command)) => crate::command::run(command, &context, &mut output),
                Ok(None) => Ok(OK),
                Err(failure) => Err(failure),
            };
            if let Err(failure) = done {
                output.failure(&failure);
            }
        }
        self.catch_up();
    }

    fn mcp_tools(&self) -> Option<Arc<McpTools>> {
        self.desk.app.borrow().mcp_tools.clone()
    }

    fn tell(&self, text: &str) -> Result<(), Failure> {
        let text = format!("{}\n", escape_for_people(text.trim_end()));
        self.output.lock().text(&text).map(drop)
    }

    /// Shows a table, whose cells hold no control characters.
    fn show(&self, table: &str) -> Result<(), Failure> {
        self.output.lock().text(&format!("{}\n", table.trim_end())).map(drop)
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

    /// The servers of this conversation, or what `ollm mcp` does with one of them.
    fn mcp(&mut self, rest: &str) -> Result<(), Failure> {
        let Some(mcp_tools) = self.mcp_tools() else { return self.tell("there are no servers") };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let done = match words.as_slice() {
            [] | ["list" | "status"] => Ok(()),
            ["start" | "restart", name] => mcp_tools.restart(name),
            ["stop", name] => mcp_tools.stop(name),
            ["login" | "logout" | "trust" | "untrust" | "logs", _, ..] => {
                self.command("mcp", &words);
                return Ok(());
            }
            [name] if !MCP_WORDS.contains(name) => match mcp_tools.prefix(name) {
                Ok(prefix) => return self.tell(&self.tools(&prefix)),
                Err(why) => Err(why),
            },
            _ => Err(format!("write /mcp, /mcp NAME, or /mcp {} NAME", MCP_WORDS.join("|"))),
        };
        match done {
            Ok(()) => self.show(&servers(&mcp_tools.rows())),
            Err(why) => self.tell(&why),
        }
    }

    /// As `ollm ext` does it.
    fn ext(&mut self, rest: &str) -> Result<(), Failure> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => self.command("ext", &["list"]),
            ["enable" | "disable", _, ..] | ["trust" | "info", _] => self.command("ext", &words),
            ["reload"] => {
                let news = self.lookout.reload(self.desk.app);
                self.tell(&news.unwrap_or_else(|| "nothing changed".to_owned()))?;
            }
            [name] if !["enable", "disable", "trust", "info"].contains(name) => self.command("ext", &["info", name]),
            _ => self.tell("write /ext, /ext NAME, /ext enable|disable|trust NAME or /ext reload")?,
        }
        Ok(())
    }

    /// Shows the skills, or says to the model what one of them says.
    fn skill(&mut self, rest: &str) -> Result<(), Failure> {
        let order = rest.strip_prefix("run ").unwrap_or(rest).trim();
        if matches!(order, "" | "list") {
            let text = skill::overview(&self.desk.app.borrow(), &mut self.output.lock());
            return self.show(&text);
        }
        let prompt = skill::ordered(order, &self.desk.app.borrow(), &mut self.output.lock());
        match prompt {
            Ok(prompt) => self.say(&prompt),
            Err(failure) => drop(self.output.lock().failure(&failure)),
        }
        Ok(())
    }

    fn model(&mut self, name: &str) -> Result<(), Failure> {
        if !name.is_empty() {
            match model::open(
                Some(name),
                &ModelConfig::of(&self.desk.app.borrow().config),
                self.desk.app.borrow().context(),
            ) {
                Ok(model) => {
                    if let Some(questions) =
                        self.desk.app.borrow().mcp_tools.as_ref().and_then(|mcp_tools| mcp_tools.questions())
                    {
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
    table(["NAME", "STATE", "TOOLS", "PROBLEM"], rows.iter().cloned())
}
