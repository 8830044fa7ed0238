//! From a script to its deeds: every program it may run, every file it redirects to, and what cannot be known.
//!
//! Both guards judge the same deeds. Commands that run other commands (`sudo`, `xargs`, `bash -c`, …) are taken apart
//! here, so that a guard sees the program that does the work.

mod carry;
mod feed;
mod find;
mod guess;
mod shells;

use std::{collections::HashMap, rc::Rc};

use crate::{
    field::{Expander, Field, Fields, Outer, Place, Variables, literal},
    path, text,
};
use ollm_shell::{Body, Command, Joint, List, Piece, Redirect, Unreadable, Word, bare, parse};

use feed::Feed;
pub(crate) use find::{Found, find_roots, found_below, is_filtered};

/// One thing a script does.
#[derive(Debug)]
pub(crate) enum Deed {
    /// A program runs.
    Run(Run),
    /// A redirection opens a file for writing.
    Write { target: Field, place: Place },
    /// A function that multiplies itself.
    Bomb { name: String },
    /// What happens here cannot be known: why.
    Unclear(String),
    /// It happens if a program runs what it is given, and nothing is known that says it does not.
    Guess(Box<Deed>),
}

/// A program and what it gets.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its base name in lower case.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) args: Fields,
    /// Where it runs.
    pub(crate) place: Place,
    /// Text fed to it by the script itself.
    pub(crate) input: Option<String>,
}

impl Run {
    /// The command as people would write it.
    pub(crate) fn shown(&self) -> String {
        let mut shown = self.name.clone();
        for arg in &self.args {
            shown.push(' ');
            shown.push_str(&arg.shown());
        }
        text::excerpt(&shown)
    }
}

/// So many commands and arguments may be looked at, whatever the length of the script.
const LEAST_WORK: usize = 4096;

/// And so many for each byte of it: a few times as many as there can be words.
const WORK_PER_BYTE: usize = 4;

/// Past so many scripts within scripts too.
const MOST_SCRIPTS: usize = 256;

/// How the names of variables end that hold a command.
const RUN_VARIABLES: &[&str] = &["COMMAND", "EDITOR", "PAGER", "VISUAL", "BROWSER", "ASKPASS", "SHELL"];

/// How much text of scripts within scripts is read.
const MOST_TEXT: usize = 2 << 20;

/// Everything a script does, were it run at this place.
pub(crate) fn walk(script: &str, place: Place) -> Vec<Deed> {
    let mut walker = Walker::new(place, script.len());
    walker.script(script, 0);
    walker.deeds
}

/// Everything one command given as words does.
pub(crate) fn walk_words(words: Vec<String>, place: Place) -> Vec<Deed> {
    let mut walker = Walker::new(place, words.iter().map(String::len).sum());
    walker.run(words.into_iter().map(Field::literal).collect(), &Feed::Nothing, 0);
    walker.deeds
}

struct Walker {
    deeds: Vec<Deed>,
    place: Place,
    scripts: usize,
    /// What the command being taken apart finds on its standard input; a script inside it finds the same.
    input: Feed,
    /// What `exec` put on the standard input of everything behind it.
    stdin: Option<Feed>,
    /// What is set around the script that comes next.
    outer: Outer,
    /// Names that stand for other commands: aliases, `hash -p`.
    aliases: HashMap<String, Vec<String>>,
    /// How many guesses it takes that what comes next runs at all.
    guesses: usize,
    /// How much text may still be read.
    budget: usize,
    /// How many commands and arguments may still be looked at.
    work: usize,
}

impl Walker {
    fn new(place: Place, length: usize) -> Walker {
        Walker {
            deeds: Vec::new(),
            place,
            scripts: 0,
            input: Feed::Nothing,
            stdin: None,
            outer: Outer::default(),
            aliases: HashMap::new(),
            guesses: 0,
            budget: MOST_TEXT,
            work: LEAST_WORK + WORK_PER_BYTE * length,
        }
    }

