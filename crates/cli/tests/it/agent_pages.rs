//! The pages about other agents are written from what is declared about them.

use std::fmt::Write;
use std::fs;

use ollm_protocol::EventKind;
use ollm_protocol::dialect::agents::home::{Form, Home, SettingsSyntax, WrittenForm};
use ollm_protocol::dialect::agents::{AGENTS, AgentDialect, AgentEvent, McpName, Part, Way};
use ollm_protocol::tool::ForeignTool;
use ollm_protocol::tool::table::{FOREIGN, TOOLS};

use crate::documents::root;

#[test]
fn the_pages_about_agents_are_up_to_date() {
    let folder = root().join("docs/agents");
    let mut pages = vec![("README.md".to_owned(), index())];
    pages.extend(AGENTS.iter().map(|agent| (format!("{}.md", agent.name), page(agent))));
    for (name, text) in pages {
        let path = folder.join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == text,
            "docs/agents/{name} is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm --test it pages_about_agents"
        );
    }
}

fn index() -> String {
    let mut text = String::from(
        "# Other agents\n\n`ollm connect` lists the agents there are; `ollm connect AGENT` lets one ask ollm at each of its events, \
         and `ollm disconnect AGENT` ends that. The pages are generated from the declarations in \
         `crates/protocol/src/dialect/`; a test keeps them up to date. [dialects.md](../dialects.md#other-agents) says what \
         becomes of an answer that an agent has no words for.\n\n| agent | page | its hooks are in | checked against |\n|---|---|---|---|\n",
    );
    for agent in AGENTS {
        let (name, title, home) = (agent.name, agent.title, &agent.home);
        let _ = writeln!(text, "| {title} | [{name}]({name}.md) | `~/{}` | {} |", home.user, agent.checked);
    }
    text.push_str(
        "\n## Connect one\n\n```console\n$ ollm connect claude\nClaude Code will ask ollm, by /home/you/.claude/settings.json\n\
         ollm: the line works; Claude Code has not asked yet, which `ollm connect` shows\n$ ollm connect\nAGENT …\n\
         claude    connected …\n…\n$ ollm disconnect claude\nClaude Code does not ask ollm any more\n```\n",
    );
    text.push_str("\n## Tools\n\nWhat hooks written for an agent are told, by our names of the tools.\n\n| tool |");
    let heads: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    let _ = writeln!(text, " {} |\n|---|{}", heads.join(" | "), "---|".repeat(AGENTS.len()));
    for tool in TOOLS {
        let named = |agent: &&AgentDialect| {
            FOREIGN.iter().find(|row| row.agents.contains(&agent.name) && row.tool.name == tool.name)
        };
        let cells: Vec<String> = AGENTS.iter().map(|agent| named(agent).map(told).unwrap_or_default()).collect();
        let _ = writeln!(text, "| `{}` | {} |", tool.name, cells.join(" | "));
    }
    text
}

fn page(agent: &AgentDialect) -> String {
    let home = &agent.home;
    let (name, title) = (agent.name, agent.title);
    let mut text = format!("# ollm and {title}\n\n## Connect\n\n```\nollm connect {name}\n```\n\n");
    text.push_str(&place(agent));
    text.push_str(&recipes(agent, home));
    let _ = write!(text, "\n## What works\n\nChecked against: {}. ", agent.checked);
    let patience = agent.timeout.map_or("unknown".to_owned(), |timeout| format!("{timeout:?}"));
    let _ = writeln!(text, "How long {title} waits by itself: {patience}.\n");
    text.push_str(&table(agent));
    if !agent.tells_files() {
        text.push_str(
            "\nA tool that has written a file fires `file_edited` as well. That a file is new is only known from a patch, which \
             fires `file_created` and `file_deleted` too.\n",
        );
    }
    text.push_str("\n## What does not\n\n");
    text.push_str(&limits(agent));
    let _ = write!(
        text,
        "\n## Remove it\n\n```\nollm disconnect {name}\n```\n\ntakes out our entries and nothing else. A file that we made goes; an \
         unchanged one gets back its old content, to the letter.\n"
    );
    text
}

