//! The servers of extensions. They are approved with their extension, and run from the copy of the approved files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Config, Extension, ExtensionState, Problem, ServerSpec, SettingSpec, Severity};
use ollm_protocol::{Code, Layer, Remedy, Variable};
use ollm_store::{Digest, Switches};
use ollm_trust::{ExtensionFolder, RefusalReason, Standing, Trust, TrustContext, Trusted};

use crate::app::{extensions_as_approved, unreliable};
use crate::app_context::AppContext;

/// The variable with the folder of the files that a server runs.
pub(super) const ROOT: &str = "OLLM_EXTENSION_ROOT";

/// The data that the servers of one extension share.
#[derive(Debug)]
pub struct BundleContext {
    /// The name of the extension.
    pub extension: String,
    /// Whether it was approved in its present state.
    pub trust: Standing,
    /// The digest that an approval of the extension is bound to.
    pub digest: Option<Digest>,
    /// The extension, if it may run.
    pub(super) trusted: Option<Trusted<ExtensionFolder>>,
    /// The reason why none of them may be started, if there is one.
    pub obstacle: Option<(Code, String)>,
    /// Whether the extension is switched on, even if something else keeps it from running.
    pub(super) on: bool,
    /// The layer of the extension.
    pub(super) layer: Layer,
    /// Its manifest. A name identifies no extension, because another one may have the same name.
    pub(super) manifest: PathBuf,
    /// The folder with the files that they run.
    pub(super) folder: PathBuf,
    /// The values of its settings.
    pub(super) variables: Vec<Variable>,
    /// The declared settings.
    settings: Vec<SettingSpec>,
}

/// The servers of all extensions.
pub(super) struct BundledServers {
    /// The servers, each with the data that it shares with the others of its extension.
    pub(super) servers: Vec<(ServerSpec, Arc<BundleContext>)>,
    /// The unreadable manifests of extensions that are not switched off.
    pub(super) broken: Vec<PathBuf>,
    /// Problems with the extension folders, their switches and their secrets.
    pub(super) around: Vec<Problem>,
}

/// Collects the servers of all extensions.
pub(super) fn join(
    context: &AppContext,
    config: &Config,
    trust: &Trust,
    problems: &mut Vec<Problem>,
) -> BundledServers {
    let (switches, trouble) = Switches::load(&context.switches());
    let mut around: Vec<Problem> = trouble.map(|trouble| unreliable(context, &trouble)).into_iter().collect();
    let found = extensions_as_approved(context, config, &switches, trust, &mut around);
    // A problem with an extension explains why its servers are not started. If they are started, the problem is
    // reported.
    let explains = |one: &Extension, problem: &Problem| one.held().is_none() && problem.file.starts_with(&one.root);
    around.retain(|problem| !found.iter().any(|one| explains(one, problem)));
    let mut servers = Vec::new();
    // The servers of an enclosing project are not ours.
    for extension in found.iter().filter(|one| one.enclosing.is_none() && !one.manifest.servers.is_empty()) {
        let bundle = Arc::new(BundleContext::of(extension, trust));
        let (specs, more) = extension.servers_in(&bundle.folder);
        if bundle.on {
            problems.extend(more);
        }
        servers.extend(specs.into_iter().map(|spec| (spec, Arc::clone(&bundle))));
    }
    if !servers.is_empty() {
        trust.remember();
    }
    let off = |one: &Extension| switches.get(&one.switch_name(), SystemTime::now()).is_some_and(|switch| !switch.on);
    let broken = found
        .iter()
        .filter(|one| one.enclosing.is_none() && one.is_broken() && !off(one))
        .map(Extension::file)
        .collect();
    BundledServers { servers, broken, around }
}

