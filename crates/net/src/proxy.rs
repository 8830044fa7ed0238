//! Chooses the proxy for an address by `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in small or capital
//! letters. Addresses of this machine never use a proxy.

use std::ffi::OsStr;
use std::fmt;
use std::net::IpAddr;

use http::Uri;

use crate::address::{AddressKind, within};
use crate::error::NetError;

/// The proxies, and the addresses that need none. A variable with an invalid proxy is an error only for addresses that
/// need it.
#[derive(Debug)]
pub(crate) struct Proxies {
    http: Result<Option<ProxyUrl>, NetError>,
    https: Result<Option<ProxyUrl>, NetError>,
    excluded: Vec<Exclusion>,
}

/// The address of a proxy: scheme, perhaps user and password, host and port.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ProxyUrl {
    pub(crate) text: String,
    host: String,
    /// The variable that it comes from.
    variable: String,
}

impl fmt::Debug for ProxyUrl {
    /// Shows neither user nor password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ProxyUrl").field(&self.host).finish()
    }
}

/// Addresses that use no proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exclusion {
    hosts: Hosts,
    /// If set, the exclusion holds only for this port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// A host name and all names below it.
    Name(String),
    /// All addresses that begin with this many bits of the network.
    Network(IpAddr, u32),
}

impl Proxies {
    /// Variables in small letters win over those in capitals, as in other programs.
    pub(crate) fn from_variables<'a>(value: impl Fn(&str) -> Option<&'a OsStr>) -> Proxies {
        let set = |name: &str| {
            let names = [name.to_owned(), name.to_uppercase()];
            names.into_iter().find_map(|name| Some((value(&name).filter(|value| !is_blank(value))?, name)))
        };
        let proxy = |name: &str| match set(name).or_else(|| set("all_proxy")) {
            None => Ok(None),
            Some((value, variable)) => ProxyUrl::parse(value, variable).map(Some),
        };
        let list = set("no_proxy").map(|(list, _)| list.to_string_lossy()).unwrap_or_default();
        let excluded = list.split([',', ' ']).filter_map(Exclusion::parse).collect();
        Proxies { http: proxy("http_proxy"), https: proxy("https_proxy"), excluded }
    }

    /// The proxy for an address.
    pub(crate) fn find(&self, url: &str) -> Result<Option<&ProxyUrl>, NetError> {
        let Ok(uri) = url.parse::<Uri>() else { return Ok(None) };
        let Some(host) = uri.host() else { return Ok(None) };
        let secure = uri.scheme_str() == Some("https");
        let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        if is_this_machine(&host) || self.excluded.iter().any(|exclusion| exclusion.holds(&host, port)) {
            return Ok(None);
        }
        let proxy = if secure { &self.https } else { &self.http };
        proxy.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// The hosts of all proxies.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        [&self.http, &self.https].into_iter().flatten().flatten().map(|proxy| proxy.host.as_str())
    }

    /// The proxy for each scheme; an error if a variable holds an invalid one.
    #[cfg(feature = "reqwest")]
    pub(crate) fn both(&self) -> Result<[Option<&ProxyUrl>; 2], NetError> {
        let [http, https] = [&self.http, &self.https].map(|proxy| proxy.as_ref().map_err(Clone::clone));
        Ok([http?.as_ref(), https?.as_ref()])
    }
}

impl ProxyUrl {
    fn parse(value: &OsStr, variable: String) -> Result<ProxyUrl, NetError> {
        let text = value.to_str().unwrap_or_default().trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = scheme.to_ascii_lowercase();
        if ["socks", "socks4", "socks4a", "socks5", "socks5h"].contains(&scheme.as_str()) {
            return Err(NetError::ProxyScheme { variable, scheme });
        }
        let text = format!("{scheme}://{rest}");
        let uri = text.parse::<Uri>().ok().filter(|_| matches!(scheme.as_str(), "http" | "https"));
        let host = uri.and_then(|uri| Some(uri.host()?.trim_matches(['[', ']']).to_owned()));
        match host.filter(|host| !host.is_empty()) {
            Some(host) => Ok(ProxyUrl { text, host, variable }),
            None => Err(NetError::NoProxy(variable)),
        }
    }

    /// The error if a client library rejects the proxy.
    #[cfg(any(feature = "ureq", feature = "reqwest"))]
    pub(crate) fn refused(&self) -> NetError {
        NetError::NoProxy(self.variable.clone())
    }
}

impl Exclusion {
    fn parse(text: &str) -> Option<Exclusion> {
        let text = text.trim().to_ascii_lowercase();
        if let Some((network, bits)) = text.split_once('/') {
            return Some(Exclusion { hosts: Hosts::Network(network.parse().ok()?, bits.parse().ok()?), port: None });
        }
        let (host, port) = split_port(&text);
        let port = port.map(str::parse).transpose().ok()?;
        let hosts = match host.parse::<IpAddr>() {
            Ok(address) => Hosts::Network(address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) if host == "*" => Hosts::All,
            Err(_) => Hosts::Name(host.trim_start_matches('*').trim_matches('.').to_owned()),
        };
        (hosts != Hosts::Name(String::new())).then_some(Exclusion { hosts, port })
    }

