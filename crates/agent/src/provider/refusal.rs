//! A server's refusal: what it says in plain words, and what can be done about it.

use std::time::Duration;

use serde_json::Value;

/// How deep complaints are nested inside one another.
const DEEPEST: usize = 10;
/// Where servers put the words of a complaint, the nearest first.
const WORDS: &[&str] = &["error", "message", "msg", "detail", "metadata", "raw"];
/// Words of a 500 that the same request will meet again.
const LASTING: &[&str] = &[
    "template",
    "jinja",
    "raise_exception",
    "parameter",
    "unsupported",
    "not support",
    "invalid",
    "schema",
    "grammar",
    "must alternate",
    "parse",
    "syntax",
    "unexpected",
];
/// How servers say that a model has no tools.
const NO_TOOLS: &[&str] = &[
    "does not support tool",
    "doesn't support tool",
    "not support function",
    "tools are not supported",
    "tools is not supported",
    "tool use is not supported",
    "tools param requires",
    // Chat templates that know prompts and answers only, when a call or a result comes.
    "roles must alternate",
    "only user, system and assistant roles",
    "only user and assistant roles",
    "tool choice requires",
    "no endpoints found that support tool use",
];
/// How servers say that a template knows no system message.
const NO_SYSTEM: &[&str] = &[
    "system role not supported",
    "system role is not supported",
    "does not support system",
    // Templates that count a system message as the first prompt; said again once there are no tools.
    "roles must alternate",
];
/// How servers say that a conversation is too long.
const TOO_LONG: &[&str] = &[
    "context size",
    "context length",
    "context window",
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "n_ctx",
];

/// What a server said in place of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) url: String,
    pub(crate) status: u16,
    /// Its words, without secrets.
    pub(crate) text: String,
    pub(crate) retry_after: Option<Duration>,
    /// The tokens the model can look at, where the refusal tells.
    pub(crate) window: Option<u64>,
    /// The tokens it was sent, where the refusal tells.
    pub(crate) sent: Option<u64>,
}

impl Refusal {
    /// Reads the body of a refusal.
    pub(crate) fn read(url: &str, status: u16, body: &[u8]) -> Refusal {
        let value = serde_json::from_slice::<Value>(body).ok();
        let text = value.as_ref().and_then(complaint).unwrap_or_else(|| plain(body));
        let told = |name| value.as_ref().and_then(|value| number(value, name));
        let (smaller, larger) = numbers_in(&text);
        let (window, sent) = (told("n_ctx").or(smaller), told("n_prompt_tokens").or(larger));
        Refusal { url: url.to_owned(), status, text, retry_after: None, window, sent }
    }

