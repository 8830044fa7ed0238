//! The properties of live servers that the specification asks for.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_mcp::{
    BlockingClient, Call, CallErrorKind, Endpoint, Ports, ReadyServer, ServerMemory, ServerState, ToolFilter,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::support::{
    args, assert_echoes, call, eventually, fleet, names, program, runs, scripted, settings, started, state, tool,
};

const CASES: u32 = 256;

/// A server in few lines, cheap to start. Its tools are what `TOOLS` says.
const SMALL: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say "{\"tools\":$TOOLS}" ;;
    *'"tools/call"'*) say '{"content":[],"structuredContent":{"word":"é","number":1.5}}' ;;
    esac
done
"#;

fn small(tools: &Value, words: &[String], env: &[(String, String)]) -> ReadyServer {
    let mut ready = program("/bin/sh", &["-c", SMALL, "small"]);
    if let Endpoint::Stdio { args, env: variables, .. } = &mut ready.endpoint {
        args.extend_from_slice(words);
        variables.push(("TOOLS".into(), tools.to_string()));
        variables.extend_from_slice(env);
    }
    ready
}

/// Spares the small server a question that it does not understand.
fn known() -> ServerMemory {
    ServerMemory { revision: Some("2025-11-25".into()), ..ServerMemory::default() }
}

/// Tries many cases against one fleet.
fn check<S: Strategy>(strategy: &S, test: impl Fn(&BlockingClient, S::Value) -> Result<(), TestCaseError>) {
    check_with(&fleet(settings(), Ports::default()), strategy, test);
}

fn check_with<S: Strategy>(
    fleet: &BlockingClient,
    strategy: &S,
    test: impl Fn(&BlockingClient, S::Value) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) };
    TestRunner::new(config).run(strategy, |case| test(fleet, case)).unwrap();
}

fn process(fleet: &BlockingClient) -> String {
    fleet.server("fake").unwrap().status().process.unwrap().to_string()
}

/// Words of a file of a process, which end with NUL.
fn words(pid: &str, file: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e15..1e15).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z$-]{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(any::<String>(), any_json(), 0..5).prop_map(|map| map.into_iter().collect())
}

#[test]
fn property_20_a_server_starts_with_its_command_and_arguments_and_connects_in_time() {
    check(&prop::collection::vec("[^\0]{0,12}", 0..6), |fleet, given| {
        fleet.add(small(&json!([]), &given, &[]), known());
        fleet.start("fake").unwrap();
        prop_assert_eq!(state(fleet), ServerState::Ready);
        let mut expected = ["/bin/sh", "-c", SMALL, "small"].map(String::from).to_vec();
        expected.extend(given);
        prop_assert_eq!(words(&process(fleet), "cmdline"), expected);
        Ok(())
    });
}

#[test]
fn property_21_a_server_that_fails_is_unavailable_and_nobody_else_is_affected() {
    let good = started("normal");
    let how = prop_oneof![
        Just(("/does/not/exist".to_owned(), "does not exist".to_owned())),
        (1..=255_i32).prop_map(|code| (format!("exit {code}"), format!("it exited with code {code}"))),
        "[a-z]{1,20}".prop_map(|word| (format!("echo {word} >&2"), word)),
        "[a-z ]{1,20}".prop_map(|word| (format!("echo '{word}'; exit 4"), "it exited with code 4".to_owned())),
    ];
    check_with(&good, &how, |fleet, (script, told)| {
        let bad = if script.starts_with('/') { program(&script, &[]) } else { program("/bin/sh", &["-c", &script]) };
        fleet.add(ReadyServer { name: "bad".into(), ..bad }, ServerMemory::default());
        let error = fleet.start("bad").unwrap_err();
        prop_assert!(error.to_string().contains(&told), "{}", error);
        let status = fleet.server("bad").unwrap().status();
        prop_assert!(matches!(status.state, ServerState::Failed(_)));
        prop_assert_eq!((status.state.word(), status.tools), ("error", 0));
        assert_echoes(fleet);
        Ok(())
    });
}

