//! The servers that extensions bring. They are approved with their extension, and run from the copy of what was approved.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Config, Extension, Problem, ServerSpec, SettingSpec, Severity, State};
use ollm_protocol::{Code, Layer, Remedy, Variable};
use ollm_store::{Digest, Switches};
use ollm_trust::{ExtensionFolder, RefusalReason, Standing, Trust, TrustContext, Trusted};

use crate::app::{extensions_as_approved, unreliable};
use crate::app_context::AppContext;

/// The variable that names the folder with the files a server runs.
pub(super) const ROOT: &str = "OLLM_EXTENSION_ROOT";

/// What the servers of one extension have in common.
#[derive(Debug)]
pub struct Bundled {
    /// The name of the extension.
    pub extension: String,
    /// Whether it was approved as it is now.
    pub trust: Standing,
    /// What an approval of it is bound to.
    pub digest: Option<Digest>,
    /// The extension, if it may run.
    pub(super) trusted: Option<Trusted<ExtensionFolder>>,
    /// Why none of them may be started, if that is so.
    pub obstacle: Option<(Code, String)>,
    /// Whether it is switched on, whatever else keeps it from running.
    pub(super) on: bool,
    /// Whose it is.
    pub(super) layer: Layer,
    /// Its manifest. Names are no proof: another extension may have the same one.
    pub(super) manifest: PathBuf,
    /// Where the files are that they run.
    pub(super) folder: PathBuf,
    /// Its settings.
    pub(super) variables: Vec<Variable>,
    /// What can be set.
    settings: Vec<SettingSpec>,
}

/// What extensions bring.
pub(super) struct Joined {
    /// Their servers, each with what it has in common with the others of its extension.
    pub(super) servers: Vec<(ServerSpec, Arc<Bundled>)>,
    /// The manifests that cannot be read, though nobody switched the extension off.
    pub(super) broken: Vec<PathBuf>,
    /// What is wrong with the folders of extensions, their switches and their secrets.
    pub(super) around: Vec<Problem>,
}

/// The servers of all extensions.
pub(super) fn join(context: &AppContext, config: &Config, trust: &Trust, problems: &mut Vec<Problem>) -> Joined {
    let (switches, trouble) = Switches::load(&context.switches());
    let mut around: Vec<Problem> = trouble.map(|trouble| unreliable(context, &trouble)).into_iter().collect();
    let found = extensions_as_approved(context, config, &switches, trust, &mut around);
    // What is wrong with an extension is the reason why its servers are not started; if they are, it has to be told.
    let explains = |one: &Extension, problem: &Problem| one.held().is_none() && problem.file.starts_with(&one.root);
    around.retain(|problem| !found.iter().any(|one| explains(one, problem)));
    let mut servers = Vec::new();
    // The servers of a project around ours stay with it.
    for extension in found.iter().filter(|one| one.enclosing.is_none() && !one.manifest.servers.is_empty()) {
        let bundle = Arc::new(Bundled::of(extension, trust));
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
    Joined { servers, broken, around }
}

impl Bundled {
    fn of(extension: &Extension, trust: &Trust) -> Bundled {
        let name = &extension.name;
        let approved = extension.held().and_then(|_| trust.approved_extension(name, &extension.root));
        let mut bundle = Bundled {
            extension: name.clone(),
            trust: Standing::Unknown,
            digest: None,
            trusted: None,
            obstacle: None,
            on: extension.is_on(),
            layer: extension.layer,
            manifest: extension.file(),
            // Where the manifest cannot be read, only the copy says what is declared.
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

    /// What was approved is what runs.
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

    /// The value of a variable as its servers may name it: a setting, or the folder with its files.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        if name == ROOT {
            return Some(self.folder.display().to_string());
        }
        let variable = self.variables.iter().find(|variable| variable.name == name)?;
        variable.value.get().ok().map(str::to_owned)
    }

    /// How a person sets the setting that a variable stands for.
    pub(super) fn way_to_set(&self, variable: &str, context: &AppContext) -> Option<String> {
        let is_meant = |setting: &&SettingSpec| {
            setting.env_var.as_deref() == Some(variable) || setting.variable(&self.extension) == variable
        };
        let setting = self.settings.iter().find(is_meant)?;
        Some(context.tell(&setting.remedy(&self.extension)))
    }

    /// What its servers get in their environment.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let settings = values(self.variables.iter());
        settings.chain([(ROOT.to_owned(), self.folder.display().to_string())]).collect()
    }

    /// Why some of its settings cannot be had.
    pub(super) fn withheld(&self) -> Vec<Problem> {
        let failures = self.variables.iter().filter_map(|variable| Some((variable, variable.value.get().err()?)));
        let problem = |(variable, why): (&Variable, String)| {
            let message = format!("its servers do without `{}`: {why}", variable.name);
            Problem::of_file(Code::NotLoaded, Severity::Warning, &self.manifest, message)
        };
        failures.map(problem).collect()
    }

    /// What must not be seen in anything they say.
    pub(super) fn hidden(&self) -> Vec<(String, String)> {
        values(self.variables.iter().filter(|variable| variable.secret)).collect()
    }
}

/// The settings that can be had.
fn values<'a>(variables: impl Iterator<Item = &'a Variable>) -> impl Iterator<Item = (String, String)> {
    variables.filter_map(|variable| Some((variable.name.clone(), variable.value.get().ok()?.to_owned())))
}

/// Why an extension brings nothing.
fn off(extension: &Extension) -> Option<(Code, String)> {
    let name = &extension.name;
    match &extension.state {
        State::On => None,
        State::Off(why) => Some((Code::NotLoaded, format!("its extension `{name}` is off: {why}"))),
        State::Failed(why) => Some((Code::NotLoaded, format!("its extension `{name}` is not loaded: {why}"))),
    }
}
