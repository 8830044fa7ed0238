//! Certificate authorities and proxies, for models, hooks and MCP servers.
//!
//! One [`Network`] serves models, http hooks and MCP servers, so that all three trust the same authorities and use the
//! same proxies. It is built from the variables that most programs share: `SSL_CERT_FILE` and `SSL_CERT_DIR`,
//! `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`. This crate reads no environment: the values come in.
//! (Without `SSL_CERT_FILE` and `SSL_CERT_DIR` the system decides; on Linux its own loader looks for these two again.)
//!
//! No file is read before the first TLS handshake. An unusable file fails that handshake, with a message that names the
//! variable, the file and what to do ([`tls_failure`]). Plain connections are not affected.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

mod address;
#[cfg(feature = "ureq")]
mod blocking;
#[cfg(feature = "reqwest")]
mod client;
mod error;
mod proxy;
mod roots;

pub use address::{AddressKind, within};
pub use error::{NetError, tls_failure};

use proxy::Proxies;
use roots::Verifier;

/// The variables that decide how servers are reached.
const VARIABLES: [&str; 10] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    roots::FILE,
    roots::FOLDERS,
];

/// Trusted authorities and proxies. Clones share the certificates once they are read.
///
/// ```
/// use ollm_net::Network;
/// let network = Network::from_variables(|name| (name == "https_proxy").then(|| "http://proxy:3128".into()));
/// assert!(network.uses_proxy("https://example.com/").unwrap());
/// assert!(!network.uses_proxy("https://localhost:8443/").unwrap());
/// ```
#[derive(Clone)]
pub struct Network {
    variables: Vec<(&'static str, OsString)>,
    proxies: Arc<Proxies>,
    verifier: Arc<Verifier>,
}

impl Network {
    /// The network that the variables describe; `variable` returns the value of a variable that is set.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Network {
        let set = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
        let variables: Vec<(&'static str, OsString)> = VARIABLES.into_iter().filter_map(set).collect();
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_os_str());
        let proxies = Arc::new(Proxies::from_variables(value));
        let verifier = Arc::new(Verifier::from_variables(value));
        Network { variables, proxies, verifier }
    }

    /// The variables that were set, to build the same network in another process. Proxies may hold a password.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.variables.iter().map(|(name, value)| (*name, value.as_os_str()))
    }

    /// Whether an address is reached through a proxy.
    pub fn uses_proxy(&self, url: &str) -> Result<bool, NetError> {
        Ok(self.proxies.find(url)?.is_some())
    }

    /// Whether a host is one of the proxies.
    pub fn is_proxy(&self, host: &str) -> bool {
        self.proxies.hosts().any(|known| known.eq_ignore_ascii_case(host))
    }
}

impl Default for Network {
    /// No proxy, and the authorities of the system.
    fn default() -> Network {
        Network::from_variables(|_| None)
    }
}

impl fmt::Debug for Network {
    /// Shows no values, because a proxy may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.variables.iter().map(|(name, _)| name);
        formatter.debug_set().entries(names).finish()
    }
}
