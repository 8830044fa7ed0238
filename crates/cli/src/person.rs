//! Asks the person the questions of the application and of our agent.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::sync::Arc;

use ollm_agent::{Approve, Cancel, Consent, Request};
use ollm_app::{AppContext, Person};
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::Value;

use crate::ask::{Asker, PickedChoice};
use crate::display::coloured;
use crate::open;
use crate::output::painted;

/// Longer questions are not asked: a yes counts only for text that was shown, and no person reads that much.
const LONGEST_QUESTION: usize = 1 << 20;

/// The person, as the application asks them.
#[derive(Debug)]
struct AppPerson {
    asker: Asker,
    /// The folders that are searched for a browser.
    search_path: Option<OsString>,
}

/// The person, if one can be asked.
pub(crate) fn person(asker: Asker, context: &AppContext) -> Option<Arc<dyn Person>> {
    let search_path = context.search_path().map(OsStr::to_owned);
    asker.is_there().then(|| Arc::new(AppPerson { asker, search_path }) as Arc<dyn Person>)
}

impl Person for AppPerson {
    fn ask(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
        self.asker.ask_unless(question, over)
    }

    fn ask_secret(&self, question: &str) -> Option<String> {
        self.asker.ask_secret(question)
    }

    fn say(&self, text: &str) {
        self.asker.say(text);
    }

    fn open_page(&self, url: &str) -> bool {
        open::browser(url, self.search_path.as_deref())
    }
}

/// Asks the person about tool calls, if there is one. An interruption answers every question with no.
#[derive(Debug)]
pub(crate) struct CallApprover {
    asker: Asker,
    cancel: Cancel,
}

impl CallApprover {
    pub(crate) fn new(asker: Asker, cancel: &Cancel) -> CallApprover {
        CallApprover { asker, cancel: cancel.clone() }
    }

    fn choose<T: Clone>(&self, question: &str, offered: &[(&str, T)]) -> PickedChoice<T> {
        self.asker.choose(question, offered, &|| self.cancel.is_set())
    }
}

impl Approve for CallApprover {
    fn ask(&mut self, request: &Request) -> Consent {
        let mut question = format!("\n{}", one_line(&request.operation));
        let args = request.details.get("args");
        if let Some(diff) = &request.diff {
            // The diff shows everything in the arguments except the file.
            let path = args.and_then(|args| args.get("path")).and_then(Value::as_str).unwrap_or_default();
            let diff = escape_for_people(diff.trim_end());
            // The panels colour the lines themselves.
            let diff = if let Asker::Lines(..) = self.asker {
                painted(coloured(&diff)).trim_end().to_owned()
            } else {
                diff.into_owned()
            };
            let _ = write!(question, " {}\n{diff}", one_line(path));
        } else if let Some(args) = args {
            let _ = write!(question, " {}", one_line(&args.to_string()));
        }
        if let Some(reason) = &request.reason {
            let _ = write!(question, "\n  a hook wants you to decide: {}", one_line(reason));
        }
        if question.len() > LONGEST_QUESTION {
            let size = question.len();
            let operation = one_line(&cut(&request.operation, 200));
            self.asker
                .say(&format!("{operation} is refused: it has {size} bytes, and {LONGEST_QUESTION} can be shown.\n"));
            return Consent::No;
        }
        question.push_str("\n  May it run?");
        let always = request.standing.as_ref().map(|standing| format!("[a]lways ({})", one_line(standing)));
        let mut offered = vec![("[y]es", Consent::Yes)];
        offered.extend(always.as_deref().map(|always| (always, Consent::Always)));
        match self.choose(&question, &offered) {
            PickedChoice::One(consent) => consent,
            PickedChoice::No => Consent::No,
            PickedChoice::Nobody => Consent::Nobody,
        }
    }
}
