//! Every panel and dialog as it is drawn: at three sizes, with and without colour; and what holds for all of them.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel, sync_channel};

use ollm_app::session::SessionOptions;
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook, HookSpec, Rules};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};

use super::chat::ChatSetup;
use super::chat::front::ChatNews;
use super::chat::log::Speaker;
use super::hooks::{LOAD, Loaded};
use super::panel::PanelName;
use super::screen::{AnswerKind, Inbox, Message, Question};
use super::theme::Theme;
use super::ui::{Effect, Ui};
use crate::command::chat::front::ChatStatus;
use crate::command::hook::HookState;
use crate::error::OK;

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

fn ui(has_colour: bool, first: PanelName) -> Ui {
    let (sender, _) = sync_channel(100);
    let (_, waker) = UnixStream::pair().unwrap();
    let inbox = Inbox::new(sender, waker);
    let setup = ChatSetup { options: SessionOptions::default(), history: "/nowhere/history".into(), inbox };
    Ui::new(Theme::new(has_colour), first, setup)
}

fn hook(name: &str, event: &str, state: HookState) -> (Arc<Hook>, HookState) {
    let action = ActionSpec::Command(CommandSpec {
        command: "/bin/guard".into(),
        args: vec![name.into()],
        ..Default::default()
    });
    let mut spec = HookSpec::new(format!("user:hooks.json:{event}:{name}"), event, action);
    spec.name = name.to_owned();
    spec.description = Some("Keeps things as they are.".to_owned());
    (Arc::new(Hook::new(spec, &Rules::default()).unwrap()), state)
}

fn state(trust: &'static str, off: Option<&str>) -> HookState {
    let digest = Some("sha256:0123456789abcdef".to_owned());
    HookState { trust, digest, group_digest: None, off: off.map(str::to_owned), unready: None }
}

/// The panel of hooks with these hooks.
fn with_hooks(has_colour: bool, hooks: Vec<(Arc<Hook>, HookState)>) -> Ui {
    let mut ui = ui(has_colour, PanelName::Hooks);
    ui.hooks().sender().send(Loaded { hooks, broken: 1 }).unwrap();
    ui.message(Message::Done { panel: PanelName::Hooks, job: LOAD.to_owned(), outcome: Ok(OK) });
    ui
}

fn three_hooks() -> Vec<(Arc<Hook>, HookState)> {
    vec![
        hook("no-force-push", "before_tool", state("trusted", None)),
        hook("greeter", "session_start", state("trusted", Some("off until you switch it on"))),
        hook("guest\u{1b}[2J", "before_tool", state("untrusted", None)),
    ]
}

fn asked(ui: &mut Ui, text: &str) -> Receiver<String> {
    let (reply, answer) = channel();
    let kind = AnswerKind::Ways(vec!["[o]nce".to_owned(), "[a]lways".to_owned()]);
    ui.message(Message::Ask(Question { id: 7, text: text.to_owned(), kind, reply }));
    answer
}

/// A conversation in which everything occurs.
fn with_talk(has_colour: bool) -> Ui {
    let mut ui = ui(has_colour, PanelName::Chat);
    let status =
        ChatStatus { session: "s1".to_owned(), model: "ollama:qwen3".to_owned(), approval: "ask", messages: 4 };
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
fn the_panel_of_the_chat_as_it_is_seen() {
    pictured("chat", with_talk);
}

#[test]
fn a_question_as_it_is_seen() {
    pictured("question", |has_colour| {
        let mut ui = with_hooks(has_colour, three_hooks());
        let changes = "--- changed since it was approved\n-exit 0\n+exit 1\n---\n";
        drop(asked(&mut ui, &format!("\nhook guest\n{changes}{}May it run?", "# a long script\n".repeat(30))));
        ui
    });
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
            for mut ui in [with_talk(true), with_hooks(true, three_hooks())] {
                drop(asked(&mut ui, "a\nlong\nquestion"));
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
    let answer = asked(&mut ui, "May it run?");
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
    let answer = asked(&mut ui, "May it run?");
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
    let first = asked(&mut ui, "The first?");
    let (reply, second) = channel();
    let kind = AnswerKind::Ways(vec!["[a]lways".to_owned()]);
    ui.message(Message::Ask(Question { id: 8, text: "The second?".to_owned(), kind, reply }));
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
    ui.message(Message::Chat(ChatNews::Working(false)));
    assert!(!ui.is_moving());
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
