//! `ollm trust init`: a key for approvals, locked with a passphrase, and a signature over those there are.

use std::fmt::Write as _;

use ollm_app::{AppContext, UnlockedKey, refuse_agents};
use ollm_catalog::{Config, Edit, PolicyFile, change_config, check_config_target};
use ollm_protocol::{Code, Layer};
use ollm_trust::{ApprovalKey, Approvals, Trust};
use serde_json::json;

use super::{config, floor_line};
use crate::ask::{Asker, PickedChoice, YES};
use crate::command::config::refused;
use crate::command::review::{ask, nobody_to_ask, unchanged};
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "make or use the key for approvals")?;
    context.need_home()?;
    if !output.asker().is_there() {
        return Err(nobody_to_ask("no key was made").hint("run it yourself, in a terminal"));
    }
    let config = config(context, output)?;
    let demanded = config.approval_key(&context.places);
    check_config_target(&context.places, Layer::User).map_err(refused)?;
    let (found, trouble) = Approvals::load(&context.approvals(), None);
    if let Some(trouble) = trouble {
        return Err(Failure::new(Code::Unreadable, trouble.to_string()));
    }
    let approvals = found.clone().lasting();
    approve_all(&approvals, found.list().len() - approvals.list().len(), output)?;
    let key = key(demanded.as_ref(), context, output.asker())?;
    let line = key.public()?;
    let trust = sign(key, &line, demanded.clone(), &approvals, &config, context)?;
    if demanded.is_none() {
        let edit = json!(line);
        change_config(&context.places, Layer::User, "hooks.approvalKey", Edit::Value(&edit)).map_err(refused)?;
        output.tell(&format!("`hooks.approvalKey` is set in {}", context.places.config().display()));
    }
    let serial = trust.counting().serial();
    let (count, are) = counted(approvals.list().len());
    output.tell(&format!("{count} {are} signed, with serial {serial}"));
    output.tell("every approval asks for the passphrase from now on; it cannot be reset");
    if !demanded.is_some_and(|key| key.by_policy) {
        output.text(&wall(&line, serial, context))?;
    }
    Ok(OK)
}

/// Shows what would be signed, and asks: another program may have put it there.
fn approve_all(approvals: &Approvals, limited: usize, output: &mut Output) -> Result<(), Failure> {
    let list = approvals.list();
    if list.is_empty() {
        return Ok(());
    }
    let (count, are) = counted(list.len());
    let mut text = format!("{count} {are} in the list; what you do not sign counts no longer:\n");
    for one in list {
        let _ = writeln!(text, "  {} ({}), approved {}", one.id, one.source, one.approved_at);
    }
    if limited > 0 {
        let _ = writeln!(text, "{limited} more do not last, cannot be signed, and go.");
    }
    match ask(&text, "Sign them?", YES, output) {
        PickedChoice::One(()) => Ok(()),
        PickedChoice::No | PickedChoice::Nobody => {
            let hint = "`ollm hook untrust ID` withdraws one of them, `ollm hook untrust --all` all of them";
            Err(Failure::new(Code::Declined, "nothing was signed or changed").hint(hint))
        }
    }
}

fn counted(approvals: usize) -> (String, &'static str) {
    if approvals == 1 { ("1 approval".to_owned(), "is") } else { (format!("{approvals} approvals"), "are") }
}

/// The key that is there, or a new one.
fn key(demanded: Option<&ApprovalKey>, context: &AppContext, asker: &Asker) -> Result<UnlockedKey, Failure> {
    let file = context.secret_key();
    if file.symlink_metadata().is_ok() {
        return Ok(UnlockedKey::ask(context)?);
    }
    if let Some(key) = demanded {
        let message = format!("hooks.approvalKey is set ({}), but {} is not there", key.origin, file.display());
        return Err(Failure::new(Code::Unreadable, message)
            .hint("put that key back, or remove `hooks.approvalKey` from where it is set"));
    }
    let gone = || nobody_to_ask("no key was made");
    let first = asker.ask_secret("A passphrase for your approvals, of at least 8 characters: ").ok_or_else(gone)?;
    let second = asker.ask_secret("The same once more: ").ok_or_else(gone)?;
    if first != second {
        return Err(Failure::new(Code::InvalidValue, "those are two different passphrases; no key was made"));
    }
    Ok(UnlockedKey::create(&first, context)?)
}

/// Signs the list with exactly these approvals.
fn sign(
    key: UnlockedKey,
    line: &str,
    demanded: Option<ApprovalKey>,
    approvals: &Approvals,
    config: &Config,
    context: &AppContext,
) -> Result<Trust, Failure> {
    let mut trust = context.trust(config);
    let floor = config.fixed("hooks.approvalSerial").and_then(|setting| setting.value.as_u64()).unwrap_or_default();
    let fresh = || {
        let origin = context.places.config().display().to_string();
        ApprovalKey { line: line.to_owned(), origin, by_policy: false, floor }
    };
    trust.demand_signature(Some(demanded.unwrap_or_else(fresh)));
    trust.signer = Some(Box::new(key));
    trust.sign_all(approvals).map_err(|error| unchanged(&error))?;
    Ok(trust)
}

/// The commands by which root makes the key mandatory.
fn wall(line: &str, serial: u64, context: &AppContext) -> String {
    let policy = context.places.policy.clone().unwrap_or_else(PolicyFile::of_system);
    let (file, folder) = (policy.path.display(), policy.folder().display());
    let what = "Who can write your files can also remove the key from them. It binds them once root has it:\n";
    let (key, floor) = (format!("approvalKey: {line}"), floor_line(serial));
    if policy.path.exists() {
        return format!("{what}  add below `hooks:` in {file}:\n    {key}\n    {floor}\n");
    }
    let lines = format!(r"hooks:\n  {key}\n  {floor}\n");
    format!("{what}  sudo install -d -m 755 {folder}\n  printf '{lines}' | sudo tee {file}\n")
}
