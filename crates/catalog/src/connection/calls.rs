//! Recognises the shell lines by which agents ask us, alone or inside other text. Only this module does.
//!
//! A program may be renamed, so its name does not matter if the rest of a line has our form.

use ollm_protocol::dialect::AGENTS;

/// The text after our program's name in such a line.
const CALL: &str = " hook run";

/// Whether a text, such as a shell line or a whole file, asks us on behalf of an agent.
pub fn asks_us(text: &str, agent: &str) -> bool {
    called_programs(text, agent).next().is_some()
}

/// The programs, as written, that a text calls to ask us on behalf of an agent.
pub fn called_programs<'t>(text: &'t str, agent: &str) -> impl Iterator<Item = &'t str> {
    calls(text).filter(|(_, arguments)| asks_for(arguments, agent)).map(|(program, _)| program)
}

/// Whether a whole line is one of our entries, by any program and with any options. If there is other text around our
/// call, the line belongs to the person.
pub(super) fn is_own_entry(line: &str, agent: &str) -> bool {
    own_arguments(line).is_some_and(|arguments| asks_for(&arguments, agent))
}

/// Whether a hook for any agent asks us: one of its lines is an entry of ours, or calls our program.
pub(super) fn leads_to_us(text: &str) -> bool {
    let for_any = |arguments: String| AGENTS.iter().any(|agent| asks_for(&arguments, agent.name));
    let entries = text.lines().filter(|line| line.contains(CALL)).filter_map(own_arguments);
    entries.into_iter().any(for_any) || calls(text).any(|(program, _)| is_our_name(program))
}

/// The arguments of a line that is exactly `PROGRAM hook run ARGUMENTS`.
fn own_arguments(line: &str) -> Option<String> {
    // A project's line first checks whether we are installed.
    let call = match line.rsplit_once("; ") {
        Some((look, call)) if look.starts_with("command -v ollm ") => call,
        _ => line,
    };
    let words = ollm_shell::split_loosely(call).ok()?;
    let [_, hook, run, arguments @ ..] = words.as_slice() else { return None };
    let plain = |word: &String| word.chars().all(|letter| letter.is_alphanumeric() || "-_.=".contains(letter));
    ((hook.as_str(), run.as_str()) == ("hook", "run") && arguments.iter().all(plain)).then(|| arguments.join(" "))
}

/// The lines that an agent runs by a file that we own: lines of the file, or quoted texts in it.
pub(super) fn own_lines(text: &str, agent: &str) -> Vec<String> {
    let quoted = text.match_indices('"').filter_map(|(at, _)| {
        let mut texts = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<String>();
        texts.next()?.ok()
    });
    let lines = text.lines().map(str::to_owned).chain(quoted);
    let mut found: Vec<String> = lines.filter(|line| is_own_entry(line, agent)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A script without its lines that ask us on behalf of an agent; `None` if nothing else is left.
pub fn without_own_lines(script: &str, agent: &str) -> Option<String> {
    let lines = script.strip_prefix("#!").into_iter().flat_map(|_| script.split_inclusive('\n'));
    let left: Vec<&str> = lines.filter(|line| !is_own_entry(line.trim(), agent)).collect();
    left.iter().skip(1).any(|line| !line.trim().is_empty()).then(|| left.concat())
}

/// Our line for another event. A line that takes the event from its input stays unchanged.
pub fn about_event(line: &str, event: &str) -> String {
    let at_call = line.rsplit_once(CALL).and_then(|(before, after)| Some((before, after.strip_prefix(' ')?)));
    let Some((before, arguments)) = at_call.filter(|(_, arguments)| !arguments.starts_with('-')) else {
        return line.to_owned();
    };
    let rest = arguments.find(' ').and_then(|end| arguments.get(end..)).unwrap_or_default();
    format!("{before}{CALL} {event}{rest}")
}

/// Possible calls of us in a text: the program and its arguments, as written.
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

/// The last word before the end of a shell line, even if the line is quoted.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_tried_with_another_event_and_all_else_as_it_stands() {
        assert_eq!(
            about_event("'/a b/ollm' hook run PreToolUse --from claude --within 600s --box", "x"),
            "'/a b/ollm' hook run x --from claude --within 600s --box"
        );
        assert_eq!(
            about_event("command -v ollm || exit 0; ollm hook run Stop", "x"),
            "command -v ollm || exit 0; ollm hook run x"
        );
        assert_eq!(about_event("ollm hook run --from opencode", "x"), "ollm hook run --from opencode");
    }

    #[test]
    fn a_script_keeps_what_somebody_wrote_into_it() {
        let ours = "#!/bin/sh\ncommand -v ollm >/dev/null 2>&1 || exit 0; ollm hook run TaskStart --from cline\n";
        assert_eq!(without_own_lines(ours, "cline"), None);
        assert_eq!(without_own_lines(&format!("{ours}log $1\n"), "cline").as_deref(), Some("#!/bin/sh\nlog $1\n"));
        assert_eq!(without_own_lines("import x;\nollm hook run --from opencode\n", "opencode"), None);
    }

    #[test]
    fn lines_are_found_in_scripts_in_json_and_in_code() {
        let script = "#!/bin/sh\n/bin/ollm hook run TaskStart --from cline\n";
        assert_eq!(own_lines(script, "cline"), ["/bin/ollm hook run TaskStart --from cline"]);
        let json =
            r#"{"about": "Asks: ollm hook run --from kiro", "command": "'/a \\\"b/ollm' hook run stop --from kiro"}"#;
        assert_eq!(own_lines(json, "kiro"), [r#"'/a \"b/ollm' hook run stop --from kiro"#]);
        assert!(own_lines("ollm hook run stop --from kiro", "cline").is_empty());
    }
}
