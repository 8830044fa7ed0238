//! Logging in: a person agrees in a browser, which then returns to a local port of ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ollm_net::Network;
use ollm_protocol::Oauth;
use ollm_store::{FileError, SecretError, cut, escape_for_people};
use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::callback::{Callback, CallbackQuery};
use super::net::Net;
use super::record::{Frame, Grant, Record, Slot, usable};
use crate::endpoint::{WebAddress, web_address};
use crate::error::seconds;

/// At most this much of another program's text is shown.
const SHOWN: usize = 300;

/// A server to log in to, and how.
#[derive(Clone, Default)]
pub struct LoginRequest {
    /// The server's address.
    pub url: String,
    /// What the declaration says: client id, scopes and redirect address.
    pub oauth: Oauth,
    /// Ask for exactly these scopes, without those that the server found lacking.
    pub exact: bool,
    /// The network to servers that are not on this machine.
    pub network: Network,
}

impl std::fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wanted").field("url", &self.url).field("oauth", &self.oauth).finish_non_exhaustive()
    }
}

/// Why a login did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server sends us to an address that we refuse to visit.
    #[error("{0}")]
    Address(String),
    /// The server does not say how to log in.
    #[error("it does not say how to log in: {0}")]
    Unsupported(String),
    /// The issuer does not accept us as a client.
    #[error("the issuer does not take us as a client: {0}")]
    Unregistered(String),
    /// Another issuer answered than the one that was asked.
    #[error("another issuer answered than the one that was asked: {0}; nothing was sent to it")]
    Issuer(String),
    /// The person or the issuer refused.
    #[error("the issuer says no: {0}")]
    Denied(String),
    /// The person gave up.
    #[error("you gave up")]
    GivenUp,
    /// No browser came back.
    #[error("no browser came back within {} seconds{note}", patience.as_secs())]
    Late {
        /// How long the person had.
        patience: Duration,
        /// What came instead of the browser.
        note: String,
    },
    /// The server needs no login.
    #[error("it needs no login: it answers every request")]
    Needless,
    /// The server did not say in time how to log in.
    #[error("it did not say how to log in within {}", seconds(*.0))]
    Slow(Duration),
    /// The network fails.
    #[error("{0}")]
    Net(String),
    /// The grant cannot be saved.
    #[error("what was granted cannot be kept: {0}")]
    File(String),
}

/// What the person did outside the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonInput {
    /// Nothing yet.
    Nothing,
    /// They pasted the address that the browser was sent to.
    Address(String),
    /// They do not want to log in any more.
    GivenUp,
}

