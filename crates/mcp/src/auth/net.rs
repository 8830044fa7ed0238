//! The network that logging in uses. A server may name any address to log in at, so requests are restricted. They are
//! encrypted, or stay within this machine if the server is on it. They reach private addresses only if the server
//! itself is at one. They follow no redirect to another origin.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ollm_net::{AddressKind, Network};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Request, StatusCode, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest};

use super::login::LoginError;
use crate::http::{EVENTS, speaks};
use crate::web::{self, WebError, body, same_origin};

/// How long a request may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer.
pub(crate) const LARGEST: usize = 1 << 20;
/// How many redirects within one origin are followed.
const HOPS: usize = 5;

/// The network, restricted for one server.
pub(super) struct Net {
    client: Client,
    bounds: Bounds,
}

/// Where requests may go.
#[derive(Clone, Debug)]
struct Bounds {
    host: String,
    /// The kind of address the server itself has, if its URL shows it.
    class: Class,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Public,
    /// Known in this network only.
    Private,
    /// This machine.
    Here,
    /// An address at which we never log in.
    Never,
}

impl Net {
    pub(super) fn new(server: &Url, network: &Network) -> Result<Net, WebError> {
        let bounds = Bounds::of(server);
        let agent = concat!("ollm/", env!("CARGO_PKG_VERSION"));
        let client = web::builder(agent, network)?
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .dns_resolver(Arc::new(Lookup { bounds: bounds.clone(), network: network.clone() }))
            .build()?;
        Ok(Net { client, bounds })
    }

    /// Why we must not send a request, or a browser, to an address.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        self.bounds.check(url)
    }

    /// Whether a server answers a request without a token.
    pub(super) async fn is_open(&self, server: &Url) -> bool {
        let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
        let request = self.client.post(server.clone()).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").body(ping);
        // A server that only complains about the missing handshake asks for no login.
        request
            .send()
            .await
            .is_ok_and(|response| response.status().is_success() || response.status() == StatusCode::BAD_REQUEST)
    }

    /// Posts a form; an answer other than success is an error.
    pub(super) async fn form(&self, url: &str, fields: &[(&str, &str)]) -> Result<(), LoginError> {
        let mut url =
            Url::parse(url).map_err(|_| LoginError::Address("the address to log out at is none".to_owned()))?;
        let text = url.query_pairs_mut().clear().extend_pairs(fields).finish().query().unwrap_or_default().to_owned();
        url.set_query(None);
        self.bounds.check(&url).map_err(LoginError::Address)?;
        let request = self.client.post(url).header("content-type", "application/x-www-form-urlencoded").body(text);
        let status = request.send().await.map_err(WebError::from)?.status();
        if status.is_success() { Ok(()) } else { Err(LoginError::Net(format!("it answered HTTP {}", status.as_u16()))) }
    }

    async fn run(&self, mut request: Request, follow: bool) -> Result<http::Response<Vec<u8>>, WebError> {
        for _ in 0..HOPS {
            self.bounds.check(request.url()).map_err(WebError::Refused)?;
            let again = request.try_clone();
            let response = self.client.execute(request).await?;
            let target = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let target = target.filter(|_| follow && response.status().is_redirection());
            let (Some(target), Some(mut next)) = (target, again) else { return whole(response).await };
            let target =
                response.url().join(target).map_err(|_| WebError::Refused("it redirects to nowhere".to_owned()))?;
            if !same_origin(&target, response.url()) || next.method() != Method::GET {
                return Err(WebError::Redirect(target.origin().ascii_serialization()));
            }
            *next.url_mut() = target;
            request = next;
        }
        Err(WebError::Refused("it redirects too often".to_owned()))
    }
}

async fn whole(response: reqwest::Response) -> Result<http::Response<Vec<u8>>, WebError> {
    let (status, headers) = (response.status(), response.headers().clone());
    // An event stream has no end, and says nothing about logging in.
    let endless = speaks(&response, EVENTS);
    let mut whole = http::Response::new(if endless { Vec::new() } else { body(response, LARGEST).await? });
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole)
}

impl OAuthHttpClient for Net {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let follow = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
            Ok(self.run(request.request.try_into()?, follow).await?)
        })
    }
}

impl Bounds {
    fn of(server: &Url) -> Bounds {
        Bounds { host: host(server), class: literal(server).unwrap_or(Class::Public) }
    }

