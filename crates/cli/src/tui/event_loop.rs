//! The event loop: waits, carries out the panels' effects, and draws changes.

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_app::AppContext;
use ollm_app::session::SessionKind;
use ratatui::crossterm::event::Event;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTSTP};

use super::chat::ChatSetup;
use super::panel::{Job, PanelName};
use super::screen::{Inbox, Message};
use super::terminal::PanelTerminal;
use super::theme::Theme;
use super::ui::{Effect, Ui};
use super::wakeup::{ENDING, Wakeup};
use crate::arguments::agent::TuiArguments;
use crate::ask::{Asker, GRACE_VARIABLE, question_grace};
use crate::error::{ErrorKind, Failure, OK};
use crate::output::Output;
use crate::person::person;
use ollm_protocol::Code;

/// More messages hold up their senders.
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
    let grace = question_grace(context.variable(GRACE_VARIABLE).as_deref());
    let ui = Ui::new(Theme::of(context), first, setup, grace);
    let mut event_loop = EventLoop { ui, terminal, wakeup, messages, inbox, context: context.clone(), ended_by: None };
    match event_loop.run().map_err(failed)? {
        End::Left => Ok(OK),
        End::Signal(signal) => Ok(u8::try_from(128 + signal).unwrap_or(ErrorKind::Interrupted as u8)),
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
        self.terminal.outlive_kill(self.context.program.as_deref());
        let mut drawn = Instant::now();
        let mut has_keys = true;
        loop {
            self.ui.check_grace();
            if let Some(end) = self.do_effects()? {
                return Ok(end);
            }
            // A key is drawn at once; a flood of messages is drawn frame by frame.
            let rest = FRAME.saturating_sub(drawn.elapsed());
            let waits = self.ui.has_changed() && !has_keys && !rest.is_zero();
            if !waits && self.ui.take_change() {
                let shown = self.terminal.draw(|frame| self.ui.draw(frame));
                self.outlive(shown)?;
                drawn = Instant::now();
            }
            let moment = if waits { Some(rest) } else { self.ui.is_moving().then_some(TICK) };
            has_keys = self.wait(moment)?;
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

    /// Sleeps until something comes, and takes signals and keys; whether keys came.
    fn wait(&mut self, moment: Option<Duration>) -> io::Result<bool> {
        let due = self.terminal.due().map(|due| due.saturating_duration_since(Instant::now()));
        let awake = self.wakeup.wait(moment.into_iter().chain(due).min())?;
        self.take_signals()?;
        if awake.is_hung_up {
            self.hang_up();
        }
        if awake.has_keys || self.terminal.due().is_some_and(|due| due <= Instant::now()) {
            match self.terminal.events() {
                Ok(events) => self.take_events(events),
                Err(_) => self.hang_up(),
            }
        }
        Ok(awake.has_keys)
    }

    /// Handles events. Keys from before a new question are dropped, because they are not meant for it.
    fn take_events(&mut self, events: Vec<Event>) {
        for event in events {
            self.ui.event(event);
            if self.ui.is_discarding() {
                return;
            }
        }
    }

    fn do_effects(&mut self) -> io::Result<Option<End>> {
        for effect in self.ui.take_effects() {
            let done = match effect {
                Effect::Quit => return Ok(Some(self.ended_by.map_or(End::Left, End::Signal))),
                Effect::Spawn(panel, job) => {
                    self.spawn(panel, job);
                    Ok(())
                }
                Effect::DiscardInput => self.terminal.discard_input(),
                Effect::Stop => self.stop(),
                Effect::Clear => self.terminal.refresh(),
                Effect::Suspend { ready, done } => self.lend(&ready, &done),
            };
            self.outlive(done)?;
            self.ui.redraw();
        }
        Ok(None)
    }

    /// Ignores the error of a closed terminal: a signal reports it too.
    fn outlive(&mut self, done: io::Result<()>) -> io::Result<()> {
        match done {
            Err(error) if self.ended_by.is_some() || is_gone(&error) => self.hang_up(),
            done => done?,
        }
        Ok(())
    }

    /// Handles a closed terminal: nothing is read or drawn any more, and the conversation ends in order.
    fn hang_up(&mut self) {
        self.wakeup.forget_keyboard();
        self.terminal.release();
        self.end_by(SIGHUP);
    }

    /// Handles a signal that asks us to end: it ends the conversation first, and a second signal does not wait for
    /// that.
    fn end_by(&mut self, signal: i32) {
        // A closed terminal is reported in several ways, which do not count as a second request.
        if signal != SIGHUP || self.ended_by.is_none() {
            self.ended_by.get_or_insert(signal);
            self.ui.quit();
        }
    }

    fn stop(&mut self) -> io::Result<()> {
        let stopped = self.terminal.stop();
        self.wakeup.forget_signal(SIGCONT);
        stopped
    }

    /// A job has the terminal until `done` ends.
    fn lend(&mut self, ready: &Sender<()>, done: &Receiver<()>) -> io::Result<()> {
        self.terminal.release();
        let _ = ready.send(());
        // Keys are meant for it.
        while done.try_recv() == Err(TryRecvError::Empty) {
            self.wakeup.wait_for_others()?;
            match self.wakeup.signal() {
                // It stops with us.
                Some(SIGTSTP) => drop(signal_hook::low_level::emulate_default_handler(SIGTSTP)),
                Some(signal) if signal != SIGINT && ENDING.contains(&signal) => {
                    self.wakeup.forget_keyboard();
                    self.end_by(signal);
                    return Ok(());
                }
                // An interrupt is meant for it.
                _ => {}
            }
        }
        for signal in [SIGCONT, SIGINT] {
            self.wakeup.forget_signal(signal);
        }
        self.terminal.resume()
    }

    fn take_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.wakeup.signal() {
            let done = match signal {
                SIGTSTP => self.stop(),
                SIGCONT => self.terminal.refresh(),
                signal if ENDING.contains(&signal) => {
                    self.end_by(signal);
                    Ok(())
                }
                _ => Ok(()),
            };
            self.outlive(done)?;
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

/// Whether a terminal that was closed says so.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::IO, Errno::PIPE, Errno::NXIO, Errno::NOTTY, Errno::BADF];
    error.kind() == io::ErrorKind::UnexpectedEof
        || gone.iter().any(|gone| error.raw_os_error() == Some(gone.raw_os_error()))
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
