//! One script being walked: its lists, pipelines, commands and redirections.

use std::sync::Arc;

use ollm_shell::{Assign, Body, Command, List, ListOperator, Piece, Redirect, Word, bare, program_variable};

use super::{
    Feed, ScriptAction, Walker,
    guess::{is_inert, is_inert_text, is_run_name, varies_inertly},
};
use crate::field::{Expander, Field, OuterScript, ShellPlace, Variables, literal};

/// One script being walked.
pub(super) struct Scene<'w, 'a> {
    pub(super) walker: &'w mut Walker,
    pub(super) variables: &'a Variables<'a>,
    pub(super) outer: &'a OuterScript,
    /// What the command writes that is walked, for a process substitution that reads it.
    pub(super) writes: Feed,
    /// The function whose body is walked.
    pub(super) function: Option<&'a str>,
}

impl<'a> Scene<'_, 'a> {
    pub(super) fn list(&mut self, list: &'a List, feed: &Feed, depth: usize) {
        let mut seen = self.walker.place.clone();
        for step in list {
            self.pipeline(&step.pipeline, feed, depth);
            seen.add(&self.walker.place);
            // Only `&&` promises that a change of folder has worked.
            if step.joint != ListOperator::And && self.walker.place != seen {
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
        let before = reads_output(command).then(|| {
            let writes = self.expander(&Feed::Nothing).output_of(command, feed.clone(), 0);
            std::mem::replace(&mut self.writes, writes)
        });
        for redirect in &command.redirects {
            self.redirect(redirect, &mut feed, depth);
        }
        self.body(command, &feed, depth);
        if let Some(before) = before {
            self.writes = before;
        }
    }

    fn body(&mut self, command: &'a Command, feed: &Feed, depth: usize) {
        match &command.body {
            Body::Simple { assigns, words } => self.simple(command, assigns, words, feed, depth),
            Body::Branches { words, lists, repeats } => {
                self.substitutions(words, depth);
                if lists.is_empty() {
                    for word in words {
                        self.subscripts(word, depth);
                    }
                }
                let place = self.walker.place.clone();
                let mut seen = place.clone();
                for list in lists {
                    self.list(list, feed, depth + 1);
                    seen.add(&self.walker.place);
                }
                if *repeats {
                    seen.repeat_since(&place);
                }
                self.walker.place = seen;
            }
            Body::Subshell(list) => {
                let place = self.walker.place.clone();
                self.list(list, feed, depth + 1);
                self.walker.place = place;
            }
            Body::For { words, list, .. } => {
                self.substitutions(words.iter().flatten(), depth);
                // What the body does to the folder holds for its next round.
                let place = self.walker.place.clone();
                self.list(list, feed, depth + 1);
                self.walker.place.repeat_since(&place);
            }
            Body::Function { name, body } => {
                if multiplies(name, body) {
                    self.walker.push(ScriptAction::Bomb { name: name.clone() });
                }
                let outside = self.function.replace(name);
                // Its caller may pipe something into it.
                self.command(body, &Feed::Pipe, depth + 1);
                self.function = outside;
            }
        }
    }

    /// A command that is assignments and words.
    fn simple(&mut self, command: &'a Command, assigns: &'a [Assign], words: &'a [Word], feed: &Feed, depth: usize) {
        for assign in assigns {
            let values = assign.value.iter().chain(&assign.others);
            if self.variables.evaluates {
                values.clone().for_each(|word| self.evaluated(word, depth));
            }
            self.substitutions(values, depth);
            // Programs run what some variables hold: an editor, a pager, a prompt.
            let text = assign.value.as_ref().and_then(|word| literal(word));
            if !words.is_empty() {
                self.walker.set_for_program(&assign.name, text.as_deref());
            }
            if let Some(text) = text.filter(|_| !words.is_empty() || is_run_name(&assign.name)) {
                self.walker.guess_value(&text, depth);
            }
        }
        self.substitutions(words, depth);
        let values = assigns.iter().filter_map(|assign| assign.value.as_ref());
        for list in values.chain(words).flat_map(|word| word.iter()).filter_map(process) {
            self.handed(words, list, depth);
        }
        if self.variables.evaluates {
            for word in words {
                if sets_prompt(word) {
                    self.evaluated(word, depth);
                } else {
                    self.subscripts(word, depth);
                }
            }
        }
        // What a function is given, its callers say.
        if let (Some(function), [word]) = (self.function, words)
            && is_all_given(word)
        {
            self.walker.passing.insert(function.to_lowercase());
            return;
        }
        if let [word] = words
            && literal(word).as_deref() == Some("exec")
        {
            self.walker.stdin = Some(feed.clone());
        }
        // It is there once the command has run.
        let (written, place) = (self.written_by(command, words, feed), self.walker.place.clone());
        self.kept_for_login(&written, words, depth);
        self.run_ways(words, feed, depth);
        self.walker.keep_written(&written, &place);
    }

    /// A command for all that its words may become.
    fn run_ways(&mut self, words: &'a [Word], feed: &Feed, depth: usize) {
        let plain = Expander::plain_fields(words);
        let rest = words.get(plain.len()..).unwrap_or_default();
        if rest.is_empty() {
            return self.walker.run(plain.into(), feed, depth + 1);
        }
        let varies = self.variables.names().next().is_some() || !self.outer.names.is_empty();
        let inertly = varies && self.walker.aliases.is_empty() && varies_inertly(words);
        let alike = inertly.then_some(is_inert_text as fn(&str) -> bool);
        let mut ways = self.expander(feed).words_behind(plain, rest, alike);
        if ways.len() == 1
            && let Some(fields) = ways.pop()
        {
            return self.walker.run(fields.into(), feed, depth + 1);
        }
        let place = self.walker.place.clone();
        let mut reached: Option<ShellPlace> = None;
        for (at, fields) in ways.into_iter().enumerate() {
            // The first stands for all that do no more than it does.
            if at > 0 && self.walker.aliases.is_empty() && is_inert(&fields) {
                continue;
            }
            self.walker.place = place.clone();
            self.walker.run(fields.into(), feed, depth + 1);
            match &mut reached {
                None => reached = Some(self.walker.place.clone()),
                Some(reached) => reached.add(&self.walker.place),
            }
        }
        self.walker.place = reached.unwrap_or(place);
    }

    pub(super) fn expander<'s>(&'s self, feed: &'s Feed) -> Expander<'s>
    where
        'a: 's,
    {
        Expander::new(self.variables, &self.walker.place, self.outer, feed.fields())
    }

    /// What a process substitution prints is a file to the program that gets its name, and many run their files.
    fn handed(&mut self, words: &'a [Word], list: &'a List, depth: usize) {
        let nothing = Feed::Nothing;
        let expander = self.expander(&nothing);
        let texts: Vec<Feed> =
            expander.printed_by(list, 0).filter(|feed| matches!(feed, Feed::Text(Some(_)))).collect();
        if texts.is_empty() {
            return;
        }
        let mut ways = expander.words(words);
        if ways.is_empty() {
            ways.push(Vec::new());
        }
        for fields in ways {
            let fields = fields.into();
            for text in &texts {
                self.walker.guess_file(&fields, text, depth + 1);
            }
        }
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
        let is_remote =
            |word: &Word| bare(word).is_some_and(|file| file.starts_with("/dev/tcp/") || file.starts_with("/dev/udp/"));
        if redirect.word().is_some_and(is_remote) {
            self.walker.unclear("it reads from another machine, or writes to one".to_owned());
        }
        match redirect {
            Redirect::Write { file: word, .. }
            | Redirect::Read { file: word, writes: true, .. }
            | Redirect::Duplicate { target: word, writes: true, .. } => {
                let appends = matches!(redirect, Redirect::Write { appends: true, .. });
                self.substitutions([word], depth);
                for target in self.files(word, feed) {
                    let place = self.walker.place.clone();
                    self.walker.push(ScriptAction::Write { target, place, appends });
                }
            }
            Redirect::Read { file, input: true, .. } => {
                self.substitutions([file], depth);
                for read in self.files(file, feed) {
                    let place = self.walker.place.clone();
                    self.walker.push(ScriptAction::Read { file: read, place });
                }
                let written = self.files(file, feed).iter().find_map(|file| self.walker.fed_from(file));
                match (written, bare(file)) {
                    (Some(written), _) => *feed = written,
                    // The same input by another name.
                    (None, Some(file)) if file.starts_with("/dev/") || file.starts_with("/proc/") => {}
                    (None, Some(_)) => *feed = Feed::Nothing,
                    (None, None) => *feed = self.printed_for(file),
                }
            }
            Redirect::Text { input, .. } | Redirect::Document { input, .. } => {
                let Some(word) = redirect.word() else { return };
                self.substitutions([word], depth);
                if *input {
                    let text = self.expander(feed).fed_text(word, 0);
                    *feed = Feed::Text(text.map(Arc::from));
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

    /// What a program reads that is fed by a process substitution: `< <(echo x)`.
    fn printed_for(&self, file: &'a Word) -> Feed {
        let [Piece::Process { list, prints: true, .. }] = file.pieces.as_slice() else { return Feed::Pipe };
        let nothing = Feed::Nothing;
        let expander = self.expander(&nothing);
        let mut printed = expander.printed_by(list, 0);
        match (printed.next(), printed.next()) {
            (Some(feed), None) => feed,
            _ => Feed::Pipe,
        }
    }

    /// The files that the word of a redirection may name.
    fn files(&self, word: &'a Word, feed: &Feed) -> Vec<Field> {
        self.expander(feed).word(word, 0).into_iter().flatten().collect()
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
                Piece::Output { list, .. } | Piece::Process { list, .. } => {
                    let feed = match piece {
                        Piece::Process { prints: false, .. } => self.writes.clone(),
                        _ => Feed::Nothing,
                    };
                    let place = self.walker.place.clone();
                    self.list(list, &feed, depth + 1);
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

/// Whether a word of `export` sets a variable that a shell expands by itself.
fn sets_prompt(word: &Word) -> bool {
    let name = match word.first() {
        Some(Piece::Plain(text) | Piece::Quoted(text)) => text.split_once('=').map(|(name, _)| name),
        _ => None,
    };
    name.and_then(program_variable).is_some_and(|variable| variable.holds.is_expanded())
}

/// Whether a word is `"$@"`.
fn is_all_given(word: &Word) -> bool {
    let mut pieces = word.iter().filter(|piece| !matches!(piece, Piece::Quoted(text) if text.is_empty()));
    let is_all = |piece: &Piece| matches!(piece, Piece::Parameter { name, operator: "", .. } if name == "@");
    pieces.next().is_some_and(is_all) && pieces.next().is_none()
}

/// Whether a process substitution reads what a command writes.
fn reads_output(command: &Command) -> bool {
    let words = match &command.body {
        Body::Simple { words, .. } => words.as_slice(),
        _ => &[],
    };
    let reads = |piece: &Piece| matches!(piece, Piece::Process { prints: false, .. });
    words.iter().chain(command.redirects.iter().filter_map(Redirect::word)).any(|word| word.iter().any(reads))
}

/// The commands of a process substitution.
fn process(piece: &Piece) -> Option<&List> {
    match piece {
        Piece::Process { list, .. } => Some(list),
        _ => None,
    }
}

/// Whether a function pipes itself into itself or calls itself in the background.
fn multiplies(name: &str, body: &Command) -> bool {
    lists(&body.body).into_iter().flatten().any(|step| {
        let calls = step.pipeline.iter().filter(|command| calls(name, command)).count();
        calls > 1
            || (calls == 1 && step.joint == ListOperator::Background)
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
