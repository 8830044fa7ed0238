//! Every key of the panel of extensions, and what it leaves on the disk.

use std::fs;

use serde_json::json;

use super::common::KeyCase;
use super::{choose, does, leave, prints};
use crate::extensions::{QUIET, entries, entry, extension};
use crate::installing::package;
use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", v_shows_and_approves_an_extension_and_enter_switches_it),
    ("Space", v_shows_and_approves_an_extension_and_enter_switches_it),
    ("s", s_sets_what_was_changed_and_asks_for_a_secret_where_it_is_not_seen),
    ("v", v_shows_and_approves_an_extension_and_enter_switches_it),
    ("i", i_installs_u_updates_and_d_uninstalls_each_after_a_yes),
    ("u", i_installs_u_updates_and_d_uninstalls_each_after_a_yes),
    ("d", i_installs_u_updates_and_d_uninstalls_each_after_a_yes),
    ("r", v_shows_and_approves_an_extension_and_enter_switches_it),
    ("c", v_shows_and_approves_an_extension_and_enter_switches_it),
    ("t", v_shows_and_approves_an_extension_and_enter_switches_it),
];

/// An extension of the user with two settings, one of them a secret.
fn lab() -> Lab {
    let lab = Lab::new();
    let settings = json!({"settings": [
        {"name": "level", "description": "how strict it is"},
        {"name": "token", "description": "who you are", "sensitive": true},
    ]});
    extension(&lab, "home", "kept", QUIET, &settings);
    lab
}

fn panel(lab: &Lab) -> Pty {
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "extensions"]);
    panel.sees("1 extension");
    choose(&mut panel, "kept");
    panel
}

#[test]
fn v_shows_and_approves_an_extension_and_enter_switches_it() {
    let lab = lab();
    let mut panel = panel(&lab);
    panel.sees("kept !");
    panel.types("v").sees("[y]es");
    does(&mut panel, "y\r", "reviewing kept", " reviewing kept (Esc closes)");
    panel.sees_no_more("kept !");
    assert_eq!(entry(&lab, "kept")["trust"], "trusted");
    panel.types("\r").sees("○ kept");
    assert_eq!(entry(&lab, "kept")["enabled"], false);
    panel.types(" ").sees("● kept");
    assert_eq!(entry(&lab, "kept")["enabled"], true);
    lab.write("home/.ollm/extensions/kept/hooks/more.sh", "exit 0\n");
    for (key, title, command) in
        [("r", "what changed in kept", "reload"), ("c", "checking kept", "validate"), ("t", "testing kept", "test")]
    {
        prints(&mut panel, &lab, key, title, &["ext", command, "kept"]);
    }
    leave(panel);
}

#[test]
fn s_sets_what_was_changed_and_asks_for_a_secret_where_it_is_not_seen() {
    let lab = lab();
    let mut panel = panel(&lab);
    panel.types("s").sees("Settings of kept");
    panel.types("strict\t\x1b[C").sees("‹ ask me ›");
    panel.types("\rtyped too early\r").sees("Not shown; Enter answers");
    panel.types("hush-hush-hush").sees("••••••••••••••");
    does(&mut panel, "\r", "settings of kept", "`token` of `kept` is set");
    let shown = panel.sees("level = \"strict\"");
    assert!(!shown.contains("hush-hush"), "{shown}");
    let config = fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap();
    assert!(config.contains("strict") && !config.contains("hush"), "{config}");
    let kept = lab.run(&["ext", "info", "kept", "--json"]).answer();
    assert_eq!(kept["settingDetails"][0]["value"], "strict");
    assert!(!kept["settingDetails"][1]["value"].is_null(), "{kept:#}");
    panel.types("s").sees("Settings of kept");
    panel.types("\t\x1b[D").sees("‹ forget it ›");
    panel.types("\r").sees("`token` of `kept` is no longer set");
    let kept = lab.run(&["ext", "info", "kept", "--json"]).answer();
    assert!(kept["settingDetails"][1]["value"].is_null(), "{kept:#}");
    assert_eq!(entry(&lab, "kept")["settingValues"], json!({"level": "strict"}));
    leave(panel);
}

#[test]
fn i_installs_u_updates_and_d_uninstalls_each_after_a_yes() {
    let lab = lab();
    let folder = package(&lab, "outside/guard", "1.0.0", &json!({}));
    let mut panel = panel(&lab);
    panel.types("i").sees("Install an extension");
    panel.types(folder.to_str().unwrap()).types("\r").sees("[y]es");
    assert_eq!(entries(&lab).len(), 1, "nothing is installed before a yes");
    // First what it brings is accepted, then it is approved.
    panel.types("y\r").sees("Let the extension `guard` run");
    does(&mut panel, "y\r", &format!("installing {}", folder.display()), " installing ");
    panel.types("/\r").sees("● guard ");
    assert_eq!(
        (&entry(&lab, "guard")["version"], &entry(&lab, "guard")["trust"]),
        (&json!("1.0.0"), &json!("trusted"))
    );
    package(&lab, "outside/guard", "1.1.0", &json!({}));
    choose(&mut panel, "guard");
    panel.types("u").sees("[y]es");
    assert_eq!(entry(&lab, "guard")["version"], "1.0.0");
    panel.types("y\r").sees("Let the extension `guard` run");
    does(&mut panel, "\x1b", "updating guard", " updating guard (Esc closes)");
    panel.sees("guard ! 1.1.0");
    assert_eq!(
        (&entry(&lab, "guard")["version"], &entry(&lab, "guard")["trust"]),
        (&json!("1.1.0"), &json!("modified"))
    );
    panel.types("d").sees("[y]es");
    does(&mut panel, "y\r", "uninstalling guard", " uninstalling guard (Esc closes)");
    panel.sees("1 extension ");
    assert_eq!(entries(&lab).len(), 1);
    leave(panel);
}

/// What is typed before a question of this panel is seen answers nothing.
pub(super) fn typed_ahead() {
    let lab = lab();
    let folder = package(&lab, "outside/guard", "1.0.0", &json!({}));
    let mut panel = panel(&lab);
    panel.types("i").sees("Install an extension");
    panel.types(folder.to_str().unwrap()).types("\ry\ry\r").sees("Install `guard`?");
    assert_eq!(entries(&lab).len(), 1);
    panel.types("y\ry\ry\r").sees("Let the extension `guard` run");
    assert_eq!(entry(&lab, "guard")["trust"], "untrusted");
    does(&mut panel, "\x1b", &format!("installing {}", folder.display()), " installing ");
    panel.types("\x1b").sees_no_more(" installing ");
    panel.types("/\r").sees("guard ");
    package(&lab, "outside/guard", "1.1.0", &json!({}));
    choose(&mut panel, "guard");
    panel.types("uy\ry\r").sees("[y]es");
    assert_eq!(entry(&lab, "guard")["version"], "1.0.0");
    does(&mut panel, "\x1b", "updating guard", "you did not say yes");
    panel.types("\x1b").sees_no_more("you did not say yes");
    panel.types("dy\ry\r").sees("[y]es");
    panel.types("\x1b").sees("you did not say yes");
    assert_eq!(entries(&lab).len(), 2);
    leave(panel);
}
