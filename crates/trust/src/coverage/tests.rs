use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook};
use std::sync::Arc;

use crate::Term;
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
        let mut env = Vec::new();
        trusted.lead_to_copy(&[], &mut env);
        env.into_iter().filter_map(|(name, _)| name.into_string().ok()).collect::<Vec<_>>()
    };
    assert_eq!(told("import helper"), ["PYTHONSAFEPATH"]);
    project.file("helper.py", "");
    assert_eq!(told("import helper"), ["PYTHONDONTWRITEBYTECODE", "OLLM_COPY_DIR", "PYTHONSAFEPATH", "PYTHONPATH"]);
    fs::remove_file(project.root.join("helper.py")).unwrap();
    assert_eq!(told("exec(input())"), [""; 0], "who approves that wants it to find what it looks for");
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

/// Approves a hook, changes something, and says whether the approval still holds.
fn still_holds(project: &Project, hook: &Arc<Hook>, change: impl FnOnce()) -> bool {
    project.approve(hook);
    let trust = project.trust();
    project.check(&trust, hook).unwrap();
    change();
    project.check(&trust, hook).is_ok()
}

#[test]
fn what_a_link_of_the_project_leads_to_is_covered_and_runs_from_the_copy() {
    type Declare = fn(&Project) -> Arc<Hook>;
    let ways: [(&str, Declare); 5] = [
        ("script", |project| {
            let script = project.root.join("tool.sh");
            let command = script.display().to_string();
            project.hook(ActionSpec::Command(CommandSpec { command, args: Vec::new(), script: Some(script) }), &[])
        }),
        ("program", |project| project.command(&project.root.join("tool.sh").display().to_string(), &[])),
        ("argument", |project| project.command("sh", &["tool.sh"])),
        ("line", |project| project.line("sh ./tool.sh")),
        ("sourced", |project| {
            project.file("run.sh", ". ./tool.sh\n");
            project.line("sh run.sh")
        }),
    ];
    for (way, declare) in ways {
        let project = Project::new();
        let outside = project.beside("tools/real.sh");
        program(&outside, "#!/bin/sh\necho good\n");
        symlink(&outside, project.root.join("tool.sh")).unwrap();
        let hook = declare(&project);
        let proposal = project.proposal(&hook);
        assert_eq!(proposal.uncovered(), [""; 0], "{way}");
        let copy = proposal.copy_of(&project.root.join("tool.sh")).unwrap();
        assert!(fs::symlink_metadata(&copy).unwrap().is_file(), "{way}");
        assert_eq!(fs::read_to_string(copy).unwrap(), "#!/bin/sh\necho good\n", "{way}");
        assert!(still_holds(&project, &hook, || {}), "{way}");
        assert!(!still_holds(&project, &hook, || program(&outside, "#!/bin/sh\necho evil\n")), "{way}");
        let other = project.beside("tools/other.sh");
        program(&other, "#!/bin/sh\necho other\n");
        let relink = || {
            fs::remove_file(project.root.join("tool.sh")).unwrap();
            symlink(&other, project.root.join("tool.sh")).unwrap();
        };
        assert!(!still_holds(&project, &hook, relink), "{way}");
    }
}

#[test]
fn a_program_that_a_link_leads_to_is_known_by_its_place_only_where_the_system_provides_it() {
    for mode in [0o755, 0o777] {
        let project = Project::new();
        let tool = project.beside("tools/real");
        program(&tool, "\x7fELF\0 good");
        fs::set_permissions(&tool, Permissions::from_mode(mode)).unwrap();
        if mode == 0o755 && chown(&tool, Some(0), None).is_err() {
            continue;
        }
        symlink(&tool, project.root.join("tool")).unwrap();
        let hook = project.command(&project.root.join("tool").display().to_string(), &[]);
        let change = || fs::write(&tool, "\x7fELF\0 evil").unwrap();
        assert_eq!(still_holds(&project, &hook, change), mode == 0o755, "{mode:o}");
    }
}

