//! Every spelling of every event, and the dialect a spelling stands for.

use std::time::Duration;

use ollm_protocol::dialect::{self, AGENT, DIALECTS, GATE, OLLM, RPC};
use ollm_protocol::event::Power;
use ollm_protocol::{EventKind, OnFailure};

/// Canonical name, what a refusal does, and the spellings in `gate`, `rpc` and `agent`; `ollm` keeps the canonical one.
const TABLE: &[(&str, Power, &str, &str, &str)] = &[
    ("session_start", Power::Stops, "on-session-start", "", "SessionStart"),
    ("session_end", Power::Reports, "on-session-end", "", "SessionEnd"),
    ("before_agent", Power::Stops, "pre-execution", "promptSubmit", "UserPromptSubmit"),
    ("after_agent", Power::Stops, "post-execution", "agentStop", "Stop"),
    ("before_model", Power::Stops, "", "", ""),
    ("after_model", Power::Stops, "", "", ""),
    ("before_tool_selection", Power::Stops, "", "before_tool_selection", ""),
    ("before_tool", Power::Stops, "pre-tool-call", "", "PreToolUse"),
    ("after_tool", Power::Feedback, "post-tool-call", "", "PostToolUse"),
    ("pre_compress", Power::Stops, "", "", "PreCompact"),
    ("post_compress", Power::Reports, "", "", "PostCompact"),
    ("context_overflow", Power::Reports, "on-context-overflow", "", ""),
    ("notification", Power::Reports, "", "notification", "Notification"),
    ("approval_request", Power::Stops, "on-approval-request", "", "PermissionRequest"),
    ("error", Power::Reports, "on-error", "", ""),
    ("file_created", Power::Reports, "on-file-change", "fileCreated", "FileChanged"),
    ("file_edited", Power::Reports, "on-file-change", "fileEdited", "FileChanged"),
    ("file_deleted", Power::Reports, "on-file-change", "fileDeleted", "FileChanged"),
    ("git_commit", Power::Stops, "on-git-commit", "", ""),
    ("user_triggered", Power::Reports, "", "userTriggered", ""),
    ("subagent_start", Power::Reports, "", "", "SubagentStart"),
    ("subagent_stop", Power::Stops, "", "", "SubagentStop"),
    ("custom", Power::Stops, "custom", "", ""),
];

#[test]
fn every_alias_names_its_event_and_every_dialect_writes_its_own() {
    assert_eq!(TABLE.len(), EventKind::all().count());
    for (kind, (name, power, gate, rpc, agent)) in EventKind::all().zip(TABLE) {
        assert_eq!((kind.name(), kind.row().power), (*name, *power));
        assert_eq!(EventKind::from_name(name), Some(kind));
        for (dialect, alias) in [(OLLM, ""), (GATE, *gate), (RPC, *rpc), (AGENT, *agent)] {
            let spelled = if alias.is_empty() { name } else { alias };
            assert_eq!(dialect.spell(kind), spelled, "{name} in {}", dialect.name());
            let named = dialect::event_named(spelled).unwrap();
            assert!(named.kinds.contains(&kind), "{spelled}");
            assert_eq!(named.kinds.len(), if spelled.contains("hange") { 3 } else { 1 }, "{spelled}");
            assert_eq!(named.custom, None);
        }
    }
}

#[test]
fn a_name_for_all_file_changes_stands_for_three_events() {
    let files = [EventKind::FileCreated, EventKind::FileEdited, EventKind::FileDeleted];
    assert_eq!(dialect::event_named("on-file-change").unwrap().kinds, files);
    assert_eq!(dialect::event_named("FileChanged").unwrap().kinds, files);
}

#[test]
fn a_custom_event_may_carry_its_name() {
    let named = dialect::event_named("custom:deploy:prod").unwrap();
    assert_eq!((named.kinds.as_slice(), named.custom.as_deref()), (&[EventKind::Custom][..], Some("deploy:prod")));
    assert_eq!(dialect::event_named("custom").unwrap().custom, None);
    assert!(dialect::event_named("custom:").is_err());
}

#[test]
fn an_unknown_name_is_an_error_that_names_the_nearest() {
    for (typed, nearest) in [
        ("before_tools", Some("before_tool")),
        ("beforetool", Some("before_tool")),
        ("pretooluse", Some("PreToolUse")),
        ("PreToolUs", Some("PreToolUse")),
        ("pre-tool-cal", Some("pre-tool-call")),
        ("filecreated", Some("fileCreated")),
        ("onFileChange", Some("on-file-change")),
        ("Before_Tool", Some("before_tool")),
        ("completely different", None),
        ("", None),
        (" before_tool", Some("before_tool")),
    ] {
        let error = dialect::event_named(typed).unwrap_err();
        assert_eq!((error.name.as_str(), error.nearest), (typed, nearest));
    }
    let error = dialect::event_named("before_tools").unwrap_err();
    assert_eq!(error.to_string(), "unknown event `before_tools`; did you mean `before_tool`?");
    assert_eq!(dialect::event_named("x").unwrap_err().to_string(), "unknown event `x`");
}

#[test]
fn a_name_of_any_length_costs_little() {
    assert_eq!(dialect::event_named(&"before_tool".repeat(100_000)).unwrap_err().nearest, None);
}

#[test]
fn the_spelling_of_an_event_key_chooses_the_dialect() {
    for (key, dialect) in [
        ("pre-tool-call", "gate"),
        ("on-file-change", "gate"),
        ("promptSubmit", "rpc"),
        ("fileEdited", "rpc"),
        ("PreToolUse", "agent"),
        ("Stop", "agent"),
        ("before_tool", "ollm"),
        ("notification", "ollm"),
        ("custom", "ollm"),
        ("custom:my-own Event", "ollm"),
    ] {
        assert_eq!(dialect::by_spelling(key).name(), dialect, "{key}");
    }
    for dialect in DIALECTS {
        for (_, spelled) in dialect.names() {
            assert_eq!(dialect::by_spelling(spelled).name(), dialect.name(), "{spelled}");
        }
    }
}

#[test]
fn each_dialect_is_found_by_its_name_and_has_its_own_defaults() {
    for (name, timeout, on_failure, runs_on, unit) in [
        ("ollm", 30, OnFailure::Allow, false, Duration::from_millis(1)),
        ("gate", 5, OnFailure::Block, false, Duration::from_millis(1)),
        ("rpc", 30, OnFailure::Allow, false, Duration::from_millis(1)),
        ("agent", 30, OnFailure::Allow, true, Duration::from_secs(1)),
    ] {
        let defaults = dialect::by_name(name).unwrap().defaults();
        assert_eq!(defaults.timeout, Duration::from_secs(timeout), "{name}");
        assert_eq!(defaults.on_failure, on_failure, "{name}");
        assert_eq!(defaults.runs_on_after_refusal, runs_on, "{name}");
        assert_eq!(defaults.timeout_unit, unit, "{name}");
    }
    assert!(dialect::by_name("nobody").is_none());
    assert!(dialect::by_name("OLLM").is_none());
}
