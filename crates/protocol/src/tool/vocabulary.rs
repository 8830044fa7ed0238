//! Translates calls between vocabularies: the same arguments under our tools' names and every agent's.

use std::borrow::Cow;

use ollm_shell::shell_word;
use serde_json::{Map, Value};

use super::effect::{Declaration, ForeignTool, declared, same_name};
use super::patched_files;
use super::table::{APPLY_PATCH, FOREIGN, SHELL, TOOLS};

/// Most agents run one command, and some run a list of commands.
const ONE: &str = "command";
const EACH: &str = "commands";
/// Our name for a file argument, which most agents share.
const PATH: &str = "path";
const FILE_PATH: &str = "file_path";
/// The argument with all files of a call that may name several.
const PATHS: &str = "paths";
const PATCH: &str = "patch";
const OPERATIONS: &str = "operations";

impl Declaration {
    /// The canonical name of an argument, by any agent's name for it.
    pub fn argument(&self, name: &str) -> Option<&'static str> {
        let own = self.effects.iter().map(|(own, _)| *own).find(|own| same_name(own, name));
        own.or_else(|| {
            let rows = FOREIGN.iter().filter(|row| row.tool.name == self.name);
            let mut renamed = rows.flat_map(ForeignTool::renamed);
            renamed.find(|(theirs, ours)| same_name(theirs, name) || *ours == name).map(|(_, ours)| ours)
        })
    }
}

impl ForeignTool {
    /// Whether it runs a list of commands.
    fn runs_each(&self) -> bool {
        self.data.iter().any(|(theirs, _)| *theirs == EACH)
    }
}

/// Adds the missing canonical argument names to a call, and returns the added names.
///
/// ```
/// use ollm_protocol::tool::add_canonical;
/// use serde_json::json;
///
/// let mut args = json!({"file_path": "a.rs"});
/// let added = add_canonical("Read", args.as_object_mut().unwrap());
/// assert_eq!((args, added), (json!({"file_path": "a.rs", "path": "a.rs"}), vec!["path"]));
/// ```
pub fn add_canonical(tool: &str, args: &mut Map<String, Value>) -> Vec<&'static str> {
    let Some(tool) = declared(tool) else { return Vec::new() };
    let mut added = Vec::new();
    for (name, value) in args.clone() {
        if let Some(canonical) = tool.argument(&name).filter(|canonical| !args.contains_key(*canonical)) {
            args.insert(canonical.to_owned(), value);
            added.push(canonical);
        }
    }
    if let Some(files) = files(tool, args).filter(|files| !files.is_empty() && !args.contains_key(PATHS)) {
        if let [file] = files.as_slice() {
            args.insert(PATH.to_owned(), file.clone());
            added.push(PATH);
        }
        args.insert(PATHS.to_owned(), files.into());
        added.push(PATHS);
    }
    // Most hooks of other agents read the file from this argument.
    if let Some(path) = args.get(PATH).filter(|path| path.is_string()).cloned()
        && tool.argument(FILE_PATH) == Some(PATH)
        && !args.contains_key(FILE_PATH)
    {
        args.insert(FILE_PATH.to_owned(), path);
        added.push(FILE_PATH);
    }
    if let Some(command) = args.get(EACH).filter(|_| tool.name == SHELL.name).and_then(joined)
        && !args.contains_key(ONE)
    {
        args.insert(ONE.to_owned(), command);
        added.push(ONE);
    }
    added
}

/// The files of a call that may name several: in a list, in a list of operations, in a patch.
fn files(tool: &Declaration, args: &Map<String, Value>) -> Option<Vec<Value>> {
    let patch = args.get(PATCH).filter(|_| tool.name == APPLY_PATCH.name).and_then(Value::as_str);
    if let Some(patch) = patch {
        return Some(patched_files(patch).into_iter().map(|(_, file)| file.into()).collect());
    }
    let listed = args.get(PATH).or_else(|| args.get(OPERATIONS)).filter(|_| tool.argument(PATH).is_some());
    let named = |item: &Value| item.as_str().or_else(|| item.get(PATH)?.as_str()).map(Value::from);
    Some(listed?.as_array()?.iter().filter_map(named).collect())
}

/// Several commands as one text. Each is a text, or a program with its arguments.
fn joined(commands: &Value) -> Option<Value> {
    let commands: Option<Vec<Cow<'_, str>>> = match commands {
        Value::Array(commands) => commands.iter().map(command_line).collect(),
        one => command_line(one).map(|one| vec![one]),
    };
    commands.map(|commands| commands.join("\n").into())
}

fn command_line(command: &Value) -> Option<Cow<'_, str>> {
    if let Some(text) = command.as_str() {
        return Some(text.into());
    }
    let program = command.get(ONE)?.as_str()?;
    let Some(args) = command.get("args") else { return Some(program.into()) };
    let words: Option<Vec<Cow<'_, str>>> = args.as_array()?.iter().map(|word| word.as_str().map(shell_word)).collect();
    Some(format!("{program} {}", words?.join(" ")).into())
}

