//! Reads packages for other agents: Claude Code plugins, Gemini CLI extensions, and plugins in the open format that
//! several agents share.
//!
//! [`foreign_manifest`] reads such a folder and writes an equivalent manifest of ours. Hooks are read by the reader of
//! other agents' hooks, servers by the reader of other programs' servers. Parts without a counterpart here are listed.

use std::fs;
use std::path::{Component, Path};

use ollm_protocol::Rules;
use ollm_protocol::dialect::{AgentDialect, agent_named};
use ollm_store::read_bounded;
use ollm_trust::COPY_FOLDER;
use serde_json::{Map, Value, json};

use super::find::MANIFEST;
use super::name::{check_extension_name, is_plain};
use crate::connection::{ImportedHooks, WrittenFile};
use crate::file::{TrailingCommas, json_value};
use crate::mcp::servers_from_json;

mod misfit;
mod prompt;

/// The largest file of a package, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The variable with the folder of an extension's copy for its hooks. Their box lets them read that folder.
const OF_HOOKS: &str = COPY_FOLDER;
/// The variable with that folder for its servers.
const OF_SERVERS: &str = "OLLM_EXTENSION_ROOT";

/// The reason for leaving out parts that name `CLAUDE_PLUGIN_DATA` or `PLUGIN_DATA`.
const NO_DATA: &str = "it keeps data in a folder that its agent has for the plugin";

/// A package format.
struct PackageForm {
    title: &'static str,
    /// The files that identify it; the first one counts.
    manifests: &'static [&'static str],
    /// The agent whose hook format it uses.
    agent: &'static str,
    /// The variables that hold its folder.
    roots: &'static [&'static str],
    /// The files with servers.
    servers: &'static [&'static str],
    /// The parts without a counterpart here: a file, a folder or a manifest key, with a description.
    left: &'static [(&'static str, &'static str)],
}

/// The manifest keys that are read in every format, or are for people.
const READ: &[&str] = &[
    "$schema",
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "license",
    "repository",
    "homepage",
    "keywords",
    "hooks",
    "mcpServers",
    "settings",
    "skills",
    "commands",
];

/// The most unknown keys that are listed.
const MOST_UNKNOWN: usize = 100;

const CLAUDE_LEFT: &[(&str, &str)] = &[
    ("agents", "sub-agents"),
    ("lspServers", "language servers"),
    (".lsp.json", "language servers"),
    ("outputStyles", "output styles"),
    ("output-styles", "output styles"),
    ("monitors", "monitors"),
    ("settings.json", "settings of the agent itself"),
    ("userConfig", "questions at installation"),
    ("dependencies", "plugins that it needs"),
    ("channels", "channels"),
    ("themes", "themes"),
    ("bin", "programs for the search path"),
    ("rules", "rules"),
];

const FORMS: &[PackageForm] = &[
    PackageForm {
        title: "Claude Code plugin",
        manifests: &[".claude-plugin/plugin.json"],
        agent: "claude",
        roots: &["CLAUDE_PLUGIN_ROOT"],
        servers: &[".mcp.json"],
        left: CLAUDE_LEFT,
    },
    PackageForm {
        title: "Gemini CLI extension",
        manifests: &["gemini-extension.json"],
        agent: "gemini",
        roots: &["extensionPath"],
        servers: &[],
        left: &[
            ("GEMINI.md", "a text for every session"),
            ("contextFileName", "a text for every session"),
            ("excludeTools", "tools to leave out"),
            ("agents", "sub-agents"),
            ("policies", "policies"),
            ("themes", "themes"),
            ("migratedTo", "a new address"),
        ],
    },
    PackageForm {
        title: "Open Plugins plugin",
        manifests: &[".plugin/plugin.json", "plugin.json"],
        // The format uses the hook format of this agent.
        agent: "claude",
        roots: &["PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"],
        servers: &["mcp.json", ".mcp.json"],
        left: CLAUDE_LEFT,
    },
];

/// A package of another agent, translated.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslatedPackage {
    /// The format of the package, for people.
    pub form: &'static str,
    /// The equivalent manifest.
    pub manifest: Value,
    /// The parts that are not loaded, with the reason, one line each.
    pub left: Vec<String>,
}

impl TranslatedPackage {
    /// The manifest as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", self.manifest).into_bytes()
    }
}

