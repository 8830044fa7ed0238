//! `ollm hook trust` and `untrust`: a person says that exactly this content may run.

use std::path::Path;

use ollm_catalog::Positions;
use ollm_engine::Identity;
use ollm_protocol::{Hook, shell_word};
use ollm_store::{Approval, FileError, UpdateError, escape_for_people, read_bounded};

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
    world.tell_notices(output);
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
    world.tell_notices(output);
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
        .hint(format!("review it, then read its digest with `ollm hook show {} --json`", shell_word(hook.id()))))
}

/// Shows everything that would run, and asks. Without a terminal nobody approves anything.
fn ask_person(hook: &Hook, state: &State, output: &mut Output) -> Result<(), Failure> {
    let refused = |message: String| Failure::new(Kind::Untrusted, message);
    output.explain(&escape_for_people(&show::text(hook, state)));
    for file in hook.spec.script().into_iter().chain(&hook.spec.inputs) {
        output.explain(&escape_for_people(&format!("\n--- {}\n{}\n---\n", file.display(), content(file))));
    }
    match ask("\nLet this hook run from now on, as long as nothing of it changes? [y/N] ").as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(refused(format!("hook `{}` was not approved", hook.id()))),
        None => Err(refused(format!("hook `{}` was not approved: there is no terminal to ask on", hook.id()))
            .hint(format!(
                "a script may approve it by naming its digest: `ollm hook trust {} --digest sha256:…`",
                shell_word(hook.id())
            ))
            .hint(format!(
                "`ollm hook show {} --json` prints the digest, after you reviewed the hook",
                shell_word(hook.id())
            ))),
    }
}

/// What a file holds, or why it is not shown: a person must know what they have not seen.
fn content(file: &Path) -> String {
    match read_bounded(file, LARGEST_SHOWN) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => "(it does not exist)".to_owned(),
        Err(FileError::TooLarge { size, .. }) => {
            format!("(its {size} bytes are too long to show here; read it before you approve it)")
        }
        Err(error) => format!("({error})"),
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
        term: ollm_store::Term::Always,
    };
    ollm_store::approve(&world.approvals(), approval).map_err(unwritten)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unwritten(error: UpdateError) -> Failure {
    Failure::new(Kind::Environment, format!("the approvals were not changed: {error}"))
}
