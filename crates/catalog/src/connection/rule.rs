//! Reads permission rules such as `Bash(git push:*)` and `Edit(src/**)`, by which a Claude Code hook selects calls.
//!
//! Each rule becomes a matcher and a condition of ours. The author relies on the hook where the rule fits, so in doubt
//! it runs. So a quoted command after a `;` counts as a command.

use serde_json::json;

/// The calls that a rule selects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// A matcher for the tool.
    pub(super) tool: String,
    /// The condition on its arguments.
    pub(super) condition: Option<String>,
}

/// The start of a command in shell text: after another command, after variables, and after programs that run it.
const COMMAND_START: &str = concat!(
    r"(?:^|[;&|(){}`\n]|\b(?:then|do|else|if|while|until)\s)\s*(?:!\s+)?",
    r#"(?:\w+=(?:'[^']*'|"[^"]*"|\S)*\s+"#,
    r"|(?:time|nohup|command|builtin|noglob|xargs|nice|stdbuf|timeout)\s+(?:-\S+\s+)*(?:[0-9.]+[smhd]?\s+)?)*",
);
/// The end of a command without more arguments.
const COMMAND_END: &str = r"\s*(?:[;&|(){}`\n<>#]|[0-9]+[<>]|$)";
/// The file as the agent names it, relative to the folder of the call.
const PATH: &str = "(data.args.path.startsWith(cwd + '/') ? data.args.path.substring(size(cwd) + 1) : data.args.path)";

impl Rule {
    /// Reads a rule; `None` if conditions cannot express it.
    pub(super) fn read(rule: &str) -> Option<Rule> {
        let (tool, about) = match rule.trim().split_once('(') {
            Some((tool, about)) => (tool, about.strip_suffix(')')?.trim()),
            None => (rule.trim(), "*"),
        };
        let is_name =
            !tool.is_empty() && tool.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter));
        // The text must be one rule, not several.
        if !is_name || about.contains(")|") {
            return None;
        }
        let condition = match (tool, about) {
            (_, "*") => None,
            ("Bash", command) => Some(matching("command", "data.args.command", &command_pattern(command)?)),
            ("Read" | "Edit" | "Write" | "NotebookEdit", path) => Some(path_condition(path)?),
            ("WebFetch", about) => {
                Some(matching("url", "data.args.url", &host_pattern(about.strip_prefix("domain:")?)?))
            }
            _ => return None,
        };
        Some(Rule { tool: matcher(tool), condition })
    }
}

/// A server's name means all of its tools.
fn matcher(tool: &str) -> String {
    match tool.strip_prefix("mcp__") {
        Some(server) if !server.contains("__") => format!("{tool}__*"),
        _ => tool.to_owned(),
    }
}

/// If an agent does not send the argument, the hook runs.
fn matching(arg: &str, value: &str, pattern: &str) -> String {
    format!("(!has(data.args.{arg}) || {value}.matches({}))", json!(pattern))
}

fn command_pattern(command: &str) -> Option<String> {
    if command.is_empty() || command.contains('\\') {
        return None;
    }
    // A star after a space, or after a colon at the end, begins a new word.
    let (start, end) = match command.strip_suffix(":*").or_else(|| command.strip_suffix(" *")) {
        Some(start) => (start, r"(?:\s|[;&|(){}`<>]|$)"),
        None => command.strip_suffix('*').map_or((command, COMMAND_END), |start| (start, "")),
    };
    let letter = |letter: char| match letter {
        '*' => r"[\s\S]*".to_owned(),
        ' ' => r"\s+".to_owned(),
        letter => literal(letter),
    };
    Some(format!("{COMMAND_START}{}{end}", start.chars().map(letter).collect::<String>()))
}