/// A server that ends when it is called, with this code and these last words.
fn crashing(extension: &str, code: i32, word: &str) -> ReadyServer {
    let end = format!("*'\"tools/call\"'*) echo {word} >&2; exit {code} ;;");
    let script = SMALL.replace("esac", &format!("{end}\n    esac")).replacen(
        "*'\"tools/call\"'*) say",
        "*'\"nothing\"'*) say",
        1,
    );
    let mut ready = program("/bin/sh", &["-c", &script, "small"]);
    if let Endpoint::Stdio { env, .. } = &mut ready.endpoint {
        env.push(("TOOLS".into(), json!([{"name": "t", "inputSchema": {}}]).to_string()));
    }
    ReadyServer { name: "bad".into(), extension: Some(extension.to_owned()), ..ready }
}

#[test]
fn property_31_a_crashed_server_is_named_with_its_extension_and_stops_no_other() {
    let good = started("normal");
    check_with(&good, &("[a-z]{1,8}", 1..=255_i32, "[a-z]{1,12}"), |fleet, (extension, code, word)| {
        fleet.add(crashing(&extension, code, &word), known());
        let error = fleet.call("bad", tool("t", json!({}))).unwrap().wait().unwrap_err();
        let told = error.to_string();
        prop_assert!(told.starts_with(&format!("MCP server `bad` of extension `{extension}`: ")), "{}", told);
        prop_assert!(told.contains(&format!("it exited with code {code}")) && told.contains(&word), "{}", told);
        assert_echoes(fleet);
        let _ = fleet.remove("bad");
        Ok(())
    });
}

#[test]
fn property_22_a_connected_server_offers_exactly_the_tools_it_lists() {
    let names_and_denied = prop::collection::btree_set("[a-zA-Z0-9_./-]{1,12}", 0..8).prop_flat_map(|names| {
        (Just(names.clone()), prop::sample::subsequence(names.iter().cloned().collect::<Vec<_>>(), 0..=names.len()))
    });
    check(&names_and_denied, |fleet, (listed, deny)| {
        let tools: Vec<_> = listed.iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
        let filter = ToolFilter { allow: None, deny: deny.clone() };
        fleet.add(ReadyServer { tools: filter, ..small(&json!(tools), &[], &[]) }, known());
        fleet.start("fake").unwrap();
        let offered: BTreeSet<_> = names(fleet).into_iter().collect();
        let expected: BTreeSet<_> = listed.into_iter().filter(|name| !deny.contains(name)).collect();
        prop_assert_eq!(offered, expected);
        Ok(())
    });
}

#[test]
fn property_23_a_disconnected_server_has_no_tools_and_no_process() {
    check(&(1..5_usize, any::<bool>()), |fleet, (count, remove)| {
        let tools: Vec<_> = (0..count).map(|number| json!({"name": format!("t{number}"), "inputSchema": {}})).collect();
        fleet.add(small(&json!(tools), &[], &[]), known());
        fleet.start("fake").unwrap();
        prop_assert_eq!(names(fleet).len(), count);
        let (pid, server) = (process(fleet), fleet.server("fake").unwrap());
        if remove {
            fleet.remove("fake").unwrap();
            prop_assert!(fleet.server("fake").is_err());
        } else {
            fleet.stop("fake").unwrap();
        }
        prop_assert_eq!((server.status().state, server.tools().len()), (ServerState::Stopped, 0));
        prop_assert!(!runs(&pid));
        Ok(())
    });
}

#[test]
fn property_25_schemas_arguments_and_results_keep_every_value_and_type() {
    check(&(any_object(), any_object()), |fleet, (input, output)| {
        let tool = json!({"name": "t", "description": "d", "inputSchema": input, "outputSchema": output});
        fleet.add(small(&json!([tool]), &[], &[]), known());
        fleet.start("fake").unwrap();
        prop_assert_eq!(fleet.server("fake").unwrap().tools(), vec![tool]);
        Ok(())
    });
    check_with(&started("normal"), &any_object(), |fleet, given| {
        let result = call(fleet, "echo", Value::Object(given.clone())).unwrap();
        prop_assert_eq!(&result["structuredContent"], &Value::Object(given));
        Ok(())
    });
}

