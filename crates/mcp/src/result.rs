//! Converts the result of a call into our types: every kind of content, and the structured result checked against the
//! output schema of the tool. A result that is too large for a model is cut, and the whole is kept in a file.

use ollm_protocol::schema::{SchemaMismatch, check};
use ollm_protocol::{Content, ToolResult, ToolSchema};
use ollm_store::escape_for_people;
use serde_json::{Map, Value, json};

mod spill;

pub use spill::{Spill, SpillError};

/// The most text of one result: more would fill a model's context with one call.
pub const LARGEST_RESULT: usize = 100 << 10;
/// The most bytes of pictures and sounds in one result; a larger result is kept in a file.
pub(crate) const LARGEST_MEDIA: usize = 5 << 20;
/// How much of a larger result is shown beside the path of the file.
pub(crate) const SHOWN: usize = 8 << 10;
/// The most parts of one result; further parts are ignored.
pub(crate) const MOST_PARTS: usize = 1_000;

/// A result, and notes about what was unusual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckedResult {
    /// The result.
    pub result: ToolResult,
    /// What a person should know about it.
    pub notes: Vec<String>,
}

/// The result of `tools/call`, as JSON.
///
/// ```
/// use serde_json::json;
/// let answer = json!({"content": [{"type": "text", "text": "4"}], "structuredContent": {"sum": 4}});
/// let taken = ollm_mcp::read_result(&answer, None);
/// assert_eq!(taken.result.structured, Some(json!({"sum": 4})));
/// assert!(!taken.result.is_error);
/// ```
pub fn read(answer: &Value, promised: Option<&ToolSchema>) -> CheckedResult {
    let mut taken = CheckedResult::default();
    let Some(answer) = answer.as_object() else {
        taken.notes.push("the answer is not an object".to_owned());
        taken.result = ToolResult::error(format!("the server's answer makes no sense: {}", shown(answer)));
        return taken;
    };
    taken.result.is_error = answer.get("isError") == Some(&Value::Bool(true));
    match answer.get("content") {
        Some(Value::Array(parts)) => content(parts, &mut taken),
        None | Some(Value::Null) => {}
        Some(other) => taken.result.content.push(Content::Text(text_of(other))),
    }
    taken.result.structured = structured(answer, promised, &mut taken);
    if taken.result.content.is_empty()
        && let Some(structured) = &taken.result.structured
    {
        taken.result.content.push(Content::Text(structured.to_string()));
    }
    taken
}

/// The result as `tools/call` would have written it.
pub fn write(result: &ToolResult) -> Value {
    json!({
        "content": result.content.iter().map(write_part).collect::<Vec<_>>(),
        "structuredContent": result.structured,
        "isError": result.is_error,
    })
}

/// The result for people: text with control characters made visible, and a short description of other content.
pub fn show(result: &ToolResult) -> String {
    let parts: Vec<String> = result.content.iter().map(|part| escape_for_people(&told(part)).into_owned()).collect();
    parts.join("\n")
}

fn told(content: &Content) -> String {
    let kind = |kind: &Option<String>| kind.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    match content {
        Content::Text(text) => text.clone(),
        Content::Image { data, mime_type } => format!("[image ({mime_type}), {} bytes in base64]", data.len()),
        Content::Audio { data, mime_type } => format!("[audio ({mime_type}), {} bytes in base64]", data.len()),
        Content::Resource { uri, mime_type, text: Some(text), .. } => format!("[{uri}{}]\n{text}", kind(mime_type)),
        Content::Resource { uri, mime_type, text: None, blob } => {
            let size = blob.as_ref().map_or(0, String::len);
            format!("[{uri}{}, {size} bytes in base64]", kind(mime_type))
        }
        Content::Link { uri, name, description, mime_type } => {
            let about = description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
            format!("[{name} at {uri}{}{about}]", kind(mime_type))
        }
    }
}

/// An error of the protocol as a result: the model learns what went wrong and can try something else.
pub fn read_error(code: i64, message: &str, data: Option<&Value>) -> ToolResult {
    let data = data.filter(|data| !data.is_null()).map(|data| format!(" ({})", shown(data))).unwrap_or_default();
    ToolResult::error(format!("error {code}: {message}{data}"))
}

/// A result that is small enough for a model. A larger one is cut, kept whole in a file, and gets a note with the path.
///
/// `most` bounds the text, or the structured result where that is longer. Pictures and sounds are not text, and have a
/// bound of their own.
pub fn bound(result: ToolResult, most: usize, spill: &Spill) -> CheckedResult {
    let text: usize = result.content.iter().map(text_weight).sum();
    let media: usize = result.content.iter().map(media_weight).sum();
    let structured = result.structured.as_ref().map_or(0, |structured| structured.to_string().len());
    if text.max(structured) <= most && media <= LARGEST_MEDIA.max(most) {
        return CheckedResult { result, notes: Vec::new() };
    }
    let size = text.max(structured) + media;
    let (kept, notes) = match spill.keep(&spilled(&result)) {
        Ok((path, true)) => (format!("the whole is in {}", path.display()), Vec::new()),
        Ok((path, false)) => (format!("the first {} bytes are in {}", spill.largest, path.display()), Vec::new()),
        Err(error) => ("the rest is lost".to_owned(), vec![format!("a result of {size} bytes was not kept: {error}")]),
    };
    let start = start_of(&result, SHOWN.min(most));
    let note = format!("[{size} bytes are too many to show; {kept}]");
    let text = if start.is_empty() { note } else { format!("{start}\n{note}") };
    CheckedResult { result: ToolResult { is_error: result.is_error, ..ToolResult::text(text) }, notes }
}

