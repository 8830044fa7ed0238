//! A request on its way to another process, and that process's part.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use ollm_net::Network;
use ollm_protocol::hook::Endpoint;
use ollm_protocol::{Dialect, EventKind, Output};
use serde_json::{Map, Value, json};

use super::{bytes, unbytes};
use crate::action::TaskReply;
use crate::action::http::HttpRequest;

pub(super) fn write(post: &HttpRequest) -> Value {
    let network = post.network.variables().map(|(name, value)| (name.to_owned(), bytes(value)));
    json!({
        "url": post.endpoint.url,
        "headers": post.headers,
        "body": bytes(OsStr::from_bytes(&post.body)),
        "allowed": post.allowed,
        "network": network.collect::<Map<_, _>>(),
        "timeout": post.timeout.as_secs_f64(),
        "cap": post.cap,
    })
}

/// What went wrong with a request that was made.
pub(super) fn failure(said: &TaskReply, dialect: &dyn Dialect, event: EventKind) -> Option<String> {
    match said {
        TaskReply::Failure(why, _) | TaskReply::Overdue(_, why) => Some(why.clone()),
        TaskReply::Nothing | TaskReply::Decided(_) => None,
        TaskReply::Something(body, end) => {
            dialect.read_verdict(event, &Output { end: *end, stdout: body, stderr: b"" }).failure
        }
    }
}

pub(super) fn read(value: &Value) -> Option<HttpRequest> {
    let texts = |value: &Value| {
        value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect::<Option<Vec<_>>>()
    };
    let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
    let network = value.get("network")?;
    Some(HttpRequest {
        endpoint: Endpoint::parse(value.get("url")?.as_str()?).ok()?,
        headers: value.get("headers")?.as_array()?.iter().map(pair).collect::<Option<_>>()?,
        body: unbytes(value.get("body")?)?.into_vec(),
        allowed: texts(value.get("allowed")?)?,
        network: Network::from_variables(|name| unbytes(network.get(name)?)),
        timeout: Duration::try_from_secs_f64(value.get("timeout")?.as_f64()?).ok()?,
        cap: usize::try_from(value.get("cap")?.as_u64()?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way() {
        let variables = [("SSL_CERT_FILE", "/c.pem"), ("https_proxy", "http://me:hush@proxy:3128"), ("NO_PROXY", "*")];
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let post = HttpRequest {
            endpoint: Endpoint::parse("https://example.com/x").unwrap(),
            headers: vec![("A".to_owned(), "b".to_owned())],
            body: b"{}".to_vec(),
            allowed: vec!["127.0.0.1".to_owned()],
            network: Network::from_variables(find),
            timeout: Duration::from_millis(1500),
            cap: 7,
        };
        let written = write(&post);
        assert_eq!(written["network"].as_object().unwrap().len(), 3);
        assert_eq!(write(&read(&written).unwrap()), written);
    }
}
