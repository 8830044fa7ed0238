//! What the application needs of the program around it: somebody to tell, and a person to ask.

use std::fmt::Debug;

/// Takes what a person should know while the application works.
pub trait Notices {
    /// One line about something that needs attention.
    fn tell(&mut self, text: &str);

    /// One line about what went well, for whoever wants to know that too.
    fn detail(&mut self, text: &dyn Fn() -> String) {
        let _ = text;
    }
}

impl<N: Notices + ?Sized> Notices for &mut N {
    fn tell(&mut self, text: &str) {
        (**self).tell(text);
    }

    fn detail(&mut self, text: &dyn Fn() -> String) {
        (**self).detail(text);
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

    /// Shows a part of a question.
    fn say(&self, text: &str);

    /// Opens a web page for the person; false where that is not possible.
    fn open_page(&self, url: &str) -> bool;
}
