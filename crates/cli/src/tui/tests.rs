//! The drawing of every panel and dialog, at three sizes, with and without colour. What holds for all of them.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel, sync_channel};

use ollm_app::doctor::{Area, Finding, Weight};
use ollm_app::session::SessionOptions;
use ollm_app::trace::Record;
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook, HookSpec, Rules};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};
use serde_json::{Value, json};

use super::chat::front::ChatNews;
use super::chat::log::Speaker;
use super::chat::{self, ChatSetup};
use super::doctor::{DoctorItem, Findings};
use super::extensions::{ExtensionItem, Extensions};
use super::hooks::{HookItem, Hooks, arranged};
use super::list_panel::{Batch, COMMON, ListContent as _};
use super::mcp::{ServerItem, Servers};
use super::panel::{Binding, Key, PanelName};
use super::screen::{AnswerKind, Inbox, Message, Question};
use super::theme::Theme;
use super::trace::{Events, TraceItem};
use super::ui::keys::EVERYWHERE;
use super::ui::{Effect, Ui};
use crate::command::chat::front::ChatStatus;
use crate::command::ext::{ExtensionOverview, SettingOverview};
use crate::command::hook::HookState;
use crate::command::mcp::ServerOverview;
use crate::error::OK;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

fn ui(has_colour: bool, first: PanelName) -> Ui {
    let (sender, _) = sync_channel(100);
    let (_, waker) = UnixStream::pair().unwrap();
    let inbox = Inbox::new(sender, waker);
    let setup = ChatSetup { options: SessionOptions::default(), history: "/nowhere/history".into(), inbox };
    Ui::new(Theme::new(has_colour), first, setup, std::time::Duration::ZERO)
}

fn hook(name: &str, event: &str, state: HookState) -> HookItem {
    let action = ActionSpec::Command(CommandSpec {
        command: "/bin/guard".into(),
        args: vec![name.into()],
        ..Default::default()
    });
    let mut spec = HookSpec::new(format!("user:hooks.json:{event}:{name}"), event, action);
    spec.name = name.to_owned();
    spec.description = Some("Keeps things as they are.".to_owned());
    HookItem { hook: Arc::new(Hook::new(spec, &Rules::default()).unwrap()), state }
}

fn state(trust: &'static str, off: Option<&str>) -> HookState {
    let digest = Some("sha256:0123456789abcdef".to_owned());
    HookState { trust, digest, group_digest: None, off: off.map(str::to_owned), unready: None }
}

/// The panel of hooks with these hooks.
fn with_hooks(has_colour: bool, hooks: Vec<HookItem>) -> Ui {
    let mut ui = ui(has_colour, PanelName::Hooks);
    ui.panels().hooks.sender().send(Batch::All(arranged(hooks), ", 1 broken".to_owned())).unwrap();
    ui.message(Message::Done { panel: PanelName::Hooks, job: Hooks::LOAD.to_owned(), outcome: Ok(OK) });
    ui
}

fn three_hooks() -> Vec<HookItem> {
    vec![
        hook("no-force-push", "before_tool", state("trusted", None)),
        hook("greeter", "session_start", state("trusted", Some("off until you switch it on"))),
        hook("guest\u{1b}[2J", "before_tool", state("untrusted", None)),
    ]
}

/// Something in which a server, a file or an event tries to have the terminal obey it.
const HOSTILE: &str = "evil\u{1b}[2J\u{202e}txt\u{7}";

/// A panel whose load brought something.
fn loaded(ui: &mut Ui, panel: PanelName, job: &str) {
    ui.message(Message::Done { panel, job: job.to_owned(), outcome: Ok(OK) });
}

