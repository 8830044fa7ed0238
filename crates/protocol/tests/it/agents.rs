//! The dialects of other agents: how they refuse, and what is lost between any two of them.

use ollm_protocol::dialect::AGENTS;
use ollm_protocol::dialect::agents::{AgentDialect, AgentEvent, Capabilities, Part, Pick, Way};
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, End, Event, EventKind, Flow, Output, Reply, Request, Verdict, joined};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{HOOK, cases, said_at};

#[test]
fn a_question_blocks_or_is_put_and_never_lets_the_tool_run() {
    for agent in AGENTS {
        for event in agent.events.iter().filter(|event| event.kind == EventKind::BeforeTool) {
            let mut request = Request::new(Event::unchecked(EventKind::BeforeTool, []));
            event.name.clone_into(&mut request.spelling.event);
            let reply = agent.write_verdict(&request, &Verdict::ask("is this meant?"));
            let flow =
                said_at(*agent, EventKind::BeforeTool, End::Exited(reply.exit.into()), &reply.stdout, &reply.stderr)
                    .verdict
                    .flow;
            assert_eq!(
                flow,
                if event.can.ask.is_possible() { Flow::Ask } else { Flow::Block },
                "{} {}",
                agent.name,
                event.name
            );
        }
    }
}

#[test]
fn exit_2_with_a_reason_refuses_in_every_agents_dialect() {
    for agent in AGENTS {
        for kind in EventKind::all() {
            let answer = said_at(*agent, kind, End::Exited(2), b"", b"not today\n");
            assert_eq!((answer.verdict, answer.failure), (Verdict::block("not today"), None), "{}", agent.name);
        }
    }
}

#[test]
fn what_an_agent_cannot_name_is_refused_in_the_way_it_declares() {
    for agent in AGENTS {
        let request = Request::new(Event::unchecked(EventKind::Custom, []));
        let reply = agent.write_verdict(&request, &Verdict::block("not today"));
        let answer = said_at(*agent, EventKind::Custom, End::Exited(reply.exit.into()), &reply.stdout, &reply.stderr);
        assert_eq!(answer.verdict.flow, Flow::Block, "{}", agent.name);
        assert_eq!(answer.verdict.reasons, ["not today"], "{}", agent.name);
    }
}

#[test]
fn an_agent_declares_each_event_once_and_no_empty_answer() {
    for agent in AGENTS {
        assert!(!agent.event_fields.is_empty() && !agent.checked.is_empty(), "{}", agent.name);
        for (at, event) in agent.events.iter().enumerate() {
            let same = |other: &&AgentEvent| other.name == event.name && other.kind == event.kind;
            let is_shape = |event: &AgentEvent| matches!(event.pick, Pick::Shaped(_));
            let twins = agent.events.iter().skip(at + 1).filter(same).filter(|_| !is_shape(event));
            assert_eq!(twins.count(), 0, "{} {}", agent.name, event.name);
            for (_, way) in event.can.all() {
                if let Way::Json(form) = way {
                    assert!(!form.is_empty(), "{} {}", agent.name, event.name);
                }
            }
        }
    }
}

#[test]
fn a_prompt_of_a_hook_is_context_or_else_told() {
    let claude = AGENTS.iter().find(|agent| agent.name == "claude").unwrap();
    let verdict = Verdict { prompts: vec!["Run the tests.".to_owned()], ..Verdict::default() };
    for (event, answer) in [
        (
            "PostToolUse",
            json!({"hookSpecificOutput": {"additionalContext": "Run the tests.", "hookEventName": "PostToolUse"}}),
        ),
        ("Stop", json!({"systemMessage": "Run the tests."})),
    ] {
        let request = claude.read_event(json!({"hook_event_name": event}).to_string().as_bytes()).unwrap();
        let reply = claude.write_verdict(&request, &verdict);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&reply.stdout).unwrap(), answer);
    }
}

