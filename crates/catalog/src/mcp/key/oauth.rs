//! The rows of how to log in to a server.

use std::fmt::Write;

use ollm_protocol::Oauth;
use ollm_trust::Row;

use super::table::{ROW, line, visible};
use super::{ApprovedPart, ServerKey, ServerKeyKind, TextForm, UnsupportedKey};
use crate::mcp::ServerSpec;

/// The keys of `oauth`.
pub(super) const OAUTH_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "clientId",
        about: "The name by which the issuer knows us; we do not register then.",
        kind: ServerKeyKind::Text("text", TextForm::Word, |draft, name| draft.oauth().client_id = Some(name)),
        approved: ApprovedPart::Within("oauth"),
        review: |server| login("logs in as", server, |oauth| oauth.client_id.clone()),
        ..ROW
    },
    ServerKey {
        name: "clientSecret",
        about: "The word that proves it; write it as `${NAME}`.",
        kind: ServerKeyKind::Text("text", TextForm::Word, |draft, word| draft.oauth().client_secret = Some(word)),
        needs: Some("clientId"),
        secret: true,
        approved: ApprovedPart::Within("oauth"),
        review: |server| {
            login("proved by", server, |oauth| {
                Some(visible("clientSecret", oauth.client_secret.as_deref()?).into_owned())
            })
        },
        ..ROW
    },
    ServerKey {
        name: "clientMetadataUrl",
        aliases: &["clientIdMetadataUrl"],
        about: "Where a document says who we are, for issuers that read it there.",
        kind: ServerKeyKind::Text("text", TextForm::Document, |draft, url| draft.oauth().metadata_url = Some(url)),
        approved: ApprovedPart::Within("oauth"),
        review: |server| login("described at", server, |oauth| oauth.metadata_url.clone()),
        ..ROW
    },
    ServerKey {
        name: "scopes",
        aliases: &["scope"],
        about: "What to ask for.",
        kind: ServerKeyKind::Words(|draft, scopes| draft.oauth().scopes = scopes),
        approved: ApprovedPart::Within("oauth"),
        review: |server| login("asks for", server, |oauth| Some(oauth.scopes.join(" ")).filter(|all| !all.is_empty())),
        ..ROW
    },
    ServerKey {
        name: "callbackPort",
        aliases: &["redirectPort"],
        about: "The port the browser comes back to.",
        kind: ServerKeyKind::Port(|draft, port| draft.oauth().port = Some(port)),
        approved: ApprovedPart::Within("oauth"),
        review: |server| login("callbackPort", server, |oauth| oauth.port.map(|port| port.to_string())),
        ..ROW
    },
    ServerKey {
        name: "redirectUri",
        about: "The whole address on this machine that the browser comes back to.",
        kind: ServerKeyKind::Text("text", TextForm::Redirect, |draft, url| draft.oauth().redirect = Some(url)),
        approved: ApprovedPart::Within("oauth"),
        review: |server| login("comes back to", server, |oauth| oauth.redirect.clone()),
        ..ROW
    },
    ServerKey {
        name: "enabled",
        about: "Whether to log in at all, as other programs write it.",
        kind: ServerKeyKind::Flag(|_, _| ()),
        unhonoured: Some(UnsupportedKey {
            why: "whether logging in is needed is found out by asking, and no login happens unasked",
            unless: Some(true),
            refused: false,
        }),
        ..ROW
    },
];

fn login(label: &'static str, server: &ServerSpec, value: impl Fn(&Oauth) -> Option<String>) -> Vec<Row> {
    line(label, server.oauth.as_ref().and_then(value))
}

/// What an approval is bound to of a login, but for its secret. What is not declared leaves no trace of keys that came later.
pub(super) fn definition(oauth: &Oauth) -> String {
    let Oauth { client_id, scopes, port, metadata_url, redirect, client_secret: _ } = oauth;
    let mut text = format!("Oauth {{ client_id: {client_id:?}, scopes: {scopes:?}, port: {port:?}");
    for (name, value) in [("metadata_url", metadata_url), ("redirect", redirect)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name}: {value:?}");
        }
    }
    text + " }"
}
