//! Finds the standard input of a command, as far as the commands before it show.

use std::sync::Arc;

use ollm_shell::{Body, Command, List, Piece, Word};

use super::find::{Selection, find_roots, found_below, selections};
use crate::{
    field::{Expander, FARTHEST, Field, Fields, formatted, is_pattern, literal},
    names::Names,
    path,
    program::{self, Program},
};

/// What a command finds on its standard input.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    /// What the whole script got, which says nothing.
    Nothing,
    /// The output of another command.
    Pipe,
    /// Text in the script; nothing if parts of it cannot be known.
    Text(Option<Arc<str>>),
    /// Names of files, one of these or something below it.
    Files(Arc<Fields>),
}

/// Where text falls apart into arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    Words,
    Lines,
    Nowhere,
}

/// How many words of known text are followed.
const MOST_WORDS: usize = 32;

impl Feed {
    /// The files it names, where that is known.
    pub(super) fn fields(&self) -> &[Field] {
        match self {
            Feed::Files(fields) => fields,
            _ => &[],
        }
    }

    /// These files.
    fn files(fields: Fields) -> Feed {
        Feed::Files(Arc::new(fields))
    }

    /// Either of two.
    fn or(self, other: Feed) -> Feed {
        match (self, other) {
            (Feed::Files(fields), Feed::Files(more)) => Feed::files([fields.as_slice(), &more].concat()),
            _ => Feed::Pipe,
        }
    }

    /// The arguments that `xargs` would make of it.
    pub(super) fn arguments(&self, split: Split) -> Option<Fields> {
        match self {
            Feed::Files(fields) => Some(fields.to_vec()),
            Feed::Text(Some(text)) => {
                let words: Vec<&str> = match split {
                    Split::Words => text.split_whitespace().take(MOST_WORDS + 1).collect(),
                    Split::Lines => text.lines().map(str::trim_start).take(MOST_WORDS + 1).collect(),
                    Split::Nowhere => vec![&**text],
                };
                // Quotes join words, unless all of the text is one.
                let joins = split != Split::Nowhere && text.contains(['\'', '"', '\\']);
                (words.len() <= MOST_WORDS && !joins).then(|| words.into_iter().map(Field::literal).collect())
            }
            _ => None,
        }
    }
}

impl<'a> Expander<'a> {
    /// The files whose names a list prints, where that is known.
    pub(crate) fn listed(&self, list: &'a List, far: usize) -> Option<Fields> {
        let [step] = list.as_slice() else { return None };
        if far >= FARTHEST {
            return None;
        }
        match step.pipeline.iter().fold(Feed::Nothing, |feed, command| self.output_of(command, feed, far + 1)) {
            Feed::Files(fields) => Some(Arc::unwrap_or_clone(fields)),
            _ => None,
        }
    }

    /// What each step of a list writes.
    pub(super) fn printed_by(&self, list: &'a List, far: usize) -> impl Iterator<Item = Feed> {
        list.iter().map(move |step| {
            step.pipeline.iter().fold(Feed::Nothing, |feed, command| self.output_of(command, feed, far))
        })
    }

    /// What a program prints that is given a text to print: `cat <<EOF`.
    pub(crate) fn known_text(&self, list: &'a List, far: usize) -> Option<String> {
        let [step] = list.as_slice() else { return None };
        let [command] = step.pipeline.as_slice() else { return None };
        if command.redirects.is_empty() || far >= FARTHEST {
            return None;
        }
        match self.output_of(command, Feed::Nothing, far + 1) {
            Feed::Text(Some(text)) => Some(text.trim_end_matches('\n').to_owned()),
            _ => None,
        }
    }

    /// Whether all that a list prints is known.
    pub(crate) fn prints_known_text(&self, list: &'a List, far: usize) -> bool {
        far < FARTHEST && self.printed_by(list, far + 1).all(|feed| matches!(feed, Feed::Text(Some(_))))
    }

    /// What a command writes into the pipe behind it.
    pub(super) fn output_of(&self, command: &'a Command, input: Feed, far: usize) -> Feed {
        let Body::Simple { words, .. } = &command.body else { return Feed::Pipe };
        let input = self.input_of(command, input, far);
        let name = words.first().and_then(|word| literal(word));
        let says = |name: &str| lists_files(name) || program::prints_a_word(name);
        if name.is_some_and(|name| !matches!(input, Feed::Files(_)) && !says(&path::base_name(&name))) {
            return Feed::Pipe;
        }
        let ways = self.ways(words, far);
        let feeds = ways.iter().map(|fields| output(fields, input.clone()));
        feeds.reduce(Feed::or).unwrap_or(Feed::Pipe)
    }