fn path_condition(path: &str) -> Option<String> {
    // Other paths start from a home or from the settings' folder, which conditions do not know.
    let is_known = path.starts_with("//") || !path.starts_with(['/', '~', '!', '#']);
    if path.is_empty() || !is_known || path.contains(['[', ']', '{', '}', '\\']) {
        return None;
    }
    if let Some(absolute) = path.strip_prefix('/').filter(|absolute| absolute.starts_with('/')) {
        return Some(matching(
            "path",
            "data.args.path",
            &format!("^{}(?:/.*)?$", glob(absolute.trim_end_matches('/'))),
        ));
    }
    let path = path.strip_prefix("./").map_or(path, |below| below);
    let inner = path.trim_end_matches('/');
    let depth = if inner.contains('/') { "" } else { "(?:[^/]+/)*" };
    Some(matching("path", PATH, &format!("^(?:\\./)?{depth}{}(?:/.*)?$", glob(inner))))
}

/// The pattern of a file as a regular expression.
fn glob(pattern: &str) -> String {
    let parts: Vec<&str> = pattern.split('/').collect();
    let last = parts.len().saturating_sub(1);
    let part = |(index, part): (usize, &&str)| match (*part, index == last) {
        ("**", true) => ".*".to_owned(),
        ("**", false) => "(?:[^/]+/)*".to_owned(),
        (part, is_last) => {
            format!("{}{}", part.chars().map(in_name).collect::<String>(), if is_last { "" } else { "/" })
        }
    };
    parts.iter().enumerate().map(part).collect()
}

fn in_name(letter: char) -> String {
    match letter {
        '*' => "[^/]*".to_owned(),
        '?' => "[^/]".to_owned(),
        letter => literal(letter),
    }
}

fn host_pattern(host: &str) -> Option<String> {
    let (below, name) = host.strip_prefix("*.").map_or(("", host), |name| (r"[^/@?#:]+\.", name));
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
    let name: String = name.chars().map(literal).collect();
    is_name.then(|| format!(r"(?i)^[a-z][a-z0-9+.-]*://(?:[^/@?#]*@)?{below}{name}(?::[0-9]+)?(?:[/?#]|$)"))
}

fn literal(letter: char) -> String {
    let is_plain = letter.is_alphanumeric() || matches!(letter, '_' | '/' | ' ') || !letter.is_ascii();
    if is_plain { letter.to_string() } else { format!("\\{letter}") }
}

#[cfg(test)]
mod tests {
    use ollm_condition::{Condition, ConditionScope};
    use serde_json::{Map, Value};

    use super::*;

    fn fits(rule: &str, args: Value) -> bool {
        let condition = Rule::read(rule).unwrap_or_else(|| panic!("{rule}")).condition.unwrap();
        let (data, env) = (Map::from_iter([("args".to_owned(), args)]), Map::new());
        let condition = Condition::parse(&condition).unwrap();
        condition.check().unwrap();
        condition.holds(&ConditionScope::new("before_tool", &data, "/srv/app", &env, "user")).unwrap()
    }

    #[test]
    fn a_rule_about_commands_fits_each_command_of_a_line() {
        for (rule, fitting, others) in [
            (
                "Bash(git push:*)",
                &[
                    "git push",
                    "git push --force",
                    "cd x && git push",
                    "ls; git push origin",
                    "A=1 B='2 3' git push",
                    "(git push)",
                    "timeout 10 git push",
                    "nice -n 5 git push",
                    "echo $(git push)",
                    "if true; then git push; fi",
                    "git push>log",
                    "true\ngit push",
                ][..],
                &["git pull", "git pushy", "echo git push", "git stash push", "legit push"][..],
            ),
            ("Bash(git *)", &["git", "git status", "true | git log"], &["gitk", "digit x"]),
            ("Bash(npm run test*)", &["npm run test", "npm run test:unit", "npm run tests"], &["npm test", "npm run"]),
            (
                "Bash(npm run build)",
                &["npm run build", "npm run build > log", "npm run build && x"],
                &["npm run build:all", "npm run build --x"],
            ),
            ("Bash(git * main)", &["git push origin main", "git merge main"], &["git push origin", "git push main-2"]),
            ("Bash(rm -rf *)", &["rm -rf /", "sudo true; rm -rf x"], &["rm x"]),
        ] {
            for command in fitting {
                assert!(fits(rule, json!({"command": command})), "{rule}: {command}");
            }
            for command in others {
                assert!(!fits(rule, json!({"command": command})), "{rule}: {command}");
            }
            assert!(fits(rule, json!({})), "where a command is not told the hook runs");
        }
    }