/// The arguments with a patch applied. The patch may use other names for them; then every name of a changed argument
/// gets the new value. A null removes the argument.
///
/// ```
/// use ollm_protocol::tool::patched;
/// use serde_json::json;
///
/// let (args, patch) = (json!({"file_path": "a", "limit": 9}), json!({"path": "b", "limit": 9}));
/// let patched = patched("Read", args.as_object().unwrap(), patch.as_object().unwrap());
/// assert_eq!(serde_json::Value::Object(patched), json!({"file_path": "b", "limit": 9}));
/// ```
pub fn patched(tool: &str, args: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let tool = declared(tool);
    let mut patched = args.clone();
    for (name, value) in patch.iter().filter(|(name, value)| args.get(*name) != Some(value)) {
        let canonical = tool.and_then(|tool| tool.argument(name)).unwrap_or(name);
        let (canonical, value) = match (canonical, joined(value)) {
            (EACH, Some(command)) if !args.contains_key(EACH) => (ONE, command),
            _ => (canonical, value.clone()),
        };
        let is_it = |other: &&String| *other == name || names(tool, other, canonical);
        let known: Vec<String> = args.keys().filter(is_it).cloned().collect();
        if value.is_null() {
            patched.retain(|name, _| !known.contains(name));
            continue;
        }
        let is_each = canonical == ONE && args.get(EACH).is_some_and(Value::is_array);
        if is_each {
            patched.insert(EACH.to_owned(), Value::from(vec![value.clone()]));
        } else if known.is_empty() {
            patched.insert(name.clone(), value.clone());
        }
        patched.extend(known.into_iter().map(|known| (known, value.clone())));
    }
    patched
}

/// Has a patch remove those of the arguments that it does not have, under any name.
pub fn remove_others<'a>(tool: &str, args: impl Iterator<Item = &'a String>, patch: &mut Map<String, Value>) {
    let tool = declared(tool);
    let canonical = |name: &str| tool.and_then(|tool| tool.argument(name)).unwrap_or(name).to_owned();
    let kept: Vec<String> = patch.keys().map(|name| canonical(name)).collect();
    patch.extend(args.filter(|name| !kept.contains(&canonical(name))).map(|name| (name.clone(), Value::Null)));
}

/// A name in the patch that is an argument of other tools, but not of this one. The patch was probably meant for
/// another call.
///
/// ```
/// use ollm_protocol::tool::misfit;
/// use serde_json::json;
///
/// let (args, patch) = (json!({"command": "*** Begin Patch"}), json!({"path": "b"}));
/// let misfit = misfit("apply_patch", args.as_object().unwrap(), patch.as_object().unwrap());
/// assert_eq!(misfit, Some("path"));
/// ```
pub fn misfit<'p>(tool: &str, args: &Map<String, Value>, patch: &'p Map<String, Value>) -> Option<&'p str> {
    let tool = declared(tool)?;
    let mut changed = patch.keys().filter(|name| !args.contains_key(*name) && tool.argument(name).is_none());
    changed.find(|name| TOOLS.iter().any(|other| other.argument(name).is_some())).map(String::as_str)
}

fn names(tool: Option<&Declaration>, name: &str, canonical: &str) -> bool {
    tool.and_then(|tool| tool.argument(name)) == Some(canonical)
}

