//! Translates when another agent's hook runs: its matcher becomes a matcher and a condition of ours.

use std::borrow::Cow;

use ollm_condition::Condition;
use ollm_protocol::dialect::agents::home::MatcherForm;
use ollm_protocol::dialect::agents::{AgentDialect, AgentEvent, McpName, Pick};
use ollm_protocol::tool::Declaration;
use ollm_protocol::tool::declared;
use ollm_protocol::tool::table::FOREIGN;
use ollm_protocol::{EventKind, Matcher, Subject};

use super::rule::Rule;

/// When a hook runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) matcher: Option<String>,
    pub(super) condition: Option<String>,
}

/// The rules in a hook about when it runs.
#[derive(Clone, Copy)]
pub(super) struct HookFilter<'a> {
    /// Its matcher.
    pub(super) matcher: Option<&'a str>,
    /// The meaning of a matcher.
    pub(super) form: MatcherForm,
    /// The permission rule that a call must fit, too.
    pub(super) rule: Option<&'a str>,
}

/// What an agent compares a hook's matcher with.
enum MatcherSubject {
    /// The name of the tool, or the type of a notification, as our matchers do.
    Subject,
    /// A field of the event.
    Field(&'static str),
    /// Nothing: the agent ignores the matcher.
    Nothing,
    /// A value that other agents do not have.
    Other,
}

impl Filter {
    /// The filter of a hook for an event.
    pub(super) fn of(agent: &AgentDialect, event: &AgentEvent, wanted: HookFilter<'_>) -> Result<Filter, String> {
        let HookFilter { matcher, form, rule } = wanted;
        let matcher = matcher.map(str::trim).filter(|matcher| !matches!(*matcher, "" | "*" | ".*"));
        let mut filter = Filter { matcher: own_tool(event)?, condition: None };
        let mut conditions: Vec<String> = told_apart(agent, event).into_iter().collect();
        match (matcher, compared(agent, event)) {
            (None, _) | (Some(_), MatcherSubject::Nothing) => {}
            (Some(matcher), MatcherSubject::Subject) => {
                let form = match form {
                    MatcherForm::Within if event.kind.call_fields().is_none() => MatcherForm::NamesOrWithin,
                    form => form,
                };
                filter.matcher = Some(subject(agent, matcher, form));
            }
            (Some(matcher), MatcherSubject::Field(field)) => conditions.push(field_condition(matcher, form, field)),
            (Some(matcher), MatcherSubject::Other) => {
                return Err(format!("has the matcher `{matcher}`, which means nothing at events of other agents"));
            }
        }
        if let Some(rule) = rule {
            let rule = ruled(rule, event, filter.matcher.as_deref())?;
            filter.matcher = Some(rule.tool);
            conditions.extend(rule.condition);
        }
        filter.condition = (!conditions.is_empty()).then(|| conditions.join(" && "));
        filter.checked()
    }

