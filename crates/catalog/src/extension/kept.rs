//! What a snapshot keeps of extensions: what their manifests say, as far as one event needs it.
//!
//! Neither the digest of a manifest nor whether it is approved is in it, nor which extensions are on and what their settings
//! are: that is found out at each event.

use std::path::PathBuf;
use std::time::SystemTime;

use ollm_protocol::{Hook, Layer, Source};
use serde::{Deserialize, Serialize};

use super::find::{Candidate, Terms};
use super::read::{read, unread};
use super::{Dependency, Extension, Manifest, ReadExtensions, SettingSpec, State};
use crate::load::Looked;

/// An extension without its hooks, which are kept by event.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptExtension {
    root: PathBuf,
    layer: Layer,
    enclosing: Option<PathBuf>,
    /// What its manifest says; none where something is wrong with it, which is told with its place each time.
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

    /// The extension, without hooks where it was not read again; nothing where it is gone.
    fn recalled(self, terms: &Terms, now: SystemTime) -> Option<Extension> {
        let KeptExtension { root, layer, enclosing, said } = self;
        let candidate = Candidate { enclosing, ..Candidate::new(root, layer) };
        let Some(KeptManifest { name, source, version, settings, dependencies }) = said else {
            return read(&candidate, terms.rules(layer), None, now);
        };
        let manifest = Manifest { version, settings, dependencies, ..Manifest::default() };
        Some(Extension { name, manifest, ..unread(&candidate, source, State::On, Vec::new()) })
    }
}

impl ReadExtensions {
    /// What was looked at to read them; nothing where there is something to tell of their folders.
    pub(crate) fn take_looked(&mut self) -> Option<Looked> {
        self.problems.is_empty().then(|| std::mem::take(&mut self.looked))
    }

    /// What is kept of them.
    pub(crate) fn kept(&self) -> Vec<KeptExtension> {
        self.all.iter().map(KeptExtension::new).collect()
    }

    /// The hooks that are kept, each with the place of its extension among all.
    pub(crate) fn kept_hooks(&self) -> impl Iterator<Item = (usize, &Hook)> {
        let kept = self.all.iter().enumerate().filter(|(_, extension)| extension.problems.is_empty());
        kept.flat_map(|(place, extension)| extension.hooks.iter().map(move |hook| (place, hook)))
    }

    /// What was kept, with those hooks of it that may fit; nothing where it is not whole.
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
