//! A chat that lives on while extensions, hooks and servers come, change and go.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{RemoteServer, mcp_server};

use crate::bundled::{approve, extension, was_started};
use crate::lab::{Lab, eventually, start};

mod laws;

/// A chat with a written model, one line at a time.
pub(crate) struct Chat {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    told: Arc<Mutex<String>>,
}

impl Chat {
    pub(crate) fn new(lab: &Lab, answers: &[Value]) -> Chat {
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        lab.write("talk.jsonl", lines.join("\n"));
        let mut child = start(lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]));
        let told = Arc::new(Mutex::new(String::new()));
        let (mut errors, shared) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&told));
        std::thread::spawn(move || {
            let mut line = String::new();
            while errors.read_line(&mut line).is_ok_and(|count| count > 0) {
                shared.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut chat = Chat { child, input, output, told };
        chat.say("");
        chat
    }

    /// What the chat answers to a line.
    pub(crate) fn say(&mut self, line: &str) -> String {
        let input = self.input.as_mut().unwrap();
        // Its answer says that everything before is done.
        writeln!(input, "{line}\n/session").unwrap();
        input.flush().unwrap();
        let mut answer = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it has ended: {answer} {}", self.told());
            if [" message", " messages"].iter().any(|end| line.trim_end().ends_with(end)) {
                return answer;
            }
            answer.push_str(&line);
        }
    }

    /// What people were told since the last time.
    fn told(&self) -> String {
        std::mem::take(&mut *self.told.lock().unwrap())
    }

    /// Begins another turn, and waits until people are told this.
    #[track_caller]
    fn is_told(&mut self, text: &str) {
        self.say("");
        self.was_told(text);
    }

    /// Waits until people are told this.
    #[track_caller]
    pub(crate) fn was_told(&self, text: &str) {
        let told = &self.told;
        eventually(&format!("{text} in {}", told.lock().unwrap()), || told.lock().unwrap().contains(text));
        self.told();
    }

    /// The names that the lines of a table begin with.
    fn names(&mut self, command: &str) -> Vec<String> {
        let answer = self.say(command);
        answer.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    /// The state of a server and how many tools it has, once it is neither new nor starting.
    fn server(&mut self, name: &str) -> (String, String) {
        let mut found = None;
        eventually("the server has settled", || {
            let answer = self.say("/mcp");
            let row = answer.lines().find(|line| line.split_whitespace().next() == Some(name));
            let mut words = row.unwrap_or_default().split_whitespace().skip(1).map(str::to_owned);
            found = words.next().zip(words.next());
            !matches!(found.as_ref().map(|(state, _)| state.as_str()), Some("configured" | "starting"))
        });
        found.unwrap_or_default()
    }

    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
    }
}

fn has_tool(chat: &mut Chat, tool: &str) -> bool {
    chat.names("/tools").iter().any(|name| name == tool)
}

fn call(tool: &str) -> Value {
    json!({"tool_calls": [{"id": "1", "name": tool, "arguments": {}}]})
}

