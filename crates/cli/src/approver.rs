//! Asks the person about hooks that nobody approved, when one is about to run: alone, or together with those
//! that are approved with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ollm_agent::Cancel;
use ollm_app::approving::Together;
use ollm_app::{App, AppContext};
use ollm_store::{Digest, escape_for_people, one_line};
use ollm_trust::{Approver, Choice, Question};

use crate::ask::{Asker, Chosen};
use crate::command::review;
use crate::error::Failure;
use crate::output::Output;
use crate::remedy::COMMANDS;

/// A hook as it was when it was asked about: its id and its digest.
type AskedAbout = (String, Digest);

/// The person, if there is one to ask. An interruption answers every question with no.
#[derive(Debug)]
pub(crate) struct HookApprover {
    context: AppContext,
    asker: Asker,
    cancel: Cancel,
    /// Answers that hold until the session ends: a no is asked for once, and a group is asked about once.
    answers: Mutex<BTreeMap<AskedAbout, Choice>>,
}

impl HookApprover {
    pub(crate) fn new(context: &AppContext, asker: Asker, cancel: &Cancel) -> HookApprover {
        HookApprover { context: context.clone(), asker, cancel: cancel.clone(), answers: Mutex::default() }
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<AskedAbout, Choice>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose(&self, question: &str, offered: &[(&str, Choice)]) -> Chosen<Choice> {
        self.asker.choose(question, offered, &|| self.cancel.is_set())
    }

    /// Says why something cannot be asked about.
    fn refuse(&self, failure: &Failure) -> Chosen<Choice> {
        Output::with(self.asker.clone()).failure(failure);
        Chosen::No
    }

    fn ask_alone(&self, question: &Question<'_>) -> Chosen<Choice> {
        let (review, by_digest) = (question.review, (question.remedy, &question.identity.digest));
        let shown = review::refuse_unshown(std::slice::from_ref(review), &review.title, by_digest, &self.asker);
        if let Err(failure) = shown {
            return self.refuse(&failure);
        }
        let standing = if question.changed { "changed since it was approved" } else { "not approved yet" };
        let mut text = format!("\nThe {} is {standing}.\n", one_line(&question.review.title));
        text.push_str(&escape_for_people(&question.review.to_string()));
        let mut offered = vec![("[o]nce", Choice::Once), ("one [s]ession", Choice::Session)];
        // What no approval covers may change without being asked about again.
        if question.review.uncovered.is_empty() {
            offered.push(("[a]lways", Choice::Always));
        } else {
            let command = COMMANDS.command(question.remedy).unwrap_or_default();
            let _ = writeln!(text, "To approve it for good: `{}`.", one_line(&command));
        }
        text.push_str("May it run, as long as nothing of it changes?");
        self.choose(&text, &offered)
    }

    /// Asks about all of them, and gives back those that the answer holds for.
    fn ask_together(&self, group: Together<'_>) -> (Chosen<Choice>, Vec<AskedAbout>) {
        let (members, reviews) = (group.members(), group.reviews());
        let by_digest = (&group.remedy(), &group.digest());
        if let Err(failure) = review::refuse_unshown(&reviews, &group.title(), by_digest, &self.asker) {
            return (self.refuse(&failure), members);
        }
        let mut text = format!("\n{} is not approved as it is.\n", one_line(&group.title()));
        text.push_str(&escape_for_people(&review::screen(&reviews)));
        text.push_str("\nMay all of it run, as long as nothing of it changes?");
        let chosen = self.choose(&text, &[("one [s]ession", Choice::Session), ("[a]lways", Choice::Always)]);
        if chosen == Chosen::One(Choice::Always) {
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
            // An interruption is no answer, and neither is a terminal that is gone.
            Chosen::No if self.cancel.is_set() => return Choice::No,
            Chosen::Nobody => return Choice::No,
            Chosen::No => Choice::No,
            Chosen::One(Choice::Once) => return Choice::Once,
            Chosen::One(choice) => choice,
        };
        if lasting == Choice::No || members.len() > 1 {
            self.answers().extend(members.into_iter().map(|member| (member, lasting)));
        }
        lasting
    }
}
