//! One event as every host sends it, and a hook of every dialect.

pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) event: &'static str,
    pub(crate) continues: (&'static str, &'static str, i32),
    pub(crate) refuses: (&'static str, &'static str, i32),
}

/// The same event as each host sends it, and what it expects to hear.
pub(crate) const HOSTS: &[Host] = &[
    Host {
        name: "ollm",
        event: r#"{"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}, "session_id": "s1"}}"#,
        continues: ("{\"continue\":true}\n", "", 0),
        refuses: ("{\"continue\":false,\"systemMessage\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "gate",
        event: r#"{"version": "1.0.0", "event": "pre-tool-call", "context": {"tool": "shell", "args": {"command": "ls"}},
                   "metadata": {"sessionId": "s1"}}"#,
        continues: ("{\"allow\":true}\n", "", 0),
        refuses: ("{\"allow\":false,\"message\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "rpc",
        event: r#"{"jsonrpc": "2.0", "method": "execute", "id": "x-7", "params": {"event": {"type": "before_tool",
                   "data": {"tool_name": "shell", "args": {"command": "ls"}, "session_id": "s1"}}, "context": {}}}"#,
        continues: ("{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":\"x-7\"}\n", "", 0),
        refuses: (
            "{\"jsonrpc\":\"2.0\",\"result\":{\"continue\":false,\"reason\":\"not today\"},\"id\":\"x-7\"}\n",
            "",
            0,
        ),
    },
    Host {
        name: "agent",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "shell", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "claude",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (NESTED_DENY, "", 0),
    },
    Host {
        name: "codex",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (NESTED_DENY, "", 0),
    },
    Host {
        name: "gemini",
        event: r#"{"hook_event_name": "BeforeTool", "session_id": "s1", "tool_name": "run_shell_command",
                   "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"decision\":\"deny\",\"reason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "qwen",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "run_shell_command",
                   "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (
            "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not today\",\
             \"hookEventName\":\"PreToolUse\"},\"decision\":\"deny\",\"reason\":\"not today\"}\n",
            "",
            0,
        ),
    },
    Host {
        name: "droid",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Execute", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "goose",
        event: r#"{"event": "PreToolUse", "session_id": "s1", "tool_name": "developer__shell", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"decision\":\"block\",\"reason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "cursor",
        event: r#"{"hook_event_name": "preToolUse", "conversation_id": "s1", "tool_name": "Shell", "tool_input": {"command": "ls"}}"#,
        continues: ("{}\n", "", 0),
        refuses: ("{\"permission\":\"deny\",\"user_message\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "copilot",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "kiro",
        event: r#"{"hook_event_name": "preToolUse", "session_id": "s1", "tool_name": "execute_bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "windsurf",
        event: r#"{"agent_action_name": "pre_run_command", "trajectory_id": "s1", "tool_info": {"command_line": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "cline",
        event: r#"{"hookName": "tool_call", "taskId": "s1", "tool_call": {"name": "run_commands", "input": {"commands": ["ls"]}}}"#,
        continues: ("", "", 0),
        refuses: ("{\"cancel\":true,\"errorMessage\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "opencode",
        event: r#"{"hook": "tool.execute.before", "input": {"sessionID": "s1", "tool": "bash"}, "output": {"args": {"command": "ls"}}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
];

const NESTED_DENY: &str = "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\
    \"permissionDecisionReason\":\"not today\",\"hookEventName\":\"PreToolUse\"}}\n";

pub(crate) struct Speaker {
    pub(crate) dialect: &'static str,
    pub(crate) event: &'static str,
    /// What its requests always hold.
    pub(crate) hears: &'static str,
    pub(crate) continues: &'static str,
    pub(crate) refuses: &'static str,
}

/// A hook of each dialect.
pub(crate) const SPEAKERS: &[Speaker] = &[
    Speaker {
        dialect: "ollm",
        event: "before_tool",
        hears: r#"'{"event":"before_tool","data":{'*'"session_id":"s1"'*'"sessionId":"s1"'*"#,
        continues: r#"printf '{"continue": true}'"#,
        refuses: r#"printf '{"continue": false, "systemMessage": "not today"}'"#,
    },
    Speaker {
        dialect: "gate",
        event: "pre-tool-call",
        hears: r#"'{"version":"1.0.0","event":"pre-tool-call","context":{'*'"tool":"'*'"hookName":"speaker"'*"#,
        continues: r#"printf '{"allow": true}'"#,
        refuses: r#"printf '{"allow": false, "message": "not today"}'"#,
    },
    Speaker {
        dialect: "rpc",
        event: "before_tool",
        hears: r#"'{"jsonrpc":"2.0","method":"execute","params":{"event":{"type":"before_tool"'*'"id":1}'"#,
        continues: r#"printf '{"jsonrpc": "2.0", "result": {}, "id": 1}'"#,
        refuses: r#"printf '{"jsonrpc": "2.0", "result": {"continue": false, "reason": "not today"}, "id": 1}'"#,
    },
    Speaker {
        dialect: "agent",
        event: "PreToolUse",
        hears: r#"'{"hook_event_name":"PreToolUse",'*'"tool_input":{'*'"command":"ls"'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "claude",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}}'"#,
    },
    Speaker {
        dialect: "codex",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "block", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "gemini",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"BeforeTool"'*'"tool_name":"run_shell_command"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "deny", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "qwen",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"run_shell_command"'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "droid",
        event: "before_tool",
        hears: r#"*'"tool_name":"Execute"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "goose",
        event: "before_tool",
        hears: r#"*'"event":"PreToolUse"'*'"tool_name":"developer__shell"'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "block", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "cursor",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"preToolUse"'*'"tool_name":"Shell"'*'"conversation_id":"s1"'*"#,
        continues: "printf '{}'",
        refuses: r#"printf '{"permission": "deny", "user_message": "not today"}'"#,
    },
    Speaker {
        dialect: "copilot",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"permissionDecision": "deny", "permissionDecisionReason": "not today"}'"#,
    },
    Speaker {
        dialect: "kiro",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"preToolUse"'*'"tool_name":"execute_bash"'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "windsurf",
        event: "before_tool",
        hears: r#"*'"agent_action_name":"pre_run_command"'*'"command_line":"ls"'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "cline",
        event: "before_tool",
        hears: r#"*'"hookName":"tool_call"'*'"name":"run_commands","input":{"commands":["ls"]}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"cancel": true, "errorMessage": "not today"}'"#,
    },
    Speaker {
        dialect: "opencode",
        event: "before_tool",
        hears: r#"*'"hook":"tool.execute.before"'*'"args":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
];
