//! The declarations of an MCP server that are passed on unchanged: its offered tools, and how to log in.

use std::fmt;

use crate::pattern::fits_name;

/// The offered tools, by the server's names for them. `*` matches any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, if there are any.
    pub allow: Option<Vec<String>>,
    /// Never these.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool is offered.
    pub fn admits(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| fits_name(name, tool));
        self.allow.as_deref().is_none_or(named) && !named(&self.deny)
    }

    /// The entries that fit none of these tools, each with its key. A misspelt entry would block nothing.
    pub fn idle<'a>(&'a self, tools: &[&str]) -> impl Iterator<Item = (&'static str, &'a str)> {
        let fits = |name: &str| tools.iter().any(|tool| fits_name(name, tool));
        let allow = self.allow.iter().flatten().map(|name| ("allowTools", name.as_str()));
        let deny = self.deny.iter().map(|name| ("denyTools", name.as_str()));
        allow.chain(deny).filter(move |(_, name)| !fits(name))
    }
}

/// How to log in to a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Oauth {
    /// The client id that the issuer already knows.
    pub client_id: Option<String>,
    /// The client secret.
    pub client_secret: Option<String>,
    /// The address of a document that describes us, for issuers that read one.
    pub metadata_url: Option<String>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The port that the browser returns to.
    pub port: Option<u16>,
    /// The whole address that the browser returns to, if the issuer knows another one than ours.
    pub redirect: Option<String>,
}

impl fmt::Debug for Oauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client secret is hidden.
        f.debug_struct("Oauth")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