#[test]
fn links_in_a_folder_of_modules_are_covered_or_told() {
    let project = Project::new();
    let outside = project.beside("elsewhere");
    program(&outside.join("mod.py"), "x = 1\n");
    project.file("lib/own.py", "");
    symlink(outside.join("mod.py"), project.root.join("lib/mod.py")).unwrap();
    let hook = project.line("PYTHONPATH=lib python3 -c 'import own'");
    let change = || fs::write(outside.join("mod.py"), "x = 2\n").unwrap();
    assert_eq!(project.proposal(&hook).uncovered(), [""; 0]);
    assert!(!still_holds(&project, &hook, change));
    symlink(&outside, project.root.join("lib/pkg")).unwrap();
    assert_eq!(project.proposal(&hook).uncovered(), ["`lib/pkg` is a folder, and anything in it may run"]);
    // The whole folder may be a link.
    symlink(&outside, project.root.join("all")).unwrap();
    let hook = project.line("PYTHONPATH=all python3 -c 'import mod'");
    let change = || fs::write(outside.join("mod.py"), "x = 3\n").unwrap();
    assert!(!still_holds(&project, &hook, change));
}

/// Whether a line can be approved for good, and still runs after a file has changed.
fn escapes(line: &str, files: &[(&str, &str)]) -> bool {
    let project = Project::new();
    for (name, text) in files {
        project.file(name, text);
    }
    let hook = project.line(line);
    let proposal = project.proposal(&hook);
    if project.trust().approve(&*hook, &proposal, Term::Always, &project.context()).is_err() {
        return false;
    }
    let (changed, text) = files.last().unwrap();
    let change = || drop(project.file(changed, &format!("{text}# other\n")));
    still_holds(&project, &hook, change)
}

#[test]
fn no_file_that_an_argument_names_as_code_changes_unseen() {
    for line in [
        "awk -f s/x /dev/null",
        "awk -fs/x /dev/null",
        "sed -f s/x",
        "sed --file=s/x",
        "sed -nf s/x",
        "vim -es -S s/x -c q",
        "vim -c 'source s/x'",
        "make -f s/x",
        "jq -f s/x",
        "perl s/x",
        "psql -f s/x",
        "sqlite3 :memory: '.read s/x'",
        "tclsh s/x",
        "bash --rcfile s/x -ic true",
        "F=s/x; awk -f \"$F\"",
        "awk -f \"$X\"",
    ] {
        assert!(escapes("true", &[("s/x", "")]), "the test would not see it");
        assert!(!escapes(line, &[("s/x", "")]), "{line}");
    }
}

#[test]
fn no_file_that_a_program_is_led_to_changes_unseen() {
    for line in [
        "env -C s sh x",
        "env --chdir=s sh x",
        "sudo -u root sh s/x",
        "env -S 'sh s/x'",
        "sh s/?",
        "sh s/[x]",
        "sh s/{x,y}",
        ". s/*",
        "find s -type f -exec sh {} \\;",
        "find s -type f -exec {} +",
        "find s -execdir sh x \\;",
        "flock /tmp/lock sh s/x",
        "run-parts s",
        "ls s/* | xargs sh",
        "ls s/* | xargs -I% sh %",
        "echo true | xargs -0 sh -c",
        "ls s/* | parallel sh",
    ] {
        assert!(!escapes(line, &[("s/x", "")]), "{line}");
    }
}

