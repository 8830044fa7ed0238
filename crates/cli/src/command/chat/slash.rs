//! The commands of the chat.

use std::ffi::OsString;
use std::sync::Arc;

use ollm_agent::Approval;
use ollm_app::model::{self, ModelConfig};
use ollm_app::servers::McpTools;
use ollm_app::session::{Resume, no_transcript, sessions};
use ollm_protocol::nearest;
use ollm_protocol::units::counted;
use ollm_store::{escape_for_people, one_line};
use serde_json::Value;

use super::super::hook::{self, overview};
use super::super::skill;
use super::{After, Chat, pick_session};
use crate::arguments;
use crate::ask::Asker;
use crate::display::broken;
use crate::error::{Failure, OK};
use crate::table::{columns, table, width};
use crate::wrap::hanging;

/// The kind of name in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    None,
    Approvals,
    Extensions,
    Hooks,
    Models,
    Servers,
    Sessions,
    Skills,
}

/// One way to use a command. Names are in capitals, optional parts in brackets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlashCommand {
    pub(crate) usage: &'static str,
    pub(crate) help: &'static str,
    pub(crate) names: Names,
}

const fn row(usage: &'static str, help: &'static str, names: Names) -> SlashCommand {
    SlashCommand { usage, help, names }
}

/// The commands: for the list of `/help`, for Tab, and for suggestions after a misspelling.
pub(crate) const COMMANDS: &[SlashCommand] = &[
    row("/hooks", "the hooks there are, and whether they may run", Names::None),
    row("/hooks show|enable|disable|trust|untrust ID", "what `ollm hook` does with one of them", Names::Hooks),
    row("/mcp", "the MCP servers, and how they are", Names::None),
    row("/mcp NAME", "the tools of one of them", Names::Servers),
    row("/mcp start|stop|restart NAME", "", Names::Servers),
    row("/mcp login|logout|trust|untrust|logs NAME", "", Names::Servers),
    row("/ext", "the extensions, and whether they are on", Names::None),
    row("/ext NAME", "what one of them is and brings", Names::Extensions),
    row("/ext enable|disable|trust NAME", "", Names::Extensions),
    row("/ext reload", "read everything anew (changed files are noticed before each turn)", Names::None),
    row("/skill", "the skills of the extensions that are on", Names::None),
    row("/skill NAME [KEY=VALUE …]", "say what a skill says", Names::Skills),
    row("/tools", "the tools the model has", Names::None),
    row("/model [NAME]", "the model, or another one", Names::Models),
    row("/approval [MODE]", "when you are asked before a tool runs", Names::Approvals),
    row("/compress", "make this conversation shorter, with a summary by the model", Names::None),
    row("/clear", "end this conversation and begin a new one", Names::None),
    row("/resume [ID]", "go on with an earlier conversation", Names::Sessions),
    row("/session", "this conversation", Names::None),
    row("/trigger NAME [JSON]", "tell the hooks of user_triggered", Names::None),
    row("/emit NAME [JSON]", "tell the hooks of an event of your own", Names::None),
    row("/help", "this list", Names::None),
    row("/quit", "leave (as Ctrl-D does)", Names::None),
];

/// The column of the commands' descriptions.
const HELP_COLUMN: usize = 29;

/// The list of commands, for a screen of this width.
fn help(width: usize) -> String {
    let line = |row: &SlashCommand| {
        let modes = if row.names == Names::Approvals { format!(": {}", approvals()) } else { String::new() };
        format!("{}\n", hanging(row.usage, &format!("{}{modes}", row.help), HELP_COLUMN, width))
    };
    COMMANDS.iter().map(line).collect()
}

/// The approval modes, for people.
fn approvals() -> String {
    Approval::ALL.map(|(name, _)| name).join(", ")
}

/// The first words of commands.
fn first_words() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter_map(|row| row.usage.split_whitespace().next())
}

/// The words that may follow a command, without names.
fn words_after(command: &str) -> Vec<&'static str> {
    let rows = COMMANDS.iter().map(|row| row.usage.split_whitespace().collect::<Vec<_>>());
    let second = rows.filter(|usage| usage.first() == Some(&command)).filter_map(|usage| usage.get(1).copied());
    let words = second.flat_map(|part| part.split('|'));
    words.filter(|word| word.chars().all(|char| char.is_ascii_lowercase())).collect()
}

/// How to use a command, in one line, with suggestions for the misspelled word.
fn usages(command: &str, word: &str) -> String {
    if let Some(meant) = nearest(word, words_after(command)).filter(|meant| *meant != word) {
        return format!("there is no `{command} {word}`; did you mean `{command} {meant}`?");
    }
    let own = COMMANDS.iter().filter(|row| row.usage.split_whitespace().next() == Some(command));
    format!("write {}", own.map(|row| row.usage).collect::<Vec<_>>().join(", "))
}

