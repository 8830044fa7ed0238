//! `ollm ext install`: gets an extension, shows what it brings, and installs exactly that.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_app::approving::{Together, Uncovered};
use ollm_app::extension_review::{additions, brings, title};
use ollm_app::install::{
    Downgrade, Holding, InstalledExtension, Order, PackageSource, PlacedExtension, PreparedInstall, Reach, Staged,
    commit, missing_extensions, prepare,
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
use crate::ask::{PickedChoice, YES};
use crate::command::review::ask_unless;
use crate::error::{Failure, OK};
use crate::interrupt::Interruption;
use crate::output::{Output, Progress};

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
    match carry_out(&order, *acceptance, context, output)? {
        CarriedOut::Current(installed) => {
            output.tell(&format!("`{}` {} is installed already", installed.name, installed.version));
            output.changed(json!({"name": installed.name, "version": installed.version, "changed": false}));
        }
        CarriedOut::Done(entries) => entries.into_iter().for_each(|entry| output.changed(entry)),
    }
    Ok(OK)
}

/// The result of a request.
pub(super) enum CarriedOut {
    /// Exactly this is installed already.
    Current(Box<InstalledExtension>),
    /// The JSON of each installed package; the requested one is the last.
    Done(Vec<Value>),
}

/// A package that was shown. It is installed, unless this is a dry run.
struct Arrived {
    name: String,
    folder: PathBuf,
    digest: Digest,
    verified: Option<String>,
    /// What a program is told of it.
    entry: Value,
}

/// Gets a package and its needs, shows everything, asks the person to accept it, and installs all of it or nothing. On
/// a terminal it is approved afterwards.
pub(super) fn carry_out(
    order: &Order,
    acceptance: Acceptance,
    context: &AppContext,
    output: &mut Output,
) -> Result<CarriedOut, Failure> {
    let app = App::load_as_is(context)?;
    let interruption = Interruption::hold(output.asker());
    let placed = Gathering::new(&interruption, &app).and_then(|gathering| gathering.place(order, acceptance, output));
    // No package is staged any more, so we can end.
    let arrived = match (placed, interruption.failure()) {
        (Err(_), Some(end)) => return Err(Failure { message: "interrupted: nothing was installed".to_owned(), ..end }),
        (Ok(_), Some(end)) => return Err(end),
        (Err(failure), None) => return Err(failure),
        (Ok(Err(current)), None) => return Ok(CarriedOut::Current(current)),
        (Ok(Ok(arrived)), None) => arrived,
    };
    drop(interruption);
    let finished = |one: Arrived| finish(one, acceptance, context, output);
    let entries = if acceptance.dry_run {
        arrived.into_iter().map(|one| one.entry).collect()
    } else {
        arrived.into_iter().map(finished).collect::<Result<_, _>>()?
    };
    Ok(CarriedOut::Done(entries))
}

/// Packages that are staged together: the needed ones first, and last the requested one.
struct Gathering<'a> {
    holding: Arc<Holding>,
    interruption: &'a Interruption,
    app: &'a App,
    packages: Vec<Staged>,
}

