//! Secrets in a real keyring, seen from the outside; where there is none to try, these tests say that they are skipped.

use std::fs;

use serde_json::json;
use testkit::{Habits, KeyringSession, ModelReply, ModelServer, Person, Prompts, SecretService, answer_events};

use crate::lab::{Lab, Ran, finish, shell_event};
use crate::terminal::on_a_terminal;

const SECRET: &str = "Zq81xKw93";

/// A lab whose user is logged in where a keyring runs, with one approved extension that has a sensitive setting.
fn logged_in() -> Option<(KeyringSession, Lab)> {
    let lab = Lab::new();
    let session = KeyringSession::start(|session| {
        let probe = lab.home.join("probe.json");
        let keyring = ollm_store::Keyring::at(session.address());
        let deposit = ollm_store::keep_secret(&probe, Some(&keyring), "probe", "1").unwrap();
        deposit.place == ollm_store::SecretPlace::Keyring
    })?;
    let lab = lab.set("DBUS_SESSION_BUS_ADDRESS", session.address());
    let manifest = json!({
        "name": "vault", "version": "1.0.0", "description": "d",
        "hooks": {"before_tool": [{"name": "vault", "command": "sh", "args": ["run.sh"], "matcher": "shell"}]},
        "settings": [{"name": "pin", "description": "d", "sensitive": true, "required": true, "envVar": "MY_PIN"}],
    });
    lab.write("home/.ollm/extensions/vault/manifest.json", manifest.to_string());
    let script = format!("echo \"the pin is $MY_PIN\" >&2\ntest \"$MY_PIN\" = {SECRET} && exit 7\nexit 1\n");
    // The script must not hold what the files are searched for.
    let script = script.replace(SECRET, "\"Zq81\"\"xKw93\"");
    lab.write("home/.ollm/extensions/vault/run.sh", script);
    let set = finish(lab.ollm(&["ext", "set", "vault", "pin=-"]), SECRET.as_bytes());
    assert!(set.code == 0 && set.stderr.contains("in the system keyring"), "{set:?}");
    let digest = lab.run(&["ext", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["ext", "trust", "vault", "--digest", &digest]).code, 0);
    Some((session, lab))
}

fn error(ran: &Ran) -> String {
    ran.hook("vault")["error"].as_str().unwrap().to_owned()
}

#[test]
fn e8_a_secret_in_the_keyring_reaches_the_hook_and_no_file_of_ours() {
    let Some((_session, lab)) = logged_in() else { return };
    let ran = lab.event(shell_event("ls"));
    assert!(error(&ran).contains('7'), "the hook saw it: {ran:?}");
    let mut seen = format!("{ran:?}");
    for command in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["ext", "info", "vault"],
        &["trace", "last", "--json"],
    ] {
        seen += &lab.screen(&lab.run(command));
    }
    assert!(seen.contains("(hidden)") && seen.contains("the system keyring"), "{seen}");
    assert!(!seen.contains(SECRET), "{seen}");
    for file in super::extensions::files(&lab.home.join(".ollm")) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains(SECRET), "{}", file.display());
    }
    let info = lab.run(&["ext", "info", "vault", "--json"]).answer();
    assert_eq!(info["settingDetails"][0]["from"], "the system keyring");
    // Taken away, the extension says what it misses.
    assert_eq!(lab.run(&["ext", "set", "vault", "--unset", "pin"]).code, 0);
    let listed = lab.run(&["ext", "list", "--json"]).answer();
    assert!(listed[0]["error"].as_str().unwrap().contains("ollm ext set vault pin"), "{listed}");
}

#[test]
fn a_required_secret_that_is_empty_is_missing_as_soon_as_the_extension_is_loaded() {
    let Some((_session, lab)) = logged_in() else { return };
    let file = "home/.ollm/extensions/vault/manifest.json";
    let required = fs::read_to_string(lab.root.join(file)).unwrap();
    lab.write(file, required.replace("\"required\":true", "\"required\":false"));
    assert_eq!(finish(lab.ollm(&["ext", "set", "vault", "pin=-"]), b"").code, 0);
    lab.write(file, &required);
    let lab = lab.set("OLLM_KEYRING", "off");
    let listed = lab.run(&["ext", "list", "--json"]).answer();
    let why = listed[0]["error"].as_str().unwrap();
    assert!(why.contains("`pin` is required and must not be empty") && why.contains("ollm ext set vault pin"), "{why}");
    let ran = lab.event(shell_event("ls"));
    assert!(ran.hook_count() == 0 && ran.stderr.contains("ollm ext set vault pin"), "{ran:?}");
}

#[test]
fn a_locked_keyring_fails_the_hook_that_needs_it_and_no_other() {
    let Some((session, lab)) = logged_in() else { return };
    lab.user_hook("before_tool", "other", "printf '{\"continue\": true}'\n", "");
    if !session.lock() {
        return;
    }
    let ran = lab.event(shell_event("ls"));
    assert!(error(&ran).contains("is locked") && error(&ran).contains("ollm ext set vault pin"), "{ran:?}");
    assert_eq!(ran.hook("other")["status"], "ok");
    // A person can still say it by variable.
    let lab = lab.set("MY_PIN", SECRET);
    assert!(error(&lab.event(shell_event("ls"))).contains('7'));
}

