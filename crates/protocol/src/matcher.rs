//! Which subjects a hook cares about: `*`, exact names, `prefix*`, lists with `|`, `builtin:*`, and `re:` expressions.
//!
//! A tool has a name in each agent's vocabulary. A matcher that fits one of these names fits the tool, under every
//! agent. Agents join the server and the tool of an MCP call by different signs. So the signs, and the place where the
//! server ends, do not matter in any name that the table of tools does not have.

use std::borrow::Cow;

use regex_lite::{Regex, RegexBuilder};

use crate::event::EventKind;
use crate::tool::table::TOOLS;
use crate::tool::{Declaration, declared};

/// The longest expression; longer ones take too long to compile at every start.
const LONGEST_EXPRESSION: usize = 10_000;
/// The server name in calls whose agent does not name the server.
pub(crate) const UNNAMED_SERVER: &str = "unknown";
/// The beginning of a tool's name in the words of an agent that does not name the server.
const ANY_SERVER: &str = "MCP:";
/// The beginning of a normalised MCP name.
const MCP: &str = "mcp-";
/// The most ways of splitting an MCP name that are tried for an expression.
const MOST_PARTINGS: usize = 16;

/// A compiled matcher.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Matches everything, including events without a subject.
    Any,
    /// Matches a subject that fits one of the patterns.
    List(Vec<Pattern>),
    /// Matches a subject that contains a match of the expression.
    Expression(Regex),
}

/// One alternative of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this name.
    Exact(String),
    /// Every name with this prefix.
    Prefix(String),
    /// Every tool that does not come from an MCP server.
    Builtin,
}

/// The subject of matchers: a tool with all its names, a notification's type, a custom event's name.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    name: &'a str,
    tool: Option<&'static Declaration>,
    is_call: bool,
}

impl<'a> Subject<'a> {
    /// The subject of an event of this kind.
    pub fn new(kind: EventKind, name: &'a str) -> Subject<'a> {
        let is_call = kind.call_fields().is_some();
        Subject { name, tool: is_call.then(|| declared(name)).flatten(), is_call }
    }

    /// The index keys of hooks for exactly this subject, as [`Subject::key`] makes them.
    pub fn keys(self) -> impl Iterator<Item = Cow<'a, str>> {
        let wanted = self.tool.into_iter().flat_map(Declaration::wanted_as).map(|tool| Cow::Borrowed(tool.name));
        let unknown = self.tool.is_none().then(|| self.key());
        unknown.into_iter().chain(wanted)
    }

