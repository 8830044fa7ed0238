//! The permissions of a hook's or server's program, which runs in a box.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Source;
use super::key::{HookKey, KeyKind, ROW};

/// What a program may do in addition to reading its own and the system's files. The kernel refuses everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsSpec {
    /// The paths it may read, with all their content: absolute, below `~`, or relative to the project's root.
    pub read: Vec<String>,
    /// The paths it may write, in the same notation.
    pub write: Vec<String>,
    /// Whether it may use the network.
    pub net: bool,
}

pub(super) const PERMISSIONS_KEYS: &[HookKey] = &[
    HookKey {
        name: "read",
        about: "Further files and folders that it may read: absolute, below `~`, or from the project's root",
        kind: KeyKind::Texts("a list of paths", |spec, paths| spec.permissions.get_or_insert_default().read = paths),
        ..ROW
    },
    HookKey {
        name: "write",
        about: "Files and folders that it may write, spelled likewise; a folder that ends in `/` is made if it is not there",
        kind: KeyKind::Texts("a list of paths", |spec, paths| spec.permissions.get_or_insert_default().write = paths),
        ..ROW
    },
    HookKey {
        name: "net",
        about: "Whether it may use the network and sockets of this machine",
        default: "false",
        kind: KeyKind::Flag(|spec, flag| spec.permissions.get_or_insert_default().net = flag),
        ..ROW
    },
];

/// Which programs without declared permissions run in a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefaultBox {
    /// Those from a project or an extension.
    #[default]
    On,
    /// None of them.
    Declared,
}

impl DefaultBox {
    /// The value with this name in the configuration; any other name gives the stricter one.
    pub fn from_name(name: &str) -> DefaultBox {
        if name == "declared" { DefaultBox::Declared } else { DefaultBox::On }
    }

    /// The permissions of a program from this source: the declared ones, or the minimum that every program needs.
    pub fn applies_to(self, declared: Option<&PermissionsSpec>, source: Source) -> Option<PermissionsSpec> {
        let foreign = matches!(source, Source::Workspace | Source::Extension | Source::Downloaded);
        declared.cloned().or_else(|| (foreign && self == DefaultBox::On).then(PermissionsSpec::default))
    }
}

impl PermissionsSpec {
    /// A short description of what the box allows.
    pub fn describe(&self) -> String {
        let list = |usual: &[&str], more: &[String]| {
            usual.iter().copied().chain(more.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
        };
        let reads = list(&["system folders", "its own files", "the project"], &self.read);
        let writes = list(&["a temporary folder of its own"], &self.write);
        let writes = if self.write.is_empty() { writes } else { format!("{writes}, never what is protected") };
        let net = if self.net { "the network" } else { "no network" };
        format!("reads {reads}; writes {writes}; {net}")
    }

    /// The same. Without a declaration, it also has the line that allows the most common access.
    pub fn describe_as(&self, declared: bool) -> String {
        if declared {
            return self.describe();
        }
        let project = PermissionsSpec { write: vec![".".to_owned()], ..self.clone() };
        format!("{} (by default; {} would let it write in the project)", self.describe(), project.line())
    }

    /// Its keys and what they hold.
    pub fn to_json(&self) -> Value {
        json!({"read": self.read, "write": self.write, "net": self.net})
    }

    /// The line that declares these permissions, without empty keys.
    ///
    /// ```
    /// use ollm_protocol::PermissionsSpec;
    /// let permissions = PermissionsSpec { write: vec![".".to_owned()], ..PermissionsSpec::default() };
    /// assert_eq!(permissions.line(), r#""permissions": {"write": ["."]}"#);
    /// ```
    pub fn line(&self) -> String {
        let list = |name: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("\"{name}\": {}", texts(paths)));
        let net = self.net.then(|| "\"net\": true".to_owned());
        let parts = [list("read", &self.read), list("write", &self.write), net];
        format!("\"permissions\": {{{}}}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

fn texts(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|text| Value::from(text.as_str()).to_string()).collect::<Vec<_>>().join(", "))
}
