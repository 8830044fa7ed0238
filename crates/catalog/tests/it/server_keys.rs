//! The rows of the keys of a server, each walked: read, approved, shown and described as it says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ollm_catalog::{SERVER_KEYS, ServerApproved, ServerKey, ServerKeyKind, ServerSpec, ServerTextForm, check_server};
use ollm_protocol::{Origin, Source};
use ollm_trust::Approvable;
use serde_json::{Value, json};

/// A server of a project, from its declaration.
fn read(declaration: &Value) -> (ServerSpec, Vec<String>) {
    let (server, problems) = check_server("s", declaration);
    let told = problems.iter().map(ToString::to_string).collect();
    let server = server.unwrap_or_else(|| panic!("{declaration}: {problems:?}"));
    (ServerSpec { source: Source::Workspace, origin: Origin::default(), ..server }, told)
}

/// What an approval of a server is bound to beside its files.
fn definition(server: &ServerSpec) -> String {
    server.definition().unwrap().hasher.finish().to_string()
}

#[test]
fn a_definition_from_before_the_rows_has_still_the_same_digest() {
    // What approvals of earlier versions are bound to: another digest would take all of them away.
    let program = json!({
        "command": "npx", "args": ["-y", "server"], "env": {"A": "1", "B": "${B}"}, "cwd": "sub", "type": "stdio",
        "limits": {"cpu": "5s", "memory": "1MiB", "processes": 3, "files": 4, "fileSize": 5},
        "timeout": 5000, "toolTimeout": "2m", "idleTimeout": "1m", "disabled": false, "lazy": false, "autoRestart": true,
        "allowTools": ["a", "b*"], "denyTools": ["c"], "description": "d",
    });
    let address = json!({
        "url": "https://example.org/mcp", "type": "sse", "headers": {"Authorization": "Bearer ${T}"}, "enabled": false,
        "oauth": {"clientId": "i", "clientSecret": "${S}", "scopes": ["x", "y"], "callbackPort": 8080,
            "redirectUri": "http://localhost:8080/x", "clientMetadataUrl": "https://example.org/client"},
    });
    for (declaration, digest) in [
        (json!({"command": "x"}), "sha256:4ad9048fdd0142fd1a7d806cc6207006826620b0cb951b34cfb65afd5558a917"),
        (program, "sha256:3401087675a1f991fc377a8b9346b6ab1c68231071f90336d1f632d7bd24db3d"),
        (json!({"url": "http://x"}), "sha256:976f80da37b3f1e1b4d92172f4674768b3177283958b76721df0c2ef5a7b1bff"),
        (address, "sha256:f4f593549d28afa5ffb3794ced5c8ce23fc89ea90eb239db8e00213fa5e39887"),
        (
            json!({"url": "http://x", "oauth": {}}),
            "sha256:9d273bf5b77f0bcbf78954b23070494621a52c09c5bd9063104bf99c104a151c",
        ),
    ] {
        let (server, told) = read(&declaration);
        assert_eq!((definition(&server).as_str(), told), (digest, vec![]), "{declaration}");
    }
}

/// Values that a key takes; at least one is not what holds without it.
fn samples(row: &ServerKey) -> Vec<Value> {
    match row.kind {
        ServerKeyKind::Place => Vec::new(),
        ServerKeyKind::Remark => vec![json!("words")],
        ServerKeyKind::Text(_, ServerTextForm::Program | ServerTextForm::Word, _) => vec![json!("something")],
        ServerKeyKind::Text(_, ServerTextForm::Address | ServerTextForm::Document, _) => {
            vec![json!("https://example.com/other")]
        }
        ServerKeyKind::Text(_, ServerTextForm::Redirect, _) => vec![json!("http://localhost:8080/x")],
        ServerKeyKind::Texts(..) | ServerKeyKind::Words(_) => vec![json!(["one", "two"])],
        ServerKeyKind::Variables(_) | ServerKeyKind::Headers(_) => {
            vec![json!({"NAME": "hush-hush"}), json!({"OTHER": "hush-hush"})]
        }
        ServerKeyKind::Transport(_) => vec![json!("sse")],
        ServerKeyKind::Flag(_) | ServerKeyKind::Switch(_) => vec![json!(true), json!(false)],
        ServerKeyKind::Time(_) | ServerKeyKind::Pause(_) | ServerKeyKind::Span(_) => vec![json!("7s")],
        ServerKeyKind::Size(_) | ServerKeyKind::Count(_) | ServerKeyKind::Port(_) => vec![json!(5)],
        ServerKeyKind::Section(..) => vec![json!({})],
    }
}

/// Where a key stands: the declaration around it, and the part of that.
type Spot = (Value, &'static str);

/// Every key, also of the parts of a server.
fn rows() -> Vec<(&'static ServerKey, Spot)> {
    let spot = |row: &ServerKey, part: &'static str| {
        let remote = ["url", "transport", "headers", "oauth"].contains(&row.name) || part == "oauth";
        let mut base = if remote { json!({"url": "https://example.com/mcp"}) } else { json!({"command": "x"}) };
        if !part.is_empty() {
            base[part] = row.needs.map_or(json!({}), |needs| json!({needs: "text"}));
        }
        (base, part)
    };
    let inner = |row: &'static ServerKey| row.inner().iter().map(move |inner| (inner, spot(inner, row.name)));
    SERVER_KEYS.iter().flat_map(|row| std::iter::once((row, spot(row, ""))).chain(inner(row))).collect()
}

/// A declaration with one more key.
fn with((base, part): &Spot, key: &str, value: &Value) -> Value {
    let mut declaration = base.clone();
    let place = if part.is_empty() { &mut declaration } else { &mut declaration[*part] };
    place[key] = value.clone();
    declaration
}