fn with_servers(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Mcp);
    let server = |entry: Value, tools: &[[&str; 3]]| {
        let tools = tools.iter().map(|row| row.map(str::to_owned)).collect();
        ServerItem::new(ServerOverview { entry, tools })
    };
    let servers = vec![
        server(
            json!({
                "name": "time", "transport": "stdio", "state": "ready", "status": "connected", "tools": 2, "error": null,
                "source": "user", "trust": "trusted", "digest": "sha256:0123", "revision": "2025-06-18", "running": true,
                "lastFailure": {"at": "2026-01-02T03:04:05Z", "message": "it ended with code 1"},
                "login": {"issuer": "https://a.example", "scopes": [], "renewable": true},
                "chats": [{"pid": 7, "session": "s1", "state": "ready"}],
            }),
            &[["mcp__time__now", "zone?", "Says what time it is."], ["mcp__time__x", HOSTILE, HOSTILE]],
        ),
        server(
            json!({"name": HOSTILE, "state": "configured", "trust": "untrusted", "error": HOSTILE, "running": false}),
            &[],
        ),
        server(json!({"name": "off", "state": "stopped", "trust": "trusted", "running": false}), &[]),
    ];
    ui.panels().mcp.sender().send(Batch::All(servers, String::new())).unwrap();
    loaded(&mut ui, PanelName::Mcp, Servers::LOAD);
    ui
}

fn with_extensions(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Extensions);
    let setting = |name: &str, value: &str, is_sensitive| SettingOverview {
        name: name.to_owned(),
        description: "What it is for.".to_owned(),
        value: value.to_owned(),
        is_sensitive,
    };
    let extension = |entry: Value, settings| {
        let text = format!("name        {}\nbrings      one hook\n", entry["name"].as_str().unwrap());
        ExtensionItem::new(ExtensionOverview { entry, text, settings })
    };
    let extensions = vec![
        extension(
            json!({"name": "git-guard", "version": "1.2.0", "enabled": true, "trust": "trusted", "error": null}),
            vec![setting("level", "strict", false), setting("token", "", true)],
        ),
        extension(json!({"name": HOSTILE, "version": HOSTILE, "enabled": false, "trust": "untrusted"}), Vec::new()),
    ];
    ui.panels().extensions.sender().send(Batch::All(extensions, ", 1 problem".to_owned())).unwrap();
    loaded(&mut ui, PanelName::Extensions, Extensions::LOAD);
    ui
}

fn event(id: &str, subject: &str, flow: &str, millis: f64) -> TraceItem {
    let hook = json!({"id": "user:a", "name": "a", "status": if flow == "block" { "blocked" } else { "ok" },
        "flow": flow, "startMs": 0.1, "durationMs": millis});
    let line = json!({
        "version": 1, "traceId": id, "time": "2026-01-02T03:04:05.678Z", "event": "before_tool", "subject": subject,
        "session": "s1", "durationMs": millis, "hooks": [hook], "skipped": [], "plan": [["user:a"]],
        "verdict": {"flow": flow, "continue": flow != "block", "reason": "not \u{1b}[2Jtoday"},
    });
    TraceItem::new(Record::of_line(line.to_string().as_bytes()).unwrap())
}

fn with_events(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Trace);
    let events = vec![
        event("0001", "shell", "none", 0.04),
        event("0002", HOSTILE, "ask", 3.2),
        event("0003", "write_file", "block", 8123.4),
    ];
    ui.panels().trace.sender().send(Batch::All(events, String::new())).unwrap();
    ui.message(Message::Loaded { panel: PanelName::Trace });
    ui
}

fn with_findings(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Doctor);
    let finding = |area, weight, what: &str, way_out: Option<&str>| {
        DoctorItem::Finding(Finding::new(area, weight, what, way_out.map(str::to_owned)))
    };
    let rows = vec![
        DoctorItem::Fine { area: Area::Guards, what: "all on".to_owned() },
        finding(
            Area::Hooks,
            Weight::Fault,
            "`a` does not run: it is not approved",
            Some("`ollm hook trust a` approves it"),
        ),
        finding(Area::Files, Weight::Note, HOSTILE, None),
    ];
    ui.panels().doctor.sender().send(Batch::All(rows, ", 1 fault, 1 note".to_owned())).unwrap();
    loaded(&mut ui, PanelName::Doctor, Findings::LOAD);
    press(&mut ui, KeyCode::Down);
    ui
}

