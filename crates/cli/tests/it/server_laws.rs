//! The numbered properties of servers that begin with files: what is written there decides what is started, and with what.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ollm_app::AppContext;
use ollm_app::servers::Servers;
use ollm_mcp::Endpoint;
use ollm_trust::{ExtensionFolder, Term, Trust, TrustContext};
use proptest::collection::btree_map;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

struct Home {
    root: PathBuf,
    _folder: TempDir,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("project/.git")).unwrap();
        Home { root, _folder: folder }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn context(&self, variables: &[(String, String)]) -> AppContext {
        let own = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let variables = own.iter().chain(variables).map(|(name, value)| (OsString::from(name), OsString::from(value)));
        AppContext::new(variables.collect(), self.root.join("project"), Some(self.root.clone()))
    }

    fn approve(&self, name: &str) {
        let trust = Trust::new(self.root.join(".ollm/trusted-hooks.json"), SystemTime::now);
        let root = self.root.join(".ollm/extensions").join(name);
        let (folder, context) = (ExtensionFolder::new(name, &root), TrustContext::default());
        let proposal = trust.propose(&folder, &context).unwrap();
        trust.approve(&folder, &proposal, Term::Always, &context).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn property_28_settings_of_an_extension_reach_its_servers(
        settings in btree_map("[a-z]{1,3}", (any::<bool>(), "[a-zA-Z0-9 ]{1,8}", "[a-zA-Z0-9 ]{1,8}"), 1..4),
    ) {
        let home = Home::new();
        let own = |name: &String| format!("MY_{}", name.to_uppercase());
        let declared: Vec<Value> = settings.iter().map(|(name, (_, _, default))| {
            json!({"name": name, "description": "d", "type": "string", "envVar": own(name), "default": default})
        }).collect();
        // A server may also ask for one under a name of its own.
        let first = settings.keys().next().unwrap();
        let server = json!({"command": "sh", "args": [], "env": {"ASKED": format!("${{{}}}", own(first))}});
        let manifest = json!({"name": "my-ext", "version": "1.0.0", "description": "d", "settings": declared, "mcpServers": {"s": server}});
        home.write(".ollm/extensions/my-ext/manifest.json", &manifest.to_string());
        home.approve("my-ext");
        let variables: Vec<(String, String)> = settings.iter().filter(|(_, (set, ..))| *set)
            .map(|(name, (_, value, _))| (own(name), value.clone())).collect();
        let context = home.context(&variables);
        let servers = Servers::load(&context).unwrap();
        let (ready, _) = servers.find("s").unwrap().ready(&servers).unwrap();
        prop_assert_eq!(ready.extension.as_deref(), Some("my-ext"));
        let Endpoint::Stdio { env, .. } = ready.endpoint else { panic!("it is started") };
        let env: BTreeMap<String, String> = env.into_iter().collect();
        for (name, (set, value, default)) in &settings {
            let wanted = if *set { value } else { default };
            for variable in [own(name), format!("EXTENSION_MY_EXT_{}", name.to_uppercase())] {
                prop_assert_eq!(env.get(&variable), Some(wanted), "{} of {:?}", variable, env);
            }
        }
        let (set, value, default) = &settings[first];
        prop_assert_eq!(env.get("ASKED"), Some(if *set { value } else { default }));
    }

    #[test]
    fn property_40_the_file_decides_whether_which_and_how_long_servers_are_started(
        enabled in option::of(any::<bool>()),
        timeout in option::of(1..100_000_u64),
        servers in btree_map("[a-z]{1,4}", (any::<bool>(), option::of(1..100_000_u64)), 0..4),
    ) {
        let home = Home::new();
        let mut mcp = Map::new();
        mcp.extend(enabled.map(|enabled| ("enabled".to_owned(), enabled.into())));
        mcp.extend(timeout.map(|timeout| ("connectionTimeout".to_owned(), timeout.into())));
        let declared: Map<String, Value> = servers.iter().map(|(name, (on, own))| {
            let mut server = json!({"command": "sh", "args": [], "enabled": on});
            server.as_object_mut().unwrap().extend(own.map(|own| ("timeout".to_owned(), own.into())));
            (name.clone(), server)
        }).collect();
        mcp.insert("servers".to_owned(), declared.into());
        home.write(".ollm/config.yaml", &json!({"mcp": mcp}).to_string());
        let context = home.context(&[]);
        let found = Servers::load(&context).unwrap();
        prop_assert_eq!(found.all.iter().map(|known| known.spec.name.clone()).collect::<Vec<_>>(), servers.keys().cloned().collect::<Vec<_>>());
        for known in &found.all {
            let (on, own) = servers[&known.spec.name];
            prop_assert_eq!(found.obstacle(known).is_none(), enabled.unwrap_or(true) && on);
            let (ready, _) = known.ready(&found).unwrap();
            let wanted = own.or(timeout).unwrap_or(10_000);
            prop_assert_eq!((ready.connect_timeout, ready.enabled), (Duration::from_millis(wanted), on));
        }
    }
}
