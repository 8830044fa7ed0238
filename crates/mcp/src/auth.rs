//! Who we are, for servers on the network that want to know: OAuth, with the SDK's state machine and our own network,
//! store and clock.
//!
//! A [`Login`] is for a person who waits; [`Tokens`] is for everybody else, asks nobody anything, and renews what is about
//! to expire. What is granted belongs to the address of one server and the issuer that granted it, is kept in a file of its
//! owner alone, and goes nowhere else.

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
pub use login::{Login, LoginError, Pasted, Wanted};
use net::Net;
pub use record::Grant;
use record::{Frame, Record, Slot, usable};

/// How long before its end a token is renewed.
const MARGIN: Duration = Duration::from_secs(30);
/// How long another process may take to renew one.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often we look whether it is done.
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
    /// The client that was declared, and the word that proves it.
    client: Option<(String, Secret)>,
    /// What is known of the token; only one request at a time finds out that it must be renewed.
    known: Turn<Option<Known>>,
    /// Why it could not be renewed the last time.
    trouble: Mutex<Option<String>>,
}

/// A word that is not shown.
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A token as it was last seen in the file; there may be none.
#[derive(Debug)]
struct Known {
    token: Option<String>,
    until: Option<SystemTime>,
}

impl Known {
    fn of(record: Option<&Record>) -> Known {
        Known { token: record.and_then(Record::token), until: record.and_then(Record::until) }
    }

    /// Whether it is good for a while. One without an end is, and none at all stays none until somebody asks for one.
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

    /// The token for the next request, from memory as long as it is good.
    async fn token(&self, target: &Target) -> Option<String> {
        let mut known = target.known.lock().await;
        let now = (self.clock)();
        let fresh = known.as_ref().is_some_and(|known| known.is_fresh(now));
        if !fresh {
            let read = Known::of(Record::load(&self.file, &target.url).as_ref());
            *known = Some(if read.is_fresh(now) { read } else { self.renewed(target, read.token.as_deref()).await });
        }
        known.as_ref()?.token.clone()
    }

    /// A token that is not this one: what another process got meanwhile, or what we get now.
    async fn renewed(&self, target: &Target, old: Option<&str>) -> Known {
        let Ok(_lock) = lock(&self.file).await else { return Known::of(None) };
        let record = Record::load(&self.file, &target.url);
        let Some(record) = record.filter(|record| record.token().as_deref() == old) else {
            return Known::of(Record::load(&self.file, &target.url).as_ref());
        };
        let Ok(manager) = self.manager(target, &record).await else { return Known::of(None) };
        match manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::TokenRefreshRejected(_)) => {
                // It will never be worth anything again; a failure on the way there may pass.
                let _ = Record::remove(&self.file, &target.url);
            }
            Err(error) => {
                let issuer = record.grant().issuer;
                let why = format!(
                    "what {issuer} granted has expired, and it cannot be asked for more: {}",
                    shown(&error.to_string())
                );
                target.note(Some(why));
                return Known::of(None);
            }
        }
        target.note(None);
        Known::of(Record::load(&self.file, &target.url).as_ref())
    }

    async fn manager(&self, target: &Target, record: &Record) -> Result<AuthorizationManager, AuthError> {
        let net = Net::new(&target.url, &self.network).map_err(|error| AuthError::InternalError(error.to_string()))?;
        let mut manager = AuthorizationManager::new_with_oauth_http_client(target.url.as_str(), Arc::new(net)).await?;
        manager.set_credential_store(Slot::of(&self.file, &target.url, record));
        manager.set_metadata(record.frame.metadata.clone());
        let id = &record.credentials.client_id;
        // Another client's word is nothing that this issuer should hear.
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
            let read = Known::of(Record::load(&self.file, &target.url).as_ref());
            // Somebody may have logged in, or renewed it, since.
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
                // Where it cannot be kept, the person reads the names in the message.
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

/// What a person was granted for this address, as far as it is kept; nobody is asked whether it still holds.
pub fn granted(url: &str, file: &Path) -> Option<Grant> {
    Record::load(file, &Url::parse(url).ok()?).map(|record| record.grant())
}

/// Forgets what was granted for this address, and tells the issuer so where it wants to know. Nothing is remembered even
/// if the issuer cannot be told, which is the error then.
pub fn log_out(wanted: &Wanted, file: &Path) -> Result<Option<Grant>, LoginError> {
    let url = Url::parse(&wanted.url).map_err(|_| LoginError::Address("its `url` is no address".to_owned()))?;
    usable(file)?;
    let Some(record) = Record::load(file, &url) else { return Ok(None) };
    Record::remove(file, &url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(revoke(&record, &url, wanted))?;
    Ok(Some(record.grant()))
}

/// Tells the issuer that nobody needs the tokens any more.
async fn revoke(record: &Record, url: &Url, wanted: &Wanted) -> Result<(), LoginError> {
    let endpoint = record.frame.metadata.additional_fields.get("revocation_endpoint").and_then(|url| url.as_str());
    let (Some(endpoint), Some((kind, token))) = (endpoint, record.revocable()) else { return Ok(()) };
    let net = Net::new(url, &wanted.network)?;
    let mut fields = vec![("token", &*token), ("token_type_hint", kind), ("client_id", &record.credentials.client_id)];
    let known = wanted.oauth.client_id.as_ref() == Some(&record.credentials.client_id);
    let secret = record.frame.secret.as_ref().or(wanted.oauth.client_secret.as_ref().filter(|_| known));
    fields.extend(secret.map(|secret| ("client_secret", secret.as_str())));
    net.form(endpoint, &fields).await
}

/// Waits for the right to renew tokens, which one process has at a time.
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
    /// Who we are to the issuer.
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