/// What an agent with these capabilities makes of a verdict; an independent account of what may be lost.
fn kept(agent: &AgentDialect, kind: EventKind, can: &Capabilities, verdict: &Verdict, changed: bool) -> Verdict {
    let reason = joined(&verdict.reasons).map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    let refused = |flow| Verdict {
        flow,
        reasons: vec![reason.clone().unwrap_or("refused by a hook".to_owned())],
        ..Verdict::default()
    };
    let ends = matches!(kind, EventKind::AfterAgent | EventKind::SubagentStop);
    match verdict.flow {
        Flow::Halt if can.halt.is_possible() => {
            return refused(if halts(&can.halt) { Flow::Halt } else { Flow::Block });
        }
        Flow::Halt if ends => {}
        Flow::Ask if kind == EventKind::ApprovalRequest || can.ask.is_possible() => {}
        Flow::Halt | Flow::Block | Flow::Ask if can.block.is_possible() => {
            return refused(if halts(&can.block) && halts_anywhere(agent, kind) { Flow::Halt } else { Flow::Block });
        }
        _ => {}
    }
    let approves_it = kind != EventKind::ApprovalRequest || verdict.flow == Flow::Allow;
    let unchanged = changed && !(can.modify.is_possible() && approves_it);
    let unreplaced = verdict.result.is_some() && kind == EventKind::AfterTool && !can.result.is_possible();
    if (unchanged || unreplaced) && can.block.is_possible() && !verdict.flow.refuses() {
        return refused(Flow::Block);
    }
    let flow = match verdict.flow {
        Flow::Ask if can.ask.is_possible() => Flow::Ask,
        Flow::Allow if can.allow.is_possible() => Flow::Allow,
        _ if changed && !unchanged && approves(&can.modify) => Flow::Allow,
        _ => Flow::NoOpinion,
    };
    let patch = if changed && !unchanged { verdict.patch.clone() } else { Map::new() };
    let result = verdict.result.clone().filter(|_| kind == EventKind::AfterTool);
    let (mut for_model, mut told) = (verdict.context.clone(), verdict.messages.clone());
    if verdict.flow.refuses()
        || (verdict.flow == Flow::Ask && !can.ask.is_possible() && kind != EventKind::ApprovalRequest)
    {
        let reason = reason.unwrap_or("refused by a hook".to_owned());
        if kind.row().power == Power::Feedback && can.context.is_possible() {
            for_model.insert(0, reason);
        } else {
            told.push(reason);
        }
    }
    if !can.result.is_possible() {
        for_model.extend(result.iter().map(|result| result.as_str().unwrap().to_owned()));
    }
    if !can.context.is_possible() {
        told.append(&mut for_model);
    }
    let said = |way: Way, texts: Vec<String>| if way.is_possible() { texts } else { Vec::new() };
    // Plain text is shown to the person; of a hook it means nothing.
    let told = if matches!(can.message, Way::Text) { Vec::new() } else { told };
    let (context, messages) = (said(can.context, for_model), said(can.message, told));
    let result = result.filter(|_| can.result.is_possible());
    Verdict { flow, patch, context, messages, result, ..Verdict::default() }
}

/// Whether texts arrived: each in its place, between any other words.
fn arrived(texts: &[String], expected: &[String]) -> bool {
    let text = texts.join("\n");
    expected.is_empty() == text.is_empty() && expected.iter().all(|expected| text.contains(expected.as_str()))
}

fn halts(way: &Way) -> bool {
    let ends = |path: &str| path == "continue" || path.ends_with("interrupt");
    matches!(way, Way::Json(form) if matches!(form.first(), Some((path, Part::Flag(_))) if ends(path)))
}

/// Whether `continue: false` is how the agent ends a turn at this event.
fn halts_anywhere(agent: &AgentDialect, kind: EventKind) -> bool {
    agent.events.iter().any(|event| event.kind == kind && halts(&event.can.halt))
}

fn approves(way: &Way) -> bool {
    matches!(way, Way::Json(form) if form.iter().any(|(_, part)| *part == Part::Word("allow")))
}

fn any_agent() -> impl Strategy<Value = &'static AgentDialect> {
    prop::sample::select(AGENTS.to_vec())
}