/// Descriptions in a table are cut to this many characters.
const GIST: usize = 80;

impl Chat<'_, '_> {
    /// Handles one input; returns the next step.
    pub(super) fn take(&mut self, line: &str) -> Result<After, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => {}
            ("/quit" | "/exit", "") => return Ok(After::Leave),
            ("/clear", "") => return Ok(After::Anew(None)),
            ("/resume", id) => return self.resume(id),
            ("/help", "") => self.tell(&help(width()))?,
            ("/tools", "") => self.tell(&self.tools(""))?,
            ("/hooks", rest) => self.hooks(rest)?,
            ("/mcp", rest) => self.mcp(rest)?,
            ("/ext", rest) => self.ext(rest)?,
            ("/skill" | "/skills", rest) => self.skill(rest)?,
            ("/model", name) => self.model(name)?,
            ("/approval", mode) => self.approval(mode)?,
            ("/trigger" | "/emit", rest) => self.send(word, rest)?,
            ("/quit" | "/exit" | "/clear" | "/help" | "/tools" | "/session" | "/compress", rest)
                if !rest.is_empty() =>
            {
                self.tell(&format!("{word} takes no further words; `{rest}` was not understood"))?;
            }
            ("/compress", _) => self.compress()?,
            ("/session", _) => {
                self.tell(&format!("{}  {}", self.id, counted(self.session.messages().len(), "message")))?;
            }
            // A path is no command.
            _ if word.starts_with('/') && !word.get(1..).is_some_and(|rest| rest.contains('/')) => {
                self.tell(&unknown(word))?;
            }
            _ => self.say(line),
        }
        Ok(After::More)
    }

    /// Resumes an earlier conversation: the named one, or one that the person picks.
    fn resume(&mut self, id: &str) -> Result<After, Failure> {
        let picked = if id.is_empty() {
            let asker = self.output.lock().asker().clone();
            pick_session(&asker, &self.watcher.context())
        } else {
            let loaded = ollm_agent::load(&sessions(&self.watcher.context()), id);
            let found = loaded.map_err(|error| no_transcript(&error, &self.watcher.context()).into());
            found.map(|saved| Some(saved.header.id))
        };
        match picked {
            Ok(Some(id)) if id == self.id => self.tell("that is this conversation").map(|()| After::More),
            Ok(Some(id)) => Ok(After::Anew(Some(Resume::Id(id)))),
            Ok(None) => Ok(After::More),
            Err(failure) => {
                self.output.lock().failure(&failure);
                Ok(After::More)
            }
        }
    }

    /// Sets when the person is asked before a tool runs.
    fn approval(&mut self, mode: &str) -> Result<(), Failure> {
        let found = Approval::ALL.iter().find(|(name, _)| *name == mode);
        match found {
            Some((_, approval)) => {
                self.session.set_approval(*approval);
                self.options.approval = *approval;
            }
            None if mode.is_empty() => {}
            None => return self.tell(&format!("there is no approval mode `{mode}`; there are {}", approvals())),
        }
        self.tell(self.session.approval().name())
    }

    /// Sends a line to the model, with the tools of all servers that could be started.
    fn say(&mut self, line: &str) {
        if let Some(mcp_tools) = self.mcp_tools() {
            mcp_tools.settle(&self.cancel, &mut |text| self.output.lock().tell(text));
        }
        let session = &mut self.session;
        self.files.turn(|| drop(session.say(line, None)));
    }

    /// Shortens the conversation, and shows the summary of the rest.
    fn compress(&mut self) -> Result<(), Failure> {
        match self.session.compress() {
            Ok(summary) => self.tell(&summary),
            Err(why) => self.tell(&format!("the conversation stays unchanged: {why}")),
        }
    }

    /// Sends a custom event to the hooks, or triggers hooks.
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

    /// Lists the hooks, or runs `ollm hook` for some of them; changes count at once.
    fn hooks(&mut self, rest: &str) -> Result<(), Failure> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => {
                let text = overview(&self.hooks_context.app.read(), false);
                self.show(&text)
            }
            ["list", "--long"] => {
                let text = overview(&self.hooks_context.app.read(), true);
                self.show(&text)
            }
            ["show", id] => {
                let mut output = self.output.lock();
                if let Err(failure) = hook::show::with(&self.hooks_context.app.read(), id, false, &mut output) {
                    output.failure(&failure);
                }
                Ok(())
            }
            [word, _, ..] if words_after("/hooks").contains(word) => {
                self.command("hook", &words);
                Ok(())
            }
            [word, ..] => self.tell(&usages("/hooks", word)),
        }
    }

    /// Runs a command of the program as if it was typed in a shell.
    fn command(&mut self, group: &str, words: &[&str]) {
        let typed: Vec<OsString> = std::iter::once(&group).chain(words).map(OsString::from).collect();
        {
            let mut output = self.output.lock();
            let context = self.watcher.context();
            let done = match arguments::parse(&typed, &mut output) {
                Ok(Some(command)) => crate::command::run(command, &context, &mut output),
                Ok(None) => Ok(OK),
                Err(failure) => Err(failure),
            };
            if let Err(failure) = done {
                output.failure(&failure);
            }
        }
        self.reload();
    }

    fn mcp_tools(&self) -> Option<Arc<McpTools>> {
        self.hooks_context.app.read().mcp_tools.clone()
    }

    fn tell(&self, text: &str) -> Result<(), Failure> {
        let text = escape_for_people(text.trim_end());
        let is_plain = matches!(self.output.lock().asker(), Asker::Lines(..));
        // The panel breaks lines itself, because its size may change.
        if is_plain { self.show(&broken(&text)) } else { self.show(&text) }
    }

    /// Shows a table, whose cells contain no control characters.
    fn show(&self, table: &str) -> Result<(), Failure> {
        self.output.lock().text(&format!("{}\n", table.trim_end())).map(drop)
    }

    /// The tools whose names have this prefix.
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

    /// Lists the servers of this conversation, or runs `ollm mcp` for one of them.
    fn mcp(&mut self, rest: &str) -> Result<(), Failure> {
        let Some(mcp_tools) = self.mcp_tools() else { return self.tell("there are no servers") };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let done = match words.as_slice() {
            [] | ["list" | "status"] => Ok(()),
            ["start" | "restart", name] => mcp_tools.restart(name),
            ["stop", name] => mcp_tools.stop(name),
            [word, _, ..] if words_after("/mcp").contains(word) => {
                self.command("mcp", &words);
                return Ok(());
            }
            [name] if !words_after("/mcp").contains(name) => match mcp_tools.prefix(name) {
                Ok(prefix) => return self.tell(&self.tools(&prefix)),
                Err(why) => Err(why),
            },
            [word, ..] => Err(usages("/mcp", word)),
        };
        match done {
            Ok(()) => self.show(&servers(&mcp_tools.rows())),
            Err(why) => self.tell(&why),
        }
    }

    /// Runs `ollm ext`.
    fn ext(&mut self, rest: &str) -> Result<(), Failure> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => self.command("ext", &["list"]),
            ["info", _] => self.command("ext", &words),
            ["reload"] => {
                let news = self.watcher.reload(self.hooks_context.app);
                self.tell(&news.unwrap_or_else(|| "nothing changed".to_owned()))?;
            }
            ["reload", ..] => self.tell(&usages("/ext", ""))?,
            [word, _, ..] if words_after("/ext").contains(word) => self.command("ext", &words),
            [name] if !words_after("/ext").contains(name) && *name != "info" => self.command("ext", &["info", name]),
            [word, ..] => self.tell(&usages("/ext", word))?,
        }
        Ok(())
    }

    /// Lists the skills, or sends the prompt of one to the model.
    fn skill(&mut self, rest: &str) -> Result<(), Failure> {
        let order = rest.strip_prefix("run ").unwrap_or(rest).trim();
        if matches!(order, "" | "list") {
            let text = skill::overview(&self.hooks_context.app.read(), &mut self.output.lock());
            return self.show(&text);
        }
        let prompt = skill::ordered(order, &self.hooks_context.app.read(), &mut self.output.lock());
        match prompt {
            Ok(prompt) => self.say(&prompt),
            Err(failure) => drop(self.output.lock().failure(&failure)),
        }
        Ok(())
    }

    fn model(&mut self, name: &str) -> Result<(), Failure> {
        // Only file names contain spaces.
        if name.contains(char::is_whitespace) && !name.starts_with("replay:") {
            return self.tell(&usages("/model", ""));
        }
        if !name.is_empty() {
            match model::open(
                Some(name),
                &ModelConfig::of(&self.hooks_context.app.read().config),
                self.hooks_context.app.read().context(),
            ) {
                Ok(model) => {
                    if let Some(questions) =
                        self.hooks_context.app.read().mcp_tools.as_ref().and_then(|mcp_tools| mcp_tools.questions())
                    {
                        questions.set_model(name);
                    }
                    self.session.set_model(model);
                    self.options.model = Some(name.to_owned());
                }
                Err(failure) => return self.tell(&failure.message),
            }
        }
        self.tell(self.session.model())
    }
}

/// The message for an unknown command, with suggestions.
fn unknown(word: &str) -> String {
    match nearest(word, first_words()) {
        Some(meant) => format!("there is no command {word}; did you mean {meant}? /help lists them all"),
        None => format!("there is no command {word}\n{}", help(width())),
    }
}

fn servers(rows: &[[String; 4]]) -> String {
    if rows.is_empty() {
        return "there are no servers; `ollm mcp add` declares one".to_owned();
    }
    table(["NAME", "STATE", "TOOLS", "PROBLEM"], rows.iter().cloned())
}
