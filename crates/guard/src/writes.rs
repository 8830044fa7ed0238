//! Which files a program changes, as far as its arguments say.

use crate::{
    field::{Field, Fields},
    walk::Run,
};

/// One way of changing something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The file itself is written.
    Content(Field),
    /// It is removed, moved or changed with all that is in it.
    Whole(Field),
    /// Something is put in its place, unless it is a folder already.
    Becomes(Field),
    /// Files nobody can name here are put into it.
    Merge(Field),
    /// It gets another name, through which it can be changed later.
    Alias(Field),
    /// Code in another language that may change whatever it names.
    Code(String),
}

/// The options among arguments.
pub(crate) fn options(args: &[Field]) -> impl Iterator<Item = &str> {
    let texts = args.iter().map(|arg| arg.text.as_str()).take_while(|text| *text != "--");
    texts.filter(|text| text.len() > 1 && text.starts_with('-'))
}

/// What a program changes.
#[expect(clippy::match_same_arms, reason = "programs of one kind stand together")]
pub(crate) fn touches(run: &Run) -> Vec<Touch> {
    let args = &run.args;
    let plain = operands(args);
    let mut touches: Vec<Touch> = match run.name.as_str() {
        "tee" | "touch" | "truncate" | "mkdir" | "mkfifo" | "mknod" | "rmdir" | "unlink" | "ed" | "ex" | "vi"
        | "vim" | "nvim" | "nano" | "emacs" | "sponge" | "shred" | "code" => each(plain, Touch::Content),
        "rm" | "grm" | "srm" | "trash" | "trash-put" | "gio" | "del" | "rd" => {
            let recursive = options(args).any(|option| letters(option, &['r', 'R']) || option.starts_with("--recurs"));
            each(plain, if recursive || run.name != "rm" { Touch::Whole } else { Touch::Content })
        }
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "chflags" | "xattr" => {
            let recursive = options(args).any(|option| letters(option, &['R']) || option.starts_with("--recurs"));
            each(plain, if recursive { Touch::Whole } else { Touch::Content })
        }
        "mount" | "umount" => each(plain, Touch::Whole),
        "cp" | "gcp" | "install" | "mv" | "gmv" | "ln" | "gln" | "rsync" | "scp" | "ditto" => copies(run, plain),
        "sed" | "gsed" | "perl" | "ruby" | "gawk" | "awk" | "mawk" if in_place(run) => each(plain, Touch::Content),
        "git" => git(run, &plain),
        "patch" => each(plain, Touch::Content),
        "tar" | "bsdtar" | "gtar" => each(values(args, &["-C", "--directory"]), Touch::Content),
        "unzip" => each(values(args, &["-d"]), Touch::Content),
        "curl" => each(values(args, &["--output-dir", "--dump-header", "-D"]), Touch::Content),
        "wget" => each(values(args, &["-P", "--directory-prefix", "--output-document"]), Touch::Content),
        _ => Vec::new(),
    };
    touches.extend(each(dd_output(run), Touch::Content));
    touches.extend(each(outputs(args), Touch::Content));
    touches.extend(patched(run));
    touches.extend(code(run).map(Touch::Code));
    touches
}

fn each(fields: impl IntoIterator<Item = Field>, touch: fn(Field) -> Touch) -> Vec<Touch> {
    fields.into_iter().map(touch).collect()
}

