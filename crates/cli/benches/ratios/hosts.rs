//! `ollm hook run --from AGENT`, as each agent starts it.

use std::path::Path;

use ollm_protocol::dialect::{AGENTS, Addressee};
use ollm_protocol::{Dialect, Event, EventKind};
use serde_json::json;

use crate::lab::{Lab, cli, finish, start};
use crate::measure::Case;

/// Stands for the number of a call.
const NUMBER: &str = "CALL_NUMBER";

impl Lab {
    /// Per agent: three hooks of which none fits, and one that does nothing.
    pub(crate) fn hosts(&self) -> Vec<Case> {
        let (three, one) = (self.home("three", 3, "other_tool"), self.home("fitting", 1, "*"));
        let event = Event::unchecked(
            EventKind::BeforeTool,
            [("tool_name", "shell".into()), ("args", json!({"command": "ls"})), ("cwd", json!(self.root))],
        );
        let mut numbered = event.clone();
        numbered.data.extend([("session_id".to_owned(), "s".into()), ("call_id".to_owned(), NUMBER.into())]);
        let case = |name: String, target, floor: &Path, run| {
            let (floor, input) = (floor.to_owned(), String::new());
            let floor: Box<dyn FnMut()> = Box::new(move || finish(start(&floor, &[], None), &input));
            Case { name: Box::leak(name.into_boxed_str()), target, floor, run }
        };
        let cases = AGENTS.iter().flat_map(|agent| {
            let sent = agent.write_event(&event, &Addressee::new("bench", "1.0.0"));
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
        let claude = AGENTS.iter().copied().filter(|agent| agent.name == "claude").map(|agent| {
            let sent = agent.write_event(&numbered, &Addressee::new("bench", "1.0.0"));
            let name = format!("{}: one no-op hook, a numbered call / bare spawn of it", agent.name);
            case(name, 5.0, &self.no_op, self.calls(agent.name, &one, String::from_utf8(sent).unwrap()))
        });
        cases.chain(claude).collect()
    }

    /// Asks about another call each time: one that was decided a moment ago is not decided again.
    fn calls(&self, agent: &'static str, home: &Path, input: String) -> Box<dyn FnMut()> {
        let (program, home) = (self.ollm.clone(), home.to_owned());
        let mut number = 0;
        Box::new(move || {
            number += 1;
            let input = input.replace(NUMBER, &format!("call_{number}"));
            finish(start(&program, &["hook", "run", "--from", agent], Some(&home)), &input);
        })
    }
}
