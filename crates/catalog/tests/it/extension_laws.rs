//! The numbered properties of extensions that need no engine: they hold for all manifests.

use std::collections::{BTreeMap, BTreeSet};

use ollm_catalog::{Edit, ExtensionState, SettingKind, Skill, change_config, settings_schema, yaml_value};
use ollm_protocol::Layer;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::extensions::manifest;
use crate::world::World;

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9]{0,7}(-[a-z0-9]{1,4})?"
        .prop_filter("reserved", |name| ollm_catalog::check_extension_name(name).is_ok())
}

fn whose() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("home"), Just("project")]
}

/// Texts that are no manifest, each in its own way.
fn broken() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{".to_owned()),
        Just(String::new()),
        Just("[1]".to_owned()),
        Just(r#"{"name": "x"}"#.to_owned()),
        "[ -~]{0,40}".prop_filter("an accident", |text| serde_json::from_str::<Value>(text).is_err()),
        (0_usize..3).prop_map(|index| {
            let mut value: Value = serde_json::from_str(&manifest("x", &json!({}))).unwrap();
            value.as_object_mut().unwrap().remove(["name", "version", "description"][index]);
            value.to_string()
        }),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
    ]
}

/// A value of any kind that a setting can have.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => scalar(),
        1 => vec(scalar(), 0..3).prop_map(Value::from),
        1 => btree_map("[a-z]{1,3}", scalar(), 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
    ]
}

/// What is wrong with one part of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It is no object at all.
    Scalar,
    /// A key that it must have is missing.
    Missing,
    /// A key that it must have is of another type.
    Type,
}

