//! The reader against real shells: the words it sees are the words a program is given.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests as well")]

use std::path::Path;
use std::process::{Command, Stdio};

use ollm_shell::{Body, List, ParseError, Piece, Word, parse, shell_word, split};
use proptest::prelude::*;

/// Scraps of words and of what stands between them; nothing in them is expanded.
const SCRAPS: &[&str] = &[
    "a", "b c", " ", "  ", "\t", "'", "'", "\"", "\"", "\\", "\\ ", "\\'", "\\\"", "\\\\", "''", "\"\"", "'a b'",
    "\"a b\"", "'\"'", "\"'\"", "\\a", "\"\\a\"", "\"\\\"\"", "\"\\\\\"", "-n", "=", "x=1", ",", ".", "/", "%s", "é",
    "日本", "#", " #", "a#b", "\u{fffc}", "\u{1}", "\u{7f}", "!", "^", "+", ":", "@", "}", "{a}", "in", "if", "\\\n",
    "\"\\\n\"", "'\n'",
];

/// What only a script has: operators, redirections, line ends, a here-document.
const OPERATORS: &[&str] =
    &["\n", ";", "&&", "||", "|", " 2>/dev/null ", "<<E\nit's\nE\n", "(", ")", "{ ", "; }", "! "];

fn shells() -> impl Iterator<Item = &'static str> {
    ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists())
}

/// The words of every command the shell runs, if it takes the text for a script that runs `p` alone.
fn given(shell: &str, script: &str) -> Option<Vec<Vec<String>>> {
    let function = "p() { printf '%s\\0' $# \"$@\"; }\nset -f\n";
    let output = Command::new(shell)
        .args(["-c", &format!("{function}{script}")])
        .env_clear()
        .env("PATH", "/nowhere")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.stderr.is_empty() {
        return None;
    }
    let stdout = String::from_utf8(output.stdout).ok()?;
    let mut fields = stdout.split_terminator('\0').map(str::to_owned);
    let mut commands = Vec::new();
    while let Some(count) = fields.next() {
        commands.push(fields.by_ref().take(count.parse().unwrap()).collect());
    }
    Some(commands)
}

/// The words of every command in the tree, if they are all text.
fn read(script: &str) -> Option<Vec<Vec<String>>> {
    let list = parse(script, 0).ok()?;
    let [step] = list.as_slice() else { return None };
    let [command] = step.pipeline.as_slice() else { return None };
    let Body::Simple { assigns, words } = &command.body else { return None };
    let words: Option<Vec<String>> = words.iter().map(text).collect();
    assigns.is_empty().then(|| vec![words.unwrap_or_default().into_iter().skip(1).collect()])
}

fn text(word: &Word) -> Option<String> {
    let piece = |piece: &Piece| match piece {
        Piece::Plain(text) | Piece::Quoted(text) => Some(text.clone()),
        _ => None,
    };
    word.iter().map(piece).collect()
}

/// Whether some shells may take braces apart, which the reader leaves to others.
fn may_spread(text: &str) -> bool {
    text.contains('{') && text.contains('}') && (text.contains(',') || text.contains(".."))
}

fn line() -> impl Strategy<Value = String> {
    let scraps = proptest::collection::vec(proptest::sample::select(SCRAPS), 0..10);
    scraps.prop_map(|scraps| format!("p {} end", scraps.concat()))
}

fn script() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        6 => proptest::sample::select(SCRAPS).prop_map(str::to_owned),
        2 => proptest::sample::select(OPERATORS).prop_map(str::to_owned),
        2 => Just("p ".to_owned()),
    ];
    proptest::collection::vec(scrap, 0..12).prop_map(|scraps| format!("p {}", scraps.concat()))
}

