use std::collections::BTreeSet;
use std::fs;

use super::super::{CommandLine, Places, files_covered};

/// The files that a line covers in addition to `run.sh`, and the parts that it leaves uncovered.
fn covered(line: &str, script: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    fs::create_dir(top.join("lib")).unwrap();
    for (file, text) in [("run.sh", script), ("lib/a", ":\n"), ("lib/b", ":\n"), ("a", ":\n")] {
        fs::write(top.join(file), text).unwrap();
    }
    let places = Places {
        written: top.clone(),
        top: top.clone(),
        here: vec![top.clone()],
        own: Vec::new(),
        search_path: "/usr/bin:/bin".into(),
    };
    let folders = vec![("HOME", top.clone())];
    let line = CommandLine { shell: Some(line.to_owned()), folders, ..CommandLine::default() };
    let coverage = files_covered(&line, None, &places, &mut |_| {}).unwrap();
    let files: BTreeSet<String> =
        coverage.files.iter().map(|file| file.strip_prefix(&top).unwrap().display().to_string()).collect();
    let files: Vec<String> = files.into_iter().filter(|file| file != "run.sh").collect();
    (files.join(" "), coverage.uncovered.join("; "))
}

#[test]
fn files_that_a_script_runs_are_covered() {
    for (script, files) in [
        (". lib/a; ./lib/b 'c d' \"e $X\" >a", "lib/a lib/b"),
        ("if test -f a; then\n  source lib/a\nelse sh ./lib/b\nfi", "lib/a lib/b"),
        ("X=lib; . \"$X/a\" # lib/b", "lib/a"),
        (". \"${X:-lib}/a\"", "lib/a"),
        ("echo \"$(. lib/b)\" <(./a)", "a lib/b"),
        ("f() { . lib/a; }; case x in x) ./lib/b;; esac", "lib/a lib/b"),
        ("sudo -E env X=1 timeout 5 sh lib/a", "lib/a"),
        ("sh -c 'sh -c \". lib/a\"'", "lib/a"),
        ("cat <<'END'\n. lib/a\nEND\n", ""),
        ("cd lib && . ./b", "lib/b"),
        (". \"$(dirname \"$0\")/lib/a\"", "lib/a"),
        ("HERE=$(CDPATH= cd -- \"$(dirname -- \"$0\")/lib\" >/dev/null && pwd -P || exit 1)\n$HERE/a", "lib/a"),
        (". ${0%/*}/lib/a; . ${BASH_SOURCE[0]%/*}/lib/b", "lib/a lib/b"),
        ("S=$(readlink -f \"${BASH_SOURCE[0]:-$0}\"); . \"$(dirname \"$S\")/lib/a\"", "lib/a"),
        (". \"$(git rev-parse --show-toplevel)/lib/a\"", "lib/a"),
        (". ~/lib/a; ~+/lib/b", "lib/a lib/b"),
        ("X=~/lib; . $X/a; export Y=~/lib; sh $Y/b", "lib/a lib/b"),
        ("X='~/lib'; . $X/a; echo a~/lib/b \"~/lib/b\" ~x", ""),
    ] {
        assert_eq!(covered("sh run.sh", script), (files.to_owned(), String::new()), "{script}");
    }
}