    /// What a command reads: the pipe before it, or the text that stands behind it.
    fn input_of(&self, command: &'a Command, input: Feed, far: usize) -> Feed {
        use ollm_shell::Redirect::{Document, Duplicate, Read, Text};
        let mut feed = input;
        for redirect in &command.redirects {
            feed = match redirect {
                Text { input: true, .. } | Document { input: true, .. } => {
                    Feed::Text(redirect.word().and_then(|word| self.fed_text(word, far)).map(Arc::from))
                }
                Read { input: true, .. } | Duplicate { input: true, .. } => Feed::Pipe,
                _ => feed,
            };
        }
        feed
    }

    /// The text of a here-document or a here-string, when it is known.
    pub(super) fn fed_text(&self, word: &'a Word, far: usize) -> Option<String> {
        let tilde = matches!(word.first(), Some(Piece::Plain(text)) if text.starts_with('~'));
        if !tilde && word.iter().all(|piece| matches!(piece, Piece::Plain(_) | Piece::Quoted(_))) {
            return literal(word);
        }
        let ways = self.word(word, far);
        let [fields] = ways.as_slice() else { return None };
        let [field] = fields.as_slice() else { return None };
        field.known().map(str::to_owned)
    }
}

/// Whether something is known of what a program writes, for any input.
pub(crate) fn lists_files(name: &str) -> bool {
    const KNOWN: Names<32> = Names::of(&[&[
        "ag", "cat", "dir", "echo", "egrep", "find", "git", "grep", "hg", "ls", "pgrep", "printf", "ps", "rg", "svn",
        "tee",
    ]]);
    KNOWN.tables_with(name) != 0
}

/// What a program writes, given this input.
fn output(fields: &[Field], input: Feed) -> Feed {
    let Some((first, args)) = fields.split_first() else { return Feed::Pipe };
    let name = path::base_name(&first.text);
    match name.as_ref() {
        "cat" | "tee" if args.iter().all(|arg| arg.text.starts_with('-') || name == "tee") => input,
        "echo" | "printf" => printed(&name, args),
        "ls" | "dir" => Feed::files(listed(args)),
        "ps" | "pgrep" if lists_every_process(&name, args) => {
            Feed::files(vec![Field { glob: true, listed: true, ..Field::literal(EVERY_PROCESS) }])
        }
        // It leaves out the line with the names of the columns.
        "awk" | "sed" | "tail" | "tr"
            if !input.fields().is_empty()
                && input.fields().iter().all(is_every_process)
                && keeps_all_but_first(&name, args) =>
        {
            input
        }
        "find" => {
            let selections = selections(args);
            let found = |root| selections.iter().flat_map(move |selection| with_hidden(root, selection));
            Feed::files(find_roots(args).iter().flat_map(found).collect())
        }
        "grep" | "egrep" | "rg" | "ag" if args.iter().any(|arg| is_listing(&arg.text)) => {
            // Without a pattern it lists all files.
            let pattern = usize::from(!args.iter().any(|arg| arg.text == "--files"));
            let roots: Fields = args.iter().filter(|arg| !arg.text.starts_with('-')).skip(pattern).cloned().collect();
            let here = vec![Field::literal(".")];
            let roots = if roots.is_empty() { here } else { roots };
            Feed::files(roots.iter().map(|root| found_below(root, &Selection::Some)).collect())
        }
        // What it tracks is in the folder where it runs.
        "git" | "hg" | "svn"
            if args.first().is_some_and(|verb| matches!(verb.text.as_str(), "ls-files" | "diff" | "st" | "status")) =>
        {
            let is_path = |arg: &&Field| !arg.open() && !arg.text.starts_with('-') && !is_pattern(&arg.text);
            let here = Field::literal(".");
            let roots = args.iter().skip(1).filter(is_path).chain([&here]);
            Feed::files(roots.map(|root| found_below(root, &Selection::Some)).collect())
        }
        name if program::prints_a_word(name) => {
            let args: Option<Vec<&str>> = args.iter().map(Field::known).collect();
            Feed::Text(args.and_then(|args| program::printed_word(name, &args)).map(Arc::from))
        }
        // Others pass on some of what they get.
        name if passes_on_all(name, args) => input,
        _ if Program::of(&name).only_reads => match input {
            Feed::Files(fields) => Feed::files(fields.iter().map(some_of).collect()),
            _ => Feed::Pipe,
        },
        _ => Feed::Pipe,
    }
}

/// Whether a filter leaves out nothing, or only what it is told.
fn passes_on_all(name: &str, args: &[Field]) -> bool {
    let inverts = |option: &str| {
        let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        option == "--invert-match" || letters.is_some_and(|letters| letters.contains('v'))
    };
    // `awk '{print $9}'`: one column of every line.
    let is_column = |arg: &Field| arg.text.trim_start().starts_with('{') && !arg.text.contains("if");
    matches!(name, "cut" | "shuf" | "sort" | "tac" | "uniq")
        || (matches!(name, "awk" | "gawk" | "mawk" | "nawk") && args.iter().any(is_column))
        || (matches!(name, "egrep" | "fgrep" | "grep" | "rg") && args.iter().any(|arg| inverts(&arg.text)))
}

