//! Rewrites shell calls of another agent so that they run in a box.

use std::path::Path;

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::AgentEvent;
use ollm_protocol::tool::{Effect, declared};
use ollm_protocol::{Event, EventKind, Verdict};
use ollm_shell::{shell_word, split};
use serde_json::{Map, Value};

/// How an agent's shell calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellCalls {
    /// Unchanged, as the agent runs them.
    #[default]
    AsTheyAre,
    /// In a box.
    InBox,
}

/// Whether an agent lets a hook change the arguments of a call. If not, only the guards check its commands.
pub fn can_box(agent: &AgentDialect) -> bool {
    let changes = |event: &AgentEvent| {
        event.kind == EventKind::BeforeTool && event.can.modify.is_possible() && agent.asks_at(event)
    };
    agent.events.iter().any(changes)
}

/// Puts the command of a shell call into a box, unless the verdict refuses the call. Other commands, and commands that
/// are already in a box, stay unchanged.
pub fn into_box(event: &Event, mut verdict: Verdict, program: &Path) -> Verdict {
    if event.kind != EventKind::BeforeTool || verdict.flow.refuses() {
        return verdict;
    }
    let patch = boxed_arguments(event, &verdict.patch, program);
    verdict.patch.extend(patch.into_iter().flatten());
    verdict
}

fn boxed_arguments(event: &Event, patch: &Map<String, Value>, program: &Path) -> Option<Map<String, Value>> {
    let tool = declared(event.text("tool_name")?)?;
    let mut args = event.data.get("args")?.as_object()?.clone();
    args.extend(patch.clone());
    let runs = |name: &String| tool.effect(name) == Some(Effect::RunsShell);
    let commands = args.into_iter().filter(|(name, _)| runs(name));
    let program = program.to_str()?;
    Some(commands.filter_map(|(name, command)| Some((name, boxed(command, program)?))).collect())
}

/// The command in a box; `None` if it already is in one, or is no command.
fn boxed(command: Value, program: &str) -> Option<Value> {
    let start = [program, "box", "--"];
    match command {
        Value::String(text) => {
            // More commands may follow a boxed one; then the line is not a plain one.
            let is_boxed = split(&text, &[]).is_ok_and(|words| words.iter().map(String::as_str).take(3).eq(start));
            // The agent's own shell reads this line, and the shell in the box reads the command.
            let line = || format!("{} box -- bash -c {}", shell_word(program), shell_word(&text));
            (!text.trim().is_empty() && !is_boxed).then(|| line().into())
        }
        Value::Array(words) => {
            let start = start.map(Value::from);
            let is_boxed = words.starts_with(&start);
            (!words.is_empty() && !is_boxed).then(|| start.into_iter().chain(words).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ollm_protocol::Flow;
    use ollm_protocol::dialect::agent_named;
    use serde_json::json;

    use super::*;

    fn rewritten(tool: &str, args: Value, verdict: Verdict) -> Value {
        let data = [("tool_name", json!(tool)), ("args", args)];
        Value::Object(into_box(&Event::unchecked(EventKind::BeforeTool, data), verdict, Path::new("/bin/ollm")).patch)
    }

    #[test]
    fn a_command_becomes_one_word_of_a_boxed_one() {
        let plain = Verdict::default;
        let boxed = rewritten("Bash", json!({"command": "echo 'a b' && rm x", "timeout": 5}), plain());
        assert_eq!(boxed, json!({"command": r"/bin/ollm box -- bash -c 'echo '\''a b'\'' && rm x'"}));
        assert_eq!(rewritten("Bash", boxed, plain()), json!({}));
        let list = rewritten("shell", json!({"command": ["bash", "-lc", "ls"]}), plain());
        assert_eq!(list, json!({"command": ["/bin/ollm", "box", "--", "bash", "-lc", "ls"]}));
        assert_eq!(rewritten("Write", json!({"file_path": "a", "content": "ls"}), plain()), json!({}));
    }

    #[test]
    fn a_boxed_command_with_another_one_behind_it_is_put_into_the_box_as_a_whole() {
        for command in [
            "/bin/ollm box -- true; python3 evil.py",
            "/bin/ollm box -- true\npython3 evil.py",
            "/bin/ollm box -- echo $(python3 evil.py)",
            "/bin/ollm box -- echo evil > ~/.bashrc",
            "/bin/ollm box --policy strict -- true",
        ] {
            let rewritten = rewritten("Bash", json!({ "command": command }), Verdict::default());
            let line = rewritten["command"].as_str().unwrap();
            assert!(line.starts_with("/bin/ollm box -- bash -c '"), "{line}");
        }
        let plain = json!({"command": "/bin/ollm box -- make 'a b'"});
        assert_eq!(rewritten("Bash", plain, Verdict::default()), json!({}));
    }

    #[test]
    fn what_hooks_made_of_a_command_is_what_goes_into_the_box_and_a_refusal_stays() {
        let patch = json!({"command": "ls -l"});
        let patched = Verdict { patch: patch.as_object().unwrap().clone(), ..Verdict::default() };
        let boxed = rewritten("Bash", json!({"command": "ls"}), patched);
        assert_eq!(boxed, json!({"command": "/bin/ollm box -- bash -c 'ls -l'"}));
        let refused = Verdict { flow: Flow::Block, ..Verdict::default() };
        assert_eq!(rewritten("Bash", json!({"command": "ls"}), refused), json!({}));
    }

    #[test]
    fn agents_differ_in_whether_a_hook_changes_arguments() {
        assert!(can_box(agent_named("claude").unwrap()));
        assert!(!can_box(agent_named("qwen").unwrap()));
    }
}
