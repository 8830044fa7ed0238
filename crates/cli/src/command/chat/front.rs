//! The person's side of a conversation: provides the input and shows the output.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ollm_agent::{Cancel, Message, Show};
use ollm_app::{AppContext, SharedPort, WakeSignal};
use ollm_engine::bus::{Bus, Filter, MessageBody};
use ollm_store::one_line;

use super::reader::{Completing, LineInput};
use super::recap;
use crate::display::{Display, Style};
use crate::error::Failure;
use crate::interrupt::{QuietTerminal, Stop};
use crate::output::Output;
use crate::spinner::Spinner;

/// The result of waiting for an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The person's text; it may have several lines.
    Text(String),
    /// Something else needs attention, and the terminal is free.
    Other,
    /// The end.
    End,
}

/// When something else may need attention between two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upcoming {
    Now,
    /// Look again after this time, or after a wake.
    Within(Duration),
    /// Not before a wake.
    OnWake,
}

/// The state of a conversation between two inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChatStatus {
    pub(crate) session: String,
    pub(crate) model: String,
    /// The model in its typed form, if it was typed.
    pub(crate) typed_model: Option<String>,
    /// The approval mode.
    pub(crate) approval: &'static str,
    pub(crate) messages: usize,
}

/// The person's side of a conversation.
pub(crate) trait ChatFront {
    /// The conversation has ended, and another one begins.
    fn renew(&mut self) {}

    /// A session is about to start.
    fn prepare(&mut self) {}

    /// The session has started.
    fn begin(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The view that shows the session while it runs.
    fn show<'a, 'o: 'a>(&mut self, output: &'a SharedPort<&'o mut Output>, cancel: &Cancel) -> Box<dyn Show + 'a>;

    /// Subscribes to the bus on which hooks report that they run.
    fn listen(&mut self, _bus: &Bus) {}

    /// Wakes it while it waits for an input.
    fn wake(&self) -> WakeSignal;

    /// From now on, something else may need attention between two inputs.
    fn share(&mut self) {}

    /// The next input, or [`Input::Other`] when `upcoming` says that something else needs attention.
    fn next(&mut self, upcoming: &mut dyn FnMut() -> Upcoming) -> Input;

    /// Tells whether an input is being handled.
    fn work(&mut self, _is_working: bool) {}

    /// Tells the state between two inputs.
    fn status(&mut self, _status: &ChatStatus) {}

    /// Shows the last messages of a resumed conversation.
    fn recap(&mut self, messages: &[Message], output: &SharedPort<&mut Output>);
}

/// Calls `tell` whenever a hook starts, and when it has ended.
pub(crate) fn on_hooks(bus: &Bus, tell: impl Fn(Option<String>) + Send + Sync + 'static) {
    let names = ["hook_execution_start", "hook_execution_complete", "hook_execution_error"];
    let Ok(filter) = Filter::named(names) else { return };
    bus.subscribe(filter, 0, move |message| {
        tell(match &message.body {
            MessageBody::HookStart { hook, .. } => Some(one_line(&hook.spec.name)),
            _ => None,
        });
    });
}

/// A person's typed or pasted text, without control characters.
pub(crate) fn written_text(written: &str) -> String {
    written.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

/// The plain terminal, line by line.
pub(super) struct LineFront {
    context: AppContext,
    cancel: Cancel,
    wake: WakeSignal,
    stop: Option<Stop>,
    quiet: Option<QuietTerminal>,
    reader: Option<LineInput>,
    /// The model in its last typed form.
    typed_model: Arc<Mutex<Option<String>>>,
    spinner: Spinner,
}

impl LineFront {
    /// Uses the output's spinner, which the output hides while it prints.
    pub(super) fn new(context: &AppContext, cancel: &Cancel, spinner: Spinner) -> Result<LineFront, Failure> {
        let (context, cancel, wake) = (context.clone(), cancel.clone(), WakeSignal::new()?);
        let typed_model = Arc::default();
        Ok(LineFront { context, cancel, wake, stop: None, quiet: None, reader: None, typed_model, spinner })
    }

    /// The exit code of a conversation that a signal ended.
    pub(super) fn stop_code(&self) -> u8 {
        self.stop.as_ref().map_or(crate::error::INTERRUPTED, Stop::code)
    }
}

impl ChatFront for LineFront {
    fn prepare(&mut self) {
        let wake = self.wake.clone();
        self.stop.get_or_insert_with(|| Stop::listen_for(&self.cancel, move || wake.wake()));
        self.quiet.get_or_insert_with(QuietTerminal::new);
    }

    fn begin(&mut self) -> Result<(), Failure> {
        if self.reader.is_none() {
            let completing = Completing { context: self.context.clone(), typed_model: Arc::clone(&self.typed_model) };
            self.reader = Some(LineInput::new(completing, &self.cancel, &self.wake)?);
        }
        Ok(())
    }

    fn show<'a, 'o: 'a>(&mut self, output: &'a SharedPort<&'o mut Output>, cancel: &Cancel) -> Box<dyn Show + 'a> {
        Box::new(Display::new(output, Style::Text, cancel))
    }

    fn work(&mut self, is_working: bool) {
        if is_working {
            self.spinner.start("model");
        } else {
            self.spinner.stop();
        }
    }

    fn status(&mut self, status: &ChatStatus) {
        self.typed_model.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&status.typed_model);
    }

    fn listen(&mut self, bus: &Bus) {
        let spinner = self.spinner.clone();
        on_hooks(bus, move |hook| match hook {
            Some(hook) => spinner.say(&format!("hook {hook}")),
            None => spinner.say("model"),
        });
    }

    fn wake(&self) -> WakeSignal {
        self.wake.clone()
    }

    fn share(&mut self) {
        if let Some(reader) = &self.reader {
            reader.share();
        }
    }

    fn next(&mut self, upcoming: &mut dyn FnMut() -> Upcoming) -> Input {
        self.reader.as_mut().map_or(Input::End, |reader| reader.next(upcoming))
    }

    fn recap(&mut self, messages: &[Message], output: &SharedPort<&mut Output>) {
        let _ = output.lock().text(&recap::text(messages));
    }
}

impl Drop for LineFront {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.leave();
        }
    }
}
