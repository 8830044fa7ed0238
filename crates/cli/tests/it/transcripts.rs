//! The transcripts of the guides: a shell runs each `console` block of a page, and prints what the page shows.
//!
//! Each `##` section begins in a home of its own. A line with `$ ` is a command, `> ` continues it, all else is its output. `…` in a
//! line stands for any text, and a line that is only `…` for any lines.

use std::env;
use std::fmt::Write;
use std::fs;
use std::iter;
use std::path::Path;

use regex_lite::Regex;

use crate::documents::root;
use crate::lab::{Lab, OLLM, finish, search_path};

/// Parts the output of one command from that of the next.
const MARK: char = '\u{1e}';

/// A command, and the output that the page shows.
struct Step {
    command: String,
    shown: String,
}

#[test]
fn first_steps_print_what_their_page_shows() {
    check("trying.md");
}

#[test]
fn recipes_print_what_their_page_shows() {
    check("recipes.md");
}

#[test]
fn symptoms_print_what_their_page_shows() {
    check("troubleshooting.md");
}

#[test]
fn the_guide_to_hooks_prints_what_it_shows() {
    check("hooks.md");
}

#[test]
fn the_guide_to_traces_prints_what_it_shows() {
    check("trace.md");
}

#[test]
fn the_configuration_prints_what_its_page_shows() {
    check("configuration.md");
}

#[test]
fn the_guide_to_conditions_prints_what_it_shows() {
    check("conditions.md");
}

#[test]
fn the_guide_to_servers_prints_what_it_shows() {
    check("mcp.md");
}

#[test]
fn the_guide_to_files_prints_what_it_shows() {
    check("files.md");
}

#[test]
fn the_guide_to_the_agent_prints_what_it_shows() {
    check("agent.md");
}

#[test]
fn the_guide_to_extensions_prints_what_it_shows() {
    check("extensions.md");
}

#[test]
fn the_guide_to_installing_prints_what_it_shows() {
    check("installing.md");
}

#[test]
fn the_guide_to_the_box_prints_what_it_shows() {
    check("box.md");
}

#[test]
fn the_page_of_security_prints_what_it_shows() {
    check("security.md");
}

#[test]
fn the_page_of_dialects_prints_what_it_shows() {
    check("dialects.md");
}

#[test]
fn the_pages_of_agents_print_what_they_show() {
    check("agents/README.md");
}

/// Pages without a transcript by their nature: panels that fill the screen, code in Rust that other tests compile, tables that are
/// generated, and what is for contributors.
const NO_TRANSCRIPT: &[&str] = &[
    "SUMMARY.md",
    "tui.md",
    "embedding.md",
    "glossary.md",
    "cli.md",
    "errors.md",
    "dependencies.md",
    "benchmarks.md",
    "coverage.md",
    "real-agents.md",
];

#[test]
fn every_page_has_a_transcript_that_is_run_or_none_by_its_nature() {
    let own = include_str!("transcripts.rs");
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let has_transcript = fs::read_to_string(&page).unwrap().contains("```console\n");
        assert_eq!(has_transcript, own.contains(&format!("check(\"{name}\")")), "docs/{name} is not run");
        assert_ne!(has_transcript, NO_TRANSCRIPT.contains(&name.as_str()), "docs/{name} has no transcript");
    }
}

#[test]
fn an_ellipsis_stands_for_any_text_and_nothing_else_does() {
    assert!(fits("a … c\n  …\nlast\n", "a b c\n1\n2\nlast\n"));
    assert!(fits("a\n…\n", "a\n"));
    assert!(!fits("a … c\n", "a\nc\n"));
    assert!(!fits("a.c\n", "abc\n"));
    assert!(!fits("", "unexpected\n"));
    assert!(!fits("a\n", "a\nb\n"));
}

fn check(page: &str) {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let mut count = 0;
    let mut wrong = String::new();
    for section in text.split("\n## ").skip(1) {
        let steps = steps(section);
        count += steps.len();
        let lab = Lab::with_default_boxes();
        let printed = play(&lab, &steps);
        assert_eq!(printed.len(), steps.len(), "{page}: a command ended the shell of\n{section}");
        for (step, printed) in steps.iter().zip(printed) {
            let shown = neutral(&lab, &step.shown);
            if !fits(&shown, &printed) {
                let _ = writeln!(wrong, "$ {}\n--- shown\n{shown}--- printed\n{printed}", step.command);
            }
        }
    }
    assert_ne!(count, 0, "{page} has no commands");
    assert!(wrong.is_empty(), "docs/{page}:\n{wrong}");
}

fn steps(section: &str) -> Vec<Step> {
    let blocks = section.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), shown: String::new() });
            continue;
        }
        let step = steps.last_mut().unwrap();
        match line.strip_prefix('>') {
            Some(more) if step.shown.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more.strip_prefix(' ').unwrap_or(more));
            }
            _ => {
                step.shown.push_str(line);
                step.shown.push('\n');
            }
        }
    }
    steps
}

/// Runs all commands in one shell, in `~/project`; what each printed on both streams.
fn play(lab: &Lab, steps: &[Step]) -> Vec<String> {
    let mut script = String::from("exec 2>&1\nlast=0\n");
    for step in steps {
        // A command finds in `$?` how the one before it ended.
        let _ = write!(script, "printf '\\036'\n(exit $last)\n{}\nlast=$?\n", step.command);
    }
    let script = lab.write("transcript.sh", script);
    let project = lab.home.join("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    let program = Path::new(OLLM).parent().unwrap().to_owned();
    let path = env::join_paths(iter::once(program).chain(env::split_paths(search_path()))).unwrap();
    let mut shell = lab.program("sh");
    shell.arg(script).current_dir(project).env("PATH", path);
    finish(shell, b"").stdout.split(MARK).skip(1).map(|printed| neutral(lab, printed)).collect()
}

/// The text without what differs from run to run, in a home that has the name which the pages give it.
fn neutral(lab: &Lab, text: &str) -> String {
    let text = lab.neutral(&text.replace(&lab.home.display().to_string(), "/home/you"));
    let id = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let time = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
    let text = time.replace_all(&id.replace_all(&text, "ID"), "TIME").into_owned();
    let trimmed = text.trim_end_matches('\n').lines().map(str::trim_end);
    trimmed.flat_map(|line| [line, "\n"]).collect()
}

/// Whether the output is the one that is shown.
fn fits(shown: &str, printed: &str) -> bool {
    let mut pattern = String::from("^");
    for line in shown.lines() {
        if line.trim_start() == "…" {
            pattern.push_str("(?:.*\n)*");
        } else {
            let parts: Vec<String> = line.split('…').map(regex_lite::escape).collect();
            pattern.push_str(&parts.join(".*"));
            pattern.push('\n');
        }
    }
    pattern.push('$');
    Regex::new(&pattern).unwrap().is_match(printed)
}