fn asked(ui: &mut Ui, panel: PanelName, text: &str) -> Receiver<String> {
    let (reply, answer) = channel();
    let kind = AnswerKind::Ways(vec!["[o]nce".to_owned(), "[a]lways".to_owned()]);
    ui.message(Message::Ask(Question { id: 7, panel, text: text.to_owned(), kind, reply }));
    answer
}

/// A conversation in which everything occurs.
fn with_talk(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Chat);
    let (session, model) = ("s1".to_owned(), "ollama:qwen3".to_owned());
    let status = ChatStatus { session, model, typed_model: None, approval: "ask", messages: 4 };
    let say = |ui: &mut Ui, news| ui.message(Message::Chat(news));
    say(&mut ui, ChatNews::Status(status));
    say(&mut ui, ChatNews::Entry(Speaker::You, "What does **this** do?".to_owned()));
    say(&mut ui, ChatNews::More(Speaker::Thought, "I should look first.".to_owned()));
    say(&mut ui, ChatNews::Entry(Speaker::Note, "→ read_file {\"path\":\"src/main.rs\"}".to_owned()));
    say(&mut ui, ChatNews::Entry(Speaker::Failure, "✗ read_file: there is no such file".to_owned()));
    say(&mut ui, ChatNews::Entry(Speaker::Difference, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new".to_owned()));
    let answer = "# Answer\n\nIt **prints** `hello`:\n\n```rust\nfn main() {}\n```\n\n1. first\n2. [second](https://a.example)\n";
    say(&mut ui, ChatNews::More(Speaker::Model, answer.to_owned()));
    say(&mut ui, ChatNews::Whole);
    say(&mut ui, ChatNews::Working(false));
    ui
}

fn drawn(ui: &mut Ui, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| ui.draw(frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The text of a screen, and below it each run of cells with a style.
fn screen(ui: &mut Ui, size: (u16, u16)) -> String {
    let buffer = drawn(ui, size);
    let (width, rows) = (usize::from(size.0), buffer.content().chunks(usize::from(size.0)));
    let mut text = String::new();
    let mut styles = String::new();
    for (row, cells) in rows.enumerate() {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
        let mut from = 0;
        while from < width {
            let style = cells[from].style();
            let to = (from..width).find(|at| cells[*at].style() != style).unwrap_or(width);
            if let Some(name) = named(style) {
                writeln!(styles, "{row}:{from}-{} {name}", to - 1).unwrap();
            }
            from = to;
        }
    }
    format!("{text}---\n{styles}")
}

fn named(style: Style) -> Option<String> {
    let colour = style.fg.filter(|colour| *colour != ratatui::style::Color::Reset).map(|colour| colour.to_string());
    let marks = style.add_modifier;
    let marks = (marks != Modifier::empty()).then(|| format!("{marks:?}"));
    let parts: Vec<String> = colour.into_iter().chain(marks).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Draws at every size, with and without colour.
fn pictured(name: &str, make: impl Fn(bool) -> Ui) {
    for has_colour in [true, false] {
        for size in SIZES {
            let colour = if has_colour { "colour" } else { "plain" };
            let mut ui = make(has_colour);
            insta::assert_snapshot!(format!("{name}_{}x{}_{colour}", size.0, size.1), screen(&mut ui, size));
        }
    }
}

fn press(ui: &mut Ui, code: KeyCode) {
    ui.event(Event::Key(KeyEvent::from(code)));
}

#[test]
fn the_panel_of_hooks_as_it_is_seen() {
    pictured("hooks", |has_colour| with_hooks(has_colour, three_hooks()));
}

#[test]
fn the_panels_of_servers_extensions_events_and_findings_as_they_are_seen() {
    pictured("mcp", with_servers);
    pictured("extensions", with_extensions);
    pictured("trace", with_events);
    pictured("doctor", with_findings);
    pictured("settings", |has_colour| {
        let mut ui = with_extensions(has_colour);
        press(&mut ui, KeyCode::Char('s'));
        ui
    });
}

#[test]
fn nothing_that_a_panel_lists_reaches_the_terminal_as_an_order() {
    for make in [with_servers, with_extensions, with_events, with_findings] {
        let mut ui = make(true);
        for _ in 0..5 {
            let buffer = drawn(&mut ui, (200, 60));
            let shown: String = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
            assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{shown}");
            press(&mut ui, KeyCode::Up);
        }
    }
}

#[test]
fn events_that_come_are_followed_at_the_end_and_nowhere_else() {
    let mut ui = with_events(false);
    let more = |ui: &mut Ui, item| {
        ui.panels().trace.sender().send(Batch::More(vec![item])).unwrap();
        ui.message(Message::Loaded { panel: PanelName::Trace });
    };
    more(&mut ui, event("0004", "late", "none", 1.0));
    assert!(screen(&mut ui, (200, 60)).contains(" 0004 "), "the newest is chosen");
    press(&mut ui, KeyCode::Up);
    more(&mut ui, event("0005", "later", "none", 1.0));
    let shown = screen(&mut ui, (200, 60));
    assert!(shown.contains(" 0003 ") && !shown.contains(" 0005 ") && shown.contains("later"), "{shown}");
    press(&mut ui, KeyCode::Char('b'));
    let shown = screen(&mut ui, (200, 60));
    assert!(shown.contains("refused only") && shown.contains("write_file") && !shown.contains("later"), "{shown}");
    press(&mut ui, KeyCode::Char('b'));
    for at in 0..5000 {
        more(&mut ui, event(&format!("1{at:04}"), "many", "none", 1.0));
    }
    assert!(screen(&mut ui, (200, 60)).contains("2000 events"));
}

#[test]
fn the_panel_of_the_chat_as_it_is_seen() {
    pictured("chat", with_talk);
}

#[test]
fn a_question_as_it_is_seen() {
    pictured("question", |has_colour| {
        let mut ui = with_hooks(has_colour, three_hooks());
        let changes = "--- changed since it was approved\n-exit 0\n+exit 1\n---\n";
        drop(asked(
            &mut ui,
            PanelName::Hooks,
            &format!("\nhook guest\n{changes}{}May it run?", "# a long script\n".repeat(30)),
        ));
        ui
    });
}

#[test]
fn a_picker_as_it_is_seen() {
    pictured("picker", |has_colour| {
        let mut ui = with_talk(has_colour);
        let (reply, _) = channel();
        let row = |at: usize| {
            format!("2026-01-02 03:0{at}    4 messages  /home/a/project  What does line {at} of main.rs do?")
        };
        let kind = AnswerKind::Rows((0..9).map(row).chain([HOSTILE.escape_debug().to_string()]).collect());
        let text = "Which conversation goes on?".to_owned();
        ui.message(Message::Ask(Question { id: 7, panel: PanelName::Chat, text, kind, reply }));
        // It takes keys once it was seen.
        drawn(&mut ui, SIZES[0]);
        press(&mut ui, KeyCode::Down);
        ui
    });
}

#[test]
fn while_the_chat_waits_for_an_answer_no_clock_runs() {
    let mut ui = with_talk(false);
    ui.message(Message::Chat(ChatNews::Working(true)));
    assert!(screen(&mut ui, (80, 24)).contains("model ollama:qwen3 · 0 s"));
    let elsewhere = asked(&mut ui, PanelName::Hooks, "May it run?");
    assert!(screen(&mut ui, (80, 24)).contains("model ollama:qwen3 · 0 s"), "the model does not wait for that one");
    let answer = asked(&mut ui, PanelName::Chat, "May it run?");
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("waits for your answer") && !shown.contains("model ollama"), "{shown}");
    for _ in 0..2 {
        press(&mut ui, KeyCode::Esc);
        screen(&mut ui, (80, 24));
    }
    assert!(screen(&mut ui, (80, 24)).contains("model ollama:qwen3 · 0 s"));
    drop((elsewhere, answer));
}

#[test]
fn what_came_of_an_interruption_stands_below_all_that_was_said() {
    let mut ui = with_talk(false);
    ui.message(Message::Chat(ChatNews::Working(true)));
    let say = |ui: &mut Ui, text: &str| {
        ui.message(Message::Chat(ChatNews::More(Speaker::Model, text.to_owned())));
    };
    say(&mut ui, "one ");
    ui.event(Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    say(&mut ui, "two");
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("one two") && shown.contains("· interrupting …"), "{shown}");
    ui.message(Message::Chat(ChatNews::Working(false)));
    let shown = screen(&mut ui, (80, 24));
    let (said, note) = (shown.find("one two").unwrap(), shown.find("· interrupted").unwrap());
    assert!(said < note && !shown.contains("interrupting"), "{shown}");
}

#[test]
fn an_entry_that_was_hidden_for_a_while_is_chosen_again() {
    let mut ui = with_events(false);
    press(&mut ui, KeyCode::Up);
    press(&mut ui, KeyCode::Up);
    assert!(screen(&mut ui, (80, 24)).contains("┌ 0001 "));
    press(&mut ui, KeyCode::Char('b'));
    assert!(screen(&mut ui, (80, 24)).contains("┌ 0003 "));
    press(&mut ui, KeyCode::Char('b'));
    assert!(screen(&mut ui, (80, 24)).contains("┌ 0001 "));
    for char in "/zzz".chars() {
        press(&mut ui, KeyCode::Char(char));
    }
    let shown = screen(&mut ui, (80, 24));
    assert!(!shown.contains("┌ "), "what leaves the panel has no title: {shown}");
    press(&mut ui, KeyCode::Esc);
    assert!(screen(&mut ui, (80, 24)).contains("┌ 0001 "));
}

#[test]
fn the_marks_of_a_long_list_hide_nothing_of_its_rows() {
    let mut ui = ui(false, PanelName::Trace);
    let events = (0..40).map(|at| event(&format!("{at:04}"), "shell", "none", 0.04)).collect();
    ui.panels().trace.sender().send(Batch::All(events, String::new())).unwrap();
    ui.message(Message::Loaded { panel: PanelName::Trace });
    press(&mut ui, KeyCode::Up);
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains(" ms▲"), "{shown}");
}

#[test]
fn what_a_command_prints_has_the_width_of_the_screen() {
    for (size, panel) in SIZES.iter().zip([PanelName::Mcp; 3]) {
        let mut ui = with_servers(false);
        press(&mut ui, KeyCode::Char('h'));
        let row = "x".repeat(usize::from(size.0));
        ui.message(Message::Text { panel, text: format!("{row}\n") });
        let shown = screen(&mut ui, *size);
        assert!(shown.lines().any(|line| line == row), "{shown}");
    }
}

#[test]
fn a_choice_that_is_empty_says_what_that_means() {
    let mut ui = with_hooks(false, three_hooks());
    press(&mut ui, KeyCode::Char('e'));
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("onFailure") && shown.contains("‹ default ›"), "{shown}");
}

#[test]
fn a_finding_without_a_code_says_so_below_its_area() {
    let mut ui = with_findings(false);
    press(&mut ui, KeyCode::Down);
    press(&mut ui, KeyCode::Down);
    press(&mut ui, KeyCode::Enter);
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains(" files (Esc closes) ") && shown.contains("This row has no code to explain."), "{shown}");
}

