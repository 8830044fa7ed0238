//! `find`: what it runs, and on what.

use std::path::Path;

use super::{Feed, Walker, xargs::fill};
use crate::{
    field::{Field, Fields, is_pattern},
    path,
    program::Program,
    writes::gives_nothing_away,
};

/// Tests of `find` that keep it from touching everything.
const FILTERS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-mtime",
    "-mmin",
    "-size",
    "-empty",
    "-user",
    "-perm",
    "-atime",
    "-ctime",
    "-lname",
    "-links",
    "-inum",
    "-xtype",
];

/// Actions that run the command behind them.
const RUNS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

impl Walker {
    /// The commands it runs on what it finds below its roots.
    pub(super) fn find(&mut self, name: &str, fields: &[Field], depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        let (roots, selections) = if name == "find" {
            (find_roots(args), selections(args))
        } else {
            let (roots, selection) = fd_roots(args);
            let wanted = if shows_hidden(args) && selection == Selection::Some { fd_names(args) } else { Vec::new() };
            let selections: Vec<Selection> = wanted.into_iter().map(Selection::Named).collect();
            (roots, if selections.is_empty() { vec![selection] } else { selections })
        };
        for command in commands(args) {
            for (root, selection) in roots.iter().flat_map(|root| selections.iter().map(move |one| (root, one))) {
                if !self.affords(command.len()) {
                    return;
                }
                let mut command = command.to_vec();
                // `fd` puts what it finds at the end, unless it is told where.
                if name != "find" && !command.iter().any(|field| field.text.contains('{')) {
                    command.push(Field::literal("{}"));
                }
                for field in &mut command {
                    if field.text == "{}" {
                        *field = found_below(root, selection);
                    } else {
                        fill(field, "{}");
                    }
                }
                self.run(command.into(), &Feed::Nothing, depth + 1);
            }
        }
    }
}