/// A login that waits for the person. It blocks, and has a runtime of its own.
pub struct Login {
    runtime: Runtime,
    manager: AuthorizationManager,
    callback: Callback,
    address: WebAddress,
    state: String,
    file: PathBuf,
    url: Url,
    issuer: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("url", &self.url.as_str()).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Login {
    /// Finds out where to log in, and prepares for the browser's return. The grant will be saved in the file. If the
    /// file could not be written, this fails before the person is sent anywhere.
    pub fn begin(wanted: &LoginRequest, file: &Path, patience: Duration) -> Result<Login, LoginError> {
        usable(file)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = Url::parse(&wanted.url).map_err(|_| LoginError::Address("its `url` is no address".to_owned()))?;
        let callback = runtime
            .block_on(Callback::listen(wanted.oauth.port, wanted.oauth.redirect.as_deref()))
            .map_err(|error| LoginError::Net(format!("the browser could not come back to this machine: {error}")))?;
        let redirect = callback.redirect();
        let beginning = async { timeout(patience, begin(wanted, &url, file, &redirect)).await };
        let begun = runtime.block_on(beginning).map_err(|_| LoginError::Slow(patience))??;
        let address =
            web_address(&begun.page).ok_or_else(|| LoginError::Address("the page to log in at is none".to_owned()))?;
        let page = Url::parse(&begun.page).map_err(|error| LoginError::Address(error.to_string()))?;
        let state = page.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let (manager, issuer) = (begun.manager, begun.issuer);
        let (state, file) = (state.unwrap_or_default(), file.to_owned());
        Ok(Login { runtime, manager, callback, address, state, file, url, issuer })
    }

    /// The page that the person opens.
    pub fn page(&self) -> &WebAddress {
        &self.address
    }

    /// The name of the issuer that grants access.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Waits for the browser to return. Meanwhile it asks whether the person pasted the address instead, and reports
    /// requests that were rejected.
    pub fn finish(
        self,
        patience: Duration,
        mut pasted: impl FnMut() -> PersonInput,
        mut tell: impl FnMut(&str),
    ) -> Result<Grant, LoginError> {
        let began = Instant::now();
        let mut strangers = 0;
        loop {
            if began.elapsed() > patience {
                let note =
                    if strangers > 0 { format!("; {strangers} visitors had a wrong state") } else { String::new() };
                return Err(LoginError::Late { patience, note });
            }
            let heard = match pasted() {
                PersonInput::GivenUp => return Err(LoginError::GivenUp),
                PersonInput::Address(text) => CallbackQuery::of(&text),
                PersonInput::Nothing => self.runtime.block_on(self.callback.next(&self.state)),
            };
            match heard {
                Some(CallbackQuery { state, .. }) if state != self.state || state.is_empty() => {
                    strangers += 1;
                    tell("a browser came back with a wrong state, which is not the one we sent; it was turned away");
                }
                Some(heard) => return self.granted(heard),
                None => {}
            }
        }
    }

    fn granted(self, heard: CallbackQuery) -> Result<Grant, LoginError> {
        if let Some(error) = heard.error {
            return Err(LoginError::Denied(shown(&error)));
        }
        let code = heard.code.ok_or_else(|| LoginError::Denied("it sent no code".to_owned()))?;
        let exchange = self.manager.exchange_code_for_token_with_issuer(&code, &heard.state, heard.issuer.as_deref());
        self.runtime.block_on(exchange)?;
        let record = Record::load(&self.file, &self.url);
        record
            .map(|record| record.grant())
            .ok_or_else(|| LoginError::File(format!("{} holds it not", self.file.display())))
    }
}

struct StartedLogin {
    manager: AuthorizationManager,
    page: String,
    issuer: String,
}

async fn begin(wanted: &LoginRequest, url: &Url, file: &Path, redirect: &str) -> Result<StartedLogin, LoginError> {
    let net = Arc::new(Net::new(url, &wanted.network)?);
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::clone(&net) as Arc<_>).await?;
    let found = manager.resolve_metadata().await.map_err(LoginError::from);
    let unsaid = match &found {
        Ok(found) => found.source == AuthorizationMetadataSource::LegacyEndpointFallback,
        Err(error) => matches!(error, LoginError::Unsupported(_)),
    };
    if unsaid && net.is_open(url).await {
        return Err(LoginError::Needless);
    }
    let found = found?;
    let metadata = found.metadata;
    // Metadata that lists abilities must list S256 too; without it, a stolen code could be redeemed.
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !unsaid && !methods.iter().any(|method| method == "S256") {
        let why = "its metadata does not name S256 among `code_challenge_methods_supported`, so a login could be stolen; \
                   its operator has to add that";
        return Err(LoginError::Unsupported(why.to_owned()));
    }
    for endpoint in [&metadata.authorization_endpoint, &metadata.token_endpoint] {
        let place =
            Url::parse(endpoint).map_err(|_| LoginError::Unsupported("an endpoint is no address".to_owned()))?;
        net.check(&place).map_err(LoginError::Address)?;
    }
    let issuer = metadata.issuer.clone().unwrap_or_else(|| url.origin().ascii_serialization());
    manager.set_metadata(metadata.clone());
    let scopes = scopes(wanted, &manager, Record::load(file, url), &metadata).await;
    let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let mut frame = Frame { metadata, redirect: redirect.to_owned(), secret: None };
    let document = wanted.oauth.metadata_url.as_ref().filter(|_| reads_documents(&frame.metadata));
    match wanted.oauth.client_id.as_ref().or(document) {
        Some(id) => {
            let secret = wanted.oauth.client_secret.as_ref().filter(|_| wanted.oauth.client_id.is_some());
            manager.configure_client(frame.client(id, secret).with_scopes(scopes.clone()))?;
        }
        None => frame.secret = manager.register_client("ollm", redirect, &names).await?.client_secret,
    }
    manager.set_credential_store(Slot::new(file, url, frame));
    let page = manager.get_authorization_url(&names).await?;
    Ok(StartedLogin { manager, page, issuer })
}

