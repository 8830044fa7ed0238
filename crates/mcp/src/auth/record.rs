//! The stored form of a grant: filed under the address of its server, with everything that renewing needs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use ollm_store::{SecretError, Secrets, drop_secrets, keep_secret};
use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationMetadata, CredentialStore, StoredCredentials};
use serde_json::{Value, json};

use super::login::LoginError;

/// What was granted for one address.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) credentials: StoredCredentials,
    pub(super) frame: Frame,
    /// The scopes that the server asks for beyond those granted.
    pub(super) lacking: Vec<String>,
}

/// What renewing a grant needs.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The metadata of the issuer.
    pub(super) metadata: AuthorizationMetadata,
    /// Where the browser was sent back to.
    pub(super) redirect: String,
    /// The client secret that the issuer gave us, if it did. A declared secret is not stored here.
    pub(super) secret: Option<String>,
}

/// What a person should know about a grant; none of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The issuer that granted it.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// Whether it can be renewed without asking the person.
    pub renewable: bool,
}

impl Record {
    /// The grant for an address; `None` where the file cannot be trusted.
    pub(super) fn load(file: &Path, url: &Url) -> Option<Record> {
        let (secrets, _) = Secrets::load(file, None);
        let value: Value = serde_json::from_str(&secrets.get(&key(url)).ok()??).ok()?;
        let credentials: StoredCredentials = serde_json::from_value(value.get("credentials")?.clone()).ok()?;
        let metadata: AuthorizationMetadata = serde_json::from_value(value.get("metadata")?.clone()).ok()?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        // Tokens of one issuer are never shown to another.
        if text("url").as_deref() != Some(url.as_str()) || credentials.issuer != metadata.issuer {
            return None;
        }
        let frame = Frame { metadata, redirect: text("redirect")?, secret: text("clientSecret") };
        let lacking = value.get("lacking").and_then(Value::as_array).into_iter().flatten();
        let lacking = lacking.filter_map(|scope| scope.as_str().map(str::to_owned)).collect();
        Some(Record { credentials, frame, lacking })
    }

    /// Saves the grant.
    pub(super) fn save(&self, file: &Path, url: &Url) -> Result<(), SecretError> {
        let value = json!({
            "url": url.as_str(),
            "credentials": self.credentials,
            "metadata": self.frame.metadata,
            "redirect": self.frame.redirect,
            "clientSecret": self.frame.secret,
            "lacking": self.lacking,
        });
        // A token lives for minutes, and every running process renews it. A keyring that asks the person is unsuitable
        // for that.
        keep_secret(file, None, &key(url), &value.to_string()).map(drop)
    }

    pub(super) fn remove(file: &Path, url: &Url) -> Result<bool, SecretError> {
        drop_secrets(file, None, &[key(url)])
    }

    pub(super) fn token(&self) -> Option<String> {
        self.response("access_token")?.as_str().map(str::to_owned)
    }

    /// When the token ends, if it does.
    pub(super) fn until(&self) -> Option<SystemTime> {
        let seconds = self.response("expires_in")?.as_u64()?;
        let since = self.credentials.token_received_at?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since.saturating_add(seconds)))
    }

    /// The token to revoke: revoking the refresh token ends the access token as well.
    pub(super) fn revocable(&self) -> Option<(&'static str, String)> {
        let text = |kind: &'static str| Some((kind, self.response(kind)?.as_str()?.to_owned()));
        text("refresh_token").or_else(|| text("access_token"))
    }

    pub(super) fn grant(&self) -> Grant {
        Grant {
            issuer: self.frame.metadata.issuer.clone().unwrap_or_default(),
            scopes: self.credentials.granted_scopes.clone(),
            renewable: self.response("refresh_token").is_some_and(|token| token.is_string()),
        }
    }

    /// A part of what the issuer answered.
    fn response(&self, name: &str) -> Option<Value> {
        let response = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        response.get(name).cloned()
    }
}

/// Makes sure that grants can be read from and saved to the file.
pub(super) fn usable(file: &Path) -> Result<(), LoginError> {
    match Secrets::load(file, None) {
        (_, Some(trouble)) => Err(LoginError::File(trouble.to_string())),
        (_, None) => Ok(()),
    }
}

/// The entry of one grant in the file, as the SDK's credential store.
pub(super) struct Slot {
    file: PathBuf,
    url: Url,
    frame: Frame,
    lacking: Vec<String>,
}

impl Slot {
    /// The entry for a new grant.
    pub(super) fn new(file: &Path, url: &Url, frame: Frame) -> Slot {
        Slot { file: file.to_owned(), url: url.clone(), frame, lacking: Vec::new() }
    }

    /// The entry of an earlier grant.
    pub(super) fn of(file: &Path, url: &Url, record: &Record) -> Slot {
        Slot { lacking: record.lacking.clone(), ..Slot::new(file, url, record.frame.clone()) }
    }
}

#[async_trait]
impl CredentialStore for Slot {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(Record::load(&self.file, &self.url).map(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let record = Record { credentials, frame: self.frame.clone(), lacking: self.lacking.clone() };
        record.save(&self.file, &self.url).map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let removed = Record::remove(&self.file, &self.url);
        removed.map(drop).map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

fn key(url: &Url) -> String {
    format!("mcp {url}")
}