fn telling_kind() -> impl Strategy<Value = EventKind> {
    let kinds = [
        EventKind::BeforeTool,
        EventKind::AfterTool,
        EventKind::BeforeAgent,
        EventKind::AfterAgent,
        EventKind::SessionStart,
        EventKind::ApprovalRequest,
        EventKind::PreCompress,
        EventKind::Notification,
        EventKind::SessionEnd,
        EventKind::PostCompress,
        EventKind::SubagentStart,
        EventKind::SubagentStop,
        EventKind::Error,
    ];
    prop_oneof![2 => Just(EventKind::BeforeTool), 3 => prop::sample::select(kinds.to_vec())]
}

fn spoken_verdict() -> impl Strategy<Value = Verdict> {
    let texts = || prop::collection::vec("[a-z]{1,8}", 0..3);
    let patch = prop::option::of("[a-z]{1,8}");
    (testkit::flow(), texts(), texts(), texts(), patch, any::<bool>()).prop_map(
        |(flow, reasons, context, messages, patch, result)| Verdict {
            flow,
            reasons,
            context,
            messages,
            patch: patch.map(|command| Map::from_iter([("command".to_owned(), command.into())])).unwrap_or_default(),
            result: result.then(|| "other".into()),
            ..Verdict::default()
        },
    )
}

proptest! {
    #![proptest_config(cases(1024))]

    /// A host A asks, a hook written for B answers, and A hears what both can say.
    #[test]
    fn between_any_two_agents_only_that_is_lost_which_one_of_them_cannot_say(
        host in any_agent(), hook in any_agent(), kind in telling_kind(), verdict in spoken_verdict(),
    ) {
        let event = match kind {
            EventKind::BeforeTool | EventKind::AfterTool => {
                Event::unchecked(kind, [("tool_name", "shell".into()), ("args", json!({"command": "ls -R ."})), ("session_id", "s".into())])
            }
            EventKind::ApprovalRequest => {
                Event::unchecked(kind, [("operation", "shell".into()), ("details", json!({"command": "ls -R ."})), ("session_id", "s".into())])
            }
            _ => Event::unchecked(kind, [("session_id", "s".into())]),
        };
        let asked = host.read_event(&host.write_event(&event, &HOOK)).unwrap();
        prop_assert_eq!(asked.event.kind, kind);
        let heard = hook.read_event(&hook.write_event(&asked.event, &HOOK)).unwrap();
        prop_assert_eq!(heard.event.kind, kind);
        if kind.is_tool_call() {
            let command = heard.event.args().and_then(|args| args.get("command").cloned());
            prop_assert_eq!(command, Some("ls -R .".into()), "{} to {}", host.name, hook.name);
        }

        let changed = matches!(kind, EventKind::BeforeTool | EventKind::ApprovalRequest) && !verdict.patch.is_empty();
        let reply = hook.write_verdict(&heard, &verdict);
        let answer = said_at(hook, kind, End::Exited(reply.exit.into()), &reply.stdout, &reply.stderr);
        prop_assert_eq!(&answer.failure, &None);
        let said = kept(hook, kind, &hook.capabilities(&heard), &verdict, changed);
        prop_assert_eq!(answer.verdict.flow, said.flow, "{} said to {}", reply_text(&reply), hook.name);
        prop_assert_eq!(&answer.verdict.result, &said.result, "{} said to {}", reply_text(&reply), hook.name);
        let (context, messages) = (&answer.verdict.context, &answer.verdict.messages);
        prop_assert!(arrived(context, &said.context), "{} said to {}: {context:?}", reply_text(&reply), hook.name);
        prop_assert!(arrived(messages, &said.messages), "{} said to {}: {messages:?}", reply_text(&reply), hook.name);

        let reply = host.write_verdict(&asked, &answer.verdict);
        let end = said_at(host, kind, End::Exited(reply.exit.into()), &reply.stdout, &reply.stderr);
        prop_assert_eq!(&end.failure, &None);
        let both = kept(host, kind, &host.capabilities(&asked), &answer.verdict, changed && !said.patch.is_empty());
        prop_assert_eq!(end.verdict.flow, both.flow, "{} said to {}", reply_text(&reply), host.name);
        prop_assert_eq!(&end.verdict.result, &both.result, "{} said to {}", reply_text(&reply), host.name);
        let (context, messages) = (&end.verdict.context, &end.verdict.messages);
        prop_assert!(arrived(context, &both.context), "{} said to {}: {context:?}", reply_text(&reply), host.name);
        prop_assert!(arrived(messages, &both.messages), "{} said to {}: {messages:?}", reply_text(&reply), host.name);
        prop_assert!(end.verdict.flow < Flow::Ask || !end.verdict.reasons.is_empty() || hook_has_no_reason(host, kind));
        // A changed command arrives in full, under the host's own name for it.
        if !both.patch.is_empty() && end.verdict.flow < Flow::Block {
            let patch = &end.verdict.patch;
            let command = patch.get("command").or_else(|| patch.get("commands")?.get(0)).or_else(|| patch.get("command_line"));
            prop_assert_eq!(command, verdict.patch.get("command"));
        }
        // One document or none, and never both streams.
        prop_assert!(reply.stdout.is_empty() || reply.stderr.is_empty());
    }

    #[test]
    fn an_event_survives_the_way_to_a_hook_of_any_agent_and_back(event in testkit::event()) {
        for agent in AGENTS {
            let read = agent.read_event(&agent.write_event(&event, &HOOK)).unwrap().event;
            prop_assert_eq!(read.kind, event.kind, "{}", agent.name);
            let changed = ["tool_name", "args", "operation", "details", "attempt", "error", "response", "timestamp", "cwd", "path"];
            // Cursor has a result as text, and Gemini CLI an error in it.
            let is_text = ["cursor", "gemini"].contains(&agent.name);
            let is_kept = |name: &str| !changed.contains(&name) && (name != "result" || !is_text);
            for (name, value) in event.data.iter().filter(|(name, _)| is_kept(name)) {
                prop_assert_eq!(read.data.get(name), Some(value), "{} in {}", name, agent.name);
            }
        }
    }
}

