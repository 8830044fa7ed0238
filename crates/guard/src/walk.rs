//! From a script to its deeds: every program it may run, every file it redirects to, and what cannot be known.
//!
//! Both guards judge the same deeds. Commands that run other commands (`sudo`, `xargs`, `bash -c`, …) are taken apart
//! here, so that a guard sees the program that does the work.

mod carry;

use crate::{
    field::{Expander, Field, Fields, Place, Variables},
    path, text,
};
use ollm_shell::{Body, Command, Joint, List, Piece, Redirect, Unreadable, Word, bare, parse};

pub(crate) use carry::{find_roots, found_below, is_filtered};

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

/// Past so many commands and arguments a person looks at the script.
const MOST_WORK: usize = 100_000;

/// Past so many scripts within scripts too.
const MOST_SCRIPTS: usize = 256;

/// How much text of scripts within scripts is read.
const MOST_TEXT: usize = 2 << 20;

/// Everything a script does, were it run at this place.
pub(crate) fn walk(script: &str, place: Place) -> Vec<Deed> {
    let mut walker = Walker::new(place);
    walker.script(script, 0);
    walker.deeds
}

/// Everything one command given as words does.
pub(crate) fn walk_words(words: Vec<String>, place: Place) -> Vec<Deed> {
    let mut walker = Walker::new(place);
    walker.run(words.into_iter().map(Field::literal).collect(), &Feed::Nothing, 0);
    walker.deeds
}

/// What a command finds on its standard input.
#[derive(Clone)]
enum Feed {
    /// What the whole script got, which says nothing.
    Nothing,
    /// The output of another command.
    Pipe,
    /// Text in the script; nothing if parts of it cannot be known.
    Text(Option<String>),
}

struct Walker {
    deeds: Vec<Deed>,
    place: Place,
    scripts: usize,
    /// What the command being taken apart finds on its standard input; a script inside it finds the same.
    input: Feed,
    /// How much text may still be read.
    budget: usize,
    /// How many commands and arguments may still be looked at.
    work: usize,
}

impl Walker {
    fn new(place: Place) -> Walker {
        Walker { deeds: Vec::new(), place, scripts: 0, input: Feed::Nothing, budget: MOST_TEXT, work: MOST_WORK }
    }

    fn unclear(&mut self, reason: impl Into<String>) {
        self.push(Deed::Unclear(reason.into()));
    }

    fn push(&mut self, deed: Deed) {
        self.deeds.push(deed);
    }

    /// Whether so much more work is still within bounds; the first time it is not, that is a finding.
    fn affords(&mut self, work: usize) -> bool {
        let before = self.work;
        self.work = before.saturating_sub(work);
        if self.work == 0 && before > 0 {
            self.unclear("the script does too much to be looked through");
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
            self.unclear("too many scripts within scripts");
            return;
        }
        match parse(script, depth) {
            Ok(list) => {
                let variables = Variables::of_list(&list);
                let feed = self.input.clone();
                Scene { walker: self, variables: &variables }.list(&list, &feed, depth);
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
        for (index, command) in pipeline.iter().enumerate() {
            let piped = if index == 0 { feed } else { &Feed::Pipe };
            self.command(command, piped, depth);
            self.walker.place = place.clone();
        }
    }

    fn command(&mut self, command: &'a Command, feed: &Feed, depth: usize) {
        if !self.walker.affords(1) {
            return;
        }
        let mut feed = feed.clone();
        for redirect in &command.redirects {
            self.redirect(redirect, &mut feed, depth);
        }
        match &command.body {
            Body::Simple { assigns, words } => {
                for assign in assigns {
                    self.substitutions(assign.value.iter().chain(&assign.others), depth);
                }
                self.substitutions(words, depth);
                let ways = self.expander().words(words);
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

    fn expander(&self) -> Expander<'_> {
        Expander { variables: self.variables, place: &self.walker.place }
    }

    fn redirect(&mut self, redirect: &'a Redirect, feed: &mut Feed, depth: usize) {
        match redirect {
            Redirect::Write(word)
            | Redirect::Read { file: word, writes: true, .. }
            | Redirect::Duplicate { target: word, writes: true, .. } => {
                self.substitutions([word], depth);
                for fields in self.expander().word(word, 0) {
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
                    *feed = Feed::Text(literal(word));
                }
            }
            Redirect::Read { file: word, .. } | Redirect::Duplicate { target: word, .. } => {
                self.substitutions([word], depth);
            }
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

/// A word that is nothing but text.
fn literal(word: &Word) -> Option<String> {
    word.iter()
        .map(|piece| match piece {
            Piece::Plain(text) | Piece::Quoted(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
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
