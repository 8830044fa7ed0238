//! Chooses the trusted authorities: those in `SSL_CERT_FILE` and `SSL_CERT_DIR` if one of them is set, else the
//! system's. A system without any, such as a small container, gets those that browsers trust.
//!
//! The certificates are read when the first handshake needs them, so plain connections cost nothing. After a failure
//! they are read again, so a corrected file works without a restart.

use std::env::split_paths;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use crate::error::{NetError, TrustError};

pub(crate) const FILE: &str = "SSL_CERT_FILE";
pub(crate) const FOLDERS: &str = "SSL_CERT_DIR";

/// The largest file that is read; a larger one holds something else.
const LARGEST: u64 = 16 << 20;

/// Files with authorities' certificates, if they replace the system's.
#[derive(Debug)]
struct Roots {
    file: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

/// Checks servers' certificates against the trusted authorities.
#[derive(Debug)]
pub(crate) struct Verifier {
    roots: Roots,
    provider: Arc<CryptoProvider>,
    loaded: OnceLock<Loaded>,
}

/// The certificate verifier, and a description of where its authorities came from.
#[derive(Debug)]
struct Loaded {
    verifier: Arc<dyn ServerCertVerifier>,
    source: String,
}

impl Verifier {
    pub(crate) fn from_variables<'a>(value: impl Fn(&str) -> Option<&'a OsStr>) -> Verifier {
        let folders =
            value(FOLDERS).map(|list| split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect());
        Verifier {
            roots: Roots { file: value(FILE).map(PathBuf::from), folders: folders.unwrap_or_default() },
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            loaded: OnceLock::new(),
        }
    }

    /// The TLS configuration of all our clients.
    pub(crate) fn client_config(self: Arc<Verifier>) -> Result<ClientConfig, NetError> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|error| NetError::Tls(error.to_string()))?;
        Ok(builder.dangerous().with_custom_certificate_verifier(self).with_no_client_auth())
    }

    fn loaded(&self) -> Result<&Loaded, TrustError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.roots.load(&self.provider)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// Chooses only which certificates to check against; `rustls` or the system performs the checks.
impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let loaded = self.loaded().map_err(failure)?;
        loaded.verifier.verify_server_cert(certificate, intermediates, name, ocsp, now).map_err(|error| match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                failure(TrustError::UnknownIssuer { known: loaded.source.clone() })
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn failure(error: TrustError) -> Error {
    Error::Other(OtherError(Arc::new(error)))
}

impl Roots {
    fn load(&self, provider: &Arc<CryptoProvider>) -> Result<Loaded, TrustError> {
        if self.file.is_none() && self.folders.is_empty() {
            if let Ok(system) = rustls_platform_verifier::Verifier::new(Arc::clone(provider)) {
                return Ok(Loaded { verifier: Arc::new(system), source: "the system".to_owned() });
            }
            let store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            return checked_against(store, provider, "our own list (the system has none)".to_owned());
        }
        let mut store = RootCertStore::empty();
        if let Some(file) = &self.file {
            add_file(file, &mut store)?;
        }
        for folder in &self.folders {
            add_folder(folder, &mut store)?;
        }
        checked_against(store, provider, self.describe())
    }

    /// A description of where the authorities come from.
    fn describe(&self) -> String {
        let file = self.file.as_ref().map(|file| format!("{FILE} ({})", file.display()));
        let folders = self.folders.iter().map(|folder| format!("{FOLDERS} ({})", folder.display()));
        file.into_iter().chain(folders).collect::<Vec<_>>().join(" or ")
    }
}

fn checked_against(store: RootCertStore, provider: &Arc<CryptoProvider>, source: String) -> Result<Loaded, TrustError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider)).build();
    Ok(Loaded { verifier: verifier.map_err(|error| TrustError::Setup(error.to_string()))?, source })
}

/// Adds the certificates of a file. The file must be readable and hold a certificate; single unusable certificates are
/// skipped.
fn add_file(file: &Path, store: &mut RootCertStore) -> Result<(), TrustError> {
    let (variable, path) = (FILE, || file.to_owned());
    let bytes =
        read(file).map_err(|error| TrustError::Unreadable { variable, path: path(), why: error.to_string() })?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| TrustError::Broken { variable, path: path(), why: error.to_string() })?;
    if found.is_empty() {
        return Err(TrustError::Empty { variable, path: path() });
    }
    let mut wrong = None;
    let mut added = 0;
    for certificate in found {
        match store.add(certificate) {
            Ok(()) => added += 1,
            Err(error) => wrong = Some(error.to_string()),
        }
    }
    match wrong {
        Some(why) if added == 0 => Err(TrustError::Broken { variable, path: path(), why }),
        _ => Ok(()),
    }
}

/// Adds the certificates of a folder. The folder must be readable and hold a certificate; other files in it are
/// ignored.
fn add_folder(folder: &Path, store: &mut RootCertStore) -> Result<(), TrustError> {
    let (variable, path) = (FOLDERS, || folder.to_owned());
    let unreadable = |error: io::Error| TrustError::Unreadable { variable, path: path(), why: error.to_string() };
    let mut added = 0;
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let bytes = read(&file).unwrap_or_default();
        added += store.add_parsable_certificates(CertificateDer::pem_slice_iter(&bytes).flatten()).0;
    }
    if added == 0 { Err(TrustError::Empty { variable, path: path() }) } else { Ok(()) }
}

/// The content of a regular file; reading anything else could block.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other("it is larger than 16 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn certificate() -> String {
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem()
    }

    fn loads(file: Option<&Path>, folders: &[&Path]) -> Result<(), String> {
        let folders = folders.iter().map(|folder| folder.to_path_buf()).collect();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Roots { file: file.map(Path::to_owned), folders };
        roots.load(&provider).map(drop).map_err(|error| error.to_string())
    }

    fn file(folder: &TempDir, name: &str, content: &str) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_variable_and_the_way_out() {
        let folder = TempDir::new().unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let shallow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (path, why) in [
            (folder.path().join("missing"), "cannot be read: No such file"),
            (folder.path().to_owned(), "cannot be read: it is no file"),
            (file(&folder, "empty", ""), "holds no certificate;"),
            (file(&folder, "text", "hello"), "holds no certificate;"),
            (file(&folder, "broken", broken), "holds a certificate that cannot be read:"),
            (file(&folder, "shallow", shallow), "holds a certificate that cannot be read:"),
        ] {
            let error = loads(Some(&path), &[]).unwrap_err();
            assert!(error.starts_with(&format!("SSL_CERT_FILE names {}, which {why}", path.display())), "{error}");
            assert!(error.ends_with("correct it, or unset it to trust the system's authorities"), "{error}");
        }
    }

    #[test]
    fn a_bundle_is_taken_although_one_certificate_in_it_is_of_no_use() {
        let folder = TempDir::new().unwrap();
        let useless = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let bundle = file(&folder, "bundle", &format!("# ours\n{}{useless}", certificate()));
        assert_eq!(loads(Some(&bundle), &[]), Ok(()));
    }

    #[test]
    fn a_folder_counts_for_the_certificates_in_it_whatever_else_it_holds() {
        let (good, bare) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        file(&good, "a.pem", &certificate());
        file(&good, "README", "hello");
        fs::create_dir(good.path().join("private")).unwrap();
        assert_eq!(loads(None, &[good.path()]), Ok(()));
        let error = loads(None, &[good.path(), bare.path()]).unwrap_err();
        assert!(
            error.starts_with(&format!("SSL_CERT_DIR names {}, which holds no certificate;", bare.path().display())),
            "{error}"
        );
    }
}
