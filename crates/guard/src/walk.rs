//! Turns a script into its actions: programs that it may run, files that it redirects to, and unknown parts.
//!
//! Both guards judge the same deeds. Commands that run other commands (`sudo`, `xargs`, `bash -c`, …) are taken apart
//! here, so that a guard sees the program that does the work.

mod carrier;
mod carry;
mod feed;
mod find;
mod guess;
mod loading;
mod scene;
mod shells;
mod streams;
mod written;
mod xargs;

use std::{
    collections::{HashMap, HashSet},
    hash::Hasher,
    path::PathBuf,
    rc::Rc,
    sync::{Arc, OnceLock},
};

use crate::{
    field::{Expander, Field, OuterScript, ShellPlace, Tail, Variables},
    names::{QuickHasher, QuickMap},
    program::Program,
    text,
    writes::{Touch, touches},
};
use ollm_shell::{List, ParseError, parse};

use feed::Feed;
pub(crate) use feed::{is_every_process, lists_files};
pub(crate) use find::{FindChange, Selection, find_roots, finds_everything, found_below, selections};
use scene::Scene;
use written::WrittenText;

/// One thing a script does.
#[derive(Debug)]
pub(crate) enum ScriptAction {
    /// A program runs.
    Run(Run),
    /// A redirection opens a file for writing, perhaps behind what is in it.
    Write { target: Field, place: ShellPlace, appends: bool },
    /// A redirection opens a file for reading.
    Read { file: Field, place: ShellPlace },
    /// A function that multiplies itself.
    Bomb { name: String },
    /// What happens here cannot be known: why.
    Unclear(String),
    /// It happens if a program runs what it is given, and nothing is known that says it does not. That something is not
    /// clear then counts only in a command that names what is protected.
    Guess(Box<ScriptAction>),
}

/// A program and what it gets.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its base name in lower case.
    pub(crate) name: String,
    /// What is known of it.
    pub(crate) program: Program,
    /// Its arguments.
    pub(crate) args: Tail,
    /// Where it runs.
    pub(crate) place: ShellPlace,
    /// Text fed to it by the script itself.
    pub(crate) input: Option<Arc<str>>,
    /// What it changes, once a guard has asked.
    touches: OnceLock<Vec<Touch>>,
}

impl Run {
    /// Whether it is the same program with the same words at the same place.
    fn is_same(&self, other: &Run) -> bool {
        (&self.name, &self.place, &self.input) == (&other.name, &other.place, &other.input) && *self.args == *other.args
    }

    fn hash(&self) -> u64 {
        let mut hasher = QuickHasher::default();
        hasher.write(self.name.as_bytes());
        self.args.iter().for_each(|arg| hasher.write(arg.text.as_bytes()));
        hasher.finish()
    }

    /// What it changes.
    pub(crate) fn touches(&self) -> &[Touch] {
        self.touches.get_or_init(|| touches(self))
    }

    /// The command as people would write it.
    pub(crate) fn shown(&self) -> String {
        let mut shown = self.name.clone();
        for arg in self.args.iter() {
            shown.push(' ');
            shown.push_str(&arg.shown());
        }
        text::excerpt(&shown)
    }
}

/// So many commands and arguments may be looked at in a script of any length.
const LEAST_WORK: usize = 2048;

/// And so many for each byte of it: a few times as many as ordinary scripts need.
const WORK_PER_BYTE: usize = 2;

/// So much text within a script of any length is read as text of its own.
const LEAST_TEXT: usize = 4 << 10;

/// And so many times its length.
const MOST_READINGS: usize = 3;

/// Everything a script does, were it run at this place.
pub(crate) fn walk(script: &str, place: ShellPlace) -> Vec<ScriptAction> {
    let mut walker = Walker::new(place, script.len());
    walker.script(script, 0);
    walker.deeds
}

/// Everything one command given as words does.
pub(crate) fn walk_words(words: Vec<String>, place: ShellPlace) -> Vec<ScriptAction> {
    let mut walker = Walker::new(place, words.iter().map(String::len).sum());
    walker.run(words.into_iter().map(Field::literal).collect(), &Feed::Nothing, 0);
    walker.deeds
}

