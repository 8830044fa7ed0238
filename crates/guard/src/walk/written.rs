//! Files that a script writes and then runs: what is in them is in the script.

use std::{path::Path, sync::Arc};

use ollm_protocol::protected::{From, Lock, PROTECTED};
use ollm_shell::{Command, Piece, Redirect, Shebang, Word, bare, is_shell};

use super::{Feed, Scene, ScriptAction, Walker, carry::show};
use crate::{
    field::{Field, Fields, ShellPlace, Tail, literal},
    path, program, text,
    writes::values,
};

/// Programs that take what they run from files in the working folder.
const TASKS: &[(&str, &[&str])] = &[
    ("bun", &["package.json"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("rake", &["Rakefile", "rakefile"]),
    ("yarn", &["package.json"]),
];

/// Programs that give a file another name, or make another one of it.
const COPIERS: &[&str] = &["cp", "gcp", "install", "ln", "gln", "mv", "gmv", "link", "rename"];

/// Programs that bring files from elsewhere. What a compiler makes is made of files that were there.
const FETCHERS: &[&str] = &["aria2c", "curl", "fetch", "http", "https", "wget", "xh"];

/// Options behind which they name the file that they write.
const OUTPUTS: &[&str] = &["-o", "-O", "--output", "--output-document"];

/// And those that name the folder in which it is.
const FOLDERS: &[&str] = &["-P", "-d", "--dir", "--directory-prefix", "--output-dir"];

/// What is in a file that the script has written.
#[derive(Clone, Debug)]
pub(super) enum WrittenText {
    Text(Arc<str>),
    /// What another program printed or fetched.
    Unknown,
}

impl WrittenText {
    fn text(self) -> Option<Arc<str>> {
        match self {
            WrittenText::Text(text) => Some(text),
            WrittenText::Unknown => None,
        }
    }
}

impl<'a> Scene<'_, 'a> {
    /// What a command writes into files: `cat > x.sh <<EOF`, `tee x.sh`, `echo … > x.sh`, `cp x.sh y.sh`.
    pub(super) fn written_by(&self, command: &'a Command, words: &'a [Word], feed: &Feed) -> Vec<(Field, WrittenText)> {
        let redirected = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Write { file, .. } => Some(file),
            _ => None,
        });
        let name = words.first().and_then(|word| bare(word)).map(path::base_name).unwrap_or_default();
        let copies = COPIERS.contains(&name.as_ref())
            && (!self.walker.written.is_empty() || matches!(feed, Feed::Text(Some(_))));
        let is_pipe = matches!(name.as_ref(), "mkfifo" | "mknod");
        let names = name == "dd" || is_pipe || FETCHERS.contains(&name.as_ref());
        let files: Vec<&Word> = redirected.chain(words.iter().skip(1).filter(|_| name == "tee")).collect();
        if files.is_empty() && !copies && !names {
            return Vec::new();
        }
        let nothing = Feed::Nothing;
        let expander = self.expander(&nothing);
        let mut kept = Vec::new();
        if !files.is_empty() {
            let text = match expander.output_of(command, feed.clone(), 0) {
                Feed::Text(Some(text)) if text.ends_with('\n') || ends_open(&name, words) => WrittenText::Text(text),
                Feed::Text(Some(text)) => WrittenText::Text([&*text, "\n"].concat().into()),
                _ => WrittenText::Unknown,
            };
            let files = files.into_iter().flat_map(|file| expander.word(file, 0)).flatten();
            kept.extend(files.map(|file| (file, text.clone())));
        }
        if copies || names {
            for fields in expander.words(words) {
                kept.extend(match (copies, is_pipe) {
                    (true, _) => self.walker.copied(&fields, feed),
                    // Later writes decide what is in it.
                    (_, true) => fields.into_iter().skip(1).map(|file| (file, WrittenText::Unknown)).collect(),
                    _ => outputs(&fields, feed),
                });
            }
        }
        kept.retain(|(file, _)| file.known().is_some());
        kept
    }

    /// What the next login runs counts as run, as far as it does harm; a person decides about unknown text.
    pub(super) fn kept_for_login(&mut self, written: &[(Field, WrittenText)], words: &'a [Word], depth: usize) {
        let place = self.walker.place.clone();
        let Some(home) = place.home.as_deref().filter(|_| !written.is_empty() && !place.elsewhere) else { return };
        let is_kept =
            |file: &Field| place.folders.iter().any(|folder| runs_at_login(&path::join(folder, &file.text), home));
        for (file, text) in written.iter().filter(|(file, _)| is_kept(file)) {
            let shown = text::excerpt(&file.shown());
            let text = match text {
                WrittenText::Text(text) => Some(Arc::clone(text)),
                WrittenText::Unknown => self.said(words),
            };
            let name = words.first().and_then(|word| bare(word)).map(path::base_name).unwrap_or_default();
            match text {
                Some(text) => {
                    self.walker.guesses += 1;
                    self.walker.push(ScriptAction::Unclear(format!("the next login runs what is written to {shown}")));
                    self.walker.script(&text, depth + 1);
                    self.walker.guesses -= 1;
                }
                None if program::prints_its_own_code(&name) => {}
                None => {
                    self.walker.unclear(format!("the next login runs {shown}, and what is written to it is not known"));
                }
            }
        }
    }

    /// What a command prints that only says its words, with a mark for what variables of the person hold.
    fn said(&self, words: &'a [Word]) -> Option<Arc<str>> {
        let name = words.first().and_then(|word| bare(word)).map(path::base_name)?;
        if !matches!(name.as_ref(), "echo" | "printf") || words.iter().any(|word| has_output(word)) {
            return None;
        }
        let nothing = Feed::Nothing;
        let ways = self.expander(&nothing).words(words);
        let said = |fields: Vec<Field>| fields.iter().skip(1).map(Field::shown).collect::<Vec<_>>().join(" ");
        Some(ways.into_iter().map(said).collect::<Vec<_>>().join("\n").into())
    }
}

