//! `ollm mcp logs`: what a server said on its standard error when it last ran.

use ollm_store::{escape_for_people, read_bounded};
use serde_json::json;

use crate::error::{Failure, Kind, OK};
use crate::output::Output;
use crate::servers::{Servers, log_file};
use crate::world::World;

const LARGEST_LOG: u64 = 1 << 20;

pub(super) fn run(server: &str, world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(world)?;
    let known = servers.find(server)?;
    let path = log_file(&servers, &known.spec.name);
    let bytes = read_bounded(&path, LARGEST_LOG).map_err(|error| Failure::new(Kind::Environment, error.to_string()))?;
    let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    if as_json {
        let lines: Vec<&str> = text.lines().collect();
        return output.pretty_json(&json!({"server": known.spec.name, "file": path, "lines": lines}));
    }
    if bytes.is_none() {
        output.tell(&format!("server `{server}` has said nothing yet"));
        return Ok(OK);
    }
    output.text(&escape_for_people(&text))
}
