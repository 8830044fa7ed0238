//! Questions to whoever sits at the terminal.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_agent::{Approve, Cancel, Consent, Request};
use ollm_app::{Person, World};
use ollm_store::{cut, escape_for_people, one_line};
use ollm_trust::{Approver, Choice, Question};

use crate::command::review;
use crate::open;
use crate::output::{ask_unless, is_terminal, say};
use crate::remedy::COMMANDS;

/// The most of a tool's arguments that is shown with a question: what is cut off is approved unseen.
const LONGEST_CALL: usize = 16 << 10;

/// The person at the terminal, for the questions of the application.
#[derive(Debug)]
pub(crate) struct AtTerminal {
    /// Where a browser is looked for.
    search_path: Option<OsString>,
}

/// The person, if one sits at the terminal.
pub(crate) fn person(world: &World) -> Option<Arc<dyn Person>> {
    is_terminal()
        .then(|| Arc::new(AtTerminal { search_path: world.search_path().map(OsStr::to_owned) }) as Arc<dyn Person>)
}

impl Person for AtTerminal {
    fn ask(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
        ask_unless(question, over)
    }

    fn say(&self, text: &str) {
        say(text);
    }

    fn open_page(&self, url: &str) -> bool {
        open::browser(url, self.search_path.as_deref())
    }
}

/// The person at the terminal, if there is one. An interruption answers every question with no.
#[derive(Debug)]
pub(crate) struct Terminal {
    cancel: Cancel,
    /// The hooks, as they were, to which the person said no: once is enough.
    declined: Mutex<BTreeSet<(String, String)>>,
}

impl Terminal {
    pub(crate) fn new(cancel: &Cancel) -> Terminal {
        Terminal { cancel: cancel.clone(), declined: Mutex::default() }
    }

    fn declined(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        self.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, question: &str) -> Option<String> {
        is_terminal().then(|| ask_unless(question, &|| self.cancel.is_set()).unwrap_or_default().to_lowercase())
    }
}

impl Approve for Terminal {
    fn ask(&mut self, request: &Request) -> Consent {
        let mut question = format!("\n{}", one_line(&request.operation));
        if let Some(args) = request.details.get("args") {
            let _ = write!(question, " {}", one_line(&cut(&args.to_string(), LONGEST_CALL)));
        }
        if let Some(reason) = &request.reason {
            let _ = write!(question, "\n  a hook wants you to decide: {}", one_line(reason));
        }
        question.push_str("\n  May it run? [y]es, ");
        if let Some(standing) = &request.standing {
            let _ = write!(question, "[a]lways ({}), ", one_line(standing));
        }
        question.push_str("[N]o: ");
        match self.answer(&question).as_deref() {
            Some("y" | "yes") => Consent::Yes,
            Some("a" | "always") if request.standing.is_some() => Consent::Always,
            Some(_) => Consent::No,
            None => Consent::Nobody,
        }
    }
}

impl Approver for Terminal {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let asked_about = (question.id.to_owned(), question.identity.digest.to_string());
        if self.declined().contains(&asked_about) {
            return Choice::No;
        }
        let standing = if question.changed { "changed since it was approved" } else { "not approved yet" };
        let mut text = format!("\nThe {} is {standing}.\n", one_line(&question.review.title));
        text.push_str(&escape_for_people(&review::text(question.review)));
        let command = COMMANDS.command(question.remedy).unwrap_or_default();
        let _ = writeln!(text, "To approve it for good: `{}`.", one_line(&command));
        text.push_str("May it run, as long as nothing of it changes? [o]nce, one [s]ession, [N]o: ");
        match self.answer(&text).as_deref() {
            Some("o" | "once" | "y" | "yes") => Choice::Once,
            Some("s" | "session") => Choice::Session,
            answer => {
                // An interruption is no answer, and neither is a terminal that is gone.
                if answer.is_some() && !self.cancel.is_set() {
                    self.declined().insert(asked_about);
                }
                Choice::No
            }
        }
    }
}