    #[test]
    fn a_rule_about_files_fits_as_in_a_gitignore() {
        for (rule, fitting, others) in [
            (
                "Edit(src/**)",
                &["/srv/app/src/a.rs", "/srv/app/src/b/c.rs", "src/a.rs", "./src/a.rs"][..],
                &["/srv/app/lib/src/a.rs", "/srv/src/a.rs", "/srv/app/srcs/a"][..],
            ),
            ("Write(*.ts)", &["/srv/app/a.ts", "/srv/app/x/y/a.ts"], &["/srv/app/a.tsx", "/elsewhere/a.ts"]),
            ("Read(.env)", &["/srv/app/.env", "/srv/app/x/.env"], &["/srv/app/.env.local", "/srv/app/xenv"]),
            ("Read(./docs)", &["/srv/app/docs/a.md"], &["/srv/app/adocs/a.md"]),
            (
                "Edit(src/**/test_?.py)",
                &["/srv/app/src/test_1.py", "/srv/app/src/a/b/test_2.py"],
                &["/srv/app/src/test_12.py"],
            ),
            ("Read(//etc/**)", &["/etc/passwd"], &["/srv/app/etc/passwd"]),
            ("Edit(build/)", &["/srv/app/build/x", "/srv/app/a/build/x"], &["/srv/app/builds/x"]),
        ] {
            for path in fitting {
                assert!(fits(rule, json!({"path": path})), "{rule}: {path}");
            }
            for path in others {
                assert!(!fits(rule, json!({"path": path})), "{rule}: {path}");
            }
        }
    }

    #[test]
    fn a_rule_about_a_host_fits_no_other_host() {
        for (rule, fitting, others) in [
            (
                "WebFetch(domain:example.com)",
                &["https://example.com", "http://EXAMPLE.com:80/x", "https://me@example.com/?q"][..],
                &[
                    "https://www.example.com",
                    "https://example.com.evil",
                    "https://evil/example.com",
                    "https://exampleXcom",
                ][..],
            ),
            (
                "WebFetch(domain:*.example.com)",
                &["https://a.b.example.com/x"],
                &["https://example.com", "https://evil/a.example.com"],
            ),
        ] {
            for url in fitting {
                assert!(fits(rule, json!({"url": url})), "{rule}: {url}");
            }
            for url in others {
                assert!(!fits(rule, json!({"url": url})), "{rule}: {url}");
            }
        }
    }

    #[test]
    fn a_rule_about_whole_tools_is_a_matcher() {
        for (rule, tool) in [
            ("Bash", "Bash"),
            ("Bash(*)", "Bash"),
            ("mcp__github", "mcp__github__*"),
            ("mcp__github__create-issue", "mcp__github__create-issue"),
        ] {
            assert_eq!(Rule::read(rule), Some(Rule { tool: tool.to_owned(), condition: None }));
        }
    }

    #[test]
    fn what_conditions_cannot_say_is_not_read() {
        for rule in [
            "",
            "Bash(",
            "Bash()",
            "Bash(a)|Bash(b)",
            "Bash(echo \\*)",
            "Edit(~/.ssh/**)",
            "Edit(/src/**)",
            "Edit([ab].rs)",
            "Agent(Explore)",
            "WebFetch(example.com)",
            "WebFetch(domain:)",
            "PowerShell(Get-*)",
        ] {
            assert_eq!(Rule::read(rule), None, "{rule}");
        }
    }
}
