//! One registry for all tools: the model sees no difference between built-in tools and those of a source.

use std::sync::Arc;

use ollm_protocol::schema::{SchemaMismatch, check};
use ollm_protocol::{Content, Tool, ToolResult};
use serde_json::{Map, Value};

use crate::port::ToolSource;
use crate::tool::{self, BuiltIn, Description, Reach, TOOLS, task};

/// All available tools.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
}

/// The implementation of a tool.
#[derive(Clone)]
pub(crate) enum Worker {
    BuiltIn(&'static dyn BuiltIn),
    /// A sub-agent, which the session runs.
    Task,
    Source(Arc<dyn ToolSource>),
}

impl Worker {
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Worker::BuiltIn(tool) => Reach::of(tool.describe().declaration),
            // The person is asked about each call of the sub-agent instead.
            Worker::Task => Reach::of(task::DESCRIPTION.declaration),
            // It declares no effects to us. A server's claim that it only reads is not trusted.
            Worker::Source(_) => Reach::Acts,
        }
    }

    /// Checks the arguments of a call. `offer` is the offered tool with its schema.
    pub(crate) fn fits(&self, args: &Map<String, Value>, offer: Option<&Tool>) -> Result<(), String> {
        match self {
            Worker::BuiltIn(tool) => tool.describe().fits(args),
            Worker::Task => task::DESCRIPTION.fits(args),
            Worker::Source(_) => {
                let Some(offer) = offer else { return Ok(()) };
                match check(&args.clone().into(), &offer.input.0) {
                    Err(SchemaMismatch::Broken { at, why }) => {
                        let place = if at.is_empty() {
                            "the arguments".to_owned()
                        } else {
                            format!("`{}`", at.trim_start_matches('/'))
                        };
                        Err(format!("{place} do not fit: {why}"))
                    }
                    // If the check has no end, the tool itself judges its arguments.
                    Ok(_) | Err(SchemaMismatch::Endless) => Ok(()),
                }
            }
        }
    }

    /// Whether hooks also get its file as `file_path`.
    pub(crate) fn has_path(&self) -> bool {
        matches!(self, Worker::BuiltIn(tool) if tool.describe().has_path())
    }
}

impl Registry {
    /// Every tool once. If a name occurs twice, the first tool keeps it; built-in tools come first.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let built_in = TOOLS.iter().map(|tool| tool.describe()).chain([task::DESCRIPTION]);
        let mut tools: Vec<Tool> = built_in.map(|description: Description| description.tool()).collect();
        for tool in self.sources.iter().flat_map(|source| source.tools()) {
            if !tools.iter().any(|known| known.name == tool.name) {
                tools.push(tool);
            }
        }
        tools
    }

    pub(crate) fn worker(&self, name: &str) -> Option<Worker> {
        if let Some(tool) = tool::find(name) {
            return Some(Worker::BuiltIn(tool));
        }
        if name == task::DESCRIPTION.declaration.name {
            return Some(Worker::Task);
        }
        let offers = |source: &&Arc<dyn ToolSource>| source.tools().iter().any(|tool| tool.name == name);
        self.sources.iter().find(offers).map(|source| Worker::Source(Arc::clone(source)))
    }

    /// The implementation of a tool that is no longer offered, if a call can bring the tool back.
    pub(crate) fn recalled(&self, name: &str) -> Option<Worker> {
        self.sources.iter().find(|source| source.recalls(name)).map(|source| Worker::Source(Arc::clone(source)))
    }
}

/// A result as the model reads it.
pub(crate) fn text_of(result: &ToolResult) -> String {
    let parts: Vec<String> = result.content.iter().map(part).filter(|part| !part.is_empty()).collect();
    match (parts.is_empty(), &result.structured) {
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "[no output]".to_owned(),
        (false, _) => parts.join("\n"),
    }
}

/// A result as hooks see it: the structured result if there is one.
pub(crate) fn value_of(result: &ToolResult) -> Value {
    result.structured.clone().unwrap_or_else(|| text_of(result).into())
}

fn part(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Image { data, mime_type } => format!("[a picture, {mime_type}, {} bytes in base64]", data.len()),
        Content::Audio { data, mime_type } => format!("[a sound, {mime_type}, {} bytes in base64]", data.len()),
        Content::Resource { uri, text: Some(text), .. } => format!("[{uri}]\n{text}"),
        Content::Resource { uri, blob, .. } => {
            format!("[{uri}, {} bytes in base64]", blob.as_ref().map_or(0, String::len))
        }
        Content::Link { uri, name, description, .. } => match description {
            Some(description) => format!("[{name}: {uri}, {description}]"),
            None => format!("[{name}: {uri}]"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Order;
    use ollm_protocol::ToolSchema;
    use serde_json::json;

    struct Names(&'static [&'static str]);

    impl ToolSource for Names {
        fn tools(&self) -> Vec<Tool> {
            let tool = |name: &&str| Tool {
                name: (*name).to_owned(),
                description: String::new(),
                input: ToolSchema::default(),
                output: None,
                read_only: true,
            };
            self.0.iter().map(tool).collect()
        }

        fn call(&self, _: &Order) -> ToolResult {
            ToolResult::text(self.0.join(","))
        }
    }

    #[test]
    fn tools_of_all_sources_live_together_and_names_stay_with_who_had_them_first() {
        let registry = Registry { sources: vec![Arc::new(Names(&["a", "shell"])), Arc::new(Names(&["a", "b"]))] };
        let names: Vec<String> = registry.tools().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len() + 3, "beside ours and `task` two of sources");
        assert!(matches!(registry.worker("shell"), Some(Worker::BuiltIn(_))));
        let Some(Worker::Source(source)) = registry.worker("a") else { panic!("a source has it") };
        assert_eq!(source.tools().len(), 2);
        assert!(registry.worker("c").is_none());
        assert_eq!(registry.worker("a").unwrap().reach(), Reach::Acts, "a hint is no proof");
    }

    #[test]
    fn every_kind_of_content_is_told_to_the_model() {
        let result = ToolResult {
            content: vec![
                Content::Text("t".into()),
                Content::Image { data: "abcd".into(), mime_type: "image/png".into() },
                Content::Resource { uri: "x:y".into(), mime_type: None, text: Some("r".into()), blob: None },
                Content::Link { uri: "x:z".into(), name: "n".into(), description: None, mime_type: None },
            ],
            structured: Some(json!({"k": 1})),
            is_error: false,
        };
        assert_eq!(text_of(&result), "t\n[a picture, image/png, 4 bytes in base64]\n[x:y]\nr\n[n: x:z]");
        assert_eq!(value_of(&result), json!({"k": 1}));
        let bare = ToolResult { structured: Some(json!([1])), ..ToolResult::default() };
        assert_eq!(text_of(&bare), "[1]");
        assert_eq!(text_of(&ToolResult::default()), "[no output]");
    }
}