/// Whether a key promises what would not be kept, so that no server has it.
fn is_refused(row: &ServerKey) -> bool {
    row.unhonoured.is_some_and(|unhonoured| unhonoured.refused)
}

#[test]
fn every_key_takes_what_its_row_says_and_changes_the_server() {
    for (row, spot) in rows().into_iter().filter(|(row, _)| !is_refused(row)) {
        let plain = read(&spot.0).0;
        let mut changes = samples(row).is_empty();
        for sample in samples(row) {
            let (server, told) = read(&with(&spot, row.name, &sample));
            changes |= server != plain;
            match row.unhonoured.filter(|unhonoured| unhonoured.unless != sample.as_bool()) {
                Some(unhonoured) => assert!(told.concat().contains(unhonoured.why), "{}: {told:?}", row.name),
                None => assert_eq!(told, Vec::<String>::new(), "{}: {sample}", row.name),
            }
        }
        let idle = matches!(row.kind, ServerKeyKind::Remark) || row.unhonoured.is_some() || row.name == "limits";
        assert_eq!(changes, !idle, "`{}` reaches no field, or should not", row.name);
    }
}

#[test]
fn a_key_that_promises_what_nobody_keeps_is_refused() {
    for (row, spot) in rows().into_iter().filter(|(row, _)| is_refused(row)) {
        let (server, problems) = check_server("s", &with(&spot, row.name, &json!(5)));
        assert!(server.is_none(), "{}", row.name);
        assert!(problems[0].message.contains("has no effect"), "{}: {problems:?}", row.name);
    }
}

#[test]
fn an_approval_is_bound_to_every_key_that_changes_the_server_and_a_person_sees_it() {
    for (row, spot) in rows().into_iter().filter(|(row, _)| !is_refused(row)) {
        let plain = read(&spot.0).0;
        let mut approved = matches!(row.kind, ServerKeyKind::Place);
        for sample in samples(row) {
            let server = read(&with(&spot, row.name, &sample)).0;
            let changes = definition(&server) != definition(&plain);
            assert_eq!(changes, server != plain, "`{}: {sample}` escapes approval", row.name);
            let seen = server.rows() != plain.rows() || sample == json!({});
            assert_eq!(seen, changes || sample == json!({}), "`{}: {sample}` is approved unseen", row.name);
            approved |= changes;
        }
        let says = !matches!(row.approved, ServerApproved::No);
        assert!(says == approved || row.name == "limits" || row.name == "origin", "{}", row.name);
    }
}

#[test]
fn each_part_of_a_definition_is_added_by_the_row_it_is_said_to_be_in() {
    for (row, _) in rows() {
        if let ServerApproved::Within(name) = row.approved {
            let whole = SERVER_KEYS.iter().find(|row| row.name == name).unwrap();
            assert!(matches!(whole.approved, ServerApproved::Part(_) | ServerApproved::Last(_)), "{}", row.name);
        }
    }
}

#[test]
fn snake_case_and_other_words_mean_the_same_key() {
    for (row, spot) in rows().into_iter().filter(|(row, _)| !is_refused(row)) {
        let split = |letter: char| letter.is_ascii_uppercase().then_some('_');
        let snake: String = row
            .name
            .chars()
            .flat_map(|letter| split(letter).into_iter().chain([letter.to_ascii_lowercase()]))
            .collect();
        for sample in samples(row) {
            let mut spot = spot.clone();
            spot.0.as_object_mut().unwrap().remove(row.name);
            let wanted = read(&with(&spot, row.name, &sample)).0;
            for word in row.aliases.iter().copied().chain([snake.as_str()]) {
                assert_eq!(read(&with(&spot, word, &sample)).0, wanted, "{word}");
            }
        }
    }
}

#[test]
fn no_message_repeats_what_may_be_a_secret() {
    for (row, spot) in rows().into_iter().filter(|(row, _)| row.secret) {
        for wrong in [json!(["hush-hush"]), json!({"A": ["hush-hush"]}), json!({"=": "hush-hush"})] {
            let (_, problems) = check_server("s", &with(&spot, row.name, &wrong));
            assert!(!problems.is_empty(), "{}: {wrong}", row.name);
            assert!(!format!("{problems:?}").contains("hush"), "{}: {problems:?}", row.name);
        }
    }
}

const BEGIN: &str = "<!-- the table of keys: generated, a test keeps it true -->\n";
const END: &str = "<!-- the end of the table -->";

#[test]
fn the_table_of_keys_in_the_guide_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "| key | meaning | without it | part of what is approved |\n|---|---|---|---|\n".to_owned();
    for (row, (_, part)) in rows().into_iter().filter(|(row, _)| !matches!(row.kind, ServerKeyKind::Place)) {
        let approved = if matches!(row.approved, ServerApproved::No) { "no" } else { "yes" };
        let part = if part.is_empty() { String::new() } else { format!("{part}.") };
        let others: Vec<String> = row.aliases.iter().map(|word| format!("`{word}`")).collect();
        let others = if others.is_empty() { String::new() } else { format!(" Also {}.", others.join(", ")) };
        let unhonoured = row.unhonoured.map(|it| format!(" {}", it.sentence())).unwrap_or_default();
        let (name, about, default) = (row.name, row.about, row.default);
        let _ = writeln!(table, "| `{part}{name}` | {about}{others}{unhonoured} | {default} | {approved} |");
    }
    let wanted = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == wanted,
        "docs/mcp.md is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm-catalog --test it server_keys"
    );
}
