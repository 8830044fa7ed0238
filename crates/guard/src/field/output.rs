//! The output of substitutions, for the few commands whose output is known.

use std::rc::Rc;

use ollm_shell::{Body, List, Step, Word, bare};

use super::{
    Expander, FARTHEST, Fields,
    partial::MOST_WAYS,
    values::{Values, utf8},
    variables::KnownValues,
};
use crate::{names::Names, path, program, walk::lists_files};

impl<'a> Expander<'a> {
    /// What a substitution prints, for the few commands whose answer is known.
    pub(super) fn output(&self, list: &'a List, far: usize) -> Rc<Values> {
        if is_silent(list) {
            return Rc::new(Values::Unknown);
        }
        let key = std::ptr::from_ref(list);
        // What `read` finds differs from command to command.
        let lasts = self.fed.is_empty();
        let known = self.variables.printed.borrow().get(&key).filter(|_| lasts).and_then(|known| known.at(self.place));
        if let Some(known) = known {
            return known;
        }
        let values = match self.variables.affords(1).then(|| self.output_texts(list, far)) {
            Some(Some(texts)) => Values::Texts(texts),
            Some(None) => match self.known_text(list, far) {
                Some(text) => Values::Texts(vec![text]),
                None => self.listed(list, far).map_or(Values::Unknown, Values::Files),
            },
            None => Values::Unknown,
        };
        let values = Rc::new(values);
        if lasts {
            self.variables.printed.borrow_mut().insert(key, KnownValues::new(self.place, &values));
        }
        values
    }

    fn output_texts(&self, list: &'a List, far: usize) -> Option<Vec<String>> {
        if self.prints_its_own_code(list) {
            return Some(vec![String::new()]);
        }
        let words = simple(list)?;
        let name = words.first().and_then(|word| bare(word));
        if far >= FARTHEST || name.is_some_and(|name| !is_answer_known(name)) {
            return None;
        }
        let mut texts = Vec::new();
        for fields in self.ways(words, far + 1) {
            let words: Option<Vec<&str>> = fields.iter().map(|field| field.known()).collect();
            match words {
                Some(words) => texts.extend(self.printed(&words)?),
                // Wherever it is, it is new.
                None if name == Some("mktemp") => texts.push(NEW_FILE.to_owned()),
                None => return None,
            }
        }
        (texts.len() <= MOST_WAYS).then_some(texts)
    }

    fn printed(&self, words: &[&str]) -> Option<Vec<String>> {
        let one = |text: String| Some(vec![text]);
        match words {
            ["pwd"] if !self.place.lost => Some(self.place.folders.iter().filter_map(|folder| utf8(folder)).collect()),
            ["mktemp", rest @ ..] => one(temporary(rest)?),
            ["echo", "-n", rest @ ..] | ["echo", rest @ ..]
                if !rest.concat().contains('\\') && !rest.first().is_some_and(|first| first.starts_with('-')) =>
            {
                one(rest.join(" "))
            }
            ["printf", format, rest @ ..] => one(formatted(format, rest)?),
            ["dirname", file] => one(parent(file)),
            ["git", "rev-parse", "--git-dir" | "--git-common-dir" | "--absolute-git-dir"] => one(".git".to_owned()),
            ["git", "rev-parse", "--git-path", path] => one(format!(".git/{path}")),
            ["basename", file] => one(file.trim_end_matches('/').rsplit('/').next()?.to_owned()),
            ["realpath", file] | ["readlink", "-f", file] => one((*file).to_owned()),
            // Where it is installed is not known, but that it is a program is.
            ["which", name] | ["command", "-v", name] if !name.starts_with('-') && !name.contains('/') => {
                one(format!("/usr/local/bin/{name}"))
            }
            [name, rest @ ..] => one(self.own_name(program::printed_word(name, rest)?)),
            [] => None,
        }
    }

    /// Whether a substitution is one program that prints its own code.
    pub(super) fn prints_its_own_code(&self, list: &'a List) -> bool {
        let words =
            simple(list).filter(|words| words.first().and_then(|word| bare(word)).is_some_and(prints_its_own_code));
        let plain = |fields: &Fields| fields.iter().all(|field| field.known().is_some());
        words.is_some_and(|words| self.ways(words, FARTHEST).iter().all(plain))
    }
}