fn operands(args: &[Field]) -> Fields {
    let mut rest = false;
    let mut operands = Fields::new();
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

/// The values of options that take one, attached or not.
fn values(args: &[Field], names: &[&str]) -> Fields {
    let mut values = Fields::new();
    for (at, arg) in args.iter().enumerate() {
        for name in names {
            match arg.text.strip_prefix(name) {
                Some("") => values.extend(args.get(at + 1).cloned()),
                Some(value) if value.starts_with('=') || !name.starts_with("--") => {
                    let value = value.strip_prefix('=').unwrap_or(value);
                    values.push(Field { text: value.to_owned(), ..arg.clone() });
                }
                _ => {}
            }
        }
    }
    values
}

/// What most programs call their output.
fn outputs(args: &[Field]) -> Fields {
    let mut outputs = values(args, &["--output", "--out", "--outfile", "--output-file"]);
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
    let find = || {
        run.args.iter().find_map(|arg| Some(Field { text: arg.text.strip_prefix("of=")?.to_owned(), ..arg.clone() }))
    };
    if matches!(run.name.as_str(), "dd" | "gdd" | "dcfldd" | "dc3dd") { find() } else { None }
}

fn in_place(run: &Run) -> bool {
    let awk = run.name.ends_with("awk");
    options(&run.args).any(|option| {
        if awk {
            option == "-i" || option.starts_with("--include")
        } else {
            letters(option, &['i']) || option.starts_with("--in-place")
        }
    })
}

/// Programs with sources and a destination.
fn copies(run: &Run, mut plain: Fields) -> Vec<Touch> {
    let mut folder = values(&run.args, &["-t", "--target-directory"]).into_iter().next();
    if folder.is_some() && run.name != "rsync" {
        plain.retain(|field| Some(field) != folder.as_ref());
    } else {
        folder = None;
    }
    let is_folder = folder.is_some();
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
        let name = inside(&destination, source);
        touches.push(if deep || links { Touch::Whole(name) } else { Touch::Content(name) });
    }
    if replaces {
        touches.push(Touch::Whole(destination));
    } else if !is_folder {
        touches.push(if deep || links { Touch::Becomes(destination) } else { Touch::Content(destination) });
    }
    touches
}

/// A source's place in the destination folder.
fn inside(folder: &Field, source: &Field) -> Field {
    let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if folder.open() {
        let tail = format!("{}/{name}", folder.tail.as_deref().unwrap_or_default());
        return Field { text: folder.text.clone(), tail: Some(tail), glob: folder.glob };
    }
    let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
    let text = if folder.text.starts_with('/') && !text.starts_with('/') { format!("/{text}") } else { text };
    Field { text, tail: source.tail.clone(), glob: folder.glob || source.glob }
}

fn git(run: &Run, plain: &[Field]) -> Vec<Touch> {
    let verb = plain.iter().position(|field| {
        matches!(
            field.text.as_str(),
            "checkout" | "restore" | "rm" | "mv" | "apply" | "config" | "worktree" | "clone" | "init"
        )
    });
    let Some(verb) = verb else { return Vec::new() };
    let rest = plain.get(verb + 1..).unwrap_or_default().to_vec();
    match plain.get(verb).map(|field| field.text.as_str()) {
        Some("mv" | "rm") => each(rest, Touch::Whole),
        Some("checkout" | "restore" | "worktree" | "clone" | "init") => each(rest, Touch::Content),
        Some("config") => each(values(&run.args, &["-f", "--file"]), Touch::Content),
        _ => Vec::new(),
    }
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
    const LANGUAGES: &[&str] = &[
        "python",
        "node",
        "nodejs",
        "deno",
        "bun",
        "perl",
        "ruby",
        "php",
        "lua",
        "osascript",
        "awk",
        "gawk",
        "mawk",
        "sed",
        "gsed",
        "ed",
        "ex",
        "vi",
        "vim",
        "nvim",
        "emacs",
        "tclsh",
        "rscript",
        "julia",
        "guile",
        "sqlite3",
        "pwsh",
        "powershell",
        "tsx",
        "groovy",
        "jshell",
        "scala",
        "elixir",
        "swift",
        "ghc",
        "runghc",
        "jq",
        "yq",
        "expect",
        "pypy",
    ];
    let language = LANGUAGES.iter().any(|language| {
        run.name
            .strip_prefix(language)
            .is_some_and(|version| version.chars().all(|next| next.is_ascii_digit() || next == '.'))
    });
    if !language {
        return None;
    }
    let reads = matches!(run.name.as_str(), "sed" | "gsed" | "awk" | "gawk" | "mawk" | "jq" | "yq");
    let mut code = run.input.clone().unwrap_or_default();
    for arg in run
        .args
        .iter()
        .filter(|arg| arg.text.contains([' ', '(', ';', '\n']) && (!reads || arg.text.contains(['>', 'w', '|'])))
    {
        code.push('\n');
        code.push_str(&arg.shown());
    }
    (!code.is_empty()).then_some(code)
}
