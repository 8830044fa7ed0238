use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::fixture::Project;

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn inline_code_that_may_load_files_is_uncovered_in_commands_and_in_lines() {
    let project = Project::new();
    for name in ["node", "ruby", "deno"] {
        program(&project.beside("first").join(name), "#!/bin/sh\n");
    }
    project.file("x.js", "");
    for (words, said) in [
        (&["node", "-e", "require('./x')"][..], "`./` in the code for `node`"),
        (&["node", "-e", "console.log(1)"], ""),
        (&["ruby", "-e", "require_relative 'x'"], "`require_relative` in the code for `ruby`"),
        (&["ruby", "-e", "puts 1"], ""),
        (&["deno", "eval", "import('./x.js')"], "`./` in the code for `deno`"),
        (&["python3", "-c", "import json"], ""),
        (&["python3", "-c", "exec(open('x').read())"], "`exec` in the code for `python3`"),
    ] {
        let (command, args) = words.split_first().unwrap();
        let line = words.iter().map(|word| ollm_shell::shell_word(word)).collect::<Vec<_>>().join(" ");
        for hook in [project.command(command, args), project.line(&line)] {
            let found = project.proposal(&hook).uncovered().join("; ");
            assert!(found.starts_with(said) && found.is_empty() == said.is_empty(), "{words:?}: {found}");
        }
    }
}

#[test]
fn code_for_python_finds_no_module_of_the_working_folder_but_in_the_copy() {
    let project = Project::new();
    let told = |code: &str| {
        let hook = project.command("python3", &["-c", code]);
        project.approve(&hook);
        let trusted = project.check(&project.trust(), &hook).unwrap();
        trusted.variables().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(told("import helper"), ["PYTHONSAFEPATH"]);
    project.file("helper.py", "");
    assert_eq!(told("import helper"), ["OLLM_COPY_DIR", "PYTHONSAFEPATH", "PYTHONPATH"]);
    fs::remove_file(project.root.join("helper.py")).unwrap();
    assert_eq!(told("exec(input())"), [""; 0], "whoever approves that wants it to find what it looks for");
}

#[test]
fn a_python_that_cannot_be_kept_from_the_working_folder_is_told() {
    let project = Project::new();
    project.file("helper.py", "");
    for (name, is_told) in [("python3.9", true), ("python3.12", false), ("python3", true)] {
        program(&project.beside("first").join(name), "#!/bin/sh\n");
        for hook in [project.command(name, &["-c", "import helper"]), project.line(&format!("{name} -m helper"))] {
            let found = project.proposal(&hook).uncovered().join("; ");
            assert_eq!(found.contains("is not known to be Python 3.11 or newer"), is_told, "{name}: {found}");
        }
    }
}
