//! The rows of the keys of a server, each walked: read, approved, shown and described as it says.

use ollm_catalog::{ServerSpec, check_server};
use ollm_protocol::{Origin, Source};
use ollm_trust::Approvable;
use serde_json::{Value, json};

/// A server of a project, as it is declared.
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