#[test]
fn a_person_at_a_terminal_may_unlock_the_keyring_and_elsewhere_nobody_is_asked() {
    let Some(session) = KeyringSession::bare() else { return };
    let locked = Habits { person: Person::Unlocks, locked: true, furnished: true };
    let service = SecretService::serve(&session, locked);
    let lab = Lab::new().set("DBUS_SESSION_BUS_ADDRESS", session.address());
    let settings = json!([{"name": "pin", "description": "d", "sensitive": true}]);
    let manifest = json!({"name": "vault", "version": "1.0.0", "description": "d", "settings": settings});
    lab.write("home/.ollm/extensions/vault/manifest.json", manifest.to_string());
    let set = |arguments: &[&str]| on_a_terminal(&lab, "", &[&["ext", "set", "vault"], arguments].concat()).stdout;

    let elsewhere = lab.run(&["ext", "set", "vault", "pin=Zq81xKw93"]);
    let file = "secrets.json, which only you can read (the system keyring is locked)";
    assert!(elsewhere.code == 0 && elsewhere.stderr.contains(file), "{elsewhere:?}");
    assert_eq!(service.prompts(), Prompts::default());
    let told = set(&["pin=Zq81xKw94"]);
    assert!(told.contains("in the system keyring"), "{told}");
    assert_eq!(service.prompts(), Prompts { asked: 1, withdrawn: 0 });
    assert!(!fs::read_to_string(lab.home.join(".ollm/state/secrets.json")).unwrap().contains("Zq81xKw9"));
    service.set(Habits { person: Person::Dismisses, ..locked });
    let told = set(&["pin=Zq81xKw95"]);
    assert!(told.contains(file), "{told}");
    service.set(Habits { person: Person::Unlocks, furnished: false, ..locked });
    let told = set(&["pin=Zq81xKw96"]);
    assert!(told.contains("there is no default keyring yet"), "{told}");
    assert_eq!(service.prompts(), Prompts { asked: 2, withdrawn: 0 });
}

#[test]
fn a_keyring_that_hangs_is_asked_only_for_the_hook_that_needs_it() {
    let Some((session, lab)) = logged_in() else { return };
    session.freeze();
    let ran = lab.event(shell_event("ls"));
    assert!(error(&ran).contains("does not answer"), "{ran:?}");
    // An event without secrets asks no keyring: it cannot fail, and it cannot wait.
    let other = lab.event(r#"{"event": "before_tool", "data": {"tool_name": "other", "args": {}}}"#);
    assert_eq!((other.code, other.hook_count()), (0, 0), "{other:?}");
    assert_eq!(lab.run(&["ext", "list", "--json"]).answer()[0]["enabled"], true);
    assert!(lab.run(&["config", "show"]).stdout.contains("the system keyring"));
}

#[test]
fn without_a_keyring_in_this_session_the_way_out_is_named_and_setting_it_anew_works() {
    let Some((_session, lab)) = logged_in() else { return };
    let lab = lab.set("OLLM_KEYRING", "off");
    let ran = lab.event(shell_event("ls"));
    assert!(error(&ran).contains("which this session has none of"), "{ran:?}");
    let set = finish(lab.ollm(&["ext", "set", "vault", "pin=-"]), SECRET.as_bytes());
    assert!(set.code == 0 && set.stderr.contains("secrets.json, which only you can read"), "{set:?}");
    assert!(error(&lab.event(shell_event("ls"))).contains('7'));
}

#[test]
fn a_key_for_a_model_is_kept_for_its_server_alone() {
    let server = ModelServer::start(vec![ModelReply::stream(&answer_events("one", &[], 2), 64)]).unwrap();
    let lab = Lab::new();
    let none = finish(lab.ollm(&["config", "set", "model.apiKey", "-"]), b"k3y-of-the-house\n");
    assert!(none.code == 64 && none.stderr.contains("model.baseUrl"), "{none:?}");
    let url = server.url().to_owned();
    assert_eq!(lab.run(&["config", "set", "model.provider", "openai"]).code, 0);
    assert_eq!(lab.run(&["config", "set", "model.name", "m"]).code, 0);
    assert_eq!(lab.run(&["config", "set", "model.baseUrl", &url]).code, 0);
    let set = finish(lab.ollm(&["config", "set", "model.apiKey", "-"]), b"k3y-of-the-house\n");
    assert!(set.code == 0 && !set.stderr.contains("k3y"), "{set:?}");
    assert!(!fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap().contains("k3y"));
    let shown = lab.run(&["config", "show"]).stdout;
    assert!(shown.contains("model.apiKey ") && !shown.contains("k3y"), "{shown}");
    let ran = lab.run(&["run", "hello"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(server.asked()[0].authorization, Some("Bearer k3y-of-the-house".to_owned()));
    // Another name for the same place is another server.
    let other = url.replace("127.0.0.1", "localhost");
    assert_eq!(lab.run(&["config", "set", "model.baseUrl", &other]).code, 0);
    assert!(!lab.run(&["config", "show"]).stdout.contains("model.apiKey "));
    assert_eq!(lab.run(&["config", "unset", "model.apiKey"]).code, 0);
}