#[test]
fn help_and_a_form_as_they_are_seen() {
    pictured("help", |has_colour| {
        let mut ui = with_hooks(has_colour, three_hooks());
        press(&mut ui, KeyCode::Char('?'));
        ui
    });
    pictured("form", |has_colour| {
        let mut ui = with_hooks(has_colour, three_hooks());
        press(&mut ui, KeyCode::Char('e'));
        ui
    });
}

#[test]
fn no_size_of_a_terminal_is_too_odd() {
    for width in (1..50).chain([200]) {
        for height in (1..20).chain([60]) {
            let panels = [with_servers, with_extensions, with_events, with_findings, with_talk].map(|make| make(true));
            for mut ui in panels.into_iter().chain([with_hooks(true, three_hooks())]) {
                drop(asked(&mut ui, PanelName::Hooks, "a\nlong\nquestion"));
                drawn(&mut ui, (width, height));
                press(&mut ui, KeyCode::Esc);
                press(&mut ui, KeyCode::F(12));
                drawn(&mut ui, (width, height));
                press(&mut ui, KeyCode::Esc);
                drawn(&mut ui, (width, height));
            }
        }
    }
}

#[test]
fn ten_thousand_hooks_are_a_list_like_any_other() {
    let hooks = (0..10_000).map(|at| hook(&format!("hook-{at:05}"), "before_tool", state("trusted", None))).collect();
    let mut ui = with_hooks(false, hooks);
    press(&mut ui, KeyCode::End);
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("hook-09999") && !shown.contains("hook-00000"), "{shown}");
    press(&mut ui, KeyCode::Char('/'));
    "04711".chars().for_each(|char| press(&mut ui, KeyCode::Char(char)));
    press(&mut ui, KeyCode::Enter);
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("hook-04711") && !shown.contains("hook-04712"), "{shown}");
}

