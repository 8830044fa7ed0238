//! `ollm ext install`: gets an extension, shows what it brings, and puts exactly that in place.

use std::path::{Path, PathBuf};

use ollm_app::approving::{Together, Uncovered};
use ollm_app::extension_review::{additions, brings, title};
use ollm_app::install::{
    Downgrade, Order, PackageSource, Placed, Prepared, Reach, Staged, missing_extensions, prepare,
};
use ollm_app::{App, AppContext, refuse_agents, refuse_approval};
use ollm_catalog::INSTALL_RECORD;
use ollm_protocol::Code;
use ollm_store::{Digest, Hasher, escape_for_people, one_line};
use ollm_trust::{Row, files_in, review_row};
use semver::Version;
use serde_json::{Value, json};

use super::trust::{ask_person, by_digest, record};
use super::{approved, list, named};
use crate::arguments::ext::{Acceptance, InstallArguments};
use crate::ask::{Chosen, YES};
use crate::command::review::ask;
use crate::error::{Failure, OK};
use crate::output::Output;

/// Nothing larger is part of an extension.
const LARGEST_FILE: u64 = 256 << 20;

pub(super) fn run(arguments: &InstallArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "install extensions")?;
    let InstallArguments { source, reference, to, checksum, offline, acceptance } = arguments;
    let source = PackageSource::parse(source, reference.as_deref(), context)?;
    let names_version = matches!(source, PackageSource::Named { version: Some(_), .. })
        || [to, reference, checksum].into_iter().any(Option::is_some);
    let order = Order {
        source,
        to: to.as_deref().map(version).transpose()?,
        checksum: checksum.as_deref().map(digest).transpose()?,
        commit: None,
        index: None,
        reach: reach(*offline),
        updates: None,
        downgrade: if names_version { Downgrade::Accepted } else { Downgrade::Refused },
    };
    let (app, prepared) = fetch_with_needs(&order, *acceptance, &[], context, output)?;
    let entry = match prepared {
        Prepared::Current(installed) => {
            output.tell(&format!("`{}` {} is installed already", installed.name, installed.version));
            json!({"name": installed.name, "version": installed.version, "changed": false})
        }
        Prepared::Staged(staged) => settle(*staged, *acceptance, &app, context, output)?,
    };
    output.changed(entry);
    Ok(OK)
}

/// Gets a package, once everything is installed that it needs and that its index has. `needing` are those that wait for it.
pub(super) fn fetch_with_needs(
    order: &Order,
    acceptance: Acceptance,
    needing: &[&str],
    context: &AppContext,
    output: &mut Output,
) -> Result<(App, Prepared), Failure> {
    let app = App::load_as_is(context)?;
    let staged = match fetch(order, &app, output)? {
        Prepared::Staged(staged) => staged,
        current @ Prepared::Current(_) => return Ok((app, current)),
    };
    let orders = orders_of_needs(&staged, order, needing, &app, output)?;
    if orders.is_empty() || acceptance.dry_run {
        return Ok((app, Prepared::Staged(staged)));
    }
    let name = staged.extension.name.clone();
    let needing = [needing, &[name.as_str()]].concat();
    // Only one package at a time lies aside.
    drop(staged);
    for needed in &orders {
        let (app, prepared) = fetch_with_needs(needed, acceptance, &needing, context, output)?;
        if let Prepared::Staged(staged) = prepared {
            let entry = settle(*staged, acceptance, &app, context, output)
                .map_err(|failure| failure.hint(format!("`{name}` needs it, and was not installed either")))?;
            output.changed(entry);
        }
    }
    let app = App::load_as_is(context)?;
    let prepared = fetch(order, &app, output)?;
    Ok((app, prepared))
}

/// Says what a package needs and is not there, and how its index would install that. What cannot be had there ends it.
fn orders_of_needs(
    staged: &Staged,
    order: &Order,
    needing: &[&str],
    app: &App,
    output: &mut Output,
) -> Result<Vec<Order>, Failure> {
    let mut progress = output.progress();
    let missing = missing_extensions(staged, order, app, &mut |what, done, total| progress.step(what, done, total));
    progress.clear();
    let mut orders = Vec::new();
    for one in missing.iter().filter(|one| !needing.contains(&one.name.as_str())) {
        match one.order(order) {
            None if one.index.is_some() => {
                let message = format!("nothing was installed: {one}");
                return Err(Failure::new(Code::MissingDependency, message)
                    .hint(format!("install `{}` from elsewhere first", one.name)));
            }
            found => {
                output.tell(&one.to_string());
                orders.extend(found);
            }
        }
    }
    Ok(orders)
}