    /// Why we must not send a request to an address.
    fn check(&self, url: &Url) -> Result<(), String> {
        let place = url.origin().ascii_serialization();
        let class = literal(url);
        match url.scheme() {
            "https" => {}
            "http" if class == Some(Class::Here) && self.class == Class::Here => {}
            _ => return Err(format!("{place} is not encrypted, so that nothing is sent there")),
        }
        match class {
            Some(class) if !self.admits(class) && host(url) != self.host => Err(refused(&place)),
            _ => Ok(()),
        }
    }

    fn admits(&self, class: Class) -> bool {
        class == Class::Public || class == self.class && class != Class::Never
    }
}

fn refused(place: &str) -> String {
    format!("{place} is an address of this machine or network, where the server itself is not; nothing is sent there")
}

/// Resolves names, without the addresses that an outside server must not lead us to.
struct Lookup {
    bounds: Bounds,
    network: Network,
}

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (bounds, name) = (self.bounds.clone(), name.as_str().to_owned());
        // The user chose the hosts of the server itself and of the proxies.
        let open = name.eq_ignore_ascii_case(&bounds.host) || self.network.is_proxy(&name);
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let kept: Vec<_> = all.into_iter().filter(|at| open || bounds.admits(class(at.ip()))).collect();
            if kept.is_empty() {
                return Err(Box::new(WebError::Refused(refused(&name))) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase()
}

/// The kind of address a URL names, if that is known without a look-up.
fn literal(url: &Url) -> Option<Class> {
    let host = host(url);
    if host == "localhost" || host.ends_with(".localhost") {
        return Some(Class::Here);
    }
    host.parse().ok().map(class)
}

fn class(at: IpAddr) -> Class {
    match AddressKind::of(at) {
        AddressKind::Public => Class::Public,
        AddressKind::ThisMachine => Class::Here,
        AddressKind::Private | AddressKind::Carrier => Class::Private,
        _ => Class::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes(server: &str, target: &str) -> bool {
        Bounds::of(&Url::parse(server).unwrap()).check(&Url::parse(target).unwrap()).is_ok()
    }

    #[tokio::test]
    async fn a_proxy_that_only_this_network_knows_is_found() {
        let finds = async |proxy: Option<&'static str>| {
            let network = Network::from_variables(|name| proxy.filter(|_| name == "https_proxy").map(Into::into));
            let bounds = Bounds::of(&Url::parse("https://mcp.example/x").unwrap());
            Lookup { bounds, network }.resolve("localhost".parse().unwrap()).await.is_ok()
        };
        assert!(!finds(None).await);
        assert!(finds(Some("http://localhost:3128")).await);
    }

    #[test]
    fn nobody_leads_us_to_where_only_this_machine_or_network_is() {
        for (server, target, allowed) in [
            ("https://mcp.example/x", "https://login.example/", true),
            ("https://mcp.example/x", "http://login.example/", false),
            ("https://mcp.example/x", "https://127.0.0.1/", false),
            ("https://mcp.example/x", "https://localhost:8080/", false),
            ("https://mcp.example/x", "https://10.0.0.1/", false),
            ("https://mcp.example/x", "https://169.254.169.254/latest", false),
            ("https://mcp.example/x", "https://[::1]/", false),
            ("https://mcp.example/x", "https://[::ffff:10.0.0.1]/", false),
            ("https://mcp.example/x", "https://[fd00::1]/", false),
            ("https://mcp.example/x", "https://0.0.0.0/", false),
            ("https://mcp.example/x", "https://[fec0::1]/", false),
            ("https://mcp.example/x", "https://[64:ff9b::a00:1]/", false),
            ("https://mcp.example/x", "https://[64:ff9b::101:101]/", true),
            ("https://mcp.example/x", "ftp://login.example/", false),
            ("http://127.0.0.1:1/x", "http://127.0.0.1:2/", true),
            ("http://127.0.0.1:1/x", "http://localhost:2/", true),
            ("http://127.0.0.1:1/x", "http://login.example/", false),
            ("http://127.0.0.1:1/x", "https://10.0.0.1/", false),
            ("https://10.0.0.1/x", "https://10.0.0.2/", true),
            ("https://10.0.0.1/x", "https://127.0.0.1/", false),
            ("https://10.0.0.1/x", "http://10.0.0.2/", false),
        ] {
            assert_eq!(goes(server, target), allowed, "{server} {target}");
        }
    }
}