fn reply_text(reply: &Reply) -> String {
    format!("[{}] {}{}", reply.exit, String::from_utf8_lossy(&reply.stdout), String::from_utf8_lossy(&reply.stderr))
}

/// opencode is told no reason where it asks for permission.
fn hook_has_no_reason(agent: &AgentDialect, kind: EventKind) -> bool {
    agent.name == "opencode" && kind == EventKind::ApprovalRequest
}

#[test]
fn an_event_that_is_only_told_says_so_where_the_agent_shows_something() {
    for agent in AGENTS {
        for event in agent.events.iter().filter(|event| !event.can.block.is_possible() && !event.can.ask.is_possible())
        {
            let mut request = Request::new(Event::unchecked(event.kind, [("eventName", event.name.into())]));
            event.name.clone_into(&mut request.spelling.event);
            let reply = agent.write_verdict(&request, &Verdict::block("not today"));
            let said = String::from_utf8(reply.stdout).unwrap();
            let feedback = event.kind.row().power == Power::Feedback && event.can.context.is_possible();
            assert_eq!(
                said.contains("not today"),
                event.can.message.is_possible() || feedback,
                "{} {}: {said}",
                agent.name,
                event.name
            );
            assert_eq!((reply.exit, reply.stderr.len()), (0, 0), "{} {}", agent.name, event.name);
        }
    }
}

/// Verdicts that each say one thing, by the capability that carries it.
fn said_alone(kind: EventKind) -> Vec<(&'static str, Verdict)> {
    let text = || vec!["words".to_owned()];
    let patch = json!({"command": "ls -l"}).as_object().unwrap().clone();
    let verdicts = [
        ("allow", Verdict { flow: Flow::Allow, ..Verdict::default() }),
        ("block", Verdict::block("words")),
        ("modify", Verdict { patch, ..Verdict::default() }),
        ("result", Verdict { result: Some(json!("words")), ..Verdict::default() }),
        ("tools", Verdict { tools: Some(vec!["shell".to_owned()]), ..Verdict::default() }),
        ("context", Verdict { context: text(), ..Verdict::default() }),
        ("message", Verdict { messages: text(), ..Verdict::default() }),
    ];
    let means_something = |name: &str| match name {
        "allow" => matches!(kind, EventKind::BeforeTool | EventKind::ApprovalRequest),
        "modify" => kind == EventKind::BeforeTool,
        "result" => kind == EventKind::AfterTool,
        "tools" => kind == EventKind::BeforeToolSelection,
        _ => true,
    };
    verdicts.into_iter().filter(|(name, _)| means_something(name)).collect()
}

