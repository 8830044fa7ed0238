//! Questions to whoever sits at the terminal.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_agent::{Approve, Cancel, Consent, Request};
use ollm_app::{AppContext, Person};
use ollm_store::{cut, escape_for_people, one_line};
use ollm_trust::{Approver, Choice, Question};

use crate::ask::{Chosen, ask_secret, ask_unless, choose};
use crate::command::review;
use crate::open;
use crate::output::{is_terminal, say};
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
pub(crate) fn person(context: &AppContext) -> Option<Arc<dyn Person>> {
    is_terminal()
        .then(|| Arc::new(AtTerminal { search_path: context.search_path().map(OsStr::to_owned) }) as Arc<dyn Person>)
}

impl Person for AtTerminal {
    fn ask(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
        ask_unless(question, over)
    }

    fn ask_secret(&self, question: &str) -> Option<String> {
        ask_secret(question)
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

    fn choose<T: Clone>(&self, question: &str, offered: &[(&str, T)]) -> Chosen<T> {
        choose(question, offered, &|| self.cancel.is_set())
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
        question.push_str("\n  May it run?");
        let always = request.standing.as_ref().map(|standing| format!("[a]lways ({})", one_line(standing)));
        let mut offered = vec![("[y]es", Consent::Yes)];
        offered.extend(always.as_deref().map(|always| (always, Consent::Always)));
        match self.choose(&question, &offered) {
            Chosen::One(consent) => consent,
            Chosen::No => Consent::No,
            Chosen::Nobody => Consent::Nobody,
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
        text.push_str("May it run, as long as nothing of it changes?");
        let chosen = self.choose(&text, &[("[o]nce", Choice::Once), ("one [s]ession", Choice::Session)]);
        if let Chosen::One(choice) = chosen {
            return choice;
        }
        // An interruption is no answer, and neither is a terminal that is gone.
        if chosen == Chosen::No && !self.cancel.is_set() {
            self.declined().insert(asked_about);
        }
        Choice::No
    }
}