struct Walker {
    deeds: Vec<ScriptAction>,
    /// Where the programs that run stand among the deeds, by their hash.
    runs: QuickMap<u64, usize>,
    place: ShellPlace,
    /// What the command being taken apart finds on its standard input; a script inside it finds the same.
    input: Feed,
    /// What `exec` put on the standard input of everything behind it.
    stdin: Option<Feed>,
    /// What is set around the script that comes next.
    outer: OuterScript,
    /// Names that stand for other commands: aliases, `hash -p`.
    aliases: HashMap<String, Vec<String>>,
    /// Functions that run what they are given.
    passing: HashSet<String>,
    /// What the script has written into files, by their names and then by their paths.
    written: HashMap<String, HashMap<PathBuf, WrittenText>>,
    /// How many guesses it takes that what comes next runs at all.
    guesses: usize,
    /// Whether the next command is part of a longer one whose words were all guessed at.
    covered: bool,
    /// How many words the commands had that were looked at already and end as the next one does.
    tails: Vec<usize>,
    /// The texts on standard inputs that were guessed at, each by its address, and where that was last.
    guessed_inputs: HashMap<*const u8, (Arc<str>, ShellPlace)>,
    /// How much text may still be read.
    text_left: usize,
    /// How many commands and arguments may still be looked at.
    work: usize,
}

impl Walker {
    fn new(place: ShellPlace, length: usize) -> Walker {
        Walker {
            deeds: Vec::with_capacity(8 + length / 128),
            runs: QuickMap::default(),
            place,
            input: Feed::Nothing,
            stdin: None,
            outer: OuterScript::default(),
            aliases: HashMap::new(),
            passing: HashSet::new(),
            written: HashMap::new(),
            guesses: 0,
            covered: false,
            tails: Vec::new(),
            guessed_inputs: HashMap::new(),
            text_left: LEAST_TEXT + MOST_READINGS * length,
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
        self.deeds.push(ScriptAction::Unclear(reason.into()));
    }

    /// A variable is set for a program, perhaps to something that it loads.
    fn set_for_program(&mut self, name: &str, value: Option<&str>) {
        if loading::loads_code(name, value) {
            let value = text::excerpt(value.unwrap_or("…"));
            self.unclear(format!("a variable has programs load unknown code: {name}={value}"));
        }
    }

    fn push(&mut self, deed: ScriptAction) {
        self.deeds.push(if self.guesses > 0 { ScriptAction::Guess(Box::new(deed)) } else { deed });
    }

    /// A program that runs, once: guards need not judge again what they have judged.
    fn push_run(&mut self, run: Run) {
        let key = run.hash() ^ u64::from(self.guesses > 0);
        let is_known = |deed: &ScriptAction| match deed {
            ScriptAction::Run(known) => self.guesses == 0 && known.is_same(&run),
            ScriptAction::Guess(known) => {
                self.guesses > 0 && matches!(&**known, ScriptAction::Run(known) if known.is_same(&run))
            }
            _ => false,
        };
        let at = self.runs.entry(key).or_insert(self.deeds.len());
        if !self.deeds.get(*at).is_some_and(is_known) {
            self.push(ScriptAction::Run(run));
        }
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

    /// Whether so much more text may be read; the first time it may not, that is a finding.
    fn reads(&mut self, text: &str) -> bool {
        let before = self.text_left;
        self.text_left = before.saturating_sub(text.len() + 1);
        if self.text_left == 0 && before > 0 {
            self.unknown("too many scripts within scripts");
        }
        self.text_left > 0
    }

    /// Walks a script that stands so many levels deep in another.
    fn script(&mut self, script: &str, depth: usize) {
        if !self.reads(script) {
            return;
        }
        match parse(script, depth) {
            Ok(list) => self.walk_list(&list, depth),
            Err(ParseError::TooDeep { .. }) => {
                self.push(ScriptAction::Unclear("the command nests too deep to be looked through".to_owned()));
            }
            Err(ParseError::Unclosed { .. } | ParseError::Syntax { .. }) => {
                // A shell runs what it can read of it before it stops.
                let reason = format!("the command could not be read as shell text: {}", text::excerpt(script));
                if guess::has_harm(script) { self.unknown(reason) } else { self.push(ScriptAction::Unclear(reason)) }
            }
        }
    }

    /// Walks a script that was read.
    fn walk_list(&mut self, list: &List, depth: usize) {
        let variables = Variables::of_list(list);
        let feed = self.input.clone();
        let outer = self.outer.clone();
        let covered = std::mem::take(&mut self.covered);
        // What this script sets, the scripts inside it may find.
        let expander = Expander::new(&variables, &self.place, &outer, &[]);
        let values: Vec<_> = variables.names().map(|name| (name.to_owned(), expander.texts(name))).collect();
        if !values.is_empty() {
            Rc::make_mut(&mut self.outer.names).extend(values);
        }
        self.outer.anything |= variables.anything || variables.sourced;
        self.outer.separators_change |= variables.separators_change;
        self.outer.positional = None;
        Scene { walker: self, variables: &variables, outer: &outer, writes: Feed::Pipe, function: None }
            .list(list, &feed, depth);
        (self.outer, self.covered) = (outer, covered);
    }
}

#[cfg(test)]
mod cost;

#[cfg(all(test, unix))]
mod tests;