#[test]
fn what_an_agent_is_not_told_is_what_its_table_lacks() {
    for agent in AGENTS {
        for event in agent.events {
            let args = json!({"command": "ls"});
            let data = [("tool_name", json!("shell")), ("args", args)];
            let mut request = Request::new(Event::unchecked(event.kind, data));
            event.name.clone_into(&mut request.spelling.event);
            let silent = agent.write_verdict(&request, &Verdict::default());
            assert_eq!(agent.unheard(&request, &Verdict::default()), None);
            for (name, verdict) in said_alone(event.kind) {
                let what = format!("{} {} {name}", agent.name, event.name);
                let way = event.can.all().into_iter().find(|(known, _)| *known == name).unwrap().1;
                let is_feedback = event.kind.row().power == Power::Feedback;
                let by_context = name == "block" && is_feedback && event.can.context.is_possible();
                let lost = agent.unheard(&request, &verdict);
                assert_eq!(lost.is_none(), way.is_possible() || by_context, "{what}: {lost:?}");
                let is_silent = agent.write_verdict(&request, &verdict) == silent;
                let by_message = lost.as_ref().is_some_and(|_| event.can.message.is_possible() && name != "allow");
                let instead = lost.as_ref().is_some_and(|lost| lost.contains(", so ")) || by_message;
                assert_eq!(is_silent, lost.is_some() && !instead, "{what}: {lost:?}");
            }
        }
    }
}

#[test]
fn an_end_that_an_agent_cannot_be_told_is_a_refusal_and_known_as_such() {
    for agent in AGENTS {
        for event in agent.events {
            let mut request = Request::new(Event::unchecked(event.kind, []));
            event.name.clone_into(&mut request.spelling.event);
            let halt = Verdict { flow: Flow::Halt, ..Verdict::block("words") };
            let lost = agent.unheard(&request, &halt);
            assert_eq!(lost.is_none(), event.can.halt.is_possible(), "{} {}: {lost:?}", agent.name, event.name);
        }
    }
}

#[test]
fn what_ends_a_turn_refuses_as_well_where_the_event_would_happen_all_the_same() {
    let ends = |agent: &str, event: &str| {
        let agent = AGENTS.iter().find(|known| known.name == agent).unwrap();
        let kind = agent.events.iter().find(|known| known.name == event).unwrap().kind;
        let mut request = Request::new(Event::unchecked(kind, []));
        event.clone_into(&mut request.spelling.event);
        let reply = agent.write_verdict(&request, &Verdict { flow: Flow::Halt, ..Verdict::block("enough") });
        (reply.exit, String::from_utf8(reply.stdout).unwrap())
    };
    let both = "{\"continue\":false,\"stopReason\":\"enough\",\"decision\":\"block\",\"reason\":\"enough\"}\n";
    for (agent, event) in [
        ("claude", "UserPromptSubmit"),
        ("claude", "PreCompact"),
        ("claude", "ConfigChange"),
        ("claude", "TaskCreated"),
        ("qwen", "UserPromptSubmit"),
        ("qwen", "PreCompact"),
        ("qwen", "TodoCreated"),
    ] {
        assert_eq!(ends(agent, event), (0, both.to_owned()), "{agent} {event}");
    }
    // A refused end goes on, which is the opposite.
    let alone = "{\"continue\":false,\"stopReason\":\"enough\"}\n";
    for (agent, event) in [("claude", "Stop"), ("claude", "SubagentStop"), ("qwen", "Stop"), ("claude", "TeammateIdle")]
    {
        assert_eq!(ends(agent, event), (0, alone.to_owned()), "{agent} {event}");
    }
    assert_eq!(ends("droid", "PreCompact"), (2, String::new()));
}