#[test]
fn no_file_in_a_folder_where_code_is_looked_up_changes_unseen() {
    for line in [
        "perl -Is -Mx -e 1",
        "perl -I s -Mx -e 1",
        "ruby -Is -rx -e 1",
        "PATH=$PWD/s:$PATH; x",
        "PATH=s:$PATH x",
        "export PATH=\"$PWD/s:$PATH\"; x",
        "cd s; PATH=.:$PATH; x",
        "PATH=:$PATH; x",
        "PATH=$UNKNOWN/s:$PATH; x",
        "PERL5LIB=s; export PERL5LIB; perl -Mx -e 1",
        "git -c core.hooksPath=s commit",
        "git -c include.path=../s/x y",
        "git -c alias.y='!sh s/x' y",
        "git y",
        "trap 'sh s/x' EXIT",
    ] {
        assert!(!escapes(line, &[("s/x", "")]), "{line}");
    }
    for first in ["#!/usr/bin/env -S python3 -m x", "#!/usr/bin/perl -Is", "#!/usr/bin/env -S perl -I s"] {
        assert!(!escapes("./g", &[("g", first), ("s/x.pm", "")]), "{first}");
    }
    assert!(escapes("./g", &[("g", "#!/usr/bin/env -S busybox sh\n"), ("s/x", "")]));
    for text in ["use lib \"s\"; use x;", "use lib qw(s); use x;", "unshift @INC, 's'; require x;"] {
        assert!(!escapes("perl g.pl", &[("g.pl", text), ("s/x.pm", "")]), "{text}");
    }
}

#[test]
fn no_file_that_a_script_executes_changes_unseen() {
    for (line, text) in [
        ("python3 g.py", "exec(open('s/x').read())"),
        ("python3 g.py", "p = 's/' + 'x'\nexec(open(p).read())"),
        ("python3 g.py", "exec(compile(open('s/x').read(), 'x', 'exec'))"),
        ("python3 g.py", "import importlib\nimportlib.import_module('s' + '.x')"),
        ("python3 g.py", "import importlib as i\ni.import_module(name)"),
        ("python3 g.py", "__import__(name)"),
        ("python3 g.py", "import runpy\nrunpy.run_path('s/x')"),
        ("python3 g.py", "import runpy\nrunpy.run_path(name)"),
        ("python3 g.py", "import subprocess\nsubprocess.run([\n  'sh', str(a),\n  's/x'])"),
        ("python3 g.py", "import os\nos.system('sh s/x')"),
        ("python3 g.py", "import sys\nsys.path.insert(0, 's')\nimport x"),
        ("python3 g.py", "import os, sys\nsys.path.append(os.getcwd())\nimport x"),
        ("python3 g.py", "import os\nos.system('sh ' + 's' + '/x')"),
        ("python3 g.py", "import os\nd = f()\nos.system(f'sh {d}/x')"),
        ("python3 g.py", "import os\nos.system('sh %s/x' % d)"),
        ("python3 g.py", "import os, subprocess\nsubprocess.run(['sh', os.path.join('s', 'x')])"),
        ("python3 g.py", "import os, subprocess as p\nc = ['sh']\nc.append('s' + '/x')\np.run(c)"),
        ("python3 g.py", "import subprocess\nsubprocess.run(['make', '-s'])"),
        ("python3 g.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pytest'])"),
        ("python3 g.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', code])"),
        ("python3 g.py", "import subprocess\ndef go(cmd):\n    subprocess.check_output(cmd, shell=True)\n"),
        ("python3 g.py", "import os\nos.execvp('sh', ['sh', name])"),
        ("python3 g.py", "import os\nos.spawnlp(os.P_WAIT, 'sh', 'sh', name)"),
        ("python3 g.py", "import os\ngetattr(os, 'sys' + 'tem')('sh ' + 's/' + 'x')"),
        ("python3 g.py", "import os\nlist(map(os.system, [a]))"),
        ("python3 g.py", "from os import system as say\nsay('sh ' + a)"),
        ("python3 g.py", "import sys\nsys.path.append('s' + '')\n__import__('x')"),
        ("python3 g.py", "import sys\nsys.path += [d + 's']\nimport x"),
        ("node g.js", "require('child_process').execSync('make -s')"),
        ("node g.js", "require('child_process').exec('sh s/' + 'x')"),
        ("node g.js", "const cp = require('node:child_process'); cp.exec(`sh ${d}/x`)"),
        ("node g.js", "const { exec: run } = require('child_process'); run('sh s/' + 'x')"),
        ("node g.js", "import { exec } from 'child_process'; const run = promisify(exec); run('sh s/' + 'x')"),
        ("node g.js", "import { spawn } from 'node:child_process'; spawn('sh', [d + '/x'])"),
        ("node g.js", "import { spawn } from 'node:child_process'; spawn(a, b)"),
        ("node g.js", "new (require('worker_threads').Worker)('./s/x')"),
        ("node g.js", "new Worker('./s' + '/x')"),
        ("node g.js", "const r = require; r('./s' + '/x')"),
        ("node g.js", "module.require('./s' + '/x')"),
        ("node g.js", "eval(fs.readFileSync('s' + '/x'))"),
        ("node g.mjs", "import m from 'module'; m.createRequire(process.cwd() + '/x')('./s/x')"),
        ("node g.mjs", "import m from 'module'; const r = m.createRequire(import.meta.url); r('./s' + '/x')"),
        ("node g.js", "require('child_process').execSync('sh s/x')"),
        ("ruby g.rb", "load path"),
        ("ruby g.rb", "require_relative \"s/#{name}\""),
        ("ruby g.rb", "system 'sh s/x'"),
        ("perl g.pl", "do $file;"),
        ("perl g.pl", "require $file;"),
        ("perl g.pl", "print `sh s/x`;"),
        ("perl g.pl", "open(F, 'sh s/x |');"),
        ("perl g.pl", "system(\"sh s/x\");"),
    ] {
        let script = line.rsplit(' ').next().unwrap();
        assert!(!escapes(line, &[(script, text), ("s/x", "")]), "{text}");
    }
}

