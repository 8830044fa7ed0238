//! Selects the problems with files that people are told. A clone can have any number of bad files, and no person reads
//! all problems.

use std::collections::BTreeMap;
use std::path::Path;

use ollm_catalog::{Problem, Severity};
use ollm_store::read_bounded;

/// Larger files are not searched for a name.
const LARGEST: u64 = 4 << 20;
/// How many problems are searched for a name, and how many of them are told.
const SEARCHED: (usize, usize) = (200, 3);

/// The problems that may explain why no hook of this name is loaded: problems of a file that has this name or contains
/// it.
pub(crate) fn problems_about<'a>(name: &str, problems: &'a [Problem]) -> Vec<&'a Problem> {
    let errors = problems.iter().filter(|problem| problem.severity != Severity::Warning).take(SEARCHED.0);
    errors.filter(|problem| concerns(problem, name)).take(SEARCHED.1).collect()
}

fn concerns(problem: &Problem, name: &str) -> bool {
    let file = &problem.file;
    let is_called = [file.file_stem(), file.file_name()].into_iter().flatten().any(|called| called == name);
    let names_it = || {
        let text = read_bounded(file, LARGEST).ok().flatten().unwrap_or_default();
        let is_in_word = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
        String::from_utf8_lossy(&text).split(|letter| !is_in_word(letter)).any(|word| word == name)
    };
    is_called || !name.is_empty() && names_it()
}

/// How many problems are told: of one folder, and of all folders together.
const MOST: (usize, usize) = (10, 50);

/// The problems to tell, and one line per folder that counts the others.
pub(crate) fn told_problems<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> (Vec<&'a Problem>, Vec<String>) {
    let (mut told, mut left) = (Vec::new(), 0);
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    for problem in problems {
        let count = folders.entry(problem.file.parent().unwrap_or(&problem.file)).or_default();
        *count += 1;
        if *count > MOST.0 || told.len() >= MOST.1 {
            left += 1;
        } else {
            told.push(problem);
        }
    }
    let most = folders.into_iter().max_by_key(|(_, count)| *count).map(|(folder, _)| folder.display().to_string());
    let line = |folder: String| format!("{left} more problems, most of them in {folder}, are not told here");
    (told, most.filter(|_| left > 0).map(line).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use ollm_protocol::Code;

    use super::*;

    fn problems(folder: &str, count: usize) -> Vec<Problem> {
        let problem = |at| {
            let file = format!("{folder}/{at}.json");
            Problem::of_file(Code::UndeclaredScript, Severity::Warning, Path::new(&file), "it is bad".to_owned())
        };
        (0..count).map(problem).collect()
    }

    #[test]
    fn a_hook_is_looked_for_in_files_by_its_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let problem = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            Problem::of_file(Code::InvalidSyntax, Severity::Error, &file, "it is bad".to_owned())
        };
        let all = [
            problem("a.yaml", "- name: guard-2\n"),
            problem("b.yaml", "- name: guard # [\n"),
            problem("guard.json", ""),
        ];
        let files: Vec<_> =
            problems_about("guard", &all).iter().map(|problem| problem.file.file_name().unwrap()).collect();
        assert_eq!(files, ["b.yaml", "guard.json"]);
        assert!(problems_about("gate", &all).is_empty());
    }

    #[test]
    fn some_problems_of_a_folder_are_told_and_the_others_counted() {
        let all = [problems("/clone/.ollm/hooks", 2_000), problems("/home/ada/.ollm/hooks", 2)].concat();
        let (told, lines) = told_problems(&all);
        assert_eq!(told.len(), 12, "what is wrong with the person's own files is told whatever comes before it");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("1990 more problems, most of them in /clone/.ollm/hooks"), "{lines:?}");
        let many: Vec<Problem> = (0..100).flat_map(|at| problems(&format!("/clone/{at}"), 1)).collect();
        assert_eq!(told_problems(&many).0.len(), 50);
        assert!(told_problems(&problems("/a", 10)).1.is_empty());
    }
}
