//! What real servers of models say, in their own words: llama.cpp's server, Ollama, and llama-cpp-python's.

use serde_json::{Value, json};

use crate::model_server::{ModelReply, ModelReplyEnd};

/// llama-server, to a conversation that is too long.
pub fn llama_too_long(sent: u64, window: u64) -> ModelReply {
    ModelReply::json(
        400,
        &json!({"error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": sent,
            "n_ctx": window,
        }}),
    )
}

/// llama-server, while it loads the model.
pub fn llama_loading() -> ModelReply {
    ModelReply::json(503, &json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}))
}

/// llama-server, where the chat template refuses.
pub fn llama_template(words: &str) -> ModelReply {
    let message = format!("Value is not callable: null at row 1, column 1: {words}");
    ModelReply::json(500, &json!({"error": {"code": 500, "message": message, "type": "server_error"}}))
}

/// llama-server's list of models.
pub fn llama_models(window: u64) -> ModelReply {
    ModelReply::json(
        200,
        &json!({"object": "list", "data": [
            {"id": "model.gguf", "object": "model", "owned_by": "llamacpp",
                "meta": {"n_ctx": window, "n_ctx_train": 32_768, "n_params": 134_515_008}}]}),
    )
}

/// llama-cpp-python, to a field it does not know.
pub fn python_extra_field(field: &str) -> ModelReply {
    ModelReply::json(422, &json!({"detail": [{"loc": ["body", field], "msg": "Extra inputs are not permitted"}]}))
}

/// llama-cpp-python, to a conversation that is too long: a stream without a word.
pub fn python_empty() -> ModelReply {
    ModelReply::bytes(b"", 64, ModelReplyEnd::Whole)
}

/// Ollama's answer, in fragments of `size` characters, with thoughts before it and these calls after it.
pub fn ollama_answer(thought: &str, text: &str, calls: &[(&str, Value)], size: usize) -> ModelReply {
    ollama_counted((thought, text), calls, ("stop", 26, 8), size)
}

/// The same with its reason to end, and the tokens it counted of the question and the answer.
pub fn ollama_counted(
    (thought, text): (&str, &str),
    calls: &[(&str, Value)],
    (reason, read, written): (&str, u64, u64),
    size: usize,
) -> ModelReply {
    let line = |message: Value| json!({"model": "m", "created_at": "2026-11-17T12:00:00.000000Z", "message": message, "done": false});
    let pieces = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(size.max(1)).map(|chunk| chunk.iter().collect()).collect()
    };
    let mut lines: Vec<Value> = Vec::new();
    lines.extend(
        pieces(thought).into_iter().map(|text| line(json!({"role": "assistant", "content": "", "thinking": text}))),
    );
    lines.extend(pieces(text).into_iter().map(|text| line(json!({"role": "assistant", "content": text}))));
    for (name, arguments) in calls {
        let call = json!({"function": {"index": 0, "name": name, "arguments": arguments}});
        lines.push(line(json!({"role": "assistant", "content": "", "tool_calls": [call]})));
    }
    lines.push(json!({
        "model": "m", "created_at": "2026-11-17T12:00:01.000000Z", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "total_duration": 5_000_000, "load_duration": 1_000_000,
        "prompt_eval_count": read, "prompt_eval_duration": 3_000_000, "eval_count": written, "eval_duration": 1_000_000,
    }));
    ModelReply::lines(&lines, size * 7)
}

/// Ollama's list of models.
pub fn ollama_tags(names: &[&str]) -> ModelReply {
    let model = |name: &&str| {
        json!({"name": name, "model": name, "modified_at": "2026-11-01T10:00:00Z", "size": 2_019_393_189_u64,
            "digest": "a80c4f17acd5", "details": {"format": "gguf", "family": "llama", "parameter_size": "3.2B",
            "quantization_level": "Q4_K_M"}})
    };
    ModelReply::json(200, &json!({"models": names.iter().map(model).collect::<Vec<_>>()}))
}

/// What Ollama tells of a model.
pub fn ollama_show(capabilities: &[&str], parameters: &str) -> ModelReply {
    ModelReply::json(
        200,
        &json!({
            "parameters": parameters,
            "details": {"format": "gguf", "family": "llama", "parameter_size": "3.2B", "quantization_level": "Q4_K_M"},
            "model_info": {"general.architecture": "llama", "llama.context_length": 131_072},
            "capabilities": capabilities,
        }),
    )
}

/// The models that Ollama has loaded.
pub fn ollama_ps(loaded: &[(&str, u64)]) -> ModelReply {
    let model = |(name, window): &(&str, u64)| json!({"name": name, "model": name, "context_length": window});
    ModelReply::json(200, &json!({"models": loaded.iter().map(model).collect::<Vec<_>>()}))
}

/// Ollama, to a request that it refuses.
pub fn ollama_error(status: u16, words: &str) -> ModelReply {
    ModelReply::json(status, &json!({"error": words}))
}