    /// Refuses rules that our matchers and conditions can only express in part.
    fn checked(self) -> Result<Filter, String> {
        if let Some(Err(error)) = self.matcher.as_deref().map(Matcher::parse) {
            return Err(format!("has a matcher that cannot be read here: {error}"));
        }
        let condition = self.condition.as_deref().map(Condition::parse);
        let faulty = condition.and_then(|parsed| match parsed {
            Ok(condition) => condition.check().err().map(|fault| fault.to_string()),
            Err(error) => Some(error.to_string()),
        });
        match faulty {
            Some(why) => Err(format!("has a matcher that cannot be read here: {why}")),
            None => Ok(self),
        }
    }
}

/// The tools that an agent's event is about.
fn own_tool(event: &AgentEvent) -> Result<Option<String>, String> {
    match event.pick {
        Pick::Tool(tool) => Ok(Some(tool.to_owned())),
        Pick::Mcp => Ok(Some("mcp__*".to_owned())),
        Pick::Marked(..) => Err("is for a part of an event that has no name elsewhere".to_owned()),
        Pick::Any | Pick::With(_) | Pick::Shaped(_) => Ok(None),
    }
}

fn compared(agent: &AgentDialect, event: &AgentEvent) -> MatcherSubject {
    use EventKind as ConfigKind;
    match (event.kind, event.pick) {
        (ConfigKind::BeforeTool | ConfigKind::AfterTool, Pick::Tool(tool))
            if Subject::new(event.kind, tool).key() == "shell" =>
        {
            MatcherSubject::Field("args.command")
        }
        // Gemini reads matchers only for tools and triggers.
        (ConfigKind::Notification, _) if agent.name == "gemini" => MatcherSubject::Nothing,
        (ConfigKind::BeforeTool | ConfigKind::AfterTool, Pick::Any | Pick::With(_) | Pick::Shaped(_))
        | (ConfigKind::Notification | ConfigKind::ApprovalRequest, _) => MatcherSubject::Subject,
        (ConfigKind::BeforeAgent, _) if agent.name == "goose" => MatcherSubject::Field("prompt"),
        (
            ConfigKind::BeforeAgent
            | ConfigKind::AfterAgent
            | ConfigKind::BeforeModel
            | ConfigKind::AfterModel
            | ConfigKind::BeforeToolSelection,
            _,
        ) => MatcherSubject::Nothing,
        (ConfigKind::SessionStart, _) => MatcherSubject::Field("source"),
        (ConfigKind::SessionEnd, _) => MatcherSubject::Field("reason"),
        (ConfigKind::PreCompress | ConfigKind::PostCompress, _) => MatcherSubject::Field("trigger"),
        (ConfigKind::SubagentStart | ConfigKind::SubagentStop, _) => MatcherSubject::Field("agent_type"),
        (ConfigKind::FileCreated | ConfigKind::FileEdited | ConfigKind::FileDeleted, _) => {
            MatcherSubject::Field("path")
        }
        _ => MatcherSubject::Other,
    }
}

/// The names in a matcher that is a list of names.
fn names(matcher: &str) -> Option<Vec<&str>> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '|' | ',' | ' ');
    matcher.chars().all(plain).then(|| matcher.split(['|', ',']).map(str::trim).collect())
}

fn expression(matcher: &str, form: MatcherForm) -> String {
    match form {
        MatcherForm::NamesOrWithin | MatcherForm::Within => matcher.to_owned(),
        MatcherForm::Whole | MatcherForm::Names => format!("^(?:{matcher})$"),
    }
}

/// Makes a matcher of ours. Plain names mean the tool in every agent's vocabulary.
fn subject(agent: &AgentDialect, matcher: &str, form: MatcherForm) -> String {
    match (names(matcher), form) {
        (Some(names), MatcherForm::Within) if !names.iter().all(|name| means_one(agent, name)) => {
            format!("re:{matcher}")
        }
        (Some(names), _) => {
            let ours = |name: &&str| agent.server_tool(name).unwrap_or_else(|| (*name).to_owned());
            names.iter().map(ours).collect::<Vec<_>>().join("|")
        }
        (None, MatcherForm::Names) => named(matcher),
        (None, form) => format!("re:{}", expression(&with_servers(agent, matcher), form)),
    }
}

/// Whether a word that may match anywhere in tool names fits exactly one tool of an agent.
fn means_one(agent: &AgentDialect, word: &str) -> bool {
    let others = |tool: &Declaration| {
        let found = FOREIGN.iter().filter(|row| row.agents.contains(&agent.name) && row.name.contains(word));
        found.filter(|row| !row.tool.fits(tool)).count()
    };
    word.starts_with("mcp_") || declared(word).is_some_and(|tool| others(tool) == 0)
}

/// An expression with our names of MCP tools. Other agents' forms of these names are compared word by word.
fn with_servers<'m>(agent: &AgentDialect, matcher: &'m str) -> Cow<'m, str> {
    match agent.mcp {
        McpName::At => in_names(matcher, |letter| match letter {
            '@' => Some("mcp__"),
            '/' => Some("__"),
            _ => None,
        }),
        McpName::Gemini if matcher.contains("mcp_") => in_names(matcher, |letter| (letter == '_').then_some("_{1,2}")),
        McpName::Colon => matcher.replace("MCP:", "mcp__.+__").into(),
        McpName::Joined(signs) if matcher.contains(signs) => {
            let ours = matcher.replace(signs, if signs == "-" { "-" } else { "__" });
            let ours = in_names(&ours, |letter| match letter {
                '-' if signs == "-" => Some("(?:-|__)"),
                '^' => Some("^(?:mcp__)?"),
                _ => None,
            });
            format!("(?:mcp__)?(?:{ours})").into()
        }
        _ => matcher.into(),
    }
}

