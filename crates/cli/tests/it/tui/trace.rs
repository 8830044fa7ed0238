//! The panel of the trace: events of other processes as they happen, and what the keys say of them.

use super::common::KeyCase;
use super::{does, leave, prints};
use crate::lab::pty::{LARGE, Pty, USUAL};
use crate::lab::{Lab, shell_event};
use crate::trace::{GO_ON, REFUSE, id};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", the_keys_explain_choose_count_replay_and_show_the_session),
    ("e", the_keys_explain_choose_count_replay_and_show_the_session),
    ("b", the_keys_explain_choose_count_replay_and_show_the_session),
    ("w", the_keys_explain_choose_count_replay_and_show_the_session),
    ("s", the_keys_explain_choose_count_replay_and_show_the_session),
    ("r", the_keys_explain_choose_count_replay_and_show_the_session),
];

fn lab() -> Lab {
    let lab = Lab::new();
    lab.user_hook("before_tool", "strict", REFUSE, "");
    lab.user_hook("after_tool", "meek", GO_ON, "");
    lab
}

fn panel(lab: &Lab) -> Pty {
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "trace"]);
    panel.sees("0 events");
    panel
}

#[test]
fn an_event_of_another_process_appears_with_its_verdict_and_how_long_it_took() {
    let lab = lab();
    let mut panel = panel(&lab);
    let id = id(&lab.event(shell_event("ls")));
    let shown = panel.sees("✗ before_tool shell");
    assert!(shown.contains("1 event") && shown.contains(" ms") && shown.contains('▇'), "{shown}");
    // The newest is chosen, and its details are what `ollm trace show` says.
    let shown = panel.sees(&id);
    assert!(shown.contains("strict") && shown.contains("not today"), "{shown}");
    lab.run(&["emit", "deployed"]);
    panel.sees("✓ custom deployed");
    leave(panel);
}

#[test]
fn the_keys_explain_choose_count_replay_and_show_the_session() {
    let lab = lab();
    let mut panel = panel(&lab);
    let id = id(&lab.event(shell_event("ls")));
    panel.sees("✗ before_tool shell");
    for key in ["\r", "e"] {
        prints(&mut panel, &lab, key, &format!("explaining {id}"), &["explain", &id]);
    }
    prints(&mut panel, &lab, "s", "counting events", &["trace", "stats"]);
    let shown = does(&mut panel, "r", &format!("replaying {id}"), "0 same, 0 different, 1 not replayed");
    assert!(shown.contains("not kept as a whole"), "{shown}");
    does(&mut panel, "w", "events of session ", "events without a session");
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let session = lab.run(&["run", "go", "--model", "replay:../talk.jsonl", "--json"]).answer()["session"].clone();
    let session = session.as_str().unwrap();
    panel.sees("✓ session_end");
    prints(&mut panel, &lab, "w", &format!("events of session {session}"), &["trace", "--session", session]);
    lab.run(&["emit", "deployed"]);
    panel.sees("✓ custom deployed");
    panel.types("b").sees("refused only");
    panel.sees_no_more("✓ custom deployed");
    panel.types("b").sees("✓ custom deployed");
    panel.types("/deployed\r").sees_no_more("✗ before_tool shell");
    leave(panel);
}

#[test]
fn a_trace_that_is_damaged_or_hostile_is_shown_as_far_as_it_goes() {
    let lab = lab();
    lab.event(shell_event("ls"));
    let good = std::fs::read_to_string(lab.trace_file()).unwrap();
    let hostile = good.replace("before_tool", "before\\u001b[2J\\u202etool");
    std::fs::write(lab.trace_file(), format!("{{\n\u{0}\n{hostile}{good}")).unwrap();
    let mut panel = lab.pty(USUAL, &["tui", "--panel", "trace"]);
    let shown = panel.sees("✗ before_tool");
    assert!(shown.contains(r"before\u{1b}"), "{shown}");
    leave(panel);
}