/// The scopes to ask for: the declared ones, or those that the server asks for at first. If the server found these
/// lacking, the earlier grant and the missing scopes are added.
async fn scopes(
    wanted: &LoginRequest,
    manager: &AuthorizationManager,
    before: Option<Record>,
    metadata: &AuthorizationMetadata,
) -> Vec<String> {
    const RENEWING: &str = "offline_access";
    let mut scopes = if wanted.oauth.scopes.is_empty() {
        manager.select_initial_scopes(&[]).await
    } else {
        wanted.oauth.scopes.clone()
    };
    if wanted.exact {
        return scopes;
    }
    let before = before.filter(|before| !before.lacking.is_empty());
    let more = before.into_iter().flat_map(|before| [before.credentials.granted_scopes, before.lacking].concat());
    let renewing = metadata.scopes_supported.iter().flatten().filter(|scope| *scope == RENEWING).cloned();
    for scope in more.chain(renewing).collect::<Vec<_>>() {
        // Without scopes the issuer chooses them; a request for this scope alone would replace that choice.
        let alone = scopes.is_empty() && scope == RENEWING;
        if !alone && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

/// Whether an issuer reads the client metadata document at the address that is our client id.
fn reads_documents(metadata: &AuthorizationMetadata) -> bool {
    let told = metadata.additional_fields.get("client_id_metadata_document_supported");
    told.and_then(serde_json::Value::as_bool).unwrap_or_default()
}

impl LoginError {
    /// What went wrong, without what it means for a login.
    pub(super) fn reason(&self) -> String {
        match self {
            LoginError::File(why) => why.clone(),
            error => error.to_string(),
        }
    }
}

impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::AuthorizationServerMismatch { .. } | AuthError::AuthorizationServerMissingIssuer { .. } => {
                LoginError::Issuer(shown(&error.to_string()))
            }
            AuthError::RegistrationFailed(why) => LoginError::Unregistered(shown(&format!(
                "{why}; if you registered yourself there, write the id down as `oauth.clientId` of the server"
            ))),
            AuthError::NoAuthorizationSupport | AuthError::MetadataError(_) | AuthError::PkceUnsupported => {
                LoginError::Unsupported(shown(&error.to_string()))
            }
            AuthError::CredentialStoreError(why) => LoginError::File(shown(&why)),
            AuthError::TokenExchangeFailed(why) => LoginError::Denied(shown(&why)),
            error => LoginError::Net(shown(&error.to_string())),
        }
    }
}

impl From<std::io::Error> for LoginError {
    fn from(error: std::io::Error) -> Self {
        LoginError::Net(error.to_string())
    }
}

impl From<SecretError> for LoginError {
    fn from(error: SecretError) -> Self {
        LoginError::File(error.to_string())
    }
}

impl From<FileError> for LoginError {
    fn from(error: FileError) -> Self {
        LoginError::File(error.to_string())
    }
}

/// Another program's text, made safe and short for people.
pub(super) fn shown(text: &str) -> String {
    cut(&escape_for_people(text), SHOWN).into_owned()
}