/// Gets a package, and shows how far that is.
fn fetch(order: &Order, app: &App, output: &mut Output) -> Result<Prepared, Failure> {
    let mut bar = output.progress();
    let prepared = prepare(order, app, &mut |what, done, total| bar.step(what, done, total));
    bar.clear();
    Ok(prepared?)
}

/// Shows what would be installed, has it accepted, puts it in place, and on a terminal has it approved. Gives back what a
/// program is told.
pub(super) fn settle(
    staged: Staged,
    acceptance: Acceptance,
    app: &App,
    context: &AppContext,
    output: &mut Output,
) -> Result<Value, Failure> {
    let plan = plan(&staged, app);
    let mut entry = told(&staged, &plan);
    if acceptance.dry_run {
        output.explain(&escape_for_people(&screen(&plan)));
        output.tell(&format!("nothing was changed: `{}` would be installed", staged.extension.name));
        return Ok(entry);
    }
    accept(&staged, &plan, acceptance, output)?;
    let verified = staged.verified.clone();
    let digest = staged.digest;
    let Placed { installed: done, unsettled } = staged.commit()?;
    if let Some(why) = unsettled {
        output.tell(&format!("`{}` is in place, but not all is tidied up: {why}", done.name));
    }
    output.line(&one_line(&format!("{} {} is installed", done.name, done.version)))?;
    if let Value::Object(entry) = &mut entry {
        entry.insert("changed".to_owned(), true.into());
    }
    let app = App::load_as_is(context)?;
    // Where no extension is loaded, or another one has its name, it waits; the plan has said so.
    if app.extensions.get(&done.name).is_none_or(|one| one.root != done.folder) {
        return Ok(entry);
    }
    approve(&done.name, digest, verified.as_deref(), acceptance, &app, output)?;
    // An approval counts for who reads the approvals anew.
    let app = App::load_as_is(context)?;
    let extension = named(&done.name, &app)?;
    if let Some(why) = extension.error() {
        output.tell(&format!("`{}` is not loaded: {why}", done.name));
    }
    let Value::Object(state) = list::entry(extension, &approved(extension, &app)) else { return Ok(entry) };
    let now = state.into_iter().filter(|(key, _)| ["trust", "enabled", "path", "error"].contains(&key.as_str()));
    if let Value::Object(entry) = &mut entry {
        entry.extend(now);
    }
    Ok(entry)
}

/// Has a person accept the plan. `--yes` accepts it for scripts, and approves nothing.
fn accept(staged: &Staged, plan: &[Row], acceptance: Acceptance, output: &mut Output) -> Result<(), Failure> {
    let name = &staged.extension.name;
    let screen = screen(plan);
    if acceptance.yes {
        output.explain(&escape_for_people(&screen));
        return Ok(());
    }
    let question = match &staged.replaces {
        Some(_) => format!("Put this in the place of the installed `{name}`?"),
        None => format!("Install `{name}`?"),
    };
    go_on(ask(&screen, &question, YES, output), &format!("`{name}` was not installed"))
}

/// Goes on only if a person said yes.
pub(super) fn go_on(chosen: Chosen<()>, otherwise: &str) -> Result<(), Failure> {
    match chosen {
        Chosen::One(()) => Ok(()),
        Chosen::No => Err(Failure::new(Code::NotConfirmed, format!("{otherwise}, because you did not say yes"))),
        Chosen::Nobody => {
            let message = format!("{otherwise}: there is no terminal to ask on");
            Err(Failure::new(Code::NotConfirmed, message).hint("`--yes` accepts what is shown, and approves nothing"))
        }
    }
}

/// Approves what was put in place: at once if the user's configuration vouches for it, else by a person on a terminal.
fn approve(
    name: &str,
    digest: Digest,
    verified: Option<&str>,
    acceptance: Acceptance,
    app: &App,
    output: &mut Output,
) -> Result<(), Failure> {
    let extension = named(name, app)?;
    if extension.is_broken() {
        return Ok(());
    }
    let waits = format!("nothing of `{name}` runs until it is approved: `{}`", by_digest(name, &digest));
    let may_ask = output.asker().is_there() && !acceptance.yes;
    // Where only a person approves, no configuration does so in their place.
    let is_vouched = verified.is_some() && refuse_approval("extensions", Some("verified"), app.context()).is_ok();
    if !is_vouched && !may_ask {
        output.tell(&waits);
        return Ok(());
    }
    let whole = Together::extension(extension, Uncovered::Refused, app)?;
    if whole.digest() != digest {
        let message = format!("`{name}` changed right after it was installed, and was not approved");
        return Err(Failure::new(Code::DigestMismatch, message).hint("look through it before you approve it"));
    }
    if let Some(why) = verified.filter(|_| is_vouched) {
        output.tell(&format!("`{name}` is verified: {why}"));
    } else if let Err(failure) = ask_person(name, &whole, output) {
        // It stays installed, as was accepted before.
        output.tell(&failure.message);
        output.tell(&waits);
        return Ok(());
    }
    if let Err(failure) = record(name, whole, output) {
        output.tell(&format!("it is installed, but {}", failure.message));
        failure.hints.iter().for_each(|hint| output.tell(hint));
    }
    Ok(())
}

