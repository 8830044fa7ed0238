//! One pooled HTTP client for all servers: its user agent, its redirect rules, and its read limits.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ollm_net::{NetError, Network, tls_failure};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url};

use crate::error::bytes;
use crate::log::Log;
use crate::ports::Authorize;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_mins(1);
/// How many redirects within one origin are followed.
pub(crate) const HOPS: usize = 10;
/// Bytes read of the body of a failed response.
const EXPLANATION: usize = 64 * 1024;

/// A failure on the way to a server or back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebError {
    /// No answer.
    #[error("{0}")]
    Net(String),
    /// A redirect to another origin.
    #[error("it redirects to {0}, which is not where it was declared to be; correct its `url` if you trust that place")]
    Redirect(String),
    /// The answer is too large.
    #[error("its answer is larger than {}", bytes(*.0))]
    TooLarge(usize),
    /// The answer has a failure status.
    #[error("it answered HTTP {0}{1}")]
    Status(u16, String),
    /// The server wants authorization; the text is its challenge, which may be empty.
    #[error("it needs a login")]
    Denied(String),
    /// We refuse what the server asks for.
    #[error("{0}")]
    Refused(String),
}

impl From<reqwest::Error> for WebError {
    fn from(error: reqwest::Error) -> Self {
        // Addresses may carry secrets.
        let error = error.without_url();
        let mut causes = Vec::new();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            if let Some(ForeignRedirect(place)) = current.downcast_ref() {
                return Self::Redirect(place.clone());
            }
            if let Some(astray) = current.downcast_ref::<RedirectFault>() {
                return Self::Refused(astray.to_string());
            }
            causes.push(current.to_string());
            cause = current.source();
        }
        if let Some(failure) = tls_failure(&error) {
            return Self::Net(failure);
        }
        Self::Net(causes.join(": "))
    }
}

impl From<NetError> for WebError {
    fn from(error: NetError) -> Self {
        Self::Net(error.to_string())
    }
}

/// A redirect to another origin, which is not followed.
#[derive(Debug, thiserror::Error)]
#[error("a redirect to {0}")]
struct ForeignRedirect(String);

/// A redirect within the origin that is not followed.
#[derive(Debug, thiserror::Error)]
enum RedirectFault {
    #[error("it redirects from one of its addresses to another more than {HOPS} times; correct its `url`")]
    Endless,
    #[error("it redirects with HTTP {0}, which loses what is sent; correct its `url`")]
    Lossy(u16),
}

/// A client that follows no redirect to another origin.
pub(crate) fn client(agent: &str, network: &Network) -> Result<Client, WebError> {
    Ok(builder(agent, network)?.redirect(Policy::custom(follow)).pool_idle_timeout(KEPT).build()?)
}

/// A client builder with the settings that all clients share.
pub(crate) fn builder(agent: &str, network: &Network) -> Result<ClientBuilder, WebError> {
    Ok(network.client()?.connect_timeout(CONNECT).user_agent(agent))
}

/// Follows only redirects that keep method and body, and stay within one origin: another origin would receive our
/// secrets.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same = attempt.previous().first().is_some_and(|first| same_origin(first, attempt.url()));
    let (few, status) = (attempt.previous().len() <= HOPS, attempt.status().as_u16());
    match (same, keeps, few) {
        (true, true, true) => return attempt.follow(),
        (true, true, false) => return attempt.error(RedirectFault::Endless),
        (true, false, _) => return attempt.error(RedirectFault::Lossy(status)),
        (false, ..) => {}
    }
    let place = attempt.url().origin().ascii_serialization();
    attempt.error(ForeignRedirect(place))
}

pub(crate) fn same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Sends requests to one server.
#[derive(Clone)]
pub(crate) struct Site {
    client: Client,
    server: Arc<str>,
    headers: HeaderMap,
    authorize: Option<Arc<dyn Authorize>>,
    /// Hides our authorization token.
    log: Arc<Log>,
}

