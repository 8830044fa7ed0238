//! A user, a project, and a way to look at them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use std::time::{Duration, SystemTime};

use ollm_catalog::{
    Catalog, Changes, Extensions, Index, Overrides, Places, Problem, ReadExtensions, Surroundings, configuration,
    extensions, load, named_extensions, reload_extensions, settle_extensions,
};
use ollm_protocol::{Commands, Hook, Remedy};
use ollm_store::{Secrets, Switch, Switches, keep_secret, set_switches};
use tempfile::TempDir;

pub(crate) struct World {
    root: TempDir,
    pub(crate) places: Places,
    pub(crate) env: HashMap<String, String>,
    pub(crate) overrides: Overrides,
    pub(crate) now: SystemTime,
}

impl World {
    pub(crate) fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let (user_home, project) = (base.join("home"), base.join("project"));
        for folder in [user_home.join(".ollm/hooks"), project.join(".ollm/hooks")] {
            fs::create_dir_all(folder).unwrap();
        }
        let places = Places {
            home: user_home.join(".ollm"),
            user_home: Some(user_home),
            project: Some(project),
            ..Places::default()
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        World { root, places, env: HashMap::new(), overrides: Overrides::default(), now }
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Writes a file: `home/…` is the user's, `project/…` the project's.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.base().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A hook file of the user with one entry for `before_tool`.
    pub(crate) fn entry(&self, entry: &str) -> PathBuf {
        self.write("home/.ollm/hooks/a.json", format!(r#"{{"hooks": {{"before_tool": [{entry}]}}}}"#))
    }

    /// The manifest of an extension: `home/…` is the user's, `project/…` the project's.
    pub(crate) fn manifest(&self, whose: &str, folder: &str, manifest: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!("{whose}/.ollm/extensions/{folder}/manifest.json"), manifest)
    }

    /// The present extensions.
    pub(crate) fn extensions(&self) -> (Extensions, Vec<Problem>) {
        self.look(extensions)
    }

    /// The present extensions, and what differs from before.
    pub(crate) fn reload(&self, previous: &Extensions) -> (Extensions, Changes, Vec<Problem>) {
        self.look(|surroundings| reload_extensions(previous, surroundings))
    }

    /// Those with these names, where an index is at hand.
    pub(crate) fn named(&self, names: &[String], index: &Index) -> Extensions {
        self.look(|surroundings| named_extensions(names, index, surroundings).0)
    }

    /// Which of those that were read are on.
    pub(crate) fn settled(&self, read: ReadExtensions) -> (Extensions, Vec<Problem>) {
        self.look(|surroundings| settle_extensions(read, surroundings))
    }

    /// The present extensions, where the folder of each has been approved as that of this name in the home.
    pub(crate) fn extensions_approved_as(&self, copy: &str) -> (Extensions, Vec<Problem>) {
        let copy = self.base().join(copy);
        let copy_of = |_: &Path| Some(copy.clone());
        self.look(|surroundings| {
            extensions(&Surroundings { approved: Some(&copy_of), vouched: Some(&copy_of), ..*surroundings })
        })
    }

    fn look<T>(&self, look: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let env = |name: &str| self.env.get(name).cloned();
        let (config, _) = configuration(&self.places, &env, &self.overrides);
        let (switches, _) = Switches::load(&self.places.home.join("state/switches.json"));
        let (secrets, _) = Secrets::load(&self.places.secrets(), None);
        look(&Surroundings {
            places: &self.places,
            config: &config,
            env: &env,
            switches: &switches,
            secrets: &secrets,
            now: self.now,
            approved: None,
            vouched: None,
            commands: Commands::new(command),
        })
    }

    /// Switches an extension of the user on or off.
    pub(crate) fn switch(&self, name: &str, on: bool) {
        let change = [(format!("extension:{name}"), Some(Switch { on, until: None }))];
        set_switches(&self.places.home.join("state/switches.json"), &change, SystemTime::UNIX_EPOCH).unwrap();
    }

    /// Keeps a secret of an extension of the user.
    pub(crate) fn secret(&self, extension: &str, setting: &str, value: &str) {
        keep_secret(&self.places.secrets(), None, &format!("extension:{extension}:{setting}"), value).unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base().join(path)
    }

    pub(crate) fn load(&self) -> (Catalog, Vec<Problem>) {
        load(&self.places, &|name| self.env.get(name).cloned(), &self.overrides)
    }

    /// The hooks of a world in which all is well.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        let (catalog, problems) = self.load();
        assert_eq!(problems, []);
        catalog.hooks
    }

    /// The one hook of a world in which all is well.
    pub(crate) fn hook(&self) -> Hook {
        let [hook] = <[Hook; 1]>::try_from(self.hooks()).unwrap();
        hook
    }

    /// The one problem of a world, and how many hooks are there nevertheless.
    pub(crate) fn problem(&self) -> (Problem, usize) {
        let (catalog, problems) = self.load();
        let [problem] = <[Problem; 1]>::try_from(problems).unwrap_or_else(|problems| panic!("{problems:#?}"));
        (problem, catalog.hooks.len())
    }
}

pub(crate) fn ids(hooks: &[Hook]) -> Vec<&str> {
    hooks.iter().map(Hook::id).collect()
}

pub(crate) fn link(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, link).unwrap();
}

/// The commands of some program.
fn command(remedy: &Remedy) -> Option<String> {
    match remedy {
        Remedy::EnableExtension(name) => Some(format!("mine enable {name}")),
        Remedy::SetSetting { extension, setting, .. } => Some(format!("mine set {extension} {setting}")),
        _ => None,
    }
}
