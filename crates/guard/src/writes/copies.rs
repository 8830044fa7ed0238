//! Programs with sources and a destination: copies, moves, links.

use super::{Touch, each, letters, operands, options, values};
use crate::{
    field::{Field, Fields},
    walk::Run,
};

/// Programs with sources and a destination.
pub(super) fn touches(run: &Run, mut plain: Fields) -> Vec<Touch> {
    let has = |letter: char, long: &str| {
        options(&run.args).any(|option| letters(option, &[letter]) || option.starts_with(long))
    };
    // Every word is a folder to make.
    if run.name == "install" && has('d', "--dir") {
        return each(plain, Touch::Content);
    }
    if run.name == "rsync" {
        plain = operands(&without_filters(&run.args));
    }
    let mut folder = values(&run.args, &["-t", "--target-directory"]).into_iter().next();
    if folder.is_some() && run.name != "rsync" {
        plain.retain(|field| Some(field) != folder.as_ref());
    } else {
        folder = None;
    }
    let named_folder = folder.is_some();
    let Some(destination) = folder.or_else(|| (plain.len() > 1).then(|| plain.pop()).flatten()) else {
        // `ln TARGET` alone makes a link here, under the same name.
        return each(plain.iter().map(|source| inside(&Field::literal("."), source)), Touch::Content);
    };
    let moves = run.name.ends_with("mv");
    let links = run.name.ends_with("ln")
        || (run.name.ends_with("cp") && options(&run.args).any(|option| letters(option, &['l', 's'])));
    let deep = moves
        || matches!(run.name.as_str(), "rsync" | "ditto")
        || options(&run.args)
            .any(|option| letters(option, &['r', 'R', 'a']) || option.starts_with("--recurs") || option == "--archive");
    let replaces = options(&run.args).any(|option| {
        letters(option, &['T'])
            || option == "--no-target-directory"
            || (links && letters(option, &['n', 'h']))
            || option.starts_with("--delete")
    });
    let keeps_folders = match run.name.as_str() {
        "rsync" => has('R', "--rel"),
        _ => run.name.ends_with("cp") && options(&run.args).any(|option| option.starts_with("--par")),
    };
    let mut touches = Vec::new();
    for source in &plain {
        if moves {
            touches.push(Touch::Whole(source.clone()));
        }
        if links {
            touches.push(Touch::Alias(source.clone()));
        }
        let merges =
            source.text.ends_with("/.") || source.text == "." || (run.name == "rsync" && source.text.ends_with('/'));
        if merges && deep {
            touches.push(Touch::Merge(destination.clone()));
            continue;
        }
        let name = if keeps_folders { below(&destination, source) } else { inside(&destination, source) };
        if deep || links {
            touches.push(Touch::Whole(name.clone()));
        }
        touches.push(Touch::Content(name));
    }
    // What is written with a slash is a folder, and only gets something new.
    let is_folder = named_folder || (destination.text.ends_with('/') && !deep && !links);
    if replaces {
        touches.extend([Touch::Content(destination.clone()), Touch::Whole(destination)]);
    } else if !is_folder {
        touches.push(if deep || links { Touch::Becomes(destination) } else { Touch::Content(destination) });
    }
    touches
}

/// The words of `rsync` without the values of options that say what is left out.
fn without_filters(args: &[Field]) -> Fields {
    const FILTERS: &[&str] = &["--exclude", "--exclude-from", "--filter", "--include", "--include-from", "-f"];
    let mut is_value = false;
    let is_kept = |arg: &&Field| !std::mem::replace(&mut is_value, FILTERS.contains(&arg.text.as_str()));
    args.iter().filter(is_kept).cloned().collect()
}

/// A source's place in the destination folder, with all folders that its path names.
fn below(folder: &Field, source: &Field) -> Field {
    // `rsync` begins behind `/./`.
    let path = source.text.rsplit("/./").next().unwrap_or_default();
    let text = format!("{}/{}", folder.text.trim_end_matches('/'), path.trim_start_matches('/'));
    if folder.open() { inside(folder, source) } else { Field { text, ..source.clone() } }
}

/// A source's place in the destination folder.
pub(super) fn inside(folder: &Field, source: &Field) -> Field {
    let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if folder.open() {
        let tail = format!("{}/{name}", folder.tail.as_deref().unwrap_or_default());
        return Field { tail: Some(tail), ..folder.clone() };
    }
    let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
    let text = if folder.text.starts_with('/') && !text.starts_with('/') { format!("/{text}") } else { text };
    Field { text, tail: source.tail.clone(), glob: folder.glob || source.glob, ..Field::default() }
}
