//! OAuth identity for servers on the network. OAuth runs on the SDK's state machine; the network, the store and the
//! clock are ours.
//!
//! A [`Login`] is for a person who waits. [`Tokens`] is for all other callers: it asks no person, and renews tokens
//! that are about to expire. A grant belongs to the address of one server and to the issuer that granted it. It is kept
//! in a file that only its owner can read, and is sent to no other server or issuer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use ollm_net::Network;
use ollm_protocol::Oauth;
use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, sleep};

use crate::ports::{Authorize, PortFuture};
use crate::web;

mod callback;
mod login;
pub(crate) mod net;
mod record;

use login::shown;
pub use login::{Login, LoginError, LoginRequest, PersonInput};
use net::Net;
pub use record::Grant;
use record::{Frame, Record, Slot, usable};

/// How long before its end a token is renewed.
const MARGIN: Duration = Duration::from_secs(30);
/// How long another process may take to renew one.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often we check whether the other process is done.
const GLANCE: Duration = Duration::from_millis(50);

/// The tokens of all servers that a person logged in to.
#[derive(Debug)]
pub struct Tokens {
    file: PathBuf,
    network: Network,
    clock: fn() -> SystemTime,
    servers: RwLock<BTreeMap<String, Arc<Target>>>,
}

#[derive(Debug)]
struct Target {
    url: Url,
    /// The declared client id, and its client secret.
    client: Option<(String, Secret)>,
    /// The token as last read. The lock makes sure that only one request at a time renews it.
    known: Turn<Option<KnownToken>>,
    /// Why it could not be renewed the last time.
    trouble: Mutex<Option<String>>,
}

/// A client secret; `Debug` does not show it.
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A token as last read from the file, if there was one.
#[derive(Debug)]
struct KnownToken {
    token: Option<String>,
    until: Option<SystemTime>,
}

impl KnownToken {
    fn of(record: Option<&Record>) -> KnownToken {
        KnownToken { token: record.and_then(Record::token), until: record.and_then(Record::until) }
    }

    /// Whether the token stays valid for a while. A token without an end is valid. A missing token also counts as
    /// fresh; it is read again only after the server refuses a request.
    fn is_fresh(&self, now: SystemTime) -> bool {
        self.until.is_none_or(|until| now + MARGIN < until)
    }
}

impl Tokens {
    /// The tokens in a file.
    pub fn new(file: &Path, network: Network, clock: fn() -> SystemTime) -> Tokens {
        Tokens { file: file.to_owned(), network, clock, servers: RwLock::default() }
    }

    fn target(&self, name: &str) -> Option<Arc<Target>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The token for the next request, from memory until it expires.
    async fn token(&self, target: &Target) -> Option<String> {
        let mut known = target.known.lock().await;
        let now = (self.clock)();
        let fresh = known.as_ref().is_some_and(|known| known.is_fresh(now));
        if !fresh {
            let read = KnownToken::of(Record::load(&self.file, &target.url).as_ref());
            *known = Some(if read.is_fresh(now) { read } else { self.renewed(target, read.token.as_deref()).await });
        }
        known.as_ref()?.token.clone()
    }

    /// A token other than `old`: one that another process got meanwhile, or a new one from the issuer.
    async fn renewed(&self, target: &Target, old: Option<&str>) -> KnownToken {
        let Ok(_lock) = lock(&self.file).await else { return KnownToken::of(None) };
        let record = Record::load(&self.file, &target.url);
        let Some(record) = record.filter(|record| record.token().as_deref() == old) else {
            return KnownToken::of(Record::load(&self.file, &target.url).as_ref());
        };
        let Ok(manager) = self.manager(target, &record).await else { return KnownToken::of(None) };
        match manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::TokenRefreshRejected(_)) => {
                // The issuer rejects this token for good; other failures may pass.
                let _ = Record::remove(&self.file, &target.url);
            }
            Err(error) => {
                let issuer = record.grant().issuer;
                let why = format!(
                    "what {issuer} granted has expired, and it cannot be asked for more: {}",
                    shown(&error.to_string())
                );
                target.note(Some(why));
                return KnownToken::of(None);
            }
        }
        target.note(None);
        KnownToken::of(Record::load(&self.file, &target.url).as_ref())
    }

    async fn manager(&self, target: &Target, record: &Record) -> Result<AuthorizationManager, AuthError> {
        let net = Net::new(&target.url, &self.network).map_err(|error| AuthError::InternalError(error.to_string()))?;
        let mut manager = AuthorizationManager::new_with_oauth_http_client(target.url.as_str(), Arc::new(net)).await?;
        manager.set_credential_store(Slot::of(&self.file, &target.url, record));
        manager.set_metadata(record.frame.metadata.clone());
        let id = &record.credentials.client_id;
        // This issuer must not hear another client's secret.
        let declared = target.client.as_ref().filter(|(known, _)| known == id).map(|(_, secret)| &secret.0);
        manager.configure_client(record.frame.client(id, declared))?;
        Ok(manager)
    }
}

