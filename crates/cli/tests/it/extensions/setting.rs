//! What an extension lets a person set.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{QUIET, approve, entry, extension, files, ok};
use crate::lab::{Lab, finish, shell_event};

#[test]
fn e8_a_secret_reaches_the_hook_and_nothing_else() {
    let lab = Lab::with_default_boxes();
    let settings = json!({"settings": [{"name": "pin", "description": "d", "sensitive": true, "envVar": "MY_PIN"}]});
    let script = "echo \"the pin is $MY_PIN $EXTENSION_LEAKY_PIN\" >&2\ntest \"${#MY_PIN}\" = 9 && exit 7\nexit 1\n";
    extension(&lab, "home", "leaky", script, &settings);
    approve(&lab, "leaky");
    let set = finish(lab.ollm(&["ext", "set", "leaky", "pin=-"]), b"Zq81xKw93\n");
    ok(&set);
    let secrets = lab.home.join(".ollm/state/secrets.json");
    assert_eq!(fs::metadata(&secrets).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!lab.home.join(".ollm/config.yaml").exists());
    let ran = lab.event(shell_event("ls"));
    assert!(ran.hook("leaky")["error"].as_str().unwrap().contains('7'), "the hook saw it: {ran:?}");
    let mut seen = format!("{set:?}{ran:?}");
    for command in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "get", "extensions.settings.leaky.pin"],
        &["config", "get", "extensions", "--json"],
        &["ext", "info", "leaky", "--json"],
        &["ext", "info", "leaky"],
        &["trace", "last", "--json"],
    ] {
        seen += &lab.screen(&lab.run(command));
    }
    assert!(seen.contains("(hidden)"));
    assert!(!seen.contains("Zq81xKw93"), "{seen}");
    for file in files(&lab.home.join(".ollm")) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(file == secrets || !text.contains("Zq81xKw93"), "{}", file.display());
    }
}

#[test]
fn settings_are_checked_kept_and_shown_with_who_says_so() {
    let lab = Lab::with_default_boxes();
    let settings = json!({"settings": [{"name": "level", "description": "d", "type": "integer", "enum": [1, 2], "default": 1, "envVar": "LEVEL"}]});
    extension(&lab, "home", "guard", QUIET, &settings);
    approve(&lab, "guard");
    for wrong in ["level=3", "level=x", "leve=1"] {
        assert_eq!(lab.run(&["ext", "set", "guard", wrong]).code, 64, "{wrong}");
    }
    assert_eq!(lab.run(&["config", "set", "extensions.settings.guard.level", "9"]).code, 64);
    assert!(!lab.home.join(".ollm/config.yaml").exists());
    ok(&lab.run(&["config", "set", "extensions.settings.guard.level", "2"]));
    let shown = |lab: &Lab| {
        let all = lab.run(&["config", "show", "--json"]).answer()["settings"].as_array().unwrap().clone();
        let found: Vec<Value> = all.into_iter().filter(|one| one["key"] == "extensions.settings.guard.level").collect();
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0]["value"].clone(), found[0]["layer"].clone())
    };
    assert_eq!(shown(&lab), (json!(2), json!("user")));
    assert_eq!(lab.run(&["config", "get", "extensions.settings.guard.level"]).stdout, "2\n");
    let lab = lab.set("LEVEL", "1");
    assert_eq!(shown(&lab), (json!(1), json!("environment")));
    assert_eq!(lab.run(&["config", "get", "extensions.settings.guard.level"]).stdout, "1\n");
}

#[test]
fn a_required_setting_cannot_be_set_to_nothing() {
    for sensitive in [false, true] {
        let lab = Lab::new().set("OLLM_KEYRING", "off");
        let token = json!({"name": "token", "description": "d", "required": true, "sensitive": sensitive});
        extension(&lab, "home", "one", QUIET, &json!({"settings": [token]}));
        let ran = lab.run(&["ext", "set", "one", "token="]);
        assert!(ran.code == 64 && ran.stderr.contains("is required and must not be empty"), "{ran:?}");
        assert_eq!(lab.run(&["config", "set", "extensions.settings.one.token", ""]).code, 64);
        ok(&lab.run(&["ext", "set", "one", "token=something"]));
    }
}

