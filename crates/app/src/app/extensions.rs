//! The extensions of an application: as they are, as they were approved, and since they were read last.

use std::cell::LazyCell;
use std::path::Path;
use std::time::SystemTime;

use ollm_catalog::{
    Changes, Config, Extension, Extensions, Places, Problem, ReadExtensions, Severity, State, Surroundings,
    named_extensions, reload_extensions, settle_extensions,
};
use ollm_protocol::Code;
use ollm_store::{Secrets, Switches, Trouble};
use ollm_trust::Trust;

use super::{App, Only};
use crate::app_context::AppContext;

/// Who says that no extension is loaded.
pub(super) fn extensions_off(config: &Config, context: &AppContext) -> Option<String> {
    let setting = config.get("extensions.enabled").filter(|setting| setting.value == false)?;
    Some(setting.origin.shown(context.places.user_home.as_deref()))
}

/// The extensions there are; one that cannot be loaded is a problem.
pub fn extensions(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    problems: &mut Vec<Problem>,
) -> Extensions {
    extensions_since(Before::Nothing, View::of(context), config, switches, problems).0
}

/// Like [`extensions`], but what can no longer be understood goes on as it was approved.
pub fn extensions_as_approved(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    trust: &Trust,
    problems: &mut Vec<Problem>,
) -> Extensions {
    let before = Before::Approvals(trust, None);
    let (found, _) = extensions_since(before, View::of(context), config, switches, problems);
    hold(trust, &found);
    found
}

/// Has those extensions count as they were approved that were read so.
pub(super) fn hold(trust: &Trust, extensions: &Extensions) {
    let held = extensions.iter().filter(|extension| extension.held().is_some());
    trust.hold(held.map(|extension| (extension.name.as_str(), extension.root.as_path())));
}

/// The extensions as they are now that something was switched or set; what was read before is not read again.
pub fn extensions_again(app: &App, context: &AppContext) -> Extensions {
    let (switches, _) = Switches::load(&context.switches());
    let before = Before::Extensions(&app.extensions);
    extensions_since(before, View::of(context), &app.config, &switches, &mut Vec::new()).0
}

/// What is known of extensions before they are read.
pub(super) enum Before<'a> {
    Nothing,
    /// As what they were approved: what can no longer be understood goes on as that. Where it is about one event, they were
    /// read with everything else.
    Approvals(&'a Trust, Option<ReadExtensions>),
    /// What they were when they were read last.
    Extensions(&'a Extensions),
    /// What they are called.
    Names(Only<'a>),
}

/// Where extensions are looked for.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) context: &'a AppContext,
    pub(super) places: &'a Places,
}

impl View<'_> {
    fn of(context: &AppContext) -> View<'_> {
        View { context, places: &context.places }
    }
}

/// Like [`extensions`], with what became different since they were read before.
pub(super) fn extensions_since(
    before: Before<'_>,
    View { context, places }: View<'_>,
    config: &Config,
    switches: &Switches,
    problems: &mut Vec<Problem>,
) -> (Extensions, Changes) {
    let file = context.places.secrets();
    let (secrets, trouble) = Secrets::load(&file, context.keyring());
    let untold = |trouble: Trouble| format!("no secret of an extension is known: {trouble}");
    problems
        .extend(trouble.map(|trouble| Problem::of_file(Code::UnreadableFile, Severity::Error, &file, untold(trouble))));
    let held_by = match &before {
        Before::Approvals(trust, _) => Some(*trust),
        _ => None,
    };
    // Hardly anybody asks.
    let approvals = LazyCell::new(|| context.trust(config));
    let surroundings = Surroundings {
        places,
        config,
        env: &|name: &str| context.variable(name),
        switches,
        secrets: &secrets,
        now: SystemTime::now(),
        approved: Some(&|root: &Path| held_by?.approved_folder(root)),
        vouched: Some(&|root: &Path| approvals.approved_folder(root)),
        commands: context.commands,
    };
    if let Before::Extensions(previous) = before {
        let (extensions, changes, more) = reload_extensions(previous, &surroundings);
        problems.extend(context.told(more));
        return (extensions, changes);
    }
    let (extensions, more) = match before {
        Before::Names(Only { names, index }) => named_extensions(names, index, &surroundings),
        Before::Approvals(_, Some(read)) => settle_extensions(read, &surroundings),
        _ => ollm_catalog::extensions(&surroundings),
    };
    let held = extensions.iter().filter_map(|extension| {
        let why = extension.held()?.clone();
        match extension.state {
            State::On => {
                let message = format!("{}; what was approved of `{}` goes on", why.message, extension.name);
                Some(Problem { message, ..why })
            }
            // Nothing of it runs, and that is what a person wants.
            State::Off(_) => None,
            State::Failed(_) => Some(why),
        }
    });
    problems.extend(context.told(more.into_iter().chain(held)));
    (extensions, Changes::default())
}

/// The sensitive settings of an extension that are known without asking anybody.
pub(super) fn known_secrets(extension: &Extension) -> Vec<(String, String)> {
    let secret = extension.variables().into_iter().filter(|variable| variable.secret);
    secret.filter_map(|variable| Some((variable.name, variable.value.known()?.to_owned()))).collect()
}
