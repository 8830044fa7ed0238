//! Waits, does what the panels want done, and draws what changed.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_app::AppContext;
use ollm_app::session::SessionKind;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};

use super::chat::ChatSetup;
use super::panel::{Job, PanelName};
use super::screen::{Inbox, Message};
use super::terminal::PanelTerminal;
use super::theme::Theme;
use super::ui::{Effect, Ui};
use super::wakeup::Wakeup;
use crate::arguments::agent::TuiArguments;
use crate::ask::Asker;
use crate::error::{Failure, Kind, OK};
use crate::output::Output;
use crate::person::person;
use ollm_protocol::Code;

/// More messages hold up whoever sends them.
const MOST_MESSAGES: usize = 1024;
/// How often something that moves is drawn.
const TICK: Duration = Duration::from_millis(250);
/// Messages alone are drawn no more often than this; a key is drawn at once.
const FRAME: Duration = Duration::from_millis(16);

/// Why the panels are left.
enum End {
    /// The person wanted it.
    Left,
    Signal(i32),
}

pub(crate) fn run(arguments: &TuiArguments, context: &AppContext) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::new(Code::Environment, format!("the terminal cannot be used: {error}"));
    let first = match &arguments.panel {
        None => PanelName::ALL[0],
        Some(name) => PanelName::named(name).ok_or_else(|| {
            let names: Vec<String> = PanelName::ALL.iter().map(|panel| panel.title().to_lowercase()).collect();
            Failure::usage(format!("--panel {name}: there is no such panel"))
                .hint(format!("one of {}", names.join(", ")))
        })?,
    };
    let (wakeup, waker) = Wakeup::new().map_err(failed)?;
    let (sender, messages) = sync_channel(MOST_MESSAGES);
    let inbox = Inbox::new(sender, waker);
    let setup = ChatSetup {
        options: arguments.agent.options(SessionKind::Chat)?,
        history: context.places.home.join("state/chat-history"),
        inbox: inbox.clone(),
    };
    let terminal = PanelTerminal::enter(inbox.clone()).map_err(failed)?;
    let ui = Ui::new(Theme::of(context), first, setup);
    let mut event_loop = EventLoop { ui, terminal, wakeup, messages, inbox, context: context.clone(), ended_by: None };
    match event_loop.run().map_err(failed)? {
        End::Left => Ok(OK),
        End::Signal(SIGTERM) => Ok(Kind::Terminated as u8),
        End::Signal(SIGHUP) => Ok(Kind::HungUp as u8),
        End::Signal(_) => Ok(Kind::Interrupted as u8),
    }
}

struct EventLoop {
    ui: Ui,
    terminal: PanelTerminal,
    wakeup: Wakeup,
    messages: Receiver<Message>,
    inbox: Inbox,
    context: AppContext,
    /// The signal that ends us, once one came.
    ended_by: Option<i32>,
}

impl EventLoop {
    fn run(&mut self) -> io::Result<End> {
        // The first frame waits for nothing that begins with it.
        self.terminal.draw(|frame| self.ui.draw(frame))?;
        let mut drawn = Instant::now();
        let mut has_keys = true;
        loop {
            if let Some(end) = self.do_effects()? {
                return Ok(end);
            }
            // A key is drawn at once; a flood of messages is drawn frame by frame.
            let rest = FRAME.saturating_sub(drawn.elapsed());
            let is_early = !has_keys && !rest.is_zero();
            let mut waits = false;
            if self.ui.take_change() {
                if is_early {
                    self.ui.redraw();
                    waits = true;
                } else {
                    let shown = self.terminal.draw(|frame| self.ui.draw(frame));
                    // A terminal that is gone shows nothing any more.
                    if self.ended_by != Some(SIGHUP) {
                        shown?;
                    }
                    drawn = Instant::now();
                }
            }
            let moment = if waits { Some(rest) } else { self.ui.is_moving().then_some(TICK) };
            let awake = self.wakeup.wait(moment)?;
            self.take_signals()?;
            if awake.is_hung_up {
                self.wakeup.forget_keyboard();
                self.ended_by.get_or_insert(SIGHUP);
                self.ui.quit();
            }
            has_keys = awake.has_keys;
            if awake.has_keys {
                for event in self.terminal.events()? {
                    self.ui.event(event);
                }
            }
            let mut is_quiet = !has_keys;
            // What comes meanwhile waits for the next frame.
            for message in self.messages.try_iter().take(MOST_MESSAGES) {
                is_quiet = false;
                self.ui.message(message);
            }
            if is_quiet && !waits && self.ui.is_moving() {
                self.ui.tick();
                has_keys = true;
            }
        }
    }

    fn do_effects(&mut self) -> io::Result<Option<End>> {
        for effect in self.ui.take_effects() {
            match effect {
                Effect::Quit => return Ok(Some(self.ended_by.map_or(End::Left, End::Signal))),
                Effect::Spawn(panel, job) => self.spawn(panel, job),
                Effect::DiscardInput => self.terminal.discard_input()?,
                Effect::Stop => self.terminal.stop()?,
                Effect::Clear => self.terminal.resume()?,
                Effect::Suspend { ready, done } => self.terminal.suspend(|| {
                    let _ = ready.send(());
                    // It ends when whoever has the terminal drops the other end.
                    let _ = done.recv();
                })?,
            }
            self.ui.redraw();
        }
        Ok(None)
    }

    /// A signal that asks us to end ends the conversation first; a second one does not wait for that.
    fn take_signals(&mut self) -> io::Result<()> {
        for signal in self.wakeup.signals() {
            match signal {
                SIGTSTP => self.terminal.stop()?,
                SIGCONT => self.terminal.resume()?,
                SIGWINCH => {}
                SIGINT | SIGTERM | SIGHUP => {
                    self.ended_by = Some(signal);
                    self.ui.quit();
                }
                _ => continue,
            }
            self.ui.redraw();
        }
        Ok(())
    }

    /// Runs a job on a thread of its own; however it ends, its end is told.
    fn spawn(&mut self, panel: PanelName, job: Job) {
        let inbox = self.inbox.clone();
        let asker = Asker::Dialog(inbox.screen(panel, job.cancel.clone()));
        let mut context = self.context.clone();
        context.person = person(asker.clone(), &context);
        let title = job.title.clone();
        let began = thread::Builder::new().name("panel job".to_owned()).spawn(move || {
            let mut ending = Ending { inbox, panel, job: job.title, outcome: None };
            let mut output = Output::with(asker);
            ending.outcome = Some((job.work)(&context, &mut output));
            output.write_log(&context);
        });
        if let Err(error) = began {
            let outcome = Err(Failure::new(Code::Environment, format!("no thread could be started: {error}")));
            self.ui.message(Message::Done { panel, job: title, outcome });
        }
    }
}

/// Tells the end of a job, also of one that panicked.
struct Ending {
    inbox: Inbox,
    panel: PanelName,
    job: String,
    outcome: Option<Result<u8, Failure>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let lost = || Err(Failure::new(Code::Environment, "a part of the program failed"));
        let outcome = self.outcome.take().unwrap_or_else(lost);
        let job = std::mem::take(&mut self.job);
        self.inbox.send(Message::Done { panel: self.panel, job, outcome });
    }
}
