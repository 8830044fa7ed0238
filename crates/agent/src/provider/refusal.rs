//! A server's refusal: its message in plain text, and what can be done about it.

use std::time::Duration;

use serde_json::Value;

/// How deeply nested error messages are read.
const DEEPEST: usize = 10;
/// Fields that hold the message of an error, in the order of preference.
const WORDS: &[&str] = &["error", "message", "msg", "detail", "metadata", "raw"];
/// Words in a 500 response that mean that the same request will fail again.
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
/// Servers' messages about a failure of the model's chat template.
const TEMPLATE: &[&str] = &["chat template", "chat_template", "jinja", "raise_exception", "must alternate"];
/// Servers' messages about a used-up budget, for which no pause helps.
const SPENT: &[&str] = &["insufficient_quota", "billing", "credit balance", "insufficient credit", "out of credits"];
/// Servers' messages about a model without tools.
const NO_TOOLS: &[&str] = &[
    "does not support tool",
    "doesn't support tool",
    "not support function",
    "tools are not supported",
    "tools is not supported",
    "tool use is not supported",
    "tools param requires",
    // Chat templates that allow only prompts and answers say this about a call or a result.
    "roles must alternate",
    "only user, system and assistant roles",
    "only user and assistant roles",
    "tool choice requires",
    "no endpoints found that support tool use",
];
/// Servers' messages about a template without system messages.
const NO_SYSTEM: &[&str] = &[
    "system role not supported",
    "system role is not supported",
    "does not support system",
    // Templates that count a system message as the first prompt say this; it comes again once there are no tools.
    "roles must alternate",
];
/// Servers' messages about a conversation that is too long.
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
    "context limit",
    "maximum prompt length",
    "maximum number of tokens",
    "max_new_tokens` must be",
    "`inputs` must have less than",
];
/// Error codes for the same, for servers whose message does not say it.
const TOO_LONG_CODES: &[&str] = &["context_length_exceeded", "exceed_context_size_error", "tokens_limit_reached"];
/// Words before the window's size in a refusal. Other numbers are of the sent tokens, of the answer or of the model's
/// name.
const WINDOW_WORDS: &[&str] = &[
    ">",
    "context length",
    "context window",
    "context size",
    "prompt length",
    "maximum number of tokens",
    "must be <=",
    "less than",
    "limit",
    "max size",
];
/// The most characters between such words and the number.
const NEAR: usize = 20;

/// A server's refusal.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) url: String,
    pub(crate) status: u16,
    /// Its message, without secrets.
    pub(crate) text: String,
    pub(crate) retry_after: Option<Duration>,
    /// The model's window in tokens, if the refusal names it.
    pub(crate) window: Option<u64>,
    /// The tokens that were sent, if the refusal names them.
    pub(crate) sent: Option<u64>,
    /// Whether the budget is used up.
    is_spent: bool,
    /// Whether a code says that the conversation is too long.
    is_coded_too_long: bool,
}

impl Refusal {
    /// Reads the body of a refusal.
    pub(crate) fn read(url: &str, status: u16, body: &[u8]) -> Refusal {
        let value = serde_json::from_slice::<Value>(body).ok();
        let text = value.as_ref().and_then(complaint).unwrap_or_else(|| plain(body));
        let told = |name| value.as_ref().and_then(|value| number(value, name));
        let named = window_in(&text);
        let window = told("n_ctx").or(named);
        let others = || numbers_in(&text).filter(|number| named.is_some_and(|named| named != *number));
        let sent = told("n_prompt_tokens").or_else(|| others().max());
        // Some servers report it only outside the message.
        let all = String::from_utf8_lossy(body).to_lowercase();
        let is_spent = SPENT.iter().any(|word| all.contains(word));
        let codes = ["/error/code", "/error/type", "/code"];
        let code = |pointer: &&str| value.as_ref()?.pointer(pointer)?.as_str();
        let is_coded_too_long = codes.iter().filter_map(code).any(|code| TOO_LONG_CODES.contains(&code));
        Refusal { url: url.to_owned(), status, text, retry_after: None, window, sent, is_spent, is_coded_too_long }
    }

