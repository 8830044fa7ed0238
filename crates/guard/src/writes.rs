//! Which files a program changes, as far as its arguments say.

mod archives;
mod copies;
mod filters;
mod git;
mod options;
mod told;

use std::{ffi::OsStr, path::Path};

use crate::{
    field::{Field, Fields},
    path,
    program::{self, Arguments, Files},
    walk::{FindChange, Run},
};

pub use git::harmful_git_settings;
pub(crate) use git::{git_folders, git_verb};
pub(crate) use told::only_reads;

/// One way of changing something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The file itself is written.
    Content(Field),
    /// Something is added to the file itself.
    Appended(Field),
    /// It is removed, moved or changed with all that is in it.
    Whole(Field),
    /// Something is put in its place, unless it is a folder already.
    Becomes(Field),
    /// Files with unknown names are put into it.
    Merge(Field),
    /// Files with unknown names are put into the working folder: every day into that of a project.
    Unpacked(Field),
    /// It gets another name, through which it can be changed later.
    Alias(Field),
    /// Code in another language that may change everything that it names.
    Code(String),
    /// It is named to a program that nothing is known about.
    Perhaps(Field),
    /// What a search finds is removed or changed.
    Found(FindChange),
    /// It becomes the root of a project.
    Project(Field),
}

/// The options among arguments.
pub(crate) fn options(args: &[Field]) -> impl Iterator<Item = &str> {
    let texts = args.iter().map(|arg| arg.text.as_str()).take_while(|text| *text != "--");
    texts.filter(|text| text.len() > 1 && text.starts_with('-'))
}

/// What a program changes.
pub(crate) fn touches(run: &Run) -> Vec<Touch> {
    let args = &run.args;
    let plain = || operands(args);
    let mut touches: Vec<Touch> = match run.name.as_str() {
        "tee" if options(args).any(|option| letters(option, &['a']) || option.starts_with("--a")) => {
            each(plain(), Touch::Appended)
        }
        "tee" | "touch" | "truncate" | "mkdir" | "mkfifo" | "mknod" | "rmdir" | "unlink" | "ed" | "ex" | "vi"
        | "vim" | "nvim" | "nano" | "emacs" | "sponge" | "shred" | "code" => each(plain(), Touch::Content),
        "rm" | "grm" | "srm" | "trash" | "trash-put" | "gio" | "del" | "rd" | "rimraf" | "del-cli" | "remove-item" => {
            let recursive = options(args).any(|option| letters(option, &['r', 'R']) || option.starts_with("--recurs"));
            each(plain(), if recursive || run.name != "rm" { Touch::Whole } else { Touch::Content })
        }
        "chmod" | "gchmod" | "chown" | "gchown" | "chgrp" | "chattr" | "setfacl" | "chflags" | "xattr" => {
            let recursive = options(args).any(|option| letters(option, &['R']) || option.starts_with("--recurs"));
            let plain = plain();
            let gives = !gives_nothing_away(&run.name, &plain, run.place.home.as_deref());
            // What is found is not chosen, so that nothing is switched on by it.
            let changed = plain.into_iter().filter(|file| gives || !file.listed);
            each(changed, if recursive && gives { Touch::Whole } else { Touch::Content })
        }
        // Devices are read, or let go.
        "mount" | "umount" => each(plain().into_iter().filter(|arg| !arg.text.starts_with("/dev/")), Touch::Whole),
        "cp" | "gcp" | "install" | "mv" | "gmv" | "ln" | "gln" | "rsync" | "scp" | "ditto" => {
            copies::touches(run, plain())
        }
        "sed" | "gsed" | "perl" | "ruby" | "gawk" | "awk" | "mawk" | "yq" if filters::in_place(run) => {
            each(plain(), Touch::Content)
        }
        "git" => git::touches(run),
        "patch" => {
            let mut touches = each(plain(), Touch::Content);
            if run.input.is_none() {
                touches.extend(archives::unpacked(run, values(args, &["-d", "--directory"])));
            }
            touches
        }
        "tar" | "bsdtar" | "gtar" => archives::tar(run, &plain()),
        "unzip" if args.first().is_some_and(|first| matches!(first.text.as_str(), "-l" | "-p" | "-t" | "-v")) => {
            Vec::new()
        }
        "unzip" => {
            let members = archives::unpacked_members(run, plain().into_iter().skip(1).collect());
            archives::unpacked(run, values(args, &["-d"])).into_iter().chain(members).collect()
        }
        "7z" | "7za" | "7zr" | "7zz" if plain().first().is_some_and(|verb| matches!(verb.text.as_str(), "x" | "e")) => {
            archives::unpacked(run, values(args, &["-o"]))
        }
        "jar" if args.first().is_some_and(|mode| mode.text.contains('x')) => {
            archives::unpacked(run, values(args, &["-C", "--dir"]))
        }
        "bsdcpio" | "cpio"
            if options(args).any(|option| letters(option, &['i', 'p']) || option.starts_with("--extract")) =>
        {
            archives::unpacked(run, values(args, &["-D", "--directory"]))
        }
        "python" | "python3" if unpacks_by_module(args) => {
            archives::unpacked(run, plain().into_iter().skip(2).collect())
        }
        "curl" => {
            let mut files = values(args, &["--dump-header", "-D", "--cookie-jar", "-c", "-o"]);
            files.extend(in_folders(&values(args, &["--output-dir"]), &plain()));
            files.extend(configured_outputs(run));
            let by_name = options(args).any(|option| letters(option, &['O', 'J']) || option.starts_with("--remote"));
            let named = plain().into_iter().filter(|_| by_name).flat_map(|address| saved(&address));
            each(files, Touch::Content).into_iter().chain(named).collect()
        }
        "wget" => {
            let mut files = values(args, &["--output-document", "-O", "--output-file", "-o", "-a"]);
            files.extend(values(args, &["-P", "--directory-prefix"]));
            let here = files.is_empty();
            let named = plain().into_iter().filter_map(|address| address_path(&address)).map(Touch::Perhaps);
            let saved = plain().into_iter().filter(|_| here).flat_map(|address| saved(&address));
            each(files, Touch::Content).into_iter().chain(named).chain(saved).collect()
        }
        "sort" | "shuf" | "tree" | "iconv" | "xmllint" | "base64" => {
            each(values(args, &["-o", "--output"]), Touch::Content)
        }
        "uniq" | "xxd" => each(plain().into_iter().skip(1), Touch::Content),
        "find" | "fd" | "fdfind" => {
            FindChange::by(&run.name, args, run.place.home.as_deref()).into_iter().map(Touch::Found).collect()
        }
        _ => Vec::new(),
    };
    touches.extend(each(dd_output(run), Touch::Content));
    if !run.program.only_reads {
        touches.extend(each(outputs(run), Touch::Content));
    }
    match run.program.files {
        Files::MayWrite if told::only_reads(run) => {}
        Files::MayWrite => touches.extend(args.iter().flat_map(|arg| named_files(arg, run)).map(Touch::Perhaps)),
        Files::Known => touches.extend(options::touches(run)),
    }
    touches.extend(patched(run));
    touches.extend(code(run).map(Touch::Code));
    touches
}