    /// Not known; what perhaps no shell ever reads need not be.
    fn unclear(&mut self, reason: impl Into<String>) {
        if self.guesses == 0 {
            self.unknown(reason);
        }
    }

    /// Not known though it is clear that a shell reads it.
    fn unknown(&mut self, reason: impl Into<String>) {
        self.deeds.push(Deed::Unclear(reason.into()));
    }

    fn push(&mut self, deed: Deed) {
        self.deeds.push(if self.guesses > 0 { Deed::Guess(Box::new(deed)) } else { deed });
    }

    /// Whether so much more work is still within bounds; the first time it is not, that is a finding.
    fn affords(&mut self, work: usize) -> bool {
        let before = self.work;
        self.work = before.saturating_sub(work);
        if self.work == 0 && before > 0 {
            self.unknown("the script does too much to be looked through");
        }
        self.work > 0
    }

    /// Walks a script that stands so many levels deep in another.
    fn script(&mut self, script: &str, depth: usize) {
        self.scripts += 1;
        // The outermost script is always read; what it contains may not multiply.
        let affordable = self.scripts == 1 || script.len() <= self.budget;
        self.budget = self.budget.saturating_sub(script.len());
        if self.scripts > MOST_SCRIPTS || !affordable {
            self.unknown("too many scripts within scripts");
            return;
        }
        match parse(script, depth) {
            Ok(list) => {
                let variables = Variables::of_list(&list);
                let feed = self.input.clone();
                let outer = self.outer.clone();
                // What this script sets, the scripts inside it may find.
                let expander = Expander { variables: &variables, place: &self.place, outer: &outer, fed: &[] };
                let values: Vec<_> = variables.names().map(|name| (name.to_owned(), expander.texts(name))).collect();
                if !values.is_empty() {
                    Rc::make_mut(&mut self.outer.names).extend(values);
                }
                self.outer.anything |= variables.anything || variables.sourced;
                self.outer.separators_change |= variables.separators_change;
                self.outer.positional = None;
                Scene { walker: self, variables: &variables, outer: &outer }.list(&list, &feed, depth);
                self.outer = outer;
            }
            Err(Unreadable::TooDeep { .. }) => self.unclear("the command nests too deep to be looked through"),
            Err(Unreadable::Unclosed { .. } | Unreadable::Syntax { .. }) => {
                self.unclear(format!("the command could not be read as shell text: {}", text::excerpt(script)));
            }
        }
    }
}

/// One script being walked.
struct Scene<'w, 'a> {
    walker: &'w mut Walker,
    variables: &'a Variables<'a>,
    outer: &'a Outer,
}

