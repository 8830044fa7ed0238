//! A server's request to the model: the person sees the request, the agent's own model answers, and the person sees the
//! answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ollm_agent::{Cancel, Message, Question};
use ollm_catalog::Config;
use serde_json::{Value, json};

use super::{quoted, word};
use crate::app_context::AppContext;
use crate::model::{self, ModelConfig};
use crate::port::Person;

/// Longer requests are refused: no person reads them before they are sent.
const LARGEST_REQUEST: usize = 256 << 10;
/// The assumed size of a token, in bytes.
const TOKEN: usize = 4;
/// The longest answer, in tokens.
const MOST_TOKENS: u64 = 8192;

/// The user's setting for servers that ask the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sampling {
    /// The person is asked each time.
    Ask,
    /// Servers ask the model without a question to the person.
    Allow,
    /// Servers may not ask the model.
    Deny,
}

/// Lets servers use the agent's own model.
#[derive(Debug)]
pub struct Sampler {
    policy: Sampling,
    wish: ModelConfig,
    /// The name of the model, if one was given.
    model: Mutex<Option<String>>,
    /// Servers that may ask without a question until the session ends.
    trusted: Mutex<Vec<String>>,
}

impl Sampler {
    /// A sampler for the model from the command line or the configuration; `None` if the user forbids it.
    pub fn new(config: &Config, model: Option<&str>) -> Option<Sampler> {
        let policy = match config.mcp().sampling.as_str() {
            "allow" => Sampling::Allow,
            "ask" => Sampling::Ask,
            _ => Sampling::Deny,
        };
        let model = Mutex::new(model.map(str::to_owned));
        (policy != Sampling::Deny).then(|| Sampler {
            policy,
            wish: ModelConfig::of(config),
            model,
            trusted: Mutex::default(),
        })
    }

    pub(super) fn needs_nobody(&self) -> bool {
        self.policy == Sampling::Allow
    }

    pub(super) fn set_model(&self, name: &str) {
        *guard(&self.model) = Some(name.to_owned());
    }

    /// The model's answer, or the reason why there is none.
    pub(super) fn answer(
        &self,
        server: &str,
        request: &Value,
        context: &AppContext,
        over: &dyn Fn() -> bool,
    ) -> Result<Value, String> {
        let messages = conversation(request)?;
        let asks = self.policy == Sampling::Ask && !guard(&self.trusted).iter().any(|one| one == server);
        // If the person must be asked and is not there, the answer is no.
        let person = match (asks, context.person.as_deref()) {
            (true, None) => return Err("no person is there to ask".to_owned()),
            (true, person) => person,
            (false, _) => None,
        };
        if let Some(person) = person
            && !self.permitted(server, &messages, person, over)?
        {
            return Err("the person declined".to_owned());
        }
        let name = guard(&self.model).clone();
        let mut model = model::open(name.as_deref(), &self.wish, context).map_err(|failure| failure.message)?;
        let wanted = request.get("maxTokens").and_then(Value::as_u64).unwrap_or(MOST_TOKENS).clamp(1, MOST_TOKENS);
        let most = usize::try_from(wanted).unwrap_or_default() * TOKEN;
        // The model has its own cancel token. Between its words we check whether the caller still waits.
        let cancel = Cancel::default();
        let question = Question { messages: &messages, tools: &[], most, cancel: &cancel };
        let answered = model.answer(&question, &mut |_| {
            if over() {
                cancel.interrupt();
            }
        });
        let answered = answered.map_err(|error| error.to_string())?;
        if let Some(person) = person {
            let shown = format!("\nThe model answers `{}`:\n{}", word(server), quoted(&answered.content)?);
            if !sent(&shown, person, over) {
                return Err("the person declined".to_owned());
            }
        }
        Ok(json!({
            "role": "assistant",
            "content": {"type": "text", "text": answered.content},
            "model": model.name(),
            "stopReason": if answered.cut.is_some() { "maxTokens" } else { "endTurn" },
        }))
    }

    fn permitted(
        &self,
        server: &str,
        messages: &[Message],
        person: &dyn Person,
        over: &dyn Fn() -> bool,
    ) -> Result<bool, String> {
        let said: Vec<String> =
            messages.iter().map(|message| format!("{}: {}", message.role(), message.content())).collect();
        let shown = format!(
            "\nServer `{}` wants to ask your model:\n{}  May it? [y]es, [a]lways in this session, [N]o: ",
            word(server),
            quoted(&said.join("\n"))?
        );
        Ok(match person.ask(&shown, over).unwrap_or_default().to_lowercase().as_str() {
            "y" | "yes" => true,
            "a" | "always" => {
                guard(&self.trusted).push(server.to_owned());
                true
            }
            _ => false,
        })
    }
}

fn sent(shown: &str, person: &dyn Person, over: &dyn Fn() -> bool) -> bool {
    let answer = person.ask(&format!("{shown}  Send it to the server? [y]es, [N]o: "), over);
    let yes = matches!(answer.unwrap_or_default().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        person.say("  It was not sent.\n");
    }
    yes
}

/// The server's conversation as messages for the model: only its text, and none of our messages.
fn conversation(request: &Value) -> Result<Vec<Message>, String> {
    if request.to_string().len() > LARGEST_REQUEST {
        return Err(format!("more than {LARGEST_REQUEST} bytes cannot be asked"));
    }
    let system = request.get("systemPrompt").and_then(Value::as_str);
    let mut messages: Vec<Message> = system.map(|text| Message::System(text.to_owned())).into_iter().collect();
    for message in request.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default() {
        let text = text(message.get("content").unwrap_or(&Value::Null))?;
        messages.push(match message.get("role").and_then(Value::as_str) {
            Some("assistant") => Message::Assistant { content: text, calls: Vec::new() },
            Some("user") => Message::User(text),
            _ => return Err("each message must be the user's or the assistant's".to_owned()),
        });
    }
    if messages.iter().all(|message| matches!(message, Message::System(_))) {
        return Err("there is no message to answer".to_owned());
    }
    Ok(messages)
}

fn text(content: &Value) -> Result<String, String> {
    let part = |content: &Value| match content.get("text").and_then(Value::as_str) {
        Some(text) if content.get("type").and_then(Value::as_str) == Some("text") => Ok(text.to_owned()),
        _ => Err("only text can be asked here".to_owned()),
    };
    match content {
        Value::Array(parts) => Ok(parts.iter().map(part).collect::<Result<Vec<_>, _>>()?.join("\n")),
        content => part(content),
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_the_two_who_speak_is_asked() {
        let message = |role: &str, content: Value| json!({"messages": [{"role": role, "content": content}]});
        let plain = json!({"type": "text", "text": "hi"});
        assert_eq!(conversation(&message("user", plain.clone())), Ok(vec![Message::User("hi".to_owned())]));
        for (request, why) in [
            (message("system", plain), "the user's or the assistant's"),
            (message("user", json!({"type": "image", "data": ""})), "only text"),
            (json!({"systemPrompt": "x"}), "no message"),
            (message("user", json!({"type": "text", "text": "x".repeat(LARGEST_REQUEST)})), "more than"),
        ] {
            assert!(conversation(&request).unwrap_err().contains(why), "{why}");
        }
    }
}