/// The files that a program is told to write.
fn outputs(fields: &[Field], feed: &Feed) -> Vec<(Field, WrittenText)> {
    let input = match feed {
        Feed::Text(Some(text)) => WrittenText::Text(Arc::clone(text)),
        _ => WrittenText::Unknown,
    };
    let args = fields.get(1..).unwrap_or_default();
    let to =
        args.iter().filter_map(|arg| arg.text.strip_prefix("of=")).map(|file| (Field::literal(file), input.clone()));
    let mut files = values(args, OUTPUTS);
    // Without a name the last part of the address is one.
    let addresses = args.iter().filter_map(|arg| arg.text.split_once("://")).map(|(_, rest)| last_name(rest));
    let named = addresses.filter_map(|name| name.split(['?', '#']).next());
    files.extend(named.map(Field::literal));
    let folders = values(args, FOLDERS);
    let inside = |folder: &Field| {
        let folder = folder.text.trim_end_matches('/').to_owned();
        files.iter().map(move |file| Field::literal(format!("{folder}/{}", file.text)))
    };
    let inside: Fields = folders.iter().filter(|folder| !folder.open()).flat_map(inside).collect();
    let fetched = files.iter().chain(&inside).cloned().map(|file| (file, WrittenText::Unknown));
    to.chain(fetched).collect()
}

/// Whether what is printed ends in the middle of a line, so that what is added goes on there.
fn ends_open(program: &str, words: &[Word]) -> bool {
    let first = words.get(1).and_then(|word| literal(word)).unwrap_or_default();
    match program {
        "echo" => first.starts_with('-') && first.contains('n'),
        "printf" => !first.ends_with("\\n"),
        _ => false,
    }
}

/// The last part of a path.
fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether a file at home is one that the next login runs.
fn runs_at_login(path: &Path, home: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(home) else { return false };
    let rows = PROTECTED.iter().filter(|row| row.from == From::FileTools && row.lock == Lock::Locked);
    rows.flat_map(|row| row.home).any(|name| inside.starts_with(name))
}

/// Whether a word holds what another command prints.
fn has_output(word: &[Piece]) -> bool {
    word.iter().any(|piece| match piece {
        Piece::Output { .. } | Piece::Process { .. } => true,
        Piece::Parameter { word, .. } | Piece::Arithmetic(word) | Piece::Opaque(word) => has_output(word),
        Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => false,
    })
}

impl Walker {
    /// Keeps what a command has written in this place. What is written behind what is there already may run as well.
    pub(super) fn keep_written(&mut self, written: &[(Field, WrittenText)], place: &ShellPlace) {
        for (folder, (file, text)) in
            place.folders.iter().flat_map(|folder| written.iter().map(move |one| (folder, one)))
        {
            let path = path::join(folder, &file.text);
            let named = self.written.entry(last_name(&path.to_string_lossy()).to_owned()).or_default();
            let kept = named.entry(path).or_insert_with(|| text.clone());
            *kept = match (&*kept, text) {
                (WrittenText::Text(before), WrittenText::Text(text)) if before != text => {
                    WrittenText::Text([&**before, &**text].concat().into())
                }
                (WrittenText::Text(_), WrittenText::Text(_)) => continue,
                _ => WrittenText::Unknown,
            };
        }
    }