    fn holds(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
            && match &self.hosts {
                Hosts::All => true,
                Hosts::Name(name) => {
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                }
                Hosts::Network(network, bits) => host.parse().is_ok_and(|address| within(address, *network, *bits)),
            }
    }
}

/// A host and its port; an IPv6 address with a port stands in brackets.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((inside, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return (inside, rest.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse().is_ok_and(|address| AddressKind::of(address) == AddressKind::ThisMachine)
}

fn is_blank(value: &OsStr) -> bool {
    value.to_str().is_some_and(|value| value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(set: &[(&str, &'static str)]) -> Proxies {
        Proxies::from_variables(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsStr::new(*value))
        })
    }

    fn host<'a>(proxies: &'a Proxies, url: &str) -> Option<&'a str> {
        proxies.find(url).unwrap().map(|proxy| proxy.host.as_str())
    }

    #[test]
    fn each_scheme_has_its_proxy_and_small_letters_count_first() {
        let both =
            proxies(&[("http_proxy", "http://a:1"), ("HTTP_PROXY", "http://x:1"), ("HTTPS_PROXY", "http://b:2")]);
        assert_eq!(host(&both, "http://box/v1"), Some("a"));
        assert_eq!(host(&both, "https://box/v1"), Some("b"));
        let all = proxies(&[("ALL_PROXY", "c:3"), ("https_proxy", "http://b:2"), ("http_proxy", " ")]);
        assert_eq!(host(&all, "http://box/v1"), Some("c"));
        assert_eq!(host(&all, "https://box/v1"), Some("b"));
        assert_eq!(host(&proxies(&[]), "https://box/v1"), None);
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy() {
        let all = proxies(&[("all_proxy", "http://c:3")]);
        for here in [
            "http://localhost:1/v1",
            "http://127.0.0.1/v1",
            "http://127.8.8.8:2",
            "http://[::1]:11434/v1",
            "http://[::ffff:127.0.0.1]/",
            "http://LOCALHOST/",
            "http://a.localhost/",
        ] {
            assert_eq!(host(&all, here), None, "{here}");
        }
    }

    #[test]
    fn places_that_want_no_proxy_get_none() {
        for (list, url, direct) in [
            ("*", "http://anywhere/", true),
            ("example.com", "http://example.com/", true),
            ("example.com", "http://EXAMPLE.com./", true),
            ("example.com", "https://api.example.com/", true),
            (".example.com", "https://api.example.com/", true),
            ("*.example.com", "https://api.example.com/", true),
            ("example.com", "http://notexample.com/", false),
            ("a, box:8080 b", "http://box:8080/", true),
            ("box:8080", "http://box:80/", false),
            ("box:nonsense", "http://box/", false),
            ("10.0.0.0/8", "http://10.9.8.7/", true),
            ("10.0.0.0/8", "http://11.9.8.7/", false),
            ("192.168.1.5", "http://192.168.1.5:99/", true),
            ("192.168.1.5:98", "http://192.168.1.5:99/", false),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("fd12::1", "http://[fd12::1]:8080/", true),
            ("[fd12::1]", "http://[fd12::1]:8080/", true),
            ("[fd12::1]:80", "http://[fd12::1]:8080/", false),
            ("nonsense/99, 0.0.0.0/0", "http://1.2.3.4/", true),
            ("", "http://box/", false),
            (".", "http://box/", false),
        ] {
            let proxies = proxies(&[("all_proxy", "http://c:3"), ("no_proxy", list)]);
            assert_eq!(host(&proxies, url).is_none(), direct, "{list} {url}");
        }
    }

    #[test]
    fn a_proxy_that_is_none_is_named_without_what_it_holds_and_only_where_it_is_needed() {
        let wrong = proxies(&[("HTTPS_PROXY", "ftp://me:hush@x y"), ("http_proxy", "socks5://me:hush@x:1")]);
        assert_eq!(
            wrong.find("https://box/").unwrap_err().to_string(),
            "the variable HTTPS_PROXY names no proxy; write for instance http://HOST:PORT, or unset it"
        );
        assert_eq!(
            wrong.find("http://box/").unwrap_err().to_string(),
            "the variable http_proxy names a socks5 proxy, which is not supported; name an http proxy, or unset it"
        );
        assert_eq!(wrong.find("https://localhost/"), Ok(None));
        assert!(!format!("{:?}", proxies(&[("all_proxy", "http://me:hush@x:1")])).contains("hush"));
    }
}