/// Whether a folder is one of our extensions, or a known package of another agent.
pub fn is_package(root: &Path) -> bool {
    let others = FORMS.iter().flat_map(|form| form.manifests).copied();
    std::iter::once(MANIFEST).chain(others).any(|file| root.join(file).is_file())
}

/// Whether a file makes a folder an installable package: our manifest, or another agent's.
pub fn is_package_manifest(path: &str) -> bool {
    path == MANIFEST || FORMS.iter().any(|form| form.manifests.contains(&path))
}

/// The translation of a folder, if it is a package of another agent. The error says why it is invalid.
pub fn foreign_manifest(root: &Path, rules: &Rules) -> Result<Option<TranslatedPackage>, String> {
    for form in FORMS {
        for file in form.manifests {
            if let Some(text) = read(root, file)? {
                let mut foreign = PackageReader { root, form, left: Vec::new() }.whole(file, &text)?;
                misfit::leave_out_misfits(&mut foreign, root, rules);
                return Ok(Some(foreign));
            }
        }
    }
    Ok(None)
}

/// A package while it is being read.
struct PackageReader<'a> {
    root: &'a Path,
    form: &'static PackageForm,
    left: Vec<String>,
}

impl PackageReader<'_> {
    fn whole(mut self, file: &str, text: &str) -> Result<TranslatedPackage, String> {
        let declared = object(file, text)?;
        let name = declared.get("name").and_then(Value::as_str).unwrap_or_default();
        let own = usual_name(name);
        check_extension_name(&own)
            .map_err(|why| format!("{file}: `{name}` cannot be the name of an extension: {why}"))?;
        let mut manifest = Map::new();
        let mut set = |key: &str, value: Value| _ = manifest.insert(key.to_owned(), value);
        set("name", own.into());
        set("version", version(&declared).into());
        let title = self.form.title;
        let about = words(&declared, "description").unwrap_or_else(|| format!("A {title}"));
        set("description", about.into());
        for key in ["author", "license", "repository", "homepage"] {
            if let Some(text) = person(declared.get(key)) {
                set(key, text.into());
            }
        }
        if let Some(keywords) = declared.get("keywords").filter(|list| is_texts(list)) {
            set("keywords", keywords.clone());
        }
        for (key, value) in [
            ("hooks", self.hooks(&declared)?),
            ("mcpServers", self.servers(&declared)?),
            ("settings", self.settings(&declared)),
            ("skills", self.skills(&declared)),
        ] {
            if value.as_object().is_some_and(|map| !map.is_empty())
                || value.as_array().is_some_and(|list| !list.is_empty())
            {
                set(key, value);
            }
        }
        self.leave_out(&declared);
        Ok(TranslatedPackage { form: title, manifest: Value::Object(manifest), left: self.left })
    }

    /// The hooks, in the form of our manifest.
    fn hooks(&mut self, declared: &Map<String, Value>) -> Result<Value, String> {
        let mut imported = ImportedHooks::default();
        let Some(agent) = agent_named(self.form.agent) else { return Ok(json!({})) };
        let written = declared.get("hooks");
        for file in &files(&["hooks/hooks.json"], written) {
            let Some(text) = read(self.root, file)? else { continue };
            self.add_hooks(&mut imported, file, &text, agent)?;
        }
        if let Some(inline) = written.filter(|value| value.is_object()) {
            let inline = if inline.get("hooks").is_some() { inline.clone() } else { json!({"hooks": inline}) };
            self.add_hooks(&mut imported, "the manifest", &inline.to_string(), agent)?;
        }
        self.left.append(&mut imported.left);
        imported.hooks.retain(|(event, entry)| {
            let keeps_data = entry.get("action").is_some_and(wants_data);
            if keeps_data {
                self.left.push(format!("a hook at {event}: {NO_DATA}"));
            }
            !keeps_data
        });
        for (_, entry) in &mut imported.hooks {
            self.lead_home(entry);
        }
        Ok(imported.file().get("hooks").cloned().unwrap_or_default())
    }

    fn add_hooks(
        &self,
        imported: &mut ImportedHooks,
        file: &str,
        text: &str,
        agent: &'static AgentDialect,
    ) -> Result<(), String> {
        let from = WrittenFile { path: self.root.join("hooks/hooks.json"), label: file.to_owned(), in_project: false };
        imported.add(&from, text, agent).map_err(|why| format!("{file}: {why}"))
    }

    /// Makes a shell line find the package's folder, under the names that the line and its programs use.
    fn lead_home(&self, entry: &mut Map<String, Value>) {
        let Some(line) = entry.get_mut("action").and_then(|action| action.get_mut("command")) else { return };
        let Some(text) = line.as_str() else { return };
        let found = self.renamed(text, OF_HOOKS);
        let roots = self.form.roots.iter().filter(|name| is_variable(name));
        *line = roots.rfold(found, |line, name| format!("export {name}=\"${{{OF_HOOKS}}}\"; {line}")).into();
    }

    /// A text with our name for the variables that hold the package's folder.
    fn renamed(&self, text: &str, ours: &str) -> String {
        self.form.roots.iter().fold(text.replace("${/}", "/"), |text, name| {
            let text = text.replace(&format!("${{{name}}}"), &format!("${{{ours}}}"));
            replace_bare(&text, name, ours)
        })
    }

    fn servers(&mut self, declared: &Map<String, Value>) -> Result<Value, String> {
        let mut servers = Map::new();
        let written = declared.get("mcpServers");
        for file in files(self.form.servers, written) {
            if let Some(text) = read(self.root, &file)? {
                self.add_servers(&mut servers, &file, &text);
            }
        }
        if let Some(inline) = written.filter(|value| value.is_object()) {
            self.add_servers(&mut servers, "the manifest", &json!({"mcpServers": inline}).to_string());
        }
        Ok(Value::Object(servers))
    }

    fn add_servers(&mut self, servers: &mut Map<String, Value>, file: &str, text: &str) {
        match servers_from_json(text, None) {
            Err(error) => self.left.push(format!("the servers of {file}: {error}")),
            Ok(found) => {
                for (name, declaration) in found {
                    if !is_plain(&name) {
                        self.left.push(format!("the server `{name}` of {file}: it has a name that no server can have"));
                    } else if wants_data(&declaration) {
                        self.left.push(format!("the server `{name}` of {file}: {NO_DATA}"));
                    } else {
                        servers.insert(name, self.told_root(self.with_root(declaration)));
                    }
                }
            }
        }
    }

    /// If a server is a program, also adds the package's folder to its environment.
    fn told_root(&self, mut server: Value) -> Value {
        let mut roots = self.form.roots.iter().filter(|name| is_variable(name)).peekable();
        let is_program = server.get("command").is_some() && roots.peek().is_some();
        if let Some(server) = server.as_object_mut().filter(|_| is_program)
            && let Some(env) = server.entry("env").or_insert_with(|| json!({})).as_object_mut()
        {
            for name in roots {
                env.entry(*name).or_insert_with(|| format!("${{{OF_SERVERS}}}").into());
            }
        }
        server
    }

    fn with_root(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.renamed(&text, OF_SERVERS).into(),
            Value::Array(list) => list.into_iter().map(|item| self.with_root(item)).collect(),
            Value::Object(map) => {
                Value::Object(map.into_iter().map(|(key, value)| (key, self.with_root(value))).collect())
            }
            other => other,
        }
    }

    /// Settings that come in a variable; others have no effect on programs.
    fn settings(&mut self, declared: &Map<String, Value>) -> Value {
        let mut settings: Vec<Value> = Vec::new();
        if declared.get("settings").is_some_and(|value| !value.is_array() && !value.is_null()) {
            self.left.push("settings of the agent itself (`settings`)".to_owned());
        }
        for item in declared.get("settings").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            let (Some(shown), Some(variable)) = (text("name").or(text("envVar")), text("envVar")) else {
                self.left.push("a setting without a variable".to_owned());
                continue;
            };
            let sensitive = item.get("sensitive").and_then(Value::as_bool).unwrap_or_default();
            settings.push(json!({
                "name": variable.to_lowercase(),
                "description": text("description").unwrap_or(shown),
                "envVar": variable,
                "sensitive": sensitive,
            }));
        }
        settings.into()
    }

    fn skills(&mut self, declared: &Map<String, Value>) -> Value {
        let mut skills: Vec<Value> = Vec::new();
        let mut folders = vec!["skills".to_owned()];
        folders.extend(texts(declared.get("skills")));
        let mut commands = vec!["commands".to_owned()];
        commands.extend(texts(declared.get("commands")));
        let found = folders
            .iter()
            .flat_map(|folder| prompt::skills_in(self.root, folder))
            .chain(commands.iter().flat_map(|folder| prompt::commands_in(self.root, folder)));
        for (place, read) in found {
            let known = |name: &Value| skills.iter().any(|skill| skill.get("name") == Some(name));
            match read {
                Ok(skill) if skill.get("name").is_some_and(known) => {}
                Ok(skill) => skills.push(skill),
                Err(why) => self.left.push(format!("{place}: {why}")),
            }
        }
        skills.into()
    }

    fn leave_out(&mut self, declared: &Map<String, Value>) {
        for (place, what) in self.form.left {
            let is_there = declared.get(*place).is_some_and(|value| !value.is_null()) || self.root.join(place).exists();
            let line = format!("{what} (`{place}`)");
            if is_there && !self.left.contains(&line) {
                self.left.push(line);
            }
        }
        let is_known = |key: &str| READ.contains(&key) || self.form.left.iter().any(|(place, _)| *place == key);
        let unknown = declared.iter().filter(|(key, value)| !value.is_null() && !is_known(key));
        let line = |key: &String| format!("`{}`, which nobody here knows", key.chars().take(80).collect::<String>());
        self.left.extend(unknown.take(MOST_UNKNOWN).map(|(key, _)| line(key)));
    }
}