impl BundleContext {
    fn of(extension: &Extension, trust: &Trust) -> BundleContext {
        let name = &extension.name;
        let approved = extension.held().and_then(|_| trust.approved_extension(name, &extension.root));
        let mut bundle = BundleContext {
            extension: name.clone(),
            trust: Standing::Unknown,
            digest: None,
            trusted: None,
            obstacle: None,
            on: extension.is_on(),
            layer: extension.layer,
            manifest: extension.file(),
            // If the manifest cannot be read, only the copy contains the declarations.
            folder: approved.unwrap_or_else(|| extension.root.clone()),
            variables: extension.variables(),
            settings: extension.manifest.settings.clone(),
        };
        match trust.tree_digest(&extension.root) {
            Ok(digest) => {
                bundle.trust = trust.extension_standing(name, &extension.root, &digest);
                bundle.digest = Some(digest);
            }
            Err(why) => bundle.obstacle = Some((Code::Unreadable, format!("of its extension `{name}`, {why}"))),
        }
        bundle.obstacle = bundle.obstacle.take().or_else(|| off(extension)).or_else(|| bundle.untrusted(trust));
        if bundle.obstacle.is_none() {
            bundle.run_copy(extension, trust);
        }
        bundle
    }

    /// Makes the servers run from the approved copy.
    fn run_copy(&mut self, extension: &Extension, trust: &Trust) {
        let folder = Arc::new(ExtensionFolder::new(&extension.name, &extension.root));
        match trust.trust(&folder, &TrustContext::default(), None) {
            Ok(trusted) => {
                self.folder = trusted.copy_folder().map_or_else(|| extension.root.clone(), Path::to_owned);
                self.trusted = Some(trusted);
            }
            Err(refusal) if refusal.reason == RefusalReason::Modified => {
                self.trust = Standing::Modified;
                self.obstacle = self.untrusted(trust);
            }
            Err(refusal) => self.obstacle = Some((Code::Unreadable, refusal.detail)),
        }
    }

    fn untrusted(&self, trust: &Trust) -> Option<(Code, String)> {
        let said = match self.trust {
            Standing::Approved | Standing::Limited => return None,
            Standing::Modified => "changed since it was approved",
            Standing::Unknown => "is not approved",
        };
        let name = &self.extension;
        let way_out = trust.commands.tell(&Remedy::ApproveExtension(name.clone()));
        Some((Code::NotApproved, format!("its extension `{name}` {said}; {way_out}")))
    }

    /// The value of a variable in a server's declaration: a setting, or the folder with its files.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        if name == ROOT {
            return Some(self.folder.display().to_string());
        }
        let variable = self.variables.iter().find(|variable| variable.name == name)?;
        variable.value.get().ok().map(str::to_owned)
    }

    /// The command that sets the setting behind a variable.
    pub(super) fn way_to_set(&self, variable: &str, context: &AppContext) -> Option<String> {
        let is_meant = |setting: &&SettingSpec| {
            setting.env_var.as_deref() == Some(variable) || setting.variable(&self.extension) == variable
        };
        let setting = self.settings.iter().find(is_meant)?;
        Some(context.tell(&setting.remedy(&self.extension)))
    }

    /// The environment variables of its servers.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let settings = values(self.variables.iter());
        settings.chain([(ROOT.to_owned(), self.folder.display().to_string())]).collect()
    }

    /// The problems with settings that have no value.
    pub(super) fn withheld(&self) -> Vec<Problem> {
        let failures = self.variables.iter().filter_map(|variable| Some((variable, variable.value.get().err()?)));
        let problem = |(variable, why): (&Variable, String)| {
            let message = format!("its servers do without `{}`: {why}", variable.name);
            Problem::of_file(Code::NotLoaded, Severity::Warning, &self.manifest, message)
        };
        failures.map(problem).collect()
    }

    /// The values that must be hidden in everything its servers say.
    pub(super) fn hidden(&self) -> Vec<(String, String)> {
        values(self.variables.iter().filter(|variable| variable.secret)).collect()
    }
}

/// The settings that have a value.
fn values<'a>(variables: impl Iterator<Item = &'a Variable>) -> impl Iterator<Item = (String, String)> {
    variables.filter_map(|variable| Some((variable.name.clone(), variable.value.get().ok()?.to_owned())))
}

/// The reason why an extension has no servers, if there is one.
fn off(extension: &Extension) -> Option<(Code, String)> {
    let name = &extension.name;
    match &extension.state {
        ExtensionState::On => None,
        ExtensionState::Off(why) => Some((Code::NotLoaded, format!("its extension `{name}` is off: {why}"))),
        ExtensionState::Failed(why) => Some((Code::NotLoaded, format!("its extension `{name}` is not loaded: {why}"))),
    }
}