impl Fault {
    fn applied(self, entry: &Value, needed: &str) -> Value {
        let mut entry = entry.clone();
        match self {
            Fault::None => {}
            Fault::Scalar => return 7.into(),
            Fault::Missing => drop(entry.as_object_mut().unwrap().shift_remove(needed)),
            Fault::Type => entry[needed] = json!([{}]),
        }
        entry
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![12 => Just(Fault::None), 1 => Just(Fault::Scalar), 1 => Just(Fault::Missing), 1 => Just(Fault::Type)]
}

fn event() -> impl Strategy<Value = String> {
    proptest::sample::select(ollm_protocol::EventKind::all().map(|kind| kind.name().to_owned()).collect::<Vec<_>>())
}

fn server() -> impl Strategy<Value = Value> {
    (Just("npx"), vec("[a-z]{1,5}", 0..3), btree_map("MY_[A-Z]{1,4}", "[a-z]{0,4}", 0..3), option::of(1..60_000_u32))
        .prop_map(|(command, args, env, timeout)| {
            let mut server = json!({"command": command, "args": args, "env": env});
            server.as_object_mut().unwrap().extend(timeout.map(|time| ("timeout".to_owned(), time.into())));
            server
        })
}

fn hook() -> impl Strategy<Value = Value> {
    ("[a-z]{1,6}", vec("[a-z]{1,5}", 1..3), option::of(1..60_000_u32), any::<bool>()).prop_map(
        |(name, args, timeout, parallel)| {
            let mut hook = json!({"name": name, "command": "sh", "args": args, "parallel": parallel});
            hook.as_object_mut().unwrap().extend(timeout.map(|time| ("timeout".to_owned(), time.into())));
            hook
        },
    )
}

fn setting() -> impl Strategy<Value = Value> {
    (option::of(value()), any::<bool>()).prop_map(|(default, required)| {
        let required = required && default.as_ref().is_some_and(|default| *default != "");
        let mut setting = json!({"description": "d", "required": required});
        setting.as_object_mut().unwrap().extend(default.map(|default| ("default".to_owned(), default)));
        setting
    })
}

#[test]
fn a_number_in_a_file_may_be_written_as_yaml_writes_it() {
    for (text, is_number) in [("0.", true), ("0x1F", true), (".5", true), ("1.5", true), ("0.x", false)] {
        let world = World::new();
        let setting = json!({"name": "x", "description": "d", "type": "number"});
        world.manifest("home", "a", manifest("a", &json!({"settings": [setting]})));
        world.write("home/.ollm/config.yaml", json!({"extensions": {"settings": {"a": {"x": text}}}}).to_string());
        let (extensions, _) = world.extensions();
        assert_eq!(extensions.get("a").unwrap().is_on(), is_number, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn property_12_every_valid_extension_is_found(found in btree_map(name(), whose(), 0..6)) {
        let world = World::new();
        for (name, whose) in &found {
            world.manifest(whose, name, manifest(name, &json!({})));
        }
        let (extensions, problems) = world.extensions();
        prop_assert_eq!(problems, []);
        let loaded: BTreeMap<_, _> = extensions.iter().map(|one| (one.name.clone(), one.layer)).collect();
        let wanted: BTreeMap<_, _> = found
            .into_iter()
            .map(|(name, whose)| (name, if whose == "home" { Layer::User } else { Layer::Workspace }))
            .collect();
        prop_assert_eq!(loaded, wanted);
        prop_assert!(extensions.iter().all(|one| one.state == ExtensionState::On));
        prop_assert!(extensions.iter().is_sorted_by_key(|one| one.layer));
    }

    #[test]
    fn property_13_a_broken_one_is_seen_and_stops_no_other(
        good in btree_set("[a-m][a-z]{0,5}", 0..4),
        bad in btree_map("[n-z][a-z]{2,6}", broken(), 1..4),
    ) {
        let good: BTreeSet<String> =
            good.into_iter().filter(|name| ollm_catalog::check_extension_name(name).is_ok()).collect();
        let world = World::new();
        for name in &good {
            world.manifest("home", name, manifest(name, &json!({})));
        }
        for (folder, text) in &bad {
            world.manifest("home", folder, text);
        }
        let (extensions, problems) = world.extensions();
        for name in &good {
            prop_assert!(extensions.get(name).unwrap().is_on());
        }
        for folder in bad.keys() {
            let file = world.path(&format!("home/.ollm/extensions/{folder}/manifest.json"));
            let seen = extensions.iter().find(|one| one.file() == file).unwrap();
            prop_assert!(seen.error().is_some());
            prop_assert!(problems.iter().any(|problem| problem.file == file));
        }
        prop_assert_eq!(extensions.hooks().count(), 0);
    }

    #[test]
    fn any_text_that_is_set_reaches_the_hooks_as_it_is(
        text in prop_oneof![
            "[^\0]{0,24}",
            "[-+]?[0-9_xobeE.:]{1,12}",
            "(?i)true|false|yes|no|on|off|null|~|nan|inf|[.]inf|y|n|---|[.]{3}|<<|=",
        ],
        before in prop_oneof![Just(""), Just("# mine\nmodel:\n  name: 'it''s'\n"), Just("extensions: {settings: {one: {a: 007}}}\n")],
    ) {
        let world = World::new();
        let settings = json!({"settings": [{"name": "a", "description": "d"}]});
        world.manifest("home", "one", manifest("one", &settings));
        world.write("home/.ollm/config.yaml", before);
        let value = Value::from(text.as_str());
        change_config(&world.places, Layer::User, "extensions.settings.one.a", Edit::Value(&value)).unwrap();
        let (extensions, problems) = world.extensions();
        prop_assert_eq!(problems, []);
        let variables = extensions.get("one").unwrap().variables();
        prop_assert_eq!(variables[0].value.known(), Some(text.as_str()));
    }

    #[test]
    fn what_looks_like_a_number_is_taken_by_its_letters_where_a_text_is_wanted(
        text in "[-+]?(0[0-7]{1,4}|[0-9]{1,3}[.][0-9]{0,3}0|0x[0-9A-F]{1,4}|0o[0-7]{1,3}|[0-9]_[0-9]{3}|[0-9]{20,24}|[1-9]e[0-9]|True|FALSE)",
    ) {
        let world = World::new();
        let settings = json!({"settings": [{"name": "a", "description": "d"}]});
        world.manifest("home", "one", manifest("one", &settings));
        for written in [
            format!("extensions:\n  settings:\n    one:\n      a: {text} # mine\n"),
            format!("model: {{name: &zip {text}}}\nextensions: {{settings: {{one: {{a: *zip}}}}}}\n"),
            format!("extensions: {{settings: {{one: {{a: {text}}}}}}}"),
        ] {
            world.write("home/.ollm/config.yaml", &written);
            let (extensions, problems) = world.extensions();
            prop_assert_eq!(problems, []);
            let variables = extensions.get("one").unwrap().variables();
            prop_assert_eq!(variables[0].value.known(), Some(text.as_str()), "{}", written);
        }
    }

    #[test]
    fn property_15_without_a_required_field_there_is_no_extension(
        name in name(), version in "[0-9]{1,2}\\.[0-9]{1,2}\\.[1-9](-[a-z]{1,4})?", missing in btree_set(0_usize..3, 0..3),
    ) {
        prop_assume!(!version.split('.').any(|part| part.len() > 1 && part.starts_with('0')));
        let world = World::new();
        let mut value = json!({"name": name, "version": version, "description": "x"});
        let fields = ["name", "version", "description"];
        for index in &missing {
            value.as_object_mut().unwrap().remove(fields[*index]);
        }
        world.manifest("home", "folder", value.to_string());
        let (extensions, problems) = world.extensions();
        let extension = extensions.iter().next().unwrap();
        prop_assert_eq!(extension.is_on(), missing.is_empty());
        for index in missing {
            let wanted = format!("has no `{}`", fields[index]);
            prop_assert!(problems.iter().any(|problem| problem.message.contains(&wanted)));
        }
    }

    #[test]
    fn property_16_optional_fields_of_any_structure_are_taken_when_right_and_refused_when_not(
        servers in option::of(btree_map("[a-z]{1,4}", (server(), fault()), 0..4)),
        hooks in option::of(btree_map(event(), vec((hook(), fault()), 0..3), 0..4)),
        settings in option::of(btree_map("[a-z]{1,4}", (setting(), fault()), 0..4)),
        skills in option::of(btree_map("[a-z]{1,4}", ("[a-z ]{1,8}[a-z]", fault()), 0..4)),
    ) {
        let mut more = serde_json::Map::new();
        let mut wrong = Vec::new();
        let mut part = |field: &'static str, whole: Value, faults: Vec<Fault>| {
            more.insert(field.to_owned(), whole);
            wrong.extend(faults.into_iter().filter(|fault| *fault != Fault::None).map(|_| field));
        };
        if let Some(servers) = &servers {
            let of = |(entry, fault): &(Value, Fault)| fault.applied(entry, "command");
            let whole = servers.iter().map(|(name, server)| (name.clone(), of(server))).collect();
            part("mcpServers", Value::Object(whole), servers.values().map(|(_, fault)| *fault).collect());
        }
        if let Some(hooks) = &hooks {
            let of = |(entry, fault): &(Value, Fault)| fault.applied(entry, "command");
            let whole = hooks.iter().map(|(event, list)| (event.clone(), list.iter().map(of).collect())).collect();
            part("hooks", Value::Object(whole), hooks.values().flatten().map(|(_, fault)| *fault).collect());
        }
        if let Some(settings) = &settings {
            let named = |name: &String, entry: &Value| {
                let mut entry = entry.clone();
                entry["name"] = name.as_str().into();
                entry
            };
            let whole = settings.iter().map(|(name, (entry, fault))| fault.applied(&named(name, entry), "description"));
            part("settings", whole.collect(), settings.values().map(|(_, fault)| *fault).collect());
        }
        if let Some(skills) = &skills {
            let entry = |name: &String, text: &String| json!({"name": name, "description": text, "prompt": text});
            let whole = skills.iter().map(|(name, (text, fault))| fault.applied(&entry(name, text), "prompt"));
            part("skills", whole.collect(), skills.values().map(|(_, fault)| *fault).collect());
        }
        let world = World::new();
        let written = manifest("a", &Value::Object(more));
        world.manifest("home", "a", written.clone());
        let (extensions, problems) = world.extensions();
        let extension = extensions.get("a").unwrap();
        prop_assert_eq!(extension.is_on(), wrong.is_empty(), "{} {:?}", written, problems);
        for field in &wrong {
            prop_assert!(problems.iter().any(|problem| problem.field.starts_with(field)), "{} {:?}", field, problems);
        }
        if extension.is_on() {
            let count = |all: Option<usize>| all.unwrap_or(0);
            prop_assert_eq!(extensions.hooks().count(), hooks.iter().flat_map(BTreeMap::values).map(Vec::len).sum::<usize>());
            prop_assert_eq!(extension.servers_in(&extension.root).0.len(), count(servers.as_ref().map(BTreeMap::len)));
            prop_assert_eq!(extension.values.len(), count(settings.as_ref().map(BTreeMap::len)));
            prop_assert_eq!(extension.skills().0.len(), count(skills.as_ref().map(BTreeMap::len)));
        }
    }

    #[test]
    fn property_28_settings_join_the_configuration_and_reach_the_hooks(
        settings in btree_map("[a-z]{1,3}", (any::<bool>(), "[a-zA-Z0-9 ]{1,8}", "[a-zA-Z0-9 ]{1,8}"), 1..4),
    ) {
        let mut world = World::new();
        let declared: Vec<Value> = settings
            .iter()
            .map(|(name, (_, _, default))| {
                let variable = format!("MY_{}", name.to_uppercase());
                json!({"name": name, "description": "d", "type": "string", "envVar": variable, "default": default})
            })
            .collect();
        let hooks = json!({"before_tool": [{"name": "h", "command": "sh", "args": ["h.sh"]}]});
        world.manifest("home", "my-ext", manifest("my-ext", &json!({"settings": declared, "hooks": hooks})));
        for (name, (from_variable, value, _)) in &settings {
            if *from_variable {
                world.env.insert(format!("MY_{}", name.to_uppercase()), value.clone());
            }
        }
        let (extensions, _) = world.extensions();
        let schema = settings_schema(&extensions);
        let config = extensions.settings();
        let hook = extensions.hooks().next().unwrap();
        for (name, (from_variable, value, default)) in &settings {
            let wanted = if *from_variable { value } else { default };
            let pointer = format!("/properties/extensions/properties/settings/properties/my-ext/properties/{name}/type");
            prop_assert_eq!(schema.pointer(&pointer), Some(&json!("string")));
            let path = format!("extensions.settings.my-ext.{name}");
            let shown = config.iter().find(|setting| setting.path == path).unwrap();
            prop_assert_eq!(&shown.value, &json!(wanted));
            prop_assert_eq!(shown.origin.layer(), if *from_variable { "environment" } else { "default" });
            for variable in [format!("MY_{}", name.to_uppercase()), format!("EXTENSION_MY_EXT_{}", name.to_uppercase())] {
                let given = hook.settings.iter().find(|given| given.name == variable).unwrap();
                prop_assert_eq!(given.value.known(), Some(wanted.as_str()));
            }
        }
    }

    #[test]
    fn property_29_a_sensitive_value_is_in_nothing_that_is_shown(secret in "s3cr3t-[A-Za-z0-9]{6,16}", pattern in any::<bool>()) {
        let mut world = World::new();
        // With the pattern the value is wrong, and the error must not repeat it either.
        let pattern = if pattern { "^never$" } else { "." };
        let settings = json!([{"name": "token", "description": "d", "sensitive": true, "envVar": "MY_T", "pattern": pattern}]);
        let hooks = json!({"before_tool": [{"name": "h", "command": "sh", "args": ["h.sh"]}]});
        world.manifest("home", "a", manifest("a", &json!({"settings": settings, "hooks": hooks})));
        world.env.insert("MY_T".to_owned(), secret.clone());
        let (extensions, problems) = world.extensions();
        let shown = format!("{extensions:?} {problems:?} {:?}", extensions.settings());
        prop_assert!(!shown.contains(&secret));
    }

    #[test]
    fn property_30_a_value_is_taken_exactly_if_it_fits_its_declaration(
        kind in 0..SettingKind::NAMES.len(), value in value(), required in any::<bool>(), given in any::<bool>(),
    ) {
        let (kind, kind_name) = SettingKind::NAMES[kind];
        let world = World::new();
        let setting = json!({"name": "x", "description": "d", "type": kind_name, "required": required});
        world.manifest("home", "a", manifest("a", &json!({"settings": [setting]})));
        if given {
            world.write("home/.ollm/config.yaml", json!({"extensions": {"settings": {"a": {"x": value}}}}).to_string());
        }
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let json = serde_json::from_str::<Value>(text.trim()).ok();
        let json_number = json.clone().filter(Value::is_number);
        // A file may write a number as YAML does, such as `0x1F` or `0.`; a variable is JSON.
        let yaml_number = yaml_value(&text).filter(Value::is_number);
        let fits_with = |number: Option<&Value>| match kind {
            SettingKind::Text => !(required && text.is_empty()),
            SettingKind::Number => number.is_some(),
            SettingKind::Integer => number.is_some_and(Value::is_i64),
            SettingKind::Boolean => {
                matches!(text.trim().to_lowercase().as_str(), "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1")
            }
            SettingKind::Array => json.as_ref().is_some_and(Value::is_array),
            SettingKind::Object => json.as_ref().is_some_and(Value::is_object),
        };
        let in_json = fits_with(json_number.as_ref());
        // A list or a map is no text, though it may be written as one.
        let is_plain = !value.is_array() && !value.is_object();
        let fits = match kind {
            SettingKind::Array | SettingKind::Object => in_json,
            _ => is_plain && (in_json || fits_with(yaml_number.as_ref())),
        };
        let (extensions, _) = world.extensions();
        let extension = extensions.get("a").unwrap();
        let wanted = if given { fits } else { !required };
        prop_assert_eq!(extension.is_on(), wanted, "{:?}", extension.state);
        if let ExtensionState::Failed(why) = &extension.state {
            prop_assert!(why.contains("`mine set a x` sets it"), "{}", why);
        }
        let spec = extension.setting("x").unwrap();
        prop_assert_eq!(spec.read(&text).is_ok(), in_json);
    }

    #[test]
    fn property_34_skills_are_found_and_filled_in_a_single_pass(
        pieces in vec(prop_oneof!["[a-z {}]{0,6}".prop_map(Err), "[a-c]".prop_map(Ok)], 0..8),
        values in btree_map("[a-c]", "[a-z{} ]{0,6}|\\{\\{[a-c]\\}\\}", 0..4),
    ) {
        // Braces in the text around must not meet those of a placeholder.
        let clean = |text: &str| text.replace(['{', '}'], "");
        let prompt: String = pieces
            .iter()
            .map(|piece: &Result<String, String>| match piece {
                Ok(name) => format!("{{{{{name}}}}}"),
                Err(text) => clean(text),
            })
            .collect();
        prop_assume!(!prompt.trim().is_empty());
        let world = World::new();
        let skills = json!([{"name": "s", "description": "d", "prompt": prompt}]);
        world.manifest("home", "a", manifest("a", &json!({"skills": skills})));
        let (extensions, _) = world.extensions();
        let (skills, problems) = extensions.get("a").unwrap().skills();
        prop_assert_eq!(problems, []);
        let skill: &Skill = &skills[0];
        let used: BTreeSet<&String> = pieces.iter().filter_map(|piece| piece.as_ref().ok()).collect();
        prop_assert_eq!(skill.placeholders().into_iter().collect::<BTreeSet<_>>(), used.iter().map(|name| name.as_str()).collect());
        let expected: Option<String> = pieces
            .iter()
            .map(|piece| match piece {
                Ok(name) => values.get(name).cloned(),
                Err(text) => Some(clean(text)),
            })
            .collect();
        match (skill.render(&values), expected) {
            (Ok(text), Some(expected)) => prop_assert_eq!(text, expected),
            (Err(missing), None) => prop_assert!(missing.iter().all(|name| !values.contains_key(*name))),
            (rendered, expected) => prop_assert!(false, "{:?} instead of {:?}", rendered, expected),
        }
    }

    #[test]
    fn property_41_the_configuration_decides_what_is_loaded(
        enabled in any::<bool>(), auto in any::<bool>(), switched in proptest::option::of(any::<bool>()), elsewhere in any::<bool>(),
    ) {
        let world = World::new();
        let hooks = json!({"hooks": {"before_tool": [{"name": "h", "command": "sh", "args": ["h.sh"]}]}});
        world.manifest("home", "a", manifest("a", &hooks));
        world.write("other/b/manifest.json", manifest("b", &hooks));
        let other = world.path("other").display().to_string();
        let directories = if elsewhere { vec![other.as_str()] } else { vec!["~/.ollm/extensions"] };
        let config = json!({"extensions": {"enabled": enabled, "autoEnable": auto, "directories": directories}});
        world.write("home/.ollm/config.yaml", config.to_string());
        let name = if elsewhere { "b" } else { "a" };
        if let Some(on) = switched {
            world.switch(name, on);
        }
        let (extensions, problems) = world.extensions();
        prop_assert_eq!(problems, []);
        let seen: Vec<&str> = extensions.iter().map(|one| one.name.as_str()).collect();
        prop_assert_eq!(seen, if enabled { vec![name] } else { vec![] });
        let on = enabled && switched.unwrap_or(auto);
        prop_assert_eq!(extensions.hooks().count(), usize::from(on));
    }
}
