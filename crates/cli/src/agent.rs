//! Signs that an agent, not a person, started us: an agent may not approve hooks for itself.

use crate::error::{Failure, Kind};
use crate::world::World;

/// Variables that agents set on the commands they run; ours is set on every process we start.
const SIGNS: &[&str] =
    &["OLLM_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "GEMINI_CLI", "CODEX_SANDBOX", "CURSOR_AGENT", "QWEN_CODE"];

/// Refuses when an agent started us.
pub(crate) fn refuse_agents(world: &World, what: &str) -> Result<(), Failure> {
    let sign = SIGNS.iter().find(|name| world.variable(name).is_some_and(|value| !value.is_empty()));
    sign.map_or(Ok(()), |sign| {
        Err(Failure::new(Kind::Untrusted, format!("an agent may not {what}: {sign} is set"))
            .hint("run this command yourself, in a terminal that no agent controls"))
    })
}
