//! Writes a request for another process, and reads it there.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use ollm_net::Network;
use ollm_protocol::hook::Endpoint;
use serde_json::{Map, Value, json};

use super::request::HttpRequest;
use crate::action::RemoteTask;
use crate::background::{bytes, unbytes};

/// The name of this task in the payload.
pub(in crate::action) const NAME: &str = "post";

pub(super) fn write(post: &HttpRequest) -> Value {
    let network = post.network.variables().map(|(name, value)| (name.to_owned(), bytes(value)));
    json!({NAME: {
        "url": post.endpoint.url,
        "headers": post.headers,
        "body": bytes(OsStr::from_bytes(&post.body)),
        "allowed": post.allowed,
        "network": network.collect::<Map<_, _>>(),
        "timeout": post.timeout.as_secs_f64(),
        "cap": post.cap,
    }})
}

pub(in crate::action) fn read(value: &Value) -> Option<Box<dyn RemoteTask>> {
    Some(Box::new(request(value)?))
}

fn request(value: &Value) -> Option<HttpRequest> {
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
        assert_eq!(written[NAME]["network"].as_object().unwrap().len(), 3);
        assert_eq!(write(&request(&written[NAME]).unwrap()), written);
    }
}
