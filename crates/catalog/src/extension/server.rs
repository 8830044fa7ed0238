//! The MCP servers that an extension brings.

use std::path::Path;

use super::Extension;
use super::find::MANIFEST;
use super::read::LARGEST_FILE;
use crate::file::{self, Syntax};
use crate::mcp::{self, Context, ServerSpec};
use crate::node::Cursor;
use crate::path::PathCache;
use crate::problem::Problem;

impl Extension {
    /// The servers that it declares, with their files from `folder`: its own folder, or a copy. They are read now, so
    /// that an approved copy has the approved declarations.
    pub fn servers_in(&self, folder: &Path) -> (Vec<ServerSpec>, Vec<Problem>) {
        let manifest = folder.join(MANIFEST);
        let (document, node) = match file::read(&manifest, Syntax::Json, LARGEST_FILE) {
            Ok(Some(read)) => read,
            Ok(None) => return Default::default(),
            Err(problem) => return (Vec::new(), vec![*problem]),
        };
        let root = Cursor::root(&node);
        let Some(declared) = root.get("mcpServers") else { return Default::default() };
        // Messages name the extension's own folder, which people know.
        let (own, walked) = (self.file(), PathCache::default());
        let context =
            Context { file: &own, source: self.source(), extension: Some(&self.name), folder: Some((folder, &walked)) };
        let mut findings = Vec::new();
        let (mut servers, spots) = mcp::read(&declared, &context, &mut findings);
        for (server, spot) in servers.iter_mut().zip(&spots) {
            let at = document.locate(spot);
            (server.origin.line, server.origin.column) = (at.line, at.column);
        }
        let mut problems = document.problems(findings);
        mcp::hide_secrets(&mut problems, &node);
        (servers, problems)
    }
}