#[test]
fn an_empty_secret_of_a_setting_that_became_required_is_missing() {
    let lab = Lab::new();
    let pin = |required: bool| json!({"settings": [{"name": "pin", "description": "d", "sensitive": true, "required": required}]});
    extension(&lab, "home", "guard", QUIET, &pin(false));
    ok(&lab.run(&["ext", "set", "guard", "pin="]));
    extension(&lab, "home", "guard", QUIET, &pin(true));
    let error = entry(&lab, "guard")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("`pin` is required and must not be empty"), "{error}");
    assert!(error.contains("`ollm ext set guard pin`"), "{error}");
}

#[test]
fn settings_are_part_of_the_schema_of_the_configuration() {
    let lab = Lab::new();
    let plain = lab.run(&["schema", "config"]).answer();
    let path = "/properties/extensions/properties/settings/properties";
    assert_eq!(plain.pointer(path), Some(&json!({})));
    let level = json!({"name": "level", "description": "How much", "type": "integer", "enum": [1, 2], "default": 1});
    extension(&lab, "home", "guard", QUIET, &json!({"settings": [level]}));
    extension(&lab, "project", "theirs", QUIET, &json!({"settings": [{"name": "x", "description": "d"}]}));
    let schema = lab.run(&["schema", "config"]).answer();
    let guard = schema.pointer(&format!("{path}/guard/properties/level")).unwrap();
    assert_eq!(*guard, json!({"description": "How much", "type": "integer", "enum": [1, 2], "default": 1}));
    assert!(schema.pointer(&format!("{path}/theirs/properties/x")).is_some());
}

#[test]
fn a_project_cannot_set_what_an_extension_of_the_user_does() {
    let lab = Lab::new();
    let settings = json!({"settings": [{"name": "level", "description": "d", "default": "safe"}]});
    extension(&lab, "home", "guard", "printf '{\"systemMessage\": \"%s\"}' \"$EXTENSION_GUARD_LEVEL\"", &settings);
    approve(&lab, "guard");
    lab.write(
        "project/.ollm/config.yaml",
        "extensions:\n  settings:\n    guard:\n      level: off\n  enabled: false\n",
    );
    assert_eq!(lab.event(shell_event("ls")).answer()["systemMessage"], "safe");
}

/// Everything that people see of the settings of an extension.
fn seen(lab: &Lab, name: &str) -> String {
    let key = format!("extensions.settings.{name}.pin");
    let commands = [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "get", &key],
        &["config", "get", &key, "--json"],
        &["config", "get", "extensions"],
        &["config", "get", "extensions", "--json"],
        &["config", "validate"],
        &["ext", "info", name],
        &["ext", "info", name, "--json"],
        &["ext", "list"],
        &["ext", "validate", name],
        &["ext", "validate", name, "--json"],
    ];
    let screens = commands.map(|command| lab.screen(&lab.run(command))).concat();
    screens + &fs::read_to_string(lab.home.join(".ollm/logs/ollm.log")).unwrap_or_default()
}

#[test]
fn what_is_set_for_an_extension_that_nobody_can_read_is_hidden() {
    let lab = Lab::new();
    lab.write("home/.ollm/extensions/broken/manifest.json", "{\"name\": \"broken\",");
    extension(&lab, "home", "open", QUIET, &json!({"settings": [{"name": "pin", "description": "d"}]}));
    let values = "extensions:\n  settings:\n    broken: {pin: Zq81xKw93}\n    gone: {pin: Zq81xKw94}\n";
    lab.write("home/.ollm/config.yaml", format!("{values}    open: {{pin: plain, other: Zq81xKw95}}\n"));
    let text = ["broken", "gone", "open"].map(|name| seen(&lab, name)).concat();
    assert!(text.contains("(hidden)") && text.contains("plain"), "{text}");
    assert!(!text.contains("Zq81xKw9"), "{text}");
    let get = lab.run(&["config", "get", "extensions.settings.open.pin"]);
    assert_eq!(get.stdout, "plain\n");
}

