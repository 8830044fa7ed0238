//! Finds the values of call arguments in Python and JavaScript, as far as the code itself shows them.
//!
//! The result is shell text, so that one reader judges every command. An unknown value appears in it as the expansion
//! of a variable that is never set.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use ollm_shell::single_quoted;

use super::script::Language;
use super::starters::Takes;

/// The most parts of a call that are examined.
const MOST_PARTS: usize = 2_000;
/// The longest expression that is read, in bytes.
const LONGEST: usize = 4_000;
/// How many steps a name that stands for another name is followed.
const DEEPEST: usize = 8;
/// Expressions for the interpreter that runs the code.
const ITSELF: &[(&str, &str)] = &[("sys.executable", "python3"), ("process.execPath", "node")];

/// The names that code gives to values.
pub(super) struct Names<'a> {
    language: Language,
    /// The expressions that are assigned to each name.
    assigned: HashMap<&'a str, Vec<&'a str>>,
    /// Names whose value differs from call to call.
    varying: HashSet<&'a str>,
    parts: Cell<usize>,
}

/// A part of a text.
#[derive(Clone)]
enum TextPart {
    Known(String),
    /// An unknown part, by the name of its source; the name may be empty.
    Unknown(String),
}

/// The value of an expression.
#[derive(Clone)]
enum Expression {
    Text(Vec<TextPart>),
    List(Vec<Vec<TextPart>>),
}

impl<'a> Names<'a> {
    pub(super) fn new(text: &'a str, language: Language) -> Names<'a> {
        let mut names =
            Names { language, assigned: HashMap::new(), varying: HashSet::new(), parts: Cell::new(MOST_PARTS) };
        for line in text.lines() {
            let varies = ["def ", "lambda", "for ", " as ", "function", "=>"];
            if varies.iter().any(|sign| line.contains(sign)) {
                names.varying.extend(line.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()));
            }
        }
        for (at, _) in text.match_indices('=') {
            let (before, rest) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
            let adds = before.ends_with(['+', '-', '*', '/', '%', '|', '&', '?', ':']);
            if rest.starts_with(['=', '>']) || before.ends_with(['=', '!', '<', '>']) {
                continue;
            }
            let line = before.rsplit(['\n', ';']).next().unwrap_or_default();
            let line = line.trim_end_matches(|sign: char| !is_part(sign) && sign != ']' && sign != ')').trim_end();
            let name = match line.split_once(':') {
                Some((name, _)) if name.trim().chars().all(is_part) => name.trim(),
                _ => last_name(line),
            };
            let owner = line.strip_suffix(name).unwrap_or_default();
            if !name.is_empty() && !owner.ends_with('.') {
                names.assigned.entry(name).or_default().push(rest);
                names.varying.extend(adds.then_some(name));
            }
        }
        names
    }

    /// The command that a call starts.
    pub(super) fn command(&self, call: &str, takes: Takes) -> String {
        self.parts.set(MOST_PARTS);
        let arguments = self.arguments(call);
        let mut arguments = arguments.into_iter().skip_while(|first| first.starts_with("os.P_"));
        let Some(first) = arguments.next() else { return String::new() };
        let mut words = match self.expression(first, 0) {
            Expression::Text(text) if takes == Takes::Text || is_spaced(&text) => return shell_text(&text),
            Expression::Text(text) => vec![text],
            Expression::List(words) => words,
        };
        for argument in arguments.filter(|_| takes != Takes::Text) {
            if argument.starts_with('{') && !argument.contains("args") || argument.contains("=>") {
                continue;
            }
            match self.expression(argument, 0) {
                Expression::Text(text) => words.push(text),
                Expression::List(more) => words.extend(more),
            }
        }
        if takes == Takes::NamedProgram && words.len() > 1 {
            words.remove(1);
        }
        words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }

