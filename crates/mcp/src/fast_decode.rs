//! Decodes results of tool calls without the SDK.
//!
//! The SDK tries all types of messages and results one after the other, and tool results come late in that order. This
//! decoder leaves everything unusual to the SDK.

use std::fmt;
use std::marker::PhantomData;

use rmcp::model::{CallToolResult, ContentBlock, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

/// The answer to a tool call; `None` for any other message.
pub(crate) fn read(text: &[u8]) -> Option<ServerJsonRpcMessage> {
    let CallAnswer { id, result } = serde_json::from_slice(text).ok()?;
    let mut told = CallToolResult::success(result.content);
    // Older revisions do not mark a result as complete.
    told.result_type = None;
    told.is_error = result.is_error;
    told.structured_content = result.structured;
    Some(ServerJsonRpcMessage::response(ServerResult::CallToolResult(told), RequestId::Number(id)))
}

struct CallAnswer {
    id: i64,
    result: CallResult,
}

struct CallResult {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
    is_error: Option<bool>,
}

impl<'de> Deserialize<'de> for CallAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(ThreeFields::<&str, i64, CallResult>::named(["jsonrpc", "id", "result"]))? {
            (Some("2.0"), Some(id), Some(result)) => Ok(CallAnswer { id, result }),
            _ => Err(unusual()),
        }
    }
}

impl<'de> Deserialize<'de> for CallResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = ThreeFields::named(["content", "structuredContent", "isError"]);
        let (content, structured, is_error) = deserializer.deserialize_map(fields)?;
        Ok(CallResult { content: content.ok_or_else(unusual)?, structured, is_error })
    }
}

/// A map with at most three fields, each at most once.
struct ThreeFields<A, B, C> {
    names: [&'static str; 3],
    kinds: PhantomData<(A, B, C)>,
}

impl<A, B, C> ThreeFields<A, B, C> {
    fn named(names: [&'static str; 3]) -> Self {
        Self { names, kinds: PhantomData }
    }
}

impl<'de, A, B, C> Visitor<'de> for ThreeFields<A, B, C>
where
    A: Deserialize<'de>,
    B: Deserialize<'de>,
    C: Deserialize<'de>,
{
    type Value = (Option<A>, Option<B>, Option<C>);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a map of {}", self.names.join(", "))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut found = (None, None, None);
        while let Some(key) = map.next_key::<&str>()? {
            match self.names.iter().position(|name| *name == key) {
                Some(0) => once(&mut found.0, map.next_value()?)?,
                Some(1) => once(&mut found.1, map.next_value()?)?,
                Some(_) => once(&mut found.2, map.next_value()?)?,
                None => return Err(unusual()),
            }
        }
        Ok(found)
    }
}

/// A repeated field is unusual.
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

    fn fast(text: &str) -> Option<String> {
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
            assert!(fast(&text).is_some(), "{text}");
            assert_eq!(fast(&text), slow(&text), "{text}");
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
            assert_eq!(fast(text), None, "{text}");
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
            if let Some(message) = fast(&text) {
                prop_assert_eq!(Some(message), slow(&text), "{}", text);
            }
        }
    }
}