#[test]
fn what_was_given_as_a_secret_stays_one_when_the_manifest_says_otherwise() {
    let lab = Lab::new();
    let pin = |sensitive: bool, more: &str| json!({"settings": [{"name": "pin", "description": "d", "sensitive": sensitive, "pattern": more}]});
    extension(&lab, "home", "guard", "echo \"$EXTENSION_GUARD_PIN\" >&2\nexit 1\n", &pin(true, "."));
    ok(&finish(lab.ollm(&["ext", "set", "guard", "pin=-"]), b"Zq81xKw93\n"));
    for pattern in [".", "^never$"] {
        extension(&lab, "home", "guard", "echo \"$EXTENSION_GUARD_PIN\" >&2\nexit 1\n", &pin(false, pattern));
        let text = seen(&lab, "guard");
        assert!(!text.contains("Zq81xKw93"), "{text}");
    }
    extension(&lab, "home", "guard", "echo \"$EXTENSION_GUARD_PIN\" >&2\nexit 1\n", &pin(false, "."));
    assert!(seen(&lab, "guard").contains("(hidden)"));
    approve(&lab, "guard");
    let ran = lab.event(shell_event("ls"));
    assert!(!format!("{ran:?}").contains("Zq81xKw93"), "{ran:?}");
}

#[test]
fn the_default_of_a_sensitive_setting_is_refused_and_not_repeated() {
    for more in [json!({}), json!({"type": "integer"}), json!({"pattern": "^x"}), json!({"name": 5})] {
        let lab = Lab::new();
        let mut pin = json!({"name": "pin", "description": "d", "default": "Zq81xKw93", "sensitive": true});
        pin.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        extension(&lab, "home", "guard", QUIET, &json!({"settings": [pin], "unheard": 1}));
        let text = seen(&lab, "guard") + &format!("{:?}", lab.event(shell_event("ls")));
        assert!(text.contains("settings[0]"), "{text}");
        assert!(!text.contains("Zq81xKw93"), "{text}");
    }
}