    /// The positional arguments, and the named arguments that hold a command.
    fn arguments<'c>(&self, call: &'c str) -> Vec<&'c str> {
        let keyword = |argument: &'c str| {
            let (name, value) = argument.split_once('=')?;
            let is_name = self.language == Language::Python && name.trim().chars().all(is_part);
            (is_name && !value.starts_with('=')).then_some((name.trim(), value.trim()))
        };
        let arguments = separated(call).into_iter().filter_map(|argument| match keyword(argument) {
            Some(("args" | "cmd" | "command" | "program", value)) => Some(value),
            Some(_) => None,
            None => Some(argument),
        });
        arguments.collect()
    }

    fn expression(&self, text: &str, depth: usize) -> Expression {
        let text = uncommented(text);
        let left = self.parts.get();
        self.parts.set(left.saturating_sub(1));
        if depth > DEEPEST || left == 0 {
            return Expression::Text(vec![TextPart::Unknown(String::new())]);
        }
        if let Some(inner) = text.strip_prefix(['[', '(']) {
            let inner = inside(inner);
            let follows = text.get(inner.len() + 2..).unwrap_or_default().trim();
            let elements = separated(inner);
            if text.starts_with('[') || elements.len() > 1 {
                let mut words: Vec<_> = elements.into_iter().map(|one| self.element(one, depth)).collect();
                // The code may append more elements.
                words.extend((!ends(follows)).then(|| vec![TextPart::Unknown(String::new())]));
                return Expression::List(words);
            }
            if ends(follows) {
                return self.expression(inner, depth + 1);
            }
        }
        let name = text.split(|letter| !is_part(letter) && letter != '.').next().unwrap_or_default();
        let follows = text.get(name.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        if (ends(follows) || follows.starts_with('+'))
            && !self.varying.contains(name)
            && let Some([value]) = self.assigned.get(name).map(Vec::as_slice)
        {
            let value = value.get(..value.floor_char_boundary(LONGEST)).unwrap_or_default();
            match self.expression(value, depth + 1) {
                // The code appends more elements.
                Expression::List(mut words) if !ends(follows) => {
                    words.push(vec![TextPart::Unknown(String::new())]);
                    return Expression::List(words);
                }
                known if ends(follows) => return known,
                Expression::Text(_) | Expression::List(_) => {}
            }
        }
        if let ("shlex.split", Some(inner)) = (name, follows.strip_prefix('(')) {
            return Expression::Text(self.element(inside(inner), depth));
        }
        Expression::Text(self.text(text, depth))
    }

    /// An element of a list, as one text.
    fn element(&self, text: &str, depth: usize) -> Vec<TextPart> {
        match self.expression(text, depth + 1) {
            Expression::Text(text) => text,
            Expression::List(_) => vec![TextPart::Unknown(String::new())],
        }
    }

    /// Concatenated texts, up to the end of the expression.
    fn text(&self, mut rest: &str, depth: usize) -> Vec<TextPart> {
        let mut parts = Vec::new();
        loop {
            let left = self.parts.get();
            self.parts.set(left.saturating_sub(1));
            rest = rest.trim_start_matches([' ', '\t', '+']);
            if ends(rest) || left == 0 {
                break;
            }
            if let Some((literal, length)) = self.literal(rest) {
                rest = rest.get(length..).unwrap_or_default().trim_start_matches([' ', '\t']);
                let is_filled = rest.starts_with('%') || rest.starts_with(".format(");
                if is_filled {
                    parts.extend(literal.into_iter().flat_map(filled_in));
                    break;
                }
                parts.extend(literal);
                // A method call on the text produces another text.
                if rest.starts_with(".split()") {
                    break;
                }
                if rest.starts_with(['.', '[']) {
                    parts = vec![TextPart::Unknown(String::new())];
                    break;
                }
                continue;
            }
            let length = operand(rest);
            let name = rest.get(..length).unwrap_or_default().trim();
            rest = rest.get(length.max(1)..).unwrap_or_default();
            if let Some((_, program)) = ITSELF.iter().find(|(itself, _)| *itself == name) {
                parts.push(TextPart::Known((*program).to_owned()));
            } else if name.chars().all(is_part) && self.assigned.contains_key(name) && !parts.is_empty() {
                parts.extend(self.element(name, depth));
            } else {
                parts.push(TextPart::Unknown(name.to_owned()));
            }
        }
        parts
    }

    /// The text of a literal at the beginning, and the length of the literal.
    fn literal(&self, text: &str) -> Option<(Vec<TextPart>, usize)> {
        let quote_at = text.find(['"', '\'', '`'])?;
        let prefix = text.get(..quote_at)?.to_lowercase();
        if prefix.len() > 2 || !prefix.chars().all(|letter| "rbuf".contains(letter)) {
            return None;
        }
        let rest = text.get(quote_at..)?;
        let one = rest.get(..1)?;
        let long = one.repeat(3);
        let quote = if self.language == Language::Python && rest.starts_with(&long) { long.as_str() } else { one };
        let filled = match self.language {
            Language::Python => prefix.contains('f').then_some("{"),
            _ => (one == "`").then_some("${"),
        };
        let (mut parts, mut known) = (Vec::new(), String::new());
        let mut at = quote_at + quote.len();
        loop {
            let rest = text.get(at..)?;
            if rest.starts_with(quote) {
                at += quote.len();
                break;
            }
            if let Some(escaped) = rest.strip_prefix('\\').filter(|_| !prefix.contains('r')) {
                let letter = escaped.chars().next()?;
                match letter {
                    'n' => known.push('\n'),
                    't' => known.push('\t'),
                    '\n' => {}
                    'x' | 'u' | 'U' | 'N' | '0'..='9' => parts.push(TextPart::Unknown(String::new())),
                    other => known.push(other),
                }
                at += 1 + letter.len_utf8();
                continue;
            }
            if let Some(open) = filled.filter(|open| rest.starts_with(open) && !rest.starts_with("{{")) {
                let inner = inside(rest.get(open.len()..)?);
                parts.push(TextPart::Known(std::mem::take(&mut known)));
                parts.push(TextPart::Unknown(inner.to_owned()));
                at += open.len() + inner.len() + 1;
                continue;
            }
            let letter = rest.chars().next()?;
            known.push(letter);
            at += letter.len_utf8();
        }
        parts.push(TextPart::Known(known));
        Some((parts, at))
    }
}