impl<'a> Scene<'_, 'a> {
    fn list(&mut self, list: &'a List, feed: &Feed, depth: usize) {
        let mut seen = self.walker.place.clone();
        for step in list {
            self.pipeline(&step.pipeline, feed, depth);
            seen.add(&self.walker.place);
            // Only `&&` promises that a change of folder has worked.
            if step.joint != Joint::And && self.walker.place != seen {
                self.walker.place = seen.clone();
            }
        }
        self.walker.place = seen;
    }

    fn pipeline(&mut self, pipeline: &'a [Command], feed: &Feed, depth: usize) {
        if let [command] = pipeline {
            self.command(command, feed, depth);
            return;
        }
        let place = self.walker.place.clone();
        let mut feed = feed.clone();
        for (index, command) in pipeline.iter().enumerate() {
            self.command(command, &feed, depth);
            self.walker.place = place.clone();
            if index + 1 < pipeline.len() {
                let nothing = Feed::Nothing;
                feed = self.expander(&nothing).output_of(command, feed, 0);
            }
        }
    }

    fn command(&mut self, command: &'a Command, feed: &Feed, depth: usize) {
        if !self.walker.affords(1) {
            return;
        }
        let mut feed = match (feed, &self.walker.stdin) {
            (Feed::Nothing, Some(stdin)) => stdin.clone(),
            _ => feed.clone(),
        };
        for redirect in &command.redirects {
            self.redirect(redirect, &mut feed, depth);
        }
        match &command.body {
            Body::Simple { assigns, words } => {
                for assign in assigns {
                    let values = assign.value.iter().chain(&assign.others);
                    if self.variables.evaluates {
                        values.clone().for_each(|word| self.evaluated(word, depth));
                    }
                    self.substitutions(values, depth);
                    // Programs run what some variables hold: an editor, a pager, a prompt.
                    let runs = !words.is_empty() || RUN_VARIABLES.iter().any(|end| assign.name.ends_with(end));
                    if let Some(text) = assign.value.as_ref().filter(|_| runs).and_then(|word| literal(word)) {
                        self.walker.guess_value(&text, depth);
                    }
                }
                self.substitutions(words, depth);
                if self.variables.evaluates {
                    for word in words {
                        self.subscripts(word, depth);
                    }
                }
                if let [word] = words.as_slice()
                    && literal(word).as_deref() == Some("exec")
                {
                    self.walker.stdin = Some(feed.clone());
                }
                let ways = self.expander(&feed).words(words);
                let place = self.walker.place.clone();
                let mut reached: Option<Place> = None;
                for fields in ways {
                    self.walker.place = place.clone();
                    self.walker.run(fields, &feed, depth + 1);
                    match &mut reached {
                        None => reached = Some(self.walker.place.clone()),
                        Some(reached) => reached.add(&self.walker.place),
                    }
                }
                self.walker.place = reached.unwrap_or(place);
            }
            Body::Branches { words, lists, .. } => {
                self.substitutions(words, depth);
                if lists.is_empty() {
                    for word in words {
                        self.subscripts(word, depth);
                    }
                }
                let mut seen = self.walker.place.clone();
                for list in lists {
                    self.list(list, &feed, depth + 1);
                    seen.add(&self.walker.place);
                }
                self.walker.place = seen;
            }
            Body::Subshell(list) => {
                let place = self.walker.place.clone();
                self.list(list, &feed, depth + 1);
                self.walker.place = place;
            }
            Body::For { words, list, .. } => {
                self.substitutions(words.iter().flatten(), depth);
                // What the body does to the folder holds for its next round.
                let place = self.walker.place.clone();
                self.list(list, &feed, depth + 1);
                if self.walker.place != place {
                    self.walker.place.lost = true;
                }
            }
            Body::Function { name, body } => {
                if multiplies(name, body) {
                    self.walker.push(Deed::Bomb { name: name.clone() });
                }
                // Whoever calls it may pipe something into it.
                self.command(body, &Feed::Pipe, depth + 1);
            }
        }
    }

    fn expander<'s>(&'s self, feed: &'s Feed) -> Expander<'s>
    where
        'a: 's,
    {
        Expander { variables: self.variables, place: &self.walker.place, outer: self.outer, fed: feed.fields() }
    }

    /// Text that a shell may evaluate though it is quoted: subscripts, arithmetic, prompts.
    fn evaluated(&mut self, word: &[Piece], depth: usize) {
        for piece in word {
            if let Piece::Quoted(text) | Piece::Plain(text) = piece {
                self.walker.substitutions_in(text, depth);
            }
        }
    }

    /// Quoted subscripts: `[[ -v 'a[$(…)]' ]]` evaluates them.
    fn subscripts(&mut self, word: &[Piece], depth: usize) {
        let subscript = |piece: &Piece| matches!(piece, Piece::Quoted(text) | Piece::Plain(text) if text.contains('['));
        if word.iter().any(subscript) {
            self.evaluated(word, depth);
        }
    }

    fn redirect(&mut self, redirect: &'a Redirect, feed: &mut Feed, depth: usize) {
        match redirect {
            Redirect::Write(word)
            | Redirect::Read { file: word, writes: true, .. }
            | Redirect::Duplicate { target: word, writes: true, .. } => {
                self.substitutions([word], depth);
                for fields in self.expander(&feed.clone()).word(word, 0) {
                    for target in fields {
                        let place = self.walker.place.clone();
                        self.walker.push(Deed::Write { target, place });
                    }
                }
            }
            Redirect::Read { file, input: true, .. } => {
                self.substitutions([file], depth);
                match bare(file) {
                    // The same input by another name.
                    Some(file) if file.starts_with("/dev/") || file.starts_with("/proc/") => {}
                    Some(_) => *feed = Feed::Nothing,
                    None => *feed = Feed::Pipe,
                }
            }
            Redirect::Text { input, .. } | Redirect::Document { input, .. } => {
                let Some(word) = redirect.word() else { return };
                self.substitutions([word], depth);
                if *input {
                    let text = self.expander(feed).fed_text(word);
                    *feed = Feed::Text(text);
                }
            }
            Redirect::Duplicate { target: word, input, .. } => {
                self.substitutions([word], depth);
                if *input && !matches!(bare(word), Some("0" | "-")) {
                    *feed = Feed::Pipe;
                }
            }
            Redirect::Read { file: word, .. } => self.substitutions([word], depth),
        }
    }

    /// Walks every `$(…)`, `<(…)` and the like inside these words.
    fn substitutions(&mut self, words: impl IntoIterator<Item = &'a Word>, depth: usize) {
        for word in words {
            self.pieces(word, depth + 1);
        }
    }

    fn pieces(&mut self, word: &'a Word, depth: usize) {
        for piece in word {
            match piece {
                Piece::Output { list, .. } | Piece::Process(list) => {
                    let place = self.walker.place.clone();
                    self.list(list, &Feed::Nothing, depth + 1);
                    self.walker.place = place;
                }
                Piece::Parameter { word: inner, .. } | Piece::Arithmetic(inner) | Piece::Opaque(inner) => {
                    self.pieces(inner, depth + 1);
                }
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => {}
            }
        }
    }
}

