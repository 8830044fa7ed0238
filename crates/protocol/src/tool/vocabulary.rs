//! Calls across vocabularies: the same arguments under the names of our tools and of every agent's.

use serde_json::{Map, Value};

use super::effect::{Declaration, ForeignTool, declared, same_name};
use super::table::FOREIGN;

impl Declaration {
    /// The canonical name of an argument, by any of the names that agents have for it.
    pub fn argument(&self, name: &str) -> Option<&'static str> {
        let own = self.effects.iter().map(|(own, _)| *own).find(|own| same_name(own, name));
        own.or_else(|| {
            let rows = FOREIGN.iter().filter(|row| row.tool.name == self.name);
            let mut renamed = rows.flat_map(ForeignTool::renamed);
            renamed.find(|(theirs, ours)| same_name(theirs, name) || *ours == name).map(|(_, ours)| ours)
        })
    }
}

/// Adds to the arguments of a call the canonical names that they lack, and tells which.
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
    added
}

/// The arguments with a patch on top, which may use other names for them: each name of a changed argument has the new
/// value then.
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
        let canonical = tool.and_then(|tool| tool.argument(name));
        let is_it = |other: &&String| *other == name || canonical.is_some_and(|own| names(tool, other, own));
        let known: Vec<String> = args.keys().filter(is_it).cloned().collect();
        for known in if known.is_empty() { vec![name.clone()] } else { known } {
            patched.insert(known, value.clone());
        }
    }
    patched
}

fn names(tool: Option<&Declaration>, name: &str, canonical: &str) -> bool {
    tool.and_then(|tool| tool.argument(name)) == Some(canonical)
}

/// A call in the words of an agent: its name for the tool, and each argument once, under its name for it.
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
    for (name, value) in args {
        let canonical = declared.argument(name);
        let renamed = || row.renamed().filter(|(_, ours)| Some(*ours) == canonical);
        let own = renamed().find(|(theirs, _)| theirs == name).or_else(|| renamed().next());
        // An argument that the agent has no name for keeps ours, and one that is no argument of the tool stays.
        let name = own.map(|(theirs, _)| theirs).or(canonical).unwrap_or(name);
        spelled.entry(name).or_insert_with(|| value.clone());
    }
    (row.name.to_owned(), spelled)
}