/// What would be installed, row by row: everything, or in an update what is different.
fn plan(staged: &Staged, app: &App) -> Vec<Row> {
    let (extension, record) = (&staged.extension, &staged.record);
    let mut rows = vec![("extension", title(extension)), ("source", record.source.to_string())];
    rows.extend(record.index.clone().map(|index| ("index", index)));
    rows.extend(record.commit.clone().map(|commit| ("commit", commit)));
    rows.extend(record.checksum.map(|checksum| ("checksum", checksum.to_string())));
    rows.extend(staged.verified.clone().map(|why| ("verified", why)));
    rows.extend(record.form.clone().map(|form| ("form", form)));
    match staged.before() {
        Some(before) => rows.extend(additions(extension, before, &app.rules)),
        None => rows.extend(brings(extension).into_iter().filter(|(what, _)| !["extension", "folder"].contains(what))),
    }
    rows.extend(staged.before().and_then(|before| changed_files(before, &extension.root)).map(|text| ("files", text)));
    let before = staged.replaces.as_ref().map(|replaced| replaced.record.source.to_string());
    let before = before.filter(|before| *before != record.source.to_string());
    rows.extend(before.map(|before| ("before", format!("it came from {before}"))));
    rows.extend(record.left.iter().map(|left| ("not loaded", left.clone())));
    rows.extend(staged.notes.iter().map(|note| ("note", note.clone())));
    rows.push(("digest", staged.digest.to_string()));
    rows
}

/// Which files are others than before, as many as a person reads.
fn changed_files(before: &Path, now: &Path) -> Option<String> {
    const MOST_NAMED: usize = 10;
    let (old, new) = (files_in(before), files_in(now));
    let is_record = |path: &&PathBuf| **path == *INSTALL_RECORD;
    let same = |path: &Path| digest_file(&before.join(path)) == digest_file(&now.join(path));
    let mut changed: Vec<String> = Vec::new();
    for path in new.iter().filter(|path| !is_record(path)) {
        match old.contains(path) {
            false => changed.push(format!("{} added", path.display())),
            true if !same(path) => changed.push(format!("{} changed", path.display())),
            true => {}
        }
    }
    let gone = old.iter().filter(|path| !is_record(path) && !new.contains(*path));
    changed.extend(gone.map(|path| format!("{} removed", path.display())));
    let more = changed.len().saturating_sub(MOST_NAMED);
    changed.truncate(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!changed.is_empty()).then(|| format!("{}{more}", changed.join(", ")))
}

fn digest_file(path: &Path) -> Option<Digest> {
    Hasher::new().file("file", path, LARGEST_FILE).ok().map(Hasher::finish)
}

fn screen(plan: &[Row]) -> String {
    plan.iter().map(|(what, value)| review_row(what, &escape_for_people(value))).collect()
}

/// The plan as a program reads it.
fn told(staged: &Staged, plan: &[Row]) -> Value {
    let (extension, record) = (&staged.extension, &staged.record);
    let parts = |(what, text): &Row| json!({"what": what, "text": text});
    json!({
        "name": extension.name,
        "version": extension.manifest.version,
        "previousVersion": staged.replaces.as_ref().map(|replaced| &replaced.version),
        "source": record.source.to_string(),
        "index": record.index,
        "commit": record.commit,
        "checksum": record.checksum.map(|checksum| checksum.to_string()),
        "digest": staged.digest.to_string(),
        "verified": staged.verified,
        "notLoaded": record.left,
        "notes": staged.notes,
        "plan": plan.iter().map(parts).collect::<Vec<_>>(),
        "changed": false,
    })
}

pub(super) fn version(text: &str) -> Result<Version, Failure> {
    let wrong = |error: semver::Error| Failure::usage(format!("`{text}` is no version: {error}"));
    Version::parse(text).map_err(wrong)
}

fn digest(text: &str) -> Result<Digest, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("`{text}` is {error}")))
}

pub(super) fn reach(offline: bool) -> Reach {
    if offline { Reach::Offline } else { Reach::Network }
}
