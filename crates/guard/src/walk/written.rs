//! Files that a script writes and then runs: what is in them is in the script.

use std::sync::Arc;

use ollm_shell::{Command, Redirect, Word, bare};

use super::{Feed, Scene, Walker};
use crate::{
    field::{Field, Tail},
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

impl<'a> Scene<'_, 'a> {
    /// Keeps what a command is known to write into files: `cat > x.sh <<EOF`, `tee x.sh`, `echo … > x.sh`.
    pub(super) fn keep_written(&mut self, command: &'a Command, words: &'a [Word], feed: &Feed) {
        let redirected = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Write(word) => Some(word),
            _ => None,
        });
        let tee = words.first().is_some_and(|word| bare(word) == Some("tee"));
        let files: Vec<&Word> = redirected.chain(words.iter().skip(1).filter(|_| tee)).collect();
        if files.is_empty() {
            return;
        }
        let nothing = Feed::Nothing;
        let expander = self.expander(&nothing);
        let Feed::Text(Some(text)) = expander.output_of(command, feed.clone(), 0) else { return };
        let files: Vec<Field> = files.into_iter().flat_map(|file| expander.word(file, 0)).flatten().collect();
        for file in files.iter().filter(|file| file.known().is_some()) {
            self.walker.keep(file, &text);
        }
    }
}

impl Walker {
    /// What is written behind what is there already may run as well.
    fn keep(&mut self, file: &Field, text: &Arc<str>) {
        for folder in self.place.folders.iter() {
            let kept = self.written.entry(path::join(folder, &file.text)).or_insert_with(|| Arc::clone(text));
            if !Arc::ptr_eq(kept, text) {
                *kept = [&**kept, "\n", text].concat().into();
            }
        }
    }

    /// What the script has written into a file.
    pub(super) fn written_text(&self, file: &Field) -> Option<Arc<str>> {
        if self.written.is_empty() || file.known().is_none() {
            return None;
        }
        let mut folders = self.place.folders.iter();
        folders.find_map(|folder| self.written.get(&path::join(folder, &file.text))).map(Arc::clone)
    }

    /// What a script has written into the file from which a program takes its tasks.
    pub(super) fn run_tasks(&mut self, name: &str, depth: usize) {
        let Some((_, files)) = TASKS.iter().find(|(program, _)| *program == name).filter(|_| !self.written.is_empty())
        else {
            return;
        };
        let texts: Vec<_> = files.iter().filter_map(|file| self.written_text(&Field::literal(*file))).collect();
        for text in texts {
            self.guess_file(&vec![Field::literal(name)].into(), &Feed::Text(Some(text)), depth + 1);
        }
    }

    /// Runs what was written into the file that comes first, with the words behind it as its arguments.
    pub(super) fn run_written(&mut self, script: &Tail, feed: &Feed, depth: usize) -> bool {
        let Some(text) = script.first().and_then(|file| self.written_text(file)) else { return false };
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
