//! `ollm hook trust` and `untrust`: a person says that exactly this content may run.

use ollm_catalog::Positions;
use ollm_engine::Identity;
use ollm_protocol::Hook;
use ollm_store::{Approval, UpdateError, escape_for_people, read_bounded};

use super::show::{self, State};
use crate::agent::refuse_agents;
use crate::app::App;
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, ask};
use crate::world::World;

const LARGEST_SHOWN: u64 = 64 << 10;

pub(super) fn approve(id: &str, digest: Option<&str>, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "approve hooks")?;
    let app = App::load(world, Positions::Always)?;
    let hook = app.hook(id)?;
    let state = show::state(&hook, &app);
    if state.trust == "trusted" {
        output.tell(&format!("hook `{}` is trusted already", hook.id()));
        return Ok(OK);
    }
    let Some(identity) = &state.identity else {
        let why = state.unready.unwrap_or_default();
        return Err(Failure::new(Kind::Environment, format!("hook `{}` cannot be approved: {why}", hook.id())));
    };
    match digest {
        Some(named) => check_digest(&hook, identity, named)?,
        None => ask_person(&hook, &state, output)?,
    }
    record(&hook, identity, world)?;
    output.tell(&format!("hook `{}` is approved as {}", hook.id(), identity.digest));
    Ok(OK)
}

pub(super) fn withdraw(id: &str, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "change approvals")?;
    let app = App::load(world, Positions::OnDemand)?;
    let hook = app.hook(id)?;
    let source = ollm_engine::source(&hook);
    let removed = ollm_store::revoke(&world.approvals(), &source, hook.id()).map_err(unwritten)?;
    let said = if removed { "is no longer approved" } else { "was not approved" };
    output.tell(&format!("hook `{}` {said}", hook.id()));
    Ok(OK)
}

fn check_digest(hook: &Hook, identity: &Identity, named: &str) -> Result<(), Failure> {
    if identity.digest.to_string() == named {
        return Ok(());
    }
    Err(Failure::new(Kind::Untrusted, format!("hook `{}` is not what {named} names; nothing was approved", hook.id()))
        .hint(format!("review it, then read its digest with `ollm hook show {} --json`", hook.id())))
}

/// Shows everything that would run, and asks. Without a terminal nobody approves anything.
fn ask_person(hook: &Hook, state: &State, output: &mut Output) -> Result<(), Failure> {
    let refused = |message: String| Failure::new(Kind::Untrusted, message);
    output.explain(&escape_for_people(&show::text(hook, state)));
    if let Some(script) = hook.spec.script()
        && let Ok(Some(bytes)) = read_bounded(script, LARGEST_SHOWN)
    {
        let content = String::from_utf8_lossy(&bytes).into_owned();
        output.explain(&format!("\n--- {}\n{}\n---\n", script.display(), escape_for_people(&content)));
    }
    match ask("\nLet this hook run from now on, as long as nothing of it changes? [y/N] ").as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(refused(format!("hook `{}` was not approved", hook.id()))),
        None => Err(refused(format!("hook `{}` was not approved: there is no terminal to ask on", hook.id()))
            .hint(format!("a script may approve it by naming its digest: `ollm hook trust {} --digest sha256:…`", hook.id()))
            .hint(format!("`ollm hook show {} --json` prints the digest, after you reviewed the hook", hook.id()))),
    }
}

fn record(hook: &Hook, identity: &Identity, world: &World) -> Result<(), Failure> {
    let by = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| world.variable(name));
    let approval = Approval {
        id: hook.id().to_owned(),
        source: identity.source.clone(),
        hash: identity.hash,
        digest: identity.digest,
        approved_at: world.now(),
        approved_by: by.unwrap_or_else(|| "user".to_owned()),
    };
    ollm_store::approve(&world.approvals(), approval).map_err(unwritten)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unwritten(error: UpdateError) -> Failure {
    Failure::new(Kind::Environment, format!("the approvals were not changed: {error}"))
}
