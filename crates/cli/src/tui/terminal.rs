//! Takes the terminal for the panels, and restores it on every way out.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Instant;

use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr,
};
use signal_hook::consts::SIGTSTP;

use super::keyboard::Keyboard;
use super::panel::PanelName;
use super::restorer::Restorer;
use super::screen::{Inbox, Message};

/// A frame is written in pieces of this size.
const BUFFER: usize = 64 << 10;
/// Keys are read in pieces of this size, and so many at once.
const PIECE: usize = 4 << 10;
const MOST_PIECES: usize = 64;

type PanicHook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;
type Drawing = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// The terminal while it shows the panels. The drop restores it.
pub(crate) struct PanelTerminal {
    /// None while a job has the terminal, and once it is gone.
    drawing: Option<Drawing>,
    keyboard: Keyboard,
    previous_hook: Arc<PanicHook>,
    /// How the terminal was.
    modes: Option<Termios>,
    /// Restores the terminal if we are killed.
    restorer: Option<Restorer>,
}

impl PanelTerminal {
    pub(crate) fn enter(inbox: Inbox) -> io::Result<PanelTerminal> {
        let previous_hook: Arc<PanicHook> = Arc::new(panic::take_hook());
        panic::set_hook(restoring(thread::current().id(), inbox, Arc::clone(&previous_hook)));
        let (keyboard, modes) = (Keyboard::default(), tcgetattr(io::stdin()).ok());
        let mut terminal = PanelTerminal { drawing: None, keyboard, previous_hook, modes, restorer: None };
        terminal.resume().inspect_err(|_| drop(give_back()))?;
        Ok(terminal)
    }

    /// Has another process give the terminal back should we be killed.
    pub(crate) fn outlive_kill(&mut self, program: Option<&Path>) {
        self.restorer = program.zip(self.modes.as_ref()).and_then(|(program, modes)| Restorer::start(program, modes));
    }

    /// Draws what changed.
    pub(crate) fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let Some(drawing) = &mut self.drawing else { return Ok(()) };
        queue!(drawing.backend_mut(), BeginSynchronizedUpdate)?;
        drawing.draw(frame)?;
        execute!(drawing.backend_mut(), EndSynchronizedUpdate)
    }

    /// What was typed, clicked and pasted until now. It never waits; an error says that the terminal is gone.
    pub(crate) fn events(&mut self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut room = [0; PIECE];
        for piece in 0..MOST_PIECES {
            if !has_input()? {
                // An incomplete sequence ends only if its rest has not come meanwhile.
                if piece == 0 {
                    self.keyboard.expire(Instant::now(), &mut events);
                }
                break;
            }
            match rustix::io::read(io::stdin(), &mut room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.keyboard.take(room.get(..count).unwrap_or_default(), Instant::now(), &mut events),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(events)
    }

    /// When a key that has begun is over without its end.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.keyboard.due()
    }

    /// Forgets what was typed until now: it was meant for something else.
    pub(crate) fn discard_input(&mut self) -> io::Result<()> {
        // Input in the kernel is read, not flushed: the rest of an incomplete key would look like another key.
        self.events()?;
        self.keyboard.drop_half();
        Ok(())
    }

    /// Leaves the terminal to a job, or for good; nothing is drawn then.
    pub(crate) fn release(&mut self) {
        // An incomplete key has no rest any more.
        self.keyboard = Keyboard::default();
        if let Some(drawing) = self.drawing.take()
            && give_back().is_err()
        {
            // Its drop would write to a closed terminal.
            std::mem::forget(drawing);
        }
        self.restorer.as_mut().into_iter().for_each(Restorer::left);
    }

    /// Takes the terminal over, after it was left.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        take_over()?;
        // Where a terminal knows it, Ctrl+M is another key than Enter; others ignore it.
        execute!(
            io::stdout(),
            PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
            Clear(ClearType::All)
        )?;
        self.drawing = Some(blank()?);
        self.restorer.as_mut().into_iter().for_each(Restorer::taken);
        Ok(())
    }

    /// Draws everything anew, over the output of other programs.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        if self.drawing.is_none() {
            return Ok(());
        }
        // Another program may have changed the terminal's modes. They must count as unset, or they are not set again.
        let _ = disable_raw_mode();
        take_over()?;
        execute!(io::stdout(), Clear(ClearType::All))?;
        // Clearing the old one would ask the terminal for its cursor, and wait for an answer.
        self.drawing = Some(blank()?);
        Ok(())
    }

    /// Stops the process as Ctrl-Z does elsewhere; goes on when it is continued.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.release();
        let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
        self.resume()
    }
}

