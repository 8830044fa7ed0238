//! Asks for approval in the same way for hooks, extensions and servers, and reports why something was not approved.

use std::path::PathBuf;

use ollm_app::approving::{ApprovalResult, LeftOut};
use ollm_app::servers::reason;
use ollm_protocol::{Code, Hook, Remedy};
use ollm_store::{Digest, escape_for_people};
use ollm_trust::{ApproveError, ChangeError, Review, SignError};

use crate::ask::{Asker, PickedChoice, YES};
use crate::error::Failure;
use crate::output::Output;
use crate::remedy::COMMANDS;

/// Shows a text, page by page if it is long, and asks about it. Without a person, the text is shown nevertheless.
pub(crate) fn ask<T: Clone>(text: &str, question: &str, offered: &[(&str, T)], output: &mut Output) -> PickedChoice<T> {
    ask_unless(text, question, offered, &|| false, output)
}

/// Asks like [`ask`], until `over` says that the answer is no longer needed, which means no.
pub(crate) fn ask_unless<T: Clone>(
    text: &str,
    question: &str,
    offered: &[(&str, T)],
    over: &dyn Fn() -> bool,
    output: &mut Output,
) -> PickedChoice<T> {
    let text = escape_for_people(text);
    if output.asker().is_there() {
        return output.asker().choose(&format!("{text}\n{question}"), offered, over);
    }
    output.explain(&text);
    PickedChoice::Nobody
}

/// Reviews as one text.
pub(crate) fn screen(reviews: &[Review]) -> String {
    let texts: Vec<String> = reviews.iter().map(Review::to_string).collect();
    texts.join("\n\n")
}

/// An approval by digest: the command without the digest, and the digest.
pub(crate) type ByDigest<'a> = (&'a Remedy, &'a Digest);

/// Refuses a question about content that cannot be shown whole, because a yes would count for unseen content. It can be
/// approved by its digest.
pub(crate) fn refuse_unshown(reviews: &[Review], what: &str, by: ByDigest<'_>, asker: &Asker) -> Result<(), Failure> {
    const MOST_NAMED: usize = 10;
    let files: Vec<&PathBuf> = reviews.iter().flat_map(|review| &review.unshown).collect();
    if files.is_empty() || !asker.is_there() {
        return Ok(());
    }
    let failure = Failure::new(Code::Declined, format!("{what} was not approved: not all of it can be shown here"));
    let named = files.iter().take(MOST_NAMED);
    let failure = named.fold(failure, |failure, file| failure.hint(format!("read {}", file.display())));
    let more = files.len().saturating_sub(MOST_NAMED);
    let failure = if more > 0 { failure.hint(format!("and {more} more files")) } else { failure };
    let command = COMMANDS.command(by.0).unwrap_or_default();
    let uncovered = if reviews.iter().all(|review| review.uncovered.is_empty()) { "" } else { " --uncovered" };
    Err(failure.hint(format!("then `{command}{uncovered} --digest {}` approves it as you read it", by.1)))
}

/// Fails if the present digest is not the one that a script names.
pub(crate) fn check_digest(what: &str, now: &Digest, named: &str, hint: String) -> Result<(), Failure> {
    if now.to_string() == named {
        return Ok(());
    }
    let message = format!("{what} is not what {named} names; nothing was approved");
    Err(Failure::new(Code::DigestMismatch, message).hint(hint))
}

/// Shows a text and asks for approval. Without a person, hints say how a script approves.
pub(crate) fn ask_yes<const N: usize>(
    screen: &str,
    what: &str,
    question: &str,
    hints: [String; N],
    output: &mut Output,
) -> Result<(), Failure> {
    ask_yes_unless(screen, what, question, hints, &|| false, output)
}

/// Asks like [`ask_yes`], until `over` says that the answer is no longer needed, which means no.
pub(crate) fn ask_yes_unless<const N: usize>(
    screen: &str,
    what: &str,
    question: &str,
    hints: [String; N],
    over: &dyn Fn() -> bool,
    output: &mut Output,
) -> Result<(), Failure> {
    match ask_unless(screen, question, YES, over, output) {
        PickedChoice::One(()) => Ok(()),
        PickedChoice::No => Err(Failure::new(Code::Declined, format!("{what} was not approved"))),
        PickedChoice::Nobody => {
            Err(hints.into_iter().fold(nobody_to_ask(&format!("{what} was not approved")), Failure::hint))
        }
    }
}

/// The failure without a terminal, because nothing is approved without one.
pub(crate) fn nobody_to_ask(what: &str) -> Failure {
    Failure::new(Code::NobodyToAsk, format!("{what}: there is no terminal to ask on"))
}

/// The failure if the list of approvals was not changed, with the remedy.
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

/// The failure if a yes could not be signed.
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

/// The failure if something was not approved, with the remedy.
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

/// Reports which hooks may run from now on, and which were left out.
pub(crate) fn tell_approved(approved: &ApprovalResult, output: &mut Output) {
    for (hook, why) in &approved.left_out {
        let way_out = if matches!(why, LeftOut::Refused(_)) { "; `--uncovered` approves it" } else { "" };
        output.tell(&format!("hook `{}` was not approved: {why}{way_out}", hook.id()));
    }
    match &approved.extension {
        Some((name, digest)) => output.tell(&format!("extension `{name}` is approved as {digest}")),
        None => approved.hooks.iter().for_each(|(hook, digest)| output.tell(&told(hook, digest, ""))),
    }
}

/// The message that a hook is approved, and for how long.
pub(crate) fn told(hook: &Hook, digest: &Digest, until: &str) -> String {
    format!("hook `{}` is approved{until} as {digest}", hook.id())
}
