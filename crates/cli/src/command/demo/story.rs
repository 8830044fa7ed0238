//! Tells the demo as a story: each speaker's words, the effects of hooks, and then all events in order.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use ollm_agent::{Decision, News, Show};
use ollm_app::SharedPort;
use ollm_app::outcome::{is_shown, to_json};
use ollm_engine::{Outcome, Skip};
use ollm_protocol::{Event, EventKind};
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::Value;

use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN, timeline_with};

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
/// The longest result or argument in one line.
const LONGEST: usize = 120;

/// Everything that has happened so far.
pub(super) struct Story<'o> {
    pub(super) output: SharedPort<&'o mut Output>,
    pub(super) quiet: bool,
    told: SharedPort<Told>,
}

#[derive(Default)]
struct Told {
    events: Vec<(EventKind, Sign)>,
    json: Vec<Value>,
    /// Skipped hooks that were already told.
    skipped: BTreeSet<String>,
    runs: usize,
    prompts: usize,
}

/// The effect of hooks on an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Unasked,
    Ran,
    Changed,
    Refused,
}

impl<'o> Story<'o> {
    pub(super) fn new(output: &'o mut Output, quiet: bool) -> Story<'o> {
        Story { output: SharedPort::new(output), quiet, told: SharedPort::default() }
    }

    /// All events as JSON, each as `ollm hook run` prints it.
    pub(super) fn json(&self) -> Vec<Value> {
        self.told.lock().json.clone()
    }

    /// Adds one event and its outcome.
    pub(super) fn hear(&self, event: &Event, decision: &Decision, outcome: &Outcome) {
        let ran = outcome.reports.iter().filter(|report| is_shown(report)).count();
        let skipped = {
            let mut told = self.told.lock();
            told.events.push((event.kind, Sign::of(decision, ran)));
            told.runs += ran;
            told.json.push(to_json(outcome));
            // A refusal is always news; a missing approval is news only once.
            let mut is_news =
                |skip: &&Skip| !skip.reason.needs_approval() || told.skipped.insert(skip.hook.id().to_owned());
            outcome.skipped.iter().filter(|skip| is_news(skip)).collect::<Vec<_>>()
        };
        if event.kind == EventKind::BeforeAgent {
            self.prompt(event.text("prompt").unwrap_or_default());
        }
        if ran > 0 || !skipped.is_empty() {
            self.say(&timeline_with(&title(event), outcome, &skipped));
        }
    }

    fn prompt(&self, prompt: &str) {
        let asker = {
            let mut told = self.told.lock();
            told.prompts += 1;
            if told.prompts == 1 { "you" } else { "a hook asks" }
        };
        self.say(&format!("\n{BOLD}{asker:<13}{PLAIN} {}\n", one_line(prompt)));
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            // A reader that went away misses the rest of the story, which is no failure.
            let _ = self.output.lock().text(text);
        }
    }

    /// All events in order, and totals.
    pub(super) fn summary(&self, took: Duration) -> String {
        let told = self.told.lock();
        let count = |sign: Sign| told.events.iter().filter(|(_, seen)| *seen == sign).count();
        let mut text = format!(
            "\n{BOLD}{} events{PLAIN} in {:.1} s, {} runs of hooks: {} changed something, {} refused\n",
            told.events.len(),
            took.as_secs_f64(),
            told.runs,
            count(Sign::Changed),
            count(Sign::Refused),
        );
        let _ = write!(text, "{DIM}· no question{PLAIN}  {}", Sign::Ran.mark("hooks ran"));
        let _ = writeln!(text, "  {}  {}", Sign::Changed.mark("changed"), Sign::Refused.mark("refused"));
        for (kind, sign) in told.events.iter().filter(|(kind, _)| *kind != EventKind::Notification) {
            let begins = matches!(
                kind,
                EventKind::SessionStart
                    | EventKind::BeforeAgent
                    | EventKind::BeforeToolSelection
                    | EventKind::AfterAgent
                    | EventKind::SessionEnd
            );
            let indent = if *kind == EventKind::BeforeToolSelection { "\n    " } else { "\n  " };
            text.push_str(if begins { indent } else { "  " });
            text.push_str(&sign.mark(kind.name()));
        }
        text.push('\n');
        text
    }
}

impl Sign {
    fn of(decision: &Decision, ran: usize) -> Sign {
        let changed = decision.args.is_some()
            || !(decision.system_messages.is_empty() && decision.context.is_empty() && decision.prompts.is_empty());
        match (decision.flow.refuses(), changed, ran) {
            (true, _, _) => Sign::Refused,
            (_, true, _) => Sign::Changed,
            (_, _, 0) => Sign::Unasked,
            _ => Sign::Ran,
        }
    }

    fn mark(self, name: &str) -> String {
        match self {
            Sign::Unasked => format!("{DIM}· {name}{PLAIN}"),
            Sign::Ran => format!("{GREEN}●{PLAIN} {name}"),
            Sign::Changed => format!("{CYAN}~{PLAIN} {name}"),
            Sign::Refused => format!("{RED}✗{PLAIN} {name}"),
        }
    }
}

/// The subject of an event.
fn title(event: &Event) -> String {
    match (event.text("tool_name"), event.text("path")) {
        (Some(tool), _) => {
            let mut args = event.args().cloned().unwrap_or_default();
            args.remove("file_path");
            format!("{tool} {}", cut(&Value::from(args).to_string(), LONGEST))
        }
        (None, Some(path)) => path.rsplit('/').next().unwrap_or(path).to_owned(),
        (None, None) => String::new(),
    }
}

impl Show for &Story<'_> {
    fn show(&mut self, news: &News<'_>) {
        match news {
            News::Answered { content } if !content.is_empty() => {
                self.say(&format!("\n{BOLD}{:<13}{PLAIN} {}\n", "model", escape_for_people(content)));
            }
            News::Calling { name, args, .. } => {
                let args = Value::from((*args).clone()).to_string();
                self.say(&format!("  {CYAN}→{PLAIN} {name} {}\n", one_line(&cut(&args, LONGEST))));
            }
            News::Called { result, failed: false, diff, .. } => {
                let first = result.lines().next().unwrap_or_default();
                self.say(&format!("  {GREEN}✓{PLAIN} {}\n", one_line(&cut(first, LONGEST))));
                for line in diff.iter().flat_map(|diff| diff.lines()).filter(|line| is_change(line)) {
                    self.say(&format!("    {}\n", one_line(line)));
                }
            }
            News::Called { result, failed: true, .. } => {
                self.say(&format!("  {RED}✗{PLAIN} {}\n", one_line(&cut(result, LONGEST))));
            }
            News::Error(text) => self.say(&format!("  {RED}{}{PLAIN}\n", one_line(text))),
            _ => {}
        }
    }
}

fn is_change(line: &str) -> bool {
    (line.starts_with('+') || line.starts_with('-')) && !line.starts_with("+++") && !line.starts_with("---")
}
