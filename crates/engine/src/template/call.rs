//! The variables of a tool call that templates can use, whatever the agent and its names for the arguments.

use ollm_protocol::Event;
use ollm_protocol::tool::{CallEffect, Effect, Operand};
use serde_json::Value;

/// The variables of an event: its data, `commands` and `paths`.
pub(crate) fn scope(event: &Event) -> Value {
    let mut scope = ollm_protocol::scope(event);
    if let Some(map) = scope.as_object_mut() {
        map.insert("commands".to_owned(), commands(event).into());
        map.insert("paths".to_owned(), paths(event).into());
    }
    scope
}

/// The commands of the call's shell text, one per line. One space separates words; blanks within a word become tabs.
fn commands(event: &Event) -> String {
    let effects = event.effects();
    let arguments = effects.iter().filter(|found| found.effect == Effect::ProgramArguments);
    let arguments: Vec<&str> = arguments.flat_map(|found| texts(found.operand)).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for CallEffect { effect, operand, .. } in &effects {
        match (effect, operand) {
            (Effect::RunsShell, Operand::List(_)) => found.extend(program(&texts(*operand))),
            (Effect::RunsShell, Operand::Text(text)) if !arguments.is_empty() => {
                let words: Vec<&str> = std::iter::once(*text).chain(arguments.iter().copied()).collect();
                found.extend(program(&words));
            }
            (Effect::RunsShell | Effect::RunsEach | Effect::TypesIntoShell, _) => {
                found.extend(texts(*operand).into_iter().flat_map(ollm_shell::commands));
            }
            _ => {}
        }
    }
    let line = |words: &Vec<String>| words.iter().map(|word| one_field(word)).collect::<Vec<_>>().join(" ");
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The commands of a program with arguments, which may be a shell with its text.
fn program(words: &[&str]) -> Vec<Vec<String>> {
    let quoted: Vec<String> = words.iter().map(|word| ollm_shell::single_quoted(word)).collect();
    ollm_shell::commands(&quoted.join(" "))
}

fn texts(operand: Operand<'_>) -> Vec<&str> {
    match operand {
        Operand::Text(text) => vec![text],
        Operand::List(list) => list.iter().filter_map(Value::as_str).collect(),
    }
}

/// The files that the event is about, one per line. A line end within a name becomes a space, because no pattern tells
/// the two apart.
fn paths(event: &Event) -> String {
    event.paths().iter().map(|path| path.replace(['\n', '\r'], " ")).collect::<Vec<_>>().join("\n")
}

fn one_field(word: &str) -> String {
    word.replace(char::is_whitespace, "\t")
}

#[cfg(test)]
mod tests {
    use ollm_protocol::EventKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_and_files_are_found_under_every_agents_names() {
        for (tool, args, commands, paths) in [
            ("shell", json!({"command": "cd x && git \"push\""}), "cd x\ngit push", ""),
            ("exec_command", json!({"cmd": "git push"}), "git push", ""),
            ("run_commands", json!({"commands": ["ls", "git push"]}), "ls\ngit push", ""),
            ("shell", json!({"command": ["bash", "-lc", "git push"]}), "bash -lc git\tpush\ngit push", ""),
            ("shell", json!({"command": "git", "args": ["push", "a b"]}), "git push a\tb", ""),
            ("shell", json!({"command": "echo 'a\nb'"}), "echo a\tb", ""),
            ("Write", json!({"file_path": "a\nb.env"}), "", "a b.env"),
            ("read_files", json!({"paths": ["a", "b"]}), "", "a\nb"),
            ("todo", json!({}), "", ""),
        ] {
            let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", tool.into()), ("args", args)]);
            let scope = scope(&event);
            assert_eq!((scope["commands"].as_str(), scope["paths"].as_str()), (Some(commands), Some(paths)), "{tool}");
        }
    }
}
