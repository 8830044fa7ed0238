//! When a hook that was written for another agent runs: its matcher, as a matcher and a condition of ours.

use std::borrow::Cow;

use ollm_condition::Condition;
use ollm_protocol::dialect::agents::home::MatcherForm;
use ollm_protocol::dialect::agents::{AgentDialect, AgentEvent, McpName, Pick};
use ollm_protocol::{EventKind, Matcher, Subject};

use super::rule::Rule;

/// When a hook runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) matcher: Option<String>,
    pub(super) condition: Option<String>,
}

/// What a hook says about when it runs.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Its matcher.
    pub(super) matcher: Option<&'a str>,
    /// What a matcher means.
    pub(super) form: MatcherForm,
    /// The permission rule that a call must fit, too.
    pub(super) rule: Option<&'a str>,
}

/// What an agent compares the matcher of a hook with.
enum Compared {
    /// The name of the tool, or the type of a notification, as our matchers do.
    Subject,
    /// A field of the event.
    Field(&'static str),
    /// Nothing: the matcher is not looked at.
    Nothing,
    /// Something that other agents do not have.
    Other,
}

impl Filter {
    /// The filter of a hook for an event.
    pub(super) fn of(agent: &AgentDialect, event: &AgentEvent, wanted: Wanted<'_>) -> Result<Filter, String> {
        let Wanted { matcher, form, rule } = wanted;
        let matcher = matcher.map(str::trim).filter(|matcher| !matches!(*matcher, "" | "*" | ".*"));
        let mut filter = Filter { matcher: own_tool(event)?, condition: None };
        let mut conditions: Vec<String> = told_apart(agent, event).into_iter().collect();
        match (matcher, compared(agent, event)) {
            (None, _) | (Some(_), Compared::Nothing) => {}
            (Some(matcher), Compared::Subject) => filter.matcher = Some(subject(agent, matcher, form)),
            (Some(matcher), Compared::Field(field)) => conditions.push(field_condition(matcher, form, field)),
            (Some(matcher), Compared::Other) => {
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

    /// What our own matchers and conditions cannot express is not taken over half.
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

/// The tools that an event is about by itself.
fn own_tool(event: &AgentEvent) -> Result<Option<String>, String> {
    match event.pick {
        Pick::Tool(tool) => Ok(Some(tool.to_owned())),
        Pick::Mcp => Ok(Some("mcp__*".to_owned())),
        Pick::Marked(..) => Err("is for a part of an event that has no name elsewhere".to_owned()),
        Pick::Any | Pick::With(_) | Pick::Shaped(_) => Ok(None),
    }
}

fn compared(agent: &AgentDialect, event: &AgentEvent) -> Compared {
    use EventKind as Kind;
    match (event.kind, event.pick) {
        (Kind::BeforeTool | Kind::AfterTool, Pick::Tool(tool)) if Subject::new(event.kind, tool).key() == "shell" => {
            Compared::Field("args.command")
        }
        // Gemini looks at matchers of tools and of triggers only.
        (Kind::Notification, _) if agent.name == "gemini" => Compared::Nothing,
        (Kind::BeforeTool | Kind::AfterTool, Pick::Any | Pick::With(_) | Pick::Shaped(_)) | (Kind::Notification, _) => {
            Compared::Subject
        }
        (Kind::BeforeAgent, _) if agent.name == "goose" => Compared::Field("prompt"),
        (
            Kind::BeforeAgent | Kind::AfterAgent | Kind::BeforeModel | Kind::AfterModel | Kind::BeforeToolSelection,
            _,
        ) => Compared::Nothing,
        (Kind::SessionStart, _) => Compared::Field("source"),
        (Kind::SessionEnd, _) => Compared::Field("reason"),
        (Kind::PreCompress | Kind::PostCompress, _) => Compared::Field("trigger"),
        (Kind::SubagentStart | Kind::SubagentStop, _) => Compared::Field("agent_type"),
        (Kind::FileCreated | Kind::FileEdited | Kind::FileDeleted, _) => Compared::Field("path"),
        _ => Compared::Other,
    }
}

/// The names in a matcher that is a list of them.
fn names(matcher: &str) -> Option<Vec<&str>> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '|' | ',' | ' ');
    matcher.chars().all(plain).then(|| matcher.split(['|', ',']).map(str::trim).collect())
}

fn expression(matcher: &str, form: MatcherForm) -> String {
    match form {
        MatcherForm::Within => matcher.to_owned(),
        MatcherForm::Whole | MatcherForm::Names => format!("^(?:{matcher})$"),
    }
}

/// A matcher of ours. Plain names mean the tool in every agent's vocabulary.
fn subject(agent: &AgentDialect, matcher: &str, form: MatcherForm) -> String {
    match (names(matcher), form) {
        (Some(names), _) => names.join("|"),
        (None, MatcherForm::Names) => named(matcher),
        (None, form) => format!("re:{}", expression(&with_servers(agent, matcher), form)),
    }
}

/// An expression whose names of MCP tools are ours. Those that agents have otherwise are compared as their words are.
fn with_servers<'m>(agent: &AgentDialect, matcher: &'m str) -> Cow<'m, str> {
    match agent.mcp {
        McpName::At => in_names(matcher, |letter| match letter {
            '@' => Some("mcp__"),
            '/' => Some("__"),
            _ => None,
        }),
        McpName::Gemini if matcher.contains("mcp_") => in_names(matcher, |letter| (letter == '_').then_some("_{1,2}")),
        McpName::Colon => matcher.replace("MCP:", "mcp__.+__").into(),
        _ => matcher.into(),
    }
}

/// The expression with letters replaced, but for those in brackets, which stand for sets of letters.
fn in_names(expression: &str, replaced: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    let mut text = String::with_capacity(expression.len());
    let (mut is_set, mut is_escaped) = (false, false);
    for letter in expression.chars() {
        let own = replaced(letter).filter(|_| !is_set);
        // `\/` is the same letter as `/`.
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

/// A name with stars, or tools of a server.
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

/// A condition on a field; where an agent does not tell it, the hook runs.
fn field_condition(matcher: &str, form: MatcherForm, field: &str) -> String {
    let is_text = matches!(field, "args.command" | "prompt" | "path");
    let fits = match names(matcher).filter(|_| !is_text) {
        Some(names) => format!("data.{field} in {}", serde_json::json!(names)),
        None => format!("data.{field}.matches({})", serde_json::json!(expression(matcher, form))),
    };
    format!("(!has(data.{field}) || {fits})")
}

/// What tells events of one kind apart that the agent has two names for.
fn told_apart(agent: &AgentDialect, event: &AgentEvent) -> Option<String> {
    if let Pick::With(field) = event.pick {
        return Some(format!("has(data.{field})"));
    }
    let rival = |other: &&AgentEvent| other.kind == event.kind && matches!(other.pick, Pick::With(_));
    let rival = agent.events.iter().find(rival).filter(|_| event.kind != EventKind::Custom)?;
    let Pick::With(field) = rival.pick else { return None };
    Some(format!("!has(data.{field})"))
}

/// The permission rule that the calls of a hook must fit, too, where its matcher takes in the rule's tool.
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