    /// Whether the server is only not ready yet.
    pub(crate) fn is_loading(&self) -> bool {
        self.status == 503 && self.says(&["loading", "starting", "warming"])
    }

    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self.status {
            429 | 502..=504 | 529 => true,
            500 => !self.says(LASTING) && !self.is_too_long(),
            _ => false,
        }
    }

    /// Whether the model has no tools.
    pub(crate) fn is_without_tools(&self) -> bool {
        self.says(NO_TOOLS)
    }

    /// Whether the model's template has no place for a system message.
    pub(crate) fn is_without_system(&self) -> bool {
        self.says(NO_SYSTEM)
    }

    /// Whether it objects to a field of the request.
    pub(crate) fn names(&self, field: &str) -> bool {
        matches!(self.status, 400 | 422) && self.text.contains(field)
    }

    /// Whether the conversation is too long.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self.status, 400 | 413 | 422 | 500) && self.says(TOO_LONG)
    }

    fn says(&self, words: &[&str]) -> bool {
        let text = self.text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

/// What a body complains about, in any of the usual forms; nothing where it does not complain.
pub(crate) fn complaint(body: &Value) -> Option<String> {
    let inside = ["error", "detail"].iter().find_map(|field| body.get(field).filter(|inside| !inside.is_null()));
    inside.or_else(|| body.get("message").filter(|message| message.is_string() && body.get("choices").is_none()))?;
    Some(words(body, DEEPEST))
}

/// The words inside a complaint. Proxies wrap one complaint as text into another.
fn words(value: &Value, deeper: usize) -> String {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inside @ (Value::Object(_) | Value::Array(_))) if deeper > 0 => words(&inside, deeper - 1),
            _ => text.trim().to_owned(),
        },
        Value::Object(map) if deeper > 0 => {
            let field = WORDS.iter().find_map(|field| map.get(*field).filter(|inside| is_wordy(inside)));
            let text = field.map_or_else(|| value.to_string(), |inside| words(inside, deeper - 1));
            match map.get("loc").and_then(Value::as_array) {
                Some(place) => format!("{}: {text}", dotted(place)),
                None => text,
            }
        }
        Value::Array(values) if deeper > 0 => {
            values.iter().map(|value| words(value, deeper - 1)).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

fn is_wordy(value: &Value) -> bool {
    matches!(value, Value::String(text) if !text.trim().is_empty()) || value.is_object() || value.is_array()
}

fn dotted(place: &[Value]) -> String {
    let parts: Vec<String> =
        place.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
    parts.join(".")
}

/// A body that is no JSON; of a page only what people would read.
fn plain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if !text.starts_with('<') {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut in_tag = false;
    for char in text.chars() {
        match char {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                shown.push(' ');
            }
            _ if !in_tag => shown.push(char),
            _ => {}
        }
    }
    format!("a web page: {}", shown.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A number under this name, anywhere in a value.
fn number(value: &Value, name: &str) -> Option<u64> {
    match value {
        Value::Object(map) => {
            let here = map.get(name).and_then(Value::as_u64);
            here.or_else(|| map.values().find_map(|inside| number(inside, name)))
        }
        Value::Array(values) => values.iter().find_map(|inside| number(inside, name)),
        Value::String(text) => serde_json::from_str::<Value>(text)
            .ok()
            .filter(|inside| !inside.is_string())
            .and_then(|inside| number(&inside, name)),
        _ => None,
    }
}

/// The smallest and the largest number that a sentence names: the window, and what was sent where there are two.
fn numbers_in(text: &str) -> (Option<u64>, Option<u64>) {
    let numbers = text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.filter(|number| *number >= 64).collect();
    let (smallest, largest) = (numbers.iter().min().copied(), numbers.iter().max().copied());
    (smallest, largest.filter(|largest| Some(*largest) != smallest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(status: u16, body: &Value) -> Refusal {
        Refusal::read("u", status, body.to_string().as_bytes())
    }

    #[test]
    fn every_form_of_complaint_is_read_as_words() {
        let nested = json!({"message": "{\"error\":{\"message\":\"no\"}}"}).to_string();
        for body in [
            json!({"error": "no"}),
            json!({"error": {"message": "no"}}),
            json!({"error": {"message": nested}}),
            json!({"error": {"message": "{\"detail\": \"no\"}"}}),
            json!({"detail": "no"}),
            json!({"message": "no"}),
        ] {
            assert_eq!(complaint(&body).as_deref(), Some("no"), "{body}");
        }
        let fields = json!({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]});
        assert_eq!(complaint(&fields).as_deref(), Some("body.stream_options: Extra inputs are not permitted"));
        assert_eq!(complaint(&json!({"error": null})), None);
        assert_eq!(complaint(&json!({"error": {"code": 1}})).as_deref(), Some("{\"code\":1}"));
        assert_eq!(complaint(&json!({"choices": [], "message": "x"})), None);
    }

    #[test]
    fn a_page_is_told_in_words() {
        let page = Refusal::read("u", 502, b"<html><head><title>Bad</title></head><body>Gateway\n down</body></html>");
        assert_eq!(page.text, "a web page: Bad Gateway down");
    }

    #[test]
    fn the_window_is_read_from_what_servers_say() {
        for (status, body, window) in [
            (
                400,
                json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}),
                Some(4096),
            ),
            (
                400,
                json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 10500 tokens.", "code": "context_length_exceeded"}}),
                Some(8192),
            ),
            (400, json!({"error": {"message": "Requested tokens (3000) exceed context window of 2048"}}), Some(2048)),
            (
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}}),
                Some(200_000),
            ),
            (500, json!({"error": "input is too long"}), None),
        ] {
            let refusal = refusal(status, &body);
            assert_eq!((refusal.is_too_long(), refusal.window), (true, window), "{body}");
        }
        assert!(!refusal(400, &json!({"error": "bad"})).is_too_long());
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, text, passes) in [
            (429, "slow down", true),
            (503, "busy", true),
            (500, "out of memory", true),
            (500, "Jinja Exception: Conversation roles must alternate", false),
            (500, "Failed to parse messages: Unsupported content part type", false),
            (500, "unknown parameter top_q", false),
            (400, "no", false),
            (501, "no", false),
        ] {
            assert_eq!(refusal(status, &json!({"error": text})).may_pass(), passes, "{status} {text}");
        }
        assert!(refusal(503, &json!({"error": {"message": "Loading model", "code": 503}})).is_loading());
        assert!(!refusal(503, &json!({"error": "busy"})).is_loading());
    }

    #[test]
    fn what_a_model_lacks_is_understood() {
        for text in [
            "x:1b does not support tools",
            "tools param requires --jinja flag",
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "Only user, system and assistant roles are supported!",
            "\"auto\" tool choice requires --enable-auto-tool-choice",
        ] {
            assert!(refusal(400, &json!({"error": text})).is_without_tools(), "{text}");
        }
        for text in ["System role not supported", "Conversation roles must alternate user/assistant/..."] {
            assert!(refusal(500, &json!({"error": text})).is_without_system(), "{text}");
        }
    }
}
