//! Who carries requests to a model's server, by the variables that all programs share: `http_proxy`, `https_proxy`,
//! `all_proxy` and `no_proxy`, in small letters or large ones.

use std::net::IpAddr;

use ureq::Proxy;
use ureq::http::Uri;

/// The proxies there are. What is on this machine is never asked for through one.
///
/// ```
/// use ollm_agent::Proxies;
/// let variable = |name: &str| (name == "https_proxy").then(|| "http://proxy:3128".to_owned());
/// assert!(Proxies::named(variable).is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    /// Places that are reached without one.
    direct: Vec<Place>,
}

/// A proxy's address that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {0} names no proxy; write for instance http://HOST:PORT, or unset it")]
pub struct BadProxy(String);

/// Where no proxy is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Everywhere,
    /// A host and all below it, if a port is given only there.
    Host(String, Option<u16>),
    /// All addresses that begin with so many bits.
    Network(IpAddr, u32),
}

impl Proxies {
    /// The proxies that variables name; the small letters count first, as everywhere.
    pub fn named(variable: impl Fn(&str) -> Option<String>) -> Result<Proxies, BadProxy> {
        let set = |name: &str| {
            let names = [name.to_owned(), name.to_uppercase()];
            names.into_iter().find_map(|name| Some((variable(&name).filter(|value| !value.trim().is_empty())?, name)))
        };
        let proxy = |name: &str| match set(name).or_else(|| set("all_proxy")) {
            None => Ok(None),
            // What stands there may hold a password, so the message does not.
            Some((value, name)) => Proxy::new(value.trim()).map(Some).map_err(|_| BadProxy(name)),
        };
        let direct = set("no_proxy").map(|(list, _)| list.split([',', ' ']).filter_map(Place::parse).collect());
        Ok(Proxies { http: proxy("http_proxy")?, https: proxy("https_proxy")?, direct: direct.unwrap_or_default() })
    }

    /// The proxy for an address.
    pub(crate) fn towards(&self, url: &str) -> Option<Proxy> {
        let uri: Uri = url.parse().ok()?;
        let secure = uri.scheme_str() == Some("https");
        let host = uri.host()?.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        if is_here(&host) || self.direct.iter().any(|place| place.holds(&host, port)) {
            return None;
        }
        if secure { self.https.clone() } else { self.http.clone() }
    }
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Place::Everywhere);
        }
        if let Some((network, bits)) = text.split_once('/') {
            return Some(Place::Network(network.parse().ok()?, bits.parse().ok()?));
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Place::Network(address, 128));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        let host = host.trim_start_matches('*').trim_matches(['.', '[', ']']);
        Some(Place::Host(host.to_owned(), port))
    }

    fn holds(&self, host: &str, port: u16) -> bool {
        match self {
            Place::Everywhere => true,
            Place::Host(name, only) => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                below && only.is_none_or(|only| only == port)
            }
            Place::Network(network, bits) => host.parse().is_ok_and(|address| shares(address, *network, *bits)),
        }
    }
}

/// Whether two addresses begin with the same bits.
fn shares(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    let (one, other, width) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits()), u128::from(other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let rest: u32 = width - bits.min(width);
    (one ^ other).checked_shr(rest).unwrap_or(0) == 0
}

fn is_here(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(set: &'static [(&str, &str)]) -> Proxies {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Proxies::named(find).unwrap()
    }

    fn towards(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.towards(url).map(|proxy| proxy.host().to_owned())
    }

    #[test]
    fn each_scheme_has_its_proxy_and_small_letters_count_first() {
        let both =
            proxies(&[("http_proxy", "http://a:1"), ("HTTP_PROXY", "http://x:1"), ("HTTPS_PROXY", "http://b:2")]);
        assert_eq!(towards(&both, "http://box/v1").as_deref(), Some("a"));
        assert_eq!(towards(&both, "https://box/v1").as_deref(), Some("b"));
        let all = proxies(&[("ALL_PROXY", "http://c:3"), ("https_proxy", "http://b:2")]);
        assert_eq!(towards(&all, "http://box/v1").as_deref(), Some("c"));
        assert_eq!(towards(&all, "https://box/v1").as_deref(), Some("b"));
        assert_eq!(towards(&proxies(&[]), "https://box/v1"), None);
    }

    #[test]
    fn this_machine_is_never_reached_through_a_proxy() {
        let all = proxies(&[("all_proxy", "http://c:3")]);
        for here in [
            "http://localhost:1/v1",
            "http://127.0.0.1/v1",
            "http://127.8.8.8:2",
            "http://[::1]:11434/v1",
            "http://LOCALHOST/",
        ] {
            assert_eq!(towards(&all, here), None, "{here}");
        }
    }

    #[test]
    fn places_that_want_no_proxy_get_none() {
        for (list, url, direct) in [
            ("*", "http://anywhere/", true),
            ("example.com", "http://example.com/", true),
            ("example.com", "https://api.example.com/", true),
            (".example.com", "https://api.example.com/", true),
            ("*.example.com", "https://api.example.com/", true),
            ("example.com", "http://notexample.com/", false),
            ("a, box:8080 b", "http://box:8080/", true),
            ("box:8080", "http://box:80/", false),
            ("10.0.0.0/8", "http://10.9.8.7/", true),
            ("10.0.0.0/8", "http://11.9.8.7/", false),
            ("192.168.1.5", "http://192.168.1.5:99/", true),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("[fd12::1]", "http://[fd12::1]:8080/", true),
            ("nonsense/99, 0.0.0.0/0", "http://1.2.3.4/", true),
            ("", "http://box/", false),
        ] {
            let set = [("all_proxy", "http://c:3"), ("no_proxy", list)];
            let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            let proxies = Proxies::named(find).unwrap();
            assert_eq!(proxies.towards(url).is_none(), direct, "{list} {url}");
        }
    }

    #[test]
    fn a_proxy_that_is_none_is_named_without_what_it_holds() {
        let error = Proxies::named(|name| (name == "HTTPS_PROXY").then(|| "ftp://me:hush@x y".to_owned())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the variable HTTPS_PROXY names no proxy; write for instance http://HOST:PORT, or unset it"
        );
    }
}