#[test]
fn what_depends_on_the_run_or_has_no_place_in_the_copy_is_uncovered() {
    for (script, files, said) in [
        (". $X/a", "", "`${X}/a` in `run.sh`"),
        (". \"$(pick)\"", "", "`$(…)` in `run.sh`"),
        ("X=lib; X=$(pick); . $X/a", "lib/a", "`lib/a` in `run.sh`"),
        ("X=lib; test -f b && X=.; . $X/a", "lib/a", "`lib/a` in `run.sh`"),
        ("X=lib; (X=.); . $X/a", "lib/a", ""),
        ("X=.; X=lib; . $X/a", "lib/a", ""),
        ("for f in a b; do . lib/$f; done", "", "`lib/${f}` in `run.sh`"),
        ("PATH=$PATH:~/lib; tool", "", "`lib` is a folder"),
        (". ~bob/lib/a", "", "`~bob/lib/a` in `run.sh`"),
        ("echo `. lib/a`", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
        ("sh <<'END'\n. lib/a\nEND\n", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
        ("bash <<< '. lib/a'", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
        ("X=1; sh -c \". lib/a; echo $X\"", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
        ("cd lib && . ./a", "a lib/a", "`./a` may mean a file in more than one folder"),
        ("cd \"$X\" && . ./a", "a", "`./a` in `run.sh` is a name that is made up"),
        ("cd /tmp; . ./a", "a", "`./a` in `run.sh` is a name that is made up"),
        ("(cd \"$X\"); Y=$(cd $X; pwd); . ./a", "a", ""),
    ] {
        let (found, uncovered) = covered("sh run.sh", script);
        assert_eq!(found, files, "{script}");
        assert!(uncovered.starts_with(said) && uncovered.is_empty() == said.is_empty(), "{script}: {uncovered}");
    }
}

/// Each text runs project code without naming it, or by a name that is only known at run time.
#[test]
fn what_a_script_runs_without_naming_it_is_uncovered_as_in_a_line() {
    for text in [
        "cat lib/a | sh",
        "sed s/x/y/ lib/a | bash",
        "cat lib/a | python3 -",
        "exec < lib/a; sh",
        "sh < \"$X\"",
        "eval \"$(cat lib/a)\"",
        "eval \"$(<lib/a)\"",
        "bash -c \"$(cat lib/a)\"",
        "bash <(cat lib/a)",
        "sh /dev/stdin < lib/a",
        "cp lib/a /tmp/x && sh /tmp/x",
        "python3 -c \"exec(open('lib/a').read())\"",
        "npm run x",
        "make -s",
        "npx is-safe",
        "python3 -m pytest",
        "eslint .",
        "./gradlew check",
        "for f in lib/*; do sh $f; done",
        "find lib -name a -exec sh {} \\;",
        "ls lib/* | xargs -n1 sh",
        "r() { sh \"$1\"; }; r lib/a",
        "r='sh lib/a'; $r",
        "git -c alias.x='!sh lib/a' x",
        "PATH=\"$X/bin:$PATH\" tool",
    ] {
        for (line, script) in [(text, ""), ("sh run.sh", text)] {
            let (_, uncovered) = covered(line, script);
            assert!(!uncovered.is_empty(), "{line}: {text}");
            assert!(line == text || uncovered.contains("`run.sh`"), "{text}: {uncovered}");
        }
    }
}

#[test]
fn a_file_that_lies_in_a_folder_of_every_user_is_uncovered_also_while_it_is_there() {
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    let line = format!("cp lib/a {0} && sh {0}", file.path().display());
    for (line, script) in [(line.as_str(), ""), ("sh run.sh", &line)] {
        let (_, uncovered) = covered(line, script);
        assert!(uncovered.contains("made up when it runs"), "{line}: {uncovered}");
    }
}

#[test]
fn what_a_script_plainly_runs_leaves_nothing_uncovered() {
    for (script, files) in [
        ("sh < lib/a", "lib/a"),
        ("eval '. lib/a' 2>&1 | cat", "lib/a"),
        ("T='git status'; $T --short", ""),
        ("SUDO=; $SUDO ls \"$1\"; ${EDITOR_LIKE:-ls} x", ""),
        ("JQ=$(command -v jq); \"$JQ\" -r .x", ""),
        ("INPUT=$(cat); echo \"$INPUT\" | jq -r .x | grep \"$1\"", ""),
        ("python3 -c 'import json,sys; print(json.load(sys.stdin))'", ""),
        ("cd \"$(mktemp -d)\" && /usr/bin/env ls", ""),
        ("f() { git diff \"$1\"; }; f x; case $1 in *.rs) echo \"$f\";; esac", ""),
        ("for f in *.rs; do rustfmt --check \"$f\" || exit 2; done", ""),
        ("PATH=\"$HOME/.cargo/bin:$PATH\"; find . -name '*.x' -exec rm {} +", ""),
    ] {
        let (found, uncovered) = covered("sh run.sh", script);
        let said = if script.starts_with("eval") { "`lib/a` in `run.sh` cannot be taken from the copy" } else { "" };
        assert_eq!(found, files, "{script}");
        assert!(uncovered.starts_with(said) && uncovered.is_empty() == said.is_empty(), "{script}: {uncovered}");
    }
}

#[test]
fn text_that_cannot_be_read_is_uncovered() {
    let deep = format!("{}:{}", "( ".repeat(300), " )".repeat(300));
    let (open, close) = ("( ".repeat(60), " )".repeat(60));
    let deep_code = format!("{open}sh -c '{open}:{close}'{close}");
    let deep_word = format!("X={}x{}", "${X:-".repeat(300), "}".repeat(300));
    for text in [
        "echo 'open",
        "if true; then :",
        "case x in x) :",
        "echo $[1]",
        "cat {x}<<END\n",
        &deep,
        &deep_code,
        &deep_word,
    ] {
        for (line, script) in [(text, ""), ("sh run.sh", text)] {
            let (_, uncovered) = covered(line, script);
            assert!(uncovered.contains("cannot be read as shell text"), "{line}: {uncovered}");
        }
    }
    let (_, uncovered) = covered("sh run.sh", "sh -c 'echo \"open'");
    assert!(uncovered.starts_with("`run.sh` cannot be read as shell text (line 1: a double quote"), "{uncovered}");
}

#[test]
fn a_value_cannot_grow_without_end() {
    let doubled = format!("X=aaaaaaaa\n{}. $X", "X=$X$X\n".repeat(64));
    let long = format!("X={}\n", "a".repeat(4096));
    let many: Vec<String> = (0..20_000).map(|index| format!("A{index}=$X")).collect();
    for script in [doubled, format!("{long}{}\n. $A19999", many.join("\n"))] {
        let (_, uncovered) = covered("sh run.sh", &script);
        assert!(uncovered.contains("made up when it runs"), "{uncovered}");
    }
}

/// Files that source one another, and text that nests endlessly: both are read to the end, on the stack of a
/// thread.
#[test]
fn nothing_that_nests_or_leads_back_to_itself_exhausts_the_stack() {
    let pairs = [
        ("bash -c \"", "\""),
        ("eval '", "'"),
        ("$(", ")"),
        ("${a:-", "}"),
        ("( ", " )"),
        ("if ", "; then x; fi"),
        ("sudo env ", ""),
        ("find . -exec ", " \\;"),
        ("xargs ", ""),
        ("trap '", "'"),
        ("f() { ", "; }"),
        ("cat <(", ")"),
        ("x=$x ", ""),
        (". ./run.sh; ", ""),
    ];
    let look = move || {
        for (open, close) in pairs {
            for count in [60, 200, 2000] {
                let script = format!("{}. ./lib/a{}\n", open.repeat(count), close.repeat(count));
                covered("sh run.sh", &script);
            }
        }
        covered(". ./run.sh", "x=$(cat <(echo $x)); HOME=~/x; PWD=~+; . $x; . ~/a; . ./run.sh; sh run.sh\n");
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(look).unwrap().join().unwrap();
}