/// All words of all simple commands, in the order of the text.
fn all(list: &List, found: &mut Vec<Vec<String>>) -> Option<()> {
    for command in list.iter().flat_map(|step| &step.pipeline) {
        match &command.body {
            Body::Simple { words, assigns } if assigns.is_empty() => {
                found.push(words.iter().map(text).collect::<Option<_>>()?);
            }
            Body::Branches { lists, .. } => lists.iter().try_for_each(|list| all(list, found))?,
            Body::Subshell(list) => all(list, found)?,
            _ => return None,
        }
    }
    Some(())
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 256, max_global_rejects: 1_000_000, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn texts_of_which_shells_make_different_things_are_not_read_as_one_of_them() {
    assert!(parse("p {a}<<E\nx\nE\n", 0).is_err(), "a word or a descriptor");
    assert!(parse("p {a}>x", 0).is_err());
    // A here-document ends with the text, as shells have it.
    for script in ["cat <<E\nrm x", "cat <<E", "p a <<E\n$(rm x)\n"] {
        assert!(parse(script, 0).is_ok(), "{script}");
    }
    assert!(may_spread("p {a},} end"), "bash takes it apart");
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn the_words_of_a_command_are_those_a_program_is_given(line in line()) {
        prop_assume!(!may_spread(&line));
        let seen = read(&line);
        for shell in shells() {
            let given = given(shell, &line);
            // A text that the shell does not take is none that the reader has to take.
            if let (Some(seen), Some(given)) = (&seen, &given) {
                prop_assert_eq!(seen, given, "{} {:?}", shell, line);
            }
        }
    }

    #[test]
    fn a_line_is_split_into_the_words_a_program_is_given(line in line()) {
        // A line without a shell has no comments, no words that a shell takes for its own, and no second line.
        prop_assume!(!line.contains('#') && !line.contains('\n') && !may_spread(&line));
        if let Ok(words) = split(&line, &[]) {
            for shell in shells() {
                let given = given(shell, &line);
                prop_assert_eq!(Some(vec![words[1..].to_vec()]), given, "{} {:?}", shell, line);
            }
        }
    }

    #[test]
    fn every_command_that_runs_was_seen_with_its_words(script in script()) {
        let mut seen = Vec::new();
        let whole = parse(&script, 0).ok().and_then(|list| all(&list, &mut seen));
        prop_assume!(whole.is_some() && !may_spread(&script));
        for shell in shells() {
            for command in given(shell, &script).into_iter().flatten() {
                let is_it = |words: &Vec<String>| words.first().is_some_and(|name| name == "p") && words[1..] == command[..];
                prop_assert!(seen.iter().any(is_it), "{} {:?}: {:?} in {:?}", shell, script, command, seen);
            }
        }
    }

    #[test]
    fn a_quoted_word_is_read_back(words in proptest::collection::vec("[^\0]{0,12}", 1..4)) {
        let quoted: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
        let line = quoted.join(" ");
        prop_assert_eq!(split(&line, &[]), Ok(words.clone()));
        let list = parse(&format!("p {line}"), 0).unwrap();
        let mut seen = Vec::new();
        all(&list, &mut seen).unwrap();
        prop_assert_eq!(&seen[0][1..], &words[..]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![any::<String>(), script(), "[(){}$`'\"\\\\;&|<> \n#a]{0,200}"]) {
        let _ = parse(&text, 0);
        let _ = split(&text, &[]);
    }
}

#[test]
fn depth_is_bounded_and_length_costs_no_more_than_its_share() {
    for (open, close) in
        [("(", ")"), ("$(", ")"), ("`", "`"), ("${a:-", "}"), ("{ ", "; }"), ("if ", ""), ("\"$(", ")\""), ("((", "))")]
    {
        let text = format!("e {}{}", open.repeat(20_000), close.repeat(20_000));
        let _ = parse(&text, 0);
        let _ = parse(&open.repeat(20_000), 0);
    }
    let nested = |depth: usize| format!("{}e{}", "( ".repeat(depth), " )".repeat(depth));
    assert!(parse(&nested(90), 0).is_ok());
    assert!(matches!(parse(&nested(200), 0), Err(ParseError::TooDeep { .. })));
    assert!(parse(&format!("e {}", "'a b' ".repeat(200_000)), 0).is_ok());
}