/// Where the entries go, and what a person has to do beside it.
fn place(agent: &AgentDialect) -> String {
    let (title, home) = (agent.title, &agent.home);
    let mut text = match home.form {
        Form::Own(_) => format!("writes files of our own into `~/{}`", home.user),
        Form::Groups | Form::Flat(_) => format!("adds one entry per event to `~/{}`", home.user),
    };
    if let Some(variable) = home.variable {
        let _ = write!(text, " (`{variable}` moves it)");
    }
    if let Some(project) = home.project {
        let _ = write!(text, "; with `--project` to `{project}` of the project, for everybody who works in it");
    }
    text.push_str(". `--dry-run` shows the difference first.");
    if home.project.is_some() {
        // A plugin keeps what we say to itself.
        let told = if home.written.form == WrittenForm::Code { "" } else { ", and is told so when a session begins" };
        let _ = write!(text, " Who has no `ollm` works in that project without hooks{told}.");
    }
    text.push('\n');
    if let Some(review) = home.review {
        let _ = writeln!(text, "\n{review}.");
    }
    for foreign in home.also_reads {
        let other = AGENTS.iter().find(|other| other.name == foreign.agent).unwrap();
        let user = foreign.user.then(|| format!("`~/{}`", other.home.user));
        let project =
            other.home.project.filter(|_| foreign.project).map(|project| format!("`{project}` of the project"));
        let files: Vec<String> = user.into_iter().chain(project).collect();
        let when = foreign.when.map(|when| format!(", {when}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "\n{title} also runs the hooks of {} in {}{when}. If both ask ollm, `ollm connect` says `duplicated`, and how that ends.",
            other.title,
            files.join(" and ")
        );
    }
    let refuses = |what: &str| format!("\n{title} does not read a settings file {what}; `ollm connect` says so.\n");
    match home.taste {
        SettingsSyntax::ANYTHING => {}
        SettingsSyntax { mark: false, comments: false, .. } => {
            text.push_str(&refuses("with comments, trailing commas or a byte order mark"));
        }
        SettingsSyntax { mark: false, .. } => text.push_str(&refuses("with trailing commas or a byte order mark")),
        _ => text.push_str(&refuses("with comments or trailing commas")),
    }
    if let Some(keys) = home.taste.keys {
        text.push_str(&refuses(&format!("with other keys at the top than `{}`", keys.join("` and `"))));
    }
    text.push_str("\n`ollm connect` shows when it last asked.\n");
    text
}

fn recipes(agent: &AgentDialect, home: &Home) -> String {
    let mut text = String::from(
        "\n## Three recipes\n\nRefuse forced pushes, in every agent that is connected:\n\n```\nollm hook new no-force\nollm hook test no-force\n```\n\n\
         Keep a log of tool calls:\n\n```\nollm hook new calls --for logging\n```\n\n",
    );
    let (title, name) = (agent.title, agent.name);
    if home.written.form == WrittenForm::Code {
        let _ = writeln!(text, "Hooks that were written for {title} are code, which only it can run.");
        return text;
    }
    let files = |files: &[&str]| files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    let _ = write!(
        text,
        "Take over the hooks that {title} has already; they then run under every agent, each still spoken to as before:\n\n\
         ```\nollm import {name}\n```\n\nThey are looked for in your home in {}; with `--project` in the project in {}.\n\n\
         Or have them read where they are, so that every change counts at once:\n\n```\nollm config set hooks.read {name}\n```\n\n\
         {title} goes on to run them by itself, so they do not run a second time when it asks. Those of a project need approval, as all of its hooks do.\n",
        files(home.written.user),
        files(home.written.project)
    );
    text
}

fn table(agent: &AgentDialect) -> String {
    let mut text = String::from(
        "| event | is | asked | allow | ask | block | halt | modify | context | result | message | waits |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for event in agent.events {
        let can = event.can;
        let result = if can.tools.is_possible() { can.tools } else { can.result };
        let ways = [can.allow, can.ask, can.block, can.halt, can.modify, can.context, result, can.message].map(shown);
        let waits = event.timeout.map(|timeout| format!("{timeout:?}")).unwrap_or_default();
        let asked = match event.asked_as {
            Some(name) if agent.asks_at(event) => format!("by {name}"),
            _ if agent.asks_at(event) => "yes".to_owned(),
            _ => String::new(),
        };
        let _ = writeln!(text, "| {} | {} | {asked} | {} | {waits} |", event.name, event.kind.name(), ways.join(" | "));
    }
    text
}

/// What a person who knows hooks would expect and does not get.
fn limits(agent: &AgentDialect) -> String {
    let asked = || agent.events.iter().filter(|event| agent.asks_at(event));
    let mut text = String::new();
    let mut say = |what: &str, lacks: &dyn Fn(&AgentEvent) -> bool| {
        let mut names: Vec<&str> = asked().filter(|event| lacks(event)).map(|event| event.name).collect();
        names.dedup();
        if !names.is_empty() {
            let _ = writeln!(text, "- {what}: {}.", names.join(", "));
        }
    };
    say("Hooks only look, and cannot stop anything", &|event| {
        !event.can.block.is_possible() && !event.can.halt.is_possible()
    });
    let tool = |event: &AgentEvent| event.kind.name() == "before_tool";
    say("A change of arguments cannot be made and becomes a refusal that says so", &|event| {
        tool(event) && !event.can.modify.is_possible()
    });
    say("A question to the person cannot be put and becomes a refusal that says so", &|event| {
        tool(event) && !event.can.ask.is_possible()
    });
    say("Context cannot be added", &|event| {
        matches!(event.kind.name(), "before_agent" | "session_start") && !event.can.context.is_possible()
    });
    if agent.mcp == McpName::Colon {
        text.push_str(
            "- It does not name the server of a tool, so a matcher for a tool of one server, such as `mcp__git__push`, fits that tool of \
             every server, and one for all tools of a server fits every tool of a server.\n",
        );
    }
    match agent.tells_news_at() {
        Some(EventKind::SessionStart) => {}
        Some(_) => text.push_str("- Of hooks that failed or did not run you read with the first prompt of a session.\n"),
        None => text.push_str(
            "- It shows nothing of hooks that failed or did not run: `ollm connect`, `ollm doctor` and `ollm trace` do.\n",
        ),
    }
    let numbers = agent.events.iter().any(|event| agent.numbers_calls_at(event));
    let again = match (agent.stamps_events, numbers) {
        (true, _) => "",
        (false, true) => {
            "- Asked by more than one file, hooks of tool calls run once, those of other events each time.\n"
        }
        (false, false) => "- Asked by more than one file, hooks run each time: it does not number its tool calls.\n",
    };
    text.push_str(again);
    let unasked: Vec<&str> =
        agent.events.iter().filter(|event| !agent.asks_at(event)).map(|event| event.name).collect();
    if !unasked.is_empty() {
        let mut unasked = unasked;
        unasked.dedup();
        let _ = writeln!(text, "- Not asked at, though `--from {}` reads them: {}.", agent.name, unasked.join(", "));
    }
    text
}

/// A tool and the arguments that have other names than ours.
fn told(row: &ForeignTool) -> String {
    let args: Vec<&str> = row.args.iter().chain(row.data).map(|(theirs, _)| *theirs).collect();
    if args.is_empty() { format!("`{}`", row.name) } else { format!("`{}` ({})", row.name, args.join(", ")) }
}

/// The field that decides.
fn shown(way: Way) -> String {
    match way {
        Way::No => String::new(),
        Way::Status => "exit 2".to_owned(),
        Way::Text => "text".to_owned(),
        Way::Json(form) => match form.first() {
            Some((path, Part::Word(word))) => format!("`{}: {word}`", path.rsplit('.').next().unwrap_or(path)),
            Some((path, Part::Flag(flag))) => format!("`{path}: {flag}`"),
            Some((path, _)) => format!("`{}`", path.strip_prefix("hookSpecificOutput.").unwrap_or(path)),
            None => String::new(),
        },
    }
}
