//! Messages in a text: one, or a batch of several, which servers of the revision 2025-03-26 may send.

use std::collections::VecDeque;

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::de::Error;

use crate::depth_limit;
use crate::error::bytes;

/// Further messages of a batch are ignored.
pub(crate) const MOST: usize = 10_000;
/// How much of a text is searched for the request that it answers.
pub(crate) const HEAD: usize = 256;

/// Why a text holds no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// A text with many values takes many times its size in memory.
    #[error("it holds more than {} values", depth_limit::MOST_VALUES)]
    Heavy,
    #[error("it is no JSON-RPC message")]
    Wrong(#[from] serde_json::Error),
    #[error("it is longer than {}", bytes(*.0))]
    Long(usize),
}

/// Reads the first message; further messages of a batch are appended to `more`.
pub(crate) fn read(
    text: &[u8],
    more: &mut VecDeque<ServerJsonRpcMessage>,
) -> Result<ServerJsonRpcMessage, DecodeError> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii();
    if depth_limit::is_heavy(text) {
        return Err(DecodeError::Heavy);
    }
    if text.first() != Some(&b'[') {
        return Ok(depth_limit::read(text)?);
    }
    more.extend(depth_limit::elements(text, MOST).into_iter().filter_map(alone));
    more.pop_front().ok_or_else(|| serde_json::Error::custom("an empty list").into())
}

/// Whether the SDK must not read a text: it supports neither batches nor our bounds, nor an answer with a null `error`.
pub(crate) fn is_unusual(text: &str) -> bool {
    text.trim_ascii_start().starts_with('[')
        || depth_limit::is_heavy(text.as_bytes())
        || (text.contains("\"error\"") && text.contains("\"result\""))
}

/// One message of a batch; an unreadable one becomes a failure or is skipped.
fn alone(part: &[u8]) -> Option<ServerJsonRpcMessage> {
    depth_limit::read(part).or_else(|error| failure(part, &error.into()).ok_or(())).ok()
}

/// A failure for the request that waits for an unreadable text, if the text names the request.
pub(crate) fn failure(text: &[u8], why: &DecodeError) -> Option<ServerJsonRpcMessage> {
    let id = answered(&head(text))?;
    let text = format!("the answer of the server cannot be read: {why}");
    Some(ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None), Some(id)))
}

/// The beginning of a text.
pub(crate) fn head(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..HEAD).unwrap_or(text)).into_owned()
}

/// The request that a text answers, if its beginning shows it.
fn answered(head: &str) -> Option<RequestId> {
    if !head.trim_start().starts_with('{') || head.contains("\"method\"") {
        return None;
    }
    // An `id` inside the result or the error belongs to something else.
    let head = head.split("\"result\"").next()?.split("\"error\"").next()?;
    let (_, rest) = head.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let digits = rest.split(|char: char| !char.is_ascii_digit()).next()?;
    digits.parse().ok().map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_number_tells_whom_a_text_answers() {
        assert_eq!(answered("{\"jsonrpc\":\"2.0\", \"id\" : 7,\"result\":{\"x\":"), Some(RequestId::Number(7)));
        assert_eq!(answered("{\"result\":{\"id\":7"), None, "this is not its own number");
        assert_eq!(answered("{\"id\":7,\"method\":"), None, "this is a question");
    }

    #[test]
    fn a_failure_that_is_nothing_is_none() {
        let message = |text: &str| read(text.as_bytes(), &mut VecDeque::new());
        for result in [r#"{"content":[]}"#, "{}", r#"{"contents":3}"#] {
            let plain = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).unwrap();
            for text in [
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result},"error":null}}"#),
                format!(r#"{{"error" : null, "jsonrpc":"2.0","id":1,"result":{result}}}"#),
            ] {
                assert_eq!(format!("{:?}", message(&text).unwrap()), format!("{plain:?}"));
                assert!(is_unusual(&text));
            }
        }
        let failed = r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"x"}}"#;
        assert!(matches!(message(failed).unwrap(), ServerJsonRpcMessage::Error(_)));
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
        ] {
            assert!(message(text).is_err(), "{text}");
        }
    }

    #[test]
    fn messages_without_end_that_came_as_one_are_not_all_kept() {
        let one = r#"{"jsonrpc":"2.0","method":"x"}"#;
        let text = format!("[{}]", vec![one; MOST + 5].join(","));
        let mut more = VecDeque::new();
        read(text.as_bytes(), &mut more).unwrap();
        assert_eq!(more.len(), MOST - 1);
        assert!(read(b"[]", &mut VecDeque::new()).is_err());
    }
}