#[test]
fn what_is_wrong_with_the_settings_as_a_whole_repeats_nothing_of_them() {
    let pin = r#"{"sensitive": true, "default": "Zq81xKw93", "name": "pin", "description": "d"}"#;
    let head = r#""name": "guard", "version": "1.0.0""#;
    for settings in [
        format!(r#"{{"pin": {pin}}}"#),
        format!("{{\"pin\":\n {pin}\n}}"),
        r#"{"pin": "Zq81xKw93"}"#.to_owned(),
        r#""Zq81xKw93""#.to_owned(),
        format!("[{pin}]"),
        format!(r#"[], "settings": [{pin}]"#),
        format!("[[{pin}]]"),
    ] {
        let lab = Lab::new();
        let manifest = format!(r#"{{"settings": {settings}, {head}, "unheard": 1}}"#);
        lab.write("home/.ollm/extensions/guard/manifest.json", &manifest);
        let text = seen(&lab, "guard") + &format!("{:?}", lab.event(shell_event("ls")));
        assert!(text.contains("the manifest has no `description`") && text.contains("settings"), "{text}");
        assert!(!text.contains("Zq81xKw93"), "{manifest}: {text}");
    }
}

#[test]
fn what_is_wrong_with_the_settings_in_the_configuration_repeats_nothing_of_them() {
    for wrong in [
        "settings: Zq81xKw93",
        "settings: [Zq81xKw93]",
        "settings: {guard: Zq81xKw93}",
        "settings: {guard: [Zq81xKw93]}",
        "settings: {guard: {pin: [Zq81xKw93]}}",
        "settings:\n    guard:\n      - Zq81xKw93",
        "settings:\n    guard:\n      pin: [Zq81xKw93]",
        "- settings: {guard: {pin: Zq81xKw93}}",
        "setings: {guard: {pin: Zq81xKw93}}",
        "{settings: {guard: {pin: Zq81xKw93}}, autoEnable: 5}",
        "{settings: {guard: {pin: Zq81xKw93, pin: Zq81xKw93}}}",
    ] {
        let lab = Lab::new();
        extension(
            &lab,
            "home",
            "guard",
            QUIET,
            &json!({"settings": [{"name": "pin", "description": "d", "sensitive": true}]}),
        );
        lab.write("home/.ollm/config.yaml", format!("extensions:\n  {wrong}\n"));
        let text = seen(&lab, "guard") + &format!("{:?}", lab.event(shell_event("ls")));
        assert!(text.contains("config.yaml:"), "{text}");
        assert!(!text.contains("Zq81xKw93"), "{wrong}: {text}");
    }
}

#[test]
fn a_text_that_looks_like_something_else_reaches_the_hook_byte_for_byte() {
    const TEXTS: &[&str] = &[
        "1.10",
        "007",
        "12345678901234567890123",
        "0x1F",
        "1_000",
        "True",
        "01234",
        "no",
        "null",
        "~",
        "",
        " a ",
        "1e3",
        "- a",
        "# b",
        "a: b",
        "\"q\"",
        "'",
        "\\n",
        "two\nlines",
        "é\u{1b}",
        "[1]",
        "{}",
        "*a",
        "2024-01-01",
    ];
    let lab = Lab::new();
    let settings: Vec<Value> =
        (0..TEXTS.len()).map(|index| json!({"name": format!("s{index}"), "description": "d"})).collect();
    let prints: Vec<String> =
        (0..TEXTS.len()).map(|index| format!("printf '%s\\0' \"$EXTENSION_ENVX_S{index}\"; ")).collect();
    let script = format!("{{ {} }} > out\n{QUIET}", prints.concat());
    extension(&lab, "home", "envx", &script, &json!({"settings": settings}));
    approve(&lab, "envx");
    let set = |through_config: bool| {
        lab.write("home/.ollm/config.yaml", "");
        let typed: Vec<String> = TEXTS.iter().enumerate().map(|(index, text)| format!("s{index}={text}")).collect();
        if through_config {
            for (index, text) in TEXTS.iter().enumerate() {
                ok(&lab.run(&["config", "set", &format!("extensions.settings.envx.s{index}"), "--", text]));
            }
        } else {
            let typed = typed.iter().map(String::as_str);
            ok(&lab.run(&["ext", "set", "envx"].into_iter().chain(typed).collect::<Vec<_>>()));
        }
        lab.event(shell_event("ls"));
        let got = fs::read_to_string(lab.project.join("out")).unwrap();
        got.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(set(false), TEXTS);
    assert_eq!(set(true), TEXTS);
    assert_eq!(lab.run(&["config", "get", "extensions.settings.envx.s0"]).stdout, "1.10\n");
}

#[test]
fn a_value_that_fits_when_it_is_set_fits_ever_after() {
    let lab = Lab::new();
    let settings = json!({"settings": [
        {"name": "zip", "description": "d", "pattern": "^[0-9]{4,5}$"},
        {"name": "version", "description": "d", "enum": ["1.10"]},
        {"name": "count", "description": "d", "type": "integer"},
        {"name": "loud", "description": "d", "type": "boolean"},
    ]});
    extension(&lab, "home", "envx", QUIET, &settings);
    ok(&lab.run(&["ext", "set", "envx", "zip=01234", "version=1.10", "count=10", "loud=Yes"]));
    assert_eq!(entry(&lab, "envx")["error"], Value::Null);
    let file = lab.home.join(".ollm/config.yaml");
    let text = fs::read_to_string(&file).unwrap();
    for line in ["zip: \"01234\"", "version: \"1.10\"", "count: 10", "loud: true"] {
        assert!(text.contains(line), "{text}");
    }
    // By hand, without quotes.
    fs::write(&file, "extensions:\n  settings:\n    envx:\n      zip: 01234\n      version: 1.10\n      count: 0x1F\n")
        .unwrap();
    assert_eq!(entry(&lab, "envx")["error"], Value::Null);
    let get = |key: &str| lab.run(&["config", "get", &format!("extensions.settings.envx.{key}")]).stdout;
    assert_eq!([get("zip"), get("version"), get("count")], ["01234\n", "1.10\n", "31\n"]);
    ok(&lab.run(&["config", "validate"]));
    let ran =
        lab.run(&["--set", "extensions.settings.envx.zip=00420", "config", "get", "extensions.settings.envx.zip"]);
    assert_eq!(ran.stdout, "00420\n", "{ran:?}");
}

#[test]
fn what_no_variable_can_hold_is_refused() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "one", QUIET, &json!({"settings": [{"name": "a", "description": "d"}]}));
    for (input, why) in [(b"x\0y".to_vec(), "zero byte"), (vec![b'x'; 70_000], "65536 bytes")] {
        let ran = finish(lab.ollm(&["ext", "set", "one", "a=-"]), &input);
        assert!(ran.code == 64 && ran.stderr.contains(why), "{ran:?}");
    }
    assert!(!lab.home.join(".ollm/config.yaml").exists());
}

#[test]
fn a_project_nobody_approved_has_no_variable_shown() {
    let lab = Lab::new().set("MY_DEPLOY_PASS", "hunter2-hunter2").set("THEIR_TOKEN", "ghp-raw-token");
    let settings = json!({"settings": [
        {"name": "a", "description": "d", "type": "integer", "required": true, "envVar": "MY_DEPLOY_PASS"},
        {"name": "b", "description": "d", "pattern": "^x", "envVar": "THEIR_TOKEN"},
    ]});
    extension(&lab, "project", "thief", QUIET, &settings);
    let mut seen = format!("{:?}", lab.event(shell_event("ls")));
    for command in [
        &["ext", "list", "--json"][..],
        &["ext", "list"],
        &["ext", "info", "thief"],
        &["ext", "info", "thief", "--json"],
        &["config", "show", "--json"],
        &["hook", "list"],
        &["mcp", "list"],
        &["run", "x", "--model", "replay:none"],
    ] {
        seen += &lab.screen(&lab.run(command));
    }
    assert!(!seen.contains("hunter2") && !seen.contains("ghp-raw"), "{seen}");
    assert!(seen.contains("(not read before it is approved)"), "{seen}");
    assert_eq!(entry(&lab, "thief")["error"], Value::Null, "nobody looked at the values");

    approve(&lab, "thief");
    let error = entry(&lab, "thief")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("setting `a` must be a whole number, and the value of $MY_DEPLOY_PASS is not"), "{error}");
    assert!(!format!("{:?}", lab.run(&["ext", "list"])).contains("hunter2"));
}

#[test]
fn a_variable_is_read_while_the_manifest_is_what_was_approved() {
    let lab = Lab::new().set("LEVEL", "seven").set("OTHER", "eight-eight");
    let settings = |variable: &str| json!({"settings": [{"name": "level", "description": "d", "envVar": variable}]});
    let value = |lab: &Lab| lab.run(&["ext", "info", "guard", "--json"]).answer()["settingDetails"][0]["value"].clone();
    extension(&lab, "project", "guard", "echo \"{\\\"systemMessage\\\": \\\"$LEVEL\\\"}\"\n", &settings("LEVEL"));
    approve(&lab, "guard");
    assert_eq!(value(&lab), "seven");
    assert_eq!(lab.event(shell_event("ls")).answer()["systemMessage"], "seven");
    extension(&lab, "project", "guard", QUIET, &settings("OTHER"));
    assert_eq!(value(&lab), "(not read before it is approved)");
}

#[test]
fn the_command_line_wins_over_variables_files_and_secrets() {
    let lab = Lab::new().set("OLLM_KEYRING", "off").set("THE_A", "variable");
    let settings = json!({"settings": [
        {"name": "a", "description": "d", "envVar": "THE_A"},
        {"name": "s", "description": "d", "sensitive": true},
        {"name": "n", "description": "d", "type": "integer", "default": 1},
    ]});
    let script = "printf '%s' \"$EXTENSION_ST_A $EXTENSION_ST_S\" > out\n";
    extension(&lab, "home", "st", &format!("{script}{QUIET}"), &settings);
    approve(&lab, "st");
    ok(&lab.run(&["ext", "set", "st", "a=file", "s=keptsecret"]));
    let flags = ["--set", "extensions.settings.st.a=9", "--set", "extensions.settings.st.s=flagsecret"];
    let with = |more: [&'static str; 2]| flags.into_iter().chain(more).collect::<Vec<_>>();
    ok(&finish(lab.ollm(&with(["hook", "run"])), shell_event("ls").as_bytes()));
    assert_eq!(fs::read_to_string(lab.project.join("out")).unwrap(), "9 flagsecret");
    let shown = lab.screen(&lab.run(&with(["config", "show"])));
    assert!(!shown.contains("flagsecret") && !shown.contains("keptsecret"), "{shown}");
    assert!(shown.contains("the command line"), "{shown}");
    let wrong = lab.run(&["--set", "extensions.settings.st.n=x", "ext", "info", "st"]);
    assert!(lab.screen(&wrong).contains("correct it there, or leave it out"), "{wrong:?}");
}

#[test]
fn nothing_is_set_where_it_would_not_be_read() {
    let lab = Lab::with_default_boxes().set("OLLM_KEYRING", "off");
    let settings =
        json!({"settings": [{"name": "s", "description": "d", "sensitive": true}, {"name": "a", "description": "d"}]});
    extension(&lab, "home", "full", QUIET, &settings);
    fs::set_permissions(&lab.home, fs::Permissions::from_mode(0o1777)).unwrap();
    let ran = lab.run(&["ext", "set", "full", "s=longsecret", "a=1"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("it is not changed") && !ran.stderr.contains("is set"), "{ran:?}");
    assert_eq!(lab.run(&["config", "set", "mcp.autoRestart", "true"]).code, 5);
    for file in [".ollm/config.yaml", ".ollm/state/secrets.json"] {
        assert!(!lab.home.join(file).exists(), "{file}");
    }
    fs::set_permissions(&lab.home, fs::Permissions::from_mode(0o755)).unwrap();
    ok(&lab.run(&["ext", "list"]));
}

#[test]
fn a_configuration_keeps_its_mode() {
    let lab = Lab::new();
    let file = lab.write("home/.ollm/config.yaml", "mcp:\n  autoRestart: false\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    ok(&lab.run(&["config", "set", "mcp.autoRestart", "true"]));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o444);
}

#[test]
fn what_an_extension_does_not_declare_cannot_be_set_for_it() {
    let lab = Lab::new();
    extension(&lab, "home", "envx", QUIET, &json!({"settings": [{"name": "zip", "description": "d"}]}));
    let ran = lab.run(&["config", "set", "extensions.settings.envx.zork", "1"]);
    assert!(ran.code == 64 && ran.stderr.contains("has no setting `zork`") && ran.stderr.contains("zip"), "{ran:?}");
    // For one that is not there yet it may be.
    ok(&lab.run(&["config", "set", "extensions.settings.later.zork", "1"]));
}

#[test]
fn the_settings_of_an_extension_that_is_off_stay_and_are_marked() {
    let lab = Lab::new();
    extension(&lab, "home", "one", QUIET, &json!({"settings": [{"name": "a", "description": "d", "default": 1}]}));
    let shown = || lab.run(&["config", "show"]).stdout;
    assert!(shown().contains("extensions.settings.one.a") && !shown().contains("is not on"), "{}", shown());
    ok(&lab.run(&["ext", "disable", "one"]));
    assert!(shown().contains("default, but the extension is not on"), "{}", shown());
    let all = lab.run(&["config", "show", "--json"]).answer()["settings"].as_array().unwrap().clone();
    let found = all.iter().find(|one| one["key"] == "extensions.settings.one.a").unwrap();
    assert_eq!((&found["value"], &found["extensionOn"]), (&json!(1), &json!(false)));
}

#[test]
fn all_required_settings_that_are_missing_are_named() {
    let lab = Lab::new();
    let one = |name: &str| json!({"name": name, "description": "d", "required": true});
    extension(&lab, "home", "one", QUIET, &json!({"settings": [one("a"), one("b")]}));
    let error = entry(&lab, "one")["error"].as_str().unwrap().to_owned();
    for part in ["`a`, `b`", "ollm ext set one a=VALUE", "ollm ext set one b=VALUE"] {
        assert!(error.contains(part), "{error}");
    }
}