/// An expression without leading comments.
fn uncommented(text: &str) -> &str {
    let mut text = text.trim();
    while text.starts_with('#') || text.starts_with("//") {
        text = text.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    text
}

/// The parts of a text with placeholders for `%` or `format`.
fn filled_in(part: TextPart) -> Vec<TextPart> {
    let TextPart::Known(text) = part else { return vec![part] };
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['%', '{']) {
        parts.push(TextPart::Known(rest.get(..at).unwrap_or_default().to_owned()));
        parts.push(TextPart::Unknown(String::new()));
        let hole = rest.get(at..).unwrap_or_default();
        let end = if hole.starts_with('%') { hole.find(char::is_alphabetic) } else { hole.find('}') };
        rest = end.and_then(|end| hole.get(end + 1..)).unwrap_or_default();
    }
    parts.push(TextPart::Known(rest.to_owned()));
    parts
}

/// Whether a text has spaces, like a command with arguments for a shell.
fn is_spaced(text: &[TextPart]) -> bool {
    text.iter().any(|part| matches!(part, TextPart::Known(text) if text.contains(' ')))
}

fn shell_text(parts: &[TextPart]) -> String {
    parts.iter().fold(String::new(), |mut text, part| {
        match part {
            TextPart::Known(known) => text.push_str(known),
            TextPart::Unknown(name) => drop(write!(text, "${{{}}}", shown(name))),
        }
        text
    })
}

fn shell_word(parts: &[TextPart]) -> String {
    parts.iter().fold(String::new(), |mut word, part| {
        match part {
            TextPart::Known(known) => word.push_str(&single_quoted(known)),
            TextPart::Unknown(name) => drop(write!(word, "\"${{{}}}\"", shown(name))),
        }
        word
    })
}

/// The name shown for an unknown value. Variables of folders are in capitals.
fn shown(name: &str) -> String {
    let plain: String = name.trim_start_matches('*').chars().take_while(|letter| is_part(*letter)).collect();
    let is_name = plain.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && plain.is_ascii();
    if is_name { plain.to_lowercase() } else { "unknown".to_owned() }
}

