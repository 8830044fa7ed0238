//! The person at the terminal: what is asked, what is shown, and what Ctrl-C and a closed terminal do.

use serde_json::json;

use super::{call, expecting, lab, run, saved, talk, task, text};
use crate::lab::{FOREVER, Lab, Ran, finish};

/// Runs `ollm` on a terminal on which a person types each text once what comes before it is seen.
fn typed(lab: &Lab, steps: &str, arguments: &[&str]) -> Ran {
    crate::lab::pty::typed(lab, &steps.split('|').collect::<Vec<_>>(), arguments)
}

#[test]
fn control_c_at_a_question_is_a_no_and_ends_the_turn() {
    let write = call("write_file", json!({"path": "a", "content": "x"}));
    let lab = lab(&[write, text("never")]);
    let ran = typed(&lab, r"May it run?=>\x03", &task(&[]));
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(!lab.project.join("a").exists() && !ran.stdout.contains("never"), "{ran:?}");
    assert!(saved(&lab).last().unwrap()["content"].as_str().unwrap().contains("interrupted before an answer came"));
}

#[test]
fn control_c_at_a_question_of_a_chat_leaves_the_chat_alone() {
    let lab = lab(&[call("shell", json!({"command": "touch a"})), text("still here")]);
    let chat = ["chat", "--model", "replay:../talk.jsonl"];
    let ran = typed(&lab, r"> =>go\r|May it run?=>\x03|> =>again\r|still here=>|> =>/quit\r", &chat);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("still here") && !lab.project.join("a").exists(), "{ran:?}");
}

#[test]
fn control_c_at_the_question_about_a_hook_is_a_no() {
    let lab = lab(&[text("never")]);
    lab.workspace_hook("before_agent", "guest", "touch ../ran; echo '{\"continue\": true}'", "");
    let ran = typed(&lab, r"[N]o: =>\x03", &task(&[]));
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(!lab.root.join("ran").exists());
}