/// The commands behind `-exec` and the like. Each goes up to its end, also over words that would begin another one.
fn commands(args: &[Field]) -> impl Iterator<Item = &[Field]> {
    let mut rest = args;
    std::iter::from_fn(move || {
        while let Some((arg, behind)) = rest.split_first() {
            rest = behind;
            if RUNS.contains(&arg.text.as_str()) {
                let length = rest.iter().take_while(|arg| !matches!(arg.text.as_str(), ";" | "+")).count();
                let (command, behind) = rest.split_at_checked(length)?;
                rest = behind;
                return Some(command);
            }
            // What a test compares with is no action.
            if FILTERS.contains(&arg.text.as_str()) && arg.text != "-empty" {
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        None
    })
}

/// Whether a `find` looks at names, times or sizes before it acts, and acts on nothing else.
fn is_filtered(args: &[Field]) -> bool {
    let mut rest = args;
    let found = Alternatives::read(&mut rest);
    if found.acts { found.acts_on_some } else { found.narrow }
}

/// Tests and actions of a `find` that stand side by side, up to the end of their parentheses.
struct Alternatives {
    /// Whether only some of what is found passes any of them.
    narrow: bool,
    /// Whether there is an action among them.
    acts: bool,
    /// Whether every action is on some of what is found.
    acts_on_some: bool,
}

impl Alternatives {
    fn read(rest: &mut &[Field]) -> Alternatives {
        let mut found = Alternatives { narrow: true, acts: false, acts_on_some: true };
        // Of the alternative that is being read.
        let (mut narrow, mut refused) = (false, false);
        while let Some((arg, behind)) = rest.split_first() {
            *rest = behind;
            let text = arg.text.as_str();
            match text {
                "!" | "-not" => {
                    refused = !refused;
                    continue;
                }
                "(" => {
                    let group = Alternatives::read(rest);
                    found.acts |= group.acts;
                    found.acts_on_some &= narrow || group.acts_on_some;
                    narrow |= group.narrow && !refused;
                }
                ")" => break,
                "-o" | "-or" | "," => found.narrow &= std::mem::take(&mut narrow),
                _ if RUNS.contains(&text) => {
                    let end = rest.iter().position(|arg| matches!(arg.text.as_str(), ";" | "+"));
                    *rest = rest.get(end.map_or(rest.len(), |end| end + 1)..).unwrap_or_default();
                    (found.acts, found.acts_on_some) = (true, found.acts_on_some && narrow);
                }
                _ if is_action(text) => (found.acts, found.acts_on_some) = (true, found.acts_on_some && narrow),
                _ => narrow |= is_narrow(text, rest.first()) && !refused,
            }
            if takes_value(text) {
                *rest = rest.get(1..).unwrap_or_default();
            }
            refused = false;
        }
        found.narrow &= narrow;
        found
    }
}

/// Whether it is something that `find` does, apart from running a command.
fn is_action(text: &str) -> bool {
    text == "-delete" || text == "-ls" || text == "-fls" || text.starts_with("-print") || text.starts_with("-fprint")
}

/// Whether the next word belongs to a test or an action, whatever it is.
fn takes_value(text: &str) -> bool {
    #[rustfmt::skip]
    const VALUED: &[&str] = &[
        "-amin", "-anewer", "-cmin", "-cnewer", "-context", "-fls", "-fprint", "-fprint0", "-fstype", "-gid", "-group",
        "-maxdepth", "-mindepth", "-printf", "-samefile", "-type", "-uid", "-used",
    ];
    (FILTERS.contains(&text) && text != "-empty") || VALUED.contains(&text) || text.starts_with("-newer")
}

/// Whether a test keeps it from finding everything.
fn is_narrow(test: &str, value: Option<&Field>) -> bool {
    let value = value.map(|value| value.text.as_str()).unwrap_or_default();
    let all = matches!(value, "*" | ".*" | "**" | "?*" | "*/*");
    let special = test == "-type" && !value.contains(['f', 'd']);
    (FILTERS.contains(&test) || test.starts_with("-newer") || special) && !all
}

/// The folders `find` starts from.
pub(crate) fn find_roots(args: &[Field]) -> Fields {
    let mut rest = args.iter().peekable();
    while let Some(option) = rest.peek() {
        match option.text.as_str() {
            "-H" | "-L" | "-P" => drop(rest.next()),
            "-D" => drop((rest.next(), rest.next())),
            text if text.starts_with("-O") => drop(rest.next()),
            _ => break,
        }
    }
    let roots: Fields = rest.take_while(|field| !field.text.starts_with(['-', '(', '!', ','])).cloned().collect();
    if roots.is_empty() { vec![Field::literal(".")] } else { roots }
}

/// The folders `fd` starts from, and whether it finds only some of what is in them.
fn fd_roots(args: &[Field]) -> (Fields, Selection) {
    const VALUED: &[&str] = &[
        "-t",
        "-e",
        "-d",
        "-E",
        "-S",
        "-c",
        "-j",
        "--type",
        "--extension",
        "--max-depth",
        "--min-depth",
        "--exclude",
        "--size",
        "--changed-within",
        "--changed-before",
        "--owner",
        "--threads",
        "--max-results",
        "--color",
    ];
    let (mut plain, mut roots) = (Fields::new(), Fields::new());
    let mut rest = args.iter().take_while(|arg| !RUNS.contains(&arg.text.as_str()));
    let mut filtered = false;
    while let Some(arg) = rest.next() {
        match arg.text.as_str() {
            "-e" | "--extension" | "-S" | "--size" => filtered |= rest.next().is_some(),
            "-C" | "--base-directory" | "--search-path" => roots.extend(rest.next().cloned()),
            text if VALUED.contains(&text) => drop(rest.next()),
            text if text.starts_with('-') && text.len() > 1 => {}
            _ => plain.push(arg.clone()),
        }
    }
    let all = plain.first().is_none_or(|pattern| matches!(pattern.text.as_str(), "" | "." | ".*" | "*"));
    roots.extend(plain.into_iter().skip(1));
    let selection = if filtered || !all { Selection::Some } else { Selection::All };
    (if roots.is_empty() { vec![Field::literal(".")] } else { roots }, selection)
}

/// What names must fit that `fd` finds: its pattern as far as it is plain, or the endings that it is told.
fn fd_names(args: &[Field]) -> Vec<String> {
    let own: Vec<&Field> = args.iter().take_while(|arg| !RUNS.contains(&arg.text.as_str())).collect();
    let pairs = own.iter().zip(own.iter().skip(1));
    let endings = pairs.filter(|(option, _)| matches!(option.text.as_str(), "-e" | "--extension"));
    let endings: Vec<String> = endings.map(|(_, ending)| format!("*.{}", ending.text.to_lowercase())).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".?_-".contains(&byte);
    // A dot fits any letter.
    let text = |arg: &&Field| {
        let text = arg.text.trim_start_matches('^').trim_end_matches('$').replace("\\.", "\n");
        text.replace('.', "?").replace('\n', ".")
    };
    let pattern =
        own.iter().find(|arg| !arg.text.starts_with('-')).filter(|arg| !arg.open() && !arg.text.contains('?'));
    let plain = pattern.map(text).filter(|text| text.len() > 1 && text.bytes().all(is_plain));
    // The first plain word may be the value of another option.
    let is_sure = own
        .iter()
        .filter(|arg| arg.text.starts_with('-'))
        .all(|arg| matches!(arg.text.as_str(), "-H" | "-I" | "-HI" | "-u" | "-uu" | "--hidden"));
    if endings.is_empty() {
        plain.filter(|_| is_sure).map(|text| format!("*{}*", text.to_lowercase())).into_iter().collect()
    } else {
        endings
    }
}

/// Whether `fd` finds what is hidden, too.
fn shows_hidden(args: &[Field]) -> bool {
    let own = args.iter().take_while(|arg| !RUNS.contains(&arg.text.as_str()));
    own.map(|arg| arg.text.as_str()).any(|option| {
        let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        matches!(option, "--hidden" | "--unrestricted" | "--no-ignore-hidden")
            || letters.is_some_and(|letters| letters.contains(['H', 'u']))
    })
}

/// The folders in which `fd` finds everything; nothing if it leaves something out.
pub(crate) fn finds_everything(args: &[Field]) -> Option<Fields> {
    let (roots, selection) = fd_roots(args);
    (selection == Selection::All && shows_hidden(args)).then_some(roots)
}

/// How much of what is below its roots a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Some,
    /// What has a name that fits this pattern.
    Named(String),
}

/// What the tests of a `find` leave, each of several names by itself.
pub(crate) fn selections(args: &[Field]) -> Vec<Selection> {
    if !is_filtered(args) {
        return vec![Selection::All];
    }
    let mut found = Vec::new();
    for (at, test) in args.iter().enumerate().filter(|(_, test)| FILTERS.contains(&test.text.as_str())) {
        let refused = at.checked_sub(1).and_then(|before| args.get(before));
        if refused.is_some_and(|before| matches!(before.text.as_str(), "!" | "-not")) {
            continue;
        }
        let name = args.get(at + 1).filter(|name| matches!(test.text.as_str(), "-name" | "-iname") && !name.open());
        found.push(name.map_or(Selection::Some, |name| Selection::Named(name.text.clone())));
    }
    let either = args.iter().any(|arg| matches!(arg.text.as_str(), "-o" | "-or" | ","));
    // Where every test must hold, one that is no name leaves any.
    let named = !found.is_empty() && (either || found.len() == 1);
    if named { found } else { vec![Selection::Some] }
}

/// Something below a root: everything, or an unknown part.
pub(crate) fn found_below(root: &Field, selection: &Selection) -> Field {
    let text = root.text.trim_end_matches('/');
    if !root.open() && *selection == Selection::All {
        return Field { text: format!("{text}/*"), glob: true, listed: true, ..Field::default() };
    }
    // `lib/*` is all that is in a folder, `lib*` only some folders.
    let folder = text.strip_suffix("/*").or_else(|| text.strip_suffix("/.*")).unwrap_or(text);
    let folder = if folder == "*" { "." } else { folder };
    let tail = match selection {
        Selection::Named(name) => format!("/{name}"),
        _ => String::new(),
    };
    let glob = is_pattern(folder) || is_pattern(&tail);
    Field { text: format!("{folder}/"), tail: Some(tail), glob, hollow: None, listed: true }
}

/// What a `find` changes: things below its roots that pass its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FindChange {
    pub(crate) root: Field,
    /// Patterns that a name or path must fit; empty if any will do.
    pub(crate) wanted: Vec<String>,
    /// Patterns that it must not fit.
    pub(crate) left_out: Vec<String>,
}

