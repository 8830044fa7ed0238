//! The panels' interface for other threads, which show text there, ask questions in dialogs, and borrow the terminal.

use std::fmt;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel};
use std::time::Duration;

use ollm_agent::Cancel;

use super::chat::front::ChatNews;
use super::panel::PanelName;
use crate::error::Failure;

/// How often a waiting thread checks whether the answer is still needed.
const LOOKING: Duration = Duration::from_millis(250);

/// What comes to the panels from other threads.
pub(crate) enum Message {
    /// Text that a job printed.
    Text { panel: PanelName, text: String },
    /// A job has sent its panel something through a channel of the panel's own.
    Loaded { panel: PanelName },
    /// A question to the person.
    Ask(Question),
    /// The answer to this question is no longer needed.
    Withdraw(u64),
    /// A job needs the terminal; it has it from `ready` to the end of `done`.
    Suspend { ready: Sender<()>, done: Receiver<()> },
    /// News of the conversation.
    Chat(ChatNews),
    /// A job is over.
    Done { panel: PanelName, job: String, outcome: Result<u8, Failure> },
}

/// A question that waits for its answer. Dropping it leaves it without an answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) id: u64,
    /// The panel whose job asks.
    pub(crate) panel: PanelName,
    /// Everything that is asked about; the last line is the question itself.
    pub(crate) text: String,
    pub(crate) kind: AnswerKind,
    pub(crate) reply: Sender<String>,
}

/// The accepted answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// One of these ways, each with its letter in brackets, or no.
    Ways(Vec<String>),
    /// One of these rows, by its place.
    Rows(Vec<String>),
    /// Any text.
    Text,
    /// A secret text.
    Secret,
}

/// A question on the screen. Dropping it withdraws the question.
pub(crate) struct OpenQuestion {
    inbox: Inbox,
    id: u64,
    answer: Receiver<String>,
}

/// The state of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Open,
    Answered(String),
    /// The person closed it without an answer.
    Closed,
}

impl OpenQuestion {
    pub(crate) fn look(&self) -> Look {
        match self.answer.try_recv() {
            Ok(answer) => Look::Answered(answer),
            Err(TryRecvError::Empty) => Look::Open,
            Err(TryRecvError::Disconnected) => Look::Closed,
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.inbox.send(Message::Withdraw(self.id));
    }
}

/// The channel to the panels.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: SyncSender<Message>,
    waker: Arc<UnixStream>,
    questions: Arc<AtomicU64>,
}

impl Inbox {
    pub(crate) fn new(sender: SyncSender<Message>, waker: UnixStream) -> Inbox {
        Inbox { sender, waker: Arc::new(waker), questions: Arc::default() }
    }

    /// Sends a message; false if the panels are gone. The sender waits while the inbox is full.
    pub(crate) fn send(&self, message: Message) -> bool {
        let sent = self.sender.send(message).is_ok();
        self.wake();
        sent
    }

    /// Wakes the panels.
    fn wake(&self) {
        // A full pipe wakes them as well.
        let _ = (&*self.waker).write(&[0]);
    }

    /// The screen for what belongs to a panel.
    pub(crate) fn screen(&self, panel: PanelName, cancel: Cancel) -> Screen {
        Screen { inbox: self.clone(), panel, cancel }
    }
}

/// The panels as a job of one of them sees them.
#[derive(Clone)]
pub(crate) struct Screen {
    inbox: Inbox,
    panel: PanelName,
    cancel: Cancel,
}

impl fmt::Debug for Screen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Screen").field("panel", &self.panel).finish_non_exhaustive()
    }
}

impl Screen {
    /// Set when the person interrupts the job.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Shows text, with no control sequences except our own styles.
    pub(crate) fn show(&self, text: &str) {
        self.inbox.send(Message::Text { panel: self.panel, text: text.to_owned() });
    }

    /// Tells the panel that something waits in its channel.
    pub(crate) fn loaded(&self) {
        self.inbox.send(Message::Loaded { panel: self.panel });
    }

    /// Tells the panel of the chat something.
    pub(crate) fn chat(&self, news: ChatNews) {
        self.inbox.send(Message::Chat(news));
    }

    /// Asks the person, until `over` says that the answer is no longer needed. `None` then, and if the person gives no
    /// answer.
    pub(crate) fn ask(&self, text: &str, kind: AnswerKind, over: &dyn Fn() -> bool) -> Option<String> {
        let question = self.open(text, kind);
        loop {
            match question.answer.recv_timeout(LOOKING) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Timeout) if over() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Asks the person while something else goes on.
    pub(crate) fn open(&self, text: &str, kind: AnswerKind) -> OpenQuestion {
        let (reply, answer) = channel();
        let id = self.inbox.questions.fetch_add(1, Ordering::Relaxed);
        self.inbox.send(Message::Ask(Question { id, panel: self.panel, text: text.to_owned(), kind, reply }));
        OpenQuestion { inbox: self.inbox.clone(), id, answer }
    }

    /// Runs something that uses the terminal while the panels have left it.
    pub(crate) fn suspended<T>(&self, works: impl FnOnce() -> T) -> T {
        let (ready, is_ready) = channel();
        let (ended, done) = channel();
        self.inbox.send(Message::Suspend { ready, done });
        // Where the panels are gone the terminal is free as well.
        let _ = is_ready.recv();
        let made = works();
        drop(ended);
        self.inbox.wake();
        made
    }
}