#[test]
fn disabling_an_extension_ends_its_servers_in_a_running_chat_and_enabling_starts_them() {
    let lab = Lab::new();
    let hooks = json!({"hooks": {"before_agent": [{"name": "mark", "command": "sh", "args": ["mark.sh"]}]}});
    let folder = extension(&lab, "home", "tools", "srv", &hooks);
    fs::write(folder.join("mark.sh"), format!("echo x >> {}\n", lab.root.join("marks").display())).unwrap();
    approve(&lab, "tools");
    let mut chat =
        Chat::new(&lab, &[json!({"content": "one"}), json!({"content": "two"}), json!({"content": "three"})]);
    let marks = || fs::read_to_string(lab.root.join("marks")).unwrap_or_default().lines().count();
    chat.say("hello");
    assert_eq!((chat.server("srv").0.as_str(), has_tool(&mut chat, "mcp__srv__echo"), marks()), ("ready", true, 1));

    assert_eq!(lab.run(&["ext", "disable", "tools"]).code, 0);
    // It ends without a word from the person.
    eventually("the server has ended", || !lab.processes().iter().any(|line| line.contains("--log")));
    chat.is_told("extension `tools` is off; servers ended: srv");
    chat.say("hello again");
    assert_eq!((has_tool(&mut chat, "mcp__srv__echo"), marks()), (false, 1));
    assert!(chat.say("/hooks").lines().all(|line| !line.contains("mark")));
    assert!(chat.say("/mcp").contains("its extension `tools` is off"));
    assert!(chat.say("/mcp start srv").contains("is not started: its extension `tools` is off"));

    assert_eq!(lab.run(&["ext", "enable", "tools"]).code, 0);
    chat.is_told("extension `tools` is on");
    chat.say("and once more");
    assert_eq!((chat.server("srv").0.as_str(), has_tool(&mut chat, "mcp__srv__echo"), marks()), ("ready", true, 2));
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn a_chat_switches_extensions_itself() {
    let lab = Lab::new();
    extension(&lab, "home", "tools", "srv", &json!({}));
    approve(&lab, "tools");
    let mut chat = Chat::new(&lab, &[]);
    assert_eq!(chat.server("srv").0, "ready");
    let list = chat.say("/ext");
    assert!(list.contains("tools  on     trusted  1.0.0    user   1 server"), "{list}");
    assert!(chat.say("/ext tools").contains("server      srv: "));
    assert!(chat.say("/ext disable tools").contains("tools is off"));
    chat.was_told("extension `tools` is off; servers ended: srv");
    assert!(!has_tool(&mut chat, "mcp__srv__echo"));
    assert!(chat.say("/ext enable tools").contains("tools is on"));
    assert_eq!(chat.server("srv").0, "ready");
    assert!(chat.say("/ext reload").contains("nothing changed"));
    chat.told();
    chat.say("/ext enable nobody");
    chat.was_told("there is no extension `nobody`");
    assert!(chat.say("/ext enable").contains("write /ext"));
    chat.end();
}

#[test]
fn what_is_written_counts_for_the_next_turn_and_is_told_in_one_line() {
    let lab = Lab::new();
    let answers: Vec<Value> = (0..4).map(|_| json!({"content": "said"})).collect();
    let mut chat = Chat::new(&lab, &answers);
    let marked = |name: &str| lab.root.join(name).exists();
    let mark = |name: &str| format!("touch {}\n", lab.root.join(name).display());

    lab.user_hook("before_agent", "fresh", &mark("fresh"), "");
    chat.say("one");
    assert!(marked("fresh"));
    chat.was_told("new hooks: user:fresh.json:before_agent:fresh\n");
    lab.user("fresh.json", crate::lab::hook_file("before_agent", "fresh", r#", "if": "false""#));
    chat.is_told("hooks changed: user:fresh.json:before_agent:fresh");
    fs::remove_file(lab.home.join(".ollm/hooks/fresh.json")).unwrap();
    chat.is_told("hooks gone: user:fresh.json:before_agent:fresh");

    let hooks = json!({"hooks": {"before_agent": [{"name": "more", "command": "sh", "args": ["more.sh"]}]}});
    let folder = extension(&lab, "project", "late", "srv", &hooks);
    fs::write(folder.join("more.sh"), mark("more")).unwrap();
    chat.is_told(
        "extension `late` is new, and waits for `ollm ext trust late`; server `srv` of extension `late` is not started",
    );
    chat.say("two");
    assert!(!marked("more") && !was_started(&lab, "srv"));
    approve(&lab, "late");
    chat.say("three");
    assert!(marked("more") && chat.server("srv").0 == "ready" && has_tool(&mut chat, "mcp__srv__echo"));
    fs::write(folder.join("more.sh"), "exit 1\n").unwrap();
    chat.is_told("servers ended: srv; server `srv` of extension `late` is not started: its extension `late` changed since it was approved");
    fs::remove_dir_all(&folder).unwrap();
    chat.is_told("extension `late` is gone");

    let declare = |name: &str| json!({"mcpServers": {name: {"command": mcp_server()}}}).to_string();
    lab.write("home/.ollm/settings/mcp.json", declare("mine"));
    chat.is_told("servers added: mine");
    assert!(chat.server("mine").0 == "ready" && has_tool(&mut chat, "mcp__mine__echo"));
    lab.write("home/.ollm/settings/mcp.json", declare("other"));
    chat.is_told("servers added: other; servers ended: mine");
    lab.write("home/.ollm/config.yaml", "hooks:\n  timeout: 7s\n");
    chat.is_told("settings changed: hooks.timeout");
    lab.write("home/.ollm/config.yaml", "mcp:\n  enabled: false\n");
    chat.is_told("servers ended: other");
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn hooks_of_other_agents_that_are_read_where_they_are_count_at_once_too() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  read: [claude]\n");
    let mut chat = Chat::new(&lab, &[]);
    let settings =
        |command: &str| json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"command": command}]}]}}).to_string();
    lab.write("home/.claude/settings.json", settings("true"));
    chat.is_told("new hooks: user:.claude/settings.json:before_agent:");
    lab.write("home/.claude/settings.json", settings("false"));
    chat.is_told("hooks gone: user:.claude/settings.json:before_agent:");
    let before = chat.say("/hooks");
    lab.write("home/.claude/settings.json", "{");
    chat.is_told(".claude/settings.json");
    assert_eq!(chat.say("/hooks"), before, "what can no longer be read stays");
    chat.end();
}

