//! Which subjects a hook cares about: `*`, exact names, `prefix*`, lists with `|`, `builtin:*`, and `re:` expressions.

use regex_lite::{Regex, RegexBuilder};

/// Longer expressions are refused: they cost time to compile at every start.
const LONGEST_EXPRESSION: usize = 10_000;

/// A compiled matcher.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Matches everything, also events without a subject.
    Any,
    /// Matches a subject that fits one of the patterns.
    List(Vec<Pattern>),
    /// Matches a subject in which the expression is found.
    Expression(Regex),
}

/// One alternative of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This very name.
    Exact(String),
    /// Every name that begins like this.
    Prefix(String),
    /// Every tool that does not come from an MCP server.
    Builtin,
}

/// A matcher that cannot mean what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// A star elsewhere than at the end, or characters that only an expression gives a meaning.
    #[error("matcher `{0}` looks like a regular expression; write `re:{0}`, or use names, `prefix*` and `|`")]
    LooksLikeExpression(String),
    /// An expression that does not compile.
    #[error("matcher `re:{expression}` is no valid expression: {reason}")]
    Invalid {
        /// What was written.
        expression: String,
        /// What the compiler says.
        reason: String,
    },
    /// An expression of unreasonable length.
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
    /// use ollm_protocol::Matcher;
    /// let matcher = Matcher::parse("shell|mcp__git__*").unwrap();
    /// assert!(matcher.matches(Some("mcp__git__push")));
    /// assert!(!matcher.matches(Some("shell2")));
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
    pub fn matches(&self, subject: Option<&str>) -> bool {
        match (self, subject) {
            (Matcher::Any, _) => true,
            (_, None) => false,
            (Matcher::List(patterns), Some(subject)) => patterns.iter().any(|pattern| pattern.matches(subject)),
            (Matcher::Expression(expression), Some(subject)) => expression.is_match(subject),
        }
    }

    /// The matcher as text that parses to the same matcher.
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
    pub fn matches(&self, subject: &str) -> bool {
        match self {
            Pattern::Exact(name) => name == subject,
            Pattern::Prefix(prefix) => subject.starts_with(prefix),
            Pattern::Builtin => !subject.starts_with("mcp__"),
        }
    }

    fn text(&self) -> String {
        match self {
            Pattern::Exact(name) => name.clone(),
            Pattern::Prefix(prefix) => format!("{prefix}*"),
            Pattern::Builtin => "builtin:*".to_owned(),
        }
    }
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
    if part == "builtin:*" {
        return Ok(Pattern::Builtin);
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
            assert_eq!(Matcher::parse(matcher).unwrap().matches(subject), fits, "{matcher} on {subject:?}");
        }
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
