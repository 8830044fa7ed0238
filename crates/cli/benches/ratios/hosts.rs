//! `ollm hook run --from AGENT`, as each agent starts it.

use ollm_protocol::dialect::{AGENTS, Addressee};
use ollm_protocol::{Dialect, Event, EventKind};
use serde_json::json;

use crate::lab::{Lab, cli, finish, start};
use crate::measure::Case;

impl Lab {
    /// Per agent: three hooks of which none fits, and one that does nothing.
    pub(crate) fn hosts(&self) -> Vec<Case> {
        let (three, one) = (self.home("three", 3, "other_tool"), self.home("fitting", 1, "*"));
        let event = Event::new(
            EventKind::BeforeTool,
            [("tool_name", "shell".into()), ("args", json!({"command": "ls"})), ("cwd", json!(self.root))],
        );
        let case = |name: String, target, floor: &std::path::PathBuf, run| {
            let (floor, input) = (floor.clone(), String::new());
            let floor: Box<dyn FnMut()> = Box::new(move || finish(start(&floor, &[], None), &input));
            Case { name: Box::leak(name.into_boxed_str()), target, floor, run }
        };
        let cases = AGENTS.iter().flat_map(|agent| {
            let sent = agent.write_event(&event, &Addressee { name: "bench", version: "1.0.0" });
            let (input, name) = (String::from_utf8(sent).unwrap(), agent.name);
            let arguments = ["hook", "run", "--from", name];
            [
                case(
                    format!("{name}: three hooks, none fits / hello world"),
                    3.0,
                    &self.hello,
                    cli(&self.ollm, &arguments, &three, &input),
                ),
                case(
                    format!("{name}: one no-op hook / bare spawn of it"),
                    5.0,
                    &self.no_op,
                    cli(&self.ollm, &arguments, &one, &input),
                ),
            ]
        });
        cases.collect()
    }
}
