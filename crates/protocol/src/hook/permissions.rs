//! What the program of a hook or a server may do: it runs in a box that leaves this open.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Source;

/// What a program may do beyond reading its own files and the system's: all else is refused by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionsSpec {
    /// What it may read, with all that is in it: absolute, below `~`, or from the project's root.
    pub read: Vec<String>,
    /// What it may write, spelled likewise.
    pub write: Vec<String>,
    /// Whether it may use the network.
    pub net: bool,
}

/// Which programs that declare no permissions run in a box all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DefaultBox {
    /// Those that came with a project or an extension.
    #[default]
    On,
    /// None of them.
    Declared,
}

impl DefaultBox {
    /// The value with this name in the configuration; the stricter one for any other.
    pub fn from_name(name: &str) -> DefaultBox {
        if name == "declared" { DefaultBox::Declared } else { DefaultBox::On }
    }

    /// What a program of this source is held to: what it declares, or nothing beyond the least that every program needs.
    pub fn applies_to(self, declared: Option<&PermissionsSpec>, source: Source) -> Option<PermissionsSpec> {
        let foreign = matches!(source, Source::Workspace | Source::Extension | Source::Downloaded);
        declared.cloned().or_else(|| (foreign && self == DefaultBox::On).then(PermissionsSpec::default))
    }
}

impl PermissionsSpec {
    /// What the box leaves open, in a few words.
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

    /// The same, and where nobody declared it, the line that lets the program do the most usual thing.
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

    /// The line of a declaration that says this, with the keys that say something.
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
