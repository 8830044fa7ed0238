//! `ollm watch`: tells hooks of files that people and programs change.

use ollm_agent::Decision;
use ollm_app::outcome::{is_shown, to_json};
use ollm_app::session::{self, SessionKind};
use ollm_app::watch::{ProjectWatch, WatchListener, watch_project};
use ollm_app::{AppContext, SharedPort};
use ollm_engine::Outcome;
use ollm_protocol::FileChange;
use ollm_protocol::units::counted;
use ollm_store::one_line;
use serde_json::{Value, json};

use crate::error::{Failure, OK};
use crate::interrupt::Stop;
use crate::output::{Output, shown};

pub(super) fn run(as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if as_json {
        output.stream_json();
    }
    let app = session::load(context, SessionKind::Chat, None)?;
    context.tell_notices(output);
    app.tell_problems(output);
    let stop = Stop::listen();
    let shared = SharedPort::new(output);
    let mut screen = Screen { output: &shared, as_json };
    watch_project(app, &mut screen, &shared, stop.cancel())?;
    shared.lock().is_whole()?;
    stop.failure().map_or(Ok(OK), Err)
}

/// Shows the watcher's actions.
struct Screen<'a, 'o> {
    output: &'a SharedPort<&'o mut Output>,
    as_json: bool,
}

impl WatchListener for Screen<'_, '_> {
    fn standing(&mut self, watch: &ProjectWatch) {
        let files = watch.files();
        let (count, root) = (files.file_count(), files.root());
        if self.as_json {
            self.line(&json!({
                "type": if watch.is_teller() { "watching" } else { "waiting" },
                "project": shown(root),
                "files": count,
                "polling": files.is_polling(),
            }));
        } else if watch.is_teller() {
            let files = counted(count, "file");
            self.output.lock().tell(&format!("watching {files} in {}; Ctrl-C ends", root.display()));
        } else {
            self.output.lock().tell(&format!(
                "another ollm tells hooks of the files in {}; this one takes over when that ends",
                root.display()
            ));
        }
    }

    fn changed(&mut self, change: &FileChange, decision: &Decision, outcome: &Outcome) {
        if self.as_json {
            self.line(&event_line(change, outcome));
        } else {
            // A lost line is reported when we end.
            let _ = self.output.lock().text(&event_text(change, outcome));
        }
        let mut output = self.output.lock();
        for failure in &decision.failures {
            output.tell_failure(&failure.message);
        }
        for note in &decision.messages {
            output.tell(&format!("hook `{}`: {}", note.hook, note.text));
        }
        for text in &decision.system_messages {
            output.tell(text);
        }
        for prompt in &decision.prompts {
            output.tell(&format!(
                "hook `{}` has a prompt for the agent, and no chat runs in this project: {}",
                prompt.hook, prompt.text
            ));
        }
    }
}

impl Screen<'_, '_> {
    fn line(&mut self, value: &Value) {
        let _ = self.output.lock().json(value);
    }
}

fn event_line(change: &FileChange, outcome: &Outcome) -> Value {
    let mut value = json!({"type": "event", "path": change.name, "size": change.size});
    if let (Some(line), Value::Object(fields)) = (value.as_object_mut(), to_json(outcome)) {
        line.extend(fields);
    }
    value
}

fn event_text(change: &FileChange, outcome: &Outcome) -> String {
    let name = one_line(change.name.as_deref().unwrap_or(&change.path));
    let ran = outcome.reports.iter().filter(|report| is_shown(report));
    let ran: Vec<String> =
        ran.map(|report| format!("{} {}", one_line(&report.hook.spec.name), report.status.name())).collect();
    format!("{:<8} {name}  {}\n", change.verb(), ran.join(", ")).trim_end().to_owned() + "\n"
}