impl Target {
    fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl Authorize for Tokens {
    fn serve(&self, server: &str, url: &str, oauth: Option<&Oauth>) {
        let known = |oauth: &Oauth| Some((oauth.client_id.clone()?, Secret(oauth.client_secret.clone()?)));
        let client = oauth.and_then(known);
        let target = Url::parse(url)
            .ok()
            .map(|url| Arc::new(Target { url, client, known: Turn::default(), trouble: Mutex::default() }));
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        match target {
            Some(target) => drop(servers.insert(server.to_owned(), target)),
            None => drop(servers.remove(server)),
        }
    }

    fn authorization<'a>(&'a self, server: &'a str) -> PortFuture<'a, Option<String>> {
        Box::pin(async move {
            let token = self.token(&*self.target(server)?).await?;
            Some(format!("Bearer {token}"))
        })
    }

    fn refused<'a>(&'a self, server: &'a str, _: &'a str) -> PortFuture<'a, bool> {
        Box::pin(async move {
            let Some(target) = self.target(server) else { return false };
            let mut known = target.known.lock().await;
            let sent = known.take().and_then(|known| known.token);
            let read = KnownToken::of(Record::load(&self.file, &target.url).as_ref());
            // Another process may have logged in or renewed the token since.
            let now =
                if read.token == sent && sent.is_some() { self.renewed(&target, sent.as_deref()).await } else { read };
            let better = now.token.is_some();
            *known = Some(now);
            better
        })
    }

    fn lacking<'a>(&'a self, server: &'a str, scopes: &'a [String]) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let Some(target) = self.target(server) else { return };
            let Ok(_lock) = lock(&self.file).await else { return };
            let Some(mut record) = Record::load(&self.file, &target.url) else { return };
            let granted = |scope: &String| record.credentials.granted_scopes.contains(scope);
            let known = !scopes.is_empty() && scopes.iter().all(granted);
            target.note(known.then(|| format!("{} was granted, and it refuses all the same", scopes.join(" "))));
            if record.lacking != scopes {
                record.lacking = scopes.to_vec();
                // If saving fails, the person can still read the names in the message.
                let _ = record.save(&self.file, &target.url);
            }
        })
    }

    fn trouble(&self, server: &str) -> Option<String> {
        let target = self.target(server)?;
        let unread =
            usable(&self.file).err().map(|error| format!("what was granted cannot be read: {}", error.reason()));
        unread.or_else(|| target.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// The grant for this address in our own record. The issuer is not asked whether it still holds.
pub fn granted(url: &str, file: &Path) -> Option<Grant> {
    Record::load(file, &Url::parse(url).ok()?).map(|record| record.grant())
}

/// Forgets the grant for this address, and revokes it at the issuer if the issuer has an endpoint for that. The grant
/// is forgotten even if revoking fails; that failure is then returned.
pub fn log_out(wanted: &LoginRequest, file: &Path) -> Result<Option<Grant>, LoginError> {
    let url = Url::parse(&wanted.url).map_err(|_| LoginError::Address("its `url` is no address".to_owned()))?;
    usable(file)?;
    let Some(record) = Record::load(file, &url) else { return Ok(None) };
    Record::remove(file, &url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(revoke(&record, &url, wanted))?;
    Ok(Some(record.grant()))
}

/// Tells the issuer that the tokens are no longer needed.
async fn revoke(record: &Record, url: &Url, wanted: &LoginRequest) -> Result<(), LoginError> {
    let endpoint = record.frame.metadata.additional_fields.get("revocation_endpoint").and_then(|url| url.as_str());
    let (Some(endpoint), Some((kind, token))) = (endpoint, record.revocable()) else { return Ok(()) };
    let net = Net::new(url, &wanted.network)?;
    let mut fields = vec![("token", &*token), ("token_type_hint", kind), ("client_id", &record.credentials.client_id)];
    let known = wanted.oauth.client_id.as_ref() == Some(&record.credentials.client_id);
    let secret = record.frame.secret.as_ref().or(wanted.oauth.client_secret.as_ref().filter(|_| known));
    fields.extend(secret.map(|secret| ("client_secret", secret.as_str())));
    net.form(endpoint, &fields).await
}

/// Waits for the lock on renewing tokens, which one process holds at a time.
async fn lock(file: &Path) -> Result<std::fs::File, LoginError> {
    let lock = ollm_store::lock_file(&file.with_extension("renewing"))?;
    let began = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(std::fs::TryLockError::WouldBlock) if began.elapsed() < PATIENCE => sleep(GLANCE).await,
            Err(error) => return Err(LoginError::File(error.to_string())),
        }
    }
}

impl Frame {
    /// Our identity for the issuer.
    fn client(&self, id: &str, declared: Option<&String>) -> OAuthClientConfig {
        let client = OAuthClientConfig::new(id, self.redirect.clone());
        let secret = self.secret.as_ref().or(declared);
        secret.into_iter().fold(client, |client, secret| client.with_client_secret(secret.clone()))
    }
}

impl From<web::WebError> for LoginError {
    fn from(error: web::WebError) -> Self {
        LoginError::Net(error.to_string())
    }
}
