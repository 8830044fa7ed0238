//! Deletes the data about servers of a removed extension: cached answers, logs and logins.

use std::fs;
use std::path::Path;

use ollm_catalog::Address;
use ollm_mcp::{LoginError, LoginRequest, granted, log_out};
use ollm_protocol::Code;
use ollm_store::{UpdateError, versioned};
use serde_json::Value;

use super::server_set::log_file;
use super::{DeclaredServer, Servers, cache, failures, reason, tokens, tool_review};
use crate::error::AppError;

const VERSION: u32 = 1;

impl Servers<'_> {
    /// The servers of a manifest with a login, except those whose address another server also has.
    pub fn logins(&self, manifest: &Path) -> Vec<&str> {
        self.granted(manifest).map(|(known, _)| known.spec.name.as_str()).collect()
    }

    /// Deletes all data about the servers of a manifest, including its earlier states. Logs out of them if a person
    /// wants that. Returns the errors of issuers that could not be told.
    pub fn forget(&self, manifest: &Path, logs_out: bool) -> Result<Vec<String>, AppError> {
        let mut untold = Vec::new();
        for (known, wanted) in self.granted(manifest).filter(|_| logs_out) {
            match log_out(&wanted, &tokens(self.context)) {
                Err(LoginError::File(why)) => return Err(AppError::new(Code::NotWritten, why)),
                Err(why) => untold.push(format!("the issuer of {} could not be told: {why}", known.spec.label())),
                Ok(_) => {}
            }
        }
        for known in self.of_manifest(manifest).filter(|known| !known.label.is_empty()) {
            // If a log cannot be removed, the extension is removed nevertheless.
            let log = log_file(self.context, known);
            let _ = fs::remove_file(&log);
            let _ = log.parent().map(fs::remove_dir);
        }
        let unwritten = |error: UpdateError| AppError::new(Code::NotWritten, reason(&error));
        cache(self.context).forget_file(manifest).map_err(unwritten)?;
        failures::forget_file(&failures::file(self.context), manifest).map_err(unwritten)?;
        tool_review::forget_file(self.context, manifest).map_err(unwritten)?;
        Ok(untold)
    }

    fn of_manifest(&self, manifest: &Path) -> impl Iterator<Item = &DeclaredServer> {
        self.all.iter().filter(move |known| known.declared_in() == manifest)
    }

    fn granted(&self, manifest: &Path) -> impl Iterator<Item = (&DeclaredServer, LoginRequest)> {
        let others = self.all.iter().filter(|known| known.declared_in() != manifest);
        let taken: Vec<String> = others.filter_map(|known| Some(self.wanted(known)?.url)).collect();
        let wanted = self.of_manifest(manifest).filter_map(|known| Some((known, self.wanted(known)?)));
        wanted.filter(move |(_, wanted)| {
            !taken.contains(&wanted.url) && granted(&wanted.url, &tokens(self.context)).is_some()
        })
    }

    /// The request to log in to a server, if it has an address.
    fn wanted(&self, known: &DeclaredServer) -> Option<LoginRequest> {
        let (spec, _) = known.expanded(self);
        let Address::Url { url, .. } = spec.address else { return None };
        let (oauth, network) = (spec.oauth.unwrap_or_default(), self.context.network.clone());
        Some(LoginRequest { url, oauth, exact: false, network })
    }
}

/// Deletes the entries of a manifest's servers from a file with one entry per server.
pub(super) fn forget_entries(file: &Path, largest: u64, declared_in: &Path) -> Result<(), UpdateError> {
    if !file.exists() {
        return Ok(());
    }
    let name = declared_in.display().to_string();
    versioned::update(file, VERSION, largest, |document| {
        let Some(mut document) = document else { return Ok((None, ())) };
        let Some(servers) = document.get_mut("servers").and_then(Value::as_object_mut) else { return Ok((None, ())) };
        let before = servers.len();
        servers.retain(|_, entry| entry.get("file").and_then(Value::as_str) != Some(name.as_str()));
        let is_changed = servers.len() != before;
        Ok((is_changed.then_some(document), ()))
    })
}
