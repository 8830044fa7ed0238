//! Answers to tool calls, read straight.
//!
//! The SDK tries one after the other what a message and a result could be, and an answer to a call is among the last
//! things it tries. What has anything unusual about it is left to that.

use std::fmt;

use rmcp::model::{CallToolResult, ContentBlock, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

/// The answer to a tool call; nothing for any other message.
pub(crate) fn read(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let Answer { id, result } = serde_json::from_slice(text).ok()?;
    let mut told = CallToolResult::success(result.content);
    // Older revisions do not say that it is complete.
    told.result_type = None;
    told.is_error = result.is_error;
    told.structured_content = result.structured;
    Some(ServerJsonRpcMessage::response(ServerResult::CallToolResult(told), RequestId::Number(id)))
}

struct Answer {
    id: i64,
    result: Told,
}

struct Told {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
    is_error: Option<bool>,
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfAnswer)
    }
}

struct OfAnswer;

impl<'de> Visitor<'de> for OfAnswer {
    type Value = Answer;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Answer, A::Error> {
        let (mut version, mut id, mut result) = (None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                "jsonrpc" => once(&mut version, map.next_value()?)?,
                "id" => once(&mut id, map.next_value()?)?,
                "result" => once(&mut result, map.next_value()?)?,
                _ => return Err(unusual()),
            }
        }
        match (version, id, result) {
            (Some("2.0"), Some(id), Some(result)) => Ok(Answer { id, result }),
            _ => Err(unusual()),
        }
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfTold)
    }
}

struct OfTold;

impl<'de> Visitor<'de> for OfTold {
    type Value = Told;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("what a tool told")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Told, A::Error> {
        let (mut content, mut structured, mut is_error) = (None, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                "content" => once(&mut content, map.next_value()?)?,
                "structuredContent" => once(&mut structured, map.next_value()?)?,
                "isError" => once(&mut is_error, map.next_value()?)?,
                _ => return Err(unusual()),
            }
        }
        let content = content.ok_or_else(unusual)?;
        Ok(Told { content, structured, is_error })
    }
}

/// A field that stands twice is unusual.
fn once<T, E: Error>(place: &mut Option<T>, value: T) -> Result<(), E> {
    if place.replace(value).is_some() { Err(unusual()) } else { Ok(()) }
}

fn unusual<E: Error>() -> E {
    E::custom("this is no usual answer to a call")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;

    fn slow(text: &str) -> Option<String> {
        let message: ServerJsonRpcMessage = serde_json::from_str(text).ok()?;
        Some(format!("{message:?}"))
    }

    fn quick(text: &str) -> Option<String> {
        read(text.as_bytes()).map(|message| format!("{message:?}"))
    }

    fn answer(result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#)
    }

    #[test]
    fn what_tools_usually_tell_is_read_here() {
        for result in [
            r#"{"content":[{"type":"text","text":"hello"}]}"#,
            r#"{"content":[{"type":"text","text":"a\"b","annotations":{"priority":0.5}}],"isError":true}"#,
            r#"{"isError":false,"content":[],"structuredContent":{"a":[1,2.5,null]}}"#,
            r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png","_meta":{"a":1}}],"structuredContent":null}"#,
            r#"{"content":[{"type":"resource_link","uri":"a:b","name":"c"}]}"#,
        ] {
            let text = answer(result);
            assert!(quick(&text).is_some(), "{text}");
            assert_eq!(quick(&text), slow(&text), "{text}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_sdk() {
        for text in [
            &answer(r#"{"content":[{"type":"smell"}]}"#),
            &answer(r#"{"content":[],"content":[]}"#),
            &answer(r#"{"content":[],"tools":[]}"#),
            &answer(r#"{"content":[],"resultType":"complete"}"#),
            &answer(r#"{"content":[],"_meta":{}}"#),
            &answer(r#"{"content":[],"isError":null}"#),
            &answer(r#"{"content":null}"#),
            &answer(r#"{"structuredContent":{}}"#),
            &answer("{}"),
            &answer("[]"),
            r#"{"jsonrpc":"2.0","id":"7","result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{"content":[]}}"#,
            r#"{"id":7,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}} {}"#,
            "",
        ] {
            assert_eq!(quick(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn what_is_read_here_is_what_the_sdk_reads(
            fields in subsequence(vec![
                r#""content":[{"type":"text","text":"é\u00e9"},{"type":"audio","data":"","mimeType":"a/b"}]"#,
                r#""structuredContent":{"n":18446744073709551615,"m":-1,"x":1e400,"y":[{}]}"#,
                r#""structuredContent":{"z":12345678901234567890123,"f":0.1}"#,
                r#""isError":true"#,
                r#""_meta":{"a":{}}"#,
                r#""action":"accept""#,
                r#""messages":[]"#,
                r#""tools":[]"#,
                r#""resultType":"complete""#,
                r#""taskId":"1""#,
            ], 0..=10).prop_shuffle(),
            outside in subsequence(vec![r#""jsonrpc":"2.0""#, r#""id":9007199254740993"#, r#""id":-5"#, r#""id":1.5"#, r#""method":"x""#, "R"], 2..=6).prop_shuffle(),
            blank in select(vec!["", " ", "\n\t"]),
        ) {
            let result = format!("\"result\":{{{}}}", fields.join(&format!(",{blank}")));
            let parts: Vec<&str> = outside.into_iter().map(|part| if part == "R" { result.as_str() } else { part }).collect();
            let text = format!("{{{blank}{}{blank}}}", parts.join(","));
            if let Some(message) = quick(&text) {
                prop_assert_eq!(Some(message), slow(&text), "{}", text);
            }
        }
    }
}