#[test]
fn how_to_log_in_to_a_server_counts_at_once_too() {
    let lab = Lab::new();
    let remote = RemoteServer::start(&["--http"]).unwrap();
    let declare = |oauth: &Value| {
        let server = json!({"url": remote.url, "oauth": oauth});
        lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": server}}).to_string());
    };
    declare(&json!({"clientId": "a"}));
    let mut chat = Chat::new(&lab, &[]);
    assert_eq!(chat.server("s").0, "ready");
    for oauth in [json!({"clientId": "b"}), json!({"clientId": "b", "scopes": ["read"]}), Value::Null] {
        declare(&oauth);
        chat.is_told("servers changed: s");
        assert_eq!(chat.server("s").0, "ready", "{oauth}");
    }
    chat.end();
}

#[test]
fn an_approval_that_is_lost_in_a_chat_is_told_with_the_way_to_get_it_back() {
    let lab = Lab::new();
    lab.write("home/.ollm/extensions/mine/hooks/run.sh", "cat > /dev/null");
    let hooks = json!({"before_agent": [{"name": "run", "command": "sh", "args": ["hooks/run.sh"]}]});
    let manifest = json!({"name": "mine", "version": "1.0.0", "description": "One", "hooks": hooks});
    lab.write("home/.ollm/extensions/mine/manifest.json", manifest.to_string());
    approve(&lab, "mine");
    let mut chat = Chat::new(&lab, &[]);
    let told = "files of the extension `mine` changed, and it waits for `ollm ext trust mine`";
    assert_eq!(chat.say("/ext reload"), "nothing changed\n");
    lab.write("home/.ollm/extensions/mine/hooks/run.sh", "exit 2");
    chat.is_told(told);
    chat.say("");
    assert_eq!(chat.told(), "", "once is enough");
    assert!(chat.say("/ext reload").contains(told));
    lab.write("home/.ollm/extensions/mine/more.txt", "more");
    chat.is_told(told);
    approve(&lab, "mine");
    assert_eq!(chat.say("/ext reload"), "nothing changed\n");
    chat.end();
}

