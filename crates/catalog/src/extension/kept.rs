//! The part of a snapshot about extensions: their manifests, as far as one event needs them.
//!
//! It contains neither the digest of a manifest nor its approval, nor which extensions are on, nor their settings.
//! These are determined at each event.

use std::path::PathBuf;
use std::time::SystemTime;

use ollm_protocol::{Hook, Layer, Source};
use serde::{Deserialize, Serialize};

use super::find::{Candidate, Terms};
use super::read::{read, unread};
use super::{Dependency, Extension, ExtensionState, Manifest, ReadExtensions, SettingSpec};
use crate::load::StampSet;

/// An extension without its hooks, which are stored by event.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptExtension {
    root: PathBuf,
    layer: Layer,
    enclosing: Option<PathBuf>,
    /// Its manifest; `None` if it has problems, because these are reported with their places each time.
    said: Option<KeptManifest>,
}

#[derive(Serialize, Deserialize)]
struct KeptManifest {
    name: String,
    source: Source,
    version: String,
    settings: Vec<SettingSpec>,
    dependencies: Vec<Dependency>,
}

impl KeptExtension {
    fn new(extension: &Extension) -> KeptExtension {
        let Manifest { version, settings, dependencies, .. } = &extension.manifest;
        let said = KeptManifest {
            name: extension.name.clone(),
            source: extension.source,
            version: version.clone(),
            settings: settings.clone(),
            dependencies: dependencies.clone(),
        };
        KeptExtension {
            root: extension.root.clone(),
            layer: extension.layer,
            enclosing: extension.enclosing.clone(),
            said: extension.problems.is_empty().then_some(said),
        }
    }

    /// The extension. It has no hooks if it was not read again. `None` if it no longer exists.
    fn recalled(self, terms: &Terms, now: SystemTime) -> Option<Extension> {
        let KeptExtension { root, layer, enclosing, said } = self;
        let candidate = Candidate { enclosing, ..Candidate::new(root, layer) };
        let Some(KeptManifest { name, source, version, settings, dependencies }) = said else {
            return read(&candidate, terms.rules(layer), None, now);
        };
        let manifest = Manifest { version, settings, dependencies, ..Manifest::default() };
        Some(Extension { name, manifest, ..unread(&candidate, source, ExtensionState::On, Vec::new()) })
    }
}

impl ReadExtensions {
    /// The files they depend on; `None` if there are problems with their folders.
    pub(crate) fn take_looked(&mut self) -> Option<StampSet> {
        self.problems.is_empty().then(|| std::mem::take(&mut self.looked))
    }

    /// The stored form of these extensions.
    pub(crate) fn kept(&self) -> Vec<KeptExtension> {
        self.all.iter().map(KeptExtension::new).collect()
    }

    /// The hooks to store, each with the index of its extension.
    pub(crate) fn kept_hooks(&self) -> impl Iterator<Item = (usize, &Hook)> {
        let kept = self.all.iter().enumerate().filter(|(_, extension)| extension.problems.is_empty());
        kept.flat_map(|(place, extension)| extension.hooks.iter().map(move |hook| (place, hook)))
    }

    /// The stored extensions, with those hooks that may fit. `None` if the stored form is incomplete.
    pub(crate) fn recalled(
        kept: Vec<KeptExtension>,
        hooks: Vec<(usize, Hook)>,
        terms: Terms,
        now: SystemTime,
    ) -> Option<ReadExtensions> {
        let all = kept.into_iter().map(|one| one.recalled(&terms, now)).collect::<Option<Vec<_>>>()?;
        let mut recalled = ReadExtensions { all, terms: Some(terms), ..ReadExtensions::default() };
        for (place, hook) in hooks {
            recalled.all.get_mut(place)?.hooks.push(hook);
        }
        Some(recalled)
    }
}
