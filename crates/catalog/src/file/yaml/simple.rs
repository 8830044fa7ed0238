//! The YAML of most configurations, read without a YAML parser: maps of plain words, texts in quotes, and lists and maps in
//! brackets, indented, one entry a line.
//!
//! A program that is started for every event meets the whole parser cold each time. What is not in this small form, or
//! might mean anything else, is left to the parser, which also explains what is wrong with it.

use crate::node::Node;

mod flow;

/// Longer texts are left to the parser.
const LONGEST: usize = 1 << 16;
/// So are deeper ones,
const DEEPEST: usize = 8;
/// those with more values,
const MOST: usize = 4096;
/// and those with longer keys.
const LONGEST_KEY: usize = 128;

/// Words that mean something else than themselves, at least to some readers of YAML.
const RESERVED: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "infinity", "nan"];
const UNITS: &[&str] = &["ms", "s", "m", "h", "KiB", "MiB", "GiB", "kB", "KB", "MB", "GB", "B"];

/// The value of a text in the small form; `None` for any other text.
pub(super) fn parse(text: &str) -> Option<Node> {
    if text.len() > LONGEST || !text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)) {
        return None;
    }
    // Every value but the first follows one of these.
    if text.bytes().filter(|byte| matches!(byte, b'\n' | b',' | b':' | b'[')).count() > MOST {
        return None;
    }
    let lines: Vec<Line<'_>> = text.split('\n').filter(|line| !is_blank(line)).map(read).collect::<Option<_>>()?;
    let mut rest = lines.into_iter().peekable();
    let root = map(&mut rest, 0, DEEPEST)?;
    rest.next().is_none().then_some(root)
}

/// A line with something on it.
struct Line<'a> {
    indent: usize,
    /// The key; an item of a list has none.
    key: Option<&'a str>,
    /// What stands behind it.
    value: Option<Node>,
}

type Lines<'a> = std::iter::Peekable<std::vec::IntoIter<Line<'a>>>;

/// The line without its comment; nothing for one in another form.
fn read(line: &str) -> Option<Line<'_>> {
    let body = line.trim_start_matches(' ');
    let indent = line.len() - body.len();
    if let Some(item) = body.strip_prefix("- ") {
        return Some(Line { indent, key: None, value: value(item)? });
    }
    let (key, rest) = body.split_once(':')?;
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    is_name(key).then_some(Line { indent, key: Some(key), value: value(rest)? })
}

fn is_blank(line: &str) -> bool {
    let body = line.trim_start_matches(' ');
    body.is_empty() || body.starts_with('#')
}

/// The value that stands on the rest of a line, if there is one; nothing for one in another form.
fn value(rest: &str) -> Option<Option<Node>> {
    let rest = rest.trim_start_matches(' ');
    let (node, behind) = match rest.as_bytes().first() {
        None | Some(b'#') => return Some(None),
        Some(b'"' | b'\'') => quoted(rest).map(|(text, behind)| (Node::Text(text.to_owned()), behind))?,
        Some(b'[' | b'{') => flow::read(rest, DEEPEST)?,
        Some(_) => {
            let (text, behind) = rest.split_at(rest.find(" #").unwrap_or(rest.len()));
            (scalar(text.trim_end_matches(' '))?, behind)
        }
    };
    is_comment(behind).then_some(Some(node))
}

/// Whether nothing follows a value but blanks, and behind one of them a comment.
fn is_comment(behind: &str) -> bool {
    let body = behind.trim_start_matches(' ');
    body.is_empty() || (body.len() < behind.len() && body.starts_with('#'))
}

/// A text in quotes that stands for itself, and what follows it.
fn quoted(rest: &str) -> Option<(&str, &str)> {
    let quote = rest.chars().next()?;
    let (text, behind) = rest.get(1..)?.split_once(quote)?;
    // A backslash, and a quote that is doubled, are for the parser.
    let plain = if quote == '"' { !text.contains('\\') } else { !behind.starts_with(quote) };
    plain.then_some((text, behind))
}

fn map(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Node> {
    let mut entries: Vec<(String, Node)> = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent >= indent) {
        let key = line.key.filter(|key| line.indent == indent && entries.iter().all(|(known, _)| known != key))?;
        let value = match line.value {
            Some(value) => value,
            None => below(lines, indent, depth)?,
        };
        entries.push((key.to_owned(), value));
    }
    (!entries.is_empty()).then_some(Node::Map(entries))
}

/// What is indented below a key; nothing where nothing is.
fn below(lines: &mut Lines<'_>, indent: usize, depth: usize) -> Option<Node> {
    match lines.peek() {
        Some(next) if next.indent > indent && depth > 0 => {
            let indent = next.indent;
            if next.key.is_some() { map(lines, indent, depth - 1) } else { list(lines, indent) }
        }
        Some(next) if next.indent > indent => None,
        // A list may stand as far left as its key; that is for the parser.
        Some(next) if next.key.is_none() => None,
        _ => Some(Node::Null),
    }
}

fn list(lines: &mut Lines<'_>, indent: usize) -> Option<Node> {
    let mut items = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent >= indent) {
        if line.indent > indent || line.key.is_some() {
            return None;
        }
        items.push(line.value?);
    }
    Some(Node::List(items))
}

/// A word, or several, whose meaning nobody could doubt.
fn scalar(text: &str) -> Option<Node> {
    match text {
        "true" => return Some(Node::Bool(true)),
        "false" => return Some(Node::Bool(false)),
        _ => {}
    }
    let letters = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.len() - letters.len();
    if letters.is_empty() && digits <= 15 && (digits == 1 || !text.starts_with('0')) {
        return text.parse().ok().map(Node::Whole);
    }
    let is_text = if digits > 0 { UNITS.contains(&letters) } else { is_word(text) || is_phrase(text) };
    is_text.then(|| Node::Text(text.to_owned()))
}

/// A name, or a path: `name`, `/a/b`, `~/a`, `.a/b`.
fn is_word(word: &str) -> bool {
    let body = word.strip_prefix('.').unwrap_or(word);
    let starts = match word.strip_prefix('~') {
        Some(rest) => rest.starts_with('/'),
        None => body.starts_with(|first: char| first.is_ascii_alphabetic()) || word.starts_with('/'),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    starts && word.chars().skip(1).all(plain) && !is_reserved(body)
}

/// An address, a variable, or a few words: `https://a.b/c?d=e`, `${A}`, `two words`.
fn is_phrase(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-:@=+?&%~,;${} ".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/' || first == '$')
        && text.chars().all(plain)
        && !text.contains(": ")
        && !text.ends_with(':')
        && !is_reserved(text)
}

fn is_name(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.len() <= LONGEST_KEY
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
        && !is_reserved(key)
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

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
        let value = select(vec![
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
        ]);
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
}
