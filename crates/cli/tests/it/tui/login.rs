//! Logging in to a server from the panels: by a browser that comes back, by a pasted address, or not at all.

use std::fs;

use serde_json::json;
use testkit::RemoteServer;

use super::{choose, does, leave};
use crate::lab::pty::{LARGE, Pty};
use crate::lab::{Lab, eventually, search_path};
use crate::mcp::login::{get, tokens};
use crate::mcp::{USER, declare};

/// A server that wants to know who we are, and a browser that only writes down what it is to open.
fn pair() -> (RemoteServer, Lab) {
    let remote = RemoteServer::start(&["--http", "--oauth"]).unwrap();
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": {"url": remote.url}}));
    let place = lab.root.join("page");
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{0}.part'\nmv '{0}.part' '{0}'\n", place.display());
    lab.write_executable("bin/xdg-open", &script);
    let path = format!("{}:{}", lab.root.join("bin").display(), search_path().to_str().unwrap());
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    (remote, lab.set("PATH", &path))
}

/// The page that the browser was told to open; the address it is sent to from there.
fn visited(lab: &Lab) -> String {
    let file = lab.root.join("page");
    eventually("a browser is asked", || file.exists());
    let page = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    get(&page).1.unwrap()
}

fn panel(lab: &Lab) -> Pty {
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "mcp"]);
    panel.sees("1 server");
    choose(&mut panel, "s");
    panel
}

#[test]
pub(super) fn o_logs_in_by_a_browser_that_comes_back_and_f_forgets_it() {
    let (_remote, lab) = pair();
    let mut panel = panel(&lab);
    panel.types("o").sees("This goes on by itself");
    get(&visited(&lab));
    does(&mut panel, "", "logging in to s", "server `s`: logged in at");
    panel.sees_no_more("This goes on by itself");
    assert!(tokens(&lab).contains("access-secret-"));
    panel.sees("logged in   at");
    panel.types("f").sees("logged out at");
    assert!(!tokens(&lab).contains("access-secret-"));
    leave(panel);
}

#[test]
fn a_login_goes_on_with_a_pasted_address_after_a_wrong_one_and_can_be_given_up() {
    let (_remote, lab) = pair();
    let mut panel = panel(&lab);
    let shown = panel.types("otoo early\r").sees("This goes on by itself");
    assert!(!shown.contains("early"), "what was typed before the question is no answer: {shown}");
    let back = visited(&lab);
    panel.types("nonsense\r").sees("Then paste another");
    does(&mut panel, &format!("{back}\r"), "logging in to s", "server `s`: logged in at");
    assert!(tokens(&lab).contains("access-secret-"));
    does(&mut panel, "f", "logging out of s", "logged out at");
    panel.types("o").sees("This goes on by itself");
    panel.types("\x1b").sees("you gave up");
    assert!(!tokens(&lab).contains("access-secret-"));
    leave(panel);
}

#[test]
fn the_chat_logs_in_with_its_command_and_goes_on() {
    let (_remote, lab) = pair();
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat.types("/mcp login s\r").sees("This goes on by itself");
    get(&visited(&lab));
    chat.sees("server `s`: logged in at");
    chat.sees_no_more("This goes on by itself");
    assert!(tokens(&lab).contains("access-secret-"));
    chat.types("/mcp login s\r").sees("This goes on by itself");
    chat.types("\x03").sees("you gave up");
    chat.types("hello\r").sees("done");
    leave(chat);
}
