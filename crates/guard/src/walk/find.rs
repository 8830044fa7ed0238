//! `find`: what it runs, and on what.

use super::{Feed, Walker, xargs::fill};
use crate::{
    field::{Field, Fields, is_pattern},
    path,
    program::Program,
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
        let (roots, selection) = if name == "find" { (find_roots(args), selection(args)) } else { fd_roots(args) };
        for command in commands(args) {
            for root in &roots {
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
                        *field = found_below(root, &selection);
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
pub(crate) fn is_filtered(args: &[Field]) -> bool {
    let is_not = |arg: &Field| matches!(arg.text.as_str(), "!" | "-not");
    let filters = args.iter().enumerate().any(|(at, arg)| {
        let value = args.get(at + 1).map(|value| value.text.as_str()).unwrap_or_default();
        let all = matches!(value, "*" | ".*" | "**" | "?*" | "*/*");
        let special = arg.text == "-type" && !value.contains(['f', 'd']);
        let refused = at.checked_sub(1).and_then(|before| args.get(before)).is_some_and(is_not);
        (FILTERS.contains(&arg.text.as_str()) || arg.text.starts_with("-newer") || special) && !all && !refused
    });
    // What is in parentheses may be refused as a whole.
    let refuses_group = args.iter().any(is_not) && args.iter().any(|arg| arg.text == "(");
    filters && !refuses_group && !args.iter().any(|arg| matches!(arg.text.as_str(), "-o" | "-or" | ","))
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
    let mut plain = Fields::new();
    let mut rest = args.iter().take_while(|arg| !RUNS.contains(&arg.text.as_str()));
    let mut filtered = false;
    while let Some(arg) = rest.next() {
        match arg.text.as_str() {
            "-e" | "--extension" | "-S" | "--size" => filtered |= rest.next().is_some(),
            text if VALUED.contains(&text) => drop(rest.next()),
            text if text.starts_with('-') && text.len() > 1 => {}
            _ => plain.push(arg.clone()),
        }
    }
    let all = plain.first().is_none_or(|pattern| matches!(pattern.text.as_str(), "" | "." | ".*" | "*"));
    let roots: Fields = plain.into_iter().skip(1).collect();
    let selection = if filtered || !all { Selection::Some } else { Selection::All };
    (if roots.is_empty() { vec![Field::literal(".")] } else { roots }, selection)
}

/// How much of what is below its roots a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Some,
    /// What has a name that fits this pattern.
    Named(String),
}

/// What the tests of a `find` leave.
pub(crate) fn selection(args: &[Field]) -> Selection {
    if !is_filtered(args) {
        return Selection::All;
    }
    let is_test = |arg: &Field| matches!(arg.text.as_str(), "-name" | "-iname" | "-path" | "-ipath" | "-wholename");
    let mut tests = args.windows(2).filter(|pair| pair.first().is_some_and(is_test));
    match (tests.next(), tests.next()) {
        (Some([test, pattern]), None)
            if test.text.ends_with("name") && !test.text.contains("whole") && !pattern.open() =>
        {
            Selection::Named(pattern.text.clone())
        }
        _ => Selection::Some,
    }
}

/// Something below a root: everything, or nobody knows what.
pub(crate) fn found_below(root: &Field, selection: &Selection) -> Field {
    let text = root.text.trim_end_matches('/');
    if !root.open() && *selection == Selection::All {
        return Field { text: format!("{text}/*"), glob: true, listed: true, ..Field::default() };
    }
    let folder = text.trim_end_matches('*').trim_end_matches('/');
    let tail = match selection {
        Selection::Named(name) => format!("/{name}"),
        _ => String::new(),
    };
    let glob = is_pattern(folder) || is_pattern(&tail);
    Field { text: format!("{folder}/"), tail: Some(tail), glob, hollow: None, listed: true }
}

/// What a `find` changes: things below its roots that pass its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) root: Field,
    /// Patterns that a name or path must fit; empty if any will do.
    pub(crate) wanted: Vec<String>,
    /// Patterns that it must not fit.
    pub(crate) left_out: Vec<String>,
}

impl Found {
    /// What this `find` removes or hands to a program that may change it.
    pub(crate) fn by(name: &str, args: &[Field]) -> Vec<Found> {
        let changes = args.iter().any(|arg| arg.text == "-delete")
            || commands(args).any(|command| {
                let name = command.first().map(|first| path::base_name(&first.text)).unwrap_or_default();
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
            // Without an alternative, the action is on what is not gone into.
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
        let roots = if name == "find" { find_roots(args) } else { fd_roots(args).0 };
        let roots = roots.into_iter();
        roots.map(|root| Found { root, wanted: wanted.clone(), left_out: left_out.clone() }).collect()
    }
}
