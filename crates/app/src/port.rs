//! What the application needs of the program around it: somebody to tell, and a person to ask.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes what a person should know while the application works.
pub trait Notices: Send {
    /// One line about something that needs attention.
    fn tell(&mut self, text: &str);

    /// One line about something that failed.
    fn tell_failure(&mut self, text: &str) {
        self.tell(text);
    }

    /// One line about what went well, for whoever wants to know that too.
    fn detail(&mut self, text: &dyn Fn() -> String) {
        let _ = text;
    }

    /// Whether details are wanted, where it takes work to know them.
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

    fn detail(&mut self, text: &dyn Fn() -> String) {
        (**self).detail(text);
    }

    fn wants_details(&self) -> bool {
        (**self).wants_details()
    }
}

/// What several ports use, one after the other: for instance an output that notices and the model's words go to.
#[derive(Debug, Default)]
pub struct Shared<T: ?Sized>(Mutex<T>);

impl<T> Shared<T> {
    /// A value to be shared.
    pub fn new(value: T) -> Shared<T> {
        Shared(Mutex::new(value))
    }

    /// The value, once nobody shares it any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Shared<T> {
    /// The value for one user; another one waits. Who panicked with it keeps nobody from it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the lines, to be shown later.
impl Notices for Vec<String> {
    fn tell(&mut self, text: &str) {
        self.push(text.to_owned());
    }
}

/// A person who can be asked. The application asks only where there is one.
pub trait Person: Debug + Send + Sync {
    /// Asks until `over` says that the answer is not needed any more; none then, and where there is no answer.
    fn ask(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String>;

    /// Asks for something that nobody else should see; none where that is not possible.
    fn ask_secret(&self, question: &str) -> Option<String> {
        let _ = question;
        None
    }

    /// Shows a part of a question.
    fn say(&self, text: &str);

    /// Opens a web page for the person; false where that is not possible.
    fn open_page(&self, url: &str) -> bool;
}