/// `python3 -m zipfile -e a.zip folder`
fn unpacks_by_module(args: &[Field]) -> bool {
    let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).take(3).collect();
    matches!(texts.as_slice(), ["-m", "zipfile" | "tarfile", "-e" | "--extract"])
}

fn each(fields: impl IntoIterator<Item = Field>, touch: fn(Field) -> Touch) -> Vec<Touch> {
    fields.into_iter().map(touch).collect()
}

fn operands(args: &[Field]) -> Fields {
    let mut rest = false;
    let mut operands = Fields::with_capacity(args.len());
    for arg in args {
        if !rest && arg.text == "--" {
            rest = true;
        } else if rest || arg.text.len() < 2 || !arg.text.starts_with('-') {
            operands.push(arg.clone());
        }
    }
    operands
}

fn letters(option: &str, wanted: &[char]) -> bool {
    option.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(wanted))
}

/// The values of options that take one: attached or not, alone or last in a bundle of letters.
pub(crate) fn values(args: &[Field], names: &[&str]) -> Fields {
    let mut values = Fields::new();
    for (at, arg) in args.iter().enumerate().filter(|(_, arg)| arg.text.starts_with('-')) {
        for name in names {
            let long = name.strip_prefix("--").is_some();
            let behind = if long { arg.text.strip_prefix(name) } else { bundled(&arg.text, name) };
            match behind {
                Some("") => values.extend(args.get(at + 1).cloned()),
                Some(value) if value.starts_with('=') || !long => {
                    values.push(Field { text: value.strip_prefix('=').unwrap_or(value).to_owned(), ..arg.clone() });
                }
                _ => {}
            }
        }
    }
    values
}

