//! The examples of the design document: messages, a manifest, approvals, a configuration.

use serde_json::json;

use super::{Example, check};

const MANIFEST: &str = r#"{
  "name": "github-integration",
  "version": "1.0.0",
  "description": "GitHub integration for OLLM",
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": {
        "GITHUB_TOKEN": "${GITHUB_TOKEN}"
      }
    }
  },
  "hooks": {
    "session_start": [
      {
        "name": "init-github",
        "command": "node",
        "args": ["hooks/init.js"]
      }
    ],
    "before_tool": [
      {
        "name": "validate-github",
        "command": "node",
        "args": ["hooks/validate.js"]
      }
    ]
  },
  "settings": [
    {
      "name": "githubToken",
      "envVar": "GITHUB_TOKEN",
      "sensitive": true,
      "description": "GitHub personal access token"
    },
    {
      "name": "defaultRepo",
      "description": "Default repository for operations",
      "default": "owner/repo"
    }
  ],
  "skills": [
    {
      "name": "create-pr",
      "description": "Create a pull request",
      "prompt": "Create a pull request with the following changes..."
    }
  ]
}
"#;

const APPROVALS: &str = r#"{
  "version": 1,
  "approvals": [
    {
      "source": ".ollm/extensions/my-ext/hooks/validate.js",
      "hash": "sha256:abc123def456...",
      "approvedAt": "2024-01-15T10:30:00Z",
      "approvedBy": "user"
    }
  ]
}
"#;

const CONFIG: &str = "hooks:\n  enabled: true\n  timeout: 30000\n  trustWorkspace: false\n\nextensions:\n  enabled: true\n  \
                      directories:\n    - ~/.ollm/extensions\n    - .ollm/extensions\n  autoEnable: true\n\nmcp:\n  \
                      enabled: true\n  connectionTimeout: 10000\n  servers: {}\n";

#[test]
fn the_protocols_messages() {
    let event = json!({"event": "before_model", "data": {
        "session_id": "abc123", "prompt": "User prompt text", "model": "llama2",
        "messages": [{"role": "user", "content": "Hello"}],
    }});
    let script = "import json, sys\nevent = json.load(sys.stdin)\nassert event['event'] == 'before_model'\n\
                  assert event['data']['prompt'] == 'User prompt text' and event['data']['session_id'] == 'abc123'\n\
                  print(json.dumps({'continue': True, 'systemMessage': 'Additional context from hook', 'data': {'customField': 'value'}}))\n";
    check(vec![
        Example::new("input and output format", event)
            .hook("before_model", "home/.ollm/hooks/hook.py", script)
            .gives("/hooks/0/status", "ok")
            .gives("/systemMessage", "Additional context from hook")
            .gives("/data/customField", "value"),
    ]);
}

#[test]
fn the_manifest_loads_and_its_hooks_run_once_they_are_approved() {
    let example = Example::new("manifest", json!({}))
        .file("home/.ollm/extensions/github-integration/manifest.json", MANIFEST)
        .file("home/.ollm/extensions/github-integration/hooks/init.js", "console.log('{\"continue\": true}')")
        .file(
            "home/.ollm/extensions/github-integration/hooks/validate.js",
            "console.log(JSON.stringify({continue: false, systemMessage: process.env.GITHUB_TOKEN ? 'set' : 'unset'}))",
        );
    let lab = example.lab();
    let info = lab.run(&["ext", "info", "github-integration", "--json"]).answer();
    assert_eq!((&info["version"], &info["description"]), (&json!("1.0.0"), &json!("GitHub integration for OLLM")));
    assert_eq!((&info["mcpServers"], &info["skills"]), (&json!(["github"]), &json!(["create-pr"])));
    assert_eq!(info["settings"], json!(["githubToken", "defaultRepo"]));
    // Ruling 9: an extension's hooks need approval wherever it lies.
    assert_eq!(lab.run(&["hook", "run", "before_tool"]).skip("validate-github")["reason"], "untrusted");
    let digest = info["digest"].as_str().unwrap_or_else(|| panic!("{info:#}"));
    let trusted = lab.run(&["ext", "trust", "github-integration", "--digest", digest, "--uncovered"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let ran = lab.run(&["hook", "run", "before_tool"]);
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("unset")), "{ran:?}");
    assert_eq!(lab.run(&["hook", "run", "session_start"]).hook("init-github")["status"], "ok");
    let skill = lab.run(&["skill", "show", "create-pr"]);
    assert!(skill.stdout.contains("Create a pull request with the following changes..."), "{skill:?}");
}

/// Ruling 11: what lacks our digest approves nothing, is kept, and is no reason to complain.
#[test]
fn the_approvals_of_another_program_are_kept_and_approve_nothing() {
    let script = "touch LAB/ran";
    let declared = json!({"hooks": {"before_tool": [{"name": "hook", "command": "sh", "args": ["validate.sh"]}]}});
    let example = Example::new("approvals", json!({"event": "before_tool", "data": {}}))
        .file("home/.ollm/trusted-hooks.json", APPROVALS)
        .file("project/.ollm/hooks/validate.sh", script)
        .file("project/.ollm/hooks/hook.json", declared.to_string());
    let lab = example.lab();
    let ran = example.run(&lab);
    assert_eq!((ran.code, &ran.skip("hook")["reason"]), (0, &json!("untrusted")));
    lab.approve("hook");
    let kept = std::fs::read_to_string(lab.home.join(".ollm/trusted-hooks.json")).unwrap();
    assert!(kept.contains(".ollm/extensions/my-ext/hooks/validate.js"), "{kept}");
    assert_eq!(example.run(&lab).hook("hook")["status"], "ok");
}

#[test]
fn the_configuration_loads_without_a_word_and_says_what_applies_anyway() {
    let lab = Example::new("configuration", json!({})).file("home/.ollm/config.yaml", CONFIG).lab();
    let valid = lab.run(&["config", "validate"]);
    let fine = "ollm: nothing is wrong with the configuration (~/.ollm/config.yaml); `ollm hook validate` checks hook files, `ollm doctor` everything\n";
    assert_eq!((valid.code, valid.stderr.as_str()), (0, fine), "{valid:?}");
    for (key, value) in [
        ("hooks.enabled", "true\n"),
        ("hooks.timeout", "30000\n"),
        ("hooks.trustWorkspace", "false\n"),
        ("extensions.autoEnable", "true\n"),
        ("mcp.connectionTimeout", "10000\n"),
    ] {
        assert_eq!(lab.run(&["config", "get", key]).stdout, value, "{key}");
    }
}