#[test]
fn a_question_takes_all_keys_and_what_was_typed_before_is_discarded() {
    let mut ui = with_hooks(false, three_hooks());
    ui.take_effects();
    let answer = asked(&mut ui, PanelName::Hooks, "May it run?");
    assert!(matches!(ui.take_effects().as_slice(), [Effect::DiscardInput]));
    drawn(&mut ui, (80, 24));
    for char in "dat".chars() {
        press(&mut ui, KeyCode::Char(char));
    }
    press(&mut ui, KeyCode::Enter);
    assert!(ui.take_effects().is_empty(), "no key reaches the panel");
    press(&mut ui, KeyCode::Char('a'));
    press(&mut ui, KeyCode::Enter);
    assert_eq!(answer.recv().unwrap(), "a");
}

#[test]
fn a_pasted_text_brings_no_control_characters_and_answers_nothing() {
    let mut ui = with_talk(false);
    ui.event(Event::Paste("one\u{1b}[2J\r\ntwo\u{7}".to_owned()));
    assert!(screen(&mut ui, (80, 24)).contains("> one[2J\n  two"));
    let answer = asked(&mut ui, PanelName::Hooks, "May it run?");
    drawn(&mut ui, (80, 24));
    ui.event(Event::Paste("always".to_owned()));
    press(&mut ui, KeyCode::Enter);
    assert!(answer.try_recv().is_err_and(|error| error == TryRecvError::Empty), "an empty line is no answer");
    press(&mut ui, KeyCode::Esc);
    assert!(answer.recv().is_err(), "Esc is no");
}