    /// One key for all names of the same tool.
    pub fn key(self) -> Cow<'a, str> {
        match self.tool {
            Some(tool) => tool.name.into(),
            None => self.plain().map_or(Cow::Borrowed(self.name), |name| Cow::Owned(format!("{MCP}{name}"))),
        }
    }

    /// Every name to compare with the prefixes of matchers, as [`prefix_key`] makes them.
    pub fn beginnings(self) -> impl Iterator<Item = Cow<'a, str>> {
        let own = self.names().chain(self.wide_names()).map(Cow::Borrowed);
        own.chain(self.joined().map(Cow::Owned)).chain(self.plain().map(Cow::Owned))
    }

    /// Whether it is an MCP tool without a named server: it may be any server's.
    pub fn has_unnamed_server(self) -> bool {
        self.is_call && of_any_server(self.name).is_some()
    }

    /// The normalised name of an MCP tool, whichever signs its agent uses.
    fn joined(self) -> Option<String> {
        joined(self.name).filter(|_| self.is_call)
    }

    /// The name of a tool that the table does not have, with the same sign between all words.
    fn plain(self) -> Option<String> {
        (self.is_call && self.tool.is_none()).then(|| plain(self.name))
    }

    /// The names of an MCP tool with the server ending at other places, and in the words of each agent.
    fn server_names(self) -> impl Iterator<Item = String> {
        let parts = self.name.strip_prefix("mcp__").and_then(|name| name.split_once("__")).filter(|_| self.is_call);
        parts.into_iter().flat_map(|(server, tool)| {
            let signs = tool.char_indices().filter(|(_, letter)| is_sign(*letter));
            let parting = move |(at, sign): (usize, char)| {
                let (more, rest) = (tool.get(..at)?, tool.get(at + 1..)?);
                Some(format!("mcp__{server}{sign}{more}__{rest}"))
            };
            let spelled = ["-", "_", "__", "___"].map(|sign| format!("{server}{sign}{tool}"));
            let marked = [format!("mcp_{server}_{tool}"), format!("@{server}/{tool}"), format!("{ANY_SERVER}{tool}")];
            signs.take(MOST_PARTINGS).filter_map(parting).chain(spelled).chain(marked)
        })
    }

    /// The name as it came, then every other name of the tool.
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        let others = self.tool.into_iter().flat_map(Declaration::names).map(|name| -> &'a str { name });
        std::iter::once(self.name).chain(others.filter(move |name| *name != self.name))
    }

    /// The names of tools that do this tool's work among others. Only the whole name in a matcher means this tool.
    fn wide_names(self) -> impl Iterator<Item = &'a str> {
        let wide = self.tool.into_iter().flat_map(|tool| tool.wanted_as().filter(|wide| !tool.does(wide)));
        // Some agents use another agent's name of a narrow tool for a wide one: `Write`.
        let means =
            |wide: &'static Declaration| move |name: &&str| declared(name).is_some_and(|it| it.name == wide.name);
        wide.flat_map(move |wide| wide.own_names().filter(means(wide))).map(|name| -> &'a str { name })
    }

    /// Whether an expression matches any name of the subject.
    fn is_found_by(self, expression: &Regex) -> bool {
        let is_whole = |name: &str| expression.find(name).is_some_and(|found| found.len() == name.len());
        let may_be_meant = || self.has_unnamed_server() && expression.as_str().contains("mcp");
        self.names().any(|name| expression.is_match(name))
            || self.wide_names().any(is_whole)
            || self.server_names().any(|name| expression.is_match(&name))
            || may_be_meant()
    }

    /// Whether a prefix fits any name of the subject.
    fn begins_with(self, prefix: &str) -> bool {
        let key = prefix_key(prefix);
        let may_be_meant = self.has_unnamed_server() && key.starts_with(MCP);
        let own = || self.names().any(|name| name.starts_with(prefix));
        let joined = || self.joined().is_some_and(|name| name.starts_with(&*key));
        // Without a sign, a beginning is not the name of a server.
        let plain = || key.contains('-') && self.plain().is_some_and(|name| name.starts_with(&*key));
        // `editor*` and `write_*` do not mean every tool that changes files, but `fs_*` does.
        let is_narrow = || TOOLS.iter().any(|tool| !tool.is_wide() && tool.name.starts_with(prefix));
        let wide =
            || prefix.ends_with(is_sign) && !is_narrow() && self.wide_names().any(|name| name.starts_with(prefix));
        may_be_meant || own() || joined() || plain() || wide()
    }
}

/// A matcher without a valid meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatcherError {
    /// A star elsewhere than at the end, or characters that only have a meaning in expressions.
    #[error("matcher `{0}` looks like a regular expression; write `re:{0}`, or use names, `prefix*` and `|`")]
    LooksLikeExpression(String),
    /// An expression that does not compile.
    #[error("matcher `re:{expression}` is no valid expression: {reason}")]
    Invalid {
        /// What was written.
        expression: String,
        /// The compiler's message.
        reason: String,
    },
    /// The expression is too long.
    #[error("matcher expression of {0} characters is too long; the limit is {LONGEST_EXPRESSION}")]
    TooLong(usize),
    /// Nothing between two bars.
    #[error("matcher `{0}` has an empty alternative; remove the extra `|`")]
    EmptyAlternative(String),
}

impl Matcher {
    /// Compiles a matcher; the empty text matches everything.
    ///
    /// ```
    /// use ollm_protocol::{EventKind, Matcher, Subject};
    /// let matcher = Matcher::parse("shell|mcp__git__*").unwrap();
    /// let fits = |tool: &str| matcher.matches(Some(Subject::new(EventKind::BeforeTool, tool)));
    /// assert!(fits("mcp__git__push") && fits("Bash"));
    /// assert!(!fits("shell2"));
    /// ```
    pub fn parse(text: &str) -> Result<Matcher, MatcherError> {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Ok(Matcher::Any);
        }
        if let Some(expression) = text.strip_prefix("re:") {
            return expression_matcher(expression);
        }
        let patterns = text.split('|').map(|part| pattern(text, part.trim())).collect::<Result<Vec<_>, _>>()?;
        if patterns.contains(&Pattern::Prefix(String::new())) {
            return Ok(Matcher::Any);
        }
        Ok(Matcher::List(patterns))
    }

    /// Whether an event with this subject fits.
    pub fn matches(&self, subject: Option<Subject<'_>>) -> bool {
        match (self, subject) {
            (Matcher::Any, _) => true,
            (_, None) => false,
            (Matcher::List(patterns), Some(subject)) => patterns.iter().any(|pattern| pattern.matches(subject)),
            (Matcher::Expression(expression), Some(subject)) => subject.is_found_by(expression),
        }
    }

    /// The matcher as text, which parses to the same matcher.
    pub fn text(&self) -> String {
        match self {
            Matcher::Any => "*".to_owned(),
            Matcher::List(patterns) => patterns.iter().map(Pattern::text).collect::<Vec<_>>().join("|"),
            Matcher::Expression(expression) => format!("re:{}", expression.as_str()),
        }
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        self.text() == other.text()
    }
}

