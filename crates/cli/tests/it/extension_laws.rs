//! The numbered properties of extensions that need the engine as well: catalog and engine joined as the door joins them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use ollm_catalog::{Extensions, Overrides, Places, Problem, Surroundings, configuration, extensions};
use ollm_engine::{Engine, Environment};
use ollm_protocol::{Event, EventKind, Hook, Source, Variable};
use ollm_store::{Secrets, Switch, Switches, set_switches};
use ollm_trust::{ExtensionFolder, Term, Trust};
use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

struct World {
    root: PathBuf,
    places: Places,
    _folder: TempDir,
}

const NAMES: [&str; 3] = ["aa", "bb", "cc"];

impl World {
    /// Three extensions with so many hooks each.
    fn of_three(hooks: usize) -> World {
        let world = World::new();
        for name in NAMES {
            world.extension(name, hooks, "");
        }
        world
    }

    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let places = Places { home: root.join(".ollm"), user_home: Some(root.clone()), ..Places::default() };
        World { root, places, _folder: folder }
    }

    fn extension(&self, name: &str, hooks: usize, script: &str) {
        let folder = self.places.home.join("extensions").join(name);
        fs::create_dir_all(&folder).unwrap();
        let list: Vec<_> = (0..hooks)
            .map(|index| json!({"name": format!("{name}-{index}"), "command": "sh", "args": ["run.sh"]}))
            .collect();
        let manifest = json!({
            "name": name, "version": "1.0.0", "description": "d", "hooks": {"before_tool": list},
            "mcpServers": {"srv": {"command": "npx"}}, "settings": [{"name": "x", "description": "d", "default": 1}],
        });
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        fs::write(folder.join("run.sh"), script).unwrap();
    }

    fn switches(&self) -> PathBuf {
        self.places.home.join("state/switches.json")
    }

    fn switch(&self, name: &str, on: bool) {
        let change = [(format!("extension:{name}"), Some(Switch { on, until: None }))];
        set_switches(&self.switches(), &change, SystemTime::now()).unwrap();
    }

    /// As a process that has just started finds them.
    fn load(&self) -> (Extensions, Engine) {
        let (extensions, _, engine) = self.load_with_problems();
        (extensions, engine)
    }

    fn load_with_problems(&self) -> (Extensions, Vec<Problem>, Engine) {
        let (config, _) = configuration(&self.places, &|_| None, &Overrides::default());
        let (switches, _) = Switches::load(&self.switches());
        let surroundings = Surroundings {
            places: &self.places,
            config: &config,
            env: &|_| None,
            switches: &switches,
            secrets: &Secrets::default(),
            now: SystemTime::now(),
            approved: None,
            vouched: None,
            commands: ollm_protocol::Commands::default(),
        };
        let (extensions, problems) = extensions(&surroundings);
        let mut engine = self.engine();
        for hook in extensions.hooks() {
            engine.registry.register(hook.clone()).unwrap();
        }
        (extensions, problems, engine)
    }

    fn engine(&self) -> Engine {
        let trust = Trust::new(self.places.home.join("trusted-hooks.json"), SystemTime::now);
        let path = std::env::var_os("PATH").unwrap();
        let variables = vec![("PATH".into(), path)];
        Engine::new(trust, Environment { variables, cwd: self.root.clone(), ..Environment::default() })
    }
}

fn registered(engine: &Engine, name: &str) -> usize {
    let hooks = engine.registry.for_event(EventKind::BeforeTool);
    hooks.iter().filter(|hook| hook.spec.extension.as_deref() == Some(name)).count()
}