#[test]
fn what_was_typed_for_one_question_is_meant_for_nothing_else() {
    let mut ui = with_talk(false);
    let first = asked(&mut ui, PanelName::Hooks, "The first?");
    let (reply, second) = channel();
    let kind = AnswerKind::Ways(vec!["[a]lways".to_owned()]);
    ui.message(Message::Ask(Question { id: 8, panel: PanelName::Hooks, text: "The second?".to_owned(), kind, reply }));
    ui.take_effects();
    ui.message(Message::Withdraw(7));
    assert!(first.recv().is_err() && ui.is_discarding(), "the second question has come up under the fingers");
    ui.take_effects();
    drawn(&mut ui, (80, 24));
    press(&mut ui, KeyCode::Char('a'));
    press(&mut ui, KeyCode::Enter);
    assert_eq!(second.recv().unwrap(), "a");
    assert!(ui.is_discarding(), "the panel below has come up");
}

#[test]
fn another_conversation_has_a_screen_of_its_own() {
    let mut ui = with_talk(false);
    ui.message(Message::Chat(ChatNews::Renewed));
    let shown = screen(&mut ui, (80, 24));
    assert!(shown.contains("the conversation begins") && !shown.contains("What does"), "{shown}");
    assert!(ui.is_moving());
}

#[test]
fn what_is_open_above_a_panel_keeps_mouse_and_paste_to_itself() {
    let mut ui = with_talk(false);
    press(&mut ui, KeyCode::F(12));
    ui.event(Event::Paste("pasted".to_owned()));
    press(&mut ui, KeyCode::Esc);
    assert!(!screen(&mut ui, (80, 24)).contains("pasted"));
}

