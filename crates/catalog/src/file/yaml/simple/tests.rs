//! What is read in the small form is what the parser reads.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Values of any form.
const ODD: &[&str] = &[
    "",
    "",
    "",
    "true",
    "false",
    "True",
    "yes",
    "off",
    "y",
    "null",
    "~",
    "0",
    "00",
    "7",
    "30000",
    "123456789012345",
    "1234567890123456",
    "-3",
    "+3",
    "1.5",
    "1e5",
    "5s",
    "5 s",
    "250ms",
    "16MiB",
    "1m",
    "0x1f",
    "0o7",
    "0b1",
    "1_000",
    "1:30",
    "inf",
    ".inf",
    "NaN",
    "nan",
    "Infinity",
    "e5",
    "E",
    "text",
    "a/b",
    "/abs",
    "~/x",
    "~x",
    ".",
    "..",
    "./x",
    "a-b",
    "-",
    "--",
    "---",
    "...",
    "[]",
    "{}",
    "[a]",
    "[a,b ]",
    "[a, ]",
    "[a b]",
    "[a: b]",
    "[a:b]",
    "[\"a\":1]",
    "[-1]",
    "[- 1]",
    "{a: b}",
    "{a:b}",
    "{a: b,a: c}",
    "{\"a\":b}",
    "{\"a\":1, 'b': c}",
    "{a: }",
    "{a}",
    "a: b",
    "a :b",
    "a #b",
    "a# b",
    "$a",
    "{$a}",
    "a, b",
    "'q'",
    "\"q\"",
    "\"q\\\"\"",
    "'q''q'",
    "\"q",
    "a b",
    "a:",
    "&x",
    "*x",
    "!t",
    "|",
    ">",
    "#c",
    "a#c",
    "2024-01-02",
    "b64",
    "=",
    "@a",
    "`a",
    "%a",
    "a,b",
    "0.0.0.0",
    "localhost",
    "1.2.3",
    "0b",
    "1B",
    "9KB",
];

const DOCUMENTED: &str = "hooks:\n  enabled: true\n  timeout: 30000 # ms\n  trustWorkspace: false\n\nextensions:\n  enabled: true\n  directories:\n    - ~/.ollm/extensions\n    - .ollm/extensions\n  autoEnable: true\n\n# servers\nmcp:\n  connectionTimeout: 10s\n  servers: {}\nmodel:\n";

#[test]
fn what_people_write_is_in_the_small_form() {
    assert_eq!(parse(DOCUMENTED), super::super::full(DOCUMENTED).ok());
    assert!(parse(DOCUMENTED).is_some());
}

#[test]
fn servers_are_in_the_small_form_however_they_are_written() {
    let block = "mcp:\n  servers:\n    file-system:\n      command: npx\n      args: [\"-y\", \"@a/server-b\", '/tmp']\n      env:\n        TOKEN: ${TOKEN}\n    remote:\n      url: https://example.com:8080/mcp?a=b\n      headers: { Authorization: \"Bearer ${TOKEN}\" } # theirs\n";
    let json = "mcp:\n  servers: {\"file-system\":{\"command\":\"npx\",\"args\":[\"-y\"],\"enabled\":true,\"timeout\":5000}}\n";
    for text in [block, json] {
        assert!(parse(text).is_some(), "{text}");
        assert_eq!(parse(text), super::super::full(text).ok());
    }
}

#[test]
fn texts_of_too_many_values_are_left_to_the_parser() {
    let list = |items: usize| format!("a: [{}1]\n", "1,".repeat(items));
    assert!(parse(&list(4000)).is_some());
    assert_eq!(parse(&list(4200)), None);
    assert_eq!(parse(&format!("a: {}{}\n", "[".repeat(9), "]".repeat(9))), None);
    assert_eq!(parse(&format!("{}: b\n", "a".repeat(129))), None);
}