impl FindChange {
    /// What this `find` removes or hands to a program that may change it.
    pub(crate) fn by(name: &str, args: &[Field], home: Option<&Path>) -> Vec<FindChange> {
        let changes = args.iter().any(|arg| arg.text == "-delete")
            || commands(args).any(|command| {
                let name = command.first().map(|first| path::base_name(&first.text)).unwrap_or_default();
                if gives_nothing_away(&name, command.get(1..).unwrap_or_default(), home) {
                    return false;
                }
                let takes = name != "find" || command.iter().any(|arg| arg.text.contains("{}") || arg.open());
                takes && !Program::of(&name).only_reads
            });
        // Empty files and folders hold nothing to lose.
        if !changes || args.iter().any(|arg| arg.text == "-empty") {
            return Vec::new();
        }
        let either = args.iter().any(|arg| matches!(arg.text.as_str(), "-o" | "-or" | ","));
        let (mut wanted, mut left_out) = (Vec::new(), Vec::new());
        for (at, arg) in args.iter().enumerate() {
            let kinds = ["-name", "-iname", "-path", "-ipath", "-wholename"];
            let Some(pattern) = args.get(at + 1).filter(|_| kinds.contains(&arg.text.as_str())) else { continue };
            let word = |index: usize| args.get(index).map(|arg| arg.text.as_str());
            let refused = at.checked_sub(1).and_then(word).is_some_and(|word| matches!(word, "!" | "-not"));
            // Without an alternative, the action applies to the folders that are pruned.
            let pruned = word(at + 2) == Some("-prune") && matches!(word(at + 3), Some("-o" | "-or" | ","));
            if refused || pruned {
                left_out.push(pattern.text.to_lowercase());
            } else if pattern.open() {
                wanted.push("*".to_owned());
            } else {
                wanted.push(pattern.text.to_lowercase());
            }
        }
        // Of alternatives one may be without a name.
        if either && wanted.is_empty() && !args.iter().any(|arg| arg.text == "-prune") {
            left_out.clear();
        }
        let roots = if name == "find" {
            find_roots(args)
        } else {
            wanted.extend(fd_names(args));
            if !shows_hidden(args) {
                left_out.push(".*".to_owned());
            }
            fd_roots(args).0
        };
        let roots = roots.into_iter();
        roots.map(|root| FindChange { root, wanted: wanted.clone(), left_out: left_out.clone() }).collect()
    }
}
