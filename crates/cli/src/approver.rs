//! Asks the person about hooks that nobody approved, when one is about to run: alone, or together with those
//! that are approved with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_agent::Cancel;
use ollm_app::{App, AppContext};
use ollm_protocol::Hook;
use ollm_store::{escape_for_people, one_line};
use ollm_trust::{Approvable, Approver, Choice, Question};

use crate::ask::{Asker, Chosen};
use crate::command::ext::trust::ExtensionGroup;
use crate::command::hook::trust::group::FolderGroup;
use crate::command::review;
use crate::error::Failure;
use crate::output::Output;
use crate::remedy::COMMANDS;

/// A hook as it was when it was asked about: its id and its digest.
pub(crate) type AskedAbout = (String, String);

/// The person, if there is one to ask. An interruption answers every question with no.
#[derive(Debug)]
pub(crate) struct HookApprover {
    context: AppContext,
    asker: Asker,
    cancel: Cancel,
    /// Answers that hold until the session ends: a no is asked for once, and a group is asked about once.
    answers: Mutex<BTreeMap<AskedAbout, Choice>>,
}

/// Hooks that are approved in one step.
pub(crate) trait HookGroup {
    /// What it is called, at the beginning of a sentence.
    fn title(&self) -> String;

    /// Everything that would run.
    fn screen(&self) -> String;

    /// All its hooks, as an approval would bind them.
    fn members(&self) -> Vec<AskedAbout>;

    /// Keeps the approval of all of them.
    fn approve(&self, output: &mut Output) -> Result<(), Failure>;
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

    fn ask_alone(&self, question: &Question<'_>) -> Chosen<Choice> {
        let standing = if question.changed { "changed since it was approved" } else { "not approved yet" };
        let mut text = format!("\nThe {} is {standing}.\n", one_line(&question.review.title));
        text.push_str(&escape_for_people(&review::text(question.review)));
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

    fn ask_together(&self, group: &dyn HookGroup) -> Chosen<Choice> {
        let mut text = format!("\n{} is not approved as it is.\n", one_line(&group.title()));
        text.push_str(&escape_for_people(&group.screen()));
        text.push_str("\nMay all of it run, as long as nothing of it changes?");
        let chosen = self.choose(&text, &[("one [s]ession", Choice::Session), ("[a]lways", Choice::Always)]);
        if chosen == Chosen::One(Choice::Always) {
            let mut output = Output::with(self.asker.clone());
            if let Err(failure) = group.approve(&mut output) {
                output.failure(&failure);
                return Chosen::No;
            }
        }
        chosen
    }
}

impl Approver for HookApprover {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let asked_about = (question.id.to_owned(), question.identity.digest.to_string());
        if let Some(answer) = self.answers().get(&asked_about) {
            return *answer;
        }
        let group = group_of(&asked_about, &self.context);
        let chosen = match &group {
            Some(group) => self.ask_together(&**group),
            None => self.ask_alone(question),
        };
        let lasting = match chosen {
            // An interruption is no answer, and neither is a terminal that is gone.
            Chosen::No if self.cancel.is_set() => return Choice::No,
            Chosen::Nobody => return Choice::No,
            Chosen::No => Choice::No,
            Chosen::One(Choice::Once) => return Choice::Once,
            Chosen::One(choice) => choice,
        };
        let members = group.map_or_else(|| vec![asked_about], |group| group.members());
        if lasting == Choice::No || members.len() > 1 {
            self.answers().extend(members.into_iter().map(|member| (member, lasting)));
        }
        lasting
    }
}

/// The group that a hook is approved with, as it is now; nothing where it stands alone.
fn group_of(asked_about: &AskedAbout, context: &AppContext) -> Option<Box<dyn HookGroup>> {
    let app = App::load_as_is(context).ok()?;
    let named = |hook: &Arc<Hook>| Approvable::id(&**hook) == asked_about.0;
    let hook = app.hooks().into_iter().find(named)?;
    let group: Box<dyn HookGroup> = match (&hook.spec.extension, &hook.spec.group) {
        (Some(extension), _) => Box::new(ExtensionGroup::of(extension.clone(), app).ok()?),
        (None, Some(folder)) => Box::new(FolderGroup::of(folder.clone(), app).ok()?),
        (None, None) => return None,
    };
    // One that changed since the question came up is asked about alone, as it was then.
    group.members().contains(asked_about).then_some(group)
}