#[test]
fn a_system_message_is_for_the_person_where_the_agent_shows_it() {
    for (agent, is_shown) in [("claude", true), ("gemini", true), ("codex", true), ("cline", false), ("cursor", false)]
    {
        let dialect = ollm_protocol::dialect::by_name(agent).unwrap();
        let output = Output { stdout: br#"{"systemMessage": "look"}"#, stderr: b"", end: End::Exited(0) };
        let verdict = dialect.read_verdict(EventKind::BeforeTool, &output).verdict;
        let told = (verdict.messages, verdict.system_messages);
        let look = vec!["look".to_owned()];
        assert_eq!(told, if is_shown { (look, vec![]) } else { (vec![], look) }, "{agent}");
    }
}

#[test]
fn calls_of_real_clients_are_known_under_our_names() {
    let call = |agent: &str, bytes: Value| {
        let dialect = ollm_protocol::dialect::by_name(agent).unwrap();
        let event = dialect.read_event(bytes.to_string().as_bytes()).unwrap().event;
        (event.text("tool_name").unwrap().to_owned(), event.args().cloned().unwrap_or_default())
    };
    let cline = |tool: &str, input: Value| {
        call(
            "cline",
            json!({"hookName": "tool_call", "taskId": "t", "tool_call": {"id": "1", "name": tool, "input": input}}),
        )
    };
    for commands in [json!(["git push -f"]), json!("git push -f"), json!({"commands": "git push -f"})] {
        assert_eq!(cline("run_commands", commands).1["command"], "git push -f");
    }
    assert_eq!(cline("editor", json!({"path": "a", "new_text": "x"})).1["file_path"], "a");
    assert_eq!(cline("github__create_issue", json!({})).0, "mcp__github__create_issue");
    let opencode = |tool: &str, args: Value| {
        call("opencode", json!({"hook": "tool.execute.before", "input": {"tool": tool}, "output": {"args": args}}))
    };
    assert_eq!(opencode("plan_exit", json!({})).0, "plan_exit");
    assert_eq!(opencode("github_create_issue", json!({})).0, "mcp__github__create_issue");
    let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch";
    assert_eq!(opencode("apply_patch", json!({"patchText": patch})).1["path"], "a.rs");
    let droid = |tool: &str, input: Value| {
        call("droid", json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input}))
    };
    assert_eq!(droid("LS", json!({"directory_path": "/src"})).1["path"], "/src");
    assert_eq!(droid("Glob", json!({"folder": "/src"})).1["path"], "/src");
}

#[test]
fn a_call_of_a_server_has_the_same_arguments_under_every_agent_and_cline_has_it_in_its_own_form() {
    let call = json!({"server_name": "git", "tool_name": "push", "arguments": {"remote": "origin"}});
    let wire = json!({"hookName": "tool_call", "tool_call": {"name": "use_mcp_tool", "input": call}});
    let cline = ollm_protocol::dialect::by_name("cline").unwrap();
    let request = cline.read_event(wire.to_string().as_bytes()).unwrap();
    assert_eq!(request.event.text("tool_name"), Some("mcp__git__push"));
    assert_eq!(request.event.data["args"], json!({"remote": "origin"}));
    let written = crate::json(&cline.write_event(&request.event, &HOOK));
    assert_eq!(written["tool_call"], json!({"name": "use_mcp_tool", "input": call}));
    assert_eq!(written["preToolUse"], json!({"toolName": "use_mcp_tool", "parameters": call}));
    let answer = json!({"overrideInput": {"server_name": "git", "tool_name": "push", "arguments": {"remote": "fork"}}});
    let verdict = said_at(cline, EventKind::BeforeTool, End::Exited(0), answer.to_string().as_bytes(), b"").verdict;
    assert_eq!(Value::Object(verdict.patch.clone()), json!({"remote": "fork"}));
    assert_eq!(crate::json(&cline.write_verdict(&request, &verdict).stdout), answer);
}
