//! `ollm mcp trust` and `untrust`: a person says that a server may be started exactly as it is declared.

use ollm_catalog::{Address, Positions, ServerSpec};
use ollm_protocol::{Source, shell_word};
use ollm_store::{Digest, UpdateError, escape_for_people};
use ollm_trust::{Approval, Standing, Term};

use super::review::review;
use crate::agent::refuse_agents;
use crate::app::App;
use crate::command::ext::revoke;
use crate::error::{Failure, Kind, OK};
use crate::open;
use crate::output::{Output, ask};
use crate::servers::{Known, Servers, id, reason, source};
use crate::world::World;

pub(super) fn approve(name: &str, digest: Option<&str>, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "approve servers")?;
    world.need_home()?;
    let servers = Servers::load(world)?;
    world.tell_notices(output);
    let known = servers.find(name)?;
    if known.trust == Standing::Approved {
        // Whoever names a digest counts on it, also where nothing is left to approve.
        if let (Some(named), Some(now)) = (digest, &known.digest) {
            check_digest(name, now, named)?;
        }
        let why = if known.spec.source == Source::User {
            "is the user's own and needs no approval"
        } else {
            "is trusted already"
        };
        output.tell(&format!("server `{name}` {why}"));
        return Ok(OK);
    }
    if let Some(bundle) = &known.bundle {
        return Err(part_of(name, &bundle.extension));
    }
    let now = match (&known.digest, &known.program) {
        (Some(digest), Ok(_)) => digest,
        (_, Err(why)) => {
            return Err(Failure::new(Kind::Environment, format!("server `{name}` cannot be approved: {why}")));
        }
        (None, Ok(_)) => return Err(Failure::new(Kind::Environment, format!("server `{name}` cannot be approved"))),
    };
    match digest {
        Some(named) => check_digest(name, now, named)?,
        None => ask_person(known, &servers, output)?,
    }
    if let Some(package) = unpinned(&known.spec) {
        output.tell(&format!("`{package}` names no version: what runs may change without being asked about again"));
    }
    ollm_trust::approve(&world.approvals(), approval(known, *now, world)).map_err(unwritten)?;
    output.tell(&format!("server `{name}` is approved as {now}"));
    Ok(OK)
}

pub(super) fn withdraw(names: &[String], world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "change approvals")?;
    let servers = Servers::load(world)?;
    world.tell_notices(output);
    for name in names {
        let known = servers.find(name)?;
        if let Some(bundle) = &known.bundle {
            withdraw_extension(name, &bundle.extension, world, output)?;
            continue;
        }
        let spec = &known.spec;
        let removed = ollm_trust::revoke(&world.approvals(), &source(spec), &id(spec)).map_err(unwritten)?;
        let said = match (removed, spec.source) {
            (true, _) => "is no longer approved",
            (false, Source::User) => "is the user's own and needs no approval; `enabled: false` switches it off",
            (false, _) => "was not approved",
        };
        output.tell(&format!("server `{name}` {said}"));
    }
    Ok(OK)
}

/// A server of an extension is approved with all the rest of it.
fn part_of(name: &str, extension: &str) -> Failure {
    let message = format!("server `{name}` is part of the extension `{extension}`, which is approved as a whole");
    Failure::new(Kind::Untrusted, message)
        .hint(format!("`ollm ext trust {}` shows and approves it", shell_word(extension)))
}

/// Withdraws the approval of all that a server came with.
fn withdraw_extension(name: &str, extension: &str, world: &World, output: &mut Output) -> Result<(), Failure> {
    let app = App::load(world, Positions::OnDemand)?;
    let removed = app.extensions.get(extension).map(|found| revoke(found, &app)).transpose()?.unwrap_or_default();
    let said = if removed { "is no longer approved" } else { "was not approved" };
    output.tell(&format!("server `{name}` is part of the extension `{extension}`, which {said}"));
    Ok(())
}

fn approval(known: &Known, digest: Digest, world: &World) -> Approval {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| world.variable(name));
    Approval {
        source: source(&known.spec),
        id: id(&known.spec),
        hash: digest,
        approved_at: world.timestamp(),
        approved_by: user.unwrap_or_else(|| "user".to_owned()),
        digest,
        term: Term::Always,
        copy: None,
        program: None,
    }
}

fn check_digest(name: &str, now: &Digest, named: &str) -> Result<(), Failure> {
    if now.to_string() == named {
        return Ok(());
    }
    Err(Failure::new(Kind::Untrusted, format!("server `{name}` is not what {named} names; nothing was approved"))
        .hint("review it, then read its digest with `ollm mcp list --json`"))
}

/// Shows everything that would run, and asks. Without a terminal nobody approves anything.
fn ask_person(known: &Known, servers: &Servers<'_>, output: &mut Output) -> Result<(), Failure> {
    let name = &known.spec.name;
    let text = review(known, servers);
    let text = escape_for_people(&text);
    if !open::page(&text, servers.world.search_path()) {
        output.explain(&text);
    }
    match ask("\nMay this server be started, as long as nothing of it changes? [y/N] ").as_deref() {
        Some("y" | "Y" | "yes" | "a" | "always") => Ok(()),
        Some(_) => Err(Failure::new(Kind::Untrusted, format!("server `{name}` was not approved"))),
        None => Err(Failure::new(
            Kind::Untrusted,
            format!("server `{name}` was not approved: there is no terminal to ask on"),
        )
        .hint(format!(
            "a script may approve by naming the digest: `ollm mcp trust {} --digest sha256:…`",
            shell_word(name)
        ))
        .hint("`ollm mcp list --json` prints the digest, after you reviewed the declaration")),
    }
}

/// A package without a version may be another one tomorrow.
pub(crate) fn unpinned(server: &ServerSpec) -> Option<&str> {
    let Address::Command { command, args, .. } = &server.address else { return None };
    let runner = command.rsplit('/').next().unwrap_or_default();
    let package = args.iter().find(|arg| !arg.starts_with('-')).map(String::as_str)?;
    let version = package.rsplit_once("==").or_else(|| package.rsplit_once('@'));
    let pinned = version
        .is_some_and(|(name, version)| !name.is_empty() && version.starts_with(|first: char| first.is_ascii_digit()));
    (matches!(runner, "npx" | "uvx" | "bunx" | "pipx") && !pinned).then_some(package)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unwritten(error: UpdateError) -> Failure {
    Failure::new(Kind::Environment, format!("the approvals were not changed: {}", reason(&error)))
}
