//! What is declared of an MCP server and handed on as it is: which of its tools are offered, and how to log in to it.

use std::fmt;

use crate::pattern::fits_name;

/// Which tools are offered, by the server's own names for them, in which `*` stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, if any are named.
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

    /// The entries that none of these tools fits, each with its key: what is misspelt keeps nothing back.
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
    /// The name by which the issuer knows us already.
    pub client_id: Option<String>,
    /// The word that proves it.
    pub client_secret: Option<String>,
    /// Where a document says who we are, for issuers that read it there.
    pub metadata_url: Option<String>,
    /// What to ask for.
    pub scopes: Vec<String>,
    /// The port the browser comes back to.
    pub port: Option<u16>,
    /// The whole address the browser comes back to, if the issuer knows another one than ours.
    pub redirect: Option<String>,
}

impl fmt::Debug for Oauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The word that proves who we are is not shown.
        f.debug_struct("Oauth")
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
