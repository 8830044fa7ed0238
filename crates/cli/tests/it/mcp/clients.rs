//! Our identity for an issuer, and what it grants us later. We are a client it knows, with or without a secret, or one
//! that a document describes.

use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::RemoteServer;

use super::login::{begin, echo, get, login, tokens};
use super::{USER, asked, call, declare, text_of};
use crate::lab::{Lab, outcome};

const WORD: &str = "hush-client-word";

/// A server that wants to know who we are and writes down what its issuer was asked, and how we are declared there.
fn known_as(flags: &[&str], oauth: &Value) -> (RemoteServer, Lab) {
    let lab = Lab::new().set("CLIENT_WORD", WORD);
    let log = lab.root.join("asked");
    let flags = [&["--http", "--oauth", "--log", log.to_str().unwrap()], flags].concat();
    let remote = RemoteServer::start(&flags).unwrap();
    declare(&lab, USER, &json!({"s": {"url": remote.url, "oauth": oauth}}));
    (remote, lab)
}

fn add(lab: &Lab) -> crate::lab::Ran {
    call(lab, "add", &json!({"a": 1, "b": 2}))
}

#[test]
fn a_client_with_a_secret_logs_in_and_renews_and_the_secret_is_kept_and_shown_nowhere() {
    for way in ["", "post"] {
        let flags = ["--client-secret", WORD, "--token-life", "5", "--oauth-fault", way];
        let oauth = json!({"clientId": "known-client", "clientSecret": "${CLIENT_WORD}", "scopes": "tools more"});
        let (_remote, lab) = known_as(&flags, &oauth);
        let ran = login(&lab);
        assert_eq!((ran.code, &ran.answer()["scopes"]), (0, &json!(["tools", "more"])), "{ran:?}");
        assert_eq!(text_of(&echo(&lab)), "hi");
        assert!(asked(&lab).iter().any(|line| line == "token refresh_token"), "{way}");
        assert!(!asked(&lab).iter().any(|line| line == "register"), "{way}");
        assert!(!tokens(&lab).contains(WORD), "it stays where it was declared");
        assert_eq!(lab.run(&["mcp", "logout", "s"]).code, 0);
    }
}

#[test]
fn a_secret_that_is_wrong_or_missing_is_told_and_not_shown() {
    let oauth = json!({"client_id": "known-client", "client_secret": "${CLIENT_WORD}"});
    let (_remote, lab) = known_as(&["--client-secret", "another-word"], &oauth);
    let ran = login(&lab);
    assert!(ran.code == 5 && ran.stderr.contains("[redacted:oauth.clientSecret] is not the word"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(WORD), "{ran:?}");

    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": {"url": "http://127.0.0.1:1/mcp", "oauth": oauth}}));
    let ran = lab.run(&["mcp", "login", "s"]);
    assert!(ran.code == 3 && ran.stderr.contains("`CLIENT_WORD`, which is not set"), "{ran:?}");
}

#[test]
fn rights_that_are_lacking_are_named_and_the_next_login_asks_for_all() {
    let (_remote, lab) = known_as(&["--step-up", "write"], &json!({}));
    assert_eq!(login(&lab).code, 0);
    assert_eq!(text_of(&echo(&lab)), "hi");
    let ran = add(&lab);
    let told = "it wants us to have more rights: `write`; `ollm mcp login s` asks for them";
    assert!(ran.code == 5 && ran.stderr.contains(told), "{ran:?}");
    let ran = login(&lab);
    assert_eq!((ran.code, &ran.answer()["scopes"]), (0, &json!(["tools", "write"])), "{ran:?}");
    assert_eq!(add(&lab).answer()["structuredContent"]["sum"], 3.0);
    assert_eq!(text_of(&echo(&lab)), "hi");
    let ran = login(&lab);
    assert_eq!(ran.answer()["scopes"], json!(["tools"]), "nothing is lacking any more");
}

#[test]
fn what_an_issuer_reads_in_a_document_needs_no_registration() {
    let document = "https://client.example/ollm.json";
    for (fault, registers) in [("metadata", false), ("", true)] {
        let (_remote, lab) = known_as(&["--oauth-fault", fault], &json!({"clientMetadataUrl": document}));
        assert_eq!(login(&lab).code, 0);
        assert_eq!(text_of(&echo(&lab)), "hi");
        let asked = asked(&lab);
        assert_eq!(asked.iter().any(|line| line == "register"), registers, "{asked:?}");
        assert_eq!(asked.contains(&format!("authorize {document} for tools")), !registers, "{asked:?}");
    }
}

#[test]
fn the_address_an_issuer_knows_is_come_back_to() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let back = format!("http://localhost:{port}/oauth/back");
    let (_remote, lab) = known_as(&[], &json!({"clientId": "known-client", "redirectUri": back}));
    let begun = begin(&lab);
    let (_, place) = get(&begun.page.unwrap());
    let place = place.unwrap();
    assert!(place.starts_with(&back), "{place}");
    assert_eq!(get(&place.replace("localhost", "127.0.0.1")).0, 200);
    let ran = outcome(begun.child);
    assert_eq!(ran.code, 0, "{ran:?}");
}