/// What stands behind a letter in a bundle of one-letter options.
fn bundled<'a>(option: &'a str, name: &str) -> Option<&'a str> {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (before, behind) = letters.split_once(name.strip_prefix('-')?)?;
    before.chars().all(|next| next.is_ascii_alphanumeric() || next == '#').then_some(behind)
}

/// What most programs call their output.
fn outputs(run: &Run) -> Fields {
    let args = &run.args;
    let mut outputs = values(args, &["--output", "--out", "--outfile", "--output-file"]);
    // To most verbs of `git` the letter is a switch: `git ls-files -o`.
    if run.name == "git" && options::has_switches(args) {
        return outputs;
    }
    for pair in args.windows(2) {
        if let [option, value] = pair
            && matches!(option.text.as_str(), "-o" | "-O")
        {
            outputs.push(value.clone());
        }
    }
    outputs
}

fn dd_output(run: &Run) -> Option<Field> {
    // Some versions write logs, too.
    let is_output = |name: &str| matches!(name, "of" | "hof") || name.contains("log");
    let find = || {
        run.args.iter().find_map(|arg| {
            let (_, file) = arg.text.split_once('=').filter(|(name, _)| is_output(name))?;
            Some(Field { text: file.to_owned(), ..arg.clone() })
        })
    };
    if matches!(run.name.as_str(), "dd" | "gdd" | "dcfldd" | "dc3dd") { find() } else { None }
}

/// The files that settings of `curl` on its standard input have it write.
fn configured_outputs(run: &Run) -> Fields {
    let reads =
        values(&run.args, &["-K", "--config"]).iter().any(|file| matches!(file.text.as_str(), "-" | "/dev/stdin"));
    let lines = run.input.as_deref().filter(|_| reads).unwrap_or_default().lines();
    let output = |line: &str| {
        let line = line.trim().trim_start_matches('-');
        let (name, value) = line.split_once(['=', ':', ' ', '\t'])?;
        let writes = matches!(name.trim(), "output" | "o" | "dump-header" | "D" | "cookie-jar" | "c" | "trace");
        let value = value.trim_matches(['=', ':', ' ', '\t', '"']);
        writes.then(|| Field::literal(path::spelled(value, run.place.home.as_deref())))
    };
    lines.filter_map(output).collect()
}

/// A file in the working folder with the last part of an address as its name, unless the server says otherwise.
fn saved(address: &Field) -> [Touch; 2] {
    let here = Field::literal(".");
    [Touch::Perhaps(copies::inside(&here, address)), Touch::Perhaps(here)]
}

/// The folders themselves, and the files that get the last part of an address there.
fn in_folders(folders: &[Field], addresses: &[Field]) -> Fields {
    let files = folders.iter().flat_map(|folder| addresses.iter().map(|address| copies::inside(folder, address)));
    folders.iter().cloned().chain(files).collect()
}

/// The path in an address, which may become the path of a file.
fn address_path(address: &Field) -> Option<Field> {
    let (_, rest) = address.text.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    let at = path.find('.').filter(|_| !address.open())?;
    Some(Field::literal(path.get(at..)?))
}

/// Every file that an argument may name to a program that nothing is known about.
fn named_files(arg: &Field, run: &Run) -> Fields {
    if arg.open() {
        return vec![arg.clone()];
    }
    // A plain word may be a file, too, but hardly one that is protected: links are asked about when they are made.
    if !arg.text.contains(['/', '.', '\\']) {
        return Fields::new();
    }
    let mut files = vec![arg.clone()];
    let option = arg.text.strip_prefix('-');
    let attached = option.and_then(|option| option.get(1..)).filter(|value| !value.is_empty());
    let bundled = option.and_then(|option| option.get(option.find(['.', '/', '~'])?..));
    let parts = arg.text.split(['=', ',', ':', '@', '{', '}']).filter(|part| part.len() < arg.text.len());
    files.extend(parts.chain(attached).chain(bundled).filter(|part| part.contains(['/', '.'])).map(Field::literal));
    let home = run.place.home.as_deref();
    for file in &mut files {
        file.text = path::spelled(&file.text, home);
    }
    files
}

/// Whether a change of modes or owners takes nothing from the user and gives nothing to other users.
pub(crate) fn gives_nothing_away(name: &str, args: &[Field], home: Option<&Path>) -> bool {
    let Some(change) = args.iter().find(|arg| !arg.text.starts_with('-')).filter(|change| !change.open()) else {
        return false;
    };
    match name {
        "chmod" | "gchmod" => keeps_modes(&change.text),
        "chown" | "gchown" | "chgrp" => change.text.split(':').all(|name| is_user(name, home)),
        _ => false,
    }
}

