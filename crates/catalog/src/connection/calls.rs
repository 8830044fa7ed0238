//! Lines of shell by which agents ask us, also inside other text: the one place that knows them again.
//!
//! A program may be renamed, so its name decides nothing where the rest of a line has our form.

use ollm_protocol::dialect::AGENTS;

/// What follows our program where we are asked.
const CALL: &str = " hook run";

/// Whether a text, a line of shell or a whole file, asks us on behalf of an agent.
pub fn asks_us(text: &str, agent: &str) -> bool {
    called_programs(text, agent).next().is_some()
}

/// The programs, as written, by which a text asks us on behalf of an agent.
pub fn called_programs<'t>(text: &'t str, agent: &str) -> impl Iterator<Item = &'t str> {
    calls(text).filter(|(_, arguments)| asks_for(arguments, agent)).map(|(program, _)| program)
}

/// Whether a line is an entry of ours as a whole, by any program and with any options: what somebody wrote around a call of
/// ours is theirs.
pub(super) fn is_own_entry(line: &str, agent: &str) -> bool {
    own_arguments(line).is_some_and(|arguments| asks_for(&arguments, agent))
}

/// Whether a hook asks us, whichever agent it was written for: one of its lines is an entry of ours, or calls our program.
pub(super) fn leads_to_us(text: &str) -> bool {
    let for_any = |arguments: String| AGENTS.iter().any(|agent| asks_for(&arguments, agent.name));
    let entries = text.lines().filter(|line| line.contains(CALL)).filter_map(own_arguments);
    entries.into_iter().any(for_any) || calls(text).any(|(program, _)| is_our_name(program))
}

/// The arguments of a line that is `PROGRAM hook run ARGUMENTS` and nothing else.
fn own_arguments(line: &str) -> Option<String> {
    // That of a project first looks whether we are installed.
    let call = match line.rsplit_once("; ") {
        Some((look, call)) if look.starts_with("command -v ollm ") => call,
        _ => line,
    };
    let words = ollm_shell::split_loosely(call).ok()?;
    let [_, hook, run, arguments @ ..] = words.as_slice() else { return None };
    let plain = |word: &String| word.chars().all(|letter| letter.is_alphanumeric() || "-_.=".contains(letter));
    ((hook.as_str(), run.as_str()) == ("hook", "run") && arguments.iter().all(plain)).then(|| arguments.join(" "))
}

/// What looks like a call of ours in a text: the program and its arguments, as written.
fn calls(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(CALL).filter_map(|(at, call)| {
        let (before, after) = (text.get(..at)?, text.get(at + call.len()..)?);
        let arguments = after.lines().next().unwrap_or_default().split(CALL).next()?;
        let ends = arguments.is_empty() || arguments.starts_with(|letter: char| !letter.is_alphanumeric());
        Some((last_word(before).filter(|_| ends)?, arguments))
    })
}

fn is_our_name(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| name.starts_with("ollm"))
}

/// The last word before the end of a line of shell, also where that line stands in quotes.
fn last_word(text: &str) -> Option<&str> {
    let closed = ['\'', '"'].into_iter().find_map(|quote| text.strip_suffix(quote)?.rsplit(quote).next());
    let bare = || text.rsplit(|letter: char| letter.is_whitespace() || "'\"=;".contains(letter)).next();
    closed.or_else(bare).filter(|word| !word.is_empty())
}

fn asks_for(arguments: &str, agent: &str) -> bool {
    let mut words = arguments.split_whitespace().map(|word| word.trim_matches(['\'', '"', ';', ',']));
    let named = words.by_ref().find_map(|word| word.strip_prefix("--from"));
    let value = named.map(|value| value.strip_prefix('=').unwrap_or_default()).filter(|value| !value.is_empty());
    named.is_some() && value.or_else(|| words.next()) == Some(agent)
}