impl Drop for PanelTerminal {
    fn drop(&mut self) {
        self.release();
        let previous = Arc::clone(&self.previous_hook);
        // A panic in this very thread cannot change hooks.
        if !thread::panicking() {
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

/// Whether a read returns at once.
fn has_input() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut looked = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A terminal on which nothing is drawn yet.
fn blank() -> io::Result<Drawing> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(BUFFER, io::stdout())))
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, cursor::Hide)
}

/// Restores the terminal; an error says that it is gone.
fn give_back() -> io::Result<()> {
    leave_screen().and(disable_raw_mode())
}

/// The modes that the panels change, as numbers.
pub(super) fn mode_bits(modes: &Termios) -> [u64; 4] {
    [modes.input_modes.bits(), modes.output_modes.bits(), modes.control_modes.bits(), modes.local_modes.bits()]
        .map(u64::from)
}

/// Restores the terminal to these modes.
pub(super) fn restore(bits: &[u64]) -> io::Result<()> {
    leave_screen()?;
    let mut modes = tcgetattr(io::stdout())?;
    if let [input, output, control, local] = *bits {
        modes.input_modes = InputModes::from_bits_retain(input.try_into().unwrap_or_default());
        modes.output_modes = OutputModes::from_bits_retain(output.try_into().unwrap_or_default());
        modes.control_modes = ControlModes::from_bits_retain(control.try_into().unwrap_or_default());
        modes.local_modes = LocalModes::from_bits_retain(local.try_into().unwrap_or_default());
    }
    Ok(tcsetattr(io::stdout(), OptionalActions::Now, &modes)?)
}

/// Restores the screen, but not the modes of the terminal.
fn leave_screen() -> io::Result<()> {
    let told = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    told.and_then(|()| io::stdout().flush())
}

/// A panic of the panels is told on a terminal that can be read; one of another thread is told in the panels.
fn restoring(panels: ThreadId, inbox: Inbox, previous: Arc<PanicHook>) -> PanicHook {
    Box::new(move |info| {
        if thread::current().id() == panels {
            let _ = give_back();
            previous(info);
        } else {
            let text = ollm_store::one_line(&format!("a part of the program failed: {info}"));
            inbox.send(Message::Text { panel: PanelName::ALL[0], text: format!("{text}\n") });
        }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::mpsc::sync_channel;

    use super::super::wakeup::Wakeup;
    use super::*;

    /// Runs a command on a terminal and prints what it wrote there.
    const TERMINAL: &str = "import pty, sys; pty.spawn(sys.argv[1:])";

    #[test]
    #[ignore = "the other test starts it on a terminal"]
    fn panics_on_a_terminal() {
        let (_wakeup, waker) = Wakeup::new().unwrap();
        let (sender, _messages) = sync_channel(1);
        let mut terminal = PanelTerminal::enter(Inbox::new(sender, waker)).unwrap();
        terminal.draw(|_| panic!("in the middle of a frame")).unwrap();
    }

    #[test]
    fn a_panic_is_told_on_a_terminal_that_is_as_it_was() {
        let test = "tui::terminal::tests::panics_on_a_terminal";
        let ran = Command::new("python3")
            .args(["-c", TERMINAL, std::env::current_exe().unwrap().to_str().unwrap()])
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        let written = String::from_utf8_lossy(&ran.stdout);
        let (before, after) = written.split_once("in the middle of a frame").unwrap_or_else(|| panic!("{written:?}"));
        for part in ["\x1b[<1u", "\x1b[?2004l", "\x1b[?1000l", "\x1b[?1049l", "\x1b[?25h"] {
            assert!(before.contains(part), "{part:?} is missing before the message: {written:?}");
        }
        assert!(!after.contains("\x1b[?1049h"), "{written:?}");
    }
}