/// Whether a function pipes itself into itself or calls itself in the background.
fn multiplies(name: &str, body: &Command) -> bool {
    lists(&body.body).into_iter().flatten().any(|step| {
        let calls = step.pipeline.iter().filter(|command| calls(name, command)).count();
        calls > 1
            || (calls == 1 && step.joint == Joint::Background)
            || step.pipeline.iter().any(|command| multiplies(name, command))
    })
}

fn calls(name: &str, command: &Command) -> bool {
    match &command.body {
        Body::Simple { words, .. } => words.first().and_then(|word| bare(word)) == Some(name),
        other => lists(other).into_iter().flatten().flat_map(|step| &step.pipeline).any(|inner| calls(name, inner)),
    }
}

fn lists(body: &Body) -> Vec<&List> {
    match body {
        Body::Simple { .. } | Body::Function { .. } => Vec::new(),
        Body::Branches { lists, .. } => lists.iter().collect(),
        Body::Subshell(list) | Body::For { list, .. } => vec![list],
    }
}

/// How many folders a command may run in before that counts as unknown.
const MOST_FOLDERS: usize = 8;

impl Place {
    /// May also be where the other may be.
    fn add(&mut self, other: &Place) {
        self.lost |= other.lost;
        for folder in &other.folders {
            if !self.folders.contains(folder) {
                self.folders.push(folder.clone());
            }
        }
        if self.folders.len() > MOST_FOLDERS {
            self.lost = true;
            self.folders.truncate(MOST_FOLDERS);
        }
    }

    /// May also be in this folder.
    fn also(&mut self, folder: &str) {
        self.add(&Place { folders: vec![path::join(std::path::Path::new("/"), folder)], ..Place::default() });
    }

    /// The place after a change to this folder has worked.
    fn change(&mut self, target: &Field) {
        let Some(target) = target.known() else {
            self.lost = true;
            return;
        };
        let absolute = target.starts_with('/');
        self.lost &= !absolute;
        let mut folders: Vec<_> = self.folders.iter().map(|folder| path::join(folder, target)).collect();
        folders.dedup();
        self.folders = folders;
    }
}

#[cfg(all(test, unix))]
mod tests;
