//! Files that a script writes and then runs: what is in them is in the script.

use std::sync::Arc;

use ollm_shell::{Command, Redirect, Word, bare};

use super::{Feed, Scene, Walker, carry::show};
use crate::{
    field::{Field, Place, Tail},
    path,
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

/// What is in a file that the script has written.
#[derive(Clone, Debug)]
pub(super) enum Written {
    Text(Arc<str>),
    /// What another program printed or fetched.
    Unknown,
}

impl Written {
    fn text(self) -> Option<Arc<str>> {
        match self {
            Written::Text(text) => Some(text),
            Written::Unknown => None,
        }
    }
}

impl<'a> Scene<'_, 'a> {
    /// What a command writes into files: `cat > x.sh <<EOF`, `tee x.sh`, `echo … > x.sh`, `cp x.sh y.sh`.
    pub(super) fn written_by(&self, command: &'a Command, words: &'a [Word], feed: &Feed) -> Vec<(Field, Written)> {
        let redirected = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Write(word) => Some(word),
            _ => None,
        });
        let name = words.first().and_then(|word| bare(word)).map(path::base_name).unwrap_or_default();
        let copies = COPIERS.contains(&name.as_ref())
            && (!self.walker.written.is_empty() || matches!(feed, Feed::Text(Some(_))));
        let names = name == "dd" || FETCHERS.contains(&name.as_ref());
        let files: Vec<&Word> = redirected.chain(words.iter().skip(1).filter(|_| name == "tee")).collect();
        if files.is_empty() && !copies && !names {
            return Vec::new();
        }
        let nothing = Feed::Nothing;
        let expander = self.expander(&nothing);
        let mut kept = Vec::new();
        if !files.is_empty() {
            let text = match expander.output_of(command, feed.clone(), 0) {
                Feed::Text(Some(text)) => Written::Text(text),
                _ => Written::Unknown,
            };
            let files = files.into_iter().flat_map(|file| expander.word(file, 0)).flatten();
            kept.extend(files.map(|file| (file, text.clone())));
        }
        if copies || names {
            for fields in expander.words(words) {
                kept.extend(if copies { self.walker.copied(&fields, feed) } else { outputs(&fields, feed) });
            }
        }
        kept.retain(|(file, _)| file.known().is_some());
        kept
    }
}

/// The files that a program is told to write.
fn outputs(fields: &[Field], feed: &Feed) -> Vec<(Field, Written)> {
    let input = match feed {
        Feed::Text(Some(text)) => Written::Text(Arc::clone(text)),
        _ => Written::Unknown,
    };
    let mut found = Vec::new();
    for (at, field) in fields.iter().enumerate().skip(1) {
        // Without a name the last part of the address is one.
        if let Some((_, rest)) = field.text.split_once("://") {
            let name = rest.rsplit('/').next().unwrap_or_default().split(['?', '#']).next().unwrap_or_default();
            found.push((Field::literal(name), Written::Unknown));
        }
        if let Some(file) = field.text.strip_prefix("of=") {
            found.push((Field::literal(file), input.clone()));
        }
        for option in OUTPUTS {
            match field.text.strip_prefix(option) {
                Some("") => found.extend(fields.get(at + 1).map(|file| (file.clone(), Written::Unknown))),
                Some(file) => found.push((Field::literal(file.trim_start_matches('=')), Written::Unknown)),
                None => {}
            }
        }
    }
    found
}

/// The last part of a path.
fn last_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

impl Walker {
    /// Keeps what a command has written in this place. What is written behind what is there already may run as well.
    pub(super) fn keep_written(&mut self, written: &[(Field, Written)], place: &Place) {
        for (folder, (file, text)) in
            place.folders.iter().flat_map(|folder| written.iter().map(move |one| (folder, one)))
        {
            let path = path::join(folder, &file.text);
            let named = self.written.entry(last_name(&path.to_string_lossy()).to_owned()).or_default();
            let kept = named.entry(path).or_insert_with(|| text.clone());
            *kept = match (&*kept, text) {
                (Written::Text(before), Written::Text(text)) if !Arc::ptr_eq(before, text) => {
                    Written::Text([&**before, "\n", &**text].concat().into())
                }
                (Written::Text(_), Written::Text(_)) => continue,
                _ => Written::Unknown,
            };
        }
    }

    /// The files that come of copies of what the script has written.
    fn copied(&self, fields: &[Field], feed: &Feed) -> Vec<(Field, Written)> {
        let files: Vec<&Field> = fields.iter().skip(1).filter(|field| !field.text.starts_with('-')).collect();
        let Some((to, from)) = files.split_last() else { return Vec::new() };
        let mut copies = Vec::new();
        for file in from {
            let input = || match feed {
                Feed::Text(Some(text)) if file.text == "/dev/stdin" => Some(Written::Text(Arc::clone(text))),
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
    fn written_file(&self, file: &Field) -> Option<Written> {
        file.known().and_then(|file| self.written_at(file))
    }

    /// The same by the text that names it.
    fn written_at(&self, file: &str) -> Option<Written> {
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

    /// Whether the script has written a file, and nobody knows what is in it.
    pub(super) fn is_made_of_unknown(&self, file: &Field) -> bool {
        matches!(self.written_file(file), Some(Written::Unknown))
    }

    /// The text that the script has written into a file, where it is known.
    pub(super) fn written_text(&self, file: &Field) -> Option<Arc<str>> {
        self.written_file(file)?.text()
    }

    /// What a program is fed from a file that the script has written; nothing is known of other files.
    pub(super) fn fed_from(&self, file: &Field) -> Option<Feed> {
        match self.written_file(file)? {
            Written::Text(text) => Some(Feed::Text(Some(text))),
            Written::Unknown => Some(Feed::Pipe),
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
            Some(Written::Text(text)) => text,
            Some(Written::Unknown) => {
                self.unclear(format!(
                    "it runs a file that it has made itself, of which nothing is known: {}",
                    show(script)
                ));
                return true;
            }
        };
        let interpreter = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or("sh");
        if !interpreter.contains("sh") {
            self.guess_code(&path::base_name(interpreter), &[], &Feed::Text(Some(Arc::clone(&text))), depth + 1);
            return true;
        }
        let before = self.outer.positional.replace(script.to_vec());
        self.input = feed.clone();
        self.script(&text, depth + 1);
        self.outer.positional = before;
        true
    }
}
