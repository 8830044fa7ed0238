//! Handles signals that ask us to end: the first ends the turn, the next the session. If the session takes too long to
//! end, the process ends.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use ollm_agent::Cancel;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use crate::ask::Asker;
use crate::error::{ErrorKind, Failure};

/// How long an orderly end may take. After it, everything that still runs for us dies with us.
const GRACE: Duration = Duration::from_secs(5);

/// The signals that ask us to end.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Signal handlers belong to the process, so this does too.
static IS_LISTENING: AtomicBool = AtomicBool::new(false);

/// How long the orderly end of a single request to servers may take, because a person waits at a prompt.
const SHORT_GRACE: Duration = Duration::from_secs(2);

/// The signal that asked us to end, if one has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    signal: Arc<AtomicI32>,
    cancel: Cancel,
}

impl Stop {
    /// Listens for signals during a session, until the process ends, and calls `then` after each. If that is not
    /// possible, signals end us at once, as by default.
    pub(crate) fn listen_for(cancel: &Cancel, then: impl Fn() + Send + 'static) -> Stop {
        let stop = Stop { signal: Arc::default(), cancel: cancel.clone() };
        let heard = stop.clone();
        on_signals(move |signal| {
            heard.signal.store(signal, Ordering::Relaxed);
            if signal == SIGINT {
                heard.cancel.interrupt();
            } else {
                heard.cancel.end();
            }
            then();
            heard.cancel.is_final().then_some(GRACE)
        });
        stop
    }

    /// Listens for signals until the process ends. The first asks for an orderly end; a second one, or too long an end,
    /// ends us at once.
    pub(crate) fn listen() -> Stop {
        let stop = Stop::default();
        let heard = stop.clone();
        on_signals(move |signal| {
            if heard.signal.swap(signal, Ordering::Relaxed) != 0 {
                return Some(Duration::ZERO);
            }
            heard.cancel.interrupt();
            Some(SHORT_GRACE)
        });
        stop
    }

    /// Like [`Stop::listen`]. The panels handle signals themselves; there, a key interrupts.
    pub(crate) fn listen_beside(asker: &Asker) -> Stop {
        match asker {
            Asker::Lines(..) => Stop::listen(),
            Asker::Dialog(screen) => Stop { signal: Arc::default(), cancel: screen.cancel().clone() },
        }
    }

    /// Set when the signal comes.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// The failure by which we exit after the signal.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.kind().map(Failure::of_signal)
    }

    /// The exit code after an interruption: by the last signal, or by a key.
    pub(crate) fn code(&self) -> u8 {
        self.kind().unwrap_or(ErrorKind::Interrupted) as u8
    }

    fn kind(&self) -> Option<ErrorKind> {
        match self.signal.load(Ordering::Relaxed) {
            // A key of the panels is no signal.
            0 => self.cancel.is_set().then_some(ErrorKind::Interrupted),
            signal => Some(kind_of(signal)),
        }
    }
}

/// The kind of failure for a signal.
fn kind_of(signal: i32) -> ErrorKind {
    match signal {
        SIGTERM => ErrorKind::Terminated,
        SIGHUP => ErrorKind::HungUp,
        _ => ErrorKind::Interrupted,
    }
}

/// A request to undo the running work: by a signal that is held back, or by a key of the panels.
pub(crate) enum Interruption {
    Signal(HeldSignals),
    Key(Cancel),
}

impl Interruption {
    pub(crate) fn hold(asker: &Asker) -> Interruption {
        match asker {
            Asker::Lines(..) => Interruption::Signal(HeldSignals::hold(&ENDING)),
            Asker::Dialog(screen) => Interruption::Key(screen.cancel().clone()),
        }
    }

    pub(crate) fn came(&self) -> bool {
        self.failure().is_some()
    }

    /// The failure by which we exit after it.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self {
            Interruption::Signal(signals) => signals.came().map(kind_of),
            Interruption::Key(cancel) => cancel.is_set().then_some(ErrorKind::Interrupted),
        }
        .map(Failure::of_signal)
    }
}

/// Holds back signals that would end or stop us. Dropping it restores their effect, unless a session listens to them.
pub(crate) struct HeldSignals {
    which: &'static [i32],
    held: &'static Held,
}

/// Each signal has one handler in the process, which is registered once and for all.
static HELD: OnceLock<Held> = OnceLock::new();

struct Held(Vec<HeldSignal>);

struct HeldSignal {
    signal: i32,
    /// Whether the signal has its usual effect.
    passes: Arc<AtomicBool>,
    came: Arc<AtomicBool>,
}

impl Held {
    fn register() -> Held {
        let register = |signal| {
            let (passes, came) = (Arc::default(), Arc::default());
            // A signal that cannot be held back ends us at once, as by default.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&passes));
            let _ = signal_hook::flag::register(signal, Arc::clone(&came));
            HeldSignal { signal, passes, came }
        };
        Held([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP].map(register).into())
    }
}

impl HeldSignals {
    pub(crate) fn hold(which: &'static [i32]) -> HeldSignals {
        let held = HELD.get_or_init(Held::register);
        for one in &held.0 {
            one.passes.store(!which.contains(&one.signal) && !is_listening(one.signal), Ordering::SeqCst);
            one.came.store(false, Ordering::SeqCst);
        }
        HeldSignals { which, held }
    }

    /// The signal that came meanwhile, if one did.
    pub(crate) fn came(&self) -> Option<i32> {
        let is_meant = |one: &&HeldSignal| self.which.contains(&one.signal) && one.came.load(Ordering::SeqCst);
        self.held.0.iter().find(is_meant).map(|one| one.signal)
    }

    /// The signal that came meanwhile; it is then forgotten.
    pub(crate) fn take(&self) -> Option<i32> {
        let came = self.came();
        self.held.0.iter().for_each(|one| one.came.store(false, Ordering::SeqCst));
        came
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        let own = self.held.0.iter().filter(|one| !is_listening(one.signal));
        own.for_each(|one| one.passes.store(true, Ordering::SeqCst));
    }
}

/// A terminal that does not print `^C` into the answer; dropping it restores the terminal.
pub(crate) struct QuietTerminal(Option<Termios>);

impl QuietTerminal {
    /// Makes the terminal quiet, if standard input is one.
    pub(crate) fn new() -> QuietTerminal {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut modes) = before.clone() {
            modes.local_modes.remove(LocalModes::ECHOCTL);
            // A failure only makes the answer look worse.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        }
        QuietTerminal(before)
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A closed terminal needs no restoring.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Whether a session handles a signal that asks us to end.
pub(crate) fn is_listening(signal: i32) -> bool {
    IS_LISTENING.load(Ordering::SeqCst) && ENDING.contains(&signal)
}

/// Calls `respond` for each signal that asks us to end, on a thread of its own. It returns the time after which the
/// process ends, if it should end. Our children's guards then end what still runs.
fn on_signals(respond: impl Fn(i32) -> Option<Duration> + Send + 'static) {
    let Ok(mut signals) = Signals::new(ENDING) else { return };
    IS_LISTENING.store(true, Ordering::SeqCst);
    let _ = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if let Some(grace) = respond(signal) {
                thread::spawn(move || {
                    thread::sleep(grace);
                    std::process::exit(128 + signal);
                });
            }
        }
    });
}
