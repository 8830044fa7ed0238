//! Errors of proxies and certificates. Messages say what to do.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why no client can be made for an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// A variable does not hold the address of a proxy. Its value is not shown, because it may hold a password.
    #[error("the variable {0} names no proxy; write for instance http://HOST:PORT, or unset it")]
    NoProxy(String),
    /// The proxy speaks another protocol than HTTP.
    #[error("the variable {variable} names a {scheme} proxy, which is not supported; name an http proxy, or unset it")]
    ProxyScheme {
        /// The variable.
        variable: String,
        /// The protocol.
        scheme: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// Why a server's certificate cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{variable} names {}, which cannot be read: {why}; {UNSET}", path.display())]
    Unreadable { variable: &'static str, path: PathBuf, why: String },
    #[error("{variable} names {}, which holds no certificate; {UNSET}", path.display())]
    Empty { variable: &'static str, path: PathBuf },
    #[error("{variable} names {}, which holds a certificate that cannot be read: {why}; {UNSET}", path.display())]
    Broken { variable: &'static str, path: PathBuf, why: String },
    #[error("the server's certificate comes from an authority that {known} does not hold; {MORE}")]
    UnknownIssuer { known: String },
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

const UNSET: &str = "correct it, or unset it to trust the system's authorities";
const MORE: &str =
    "if you trust that authority, name a file with its certificate (and the others you need) in SSL_CERT_FILE";

/// The TLS failure behind a failed request, if that was its cause.
pub fn tls_failure(error: &(dyn Error + 'static)) -> Option<String> {
    let mut current = error;
    loop {
        if let Some(error) = current.downcast_ref::<rustls::Error>() {
            return Some(match error {
                rustls::Error::Other(other) => other.to_string(),
                error => error.to_string(),
            });
        }
        #[cfg(feature = "ureq")]
        match current.downcast_ref::<ureq::Error>() {
            Some(ureq::Error::Io(inner)) => {
                current = inner;
                continue;
            }
            Some(ureq::Error::Other(inner)) => {
                current = inner.as_ref();
                continue;
            }
            _ => {}
        }
        // The error inside an I/O error is not its source.
        current = match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => inner,
            None => current.source()?,
        };
    }
}
