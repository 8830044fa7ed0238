//! Asks the person about an unapproved hook that is about to run, alone or together with its group or extension.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ollm_agent::Cancel;
use ollm_app::approving::Together;
use ollm_app::{App, AppContext};
use ollm_store::{Digest, escape_for_people, one_line};
use ollm_trust::{Approver, Choice, Question};

use crate::ask::{Asker, PickedChoice};
use crate::command::review;
use crate::error::Failure;
use crate::output::Output;
use crate::remedy::COMMANDS;

/// The hook of a question: its id and its digest at that time.
type AskedAbout = (String, Digest);

/// The person who approves hooks, if there is one. An interruption answers every question with no.
#[derive(Debug)]
pub(crate) struct HookApprover {
    context: AppContext,
    asker: Asker,
    cancel: Cancel,
    /// Answers that hold until the session ends, so that no question is repeated.
    answers: Mutex<BTreeMap<AskedAbout, Choice>>,
}

impl HookApprover {
    pub(crate) fn new(context: &AppContext, asker: Asker, cancel: &Cancel) -> HookApprover {
        HookApprover { context: context.clone(), asker, cancel: cancel.clone(), answers: Mutex::default() }
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<AskedAbout, Choice>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose(&self, question: &str, offered: &[(&str, Choice)]) -> PickedChoice<Choice> {
        self.asker.choose(question, offered, &|| self.cancel.is_set())
    }

    /// Tells the person why a question cannot be asked.
    fn refuse(&self, failure: &Failure) -> PickedChoice<Choice> {
        Output::with(self.asker.clone()).failure(failure);
        PickedChoice::No
    }

    fn ask_alone(&self, question: &Question<'_>) -> PickedChoice<Choice> {
        let (review, by_digest) = (question.review, (question.remedy, &question.identity.digest));
        let shown = review::refuse_unshown(std::slice::from_ref(review), &review.title, by_digest, &self.asker);
        if let Err(failure) = shown {
            return self.refuse(&failure);
        }
        let standing = if question.changed { "changed since it was approved" } else { "not approved yet" };
        let mut text = format!("\nThe {} is {standing}.\n", one_line(&question.review.title));
        text.push_str(&escape_for_people(&question.review.to_string()));
        let mut offered = vec![("[o]nce", Choice::Once), ("one [s]ession", Choice::Session)];
        // A hook with parts that no approval covers may change without a new question.
        if question.review.uncovered.is_empty() {
            offered.push(("[a]lways", Choice::Always));
        } else {
            let command = COMMANDS.command(question.remedy).unwrap_or_default();
            let _ = writeln!(text, "To approve it for good: `{}`.", one_line(&command));
        }
        text.push_str("May it run, as long as nothing of it changes?");
        self.choose(&text, &offered)
    }

    /// Asks about all of them; returns the answer and the hooks that it is for.
    fn ask_together(&self, group: Together<'_>) -> (PickedChoice<Choice>, Vec<AskedAbout>) {
        let (members, reviews) = (group.members(), group.reviews());
        let by_digest = (&group.remedy(), &group.digest());
        if let Err(failure) = review::refuse_unshown(&reviews, &group.title(), by_digest, &self.asker) {
            return (self.refuse(&failure), members);
        }
        let mut text = format!("\n{} is not approved in its present state.\n", one_line(&group.title()));
        text.push_str(&escape_for_people(&review::screen(&reviews)));
        text.push_str("\nMay all of it run, as long as nothing of it changes?");
        let chosen = self.choose(&text, &[("one [s]ession", Choice::Session), ("[a]lways", Choice::Always)]);
        if chosen == PickedChoice::One(Choice::Always) {
            let title = group.title();
            match group.approve() {
                Ok(approved) => review::tell_approved(&approved, &mut Output::with(self.asker.clone())),
                Err(error) => return (self.refuse(&review::unapproved(&title, error)), members),
            }
        }
        (chosen, members)
    }
}

impl Approver for HookApprover {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let asked_about = (question.id.to_owned(), question.identity.digest);
        if let Some(answer) = self.answers().get(&asked_about) {
            return *answer;
        }
        let app = App::load_as_is(&self.context).ok();
        let group = app.as_ref().and_then(|app| Together::around(&asked_about.0, &asked_about.1, app));
        let (chosen, members) = match group {
            Some(group) => self.ask_together(group),
            None => (self.ask_alone(question), vec![asked_about]),
        };
        let lasting = match chosen {
            // An interruption is no answer, and neither is a closed terminal.
            PickedChoice::No if self.cancel.is_set() => return Choice::No,
            PickedChoice::Nobody => return Choice::No,
            PickedChoice::No => Choice::No,
            PickedChoice::One(Choice::Once) => return Choice::Once,
            PickedChoice::One(choice) => choice,
        };
        if lasting == Choice::No || members.len() > 1 {
            self.answers().extend(members.into_iter().map(|member| (member, lasting)));
        }
        lasting
    }
}
