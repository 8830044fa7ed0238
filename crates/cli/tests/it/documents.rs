//! The documents: the command reference is generated, links lead somewhere, the book has all pages, READMEs show real examples, what
//! is said of lines of code is said of lines there are, no machine is named.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::dialect::{Defaults, by_name};
use ollm_protocol::{Dialect, EventKind, OnFailure};

use crate::lab::Lab;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_command_reference_is_up_to_date() {
    generated(&root().join("docs/cli.md"), &reference(), "command_reference");
}

/// The first columns of a table of a page are what the program declares; what stands behind them is written by hand.
fn generated_rows(page: &str, head: &str, row: impl Fn(&str) -> Option<Vec<String>>) -> Vec<String> {
    let path = root().join("docs").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let start = text.find(head).unwrap_or_else(|| panic!("docs/{page} has no table {head}"));
    let table: &str = text[start..].split("\n\n").next().unwrap();
    let mut keys = Vec::new();
    let mut lines: Vec<String> = table.lines().take(2).map(str::to_owned).collect();
    for line in table.lines().skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        keys.push(cells[0].to_owned());
        let declared = row(cells[0]).unwrap_or_else(|| cells[1..].iter().map(|cell| (*cell).to_owned()).collect());
        let all = [
            vec![cells[0].to_owned()],
            declared.clone(),
            cells[declared.len() + 1..].iter().map(|cell| (*cell).to_owned()).collect(),
        ];
        let cells =
            all.concat().into_iter().map(|cell| if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") });
        lines.push(format!("|{}|", cells.collect::<Vec<_>>().join("|")));
    }
    generated(&path, &text.replacen(table, &lines.join("\n"), 1), "tables_of_events_and_dialects");
    keys
}

#[test]
fn the_tables_of_events_and_dialects_are_what_the_program_declares() {
    let dialects = ["gate", "rpc", "agent"].map(|name| by_name(name).unwrap());
    let kinds = |cell: &str| -> Vec<EventKind> {
        let names = cell.split(", ").map(|name| name.trim_matches('`'));
        names.filter(|name| !name.contains(':')).map(|name| EventKind::from_name(name).unwrap()).collect()
    };
    let spelled = |dialect: &'static dyn Dialect, cell: &str| {
        let mut names: Vec<&str> = kinds(cell)
            .into_iter()
            .flat_map(|kind| dialect.names().iter().filter(move |(named, _)| *named == kind))
            .map(|(_, name)| *name)
            .collect();
        names.dedup();
        names.join(", ")
    };
    let rows = generated_rows("hooks.md", "| canonical |", |cell| {
        Some(dialects.iter().map(|dialect| spelled(*dialect, cell)).collect())
    });
    let listed: Vec<EventKind> = rows.iter().flat_map(|cell| kinds(cell)).collect();
    assert!(EventKind::all().all(|kind| listed.contains(&kind)), "an event is missing: {listed:?}");
    let all = ["ollm", "gate", "rpc", "agent"].map(|name| by_name(name).unwrap().defaults());
    generated_rows("dialects.md", "| | `ollm` |", |cell| {
        let of = |told: &dyn Fn(&Defaults) -> String| Some(all.iter().map(told).collect());
        match cell {
            "default timeout" => of(&|one| format!("{} s", one.timeout.as_secs())),
            "a bare `timeout` counts" => of(&|one| if one.timeout_unit.as_secs() == 1 { "s" } else { "ms" }.to_owned()),
            "a failed hook" => {
                of(&|one| if one.on_failure == OnFailure::Block { "blocks" } else { "goes on" }.to_owned())
            }
            "after a refusal" => {
                of(&|one| if one.runs_on_after_refusal { "the rest runs" } else { "the rest is skipped" }.to_owned())
            }
            _ => None,
        }
    });
}

/// A page that is generated has this text; the tests of this name write it anew.
pub(crate) fn generated(path: &Path, text: &str, tests: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == text,
        "{} is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm --test it {tests}",
        path.display()
    );
}

/// Every schema that `ollm schema` prints, by the name of its file.
fn schemas() -> Vec<(String, String)> {
    let lab = Lab::new();
    let listing = lab.run(&["schema"]).stdout;
    let (files, events) = listing.split_once("What a hook reads").unwrap();
    let names = files.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let mut all: Vec<(String, String)> =
        names.map(|name| (format!("{name}.json"), lab.run(&["schema", name]).stdout)).collect();
    let events: Vec<&str> = events.lines().skip(1).flat_map(str::split_whitespace).collect();
    for dialect in ["ollm", "gate", "rpc", "agent"] {
        let schema =
            |event: &str, more: &[&str]| lab.run(&[&["schema", event, "--dialect", dialect], more].concat()).answer();
        let both =
            |event: &str| serde_json::json!({"reads": schema(event, &[]), "answers": schema(event, &["--answer"])});
        let defs: serde_json::Map<_, _> = events.iter().map(|event| ((*event).to_owned(), both(event))).collect();
        let title = format!("What {dialect} hooks read and answer, by event");
        all.push((
            format!("dialect-{dialect}.json"),
            format!("{:#}\n", serde_json::json!({"title": title, "$defs": defs})),
        ));
    }
    all
}