/// The parts between commas that are outside of brackets and quotes.
fn separated(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    scan(text, |at, letter, depth| {
        if letter == ',' && depth == 0 {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        true
    });
    parts.push(text.get(start..).unwrap_or_default());
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The text before the bracket that closes an earlier opening bracket.
fn inside(text: &str) -> &str {
    let mut end = text.len();
    scan(text, |at, letter, depth| {
        let closes = depth == 0 && matches!(letter, ')' | ']' | '}');
        if closes {
            end = at;
        }
        !closes
    });
    text.get(..end).unwrap_or_default()
}

/// The length of a name with its calls and indexes.
fn operand(text: &str) -> usize {
    let mut end = text.len();
    scan(text, |at, letter, depth| {
        let goes_on = depth > 0 || !matches!(letter, '+' | ',' | ';' | '\n' | ')' | ']' | '}' | '%' | '"' | '\'');
        if !goes_on {
            end = at;
        }
        goes_on
    });
    end
}

/// Calls `letter` for each character outside of quotes with the depth of brackets, until `letter` returns false.
fn scan(text: &str, mut letter: impl FnMut(usize, char, usize) -> bool) {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, next) in text.char_indices() {
        if let Some(open) = quote {
            if next == open && !escaped {
                quote = None;
            }
            escaped = next == '\\' && !escaped;
            continue;
        }
        if !letter(at, next, depth) {
            return;
        }
        match next {
            '"' | '\'' | '`' => quote = Some(next),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Whether an expression ends before this text.
fn ends(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([';', ',', '\n', '\r', '#', ')', ']', '}']) || rest.starts_with("//")
}

fn last_name(text: &str) -> &str {
    let text = text.trim_end();
    let start = text
        .rfind(|letter| !is_part(letter))
        .map_or(0, |at| at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    text.get(start..).unwrap_or_default()
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_call_is_shell_text() {
        for (text, call, expected) in [
            ("", r#""sh scr" + "ipts/l.sh""#, "sh scripts/l.sh"),
            ("", r#"f"sh {d}/l.sh", shell=True"#, "sh ${d}/l.sh"),
            ("", r#""git log %s" % x"#, "git log ${unknown}"),
            ("", r#""git log {}".format(x)"#, "git log ${unknown}"),
            ("", r#"["git", "diff", path], cwd=x"#, r#"'git' 'diff' "${path}""#),
            ("", r#"["sh", os.path.join("s", "x")]"#, r#"'sh' "${os}""#),
            ("", r"[*command, path]", r#""${command}" "${path}""#),
            ("", r#"[sys.executable, "-m", "pytest"]"#, "'python3' '-m' 'pytest'"),
            ("", r#"["sh"] + args"#, r#"'sh' "${unknown}""#),
            ("", "cmd", "${cmd}"),
            ("cmd = [\n  'git', # a\n  'diff']\n", "cmd", "'git' 'diff'"),
            ("cmd: str = 'git diff'\n", "args=cmd", "git diff"),
            ("cmd = 'a'\ncmd = 'b'\n", "cmd", "${cmd}"),
            ("cmd = 'a'\ncmd += 'b'\n", "cmd", "${cmd}"),
            ("cmd = 'a'\ndef f(cmd):\n", "cmd", "${cmd}"),
            ("a = b\nb = a\n", "a", "${unknown}"),
            ("", "'ls', input='x'", "ls"),
            (
                "",
                r#""""git
diff""""#,
                "git\ndiff",
            ),
        ] {
            assert_eq!(Names::new(text, Language::Python).command(call, Takes::Text), expected, "{text}{call}");
        }
        for (text, call, expected) in [
            ("", r#""git", ["diff", x], { cwd }"#, r#"'git' 'diff' "${x}""#),
            ("", r#""make -s", { shell: true }"#, "make -s"),
            ("", "cmd, args", r#""${cmd}" "${args}""#),
            ("const cmd = 'git';", r#"cmd, ["x"], (error) => {}"#, "'git' 'x'"),
            ("", "`sh ${x}/a`", "sh ${x}/a"),
        ] {
            assert_eq!(Names::new(text, Language::Node).command(call, Takes::Program), expected, "{text}{call}");
        }
    }

    #[test]
    fn names_that_stand_for_many_names_come_to_an_end() {
        let lines = (0..20).map(|at| format!("a{at} = {}", format!("a{} + ", at + 1).repeat(300)));
        let text = lines.collect::<Vec<_>>().join("\n");
        let command = Names::new(&text, Language::Python).command("a0", Takes::Text);
        assert!(command.len() < 1 << 20, "{}", command.len());
    }
}