/// Whether this is the user, by the name of the home or by a number such as people have.
fn is_user(name: &str, home: Option<&Path>) -> bool {
    const FIRST_PERSON: u32 = 1000;
    let home = home.and_then(Path::file_name).and_then(OsStr::to_str);
    let person = name.parse::<u32>().is_ok_and(|id| (FIRST_PERSON..FIRST_PERSON + 100).contains(&id));
    name.is_empty() || name == program::SELF || home == Some(name) || person
}

fn keeps_modes(mode: &str) -> bool {
    if let Ok(bits) = u32::from_str_radix(mode, 8) {
        return bits & 0o002 == 0 && bits & 0o500 == 0o500;
    }
    mode.split(',').all(|clause| {
        let Some(at) = clause.find(['+', '-', '=']) else { return false };
        let (who, change) = clause.split_at(at);
        let only_user = !who.is_empty() && who.chars().all(|next| next == 'u');
        let writes = change.contains('w');
        let only_group = !who.is_empty() && who.chars().all(|next| matches!(next, 'u' | 'g'));
        match change.chars().next() {
            Some('+') => !writes || only_group,
            Some('-') => !who.is_empty() && !who.contains(['u', 'a']),
            _ => (only_user && change.contains('r')) || (!who.contains(['u', 'a']) && !who.is_empty() && !writes),
        }
    })
}

/// The files a patch in the script changes.
fn patched(run: &Run) -> Vec<Touch> {
    let git = run.name == "git" && run.args.iter().any(|arg| matches!(arg.text.as_str(), "apply" | "am"));
    if !git && !matches!(run.name.as_str(), "patch" | "apply_patch" | "applypatch") {
        return Vec::new();
    }
    let texts = run.args.iter().map(|arg| arg.text.as_str()).chain(run.input.as_deref());
    texts.flat_map(patch_files).map(|file| Touch::Whole(Field::literal(file))).collect()
}

/// The files named in the text of a patch.
pub(crate) fn patch_files(patch: &str) -> Vec<String> {
    const MARKS: &[&str] = &[
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ ",
        "--- ",
        "rename to ",
        "rename from ",
        "copy to ",
        "*** ",
    ];
    let mut files = Vec::new();
    for line in patch.lines() {
        let Some(named) = MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark)) else { continue };
        let named = named.split('\t').next().unwrap_or(named).trim().trim_matches('"');
        files.push(named.to_owned());
        // git puts `a/` and `b/` before names; `patch -p` may take any number of folders away.
        files.extend(named.split_once('/').map(|(_, rest)| rest.to_owned()));
    }
    files
}

/// Code handed to an interpreter, with its input.
fn code(run: &Run) -> Option<String> {
    if run.program.arguments != Arguments::Code {
        return None;
    }
    let mut code = run.input.as_deref().unwrap_or_default().to_owned();
    let is_code = |arg: &&Field| arg.text.contains([' ', '(', ';', '\n']);
    let parts = if program::is_filter(&run.name) {
        filters::code(run)
    } else {
        run.args.iter().filter(is_code).map(Field::shown).collect()
    };
    for part in parts {
        code.push('\n');
        code.push_str(&part);
    }
    code.extend(joined_strings(&code).map(|joined| format!("\n{joined}")));
    (!code.is_empty()).then_some(code)
}

/// Code with strings that are put together written as one: `'.ol' + 'lm'`.
pub(crate) fn joined_strings(code: &str) -> Option<String> {
    let mut joined = String::new();
    let mut rest = code;
    let mut is_inside = false;
    while let Some(at) = rest.find(['\'', '"']) {
        let (before, quoted) = rest.split_at(at);
        let (quote, behind) = quoted.split_at(1);
        let next = behind.trim_start_matches([' ', '\t', '\n', '+', '.']);
        joined.push_str(before);
        // A quote, nothing but a sign for joining, and a quote; `"."` is a text of its own.
        let is_dot = !is_inside && behind.len() == next.len() + 1 && behind.starts_with('.');
        if let Some(after) = next.strip_prefix(['\'', '"']).filter(|_| !is_dot) {
            rest = after;
        } else {
            joined.push_str(quote);
            is_inside = !is_inside;
            rest = behind;
        }
    }
    joined.push_str(rest);
    (joined.len() < code.len()).then_some(joined)
}