/// What stands for the numbers of all processes: what the kernel lists there.
const EVERY_PROCESS: &str = "/proc/*";

/// Whether a field stands for the numbers of all processes.
pub(crate) fn is_every_process(field: &Field) -> bool {
    field.listed && field.text == EVERY_PROCESS
}

/// Whether `ps` or `pgrep` lists all processes of a user or of the machine.
fn lists_every_process(name: &str, args: &[Field]) -> bool {
    if name == "ps" {
        let narrows = |option: &str| match option.strip_prefix('-') {
            Some(long) if long.starts_with('-') => {
                ["-pid", "-ppid", "-sid", "-tty"].iter().any(|one| long.starts_with(one))
            }
            // What stands behind `o` says which columns there are.
            Some(letters) => {
                letters.split(['o', 'O']).next().is_some_and(|letters| letters.contains(['C', 'p', 'q', 's', 'g', 't']))
            }
            None => false,
        };
        return !args.iter().any(|arg| narrows(&arg.text));
    }
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.text.as_str() {
            "-P" | "-g" | "-s" | "-t" | "-F" | "--parent" | "--pidfile" => return false,
            "-u" | "-U" | "-d" | "-G" => drop(rest.next()),
            option if option.starts_with('-') && option.len() > 1 => {}
            pattern => return !arg.open() && pattern.chars().all(|next| ".*^$+?".contains(next)),
        }
    }
    true
}

/// Whether a filter leaves out the first line, or nothing: `tail -n +2`, `sed 1d`, `awk 'NR>1 {print $2}'`, `tr`.
fn keeps_all_but_first(name: &str, args: &[Field]) -> bool {
    let keeps = |arg: &Field| {
        let text = arg.text.replace(' ', "");
        matches!(text.trim_start_matches("-n"), "+2" | "1d") || text.starts_with("NR>1{") || text.starts_with("NR!=1{")
    };
    name == "tr" || args.iter().any(keeps)
}

/// Whether an option makes a search list files.
fn is_listing(option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    option.starts_with("--files") || letters.is_some_and(|letters| letters.contains(['l', 'L']))
}

fn printed(name: &str, args: &[Field]) -> Feed {
    let words: Option<Vec<&str>> = args.iter().map(Field::known).collect();
    let Some(words) = words else { return Feed::Text(None) };
    let text = match (name, words.as_slice()) {
        ("printf", [format, rest @ ..]) => formatted(format, rest),
        ("echo", ["-n", rest @ ..] | rest) if !rest.first().is_some_and(|first| first.starts_with('-')) => {
            Some(rest.join(" ")).filter(|text| !has_escape(text))
        }
        _ => None,
    };
    Feed::Text(text.map(Arc::from))
}

/// Whether some version of `echo` puts something else for part of this text.
fn has_escape(text: &str) -> bool {
    let means = |next: char| next.is_ascii_digit() || "\\abceEfnrtuUvx".contains(next);
    text.split('\\').skip(1).any(|behind| behind.is_empty() || behind.starts_with(means))
}

/// Some of what a field names.
fn some_of(field: &Field) -> Field {
    if field.open() { field.clone() } else { found_below(field, &Selection::Some) }
}

/// The files that `ls` lists: those that it is given, or what is in them, and then by their bare names.
fn listed(args: &[Field]) -> Fields {
    let here = Field::literal(".");
    let mut named = args.iter().filter(|arg| !arg.text.starts_with('-')).peekable();
    // What it lists of another folder has a bare name, too, but is not what is hidden here.
    let lists_here = named.peek().is_none_or(|first| first.text == ".");
    let shows_hidden = args.iter().any(|arg| is_showing_hidden(&arg.text)) && lists_here;
    let bare = found_below(&here, &Selection::All);
    let hidden = shows_hidden.then(|| hidden_below(&here));
    let listed = named.map(|arg| if arg.glob { arg.clone() } else { found_below(arg, &Selection::All) });
    std::iter::once(bare).chain(hidden).chain(listed).collect()
}

/// Whether an option makes `ls` list hidden names.
fn is_showing_hidden(option: &str) -> bool {
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    option.starts_with("--al") || letters.is_some_and(|letters| letters.contains(['a', 'A', 'f']))
}

/// What a search finds below a root: what is hidden as well, if it finds everything.
fn with_hidden(root: &Field, selection: &Selection) -> impl Iterator<Item = Field> {
    let hidden = (*selection == Selection::All && !root.open()).then(|| hidden_below(root));
    std::iter::once(found_below(root, selection)).chain(hidden)
}

/// What is hidden in a folder.
fn hidden_below(root: &Field) -> Field {
    Field { text: format!("{}/.*", root.text.trim_end_matches('/')), glob: true, listed: true, ..Field::default() }
}