fn content(parts: &[Value], taken: &mut CheckedResult) {
    for part in parts.iter().take(MOST_PARTS) {
        let content = read_part(part).unwrap_or_else(|| {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or("?");
            taken.notes.push(format!("a part of type `{kind}` is not known and shown as it came"));
            Content::Text(text_of(part))
        });
        taken.result.content.push(content);
    }
    if let more @ 1.. = parts.len().saturating_sub(MOST_PARTS) {
        taken.notes.push(format!("{more} parts beyond the first {MOST_PARTS} were left out"));
    }
}

fn read_part(part: &Value) -> Option<Content> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    match part.get("type")?.as_str()? {
        "text" => text("text").map(Content::Text),
        "image" => Some(Content::Image { data: text("data")?, mime_type: text("mimeType")? }),
        "audio" => Some(Content::Audio { data: text("data")?, mime_type: text("mimeType")? }),
        "resource" => {
            let resource = part.get("resource")?;
            let text = |key: &str| resource.get(key).and_then(Value::as_str).map(str::to_owned);
            let (uri, mime_type) = (text("uri")?, text("mimeType"));
            Some(Content::Resource { uri, mime_type, text: text("text"), blob: text("blob") })
        }
        "resource_link" => Some(Content::Link {
            uri: text("uri")?,
            name: text("name").unwrap_or_default(),
            description: text("description"),
            mime_type: text("mimeType"),
        }),
        _ => None,
    }
}

fn write_part(content: &Content) -> Value {
    let mut part = match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image { data, mime_type } => json!({"type": "image", "data": data, "mimeType": mime_type}),
        Content::Audio { data, mime_type } => json!({"type": "audio", "data": data, "mimeType": mime_type}),
        Content::Resource { uri, mime_type, text, blob } => {
            let mut resource = json!({"uri": uri, "mimeType": mime_type, "text": text, "blob": blob});
            without_nulls(&mut resource);
            json!({"type": "resource", "resource": resource})
        }
        Content::Link { uri, name, description, mime_type } => {
            json!({"type": "resource_link", "uri": uri, "name": name, "description": description, "mimeType": mime_type})
        }
    };
    without_nulls(&mut part);
    part
}

fn without_nulls(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
    }
}

/// The structured result, if it matches the output schema. A tool that promised one but sent only text has the text
/// parsed.
fn structured(answer: &Map<String, Value>, promised: Option<&ToolSchema>, taken: &mut CheckedResult) -> Option<Value> {
    let sent = answer.get("structuredContent").filter(|value| !value.is_null()).cloned();
    // A failure is described in text; the output schema does not cover it.
    let (Some(promised), false) = (promised, taken.result.is_error) else { return sent };
    let filled = sent.is_none();
    let Some(value) = sent.or_else(|| from_text(&taken.result.content)) else {
        taken.notes.push("the tool promised a structured result and sent none".to_owned());
        return None;
    };
    match check(&value, &promised.0) {
        Ok(unchecked) => {
            let told = unchecked.iter().map(|what| format!("the structured result is not checked in full: {what}"));
            taken.notes.extend(told);
            Some(value)
        }
        Err(SchemaMismatch::Endless) => {
            taken.notes.push(format!("the structured result is not checked: {}", SchemaMismatch::Endless));
            Some(value)
        }
        Err(_) if filled => None,
        Err(why) => {
            taken.notes.push(format!("the structured result is dropped, it is not what the tool promised: {why}"));
            None
        }
    }
}

fn from_text(content: &[Content]) -> Option<Value> {
    let [Content::Text(text)] = content else { return None };
    serde_json::from_str(text).ok()
}

fn text_weight(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
        Content::Link { uri, name, description, .. } => {
            uri.len() + name.len() + description.as_ref().map_or(0, String::len)
        }
        Content::Image { .. } | Content::Audio { .. } => 0,
    }
}

fn media_weight(content: &Content) -> usize {
    match content {
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource { blob, .. } => blob.as_ref().map_or(0, String::len),
        Content::Text(_) | Content::Link { .. } => 0,
    }
}

/// The content of the file: the text alone if there is nothing else, because programs can search that.
fn spilled(result: &ToolResult) -> Vec<u8> {
    match (result.content.as_slice(), &result.structured) {
        ([Content::Text(text)], None) => text.clone().into_bytes(),
        _ => format!("{:#}\n", write(result)).into_bytes(),
    }
}

/// The start of the first text.
fn start_of(result: &ToolResult, most: usize) -> String {
    let text = result.content.iter().find_map(|content| match content {
        Content::Text(text) | Content::Resource { text: Some(text), .. } => Some(text.as_str()),
        _ => None,
    });
    let text = text.unwrap_or_default();
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shown(value: &Value) -> String {
    ollm_store::cut(&value.to_string(), 300).into_owned()
}
