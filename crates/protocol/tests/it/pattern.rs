//! Which files a hook's patterns take in.

use globset::GlobBuilder;
use ollm_protocol::{FilePatterns, from_root};
use proptest::prelude::*;
use testkit::{hostile_text, text};

use crate::cases;

fn patterns(texts: &[&str]) -> FilePatterns {
    FilePatterns::parse(&texts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

#[test]
fn an_example_is_taken_in() {
    for (texts, example) in [
        (&["*.rs"][..], Some("sample.rs")),
        (&["src/**/*.{ts,tsx}"], Some("src/sample.ts")),
        (&["docs/[a-c]?.md"], Some("docs/aa.md")),
        (&["[!a-z]x"], Some("0x")),
        (&["docs/"], Some("docs/sample")),
        (&["**"], Some("sample")),
        (&["!*.md"], Some("sample")),
        (&["*.md", "!sample.md"], None),
        (&["*.md", "!sample.md", "a.md"], Some("a.md")),
        (&[], None),
    ] {
        assert_eq!(patterns(texts).example().as_deref(), example, "{texts:?}");
    }
}

#[test]
fn each_form_matches_what_it_says() {
    for (pattern, matching, others) in [
        (
            "*.rs",
            &["a.rs", "src/a.rs", "x/y/.rs", "/outside/a.rs", "../a.rs", "./a.rs"][..],
            &["a.rsx", "rs", "a.rs/b"][..],
        ),
        ("Makefile", &["Makefile", "a/Makefile"], &["makefile", "Makefile.in"]),
        ("src/*.rs", &["src/a.rs"], &["a.rs", "src/b/a.rs", "x/src/a.rs", "/src/a.rs", "../src/a.rs"]),
        ("/build.rs", &["build.rs"], &["src/build.rs", "/build.rs"]),
        ("./build.rs", &["build.rs"], &["src/build.rs"]),
        ("src/", &["src/a", "src/b/c"], &["src", "x/src/a"]),
        ("**/a.rs", &["a.rs", "x/a.rs", "x/y/a.rs"], &["xa.rs", "/outside/a.rs"]),
        ("src/**", &["src/a", "src/b/c"], &["src", "srcs/a"]),
        ("src/**/a.rs", &["src/a.rs", "src/x/a.rs", "src/x/y/a.rs"], &["src/xa.rs", "a.rs"]),
        ("**/x/**/y/*", &["x/y/a", "q/x/q/q/y/a", "x/x/y/y/a"], &["y/x/a", "x/y"]),
        ("**", &["a", "a/b", "/outside/a"], &[]),
        ("a**b", &["ab", "axxb", "x/ab"], &["a/b"]),
        ("?.txt", &["a.txt", "ü.txt", "🦀.txt"], &["ab.txt", ".txt"]),
        ("[a-cü]x", &["ax", "cx", "üx"], &["dx", "x"]),
        ("[!a-c]x", &["dx", "üx"], &["ax"]),
        ("[^]]x", &["ax"], &["]x"]),
        ("[]-]x", &["]x", "-x"], &["ax"]),
        ("*.{rs,toml}", &["a.rs", "x/Cargo.toml"], &["a.md", "a.rs,toml"]),
        ("{src,tests}/**/*.{rs,{md,txt}}", &["src/a.rs", "tests/x/a.txt", "src/a.md"], &["docs/a.md", "src/a.{rs"]),
        ("a{,b}", &["a", "ab"], &["b"]),
        (r"\*.rs", &["*.rs"], &["a.rs"]),
        (r"\{a,b\}", &["{a,b}"], &["a"]),
        (r"\!a", &["!a"], &["a"]),
        ("a}b,c", &["a}b,c"], &["ab"]),
    ] {
        let patterns = patterns(&[pattern]);
        for path in matching {
            assert!(patterns.matches(path), "{pattern} on {path}");
        }
        for path in others {
            assert!(!patterns.matches(path), "{pattern} on {path}");
        }
    }
}

#[test]
fn the_last_pattern_that_matches_decides() {
    for (list, matching, others) in [
        (&["*.rs", "!*_test.rs"][..], &["a.rs"][..], &["a_test.rs", "a.md"][..]),
        (&["*.rs", "!src/gen/**", "src/gen/keep.rs"], &["src/a.rs", "src/gen/keep.rs"], &["src/gen/a.rs"]),
        (&["!*_test.rs", "*.rs"], &["a_test.rs", "a.rs", "a.md"], &[]),
        (&["!*.md"], &["a.rs", "x/y"], &["a.md", "x/a.md"]),
        (&["*.md", "src/*.rs"], &["a.md", "src/a.rs"], &["a.rs"]),
        (&[], &[], &["a.rs", ""]),
    ] {
        let patterns = patterns(list);
        assert_eq!(patterns.text(), list);
        assert_eq!(patterns.is_empty(), list.is_empty());
        for path in matching {
            assert!(patterns.matches(path), "{list:?} on {path}");
        }
        for path in others {
            assert!(!patterns.matches(path), "{list:?} on {path}");
        }
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_way_out() {
    let long = "a".repeat(1025);
    let many = "{a,b}".repeat(9);
    let deep = format!("{}a{}", "{".repeat(17), "}".repeat(17));
    let wide = format!("{{{}}}{}", vec!["x"; 250].join(","), "y".repeat(400));
    let errors: Vec<String> =
        ["", "!", "/", "./", &long, &many, &deep, &wide, "a{b", "!/ü[a", "[]", "[z-a]", "a\\", "../a", "a/{b,..}/c"]
            .iter()
            .map(|text| FilePatterns::parse(&[text.to_string()]).unwrap_err().to_string())
            .collect();
    insta::assert_snapshot!(errors.join("\n"));
    assert!(FilePatterns::parse(&vec!["{a,b}".to_owned(); 129]).is_err());
    assert!(FilePatterns::parse(&vec!["{a,b}".to_owned(); 128]).is_ok());
}

#[test]
fn a_path_is_seen_from_the_project_root() {
    for (path, cwd, want) in [
        ("a.rs", "/p", "a.rs"),
        ("a.rs", "/p/src", "src/a.rs"),
        ("/p/src/a.rs", "/elsewhere", "src/a.rs"),
        ("../../x", "/p/src", "/x"),
        ("/pp/a", "/p", "/pp/a"),
        ("..//.././../..", "/p", "/"),
        (".", "/p", ""),
    ] {
        assert_eq!(from_root(path, cwd, "/p/"), want, "{path} in {cwd}");
    }
}

#[test]
fn a_hostile_pattern_costs_bounded_work() {
    let path = format!("{}b", "a/".repeat(2000) + &"a".repeat(200));
    for text in [
        "*a".repeat(500),
        "**/a/".repeat(200) + "c",
        "{*a,*a}".repeat(8) + "c",
        "a*/".repeat(300) + "c",
        "?*".repeat(500),
    ] {
        assert!(!patterns(&[&text]).matches(&path), "{text}");
    }
}

#[test]
fn a_path_of_unreasonable_length_is_taken_in_unlooked() {
    let path = "a/".repeat(5000);
    assert!(patterns(&["*.rs"]).matches(&path));
    assert!(!patterns(&[]).matches(&path));
}

#[test]
fn the_patterns_of_a_hook_are_bounded_together() {
    let long = "a".repeat(1000);
    assert!(FilePatterns::parse(&vec![long.clone(); 16]).is_ok());
    assert!(FilePatterns::parse(&vec![long; 17]).is_err());
}

/// Patterns that `globset` reads as we do: in ASCII, `**` only as a whole segment, no empty segments.
fn shared_pattern() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[abA]",
        2 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        1 => prop::sample::select(vec!["[ab]", "[!a/]", "[a-c]", "{a,b}", "{a,bA,?}", "{a*,{b,A}}"]).prop_map(str::to_owned),
    ];
    let name = prop::collection::vec(word, 1..4)
        .prop_map(|words| words.concat())
        .prop_filter("`**` inside a name", |name| !name.contains("**"));
    let segment = prop_oneof![4 => name, 1 => Just("**".to_owned())];
    prop::collection::vec(segment, 1..5).prop_map(|segments| segments.join("/"))
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn globset_agrees(pattern in shared_pattern(), path in "[abA]{1,3}(/[abA]{1,3}){0,4}") {
        let theirs = GlobBuilder::new(&pattern).literal_separator(true).build().unwrap().compile_matcher();
        let ours = patterns(&[&format!("/{pattern}")]);
        prop_assert_eq!(ours.matches(&path), theirs.is_match(&path), "{} on {}", pattern, path);
    }

    #[test]
    fn no_text_upsets_a_pattern(pattern in prop_oneof!["[ab*?/{},!\\[\\]\\\\^.-]{0,12}", text(), hostile_text()], path in text()) {
        if let Ok(patterns) = FilePatterns::parse(std::slice::from_ref(&pattern)) {
            _ = patterns.matches(&path);
            prop_assert_eq!(patterns.text(), vec![pattern.as_str()]);
        }
    }
}
