//! Prints what a person sees before they approve something: one screen for hooks, extensions, servers and the chat's
//! questions.

use std::fmt::Write;

use ollm_app::servers::reason;
use ollm_protocol::Code;
use ollm_store::{Digest, escape_for_people};
use ollm_trust::{ApproveError, ChangeError, Proposal, Review, SignError};

use crate::ask::{Chosen, YES};
use crate::error::Failure;
use crate::output::Output;
use crate::remedy::COMMANDS;

/// The whole screen as text.
pub(crate) fn text(review: &Review) -> String {
    let mut text = String::new();
    for (name, value) in &review.rows {
        row(&mut text, name, value);
    }
    for uncovered in &review.uncovered {
        row(&mut text, "uncovered", uncovered);
    }
    row(&mut text, "digest", &review.digest.to_string());
    if let Some(changes) = &review.changes {
        let _ = write!(text, "\n--- changed since it was approved\n{changes}---\n");
    }
    for file in &review.files {
        let _ = write!(text, "\n--- {}\n{}\n---\n", file.path.display(), file.text);
    }
    if let Some((more, folder)) = &review.unseen {
        let folder = folder.display();
        let _ = match more {
            1 => writeln!(text, "\n1 more file is approved with these and not shown here; read it in {folder}"),
            more => {
                writeln!(text, "\n{more} more files are approved with these and not shown here; read them in {folder}")
            }
        };
    }
    text
}

/// One row of a screen.
pub(crate) fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<11} {}", value.replace('\n', "\n            "));
}

/// Shows a text, page by page where it is long, and asks about it. Where nobody can be asked it is shown all the same.
pub(crate) fn ask<T: Clone>(text: &str, question: &str, offered: &[(&str, T)], output: &mut Output) -> Chosen<T> {
    let text = escape_for_people(text);
    if output.asker().is_there() {
        return output.asker().choose(&format!("{text}\n{question}"), offered, &|| false);
    }
    output.explain(&text);
    Chosen::Nobody
}

/// Holds something to the digest that a script names.
pub(crate) fn check_digest(what: &str, now: &Digest, named: &str, hint: String) -> Result<(), Failure> {
    if now.to_string() == named {
        return Ok(());
    }
    let message = format!("{what} is not what {named} names; nothing was approved");
    Err(Failure::new(Code::DigestMismatch, message).hint(hint))
}

/// Shows something and asks whether it is approved. Where nobody can be asked, hints say how a script approves.
pub(crate) fn ask_yes<const N: usize>(
    screen: &str,
    what: &str,
    question: &str,
    hints: [String; N],
    output: &mut Output,
) -> Result<(), Failure> {
    match ask(screen, question, YES, output) {
        Chosen::One(()) => Ok(()),
        Chosen::No => Err(Failure::new(Code::Declined, format!("{what} was not approved"))),
        Chosen::Nobody => {
            Err(hints.into_iter().fold(nobody_to_ask(&format!("{what} was not approved")), Failure::hint))
        }
    }
}

/// Nobody approves anything without a terminal.
pub(crate) fn nobody_to_ask(what: &str) -> Failure {
    Failure::new(Code::NobodyToAsk, format!("{what}: there is no terminal to ask on"))
}

/// Why the list of approvals was not changed, with the way out.
pub(crate) fn unchanged(error: &ChangeError) -> Failure {
    match error {
        ChangeError::Update(error) => {
            Failure::new(Code::NotWritten, format!("the approvals were not changed: {}", reason(error)))
        }
        ChangeError::List(trouble) => {
            let failure = Failure::new(Code::BrokenApprovals, format!("the approvals were not changed: {trouble}"));
            let failure =
                trouble.remedy().into_iter().fold(failure, |failure, remedy| failure.hint(COMMANDS.tell(&remedy)));
            failure.hint("`ollm hook untrust --all` withdraws every approval and begins anew")
        }
        ChangeError::Sign(error) => unsigned(error),
    }
}

/// Why a yes does not count.
pub(crate) fn unsigned(error: &SignError) -> Failure {
    let failure = Failure::new(Code::LockedKey, format!("the approvals were not changed: {error}"));
    match error {
        SignError::Nobody(_) => failure.hint("run it yourself, in a terminal; a digest is not enough"),
        SignError::OtherKey(_) | SignError::Unusable(_) => {
            failure.hint("`ollm trust status` says which key is demanded")
        }
        SignError::Locked(_) => failure,
    }
}

/// Why something was not approved, with the way out.
pub(crate) fn unapproved(what: &str, error: ApproveError) -> Failure {
    match error {
        ApproveError::Change(error) => unchanged(&error),
        ApproveError::Limited => Failure::new(Code::Declined, format!("{what} was not approved: {error}"))
            .hint("approve it always, or start it in a chat, which asks each time"),
        ApproveError::Uncovered(parts) => {
            let message = format!("{what} was not approved: {}", parts.join("; "));
            Failure::new(Code::Uncovered, message)
                .hint("name exact versions and files, as in `package@1.2.3`, so that an approval covers them")
                .hint("`--uncovered` approves it for good all the same")
        }
    }
}

/// Whether a person wants approved for good what no approval covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncovered {
    Refused,
    Accepted,
}

impl Uncovered {
    /// What the flag `--uncovered` says.
    pub(crate) fn of_flag(given: bool) -> Uncovered {
        if given { Uncovered::Accepted } else { Uncovered::Refused }
    }

    /// A proposal that may be approved for good as far as this allows it.
    pub(crate) fn applied(self, proposal: Proposal) -> Proposal {
        match self {
            Uncovered::Refused => proposal,
            Uncovered::Accepted => proposal.accept_uncovered(),
        }
    }
}
