//! The servers after the first request for them, and after a reload of their declarations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ollm_mcp::Ports;
use ollm_protocol::CodeClass;

use super::server_set::{ServerSet, Turnover};
use super::{DeclaredServer, Servers};
use crate::app_context::AppContext;

/// All declared servers.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedServers {
    /// The servers that may be started, if there are any.
    pub(super) server_set: Option<Arc<ServerSet>>,
    /// The reasons why the others may not be started.
    pub(super) closed: BTreeMap<String, String>,
    /// Notes for the person.
    pub(super) notes: Vec<String>,
    /// The folders that were searched for extensions.
    pub(super) directories: Vec<PathBuf>,
    /// The problem with the configuration.
    wrong: Option<String>,
    /// Servers whose declaration can no longer be read.
    kept: Vec<String>,
}

impl LoadedServers {
    pub(super) fn of(context: &AppContext, ports: Ports) -> LoadedServers {
        let servers = match Servers::load(context) {
            Ok(servers) => servers,
            Err(failure) => return LoadedServers { notes: vec![failure.message], ..LoadedServers::default() },
        };
        let (mut opened, able) = LoadedServers::sorted(&servers);
        if !able.is_empty() {
            match ServerSet::gather(&servers, &able, ports) {
                Ok((server_set, problems)) => {
                    opened.notes.extend(problems.iter().map(ToString::to_string));
                    opened.server_set = Some(Arc::new(server_set));
                }
                Err(failure) => opened.notes.push(failure.message),
            }
        }
        opened
    }

    /// The servers after a reload, the names of servers to start, and the changes.
    pub(super) fn renewed(&self, context: &AppContext, ports: Ports) -> (LoadedServers, Vec<String>, Vec<String>) {
        let unchanged = || (self.clone(), Vec::new(), Vec::new());
        // The reader of the configuration reports its problems.
        let Ok(servers) = Servers::load(context) else { return unchanged() };
        let wrong = servers.wrong_configuration();
        if wrong.is_some() && wrong != self.wrong {
            return unchanged();
        }
        let Some(server_set) = &self.server_set else {
            let after = LoadedServers::of(context, ports);
            let begun: Vec<String> = after.server_set.iter().flat_map(|server_set| server_set.names()).collect();
            let turnover = Turnover { added: begun.clone(), ..Turnover::default() };
            let news = self.news(&after, &turnover);
            return (after, begun, news);
        };
        let (mut after, able) = LoadedServers::sorted(&servers);
        let turnover = server_set.renew(&servers, &able);
        after.server_set = Some(Arc::clone(server_set));
        after.closed.retain(|name, _| !turnover.kept.contains(name));
        after.notes.extend(turnover.problems.iter().map(ToString::to_string));
        after.kept.clone_from(&turnover.kept);
        let news = self.news(&after, &turnover);
        (after, [turnover.added, turnover.changed].concat(), news)
    }

    /// The servers that may be started, and the others with the reason why they may not.
    fn sorted<'s>(servers: &'s Servers<'_>) -> (LoadedServers, Vec<&'s DeclaredServer>) {
        let notes = servers.problems.iter().map(ToString::to_string).collect();
        let (directories, wrong) = (servers.directories.clone(), servers.wrong_configuration());
        let mut opened = LoadedServers { notes, directories, wrong, ..LoadedServers::default() };
        let mut able = Vec::new();
        for known in &servers.all {
            let Some((code, why)) = servers.obstacle(known) else {
                // Lazy servers are started when a caller waits for them.
                opened.notes.extend(known.download_note(servers.context).filter(|_| known.spec.lazy == Some(false)));
                able.push(known);
                continue;
            };
            // A person who switched a server off knows why it does not run.
            if code.class() != CodeClass::Configuration {
                opened.notes.push(format!("{} is not started: {why}", known.spec.label()));
            }
            opened.closed.insert(known.spec.name.clone(), why);
        }
        (opened, able)
    }

    /// The messages to the person about a change.
    fn news(&self, after: &LoadedServers, turnover: &Turnover) -> Vec<String> {
        let kept = turnover.kept.iter().filter(|name| !self.kept.contains(name)).cloned().collect();
        let lists = [
            (&turnover.added, "added"),
            (&turnover.changed, "changed"),
            (&turnover.removed, "ended"),
            (&kept, "that stay as they were"),
        ];
        let told = lists.iter().filter(|(names, _)| !names.is_empty());
        let told = told.map(|(names, what)| format!("servers {what}: {}", names.join(", ")));
        let fresh = after.notes.iter().filter(|note| !self.notes.contains(note)).cloned();
        told.chain(fresh).collect()
    }
}
