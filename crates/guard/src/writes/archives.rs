//! Archives: what is put into them, and what comes out.

use super::{Touch, each, git, options, values};
use crate::{
    field::{Field, Fields, is_pattern},
    path,
    walk::Run,
};

/// What `tar` writes: the archive, or all that is in it.
pub(super) fn tar(run: &Run, plain: &[Field]) -> Vec<Touch> {
    // `tar czf …`: letters without a dash come first.
    let bare = run.args.first().map(|first| first.text.as_str()).filter(|first| !first.starts_with('-'));
    // What stands behind a letter that takes a value is the value.
    let bundles = options(&run.args).filter_map(|option| option.strip_prefix('-'));
    let bundles = bundles.filter_map(|letters| letters.split(['-', 'b', 'C', 'f', 'I', 'T', 'X']).next());
    let mode: String = bundles.chain(bare).collect();
    let long = |name: &str| run.args.iter().any(|arg| arg.text == name);
    let unpacks = mode.contains('x') || long("--extract") || long("--get");
    if unpacks {
        let folders = values(&run.args, &["-C", "--directory"]);
        let members: Fields = plain.iter().filter(|member| !folders.contains(member)).flat_map(below_folders).collect();
        let inside = folders.iter().flat_map(|folder| members.iter().map(|member| git::joined(folder, member)));
        let members: Fields = members.iter().cloned().chain(inside).collect();
        return unpacked(run, folders.clone()).into_iter().chain(unpacked_members(run, members)).collect();
    }
    let creates = mode.contains(['c', 'r', 'u']) || long("--create");
    let mut files = values(&run.args, &["--file"]);
    files.extend(plain.get(1).filter(|_| bare.is_some_and(|letters| letters.contains('f'))).cloned());
    files.extend(values(&run.args, &["-f"]));
    let taken = plain.iter().filter(|_| long("--remove-files")).cloned();
    if creates {
        each(files, Touch::Content).into_iter().chain(each(taken, Touch::Whole)).collect()
    } else {
        Vec::new()
    }
}

/// What of an archive is named: files, folders with all that is in them, and patterns of the archive's own.
pub(super) fn unpacked_members(run: &Run, members: Fields) -> Vec<Touch> {
    let here = |member: &Field| run.place.folders.iter().any(|here| path::join(here, &member.text) == *here);
    // What stands before a wildcard is the folder.
    let folder = |member: &Field| {
        let plain: Vec<&str> = member.text.split('/').take_while(|part| !is_pattern(part)).collect();
        Field { text: plain.join("/"), ..member.clone() }
    };
    let merged = |member: &Field| Some(folder(member)).filter(|folder| !folder.text.is_empty() && !here(folder));
    let merged: Fields = members.iter().filter_map(merged).collect();
    each(members, Touch::Content).into_iter().chain(each(merged, Touch::Merge)).collect()
}

/// A path, and what is left of it without its first folders: an archive may be unpacked without them.
fn below_folders(path: &Field) -> Fields {
    const MOST: usize = 8;
    let rests = path.text.match_indices('/').filter_map(|(at, _)| path.text.get(at + 1..));
    let rests = rests.take(MOST).map(|rest| Field { text: rest.to_owned(), ..path.clone() });
    std::iter::once(path.clone()).chain(rests).collect()
}

/// Files with unknown names come into these folders, or into the working folder.
pub(super) fn unpacked(run: &Run, mut folders: Fields) -> Vec<Touch> {
    if folders.is_empty() {
        folders.push(Field::literal("."));
    }
    let here = |folder: &Field| run.place.folders.iter().any(|here| path::join(here, &folder.text) == *here);
    let merged = |folder: Field| if here(&folder) { Touch::Unpacked(folder) } else { Touch::Merge(folder) };
    let touches = each(folders.clone(), Touch::Content);
    touches.into_iter().chain(folders.into_iter().map(merged)).collect()
}