/// The usual files of one kind, and those that a manifest names, each once.
fn files(usual: &[&str], written: Option<&Value>) -> Vec<String> {
    let mut files: Vec<String> = usual.iter().map(|file| (*file).to_owned()).collect();
    for file in texts(written.filter(|value| !value.is_object())) {
        let file = file.strip_prefix("./").unwrap_or(&file);
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
    }
    files
}

/// The text of a file below a folder.
fn read(root: &Path, file: &str) -> Result<Option<String>, String> {
    if !Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(format!("`{file}` leads out of the package"));
    }
    if root.join(file).is_dir() {
        return Ok(None);
    }
    let bytes = read_bounded(&root.join(file), LARGEST_FILE).map_err(|error| format!("{file}: {error}"))?;
    bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| format!("{file}: it is not UTF-8 text"))).transpose()
}

/// The files of a folder, including subfolders, by name.
fn files_below(root: &Path, folder: &str, depth: usize) -> Vec<String> {
    let folder = folder.strip_prefix("./").unwrap_or(folder).trim_end_matches('/');
    if folder.split('/').any(|part| part == "..") || folder.starts_with('/') || depth == 0 {
        return Vec::new();
    }
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let below = |name: String| {
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() { files_below(root, &path, depth - 1) } else { vec![path] }
    };
    names.into_iter().flat_map(below).collect()
}