#[test]
fn ordinary_scripts_are_covered() {
    for (line, text) in [
        (
            "python3 g.py",
            "import re, subprocess, sys\nre.compile('x')\nsubprocess.run(['git', 'diff'])\nopen('data.json')",
        ),
        ("python3 g.py", "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\nprint(sys.path)"),
        ("python3 g.py", "import json, sys\nd = json.load(sys.stdin)\nsys.exit(2 if 'rm -rf' in str(d) else 0)"),
        (
            "python3 g.py",
            "import asyncio, subprocess, platform\nasyncio.run(main())\nplatform.system()\nget = getattr(args, name, None)\nx = \
             getattr(os, 'O_NOFOLLOW', 0)\n# calls subprocess.run: see there\n",
        ),
        (
            "python3 g.py",
            "import subprocess\ndef git(*args):\n    return subprocess.run(['git', *args], check=True).stdout\nr = \
             git('diff')\nsubprocess.run(f'git log {r}', shell=True)\ncmd = ['ruff', 'check', '--quiet']\nsubprocess.run(cmd + \
             files)\n",
        ),
        (
            "python3 g.py",
            "import sys\nfrom os import path as p\nsys.path.insert(0, '/usr/share/tool')\nprint(sys.path[0])",
        ),
        ("node g.js", "const m = /x/.exec('data'); require('child_process').execSync('git diff')"),
        (
            "node g.mjs",
            "import { spawnSync, exec } from 'node:child_process';\nconst git = spawnSync('git', ['diff', x], { encoding: \
             'utf8' });\nexec(`git log ${x}`, (error) => {});\nfor (const m of list) { re.exec(m); }\n",
        ),
        (
            "node g.mjs",
            "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);\nconst fs = \
             require('fs');\n",
        ),
        ("ruby g.rb", "require 'json'\n# load the data\n[1].each do |x|\n  puts x\nend\ninclude Comparable\n"),
        ("perl g.pl", "use strict;\nrequire Foo;\ndo { print 1 } while 0;\nopen(F, 'data.json');"),
    ] {
        let project = Project::new();
        let script = line.rsplit(' ').next().unwrap();
        project.file("data.json", "");
        project.file(script, text);
        let found = project.proposal(&project.line(line)).uncovered().join("; ");
        assert_eq!(found, "", "{text}");
    }
}