    /// The files that come of copies of what the script has written.
    fn copied(&self, fields: &[Field], feed: &Feed) -> Vec<(Field, WrittenText)> {
        let files: Vec<&Field> = fields.iter().skip(1).filter(|field| !field.text.starts_with('-')).collect();
        let Some((to, from)) = files.split_last() else { return Vec::new() };
        let mut copies = Vec::new();
        for file in from {
            let input = || match feed {
                Feed::Text(Some(text)) if file.text == "/dev/stdin" => Some(WrittenText::Text(Arc::clone(text))),
                _ => None,
            };
            let Some(text) = self.written_file(file).or_else(input) else { continue };
            let name = file.text.rsplit('/').next().unwrap_or_default();
            let inside = Field::literal(format!("{}/{name}", to.text.trim_end_matches('/')));
            copies.extend([((*to).clone(), text.clone()), (inside, text)]);
        }
        copies
    }

    /// What the script has written into a file.
    fn written_file(&self, file: &Field) -> Option<WrittenText> {
        file.known().and_then(|file| self.written_at(file))
    }

    /// The same by the text that names it.
    fn written_at(&self, file: &str) -> Option<WrittenText> {
        if self.written.is_empty() {
            return None;
        }
        match last_name(file) {
            // Which file it is depends on the folder.
            "" | "." | ".." => self.place.folders.iter().find_map(|folder| {
                let path = path::join(folder, file);
                self.written.get(last_name(&path.to_string_lossy()))?.get(&path).cloned()
            }),
            name => {
                let named = self.written.get(name)?;
                self.place.folders.iter().find_map(|folder| named.get(&path::join(folder, file)).cloned())
            }
        }
    }

    /// Whether the script has written a file with unknown content.
    pub(super) fn is_made_of_unknown(&self, file: &Field) -> bool {
        matches!(self.written_file(file), Some(WrittenText::Unknown))
    }

    /// The text that the script has written into a file, where it is known.
    pub(super) fn written_text(&self, file: &Field) -> Option<Arc<str>> {
        self.written_file(file)?.text()
    }

    /// What a program is fed from a file that the script has written; nothing is known of other files.
    pub(super) fn fed_from(&self, file: &Field) -> Option<Feed> {
        match self.written_file(file)? {
            WrittenText::Text(text) => Some(Feed::Text(Some(text))),
            WrittenText::Unknown => Some(Feed::Pipe),
        }
    }

    /// What a script has written into the files from which a program takes its tasks, here or in a folder that it is told.
    pub(super) fn run_tasks(&mut self, name: &str, args: &[Field], depth: usize) {
        let Some((_, files)) = TASKS.iter().find(|(program, _)| *program == name).filter(|_| !self.written.is_empty())
        else {
            return;
        };
        let told = args.iter().filter_map(|arg| arg.text.rsplit('=').next());
        let folders: Vec<&str> = told.chain(std::iter::once(".")).collect();
        let named =
            |folder: &&str| files.iter().map(|file| Field::literal(format!("{folder}/{file}"))).collect::<Vec<_>>();
        let texts: Vec<_> = folders.iter().flat_map(named).filter_map(|file| self.written_text(&file)).collect();
        for text in texts {
            self.guess_file(&vec![Field::literal(name)].into(), &Feed::Text(Some(text)), depth + 1);
        }
    }

    /// Any file that the script has written and then gives to a program may run, unless the program only reads.
    pub(super) fn guess_written(&mut self, fields: &Tail, depth: usize) {
        if self.written.is_empty() {
            return;
        }
        let values = fields.iter().skip(1).flat_map(|arg| {
            let value = arg.text.split_once('=').map(|(_, value)| value);
            let attached = arg.text.get(2..).filter(|_| arg.text.starts_with('-'));
            [arg.known(), value, attached]
        });
        let texts: Vec<_> = values.flatten().filter_map(|file| self.written_at(file)?.text()).collect();
        for text in texts {
            self.guess_file(&fields.head(1), &Feed::Text(Some(text)), depth + 1);
        }
    }

    /// Runs what was written into the file that comes first, with the words behind it as its arguments.
    pub(super) fn run_written(&mut self, script: &Tail, feed: &Feed, depth: usize) -> bool {
        let text = match script.first().and_then(|file| self.written_file(file)) {
            None => return false,
            Some(WrittenText::Text(text)) => text,
            Some(WrittenText::Unknown) => {
                self.unclear(format!(
                    "it runs a file that it has made itself, of which nothing is known: {}",
                    show(script)
                ));
                return true;
            }
        };
        // What comes first may only start the shell, as `busybox` does.
        let other = |shebang: &Shebang| !is_shell(&shebang.program) && !shebang.args.iter().any(|word| is_shell(word));
        if let Some(Shebang { program, args, .. }) = Shebang::read(&text).filter(other) {
            let words = std::iter::once(&program).chain(&args).map(Field::literal);
            self.run(words.chain(script.iter().cloned()).collect(), feed, depth + 1);
            return true;
        }
        let before = self.outer.positional.replace(script.to_vec());
        self.input = feed.clone();
        self.script(&text, depth + 1);
        self.outer.positional = before;
        true
    }
}