/// Whether something is known of what a program prints.
fn is_answer_known(name: &str) -> bool {
    const KNOWN: Names<32> = Names::of(&[&[
        "basename", "command", "dirname", "echo", "git", "mktemp", "printf", "pwd", "readlink", "realpath", "which",
    ]]);
    KNOWN.tables_with(name) != 0 || program::prints_a_word(name)
}

/// Whether a list is one program of whose output nothing is known; most are.
pub(super) fn is_silent(list: &List) -> bool {
    let name = simple(list).and_then(|words| words.first()).and_then(|word| bare(word));
    name.is_some_and(|name| {
        !is_answer_known(name) && !prints_its_own_code(name) && !lists_files(&path::base_name(name))
    })
}

/// Whether a program prints code of its own making, found by its name or where a script writes no program of its own.
fn prints_its_own_code(name: &str) -> bool {
    const INSTALLED: &[&str] = &["/bin/", "/home/linuxbrew/", "/nix/", "/opt/homebrew/", "/usr/"];
    let is_installed = INSTALLED.iter().any(|folder| name.starts_with(folder)) && !name.contains("..");
    program::prints_its_own_code(if is_installed { path::base_name(name) } else { name.into() }.as_ref())
}

/// The words of a list that is one plain command.
fn simple(list: &List) -> Option<&[Word]> {
    let [Step { pipeline, .. }] = list.as_slice() else { return None };
    let [command] = pipeline.as_slice() else { return None };
    let Body::Simple { assigns, words } = &command.body else { return None };
    (assigns.is_empty() && command.redirects.is_empty()).then_some(words)
}

/// What `printf` prints, for formats with nothing but `%s` and `%d` in them.
pub(crate) fn formatted(format: &str, arguments: &[&str]) -> Option<String> {
    let format = format.strip_suffix("\\n").unwrap_or(format).replace("\\n", "\n").replace("\\t", "\t");
    let mut parts = format.split("%s").flat_map(|part| part.split("%d"));
    let mut text = parts.next()?.to_owned();
    let mut arguments = arguments.iter();
    for part in parts {
        text.push_str(arguments.next().unwrap_or(&""));
        text.push_str(part);
    }
    let plain = !format.replace("%s", "").replace("%d", "").contains(['%', '\\']);
    (plain && arguments.next().is_none()).then_some(text)
}

/// What `mktemp` makes where nothing says otherwise.
const NEW_FILE: &str = "/tmp/tmp.new";

/// The file that `mktemp` makes, by its template or in the folder for such files.
fn temporary(arguments: &[&str]) -> Option<String> {
    let (mut folder, mut template) = (None, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "-d" | "-q" | "-dq" | "-qd" | "--directory" | "--quiet" => {}
            "-p" => folder = Some(*rest.next()?),
            "-t" | "-dt" | "--tmpdir" => folder = Some("/tmp"),
            long if long.starts_with("--tmpdir=") => folder = long.strip_prefix("--tmpdir="),
            long if long.starts_with("--suffix=") => {}
            option if option.starts_with('-') => return None,
            name => template = Some(name),
        }
    }
    match (folder, template) {
        (Some(folder), template) => Some(format!("{folder}/{}", template.unwrap_or("tmp.new"))),
        (None, Some(template)) => Some(template.to_owned()),
        (None, None) => Some(NEW_FILE.to_owned()),
    }
}

fn parent(file: &str) -> String {
    let file = file.trim_end_matches('/');
    match file.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{OuterScript, ShellPlace, Variables};

    /// How many substitutions are looked at to expand so many of them, each in the one before.
    fn looks(depth: usize) -> usize {
        let list = ollm_shell::parse(&format!("{}pwd{}", "echo $(".repeat(depth), ")".repeat(depth)), 0).unwrap();
        let variables = Variables::of_list(&list);
        let (place, outer) = (ShellPlace::default(), OuterScript::default());
        let words = simple(&list).unwrap();
        Expander::new(&variables, &place, &outer, &[]).words(words);
        variables.looks.get()
    }

    #[test]
    fn a_substitution_in_others_is_looked_at_once() {
        assert!((1..=4).all(|depth| looks(depth) == depth), "{:?}", [1, 2, 3, 4].map(looks));
        assert!(looks(30) <= 2 * FARTHEST, "{}", looks(30));
    }
}