#[test]
fn nothing_is_drawn_and_nothing_wakes_while_nothing_happens() {
    let mut ui = with_talk(false);
    assert!(ui.take_change());
    assert!(!ui.take_change() && !ui.is_moving());
    ui.message(Message::Chat(ChatNews::Working(true)));
    assert!(ui.is_moving());
    drop(asked(&mut ui, PanelName::Hooks, "May it run?"));
    assert!(!ui.is_moving(), "everything waits for the person");
    ui.message(Message::Withdraw(7));
    assert!(ui.is_moving());
    ui.message(Message::Chat(ChatNews::Working(false)));
    assert!(!ui.is_moving());
}

#[test]
fn control_m_turns_to_the_servers_where_it_is_not_enter() {
    let mut ui = with_talk(false);
    ui.event(Event::Key(KeyEvent::new(KeyCode::Char('m'), KeyModifiers::CONTROL)));
    assert!(screen(&mut ui, (80, 24)).contains("0 servers"));
    press(&mut ui, KeyCode::F(3));
    assert!(screen(&mut ui, (80, 24)).contains("0 servers"));
}

/// A key as the record spells it.
fn spelled(key: Key) -> String {
    match key {
        Key::Plain(code) => code.to_string(),
        Key::Control(code) => format!("Ctrl+{code}"),
        Key::Alt(code) => format!("Alt+{code}"),
    }
}

/// Every key of a table, each for a line.
fn record<C>(place: &str, table: &[Binding<C>]) -> Vec<String> {
    let keys = table.iter().flat_map(|row| row.keys);
    keys.map(|key| format!("{place}: {}", spelled(*key))).collect()
}

#[test]
fn every_key_is_on_record_and_the_tests_with_a_keyboard_have_a_case_for_it() {
    let keys = [
        record("everywhere", EVERYWHERE),
        record("lists", COMMON),
        record("chat", chat::KEYS),
        record("hooks", Hooks::KEYS),
        record("mcp", Servers::KEYS),
        record("extensions", Extensions::KEYS),
        record("trace", Events::KEYS),
        record("doctor", Findings::KEYS),
    ]
    .concat();
    // The tests with a keyboard read this snapshot, and demand a case for each line.
    insta::assert_snapshot!("keys", keys.join("\n"));
}

#[test]
fn help_names_as_many_keys_as_there_are_panels_and_the_command_for_programs() {
    for (at, name) in PanelName::ALL.into_iter().enumerate() {
        let mut ui = with_talk(false);
        press(&mut ui, KeyCode::F(u8::try_from(at + 1).unwrap()));
        press(&mut ui, KeyCode::F(12));
        let shown = screen(&mut ui, (200, 60));
        assert!(shown.contains(&format!("F1 … F{}", PanelName::ALL.len())), "{shown}");
        assert!(shown.contains("--json"), "{}: {shown}", name.title());
    }
}

#[test]
fn a_tab_a_number_and_a_letter_with_control_turn_to_panels() {
    let mut ui = with_talk(false);
    let with = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
    ui.event(with(KeyCode::Char('2'), KeyModifiers::ALT));
    assert!(screen(&mut ui, (80, 24)).contains("Exit"));
    press(&mut ui, KeyCode::Char('1'));
    assert!(!screen(&mut ui, (80, 24)).contains("Exit"));
    press(&mut ui, KeyCode::Tab);
    assert!(screen(&mut ui, (80, 24)).contains("Exit"));
    press(&mut ui, KeyCode::BackTab);
    assert!(!screen(&mut ui, (80, 24)).contains("Exit"));
}