#[test]
fn property_26_an_error_of_a_tool_is_told_and_hurts_nobody() {
    let error = (any::<i32>(), "[a-zA-Z0-9 é\u{1b}\n]{0,30}", prop::option::of(any_json()));
    check_with(&started("normal"), &error, |fleet, (code, message, data)| {
        let mut error = json!({"code": code, "message": message});
        // No data and data that is null are one and the same for the protocol.
        let data = data.filter(|data| !data.is_null());
        if let Some(data) = &data {
            error["data"] = data.clone();
        }
        let told = call(fleet, "raise", error).unwrap_err();
        let message = ollm_store::escape_for_people(&message).into_owned();
        prop_assert_eq!(told.kind, CallErrorKind::Refused { code, message, data: data.map(Box::new) });
        prop_assert_eq!(state(fleet), ServerState::Ready);
        Ok(())
    });
}

#[test]
fn property_32_a_server_has_exactly_the_environment_it_was_given() {
    let variables = prop::collection::btree_map("[A-Z][A-Z0-9_]{0,8}", "[^\0]{0,20}", 0..6)
        .prop_map(|map| map.into_iter().filter(|(name, _)| name != "TOOLS" && name != "PATH").collect::<Vec<_>>());
    check(&variables, |fleet, given| {
        fleet.add(small(&json!([]), &[], &given), known());
        fleet.start("fake").unwrap();
        let mut expected = vec!["PATH=/usr/local/bin:/usr/bin:/bin".to_owned(), "TOOLS=[]".to_owned()];
        expected.extend(given.iter().map(|(name, value)| format!("{name}={value}")));
        let mut found = words(&process(fleet), "environ");
        let mark = found.pop_if(|word| word.starts_with("OLLM_LIFELINE="));
        prop_assert!(mark.is_some(), "what it starts is found by this");
        prop_assert_eq!(found, expected);
        Ok(())
    });
}

#[test]
fn property_37_a_call_reaches_its_server_and_its_answer_or_failure_comes_back() {
    let fleet = started("normal");
    fleet.add(ReadyServer { name: "other".into(), ..scripted("normal") }, ServerMemory::default());
    let calls = prop::collection::vec((any::<bool>(), 0..4_u8, any::<u16>()), 1..6);
    check_with(&fleet, &calls, |fleet, calls| {
        let server = |first| if first { "fake" } else { "other" };
        let name = |kind| ["echo", "failed", "raise", "hang"][usize::from(kind)];
        let given = |number: u16| json!({"code": i32::from(number), "message": "no"});
        let limit = |kind| (kind == 3).then(|| Duration::from_millis(2));
        let begin = |(first, kind, number): &(bool, u8, u16)| {
            let call = Call { timeout: limit(*kind), ..tool(name(*kind), given(*number)) };
            fleet.call(server(*first), call).unwrap()
        };
        let pending: Vec<_> = calls.iter().map(begin).collect();
        for ((first, kind, number), pending) in calls.iter().zip(pending) {
            match (kind, pending.wait()) {
                (0, Ok(result)) => prop_assert_eq!(&result["structuredContent"], &given(*number)),
                (1, Ok(result)) => prop_assert_eq!(&result["isError"], &json!(true)),
                (2, Err(error)) => {
                    prop_assert_eq!(&error.server, server(*first));
                    let message = "no".to_owned();
                    prop_assert_eq!(
                        error.kind,
                        CallErrorKind::Refused { code: i32::from(*number), message, data: None }
                    );
                }
                (3, Err(error)) => {
                    let after = Duration::from_millis(2);
                    prop_assert_eq!(error.kind, CallErrorKind::TimedOut { what: "hang".into(), after });
                }
                (_, other) => prop_assert!(false, "{:?}", other),
            }
        }
        Ok(())
    });
}