    /// Whether the server is not ready yet.
    pub(crate) fn is_loading(&self) -> bool {
        self.status == 503 && self.says(&["loading", "starting", "warming"])
    }

    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self.status {
            429 => !self.is_spent,
            502..=504 | 529 => true,
            500 => !self.says(LASTING) && !self.is_too_long(),
            _ => false,
        }
    }
    /// Whether the refusal comes from the model's chat template.
    pub(crate) fn is_of_template(&self) -> bool {
        self.says(TEMPLATE)
    }

    /// Whether the model does not support tools.
    pub(crate) fn is_without_tools(&self) -> bool {
        self.says(NO_TOOLS)
    }

    /// Whether the model's template does not support system messages.
    pub(crate) fn is_without_system(&self) -> bool {
        self.says(NO_SYSTEM)
    }

    /// Whether it refuses a field of the request.
    pub(crate) fn names(&self, field: &str) -> bool {
        matches!(self.status, 400 | 422) && self.text.contains(field)
    }

    /// Whether the conversation is too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.status == 413 || matches!(self.status, 400 | 422 | 500) && (self.is_coded_too_long || self.says(TOO_LONG))
    }

    fn says(&self, words: &[&str]) -> bool {
        let text = self.text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

/// The error message in a body, in any of the usual forms; `None` if there is none.
pub(crate) fn complaint(body: &Value) -> Option<String> {
    let inside = ["error", "detail"].iter().find_map(|field| body.get(field).filter(|inside| !inside.is_null()));
    inside.or_else(|| body.get("message").filter(|message| message.is_string() && body.get("choices").is_none()))?;
    Some(words(body, DEEPEST))
}

/// The text of an error. Proxies wrap one error as text into another.
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

/// The text of a body that is not JSON; of a web page only its visible text.
pub(super) fn plain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if !text.starts_with('<') {
        return text.to_owned();
    }
    let (mut shown, mut rest) = (String::new(), text);
    while let Some((words, tag)) = rest.split_once('<') {
        shown.extend([words, " "]);
        let (name, behind) = tag.split_once('>').unwrap_or((tag, ""));
        let is_code = ["script", "style"].iter().any(|code| name.to_lowercase().starts_with(code));
        rest = if is_code { behind.find("</").and_then(|end| behind.get(end..)).unwrap_or_default() } else { behind };
    }
    shown.push_str(rest);
    format!("a web page: {}", shown.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A number with this name, anywhere in a value.
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

/// The window in a sentence: the number after one of the words for it, or before `maximum`.
fn window_in(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    let behind = WINDOW_WORDS.iter().find_map(|words| {
        text.match_indices(words).find_map(|(at, _)| {
            let rest = text.get(at + words.len()..)?;
            let start = rest.find(|char: char| char.is_ascii_digit()).filter(|start| *start <= NEAR)?;
            let gap = rest.get(..start)?;
            if gap.contains(['.', ';']) || gap.contains(" by ") { None } else { numbers_in(rest.get(start..)?).next() }
        })
    });
    behind.or_else(|| numbers_in(text.split_once(" maximum")?.0).last())
}

/// The numbers in a sentence that may be token counts.
fn numbers_in(text: &str) -> impl Iterator<Item = u64> {
    let numbers = text.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    numbers.filter(|number| *number >= 64)
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
        let page = b"<!DOCTYPE html><style>a > b {}</style><SCRIPT src=x>if (1 < 2) go()</SCRIPT><p>Log in <b>here</b>";
        assert_eq!(Refusal::read("u", 200, page).text, "a web page: Log in here");
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
        let page = Refusal::read("u", 413, b"<html><h1>413 Request Entity Too Large</h1></html>");
        assert_eq!((page.is_too_long(), page.window), (true, None));
    }

    #[test]
    fn the_window_is_told_apart_from_other_numbers() {
        for (words, window, sent) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (9000 in the messages, 300 in the completion).",
                Some(8192),
                Some(9300),
            ),
            (
                "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
                Some(8192),
                Some(5000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length",
                Some(200_000),
                Some(190_000),
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(32_768),
                Some(40_000),
            ),
            (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3900 `inputs` tokens and 500 `max_new_tokens`",
                Some(4096),
                Some(3900),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_200_000),
            ),
            (
                "The input (10000 tokens) is longer than the model's context length (8192 tokens).",
                Some(8192),
                Some(10_000),
            ),
            (
                "qwen3-235b: This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
                Some(131_072),
                Some(200_000),
            ),
            (
                "Trying to keep the first 4096 tokens when context the overflows. However, the model is loaded with context length of only 2048 tokens",
                Some(2048),
                Some(4096),
            ),
            (
                "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(4096),
                Some(5000),
            ),
            ("prompt too long; exceeded max context length by 123 tokens", None, None),
        ] {
            let refusal = refusal(400, &json!({"error": {"message": words}}));
            assert_eq!((refusal.is_too_long(), refusal.window, refusal.sent), (true, window, sent), "{words}");
        }
        let coded = json!({"error": {"message": "Please reduce the length of the messages. Current length is 9000 while limit is 8192", "code": "context_length_exceeded"}});
        let coded = refusal(400, &coded);
        assert_eq!((coded.is_too_long(), coded.window, coded.sent), (true, Some(8192), Some(9000)));
        // Text of the conversation that a server repeats is not its own error message.
        let echo = json!({"detail": [{"loc": ["body", "n"], "msg": "no", "input": "maximum context length is 8192"}]});
        assert!(!refusal(422, &echo).is_too_long());
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, text, passes) in [
            (429, "slow down", true),
            (429, "Quota exceeded for requests per minute", true),
            (429, "You exceeded your current quota, please check your plan and billing details.", false),
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
        let spent = json!({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}});
        assert!(!refusal(429, &spent).may_pass());
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