#[test]
fn a_no_to_a_hook_is_asked_for_once() {
    let lab = lab(&[call("list_dir", json!({"path": "."})), call("list_dir", json!({"path": ".."})), text("over")]);
    lab.workspace_hook("before_model", "guest", "echo ran >> ../ran; echo '{\"continue\": true}'", "");
    let ran = typed(&lab, r"[N]o: =>n\r|over=>", &task(&[]));
    assert_eq!((ran.code, ran.stdout.matches("one [s]ession").count()), (0, 1), "{ran:?}");
    assert!(!lab.root.join("ran").exists());
    talk(&lab, &[text("over")]);
    let ran = typed(&lab, r"[N]o: =>o\r|over=>", &task(&[]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(lab.root.join("ran").exists(), "{ran:?}");
}

#[test]
fn the_question_says_what_always_covers() {
    let lab = lab(&[
        call("shell", json!({"command": "touch a"})),
        call("shell", json!({"command": "touch b"})),
        text("over"),
    ]);
    let ran = typed(&lab, r"this very command, in this session), [N]o: =>a\r|[N]o: =>n\r|over=>", &task(&[]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(lab.project.join("a").exists() && !lab.project.join("b").exists(), "{ran:?}");
}

#[test]
fn control_c_twice_ends_a_task_whose_tool_does_not_listen() {
    let command = format!("trap '' TERM INT HUP; echo up; ({FOREVER}) & {FOREVER}");
    let lab = lab(&[call("shell", json!({"command": command})), text("never")]);
    let ran = typed(&lab, r"shell {=>\x03\x03", &task(&["--approval", "yolo"]));
    assert_eq!(ran.code, 130, "{ran:?}");
    lab.assert_nobody_is_left();
    assert_eq!(saved(&lab).last().unwrap()["role"], "tool", "the transcript is whole");
}

#[test]
fn control_c_twice_at_the_prompt_leaves_the_chat() {
    let lab = lab(&[text("hello")]);
    lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
    let ran = typed(&lab, r"> =>\x03|> =>\x03", &["chat", "--model", "replay:../talk.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(lab.root.join("ended").exists(), "{ran:?}");
}

#[test]
fn a_closed_terminal_ends_tools_hooks_and_the_session_in_order() {
    let command = format!("trap '' HUP; echo up; ({FOREVER}) & {FOREVER}");
    for mode in [&["chat"][..], &["run", "do it"]] {
        let lab = lab(&[call("shell", json!({"command": command})), text("never")]);
        lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
        let first = if mode[0] == "chat" { r"> =>do it\r|" } else { "" };
        let arguments = [mode, &["--model", "replay:../talk.jsonl", "--approval", "yolo"]].concat();
        let ran = typed(&lab, &format!("{first}shell {{=><hang up>"), &arguments);
        lab.assert_nobody_is_left();
        assert!(lab.root.join("ended").exists(), "{mode:?}: the session has its end: {ran:?}");
        assert_eq!(saved(&lab).last().unwrap()["role"], "tool", "{mode:?}: the transcript is whole");
    }
}

#[test]
fn a_chat_that_is_told_to_end_while_it_waits_ends_in_order() {
    for how in ["<hang up>", "<terminate>"] {
        let lab = lab(&[text("hello")]);
        lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
        let ran = typed(&lab, &format!("> =>{how}"), &["chat", "--model", "replay:../talk.jsonl"]);
        assert!(lab.root.join("ended").exists(), "{how}: {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn hooks_of_the_end_have_their_time_when_the_signal_to_end_comes_after_them() {
    let lab = lab(&[text("hello")]);
    // Long enough for an interruption to be noticed.
    lab.user_hook("session_end", "end", "kill -TERM $PPID; sleep 0.5; touch ../ended; echo '{\"continue\": true}'", "");
    let ran = lab.run(&["chat", "--model", "replay:../talk.jsonl"]);
    assert!(lab.root.join("ended").exists(), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn where_nobody_can_be_asked_the_mode_that_would_help_is_named() {
    for (mode, name, arguments, told) in [
        ("auto", "shell", json!({"command": "touch a"}), "the approval mode yolo goes on"),
        ("ask", "shell", json!({"command": "touch a"}), "the approval mode yolo goes on"),
        ("ask", "write_file", json!({"path": "a", "content": "x"}), "the approval mode auto or yolo goes on"),
    ] {
        let told = json!({"last": format!("no person can be asked here; {told}")});
        let lab = lab(&[call(name, arguments), expecting(text("ok"), told)]);
        let ran = run(&lab, &["--approval", mode]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("ok\n", 0), "{mode} {name}: {ran:?}");
        assert!(!lab.project.join("a").exists());
    }
}

#[test]
fn a_command_that_fails_is_shown_with_its_words_and_its_end() {
    let lab = lab(&[call("shell", json!({"command": "echo it broke >&2; exit 3"})), text("oh")]);
    for more in [&["--approval", "yolo"][..], &["--approval", "yolo", "--json"]] {
        let ran = run(&lab, more);
        assert!(ran.stderr.contains("✗ shell: it broke [exit code 3]"), "{ran:?}");
    }
    talk(&lab, &[call("shell", json!({"command": "exit 3"})), text("oh")]);
    assert!(run(&lab, &["--approval", "yolo"]).stderr.contains("✗ shell: [exit code 3]"));
}

#[test]
fn a_conversation_that_is_not_there_is_told_before_any_model_is_looked_for() {
    let lab = Lab::new().set("OLLAMA_HOST", "127.0.0.1:9");
    for arguments in
        [&["session", "resume", "zzz"][..], &["run", "go", "--resume", "zzz"], &["run", "go", "--continue"]]
    {
        let ran = lab.run(arguments);
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(!ran.stderr.contains("Ollama"), "{ran:?}");
    }
}

#[test]
fn the_commands_of_a_chat_show_what_they_say() {
    let lab = lab(&[text("one")]);
    lab.user_hook("before_agent", "mine", "echo '{\"continue\": true}'", "");
    let input = "hi\n/hooks\n/mcp\n/tools\n/model\n/session\n/help\n";
    let ran = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in ["mine", "there are no servers", "write_file", "talk.jsonl", "3 messages", "/trigger NAME"] {
        assert!(ran.stdout.contains(part), "{part} is missing: {}", ran.stdout);
    }
}

#[test]
fn the_question_about_a_hook_of_a_changed_extension_shows_what_changed_and_the_way_out() {
    let lab = lab(&[text("done")]);
    let hooks = json!({"before_agent": [{"name": "guest", "command": "sh", "args": ["run.sh"]}]});
    let manifest = json!({"name": "mine", "version": "1.0.0", "description": "One", "hooks": hooks});
    lab.write("home/.ollm/extensions/mine/manifest.json", manifest.to_string());
    lab.write("home/.ollm/extensions/mine/run.sh", "cat > /dev/null # the script\n");
    lab.write("home/.ollm/extensions/mine/words.txt", "kind\n");
    crate::bundled::approve(&lab, "mine");
    lab.write("home/.ollm/extensions/mine/words.txt", "unkind\n");
    let ran = typed(&lab, r"May all of it run, as long=>n\r", &task(&[]));
    assert!(ran.stdout.contains("The extension `mine` is not approved in its present state"), "{ran:?}");
    assert!(ran.stdout.contains("words.txt") && ran.stdout.contains("+unkind"), "{ran:?}");
    assert!(!ran.stdout.contains("ollm hook trust"), "{ran:?}");
    assert!(!ran.stdout.contains("# the script") && !ran.stdout.contains(":0:0"), "{ran:?}");
}

#[test]
fn always_is_offered_where_a_hook_is_about_to_run_and_holds() {
    let lab = lab(&[text("over")]);
    lab.workspace_hook("before_agent", "guest", "echo ran >> ../ran; echo '{\"continue\": true}'", "");
    let ran = typed(&lab, r"[o]nce, one [s]ession, [a]lways, [N]o: =>a\r|over=>", &task(&[]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(run(&lab, &[]).code, 0, "it is not asked about again");
    assert_eq!(std::fs::read_to_string(lab.root.join("ran")).unwrap(), "ran\nran\n");
    // What no approval covers is not offered for good.
    let lab = self::lab(&[text("over")]);
    let inline = json!({"hooks": {"before_agent": [{"name": "open", "command": "sh", "args": ["-c", ". ./$NAME"]}]}});
    lab.workspace("open.json", inline.to_string());
    let ran = typed(&lab, r"[o]nce, one [s]ession, [N]o: =>n\r|over=>", &task(&[]));
    assert!(ran.stdout.contains("To approve it for good") && !ran.stdout.contains("[a]lways"), "{ran:?}");
}

#[test]
fn a_group_is_asked_about_once_as_a_group() {
    let script = |name: &str| format!("echo {name} >> \"$OLLM_PROJECT_DIR/../ran\"; echo '{{\"continue\": true}}'");
    for (answer, again) in [("s", "over=>"), ("a", "over=>"), ("n", "over=>")] {
        let lab = lab(&[text("over")]);
        for (name, event) in [("one", "before_agent"), ("two", "before_model")] {
            lab.workspace(&format!("trusted/{name}.sh"), script(name));
            lab.workspace(&format!("trusted/{name}.json"), crate::lab::hook_file(event, name, ""));
        }
        let ran = typed(&lab, &format!(r"May all of it run=>{answer}\r|{again}"), &task(&[]));
        assert_eq!((ran.code, ran.stdout.matches("[N]o: ").count()), (0, 1), "{answer}: {ran:?}");
        assert!(ran.stdout.contains("The group `trusted` of 2 hooks is not approved"), "{ran:?}");
        let marks = std::fs::read_to_string(lab.root.join("ran")).unwrap_or_default();
        assert_eq!(marks, if answer == "n" { "" } else { "one\ntwo\n" }, "{answer}: {ran:?}");
        let _ = std::fs::remove_file(lab.root.join("ran"));
        run(&lab, &[]);
        assert_eq!(lab.root.join("ran").exists(), answer == "a", "{answer}");
    }
}

#[test]
fn an_extension_is_asked_about_once_with_all_its_hooks() {
    let script = "echo ran >> \"$OLLM_PROJECT_DIR/../ran\"; echo '{\"continue\": true}'";
    for answer in ["s", "a"] {
        let lab = lab(&[text("over")]);
        let entry = |name: &str| json!([{"name": name, "command": "sh", "args": ["run.sh"]}]);
        let hooks = json!({"before_agent": entry("one"), "before_model": entry("two")});
        let manifest = json!({"name": "mine", "version": "1.0.0", "description": "One", "hooks": hooks});
        lab.write("project/.ollm/extensions/mine/manifest.json", manifest.to_string());
        lab.write("project/.ollm/extensions/mine/run.sh", script);
        let ran = typed(&lab, &format!(r"May all of it run=>{answer}\r|over=>"), &task(&[]));
        assert_eq!((ran.code, ran.stdout.matches("[N]o: ").count()), (0, 1), "{answer}: {ran:?}");
        assert_eq!(std::fs::read_to_string(lab.root.join("ran")).unwrap(), "ran\nran\n", "{answer}: {ran:?}");
        let entry = &lab.run(&["ext", "list", "--json"]).answer()[0];
        assert_eq!(entry["trust"], if answer == "a" { "trusted" } else { "untrusted" }, "{entry:#}");
    }
}

#[test]
fn an_approval_for_a_session_shows_as_such() {
    let lab = lab(&[text("over")]);
    lab.workspace_hook("before_agent", "guest", "echo '{\"continue\": true}'", "");
    let id = "workspace:guest.json:before_agent:guest";
    let show = format!("/hooks show {id}");
    let steps = r"> =>hi\r|[N]o: =>s\r|over=>|> =>/hooks\r|trusted for one session=>|> =>SHOW\r|trusted for one session=>|> =>/quit\r";
    let ran = typed(&lab, &steps.replace("SHOW", &show), &["chat", "--model", "replay:../talk.jsonl"]);
    assert_eq!((ran.code, ran.stdout.matches("trusted for one session").count()), (0, 2), "{ran:?}");
    let ran = typed(&lab, r"[N]o: =>s\r", &["hook", "trust", id]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(lab.run(&["hook", "show", id, "--json"]).answer()["trust"], "session");
    assert!(lab.run(&["hook", "list"]).stdout.contains("trusted for one session"));
}

#[test]
fn every_word_after_a_command_of_a_chat_acts_or_is_refused() {
    let lab = lab(&[text("never")]);
    lab.user_hook("before_agent", "mine", "echo '{\"continue\": true}'", "");
    let id = "user:mine.json:before_agent:mine";
    let input = format!(
        "/hooks disable {id}\n/hooks\n/hooks enable {id}\n/hooks show {id}\n/hooks nonsense\n/hooks disable\n/mcp login\n\
         /mcp nonsense x\n/mcp login nobody\n/help me\n/tools now\n/session x\n/quit now\n/trigger deploy {{broken\n/ext enable\n\
         /model one two\n"
    );
    let ran = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), input.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in [
        &format!("{id} is off"),
        "disabled",
        &format!("{id} is on"),
        "on failure",
        "write /hooks, /hooks show|enable|disable|trust|untrust ID",
        "write /mcp, /mcp NAME, /mcp start|stop|restart NAME, /mcp login|logout|trust|untrust|logs NAME",
        "/help takes no further words; `me` was not understood",
        "/tools takes no further words",
        "/session takes no further words",
        "/quit takes no further words; `now`",
        "/trigger deploy: what follows the name is not valid JSON",
        "write /ext, /ext NAME",
        "write /model [NAME]",
    ] {
        assert!(ran.stdout.contains(part), "`{part}` is missing: {ran:?}");
    }
    assert!(ran.stderr.contains("there is no server `nobody`"), "{ran:?}");
}
