//! The ports that an embedding program provides: a listener for notices, and a person to ask.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ollm_catalog::Problem;

/// Receives notices for a person while the application works.
pub trait Notices: Send {
    /// Receives one line about something that needs attention.
    fn tell(&mut self, text: &str);

    /// Receives one line about a failure.
    fn tell_failure(&mut self, text: &str) {
        self.tell(text);
    }

    /// Receives a problem with a file.
    fn tell_problem(&mut self, problem: &Problem) {
        self.tell(&problem.to_string());
    }

    /// Receives one line about a success, if the listener wants details.
    fn detail(&mut self, text: &dyn Fn() -> String) {
        let _ = text;
    }

    /// Whether the listener wants details; some take work to compute.
    fn wants_details(&self) -> bool {
        false
    }
}

impl<N: Notices + ?Sized> Notices for &mut N {
    fn tell(&mut self, text: &str) {
        (**self).tell(text);
    }

    fn tell_failure(&mut self, text: &str) {
        (**self).tell_failure(text);
    }

    fn tell_problem(&mut self, problem: &Problem) {
        (**self).tell_problem(problem);
    }

    fn detail(&mut self, text: &dyn Fn() -> String) {
        (**self).detail(text);
    }

    fn wants_details(&self) -> bool {
        (**self).wants_details()
    }
}

/// A value that several ports use in turn, such as an output for notices and for the model's words.
#[derive(Debug, Default)]
pub struct SharedPort<T: ?Sized>(Mutex<T>);

impl<T> SharedPort<T> {
    /// A value to be shared.
    pub fn new(value: T) -> SharedPort<T> {
        SharedPort(Mutex::new(value))
    }

    /// The value, once it is no longer shared.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> SharedPort<T> {
    /// The value for one user; another one waits. After a panic of one user, others can still use it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the lines for later.
impl Notices for Vec<String> {
    fn tell(&mut self, text: &str) {
        self.push(text.to_owned());
    }
}

/// A person who can answer questions.
pub trait Person: Debug + Send + Sync {
    /// Asks a question, until `over` says that the answer is no longer needed. `None` then, and if there is no answer.
    fn ask(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String>;

    /// Asks for a secret that only the person should see; `None` if that is not possible.
    fn ask_secret(&self, question: &str) -> Option<String> {
        let _ = question;
        None
    }

    /// Shows a part of a question.
    fn say(&self, text: &str);

    /// Opens a web page for the person; false if that is not possible.
    fn open_page(&self, url: &str) -> bool;
}