#[test]
fn what_could_mean_anything_else_is_left_to_the_parser() {
    for text in [
        "",
        "# nothing\n",
        "a",
        "a:b\n",
        "a: b: c\n",
        "a: 'b''c'\n",
        "a: 'b\n",
        "a: \"b\\n\"\n",
        "a: \"b\"#c\n",
        "a: \"b\" c\n",
        "a: |\n  b\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !t b\n",
        "a: [b\n",
        "a: [b] c\n",
        "a: [b,]\n",
        "a: [b, [c]\n",
        "a: [b: c]\n",
        "a: [b c]\n",
        "a: [b #c]\n",
        "a: {b}\n",
        "a: {b:c}\n",
        "a: {b: c, b: d}\n",
        "a: {\"b\": c, b: d}\n",
        "a: {\"b\" : c}\n",
        "a: [yes]\n",
        "a: [null]\n",
        "a: [\n",
        "a: yes\n",
        "a: Null\n",
        "a: ~\n",
        "a: 007\n",
        "a: -1\n",
        "a: 1.5\n",
        "a: 1e5\n",
        "a: 0x1f\n",
        "a: 1_000\n",
        "a: .inf\n",
        "a: .NaN\n",
        "a: .5\n",
        "a: ..\n",
        "a: b\na: c\n",
        "a:\n\tb: c\n",
        "a:\r\n",
        "a: b#c\n",
        "? a\n",
        "- a\n",
        "a:\n- b\n",
        "a:\n  - b: c\n",
        "a:\n  - - b\n",
        "a:\n    b: c\n  d: e\n",
        "a: b\n  c: d\n",
        " a: b\n",
        "---\na: b\n",
        "a: b\n...\n",
        "yes: a\n",
        "a : b\n",
        "<<: a\n",
        "ä: b\n",
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

/// Lines that make a text in the small form more often than not.
fn usual() -> impl Strategy<Value = String> {
    let names: Vec<String> = ('a'..='z').map(|letter| format!("{letter}-1")).collect();
    let value = select(vec![
        "true",
        "false",
        "0",
        "30000",
        "5s",
        "16MiB",
        "text",
        "a/b",
        "/abs",
        "~/x",
        "a-b.c",
        "[]",
        "{}",
        "\"a: 'b' #c\"",
        "'a: \"b\" #c'",
        "https://a.b/c?d=e&f",
        "Bearer ${TOKEN}",
        "two  words",
        "[a, \"-y\", 5s, [1]]",
        "{\"a\":{\"b\": \"c\"}, d: [true]}",
    ]);
    let end = select(vec!["", "", " ", " # note"]);
    let entry = (select(vec!["", "  "]), select(names.clone()), value.clone(), end.clone())
        .prop_map(|(indent, name, value, end)| format!("{indent}{name}: {value}{end}"));
    let section = (select(vec!["", "  "]), select(names), end.clone())
        .prop_map(|(indent, name, end)| format!("{indent}{name}:{end}"));
    let item = (value, end).prop_map(|(value, end)| format!("    - {value}{end}"));
    prop_oneof![4 => entry, 3 => section, 2 => item, 1 => Just("# note".to_owned()), 1 => odd()]
}

/// Lines of any form.
fn odd() -> impl Strategy<Value = String> {
    let indent = select(vec!["", "", " ", "  ", "  ", "    ", "      ", "\t"]);
    let key = select(vec![
        "a: ", "b: ", "c:", "d:  ", "hooks:", "e1: ", "f_g: ", "on: ", "null: ", "true: ", "- ", "-", "? ", "<<: ",
        "x:y", "\"q\": ", "1: ", "",
    ]);
    let value = select(ODD);
    let end = select(vec!["", "", "", " ", " # note", "  #", "#", "\r"]);
    (indent, key, value, end).prop_map(|(indent, key, value, end)| format!("{indent}{key}{value}{end}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_here_is_what_the_parser_reads(lines in prop::collection::vec(usual(), 1..6), ends: bool) {
        let text = lines.join("\n") + if ends { "\n" } else { "" };
        if let Some(node) = parse(&text) {
            let full = super::super::full(&text);
            prop_assert!(full.is_ok(), "{text:?} {node:?} {full:?}");
            prop_assert_eq!(Some(node), full.ok(), "{:?}", text);
        }
    }

    #[test]
    fn brackets_are_read_as_the_parser_reads_them(inside in "[]\\[{}, :\"'#a1y/~-]{1,10}", opening in "[\\[{]", key in "[ab]") {
        for text in [format!("{key}: {opening}{inside}\n"), format!("{key}:\n  - {opening}{inside}\n")] {
            if let Some(node) = parse(&text) {
                prop_assert_eq!(Some(node), super::super::full(&text).ok(), "{:?}", text);
            }
        }
    }

    #[test]
    fn words_are_read_as_the_parser_reads_them(word in "[ -~]{1,8}", key in "[ -~]{1,4}") {
        let text = format!("{key}: {word}\n");
        if let Some(node) = parse(&text) {
            prop_assert_eq!(Some(node), super::super::full(&text).ok(), "{:?}", text);
        }
    }
}
