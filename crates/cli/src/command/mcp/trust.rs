//! `ollm mcp trust` and `untrust`: a person says that a server may be started exactly by its declaration.

use ollm_app::approving::Uncovered;
use ollm_app::servers::{DeclaredServer, Servers};
use ollm_app::{App, AppContext, refuse_agents, refuse_approval};
use ollm_protocol::{Code, Source};
use ollm_shell::shell_word;
use ollm_store::Digest;
use ollm_trust::{Approvable as _, Proposal, Standing, Term};
use serde_json::json;

use crate::command::ext::revoke;
use crate::command::review;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn approve(
    name: &str,
    digest: Option<&str>,
    uncovered: Uncovered,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_approval("servers", digest, context)?;
    context.need_home()?;
    let servers = Servers::load(context)?;
    context.tell_notices(output);
    let known = servers.find(name)?;
    if known.trust == Standing::Approved {
        // A named digest must fit, also where nothing is left to approve.
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
    let proposal = servers.trust.propose(&*known.spec, &context.trust_context());
    let proposal =
        proposal.map_err(|why| Failure::new(Code::Unreadable, format!("server `{name}` cannot be approved: {why}")))?;
    let proposal = uncovered.applied(proposal);
    match digest {
        Some(named) => check_digest(name, &proposal.identity.digest, named)?,
        None => ask_person(known, &proposal, &servers, output)?,
    }
    let approved = servers.trust.approve(&*known.spec, &proposal, Term::Always, &context.trust_context());
    approved.map_err(|error| review::unapproved(&format!("server `{name}`"), error))?;
    output.tell(&format!("server `{name}` is approved as {}", proposal.identity.digest));
    output.changed(json!({"server": name, "approved": proposal.identity.digest.to_string()}));
    Ok(OK)
}

pub(super) fn withdraw(names: &[String], context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "change approvals")?;
    let servers = Servers::load(context)?;
    context.tell_notices(output);
    for name in names {
        let known = servers.find(name)?;
        if let Some(bundle) = &known.bundle {
            withdraw_extension(name, &bundle.extension, context, output)?;
            continue;
        }
        let spec = &known.spec;
        let removed = servers.trust.revoke(&**spec).map_err(|error| review::unchanged(&error))?;
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
    Failure::new(Code::NotApproved, message)
        .hint(format!("`ollm ext trust {}` shows and approves it", shell_word(extension)))
}

/// Withdraws the approval of all that a server came with.
fn withdraw_extension(name: &str, extension: &str, context: &AppContext, output: &mut Output) -> Result<(), Failure> {
    let app = App::load(context)?;
    let removed = app.extensions.get(extension).map(|found| revoke(found, &app)).transpose()?.unwrap_or_default();
    let said = if removed { "is no longer approved" } else { "was not approved" };
    output.tell(&format!("server `{name}` is part of the extension `{extension}`, which {said}"));
    Ok(())
}

fn check_digest(name: &str, now: &Digest, named: &str) -> Result<(), Failure> {
    let hint = "review it, then read its digest with `ollm mcp list --json`".to_owned();
    review::check_digest(&format!("server `{name}`"), now, named, hint)
}

/// Shows everything that would run, and asks. Without a terminal nothing is approved.
fn ask_person(
    known: &DeclaredServer,
    proposal: &Proposal,
    servers: &Servers<'_>,
    output: &mut Output,
) -> Result<(), Failure> {
    let name = &known.spec.name;
    let (seen, what) = (servers.trust.review(&*known.spec, proposal), format!("server `{name}`"));
    let by_digest = (&known.spec.remedy(), &proposal.identity.digest);
    review::refuse_unshown(std::slice::from_ref(&seen), &what, by_digest, output.asker())?;
    let question = "May this server be started, as long as nothing of it changes?";
    let by_script = format!("`ollm mcp trust {} --digest sha256:…`", shell_word(name));
    let hints = [
        format!("a script may approve by naming the digest: {by_script}"),
        "`ollm mcp list --json` prints the digest, after you reviewed the declaration".to_owned(),
    ];
    review::ask_yes(&seen.to_string(), &what, question, hints, output)
}