impl Pattern {
    /// Whether the pattern fits a subject.
    pub fn matches(&self, subject: Subject<'_>) -> bool {
        match self {
            Pattern::Exact(name) if name == subject.name => true,
            Pattern::Exact(name) => match subject.tool {
                Some(tool) => declared(name).is_some_and(|wanted| tool.fits(wanted)),
                None => subject.is_call && declared(name).is_none() && is_same_server_tool(subject.name, name),
            },
            Pattern::Prefix(prefix) => subject.begins_with(prefix),
            Pattern::Builtin => !subject.name.starts_with("mcp__"),
        }
    }

    /// Whether it names a tool of an MCP server, but not the server.
    pub fn is_of_any_server(&self) -> bool {
        matches!(self, Pattern::Exact(name) if of_any_server(name).is_some())
    }

    fn text(&self) -> String {
        match self {
            Pattern::Exact(name) => name.clone(),
            Pattern::Prefix(prefix) => format!("{prefix}*"),
            Pattern::Builtin => "builtin:*".to_owned(),
        }
    }
}

/// One form for all prefixes that mean the same MCP tools. Prefixes of names in the table stay unchanged.
pub fn prefix_key(prefix: &str) -> Cow<'_, str> {
    if let Some(words) = words(prefix) {
        return Cow::Owned(joined_words(words));
    }
    let is_declared = || TOOLS.iter().flat_map(|tool| tool.own_names()).any(|name| name.starts_with(prefix));
    if prefix.contains(is_sign) && !is_declared() { Cow::Owned(plain(prefix)) } else { Cow::Borrowed(prefix) }
}

/// Whether two names that the table of tools does not have may name the same tool of an MCP server.
fn is_same_server_tool(called: &str, wanted: &str) -> bool {
    let ends =
        |name: &str, tool: &str| plain(name).strip_suffix(&*plain(tool)).is_some_and(|start| start.ends_with('-'));
    match (of_any_server(called), of_any_server(wanted)) {
        (None, None) => plain(called) == plain(wanted),
        (Some(called), Some(wanted)) => plain(called) == plain(wanted),
        (Some(tool), None) => ends(wanted, tool),
        (None, Some(tool)) => ends(called, tool),
    }
}

/// The tool in a name that says that it is an MCP server's, but not whose.
fn of_any_server(name: &str) -> Option<&str> {
    let unnamed = || name.strip_prefix("mcp__")?.strip_prefix(UNNAMED_SERVER)?.strip_prefix("__");
    name.strip_prefix(ANY_SERVER).or_else(unnamed)
}

/// An MCP name with the same sign between all words, and before them: `mcp__git__push`, `mcp_git_push`, `@git/push`
/// and `git__push` become one.
fn joined(name: &str) -> Option<String> {
    // A name with `__` may also be one of an agent's own tools.
    words(name).or_else(|| name.contains("__").then_some(name)).map(joined_words)
}

/// A name with the same sign between all words, without the marks of MCP.
fn plain(name: &str) -> String {
    let joined = joined_words(words(name).unwrap_or(name));
    joined.strip_prefix(MCP).unwrap_or(&joined).to_owned()
}

/// The words of a name that can only be an MCP name.
fn words(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("mcp_").or_else(|| name.strip_prefix('@').filter(|rest| rest.contains('/')));
    rest.or_else(|| name.contains("___").then_some(name))
}

