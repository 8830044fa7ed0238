//! A change of a file, with the fields that hooks get.

use serde_json::{Value, json};

use super::EventKind;

/// A change of a file. The code that noticed it fills in the known values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Whether it was created, edited or deleted.
    pub kind: EventKind,
    /// Its absolute path.
    pub path: String,
    /// Its path relative to the project's root.
    pub name: Option<String>,
    /// Its present content, if that is text.
    pub content: Option<String>,
    /// The difference to the earlier content, if known.
    pub diff: Option<String>,
    /// Its present size in bytes.
    pub size: u64,
    /// When the change was noticed, in ISO 8601.
    pub timestamp: String,
}

impl EventKind {
    /// The kind of change as one word, for a file event.
    pub(crate) fn change(self) -> &'static str {
        match self {
            EventKind::FileCreated => "created",
            EventKind::FileDeleted => "deleted",
            _ => "edited",
        }
    }
}

impl FileChange {
    /// The kind of change as one word.
    pub fn verb(&self) -> &'static str {
        self.kind.change()
    }

    /// The fields of the event.
    ///
    /// ```
    /// use ollm_protocol::{EventKind, FileChange};
    /// let change = FileChange {
    ///     kind: EventKind::FileCreated,
    ///     path: "/p/src/a.rs".to_owned(),
    ///     name: Some("src/a.rs".to_owned()),
    ///     content: Some("new\n".to_owned()),
    ///     diff: None,
    ///     size: 4,
    ///     timestamp: "2026-01-02T03:04:05.000Z".to_owned(),
    /// };
    /// let fields = change.fields();
    /// assert_eq!(fields[0], ("path", "/p/src/a.rs".into()));
    /// assert_eq!(fields[1].1["type"], "created");
    /// assert_eq!(fields[2].1["path"], "src/a.rs");
    /// assert_eq!(fields[2].1["absolutePath"], "/p/src/a.rs");
    /// ```
    pub fn fields(self) -> Vec<(&'static str, Value)> {
        let changes = json!({"type": self.verb(), "size": self.size, "timestamp": self.timestamp});
        let name = self.name.as_ref().unwrap_or(&self.path);
        let mut file = json!({"path": name, "absolutePath": self.path});
        if let Some(file) = file.as_object_mut() {
            file.extend(self.content.map(|content| ("content".to_owned(), content.into())));
            file.extend(self.diff.clone().map(|diff| ("changes".to_owned(), diff.into())));
        }
        let mut fields = vec![("path", self.path.into()), ("changes", changes), ("file", file)];
        fields.extend(self.diff.map(|diff| ("diff", diff.into())));
        fields
    }
}