/// The expression with letters replaced, except in brackets, which are sets of letters.
fn in_names(expression: &str, replaced: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    let mut text = String::with_capacity(expression.len());
    let (mut is_set, mut is_escaped) = (false, false);
    for letter in expression.chars() {
        let own = replaced(letter).filter(|_| !is_set);
        // `\/` is the same as `/`.
        if is_escaped && own.is_some() {
            text.pop();
        }
        match own {
            Some(other) => text.push_str(other),
            None => text.push(letter),
        }
        if !is_escaped {
            is_set = letter == '[' || (is_set && letter != ']');
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    text.into()
}

/// A name with stars, or the tools of a server.
fn named(matcher: &str) -> String {
    let name = match matcher.strip_prefix('@').map(|server| server.split_once('/').ok_or(server)) {
        None => matcher.to_owned(),
        Some(Err("builtin")) => "builtin:*".to_owned(),
        Some(Err(server)) => format!("mcp__{server}__*"),
        Some(Ok((server, tool))) => format!("mcp__{server}__{tool}"),
    };
    let is_start = !name.trim_end_matches('*').contains('*');
    if is_start { name } else { format!("re:^{}$", name.replace('*', ".*")) }
}

/// A condition on a field. If an agent does not send the field, the hook runs.
fn field_condition(matcher: &str, form: MatcherForm, field: &str) -> String {
    let is_text = matches!(field, "args.command" | "prompt" | "path");
    let fits = match names(matcher).filter(|_| !is_text) {
        Some(names) => format!("data.{field} in {}", serde_json::json!(with_others(field, names))),
        None => format!("data.{field}.matches({})", serde_json::json!(expression(matcher, form))),
    };
    format!("(!has(data.{field}) || {fits})")
}

/// Copilot has its own word for a session that just started.
const STARTS: &[&str] = &["startup", "new"];

/// The values of a field, with other agents' words for the same.
fn with_others<'n>(field: &str, mut names: Vec<&'n str>) -> Vec<&'n str> {
    if field == "source" && names.iter().any(|name| STARTS.contains(name)) {
        names.extend(STARTS.iter().filter(|word| !names.contains(word)).copied().collect::<Vec<_>>());
    }
    names
}

/// A condition that distinguishes two events of the agent that are one kind for us.
fn told_apart(agent: &AgentDialect, event: &AgentEvent) -> Option<String> {
    if let Pick::With(field) = event.pick {
        return Some(format!("has(data.{field})"));
    }
    let rival = |other: &&AgentEvent| other.kind == event.kind && matches!(other.pick, Pick::With(_));
    let rival = agent.events.iter().find(rival).filter(|_| event.kind != EventKind::Custom)?;
    let Pick::With(field) = rival.pick else { return None };
    Some(format!("!has(data.{field})"))
}

/// The permission rule that a hook's calls must also fit, if the hook's matcher includes the rule's tool.
fn ruled(text: &str, event: &AgentEvent, matcher: Option<&str>) -> Result<Rule, String> {
    if !matches!(event.kind, EventKind::BeforeTool | EventKind::AfterTool | EventKind::ApprovalRequest) {
        return Err("has a permission rule in `if` at an event without a tool, where it never runs".to_owned());
    }
    let takes = |rule: &Rule| matcher.is_none_or(|matcher| matcher.split('|').any(|name| name == rule.tool));
    let rule = Rule::read(text).filter(|_| event.kind != EventKind::ApprovalRequest).filter(takes);
    rule.ok_or_else(|| {
        format!("has the permission rule `{text}` in `if`, which only its agent can judge; write it as a matcher and a condition")
    })
}