fn joined_words(rest: &str) -> String {
    let mut joined = String::from(MCP);
    for letter in rest.chars() {
        match letter {
            sign if is_sign(sign) => {
                if !joined.ends_with('-') {
                    joined.push('-');
                }
            }
            letter => joined.push(letter),
        }
    }
    joined
}

/// Whether agents use this character to join the words of a name.
fn is_sign(letter: char) -> bool {
    matches!(letter, '_' | '-' | '/')
}

fn expression_matcher(expression: &str) -> Result<Matcher, MatcherError> {
    if expression.len() > LONGEST_EXPRESSION {
        return Err(MatcherError::TooLong(expression.len()));
    }
    RegexBuilder::new(expression)
        .size_limit(1 << 20)
        .build()
        .map(Matcher::Expression)
        .map_err(|error| MatcherError::Invalid { expression: expression.to_owned(), reason: error.to_string() })
}

fn pattern(whole: &str, part: &str) -> Result<Pattern, MatcherError> {
    if part.is_empty() {
        return Err(MatcherError::EmptyAlternative(whole.to_owned()));
    }
    match part {
        "builtin:*" => return Ok(Pattern::Builtin),
        // The canonical prefix of all MCP tools.
        "mcp" => return Ok(Pattern::Prefix("mcp__".to_owned())),
        _ => {}
    }
    let part = part.strip_prefix("builtin:").unwrap_or(part).trim_start();
    if part.is_empty() {
        return Err(MatcherError::EmptyAlternative(whole.to_owned()));
    }
    let (stem, star) = part.strip_suffix('*').map_or((part, false), |stem| (stem, true));
    let meant_as_expression = stem.contains(['*', '^', '$', '(', ')', '[', ']', '{', '}', '+', '?', '\\'])
        || (star && stem.ends_with('.'))
        || stem.starts_with("re:")
        || stem.starts_with("builtin:");
    if meant_as_expression {
        return Err(MatcherError::LooksLikeExpression(whole.to_owned()));
    }
    Ok(if star { Pattern::Prefix(stem.to_owned()) } else { Pattern::Exact(part.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_matches_what_it_says() {
        for (matcher, subject, fits) in [
            ("*", Some("shell"), true),
            ("*", None, true),
            ("", None, true),
            ("shell", Some("shell"), true),
            ("shell", Some("shell_x"), false),
            ("shell", None, false),
            ("write_*", Some("write_file"), true),
            ("write_*", Some("rewrite_file"), false),
            ("write_file|replace_in_file", Some("replace_in_file"), true),
            ("a|mcp__git__*", Some("mcp__git__push"), true),
            ("a|*", Some("anything"), true),
            ("builtin:*", Some("shell"), true),
            ("builtin:*", Some("mcp__git__push"), false),
            ("builtin:shell", Some("shell"), true),
            ("mcp__*", Some("mcp__x"), true),
            ("mcp__*", Some("shell"), false),
            ("re:^(read|write)_", Some("read_file"), true),
            ("re:^(read|write)_", Some("xread_file"), false),
        ] {
            let about = subject.map(|name| Subject::new(EventKind::BeforeTool, name));
            assert_eq!(Matcher::parse(matcher).unwrap().matches(about), fits, "{matcher} on {subject:?}");
        }
    }

    #[test]
    fn a_matcher_in_any_vocabulary_matches_in_all_and_only_tools_have_other_names() {
        let fits = |kind, matcher: &str, name| Matcher::parse(matcher).unwrap().matches(Some(Subject::new(kind, name)));
        for (matcher, tools) in [
            ("shell", &["Bash", "bash", "exec_command", "run_shell_command", "Execute", "developer__shell"][..]),
            ("Bash", &["shell", "exec_command", "run_commands", "local-shell"]),
            ("re:^Bash$", &["shell", "Bash", "run_in_terminal"]),
            ("run_shell*", &["shell", "Bash"]),
            ("Write|Edit", &["write_file", "replace", "apply_patch", "fs_write", "write_to_file"]),
            ("NotebookEdit", &["notebook_edit"]),
            // One tool does several kinds of work here, and separate tools do them elsewhere.
            ("fs_write", &["Write", "Edit", "apply_patch", "NotebookEdit", "editor", "developer__write"]),
            ("apply_patch|none", &["Edit", "Write", "fs_write"]),
            ("developer__text_editor", &["Edit", "read_file"]),
            ("re:^(fs_write|none)$", &["Write", "Edit", "apply_patch", "editor"]),
            ("re:fs_.*", &["Write", "Read"]),
            ("fs_*", &["Write", "Read", "Edit"]),
            ("mcp__my-git__push", &["mcp__my__git-push", "mcp__my_git__push"]),
            ("mcp__my-git__*", &["mcp__my__git-push", "mcp__my-git__push"]),
            ("re:^mcp__my-git__", &["mcp__my__git-push"]),
            ("mcp_git_push|@git/push", &["mcp__git__push"]),
            ("mcp_git_*", &["mcp__git__push"]),
            ("git__push|none", &["mcp__git__push"]),
            ("my-git___push", &["mcp__my-git__push", "mcp__my__git-push"]),
            ("git___*", &["mcp__git__push"]),
            ("developer__*", &["Bash"]),
            // opencode, Copilot and Cursor name the tools of servers so.
            ("git_push|git-push", &["mcp__git__push", "git_push", "git-push", "mcp_git_push"]),
            ("git_hub_list-issues", &["mcp__git-hub__list_issues", "mcp__git__hub-list_issues"]),
            ("git-hub_*", &["mcp__git__hub-list_issues", "git_hub_list"]),
            ("MCP:push", &["mcp__git__push", "mcp__my_git__push", "mcp__unknown__push", "MCP:push", "git_push"]),
            ("mcp__git__push", &["MCP:push", "git_push", "git-push", "git___push", "@git/push"]),
            ("mcp__unknown__push", &["mcp__git__push"]),
            ("re:^git[-_]push$", &["mcp__git__push"]),
            ("re:^(@git/|MCP:)push$", &["mcp__git__push"]),
            // If the server is unknown, it may be this one.
            ("mcp__git__push", &["mcp__unknown__push"]),
            ("mcp__git__*", &["mcp__unknown__push"]),
            ("re:^mcp__git__", &["mcp__unknown__push"]),
        ] {
            for tool in tools {
                assert!(fits(EventKind::BeforeTool, matcher, tool), "{matcher} on {tool}");
                assert!(fits(EventKind::AfterTool, matcher, tool), "{matcher} after {tool}");
            }
        }
        for (matcher, tool) in [
            ("shell", "mcp__x__shell"),
            ("mcp__x__shell", "shell"),
            ("mcp__git__push", "mcp__git__pushed"),
            ("mcp__git__push", "mcp__unknown__pull"),
            ("Bash", "mcp__unknown__push"),
            ("mcp__git__*", "mcp__github__push"),
            ("git__pull", "mcp__git__push"),
            ("git_pull", "mcp__git__push"),
            ("push", "mcp__git__push"),
            ("git*", "mcp__git__push"),
            ("mcp__*", "git_push"),
            ("web_*", "mcp__web__push"),
            ("web_fetch", "mcp__web__fetch"),
            ("MCP:push", "mcp__git__pull"),
            ("MCP:push", "mcp__git__repush"),
            ("MCP:push", "shell"),
            ("Bash", "Write"),
            ("apply_patch", "Read"),
            // A part of a name may be part of many names.
            ("write_*", "Edit"),
            ("editor*", "Edit"),
            ("re:^editor", "Read"),
            ("re:^Write$", "Edit"),
            ("re:^text_", "Edit"),
            ("re:push", "mcp__unknown__pull"),
            ("NotebookEdit", "Edit"),
            ("re:^Bash$", "BashOutput"),
        ] {
            assert!(!fits(EventKind::BeforeTool, matcher, tool), "{matcher} on {tool}");
        }
        assert!(!fits(EventKind::Custom, "edit_file", "Edit"));
        assert!(fits(EventKind::Custom, "Edit", "Edit"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(matches!(Matcher::parse("mcp__.*"), Err(MatcherError::LooksLikeExpression(_))));
        assert!(matches!(Matcher::parse("^Bash$"), Err(MatcherError::LooksLikeExpression(_))));
        assert!(matches!(Matcher::parse("a||b"), Err(MatcherError::EmptyAlternative(_))));
        assert!(matches!(Matcher::parse("re:("), Err(MatcherError::Invalid { .. })));
        assert!(matches!(Matcher::parse(&format!("re:{}", "a".repeat(20_000))), Err(MatcherError::TooLong(_))));
        assert!(matches!(Matcher::parse("re:(a{1000}){1000}"), Err(MatcherError::Invalid { .. })));
    }
}