impl<'a> Gathering<'a> {
    fn new(interruption: &'a Interruption, app: &'a App) -> Result<Gathering<'a>, Failure> {
        Ok(Gathering { holding: Holding::take(app.context())?, interruption, app, packages: Vec::new() })
    }

    /// Gets a package with what it needs, and puts it in place once all of it was accepted. The other way round it is what is
    /// installed already.
    fn place(
        mut self,
        order: &Order,
        acceptance: Acceptance,
        output: &mut Output,
    ) -> Result<Result<Vec<Arrived>, Box<InstalledExtension>>, Failure> {
        if let Some(current) = self.gather(order, &[], output)? {
            return Ok(Err(current));
        }
        for at in 0..self.packages.len() {
            let lacking = self.packages.get(at).map(|one| one.lacking(&self.packages, self.app)).unwrap_or_default();
            self.packages.get_mut(at).into_iter().for_each(|one| one.notes.extend(lacking.iter().cloned()));
        }
        let plans: Vec<Vec<Row>> = self.packages.iter().map(|one| plan(one, self.app)).collect();
        for (staged, plan) in self.packages.iter().zip(&plans) {
            self.accept(staged, plan, acceptance, output)?;
        }
        let arrived = self.packages.iter().zip(&plans).map(|(staged, plan)| Arrived {
            name: staged.extension.name.clone(),
            folder: PathBuf::new(),
            digest: staged.digest,
            verified: staged.verified.clone(),
            entry: told(staged, plan),
        });
        let mut arrived: Vec<Arrived> = arrived.collect();
        if acceptance.dry_run {
            return Ok(Ok(arrived));
        }
        for (one, placed) in arrived.iter_mut().zip(commit(&self.packages)?) {
            let installed = told_if_unsettled(placed, output);
            output.line(&one_line(&format!("{} {} is installed", installed.name, installed.version)))?;
            one.folder = installed.folder;
        }
        Ok(Ok(arrived))
    }

    /// Gets a package, and before it what it needs and its index has. `needing` are those that wait for it. What is installed
    /// already is given back.
    fn gather(
        &mut self,
        order: &Order,
        needing: &[&str],
        output: &mut Output,
    ) -> Result<Option<Box<InstalledExtension>>, Failure> {
        let staged = match self.fetch(order, output)? {
            PreparedInstall::Staged(staged) => *staged,
            PreparedInstall::Current(installed) => return Ok(Some(installed)),
        };
        let name = staged.extension.name.clone();
        if staged.replaces.is_some() && !needing.is_empty() {
            let message = format!("nothing was installed: `{name}` is needed, and is there but not loaded");
            return Err(Failure::new(Code::MissingDependency, message).hint(format!("`ollm ext update {name}` first")));
        }
        let needing = [needing, &[name.as_str()]].concat();
        for needed in self.orders_of_needs(&staged, order, &needing, output)? {
            self.gather(&needed, &needing, output)?;
        }
        self.packages.push(staged);
        Ok(None)
    }

    /// The requests for the missing needs of a package, which the person is told. Fails if its index does not have one
    /// of them.
    fn orders_of_needs(
        &self,
        staged: &Staged,
        order: &Order,
        needing: &[&str],
        output: &mut Output,
    ) -> Result<Vec<Order>, Failure> {
        let mut bar = output.progress();
        let missing = missing_extensions(staged, order, self.app, &mut |what, done, total| {
            self.step(&mut bar, what, done, total)
        });
        bar.clear();
        let comes =
            |name: &str| needing.contains(&name) || self.packages.iter().any(|package| package.extension.name == name);
        let mut orders = Vec::new();
        for one in missing.iter().filter(|one| !comes(&one.name)) {
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
    fn fetch(&self, order: &Order, output: &mut Output) -> Result<PreparedInstall, Failure> {
        let mut bar = output.progress();
        let prepared =
            prepare(order, &self.holding, self.app, &mut |what, done, total| self.step(&mut bar, what, done, total));
        bar.clear();
        Ok(prepared?)
    }

    fn step(&self, bar: &mut Progress, what: &str, done: u64, total: u64) -> ControlFlow<()> {
        bar.step(what, done, total);
        if self.interruption.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Asks a person to accept the plan of a package. `--yes` accepts it for scripts, and approves nothing.
    fn accept(
        &self,
        staged: &Staged,
        plan: &[Row],
        acceptance: Acceptance,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let name = &staged.extension.name;
        let screen = screen(plan);
        if acceptance.dry_run || acceptance.yes {
            output.explain(&escape_for_people(&screen));
            if acceptance.dry_run {
                output.tell(&format!("nothing was changed: `{name}` would be installed"));
            }
            return Ok(());
        }
        let question = match &staged.replaces {
            Some(_) => format!("Put this in the place of the installed `{name}`?"),
            None => format!("Install `{name}`?"),
        };
        let chosen = ask_unless(&screen, &question, YES, &|| self.interruption.came(), output);
        go_on(chosen, &format!("`{name}` was not installed")).map_err(|failure| match self.packages.as_slice() {
            [_] | [] => failure,
            [.., last] if last.extension.name != *name => {
                failure.hint(format!("`{}` needs it, and was not installed either", last.extension.name))
            }
            _ => failure.hint("what it needs was not installed either"),
        })
    }
}

/// The installed extension, after the person was told about an unfinished clean-up.
pub(super) fn told_if_unsettled(placed: PlacedExtension, output: &mut Output) -> InstalledExtension {
    if let Some(why) = placed.unsettled {
        output.tell(&format!("`{}` is in place, but not all is tidied up: {why}", placed.installed.name));
    }
    placed.installed
}

/// On a terminal, asks for the approval of an installed package. Returns its JSON.
fn finish(
    arrived: Arrived,
    acceptance: Acceptance,
    context: &AppContext,
    output: &mut Output,
) -> Result<Value, Failure> {
    let Arrived { name, folder, digest, verified, mut entry } = arrived;
    if let Value::Object(entry) = &mut entry {
        entry.insert("changed".to_owned(), true.into());
    }
    let app = App::load_as_is(context)?;
    // If the extension is not loaded, or another one has its name, the approval waits; the plan has said so.
    if app.extensions.get(&name).is_none_or(|one| one.root != folder) {
        return Ok(entry);
    }
    approve(&name, digest, verified.as_deref(), acceptance, &app, output)?;
    // An approval counts only for an application that reads the approvals anew.
    let app = App::load_as_is(context)?;
    let extension = named(&name, &app)?;
    if let Some(why) = extension.error() {
        output.tell(&format!("`{name}` is not loaded: {why}"));
    }
    let Value::Object(state) = list::entry(extension, &approved(extension, &app)) else { return Ok(entry) };
    let now = state.into_iter().filter(|(key, _)| ["trust", "enabled", "path", "error"].contains(&key.as_str()));
    if let Value::Object(entry) = &mut entry {
        entry.extend(now);
    }
    Ok(entry)
}

/// Fails unless a person said yes.
pub(super) fn go_on(chosen: PickedChoice<()>, otherwise: &str) -> Result<(), Failure> {
    match chosen {
        PickedChoice::One(()) => Ok(()),
        PickedChoice::No => Err(Failure::new(Code::NotConfirmed, format!("{otherwise}, because you did not say yes"))),
        PickedChoice::Nobody => {
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
    // If only a person may approve, the configuration cannot do it.
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
        // The package stays installed, because it was accepted before.
        if failure.code.is_some() {
            output.tell(&failure.message);
            output.tell(&waits);
            return Ok(());
        }
        // A signal has no code, and ends us.
        output.tell(&waits);
        return Err(failure);
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