impl Site {
    pub(crate) fn new(
        client: Client,
        server: &str,
        headers: &[(String, String)],
        authorize: Option<Arc<dyn Authorize>>,
        log: Arc<Log>,
    ) -> Result<Self, WebError> {
        let headers = headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, _>>()?;
        Ok(Self { client, server: server.into(), headers, authorize, log })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends a request with our authorization. Sends it once more if a better authorization is available after a
    /// refusal.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, WebError> {
        let again = request.try_clone();
        let response = self.attempt(request).await?;
        if response.status() == StatusCode::FORBIDDEN
            && let Some(challenge) = challenge(&response).filter(|challenge| is_insufficient(challenge))
        {
            if let Some(authorize) = &self.authorize {
                authorize.lacking(&self.server, &scopes(&challenge)).await;
            }
            return Err(WebError::Denied(challenge));
        }
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let challenge = challenge(&response).unwrap_or_default();
        if let (Some(again), Some(authorize)) = (again, &self.authorize)
            && authorize.refused(&self.server, &challenge).await
        {
            let response = self.attempt(again).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
        }
        Err(WebError::Denied(challenge))
    }

    async fn attempt(&self, request: RequestBuilder) -> Result<Response, WebError> {
        let request = request.headers(self.headers.clone());
        let known = match &self.authorize {
            Some(authorize) if !self.headers.contains_key(AUTHORIZATION) => authorize.authorization(&self.server).await,
            _ => None,
        };
        let request = match known {
            Some(value) => {
                self.log.hide(value.split_once(' ').map_or(&*value, |(_, proof)| proof));
                let mut value = HeaderValue::try_from(value)
                    .map_err(|_| WebError::Refused("the authorization for it is no header value".to_owned()))?;
                value.set_sensitive(true);
                request.header(AUTHORIZATION, value)
            }
            None => request,
        };
        Ok(request.send().await?)
    }
}

/// The challenge of a server that wants authorization.
pub(crate) fn challenge(response: &Response) -> Option<String> {
    let value = response.headers().get(WWW_AUTHENTICATE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether a challenge says that our identity is accepted, but lacks scopes.
pub(crate) fn is_insufficient(challenge: &str) -> bool {
    challenge.contains("insufficient_scope")
}

/// The scopes that a challenge names: only characters that the protocol allows, and not too many.
pub(crate) fn scopes(challenge: &str) -> Vec<String> {
    const LONGEST: usize = 200;
    const MOST: usize = 50;
    let (_, rest) = challenge.split_once("scope=").unwrap_or_default();
    let named = match rest.strip_prefix('"') {
        Some(rest) => rest.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    let allowed = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\' | '`');
    let words = named.unwrap_or_default().split(' ').filter(|word| !word.is_empty() && word.len() <= LONGEST);
    words.filter(|word| word.chars().all(allowed)).take(MOST).map(str::to_owned).collect()
}

/// The whole body; an error if it is too large.
pub(crate) async fn body(mut response: Response, cap: usize) -> Result<Vec<u8>, WebError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > cap {
            return Err(WebError::TooLarge(cap));
        }
        body.extend(chunk);
    }
    Ok(body)
}

/// The body of a failed response; empty if it is too large.
pub(crate) async fn explanation(response: Response) -> String {
    let body = body(response, EXPLANATION).await.unwrap_or_default();
    String::from_utf8_lossy(&body).into_owned()
}

/// The failure of a request, with the readable part of its explanation.
pub(crate) fn refusal(status: StatusCode, explanation: &str) -> WebError {
    let line = explanation.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let text = if line.is_empty() || line.starts_with('<') { String::new() } else { format!(": {line}") };
    WebError::Status(status.as_u16(), ollm_store::cut(&text, 300).into_owned())
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), WebError> {
    const OURS: [&str; 7] =
        ["accept", "content-type", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"];
    let refused = |why: &str| WebError::Refused(format!("the header `{name}` {why}; correct its `headers`"));
    let parsed = HeaderName::try_from(name).map_err(|_| refused("has no name that HTTP allows"))?;
    if OURS.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-param-") {
        return Err(refused("belongs to the protocol"));
    }
    let mut value = HeaderValue::try_from(value).map_err(|_| refused("has no value that HTTP allows"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_a_challenge_names_are_read_and_nothing_else() {
        for (challenge, wanted) in [
            (
                r#"Bearer error="insufficient_scope", scope="read write", resource_metadata="https://x""#,
                &["read", "write"][..],
            ),
            (r#"Bearer error="insufficient_scope",scope=read,realm="x""#, &["read"]),
            (r#"Bearer error="insufficient_scope""#, &[]),
            ("Bearer scope=\"a\u{1b}[2J ok `id`\"", &["ok"]),
            ("Bearer scope=", &[]),
        ] {
            assert_eq!(scopes(challenge), wanted, "{challenge}");
        }
        let many = format!("Bearer scope=\"{} {}\"", "x".repeat(1000), "y ".repeat(1000));
        assert_eq!(scopes(&many).len(), 50);
    }
}
