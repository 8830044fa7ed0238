//! What became of a file, in the fields that hooks are told of it.

use serde_json::{Value, json};

use super::EventKind;

/// What became of a file. Whoever noticed it fills in what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Whether it was created, edited or deleted.
    pub kind: EventKind,
    /// Where it is, from the root of the file system.
    pub path: String,
    /// Where it is, from the root of the project.
    pub name: Option<String>,
    /// What is in it now, if that is text.
    pub content: Option<String>,
    /// The difference to what was in it before, if that is known.
    pub diff: Option<String>,
    /// How many bytes it has now.
    pub size: u64,
    /// When it was noticed, in ISO 8601.
    pub timestamp: String,
}

impl FileChange {
    /// What happened to the file, in one word.
    pub fn verb(&self) -> &'static str {
        match self.kind {
            EventKind::FileCreated => "created",
            EventKind::FileDeleted => "deleted",
            _ => "edited",
        }
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