#[test]
fn property_24_tools_of_live_servers_coexist_and_each_answers_for_its_own() {
    let tools = prop::collection::btree_set("[a-z]{1,6}", 1..4);
    let servers = prop::collection::btree_map("[a-z]{1,4}", tools, 2..4);
    check(&servers, |fleet, servers| {
        for (name, tools) in &servers {
            let listed: Vec<Value> = tools.iter().map(|tool| json!({"name": tool, "inputSchema": {}})).collect();
            fleet.add(ReadyServer { name: name.clone(), ..small(&listed.into(), &[], &[]) }, known());
        }
        for name in servers.keys() {
            fleet.start(name).unwrap();
        }
        let offered = |name: &String| -> BTreeSet<String> {
            let tools = fleet.server(name).unwrap().tools();
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let processes: BTreeSet<u32> =
            servers.keys().map(|name| fleet.server(name).unwrap().status().process.unwrap()).collect();
        prop_assert_eq!(processes.len(), servers.len(), "each is a process of its own");
        for (name, tools) in &servers {
            prop_assert_eq!(&offered(name), tools);
            let first = tools.first().unwrap();
            let answer = fleet.call(name, tool(first, json!({}))).unwrap().wait().unwrap();
            prop_assert_eq!(&answer["structuredContent"]["number"], &json!(1.5));
        }
        // One that goes takes only its own tools along.
        let (gone, stay) = (servers.keys().next().unwrap(), servers.keys().skip(1));
        fleet.stop(gone).unwrap();
        prop_assert_eq!(offered(gone), BTreeSet::new());
        for name in stay {
            prop_assert_eq!(&offered(name), &servers[name]);
        }
        for name in servers.keys() {
            fleet.remove(name).unwrap();
        }
        Ok(())
    });
}

#[test]
fn property_38_progress_and_structured_results_come_through() {
    let steps = prop::collection::vec("[a-z ]{0,10}", 0..6);
    check_with(&started("normal"), &(steps, any_object()), |fleet, (steps, structured)| {
        let result = json!({"content": [{"type": "text", "text": "t"}], "structuredContent": structured});
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let call = Call {
            tool: "give".into(),
            args: args(json!({"steps": steps, "result": result})),
            progress: Some(Arc::new(move |step| ear.lock().unwrap().push(step.message.unwrap()))),
            ..Call::default()
        };
        prop_assert_eq!(fleet.call("fake", call).unwrap().wait().unwrap(), result);
        eventually("all steps are heard", || heard.lock().unwrap().len() == steps.len());
        prop_assert_eq!(&*heard.lock().unwrap(), &steps);
        Ok(())
    });
}

#[test]
fn property_40_settings_decide_whether_and_how_long_a_server_is_started() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) };
    let strategy = (any::<bool>(), any::<bool>(), any::<bool>(), 10..40_u64);
    let fleets = [false, true].map(|enabled| {
        let mut settings = settings();
        (settings.enabled, settings.timings.tries) = (enabled, 1);
        fleet(settings, Ports::default())
    });
    TestRunner::new(config)
        .run(&strategy, |(all, one, answers, limit)| {
            let fleet = &fleets[usize::from(all)];
            let server = if answers { small(&json!([]), &[], &[]) } else { program("/bin/sleep", &["300"]) };
            let connect_timeout = if answers { server.connect_timeout } else { Duration::from_millis(limit) };
            fleet.add(ReadyServer { enabled: one, connect_timeout, ..server }, known());
            let outcome = fleet.start("fake");
            let error = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
            match (all, one, answers) {
                (false, ..) => prop_assert!(error.contains("`mcp.enabled: true` switches it on"), "{}", error),
                (true, false, _) => prop_assert!(error.contains("it is disabled"), "{}", error),
                (true, true, true) => prop_assert_eq!(error, ""),
                (true, true, false) => prop_assert!(error.contains(&format!("within {limit} ms")), "{}", error),
            }
            let ran = fleet.server("fake").unwrap().status().state != ServerState::Configured;
            prop_assert_eq!(ran, all && one);
            Ok(())
        })
        .unwrap();
}
