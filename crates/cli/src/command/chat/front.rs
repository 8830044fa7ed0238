//! The person's side of a conversation: where lines come from, and how it is shown.

use std::time::Duration;

use ollm_agent::{Cancel, Message, Show};
use ollm_app::{AppContext, Shared, WakeSignal};
use ollm_engine::bus::{Bus, Filter, Matter};
use ollm_store::one_line;

use super::reader::Reader;
use super::recap;
use crate::display::{Display, Style};
use crate::error::Failure;
use crate::interrupt::{QuietTerminal, Stop};
use crate::output::Output;
use crate::spinner::Spinner;

/// What came while we waited.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// What the person wrote; it may have several lines.
    Text(String),
    /// Something else came up, and the terminal is free.
    Other,
    /// The end.
    End,
}

/// When something else comes up between two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upcoming {
    Now,
    /// It is worth another look after this time, or when we are woken.
    Within(Duration),
    /// Not before we are woken.
    OnWake,
}

/// What is known of a conversation between two inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChatStatus {
    pub(crate) session: String,
    pub(crate) model: String,
    /// The approval mode.
    pub(crate) approval: &'static str,
    pub(crate) messages: usize,
}

/// The person's side of a conversation.
pub(crate) trait ChatFront {
    /// The conversation is over, and another one begins.
    fn renew(&mut self) {}

    /// A session is about to start.
    fn prepare(&mut self) {}

    /// The session has started.
    fn begin(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Who shows the session as it happens.
    fn show<'a, 'o: 'a>(&mut self, output: &'a Shared<&'o mut Output>, cancel: &Cancel) -> Box<dyn Show + 'a>;

    /// Where hooks tell that they run.
    fn listen(&mut self, _bus: &Bus) {}

    /// What wakes it while it waits for an input.
    fn wake(&self) -> WakeSignal;

    /// From now on something else may come up between two inputs.
    fn share(&mut self) {}

    /// The next input, or that `upcoming` says that something else has come up.
    fn next(&mut self, upcoming: &mut dyn FnMut() -> Upcoming) -> Input;

    /// Whether an input is being worked on.
    fn work(&mut self, _is_working: bool) {}

    /// How things stand between two inputs.
    fn status(&mut self, _status: &ChatStatus) {}

    /// Shows what was said last in a conversation that goes on.
    fn recap(&mut self, messages: &[Message], output: &Shared<&mut Output>);
}

/// Tells whenever a hook begins to run, and when it has ended.
pub(crate) fn on_hooks(bus: &Bus, tell: impl Fn(Option<String>) + Send + Sync + 'static) {
    let names = ["hook_execution_start", "hook_execution_complete", "hook_execution_error"];
    let Ok(filter) = Filter::named(names) else { return };
    bus.subscribe(filter, 0, move |message| {
        tell(match &message.matter {
            Matter::HookStart { hook, .. } => Some(one_line(&hook.spec.name)),
            _ => None,
        });
    });
}

/// What a person wrote or pasted, without control characters.
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
    reader: Option<Reader>,
    spinner: Spinner,
}

impl LineFront {
    /// The spinner is that of the output, which hides it while it prints.
    pub(super) fn new(context: &AppContext, cancel: &Cancel, spinner: Spinner) -> Result<LineFront, Failure> {
        let (context, cancel, wake) = (context.clone(), cancel.clone(), WakeSignal::new()?);
        Ok(LineFront { context, cancel, wake, stop: None, quiet: None, reader: None, spinner })
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
            self.reader = Some(Reader::new(&self.context, &self.cancel, &self.wake)?);
        }
        Ok(())
    }

    fn show<'a, 'o: 'a>(&mut self, output: &'a Shared<&'o mut Output>, cancel: &Cancel) -> Box<dyn Show + 'a> {
        Box::new(Display::new(output, Style::Text, cancel))
    }

    fn work(&mut self, is_working: bool) {
        if is_working {
            self.spinner.start("model");
        } else {
            self.spinner.stop();
        }
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

    fn recap(&mut self, messages: &[Message], output: &Shared<&mut Output>) {
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
