//! `ollm ext dev`: an extension checked and tried whenever a file of it changes.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ollm_app::AppContext;
use ollm_app::dev::DevSession;
use ollm_protocol::Code;
use ollm_store::one_line;

use crate::ask::{PickedChoice, YES};
use crate::command::hook::{cases_text, stamps};
use crate::error::Failure;
use crate::interrupt::Stop;
use crate::output::Output;

/// How often to look for changes.
const PERIOD: Duration = Duration::from_millis(300);
/// More files of an extension are not looked at.
const MOST_FILES: usize = 5000;

/// Runs until it is interrupted.
pub(super) fn run(folder: &Path, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let session = DevSession::open(folder, context)?;
    let root = one_line(&session.root.display().to_string());
    let question = format!("Run the hooks in {root} as they are, and as they change, until you end this?");
    match output.asker().choose(&question, YES, &|| false) {
        PickedChoice::One(()) => {}
        PickedChoice::No => return Err(Failure::new(Code::Declined, "nothing ran, because you did not say yes")),
        PickedChoice::Nobody => {
            return Err(Failure::new(Code::NobodyToAsk, "this runs only on a terminal, where a person can be asked")
                .hint("`ollm ext validate` and `ollm ext test` run anywhere"));
        }
    }
    let stop = Stop::listen();
    loop {
        let before = stamps(&files(&session.root));
        // A failure now may be gone after the next change.
        if let Err(failure) = round(&session, context, output) {
            output.failure(&failure);
        }
        output.tell("waiting for a change; Ctrl-C ends");
        while stamps(&files(&session.root)) == before {
            if let Some(failure) = stop.failure() {
                return Err(Failure { message: String::new(), ..failure });
            }
            thread::sleep(PERIOD);
        }
    }
}

fn round(session: &DevSession, context: &AppContext, output: &mut Output) -> Result<(), Failure> {
    let round = session.round(context)?;
    for problem in &round.problems {
        output.problem(problem);
    }
    if round.problems.is_empty() {
        output.tell(&format!("nothing is wrong with `{}`", one_line(&round.name)));
    }
    output.text(&cases_text(&round.results))?;
    Ok(())
}

/// The files of an extension, without those of git, in a fixed order.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name() != ".git" && entry.file_name() != "target") {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder { &mut folders } else { &mut files }.push(entry.path());
        }
        if files.len() + folders.len() > MOST_FILES {
            break;
        }
    }
    files.sort();
    files
}
