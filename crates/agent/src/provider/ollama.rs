//! A local Ollama: where it is, and which models it has.

use ollm_net::Network;
use serde_json::Value;

use super::ModelError;
use super::http::{HttpRequest, Patience, send};
use crate::cancel::Cancel;

/// More than any list of models needs.
const LARGEST: usize = 4 << 20;

/// The address of Ollama's OpenAI-compatible side, from the value of `OLLAMA_HOST`.
///
/// ```
/// assert_eq!(ollm_agent::ollama_url(None), "http://127.0.0.1:11434/v1");
/// assert_eq!(ollm_agent::ollama_url(Some("0.0.0.0:9999")), "http://127.0.0.1:9999/v1");
/// ```
pub fn ollama_url(host: Option<&str>) -> String {
    let host = host.map(str::trim).filter(|host| !host.is_empty()).unwrap_or("127.0.0.1");
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let (authority, path) =
        rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    // The address a server listens on everywhere is none to call.
    let authority = match authority.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None if authority.starts_with(':') => format!("127.0.0.1{authority}"),
        None => authority.to_owned(),
    };
    let ported = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if ported || scheme == "https" { "" } else { ":11434" };
    format!("{scheme}://{authority}{port}{path}/v1")
}

/// The names of the models a server offers.
pub fn models(
    base_url: &str,
    key: Option<&str>,
    network: &Network,
    patience: &Patience,
) -> Result<Vec<String>, ModelError> {
    let url = format!("{base_url}/models");
    let letter = HttpRequest { network: network.clone(), url, key: key.map(str::to_owned), body: None };
    let cancel = Cancel::default();
    let mut reply = send(&letter, patience, &cancel)?;
    let body = reply.body(LARGEST)?;
    if reply.head.status != 200 {
        let text = ollm_store::cut(&String::from_utf8_lossy(&body), 500).into_owned();
        return Err(ModelError::Refused {
            url: letter.url.clone(),
            status: reply.head.status,
            text,
            hint: String::new(),
        });
    }
    let malformed = |why: String| ModelError::Malformed { url: letter.url.clone(), why };
    let list: Value = serde_json::from_slice(&body).map_err(|error| malformed(error.to_string()))?;
    // A server without models says `null`.
    let names = list.get("data").and_then(Value::as_array).into_iter().flatten();
    Ok(names.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_host_is_understood() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434/v1"),
            ("box", "http://box:11434/v1"),
            ("http://box:80/", "http://box:80/v1"),
            ("https://box", "https://box/v1"),
            (":5000", "http://127.0.0.1:5000/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("http://box:80/ollama", "http://box:80/ollama/v1"),
        ] {
            assert_eq!(ollama_url(Some(host)), url, "{host}");
        }
    }
}