fn object(file: &str, text: &str) -> Result<Map<String, Value>, String> {
    match json_value(text, TrailingCommas::Allowed) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(format!("{file}: it must be a JSON object")),
        Err(error) => Err(format!("{file}: {error}")),
    }
}

/// A name that fits our rules; other agents may allow other letters.
fn usual_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    name.chars().map(letter).collect::<String>().trim_matches('-').to_owned()
}

/// The version, which other agents' packages may lack.
fn version(declared: &Map<String, Value>) -> String {
    let written = words(declared, "version").unwrap_or_default();
    let written = written.trim_start_matches('v').to_owned();
    if semver::Version::parse(&written).is_ok() { written } else { "0.0.0".to_owned() }
}

fn words(declared: &Map<String, Value>, key: &str) -> Option<String> {
    declared.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A person or place in a manifest, as text or as an object.
fn person(value: Option<&Value>) -> Option<String> {
    let value = value?;
    let of = |key: &str| value.get(key).and_then(Value::as_str);
    let text = value.as_str().or_else(|| of("name")).or_else(|| of("url"))?;
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

/// A text, or the texts of a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Whether a part needs a data folder that its agent would provide.
fn wants_data(value: &Value) -> bool {
    value.to_string().contains("PLUGIN_DATA")
}

/// Whether a name is valid for a shell variable.
fn is_variable(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

/// Replaces `$NAME` without braces by another variable; longer names stay.
fn replace_bare(text: &str, name: &str, ours: &str) -> String {
    let mark = format!("${name}");
    let mut parts = text.split(mark.as_str());
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        let variable = if goes_on { mark.clone() } else { format!("${{{ours}}}") };
        replaced.push_str(&variable);
        replaced.push_str(part);
    }
    replaced
}

#[cfg(test)]
mod tests;
