//! Finds what `git` destroys.

use ollm_protocol::Flow;

use super::{
    super::{
        Wrong,
        precious::{PreciousPaths, Worth},
    },
    is_letters,
};
use crate::{
    field::Field,
    program,
    walk::Run,
    writes::{git_folders, git_verb, options},
};

/// What `git` throws away: files it does not know, or the history itself.
pub(super) fn harm(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    forgets(run).or_else(|| cleans(run, precious))
}

/// History that is rewritten, and names of commits without which they are lost.
fn forgets(run: &Run) -> Option<Wrong> {
    let at = program::verb("git", &run.args)?;
    let verb = run.args.get(at)?.text.as_str();
    let behind = run.args.get(at + 1..)?;
    let now = |option: &str| option.starts_with("--expire") && option.ends_with(['w', 'l']);
    let forgets = match verb {
        "filter-branch" | "filter-repo" => true,
        "reflog" => options(behind).any(now) || behind.first().is_some_and(|verb| verb.text == "delete"),
        "update-ref" => options(behind).any(|option| option == "-d" || option == "--delete"),
        _ => false,
    };
    forgets.then_some((Flow::Ask, "throws away history of the project"))
}

/// `git clean`: in the folders that it is told.
fn cleans(run: &Run, precious: &PreciousPaths) -> Option<Wrong> {
    let clean = git_verb(&run.args).filter(|at| run.args.get(*at).is_some_and(|verb| verb.text == "clean"))?;
    let behind = run.args.get(clean + 1..)?;
    let forced = options(behind).any(|option| is_letters(option, 'f') || option == "--force");
    let mut roots = git_folders(&run.args);
    roots.extend(behind.iter().filter(|arg| !arg.text.starts_with('-')).cloned());
    if roots.is_empty() {
        roots.push(Field::literal("."));
    }
    roots.iter().filter(|_| forced).find_map(|root| match precious.worth(root, &run.place) {
        Worth::Vital(what) if !precious.is_project(root, &run.place) => Some((Flow::Block, what)),
        _ if root.open() => Some((Flow::Ask, "cleans a folder that is not written out")),
        _ => None,
    })
}