#[test]
fn a_project_that_appears_in_a_chat_is_taken_in_and_runs_nothing_unasked() {
    let lab = Lab::new();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    let answers: Vec<Value> = (0..3).map(|_| json!({"content": "said"})).collect();
    let mut chat = Chat::new(&lab, &answers);
    let marked = |name: &str| lab.root.join(name).exists();
    let mark = |name: &str| format!("touch {}\n", lab.root.join(name).display());
    lab.workspace_hook("before_agent", "own", &mark("own"), "");
    let news = format!("{} is a project now; new hooks: workspace:own.json:before_agent:own", lab.project.display());
    chat.is_told(&news);
    let hooks = json!({"hooks": {"before_agent": [{"name": "late", "command": "sh", "args": ["late.sh"]}]}});
    let folder = extension(&lab, "project", "late", "srv", &hooks);
    fs::write(folder.join("late.sh"), mark("late")).unwrap();
    chat.is_told(
        "extension `late` is new, and waits for `ollm ext trust late`; server `srv` of extension `late` is not started",
    );
    let list = chat.say("/ext");
    let late = list.lines().find(|line| line.starts_with("late "));
    assert!(late.is_some_and(|line| line.contains("workspace")), "every command of the chat knows it: {list}");
    chat.say("one");
    assert!(!marked("own") && !marked("late") && !was_started(&lab, "srv"), "{}", chat.told());
    approve(&lab, "late");
    lab.approve("workspace:own.json:before_agent:own");
    chat.say("two");
    assert!(marked("own") && marked("late") && chat.server("srv").0 == "ready", "{}", chat.told());
    chat.told();
    chat.say("");
    assert_eq!(chat.told(), "");
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn a_project_that_appears_with_a_broken_configuration_counts_once_that_is_mended() {
    let lab = Lab::new();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    let mut chat = Chat::new(&lab, &[]);
    lab.workspace_hook("before_agent", "own", "exit 0", "");
    lab.write("project/.ollm/config.yaml", "hooks: [");
    chat.is_told("everything stays as it was: ");
    chat.say("");
    assert_eq!(chat.told(), "", "once is enough");
    assert!(!chat.say("/hooks").contains("\nown "));
    fs::remove_file(lab.project.join(".ollm/config.yaml")).unwrap();
    chat.is_told("is a project now; new hooks: ");
    assert!(chat.say("/hooks").contains("\nown "));
    chat.end();
}

#[test]
fn a_nearer_project_does_not_take_the_place_of_one_that_guards_the_chat() {
    let mut lab = Lab::new();
    lab.project = lab.project.join("inner");
    fs::create_dir_all(&lab.project).unwrap();
    lab.write("talk.jsonl", "");
    lab.workspace_hook("before_agent", "outer", "exit 0", "");
    fs::write(lab.root.join("project/talk.jsonl"), "").unwrap();
    let mut chat = Chat::new(&lab, &[]);
    assert!(chat.say("/hooks").contains("outer"));
    lab.write("project/inner/.ollm/hooks/inner.json", crate::lab::hook_file("before_agent", "inner", ""));
    chat.is_told("inner is a project now, which counts when the chat is started anew");
    let hooks = chat.say("/hooks");
    assert!(hooks.contains("outer") && !hooks.contains("\ninner "), "{hooks}");
    assert_eq!(chat.told(), "");
    fs::remove_dir_all(lab.root.join("project/.ollm")).unwrap();
    chat.is_told("inner is a project now; new hooks: workspace:inner.json:before_agent:inner; hooks gone: ");
    chat.end();
}

#[test]
fn what_can_no_longer_be_read_stays_as_it_was() {
    let lab = Lab::new();
    let answers: Vec<Value> = (0..4).map(|_| json!({"content": "said"})).collect();
    let count = |name: &str| fs::read_to_string(lab.root.join(name)).unwrap_or_default().lines().count();
    let mark = |name: &str| format!("echo x >> {}\n", lab.root.join(name).display());
    lab.user_hook("before_agent", "own", &mark("own"), "");
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"mine": {"command": mcp_server()}}}).to_string());
    let hooks = json!({"hooks": {"before_agent": [{"name": "its", "command": "sh", "args": ["its.sh"]}]}});
    let folder = extension(&lab, "home", "tools", "srv", &hooks);
    fs::write(folder.join("its.sh"), mark("its")).unwrap();
    approve(&lab, "tools");
    let mut chat = Chat::new(&lab, &answers);
    chat.say("one");
    assert_eq!((count("own"), count("its"), chat.server("srv").0.as_str()), (1, 1, "ready"));

    let (own, manifest) = (lab.home.join(".ollm/hooks/own.json"), folder.join("manifest.json"));
    let good = (fs::read(&own).unwrap(), fs::read(&manifest).unwrap());
    lab.user("own.json", "{\"hooks\": ");
    chat.is_told("hooks stay as they were: ");
    lab.write("home/.ollm/settings/mcp.json", "{");
    chat.is_told("servers that stay as they were: mine; ");
    fs::write(&manifest, "{\"name\": \"tools\", ").unwrap();
    chat.is_told("extension `tools` stays as it was: ");
    let told = chat.say("/ext reload");
    assert!(
        told.contains("extension `tools` stays as it was: ") && told.contains("hooks stay as they were: "),
        "{told}"
    );
    let said = chat.say("two");
    assert_eq!((count("own"), count("its")), (2, 2), "{said} {}", chat.told());
    assert_eq!((chat.server("srv").0.as_str(), chat.server("mine").0.as_str()), ("ready", "ready"));
    assert!(has_tool(&mut chat, "mcp__srv__echo") && has_tool(&mut chat, "mcp__mine__echo"));

    lab.write("home/.ollm/config.yaml", "hooks: [");
    chat.is_told("everything stays as it was: ");
    chat.say("three");
    assert_eq!((count("own"), count("its")), (3, 3));

    lab.write("home/.ollm/config.yaml", "");
    fs::write(&own, &good.0).unwrap();
    fs::write(&manifest, &good.1).unwrap();
    chat.say("four");
    assert_eq!((count("own"), count("its")), (4, 4));
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn what_cannot_be_read_can_still_be_switched_off_and_disapproved_and_loses_its_name_to_nobody() {
    let lab = Lab::new();
    let (one, two) =
        (extension(&lab, "home", "one", "srv", &json!({})), extension(&lab, "home", "two", "two", &json!({})));
    extension(&lab, "project", "third", "srv", &json!({}));
    for name in ["one", "two", "third"] {
        approve(&lab, name);
    }
    let mut chat = Chat::new(&lab, &[]);
    assert_eq!((chat.server("srv").0.as_str(), chat.server("two").0.as_str()), ("ready", "ready"));
    fs::write(one.join("manifest.json"), "{").unwrap();
    fs::write(two.join("manifest.json"), "{").unwrap();
    chat.is_told("extension `one` stays as it was: ");
    assert_eq!((chat.server("srv").0.as_str(), chat.server("two").0.as_str()), ("ready", "ready"));
    assert!(!chat.told().contains("servers"), "the third extension does not get the name");

    assert_eq!(lab.run(&["ext", "disable", "one"]).code, 0);
    chat.is_told("extension `one` is not loaded");
    assert_eq!(chat.server("srv").0, "ready", "now it is the third one's");
    let approvals = lab.home.join(".ollm/trusted-hooks.json");
    let mut kept: Value = serde_json::from_slice(&fs::read(&approvals).unwrap()).unwrap();
    kept["approvals"].as_array_mut().unwrap().retain(|approval| approval["id"] != "extension:two");
    fs::write(&approvals, kept.to_string()).unwrap();
    chat.is_told("servers ended: two");
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn a_call_of_a_server_that_crashed_starts_it_again_until_it_crashes_all_the_time() {
    let lab = Lab::new();
    let echo = |id: &str| json!({"tool_calls": [{"id": id, "name": "mcp__srv__echo", "arguments": {"text": "back"}}]});
    let expecting = |text: &str, then: &str| json!({"expect": {"role": "tool", "last": [text]}, "content": then});
    let server = json!({"command": mcp_server()});
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"srv": server, "sry": server}}).to_string());
    let mut chat = Chat::new(
        &lab,
        &[
            call("mcp__srv__crash"),
            echo("2"),
            expecting("back", "it is back"),
            call("mcp__srv__crash"),
            call("mcp__srv__crash"),
            echo("5"),
            expecting("it crashed 3 times", "it is gone"),
        ],
    );
    assert_eq!((chat.server("srv").0.as_str(), chat.server("sry").0.as_str()), ("ready", "ready"));
    let answer = chat.say("crash it");
    assert!(answer.contains("it is back"), "{answer} {}", chat.told());
    assert!(has_tool(&mut chat, "mcp__srv__echo"));
    let answer = chat.say("crash it again, and again");
    let told = chat.told();
    assert!(answer.contains("it is gone") && !told.contains("did you mean"), "{answer} {told}");
    assert!(!has_tool(&mut chat, "mcp__srv__echo"));
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_nobody_uses_is_ended_keeps_its_tools_and_comes_back_with_a_call() {
    let lab = Lab::new();
    let server = |idle: Value| json!({"command": mcp_server(), "args": ["--stderr", "x"], "idleTimeout": idle});
    let servers = json!({"srv": server(json!("300ms")), "ever": server(json!(0)), "plain": {"command": mcp_server()}});
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": servers}).to_string());
    lab.write("home/.ollm/config.yaml", "mcp: {idleTimeout: 300ms}\n");
    let answer = json!({"expect": {"role": "tool", "last": ["back"]}, "content": "it is back"});
    let echo = json!({"tool_calls": [{"id": "1", "name": "mcp__srv__echo", "arguments": {"text": "back"}}]});
    let mut chat = Chat::new(&lab, &[echo, answer]);
    assert_eq!(chat.server("ever").0, "ready");
    let rests = |chat: &mut Chat, name: &str| {
        chat.say("/mcp").lines().any(|line| line.split_whitespace().take(2).eq([name, "configured"]))
    };
    for name in ["srv", "plain"] {
        eventually("it has ended", || rests(&mut chat, name));
    }
    assert_eq!((chat.server("ever").0.as_str(), has_tool(&mut chat, "mcp__srv__echo")), ("ready", true));
    assert!(chat.say("say it").contains("it is back"), "{}", chat.told());
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn error_scenario_3_a_server_that_crashes_takes_its_tools_along_and_nothing_else() {
    let lab = Lab::new();
    extension(&lab, "home", "tools", "srv", &json!({}));
    extension(&lab, "home", "others", "other", &json!({}));
    approve(&lab, "tools");
    approve(&lab, "others");
    let mut chat = Chat::new(&lab, &[call("mcp__srv__crash"), json!({"content": "it crashed"})]);
    assert_eq!((chat.server("srv").0.as_str(), chat.server("other").0.as_str()), ("ready", "ready"));
    assert!(has_tool(&mut chat, "mcp__srv__echo"));
    assert!(chat.say("crash it").contains("it crashed"));
    assert_eq!(chat.server("srv"), ("crashed".to_owned(), "0".to_owned()));
    assert_eq!((has_tool(&mut chat, "mcp__srv__echo"), has_tool(&mut chat, "mcp__other__echo")), (false, true));
    assert!(chat.say("/mcp start srv").contains("ready"));
    assert!(has_tool(&mut chat, "mcp__srv__echo"));
    chat.end();
    lab.assert_nobody_is_left();
}

#[test]
fn a_skill_is_handed_to_the_agent_in_a_chat_and_by_a_command() {
    let lab = Lab::new();
    let skills = json!({"skills": [{"name": "explain", "description": "Explains", "prompt": "Explain {{file}} in a {{tone}} tone."}]});
    extension(&lab, "home", "tools", "srv", &skills);
    let expected =
        json!({"content": "explained", "expect": {"role": "user", "last": ["Explain src/a b.rs in a {{file}} tone."]}});
    let mut chat = Chat::new(&lab, &[expected.clone(), json!({"content": "more"})]);
    assert!(chat.say("/skill").contains("tools.explain  untrusted  file, tone    Explains"));
    chat.say("/skill explain file=src/a b.rs tone={{file}}");
    chat.was_told("extension `tools` is not approved");
    approve(&lab, "tools");
    assert!(chat.say("/skill").contains("tools.explain  trusted  file, tone    Explains"));
    assert_eq!(chat.say("/skill explain file=src/a b.rs tone={{file}}"), "explained\n");
    chat.told();
    chat.say("/skill explain file=x");
    chat.was_told("skill `explain` has no value for tone\n  hint: give a value with tone=…\n");
    chat.say("/skill explain now");
    chat.was_told("`now` is no NAME=VALUE");
    chat.say("/skill nobody");
    chat.was_told("there is no skill `nobody`");
    chat.end();

    lab.write("talk.jsonl", expected.to_string());
    let fill = ["skill", "run", "explain", "--set", "file=src/a b.rs", "--set", "tone={{file}}"];
    let with = |more: &[&str]| lab.run(&[&fill[..], more].concat());
    assert_eq!(with(&[]).stdout, "Explain src/a b.rs in a {{file}} tone.\n");
    let ran = with(&["--agent", "--model", "replay:../talk.jsonl"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("explained\n", 0), "{ran:?}");
    let ran = with(&["--agent", "--model", "replay:../talk.jsonl", "--json"]);
    assert_eq!(ran.answer()["response"], "explained");
    let ran = with(&["--model", "replay:../talk.jsonl"]);
    assert!(ran.code == 64 && ran.stderr.contains("need --agent"), "{ran:?}");
}
