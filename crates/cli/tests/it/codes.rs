//! Stable codes: every error has one, `ollm help` explains each, and the page of the documentation says the same.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::Code;

use crate::documents::{generated, root};
use crate::lab::{Lab, OLLM, finish, hook_file};

/// Every source file of the libraries and the program.
fn sources() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                below(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                found.push(entry);
            }
        }
    }
    let mut found = Vec::new();
    for member in fs::read_dir(root().join("crates")).unwrap() {
        let folder = member.unwrap().path().join("src");
        if folder.is_dir() {
            below(&folder, &mut found);
        }
    }
    found
}

#[test]
fn every_code_is_used() {
    let is_table = |path: &PathBuf| path.ends_with("code.rs") || path.ends_with("code/table.rs");
    let text: String =
        sources().iter().filter(|path| !is_table(path)).map(|path| fs::read_to_string(path).unwrap()).collect();
    let is_used = |code: &&Code| {
        let name = format!("Code::{code:?}");
        let whole = |at: usize| !text[at + name.len()..].starts_with(|letter: char| letter.is_alphanumeric());
        text.match_indices(&name).any(|(at, _)| whole(at))
    };
    let unused: Vec<&Code> = Code::ALL.iter().filter(|code| !is_used(code)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn the_page_of_codes_is_up_to_date() {
    let lab = Lab::new();
    let mut page = String::from(
        "# Error codes\n\nEvery error, and every problem with a file, has a stable code: in its first line, and as `code` in `--json`.\n\
         `ollm help CODE` prints what is below, `ollm help codes` the list. This file is generated; a test keeps it up to date.\n\n\
         The letter says what it concerns:\n\n| letter | concerns | exit code of a command that fails |\n|---|---|---|\n\
         | `U` | what you asked for | 64 |\n| `C` | what a file or an event says | 3; 1 where it is only reported |\n\
         | `T` | what is approved | 4 |\n| `E` | the machine, a server, a model | 5 |\n",
    );
    for code in Code::ALL {
        let ran = lab.run(&["help", code.id()]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{code}");
        let (title, text) = ran.stdout.split_once('\n').unwrap();
        let (why, rest) = text.split_once("For example:\n\n").unwrap();
        let (example, rest) = rest.split_once("\n\nWhat to do:").unwrap();
        let example: String = example.lines().map(|line| line.strip_prefix("  ").unwrap().to_owned() + "\n").collect();
        let (mend, _) = rest.trim().split_once("\n\n").unwrap();
        let _ = write!(page, "\n## {title}\n\n{}\n\n```text\n{example}```\n\nWhat to do: {mend}\n", why.trim());
    }
    generated(&root().join("docs/errors.md"), &page, "codes");
}

/// Codes whose examples need more than an empty home: a server, a terminal, a network, a second process, or another kernel.
const NOT_ALONE: [Code; 14] = [
    Code::UnknownTool,
    Code::LowerVersion,
    Code::UnsafePolicy,
    Code::PackageRefused,
    Code::LockedKey,
    Code::Uncovered,
    Code::Declined,
    Code::LoginFailed,
    Code::NoBox,
    Code::NoSecret,
    Code::TooDeep,
    Code::Busy,
    Code::LineFails,
    Code::NotFetched,
];

/// The commands that show what comes of an example, which is a script, or a file that is put where such a file belongs.
fn script(lab: &Lab, example: &str) -> String {
    let put = |path: &str, commands: &str| {
        lab.write(path, example);
        commands.to_owned()
    };
    let first = example.split_whitespace().next().unwrap();
    match example {
        manifest if manifest.contains("\"version\"") => {
            put("home/.ollm/extensions/a/manifest.json", "ollm ext list; ollm doctor")
        }
        hooks if hooks.starts_with(['{', '[']) => {
            put("home/.ollm/hooks/example.json", "ollm hook validate; ollm doctor")
        }
        project if project.starts_with('#') => put("project/.ollm/config.yaml", "ollm config validate"),
        _ if first.ends_with(':') => put("home/.ollm/config.yaml", "ollm config validate; ollm doctor"),
        script => script.to_owned(),
    }
}

#[test]
fn every_example_that_stands_alone_leads_to_its_code() {
    let mut wrong = Vec::new();
    for code in Code::ALL.iter().filter(|code| !NOT_ALONE.contains(code)) {
        let lab = Lab::new();
        let programs = lab.root.join("bin");
        fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(OLLM, programs.join("ollm")).unwrap();
        let lab = lab.set("OLLAMA_HOST", "127.0.0.1:1");
        let page = lab.run(&["help", code.id()]).stdout;
        let (_, rest) = page.split_once("For example:\n\n").unwrap();
        let (example, _) = rest.split_once("\n\nWhat to do:").unwrap();
        let example: Vec<&str> = example.lines().map(|line| line.strip_prefix("  ").unwrap()).collect();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
        let mut shell = lab.program("sh");
        shell.args(["-c", &script(&lab, &example.join("\n"))]).env("PATH", path);
        let ran = finish(shell, b"");
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        if !shown.contains(&format!("[{code}]")) {
            wrong.push(format!("{code}: {example:?} says\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The commands of ours that a text names in backticks, as far as their words are commands.
fn commands(text: &str) -> Vec<Vec<&str>> {
    let quoted = text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("ollm "));
    let is_word =
        |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-') && !word.starts_with('-');
    quoted.map(|line| line.split(' ').take_while(is_word).collect()).collect()
}

#[test]
fn every_command_that_an_explanation_names_is_there() {
    let lab = Lab::new();
    for code in Code::ALL {
        for words in commands(&lab.run(&["help", code.id()]).stdout) {
            // The last word may be an argument, such as the name of an event.
            let ran = [words.len(), words.len().saturating_sub(1)]
                .map(|many| lab.run(&[&["help"], words.get(..many).unwrap()].concat()).code);
            assert!(ran.contains(&0) && !words.is_empty(), "{code}: ollm {}", words.join(" "));
        }
    }
}

#[test]
fn help_shows_what_the_option_shows() {
    let lab = Lab::new();
    for words in [&[][..], &["hook"], &["hook", "run"], &["mcp", "call"], &["help"]] {
        let asked = lab.run(&[&["help"], words].concat());
        let shown = lab.run(&[words, &["--help"]].concat());
        assert_eq!((asked.code, asked.stdout), (0, shown.stdout), "{words:?}");
    }
}

#[test]
fn help_explains_a_code() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.screen(&lab.run(&["help", "c003"])));
}

#[test]
fn help_about_nothing_names_what_is_near() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.screen(&lab.run(&["help", "hok"])));
}

#[test]
fn an_error_begins_with_its_code() {
    let lab = Lab::new();
    for (arguments, code, exit) in [
        (&["hook", "list", "--jsno"][..], "U001", 64),
        (&["hook", "show", "nothing"], "U002", 64),
        (&["emit", "deploy", "--data", "{"], "C018", 3),
        (&["box", "--", "no-such-program"], "E005", 5),
        (&["hook", "plan", "befor_tool"], "C006", 3),
    ] {
        let ran = lab.run(arguments);
        assert!(ran.stderr.starts_with(&format!("error[{code}]: ")), "{arguments:?}: {ran:?}");
        assert_eq!(ran.code, exit, "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_problem_has_its_code_for_people_and_for_programs() {
    let lab = Lab::new();
    lab.user("odd.json", hook_file("before_tool", "odd", r#", "tiemout": 5"#));
    let shown = lab.run(&["hook", "validate"]);
    assert!(shown.stderr.contains("warning[C003]: unknown key `tiemout`"), "{shown:?}");
    let told = lab.run(&["hook", "validate", "--json"]).answer();
    assert_eq!(told[0]["code"], "C003", "{told}");
    let found = lab.run(&["doctor", "--json"]).answer();
    let codes: Vec<&str> =
        found["findings"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
    assert!(codes.contains(&"C003"), "{found}");
}