#[test]
fn the_published_schemas_are_up_to_date() {
    let folder = root().join("docs/schemas");
    for (name, schema) in schemas() {
        generated(&folder.join(&name), &schema, "schemas");
    }
}

fn reference() -> String {
    let mut text = String::from(
        "# The command line\n\nEvery command and option, as `--help` prints them. This file is generated; a test keeps it up to date.\n\n\
         With `--json`, a command that changes something prints one object: `exit` (its exit code), `changed` (what, and in which file),\n\
         `output` and `messages` (what people read), and `error` (`code`, `message`, `hints`; null if there is none). Where any other\n\
         command fails, it prints `exit` and `error` in place of its answer.\n",
    );
    describe(&Lab::new(), &[], &mut text);
    text
}

/// One command, then the commands below it.
fn describe(lab: &Lab, command: &[&str], text: &mut String) {
    let ran = lab.run(&[command, &["--help"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command:?}");
    let name = [&["ollm"], command].concat().join(" ");
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", ran.stdout.trim_end());
    for below in subcommands(&ran.stdout) {
        describe(lab, &[command, &[below]].concat(), text);
    }
}

/// The names in the lists of commands that a help text has.
pub(crate) fn subcommands(help: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut lists_commands = false;
    // Only the first list of all has groups.
    let grouped = help.contains("\nStart here:\n");
    for line in help.lines() {
        if !line.starts_with(' ') {
            lists_commands = line == "Commands:" || (grouped && line.ends_with(':') && line != "Options:");
        } else if lists_commands && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next());
        }
    }
    names
}

/// Everything written for people.
fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut documents: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)).into();
    for folder in ["docs", "docs/agents"] {
        documents.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    documents.extend(published().iter().map(|folder| folder.join("README.md")));
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents
}

#[test]
fn documents_say_who_does_what() {
    let (root, mut vague) = (root(), Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for (number, line) in text.lines().enumerate() {
            let words = line.to_lowercase();
            let mut words = words.split(|letter: char| !letter.is_alphanumeric());
            if words.any(|word| ["anybody", "nobody", "somebody", "whoever"].contains(&word)) {
                vague.push(format!("{}:{}: {line}", document.strip_prefix(&root).unwrap().display(), number + 1));
            }
        }
    }
    assert_eq!(vague, Vec::<String>::new());
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = root();
    let mut dead = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !document.parent().unwrap().join(target).exists() {
                dead.push(format!("{}: {link}", document.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_page_has_one_place_in_the_book() {
    let docs = root().join("docs");
    let mut pages = Vec::new();
    for folder in ["", "agents/"] {
        let entries = fs::read_dir(docs.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_page = |name: &String| Path::new(name).extension().is_some_and(|extension| extension == "md");
        pages.extend(names.filter(is_page).map(|name| format!("{folder}{name}")));
    }
    pages.retain(|page| page != "SUMMARY.md");
    pages.sort_unstable();
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed = links(&summary);
    listed.sort_unstable();
    assert_eq!(listed, pages);
}

#[test]
fn each_line_whose_coverage_is_explained_is_there() {
    let page = fs::read_to_string(root().join("docs/coverage.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `crates/")?.split_once("` | `` "));
    let rows: Vec<_> = rows.filter_map(|(file, rest)| Some((file, rest.split_once(" `` |")?.0))).collect();
    assert!(rows.len() > 50, "{}", rows.len());
    for (file, line) in rows {
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap();
        assert!(text.lines().any(|there| there.trim() == line), "crates/{file} has no line `{line}`");
    }
}

#[test]
fn the_readme_of_each_library_shows_one_of_its_examples() {
    for folder in published().iter().filter(|folder| folder.join("src/lib.rs").exists()) {
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        let block = readme.split("```rust").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let (_, shown) = block.split_once('\n').unwrap();
        let mut examples = fs::read_dir(folder.join("examples")).unwrap().map(|entry| entry.unwrap().path());
        let found = examples.any(|example| fs::read_to_string(example).unwrap().ends_with(&format!("\n\n{shown}")));
        assert!(found, "{}: no example ends with\n{shown}", folder.display());
    }
}

/// The folders of the crates that are published.
fn published() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let is_private = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml")).unwrap().contains("publish = false");
    crates.filter(|folder| !is_private(folder)).collect()
}

/// The relative links of a document.
fn links(text: &str) -> Vec<&str> {
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link).filter(|link| !link.contains("://") && !link.contains(char::is_whitespace)).collect()
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let mut named = Vec::new();
    let mut folders = vec![root()];
    // In two halves, or this file would be the first to be found.
    let machine = [
        concat!("/wo", "rk/"),
        concat!("/home", "/user/"),
        concat!("/ro", "ot/"),
        concat!("shared/", "facts"),
        concat!("shared/", "seeds"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            if name == ".git" || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                named.extend(
                    machine.iter().filter(|word| names(&text, word)).map(|word| format!("{}: {word}", path.display())),
                );
            }
        }
    }
    assert_eq!(named, Vec::<String>::new());
}

/// Whether the text holds the path as such, and not as the end of a longer one.
fn names(text: &str, path: &str) -> bool {
    let in_a_longer_one = |before: char| before.is_alphanumeric() || "._-*}~".contains(before);
    text.match_indices(path).any(|(at, _)| !text[..at].ends_with(in_a_longer_one))
}
