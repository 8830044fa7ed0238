//! Which files `git` changes.

mod settings;

use super::{Touch, archives::unpacked, each, operands};
use crate::{
    field::{Field, Fields},
    path, program,
    walk::Run,
};

pub use settings::harmful_git_settings;

/// The folders that `git` is told to work in.
pub(crate) fn git_folders(args: &[Field]) -> Fields {
    let mut folders = Fields::new();
    let verb = git_verb(args).unwrap_or(args.len());
    for (at, arg) in args.iter().enumerate().take(verb) {
        match arg.text.as_str() {
            "-C" | "--work-tree" | "--git-dir" => folders.extend(args.get(at + 1).cloned()),
            text => {
                let value = text.strip_prefix("--work-tree=").or_else(|| text.strip_prefix("--git-dir="));
                folders.extend(value.map(|value| Field { text: value.to_owned(), ..arg.clone() }));
            }
        }
    }
    folders
}

/// What changes files in the folder that `git` works in.
#[rustfmt::skip]
const GIT_VERBS: &[&str] = &[
    "checkout", "restore", "rm", "mv", "apply", "am", "config", "worktree", "clone", "init", "clean", "reset", "switch",
    "stash", "merge", "pull", "rebase", "revert", "cherry-pick", "read-tree", "checkout-index", "sparse-checkout",
    "submodule", "subtree", "bundle",
];

/// Where the verb stands: the first operand, or one that may be it where that is not known.
pub(crate) fn git_verb(args: &[Field]) -> Option<usize> {
    let first = program::verb("git", args)?;
    if args.get(..=first).is_some_and(|args| args.iter().any(Field::open)) {
        return args.iter().position(|arg| GIT_VERBS.contains(&arg.text.as_str()));
    }
    Some(first)
}

/// What its verb changes.
pub(super) fn touches(run: &Run) -> Vec<Touch> {
    let mut touches = by_verb(run);
    touches.extend(settings::for_once(&run.args));
    touches
}

fn by_verb(run: &Run) -> Vec<Touch> {
    let Some(verb) = git_verb(&run.args) else { return Vec::new() };
    let rest = operands(run.args.get(verb + 1..).unwrap_or_default());
    let verb = run.args.get(verb).map(|verb| verb.text.as_str()).filter(|verb| GIT_VERBS.contains(verb));
    if verb.is_none() {
        return Vec::new();
    }
    let folders = git_folders(&run.args);
    match verb {
        Some("init") => return begun(&run.args, folders),
        Some("bundle") if rest.first().is_some_and(|verb| verb.text == "create") => {
            return each(rest.into_iter().skip(1).take(1), Touch::Content);
        }
        Some("clone") => return cloned(run, &rest),
        Some("submodule") if rest.first().is_some_and(|verb| verb.text == "add") => {
            return cloned(run, rest.get(1..).unwrap_or_default());
        }
        _ => {}
    }
    // In another folder, files are replaced that are not named here.
    let away = |folder: &Field| !run.place.folders.iter().any(|here| path::join(here, &folder.text) == *here);
    let mut touches = match verb {
        Some("config") => settings::touches(run, &rest),
        // Only the index changes.
        Some("rm") if run.args.iter().any(|arg| arg.text == "--cached") => Vec::new(),
        Some("mv" | "rm" | "clean") => each(rest, Touch::Whole),
        Some("stash") if rest.first().is_some_and(|verb| verb.text == "push") => {
            each(rest.into_iter().skip(1), Touch::Content)
        }
        Some("checkout" | "restore" | "worktree" | "checkout-index") => {
            let below = folders.iter().flat_map(|folder| rest.iter().map(|file| joined(folder, file)));
            let folders = each(rest.clone(), Touch::Perhaps);
            each(rest.iter().cloned().chain(below), Touch::Content).into_iter().chain(folders).collect()
        }
        // Most name commits and branches; what is a path may change.
        _ => each(rest, Touch::Perhaps),
    };
    if !matches!(verb, Some("config" | "bundle")) {
        touches.extend(folders.into_iter().filter(away).map(Touch::Merge));
    }
    touches
}

/// What `git init` makes: a repository, with hooks from a template, perhaps somewhere else.
fn begun(args: &[Field], mut folders: Fields) -> Vec<Touch> {
    const VALUED: &[&str] =
        &["-b", "--initial-branch", "--object-format", "--ref-format", "--separate-git-dir", "--template"];
    let behind = args.get(git_verb(args).map_or(0, |verb| verb + 1)..).unwrap_or_default();
    let is_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| behind.get(before));
        before.is_some_and(|option| VALUED.contains(&option.text.as_str()))
    };
    let named = behind.iter().enumerate().find(|(at, arg)| !arg.text.starts_with('-') && !is_value(*at));
    folders.extend(named.map(|(_, folder)| folder.clone()));
    if folders.is_empty() {
        folders.push(Field::literal("."));
    }
    let has = |option: &str| behind.iter().any(|arg| arg.text.starts_with(option));
    let inside = |name: &str| folders.iter().map(|folder| joined(folder, &Field::literal(name))).collect::<Fields>();
    let mut touches = each(folders.clone(), Touch::Content);
    if has_template(behind) {
        touches.extend(each(inside(".git/hooks"), Touch::Content));
    }
    if has("--sep") {
        touches.extend(each(inside(".git"), Touch::Whole));
    }
    touches.extend(each(folders, Touch::Project));
    touches
}

/// Whether a new repository gets hooks from a folder.
fn has_template(behind: &[Field]) -> bool {
    let value = |arg: &Field| arg.text.strip_prefix("--templ").map(|rest| arg.open() || !rest.ends_with('='));
    behind.iter().filter_map(value).any(|named| named)
}

/// The folder that a repository is put into: the one that is named, or the last part of its address.
fn cloned(run: &Run, rest: &[Field]) -> Vec<Touch> {
    let Some(address) = rest.first() else { return Vec::new() };
    let named = || {
        let name = address.text.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']).next();
        Field::literal(name.unwrap_or_default())
    };
    let folders = if rest.len() > 1 { rest.iter().skip(1).cloned().collect() } else { vec![named()] };
    // Hooks of a template run as soon as the files are there.
    let hooks = has_template(&run.args).then(|| Touch::Perhaps(Field::literal(".git/hooks")));
    unpacked(run, folders).into_iter().chain(hooks).collect()
}

/// A file named from a folder on.
pub(super) fn joined(folder: &Field, file: &Field) -> Field {
    if folder.open() || file.open() || file.text.starts_with('/') {
        return file.clone();
    }
    Field { glob: file.glob, ..Field::literal(format!("{}/{}", folder.text.trim_end_matches('/'), file.text)) }
}
