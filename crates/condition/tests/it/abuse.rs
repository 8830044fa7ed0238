//! No condition panics, hangs, or takes more than its share.

use ollm_condition::{Condition, Fault};
use proptest::prelude::*;
use testkit::{hostile_text, text};

use crate::truths::ask;
use crate::{asked_about_text, cases};

#[test]
fn a_long_condition_is_refused_before_it_is_read() {
    for text in ["x".repeat(100_000), "ü".repeat(50_000), "true || ".repeat(12_500), "(".repeat(100_000)] {
        let error = Condition::parse(&text).unwrap_err();
        assert!(error.what.contains("100000 bytes"), "{error}");
    }
    assert!(Condition::parse(&" ".repeat(16_380)).is_err());
    assert!(Condition::parse(&format!("{}true", " ".repeat(16_380))).is_ok());
}

#[test]
fn deep_nesting_is_refused_and_what_passes_overflows_nothing() {
    for (open, inner, close) in [
        ("(", "true", ")"),
        ("[", "true", "]"),
        ("{1:", "true", "}"),
        ("data[", "1", "]"),
        ("string(", "'a'", ")"),
        ("true?true:", "true", ""),
        ("!(", "true", ")"),
        ("-(", "1", ")"),
        ("[1].all(x,", "true", ")"),
        ("has(data.a) && (", "true", ")"),
    ] {
        let nested = |depth: usize| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
        for depth in [101, 800] {
            let error = Condition::parse(&nested(depth)).unwrap_err();
            assert!(error.what.contains("nested more than 100 levels"), "{open}: {error}");
        }
        _ = ask(&nested(99));
    }
}

#[test]
fn long_chains_are_not_deep() {
    for (text, answer) in [
        (format!("true{}", " && true".repeat(1500)), true),
        (format!("false{}", " || false".repeat(1500)), false),
        (format!("0{} == 4000", " + 1".repeat(4000)), true),
        (format!("{}true", "!".repeat(16_000)), true),
        (format!("{}1 == 1", "-".repeat(16_000)), true),
    ] {
        assert_eq!(ask(&text), Ok(answer));
    }
    let long = format!("'a'{} == 'a'", ".trim()".repeat(2000));
    assert_eq!(ask(&long), Ok(true));
    assert!(ask(&format!("data{}", ".a".repeat(8000))).is_err());
}

#[test]
fn a_bomb_runs_out_of_steps() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let nested = |inner: &str, depth: usize| {
        let names: Vec<String> = (0..depth).map(|level| format!("{ten}.all(x{level}, ")).collect();
        format!("{}{inner}{}", names.concat(), ")".repeat(depth))
    };
    let doubling = |start: &str, step: &str, times: usize, end: &str| format!("{start}{}{end}", step.repeat(times));
    for text in [
        nested("true", 9),
        nested("x0 == x1 || true", 20),
        doubling("['aaaaaaaaaaaaaaaa']", ".map(x, x + x)", 40, "[0] == ''"),
        format!("[1]{0} == [1]{0}", ".map(x, [x, x])".repeat(60)),
        doubling("['aaaaaaaa']", ".map(x, x.replace('a', 'aaaaaaaa'))", 20, "[0] == ''"),
        doubling("[[0]]", ".map(x, x + x)", 40, " == []"),
        doubling("['a,a']", ".map(x, x.split('').join('a,a'))", 30, " == []"),
    ] {
        let fault = ask(&text).unwrap_err();
        assert_eq!(fault.fault, Fault::Exhausted, "{text}");
    }
}

#[test]
fn no_value_is_built_so_deep_that_dropping_it_overflows() {
    let step = format!(".map(x,{}x{})", "[".repeat(90), "]".repeat(90));
    for text in [format!("[0]{} == []", step.repeat(80)), format!("[0]{} == []", ".map(x,{1:x})".repeat(1200))] {
        assert_eq!(ask(&text).unwrap_err().fault, Fault::TooDeep);
    }
}

#[test]
fn running_out_of_steps_cannot_be_hidden_behind_a_settled_matter() {
    let bomb = "[['a'].map(x, x + x)].map(a, a)";
    let long = format!("[0]{}", ".map(x, [x, x])".repeat(60));
    assert_eq!(ask(&format!("{long} == {long} || true || {bomb} == []")).unwrap_err().fault, Fault::Exhausted);
    assert_eq!(ask(&format!("[1, 2].exists(x, x == 2 || {long} == {long})")).unwrap_err().fault, Fault::Exhausted);
}

#[test]
fn a_pattern_bomb_is_refused_or_bounded() {
    for pattern in ["(a{1000}){1000}".to_owned(), "a".repeat(2000), "(".repeat(900), "((a{90}){90}){90}".to_owned()] {
        let fault = asked_about_text(&format!("data.text.matches('{pattern}')"), "a".into()).unwrap_err();
        assert!(matches!(fault.fault, Fault::Pattern { .. }), "{fault}");
    }
    assert_eq!(asked_about_text("data.text.matches('^(a*)*$')", "a".repeat(10_000) + "b"), Ok(false));
    let heavy = "data.text.matches('(x|y|z|[ab]{0,200})*c')";
    assert_eq!(asked_about_text(heavy, "ab".repeat(1 << 20)).unwrap_err().fault, Fault::Exhausted);
    let light = "data.text.matches('(?i)secret[_-]?key')";
    assert_eq!(asked_about_text(light, "x".repeat(1 << 20) + "Secret-Key"), Ok(true));
    let made = "data.text.split('').exists(x, x.matches('^' + x + 'y'))";
    assert_eq!(asked_about_text(made, "a".repeat(5000)).unwrap_err().fault, Fault::Exhausted);
}

#[test]
fn a_mention_of_a_large_text_copies_nothing() {
    let hundred = format!("[{}]", ["1"; 100].join(","));
    let text = format!("[data.text.lowerAscii()].all(t, {hundred}.all(a, {hundred}.all(b, t != 'a')))");
    assert_eq!(asked_about_text(&text, "x".repeat(1 << 20)), Ok(true));
}

#[test]
fn a_large_event_can_be_looked_at_more_than_once() {
    let text = "data.text.contains('secret') || data.text.lowerAscii().contains('token') || size(data.text) == 1048576";
    assert_eq!(asked_about_text(text, "x".repeat(1 << 20)), Ok(true));
}

/// Text that is nearly a condition.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop::sample::select(vec![
        "data",
        "event",
        "session",
        "env",
        ".",
        "a",
        "args",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "'",
        "\"",
        "\\",
        "'a'",
        "r'",
        "b'",
        "'''",
        "0",
        "1u",
        "1.5",
        ".5",
        "1e",
        "0x",
        "-",
        "!",
        "&&",
        "||",
        "?",
        ":",
        "==",
        "<",
        " in ",
        "+",
        "*",
        "/",
        "%",
        ",",
        "has(",
        "size(",
        ".all(x,",
        ".map(x, ",
        ".matches(",
        ".split(",
        "x",
        "true",
        "null",
        "//",
        "\n",
        "`",
        "ü",
    ]);
    prop::collection::vec(scrap, 0..20).prop_map(|scraps| scraps.concat())
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn no_text_upsets_the_reader_or_the_question(text in prop_oneof![scraps(), text(), hostile_text()]) {
        match Condition::parse(&text) {
            Ok(condition) => {
                _ = condition.check();
                _ = ask(&text);
                prop_assert_eq!(condition.text(), &text);
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.offset), "{}", error),
        }
    }
}
