//! Hook files of other agents, read in place: each hook becomes an entry of ours with the same meaning.

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_protocol::{Code, Layer};
use serde_json::Value;

use super::{Context, HookCollector, events};
use crate::connection::WrittenFile;
use crate::connection::written::{self, WrittenHook};
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;

/// Takes in every hook of a file; where the file is a program, the root is its text.
pub(crate) fn take(root: &Cursor<'_>, agent: &'static AgentDialect, intake: &mut HookCollector<'_>) {
    let Context { path, label, layer, .. } = *intake.context;
    let file = WrittenFile { path: path.to_owned(), label: label.to_owned(), in_project: layer == Layer::Workspace };
    if agent.home.written.form == WrittenForm::Programs {
        if let Some(hook) = written::program(&file, root.node.as_text().unwrap_or_default(), agent) {
            take_hook(hook, root, intake);
        }
        return;
    }
    let understood = written::each(root, agent, &file, &mut |at, found| match found {
        Ok(hook) => take_hook(hook, at, intake),
        Err(why) => intake.findings.push(Finding::at(
            Code::NotLoaded,
            Severity::Warning,
            at,
            Part::Value,
            format!("the hook {why}; it is left out"),
            None,
        )),
    });
    if let Err(why) = understood {
        intake.findings.push(Finding::at(
            Code::WrongForm,
            Severity::Error,
            root,
            Part::Value,
            format!("{why}; none of its hooks is loaded"),
            None,
        ));
    }
}

fn take_hook(WrittenHook { event, entry }: WrittenHook, at: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    let node = Node::from_json(&Value::Object(entry));
    let (hooks, findings) = (intake.hooks.len(), intake.findings.len());
    events::take_entry(&event, &Cursor::root(&node), intake);
    // Everything about it is told of the place where it stands.
    intake.spots.iter_mut().skip(hooks).for_each(|spot| *spot = at.spot(Part::Value));
    for finding in intake.findings.iter_mut().skip(findings) {
        finding.spot = Some(at.spot(Part::Value));
    }
}