#[test]
fn a_command_behind_another_program_runs_from_the_copy() {
    let project = Project::new();
    project.file("s/x", "");
    for words in [&["timeout", "5", "sh", "s/x"][..], &["env", "-u", "A", "sh", "s/x"], &["flock", "l", "sh", "s/x"]] {
        let (program, args) = words.split_first().unwrap();
        let hook = project.command(&format!("/usr/bin/{program}"), args);
        assert_eq!(project.proposal(&hook).uncovered(), [""; 0], "{words:?}");
        project.approve(&hook);
        let trusted = project.check(&project.trust(), &hook).unwrap();
        assert_ne!(trusted.code_argument("s/x").unwrap(), "s/x", "{words:?}");
    }
}

#[test]
fn an_option_that_names_code_is_led_to_the_copy() {
    let project = Project::new();
    project.file("s/x", "");
    let text = "awk -fs/x data; sed --file=s/x";
    let hook = project.line(text);
    assert_eq!(project.proposal(&hook).uncovered(), [""; 0]);
    project.approve(&hook);
    let trusted = project.check(&project.trust(), &hook).unwrap();
    let line = trusted.shell_line(text);
    assert_eq!(line, "awk '-f'\"${OLLM_COPY_DIR}\"/'x' data; sed '--file='\"${OLLM_COPY_DIR}\"/'x'");
}

#[test]
fn ordinary_lines_are_covered() {
    for line in [
        "python3 guard.py",
        "sh scripts/check.sh",
        "node hook.js",
        "jq -r .x",
        "jq -e '.data.args' data.json",
        "grep -q x data.json",
        "sed -n 1p data.json | awk '{print $1}'",
        "git diff --stat",
        "git -c color.ui=false -C . log -1",
        "PATH=$HOME/.local/bin:/usr/bin:$PATH; ruff check .",
        "export FOO=bar; trap 'rm -f out.txt' EXIT; ls",
        "timeout 5 sh scripts/check.sh",
        "find . -name '*.py' -exec grep -l x {} +",
        "find . -name '*.py' -exec sh -c 'echo \"$1\"' _ {} \\;",
        "git diff --name-only | xargs -r grep -n TODO",
        "[ -n \"$X\" ] && ls *.json",
        "test -f data.json && rm -f out.txt",
    ] {
        let project = Project::new();
        for name in ["guard.py", "scripts/check.sh", "hook.js", "data.json"] {
            project.file(name, "");
        }
        let hook = project.line(line);
        assert_eq!(project.proposal(&hook).uncovered(), [""; 0], "{line}");
        let change = || drop(project.file("data.json", "{}"));
        assert!(still_holds(&project, &hook, change), "{line}");
    }
}

#[test]
fn options_in_variables_that_look_code_up_are_told() {
    let project = Project::new();
    project.file("scripts/f.rb", "1\n");
    project.file("scripts/Guard.pm", "1;\n");
    for line in [
        "PERL5OPT='-Iscripts -MGuard' perl -e 1",
        "RUBYOPT=-r./scripts/f ruby -e 1",
        "export PERL5OPT=-Iscripts; perl -e 1",
    ] {
        let found = project.proposal(&project.line(line)).uncovered().join("; ");
        assert!(found.contains("to code that it looks up when it runs"), "{line}: {found}");
    }
    let found = project.proposal(&project.line("RUBYOPT=-w ruby -e 1")).uncovered().join("; ");
    assert_eq!(found, "");
}