fn event() -> Event {
    Event::sample(EventKind::BeforeTool)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn property_14_what_is_loaded_is_registered(found in btree_map("[a-e]{2}", 0_usize..4, 0..4)) {
        let world = World::new();
        for (name, hooks) in &found {
            world.extension(name, *hooks, "");
        }
        let (extensions, engine) = world.load();
        for (name, hooks) in &found {
            prop_assert_eq!(registered(&engine, name), *hooks);
            let path = format!("extensions.settings.{name}.x");
            prop_assert!(extensions.settings().iter().any(|setting| setting.path == path && setting.value == 1));
        }
        prop_assert_eq!(engine.registry.count(), found.values().sum::<usize>());
        prop_assert_eq!(extensions.servers().count(), found.len());
    }

    #[test]
    fn property_17_switching_off_takes_everything_away(hooks in 0_usize..4, which in 0_usize..3) {
        let world = World::of_three(hooks);
        world.switch(NAMES[which], false);
        let (extensions, engine) = world.load();
        for (index, name) in NAMES.iter().enumerate() {
            let on = index != which;
            prop_assert_eq!(registered(&engine, name), if on { hooks } else { 0 });
            prop_assert_eq!(extensions.servers().any(|(one, _)| one.name == *name), on);
        }
    }

    #[test]
    fn property_18_switching_on_brings_everything_back(hooks in 0_usize..4, which in 0_usize..3) {
        let world = World::of_three(hooks);
        for name in NAMES {
            world.switch(name, false);
        }
        prop_assert_eq!(world.load().1.registry.count(), 0);
        world.switch(NAMES[which], true);
        let (extensions, engine) = world.load();
        prop_assert_eq!(registered(&engine, NAMES[which]), hooks);
        prop_assert_eq!(engine.registry.count(), hooks);
        let servers: Vec<&str> = extensions.servers().map(|(one, _)| one.name.as_str()).collect();
        prop_assert_eq!(servers, [NAMES[which]]);
    }

    #[test]
    fn property_19_a_switch_outlives_the_process(
        steps in proptest::collection::vec((0_usize..3, any::<bool>()), 0..6),
    ) {
        let world = World::of_three(1);
        let mut wanted: BTreeMap<&str, bool> = NAMES.iter().map(|name| (*name, true)).collect();
        for (which, on) in steps {
            world.switch(NAMES[which], on);
            wanted.insert(NAMES[which], on);
            let (extensions, _) = world.load();
            let found: BTreeMap<&str, bool> = extensions.iter().map(|one| (one.name.as_str(), one.is_on())).collect();
            prop_assert_eq!(&found, &wanted);
        }
    }

    #[test]
    fn property_29_a_sensitive_setting_is_hidden_in_everything_a_hook_says(secret in "[A-Za-z0-9]{8,20}") {
        prop_assume!(!"sensitive setting value failed stderr".contains(&secret));
        let world = World::new();
        let hooks = world.root.join(".ollm/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("a.sh"), "echo \"$PIN\" >&2; printf '{\"systemMessage\": \"%s\", \"error\": \"%s\"}' \"$PIN\" \"$PIN\"\n").unwrap();
        let entry = r#"{"hooks": {"before_tool": [{"name": "a", "command": "sh", "args": ["a.sh"]}]}}"#;
        fs::write(hooks.join("a.json"), entry).unwrap();
        let (catalog, _) = ollm_catalog::load(&world.places, &|_| None, &Overrides::default());
        let mut engine = world.engine();
        let mut hook: Hook = catalog.hooks[0].clone();
        hook.settings = vec![Variable { name: "PIN".to_owned(), value: secret.clone().into(), secret: true }];
        prop_assert_eq!(hook.spec.source, Source::User);
        engine.registry.register(hook).unwrap();
        let outcome = engine.dispatch(&event());
        prop_assert_eq!(outcome.reports.len(), 1);
        let report = &outcome.reports[0];
        let said = format!("{:?} {:?} {:?}", report.error, outcome.verdict.system_messages, outcome.verdict.messages);
        prop_assert!(!said.contains(&secret), "{}", said);
        let shown = format!("{:?}", report.hook);
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn property_31_an_error_in_one_extension_is_named_and_stops_no_other(
        faults in proptest::collection::vec(0_usize..4, 1..3),
    ) {
        let world = World::new();
        for (index, fault) in faults.iter().enumerate() {
            let name = format!("bad{index}");
            world.extension(&name, 1, match fault { 0 => "exit 3\n", 1 => "echo nonsense\n", _ => "" });
            let folder = world.places.home.join("extensions").join(&name);
            match fault {
                2 => fs::write(folder.join("manifest.json"), "{").unwrap(),
                3 => fs::remove_file(folder.join("run.sh")).unwrap(),
                _ => {}
            }
        }
        world.extension("zgood", 1, "printf '{\"systemMessage\": \"still here\"}'\n");
        let (extensions, problems, mut engine) = world.load_with_problems();
        let environment = engine.environment().clone();
        for extension in extensions.iter().filter(|one| one.is_on()) {
            let (trust, context) = (&engine.trust, environment.trust_context());
            let folder = ExtensionFolder::new(&extension.name, &extension.root);
            let whole = trust.propose(&folder, &context).unwrap();
            let each = extension.hooks.iter().filter_map(|hook| {
                let proposal = trust.propose(hook, &context).ok()?;
                trust.approval_of(hook, &proposal, Term::Always, &context).ok()
            });
            let whole = trust.approval_of(&folder, &whole, Term::Always, &context).unwrap();
            trust.approve_together(std::iter::once(whole).chain(each)).unwrap();
        }
        engine.trust.untrusted = ollm_trust::UntrustedPolicy::Skip;
        let outcome = engine.dispatch(&event());
        prop_assert!(outcome.continues());
        let said = format!("{:?}", outcome.verdict.system_messages);
        prop_assert!(said.contains("still here"), "{}", said);
        for (index, fault) in faults.iter().enumerate() {
            let name = format!("bad{index}");
            let named = match fault {
                2 => extensions.iter().any(|one| one.name == name && one.error().is_some()),
                3 => outcome.skipped.iter().any(|skip| skip.hook.spec.extension.as_ref() == Some(&name)),
                _ => outcome.reports.iter().any(|one| one.hook.spec.extension.as_ref() == Some(&name) && one.error.is_some()),
            };
            prop_assert!(named, "{} with fault {}", name, fault);
            // So do the words that people see; those about a broken manifest name its file, in the folder of the extension.
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let file = format!("extensions/{name}/manifest.json:1:");
            prop_assert_eq!(told.iter().any(|line| line.contains(&file)), *fault == 2, "{:?}", told);
            let mut skipped = outcome.skipped.iter().map(|skip| skip.hook.spec.title());
            prop_assert_eq!(skipped.any(|title| title == format!("hook `{name}-0` of extension `{name}`")), *fault == 3);
            let failures: Vec<String> = outcome.reports.iter().filter_map(ollm_engine::Report::failure).collect();
            let words = format!("hook `{name}-0` of extension `{name}` (user:{name}:before_tool:{name}-0) failed: ");
            prop_assert_eq!(failures.iter().any(|line| line.starts_with(&words)), *fault < 2, "{:?}", failures);
        }
    }
}
