//! Loads the extensions of an application: their present state, their approved state, and changes since the last read.

use std::cell::LazyCell;
use std::path::Path;
use std::time::SystemTime;

use ollm_catalog::{
    Changes, Config, Extension, ExtensionState, Extensions, Places, Problem, ReadExtensions, Severity, Surroundings,
    named_extensions, reload_extensions, settle_extensions,
};
use ollm_protocol::Code;
use ollm_store::{Secrets, Switches, Trouble};
use ollm_trust::Trust;

use super::{App, ExtensionFilter};
use crate::app_context::AppContext;

/// The origin of the setting that switches extensions off.
pub(super) fn extensions_off(config: &Config, context: &AppContext) -> Option<String> {
    let setting = config.get("extensions.enabled").filter(|setting| setting.value == false)?;
    Some(setting.origin.shown(context.places.user_home.as_deref()))
}

/// The extensions; one that cannot be loaded is a problem.
pub fn extensions(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    problems: &mut Vec<Problem>,
) -> Extensions {
    extensions_since(KnownExtensions::Nothing, View::of(context), config, switches, problems).0
}

/// Like [`extensions`], but a broken extension stays in its approved state.
pub fn extensions_as_approved(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    trust: &Trust,
    problems: &mut Vec<Problem>,
) -> Extensions {
    let before = KnownExtensions::Approvals(trust, None);
    let (found, _) = extensions_since(before, View::of(context), config, switches, problems);
    hold(trust, &found);
    found
}

/// Makes trust use the approved state of the extensions that were read in that state.
pub(super) fn hold(trust: &Trust, extensions: &Extensions) {
    let held = extensions.iter().filter(|extension| extension.held().is_some());
    trust.hold(held.map(|extension| (extension.name.as_str(), extension.root.as_path())));
}

/// The extensions after a switch or setting changed; files that were already read are not read again.
pub fn extensions_again(app: &App, context: &AppContext) -> Extensions {
    let (switches, _) = Switches::load(&context.switches());
    let before = KnownExtensions::Extensions(&app.extensions);
    extensions_since(before, View::of(context), &app.config, &switches, &mut Vec::new()).0
}

/// Our knowledge of extensions before they are read.
pub(super) enum KnownExtensions<'a> {
    Nothing,
    /// Their approvals: an extension that can no longer be understood stays in its approved state. For one event, the
    /// extensions were read together with everything else.
    Approvals(&'a Trust, Option<ReadExtensions>),
    /// Their state at the last read.
    Extensions(&'a Extensions),
    /// Their names.
    Names(ExtensionFilter<'a>),
}

/// The folders that are searched for extensions.
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

/// Like [`extensions`], with the changes since the last read.
pub(super) fn extensions_since(
    before: KnownExtensions<'_>,
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
        KnownExtensions::Approvals(trust, _) => Some(*trust),
        _ => None,
    };
    // Computed only on demand, because few extensions need it.
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
    if let KnownExtensions::Extensions(previous) = before {
        let (extensions, changes, more) = reload_extensions(previous, &surroundings);
        problems.extend(context.told(more));
        return (extensions, changes);
    }
    let (extensions, more) = match before {
        KnownExtensions::Names(ExtensionFilter { names, index }) => named_extensions(names, index, &surroundings),
        KnownExtensions::Approvals(_, Some(read)) => settle_extensions(read, &surroundings),
        _ => ollm_catalog::extensions(&surroundings),
    };
    let held = extensions.iter().filter_map(|extension| {
        let why = extension.held()?.clone();
        match extension.state {
            ExtensionState::On => {
                let message = format!("{}; what was approved of `{}` goes on", why.message, extension.name);
                Some(Problem { message, ..why })
            }
            // None of it runs, as the person wants.
            ExtensionState::Off(_) => None,
            ExtensionState::Failed(_) => Some(why),
        }
    });
    problems.extend(context.told(more.into_iter().chain(held)));
    (extensions, Changes::default())
}

/// The sensitive settings of an extension that are known without asking the keyring.
pub(super) fn known_secrets(extension: &Extension) -> Vec<(String, String)> {
    let secret = extension.variables().into_iter().filter(|variable| variable.secret);
    secret.filter_map(|variable| Some((variable.name, variable.value.known()?.to_owned()))).collect()
}