#[test]
fn sources_of_programs_are_covered_and_what_they_include_is_told() {
    let project = Project::new();
    for (line, file) in [("go run ./f.go", "f.go"), ("gcc -x c f.c -o z && ./z", "f.c"), ("java F.java", "F.java")] {
        project.file(file, "// one\n");
        let hook = project.line(line);
        assert_ne!(project.proposal(&hook).uncovered(), [""; 0], "{line}");
        assert!(!still_holds(&project, &hook, || drop(project.file(file, "// two\n"))), "{line}");
    }
}

#[test]
fn what_a_shell_sources_is_covered_whichever_shell_it_is() {
    for shell in ["sh", "rbash", "mksh", "yash", "ksh93", "bash-5.2"] {
        let project = Project::new();
        program(&project.beside("first").join(shell), "#!/bin/sh\n");
        project.file("guard.sh", ". ./lib.sh\n");
        for hook in [project.command(shell, &["guard.sh"]), project.line(&format!("{shell} guard.sh"))] {
            project.file("lib.sh", "echo good\n");
            let change = || drop(project.file("lib.sh", "echo evil\n"));
            assert!(!still_holds(&project, &hook, change), "{shell}");
        }
    }
}

#[test]
fn code_for_a_shell_with_another_language_is_covered_or_told() {
    for shell in ["fish", "tcsh", "nu"] {
        let project = Project::new();
        program(&project.beside("first").join(shell), "#!/bin/sh\n");
        project.file("lib.fish", "echo good\n");
        let hook = project.command(shell, &["-c", "source ./lib.fish"]);
        let proposal = project.proposal(&hook);
        let change = || drop(project.file("lib.fish", "echo evil\n"));
        assert!(!proposal.uncovered().is_empty() || !still_holds(&project, &hook, change), "{shell}");
        let hook = project.command(shell, &["lib.fish"]);
        assert!(!still_holds(&project, &hook, || drop(project.file("lib.fish", "echo other\n"))), "{shell}");
    }
}

#[test]
fn what_a_variable_has_a_program_run_is_covered() {
    let project = Project::new();
    for line in [
        "BASH_ENV=wrap bash -c true",
        "GIT_SSH_COMMAND='sh ./wrap -v' git fetch",
        "GIT_EXTERNAL_DIFF=./wrap git diff",
        "EDITOR=./wrap git commit",
        "LESSOPEN='|./wrap %s' less x",
        "export PAGER=./wrap; git log",
    ] {
        project.file("wrap", ". ./lib.sh\n");
        project.file("lib.sh", "echo good\n");
        let hook = project.line(line);
        assert!(!still_holds(&project, &hook, || drop(project.file("lib.sh", "echo evil\n"))), "{line}");
    }
    for line in ["GIT_SSH_COMMAND='sh ./wrap -v' git fetch", "export PAGER='./wrap -x'; git log"] {
        let found = project.proposal(&project.line(line)).uncovered().join("; ");
        assert!(found.contains("`wrap` cannot be taken from the copy"), "{line}: {found}");
    }
    project.file("lib/x.rb", "");
    for name in ["RUBYLIB", "NODE_PATH", "GIT_EXEC_PATH", "PYTHONHOME"] {
        let found = project.proposal(&project.line(&format!("{name}=lib git status"))).uncovered().join("; ");
        assert!(found.contains("`lib` is a folder"), "{name}: {found}");
    }
}

#[test]
fn every_function_that_starts_a_program_is_known_in_code() {
    let project = Project::new();
    project.file("evil", "echo\n");
    for call in [
        "os.execvpe('sh', ['sh', name], env)",
        "os.posix_spawnp('sh', ['sh', name], env)",
        "subprocess.getoutput(name)",
    ] {
        project.file("guard.py", &format!("import os, subprocess, sys\nname = sys.argv[1]\nenv = {{}}\n{call}\n"));
        let found = project.proposal(&project.command("python3", &["guard.py"])).uncovered().join("; ");
        assert!(!found.is_empty(), "{call}");
    }
}