/// A call in an agent's vocabulary: its name for the tool, and each argument once, under its name.
///
/// ```
/// use ollm_protocol::tool::spelled_for;
/// use serde_json::json;
///
/// let args = json!({"path": "a.rs", "limit": 9});
/// let (tool, args) = spelled_for("claude", "read_file", args.as_object().unwrap());
/// assert_eq!((tool.as_str(), serde_json::Value::Object(args)), ("Read", json!({"file_path": "a.rs", "limit": 9})));
/// ```
pub fn spelled_for(agent: &str, tool: &str, args: &Map<String, Value>) -> (String, Map<String, Value>) {
    let Some(declared) = declared(tool) else { return (tool.to_owned(), args.clone()) };
    let rows = || FOREIGN.iter().filter(|row| row.agents.contains(&agent));
    let same = || rows().filter(|row| row.tool.name == declared.name);
    let akin = || rows().find(|row| row.tool.does(declared));
    let Some(row) = same().find(|row| row.name == tool).or_else(|| same().next()).or_else(akin) else {
        return (tool.to_owned(), args.clone());
    };
    let mut spelled = Map::new();
    // Only we have a list of all files, unless the agent has one, too.
    let has_list = row.renamed().any(|(theirs, _)| theirs == PATHS);
    for (name, value) in args.iter().filter(|(name, _)| *name != PATHS || has_list) {
        let canonical = declared.argument(name);
        let renamed = || row.renamed().filter(|(_, ours)| Some(*ours) == canonical);
        let own = renamed().find(|(theirs, _)| theirs == name).or_else(|| renamed().next());
        // Arguments without a name in the agent's vocabulary keep ours. Values that are not arguments of the tool stay
        // unchanged.
        let name = own.map(|(theirs, _)| theirs).or(canonical).unwrap_or(name);
        spelled.entry(name).or_insert_with(|| value.clone());
    }
    if row.runs_each() {
        if let Some(commands) = spelled.get_mut(EACH).filter(|commands| !commands.is_array()) {
            *commands = Value::from(vec![commands.take()]);
        }
    } else if let Some(command) = spelled.get(EACH).filter(|_| declared.name == SHELL.name).and_then(joined) {
        spelled.shift_remove(EACH);
        spelled.entry(ONE).or_insert(command);
    }
    (row.name.to_owned(), spelled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> &Map<String, Value> {
        value.as_object().unwrap()
    }

    #[test]
    fn a_file_has_our_name_and_the_one_most_agents_have() {
        for (tool, theirs) in [("read", "filePath"), ("str_replace_editor", "path"), ("Read", "file_path")] {
            let mut args = Map::from_iter([(theirs.to_owned(), json!("a.rs"))]);
            add_canonical(tool, &mut args);
            assert_eq!((&args["path"], &args["file_path"]), (&json!("a.rs"), &json!("a.rs")), "{tool}");
        }
        // A folder is not a file.
        let mut args = Map::from_iter([("path".to_owned(), json!("src"))]);
        assert_eq!(add_canonical("list_dir", &mut args), Vec::<&str>::new());
    }

    #[test]
    fn all_files_of_a_call_are_listed_and_one_alone_has_our_name() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n*** Add File: .env\n*** End Patch";
        for (tool, args, path, paths) in [
            ("apply_patch", json!({"command": patch}), Value::Null, json!(["a.rs", ".env"])),
            ("read_many_files", json!({"include": ["a.rs"]}), json!("a.rs"), json!(["a.rs"])),
            ("fs_read", json!({"operations": [{"path": "a"}, {"path": "b"}]}), Value::Null, json!(["a", "b"])),
            ("Read", json!({"file_path": "a.rs"}), json!("a.rs"), Value::Null),
            ("read_files", json!({"files": [{"path": "a.rs"}]}), json!("a.rs"), json!(["a.rs"])),
        ] {
            let mut args = object(&args).clone();
            add_canonical(tool, &mut args);
            let found = |name: &str| args.get(name).filter(|value| !value.is_array() || name == PATHS).cloned();
            assert_eq!((found(PATH).unwrap_or_default(), found(PATHS).unwrap_or_default()), (path, paths), "{tool}");
        }
    }

    #[test]
    fn one_command_and_a_list_of_them_are_the_same_argument() {
        let mut args = object(&json!({"commands": ["ls", "git push"]})).clone();
        assert_eq!(add_canonical("run_commands", &mut args), ["command"]);
        assert_eq!(args["command"], "ls\ngit push");
        let changed = patched("run_commands", &args, object(&json!({"command": "ls"})));
        assert_eq!(Value::Object(changed), json!({"commands": ["ls"], "command": "ls"}));
        let changed = patched("Bash", object(&json!({"command": "ls"})), object(&json!({"commands": ["a", "b"]})));
        assert_eq!(Value::Object(changed), json!({"command": "a\nb"}));
        for commands in [
            json!("git push -f 'a b'"),
            json!({"command": "git", "args": ["push", "-f", "a b"]}),
            json!([{"command": "git", "args": ["push", "-f", "a b"]}]),
        ] {
            let mut args = Map::from_iter([("commands".to_owned(), commands)]);
            add_canonical("run_commands", &mut args);
            assert_eq!(args["command"], "git push -f 'a b'");
        }
        let raw = json!({"commands": ["ls"]});
        let changed = patched("run_commands", object(&raw), object(&json!({"cmd": "pwd"})));
        assert_eq!(Value::Object(changed), json!({"commands": ["pwd"]}));
        let told = spelled_for("cline", "Bash", object(&json!({"command": "ls", "timeout": 5})));
        assert_eq!(told, ("run_commands".to_owned(), object(&json!({"commands": ["ls"], "timeout": 5})).clone()));
    }

    #[test]
    fn an_agent_that_runs_one_command_is_not_told_of_a_list() {
        for args in [json!({"commands": ["a", "b"]}), json!({"commands": ["a", "b"], "command": "a\nb"})] {
            let (_, told) = spelled_for("claude", "run_commands", object(&args));
            assert_eq!(Value::Object(told), json!({"command": "a\nb"}));
        }
    }

    #[test]
    fn a_call_is_told_in_the_words_of_every_agent_that_has_such_a_tool() {
        let call = json!({"path": "a.rs", "old": "x", "new": "y"});
        for (agent, name, args) in [
            ("claude", "Edit", json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"})),
            ("gemini", "replace", json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"})),
            ("qwen", "edit", json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"})),
            ("copilot", "edit", json!({"path": "a.rs", "old_str": "x", "new_str": "y"})),
            ("opencode", "edit", json!({"filePath": "a.rs", "oldString": "x", "newString": "y"})),
            ("cline", "replace_in_file", json!({"path": "a.rs", "old": "x", "new": "y"})),
            ("windsurf", "write_code", json!({"file_path": "a.rs", "old": "x", "new": "y"})),
        ] {
            let told = spelled_for(agent, "edit_file", object(&call));
            assert_eq!(told, (name.to_owned(), object(&args).clone()), "{agent}");
        }
    }
}
