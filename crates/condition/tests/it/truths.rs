//! What conditions say about an event, and what is said about conditions that cannot be read or asked.

use ollm_condition::{Condition, ConditionFault, ConditionScope};
use serde_json::{Map, Value, json};

use crate::asked;

pub(crate) fn data() -> Map<String, Value> {
    let data = json!({
        "tool_name": "shell",
        "args": {"command": "git push --force origin main", "path": "src/main.rs", "count": 3, "ratio": 2.0},
        "session_id": "s1",
        "session": {"user": "ada"},
        "files": ["a.rs", "b.md", "c.rs"],
        "big": u64::MAX,
        "nothing": null,
        "odd-key": true,
        "text": "Grüße 🦀",
    });
    data.as_object().unwrap().clone()
}

/// Asks a condition about the event above.
pub(crate) fn ask(text: &str) -> Result<bool, ConditionFault> {
    let (data, env) = (data(), Map::from_iter([("CI".to_owned(), json!("true"))]));
    let scope = ConditionScope::new("before_tool", &data, "/home/ada/project", &env, "workspace");
    Condition::parse(text).unwrap().holds(&scope)
}

#[test]
fn a_condition_sees_its_six_variables() {
    for text in [
        "event == 'before_tool'",
        "data.tool_name == 'shell'",
        "data.args.command.startsWith('git push')",
        "session.id == 's1' && session.user == 'ada'",
        "cwd.endsWith('/project')",
        "env.CI == 'true' && !has(env.HOME)",
        "source == 'workspace'",
        "data['odd-key'] && data.`odd-key`",
    ] {
        assert_eq!(ask(text), Ok(true), "{text}");
    }
}

#[test]
fn an_event_without_a_session_has_an_empty_one() {
    assert_eq!(asked("!has(session.id) && session == {}", &Map::new()), Ok(true));
}

/// What is true of the event above.
pub(crate) const TRUE: &[&str] = &[
    // literals
    "true",
    "!false",
    "1 == 1u && 1 == 1.0 && 1u == 1.0",
    "0xFF == 255 && 0x10u == 16u && -0x1 == -1",
    "-9223372036854775808 < 0 && 9223372036854775807 > 0",
    "18446744073709551615u > 9223372036854775807",
    "1e3 == 1000 && .5 == 0.5 && 1.5e-1 == 0.15",
    r#""a" == 'a' && """a"b""" == 'a"b' && '''it's''' == "it's""#,
    r"'\n\t\\\'\x41\u00fc\U0001f980\101' == '\u000a\u0009\x5c\x27Aü🦀A'",
    r"r'\d' == '\\d' && R'\' == '\\'",
    r"b'\xff\000a' == b'\377\x00\x61' && bR'\x' == b'\\x' && b'ü' == b'\303\274'",
    "'''two\nlines''' == 'two\\nlines'",
    "[] == [] && [1, 'a', null,] == [1.0, 'a', null]",
    "{} == {} && {'a': 1, 2: 'b',} == {2u: 'b', 'a': 1.0}",
    "null == null && null != 0",
    "// a comment\ntrue // another",
    // arithmetic
    "1 + 2 * 3 - 4 / 2 % 3 == 5",
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
    "7.0 / 2.0 == 3.5 && 1.0 / 0.0 > 1e308",
    "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && b'a' + b'b' == b'ab'",
    "-(1) == -1 && --1 == 1 && !!true",
    "(1 + 2) * 3 == 9",
    // comparison
    "1 < 2u && 2.5 > 2 && 1u <= 1.0",
    "'a' < 'b' && b'a' < b'b' && false < true",
    "9007199254740993 != 9007199254740992.0",
    "1 != 'a' && [] != {} && 'true' != true",
    "double('NaN') != double('NaN') && !(double('NaN') < 1.0)",
    // membership
    "2 in [1, 2.0] && !(3 in []) && 'a' in {'a': 1} && 1u in {1: 2}",
    "data.tool_name in ['shell', 'write_file']",
    "'args' in data && !('nope' in data)",
    // logic, whose faults give way to what settles the matter
    "true || data.nope && data.nope",
    "data.nope || true",
    "!(false && data.nope) && !(data.nope && false)",
    "1 / 0 == 1 || true",
    "(true || 'no bool') && !('no bool' && false)",
    "true ? 1 == 1 : data.nope",
    "false ? data.nope : true ? true : false",
    // selection
    "data.args['count'] == 3 && data.files[0] == 'a.rs' && data.files[2u] == 'c.rs' && data.files[1.0] == 'b.md'",
    "has(data.args) && !has(data.args.nope) && has({'a': null}.a)",
    "data.nothing == null && has(data.nothing)",
    "{1: 'a'}[1u] == 'a' && {true: 1}[true] == 1 && [[1, 2]][0][1] == 2",
    "data.args.count + 1 == 4 && data.args.ratio == 2 && data.big == 18446744073709551615u",
    // macros
    "data.files.exists(f, f.endsWith('.md')) && !data.files.all(f, f.endsWith('.rs'))",
    "data.files.exists_one(f, f == 'a.rs') && data.files.existsOne(f, f == 'b.md')",
    "data.files.filter(f, f.endsWith('.rs')) == ['a.rs', 'c.rs']",
    "data.files.map(f, size(f)) == [4, 4, 4]",
    "data.files.map(f, f != 'b.md', f.upperAscii()) == ['A.RS', 'C.RS']",
    "data.args.exists(key, key == 'count') && {'a': 1}.map(k, k) == ['a']",
    "[].all(x, false) && ![].exists(x, true)",
    "[1, 2].all(x, [3, 4].all(y, x < y)) && [1].map(x, [2].map(x, x)) == [[2]]",
    "[1, 'a'].exists(x, x < 2) && ![3, 'a', 0].all(x, x > 0)",
    "[1].all(data, data == 1)",
    // functions
    "size('Grüße') == 5 && 'a'.size() == 1 && size([1]) == 1 && size({}) == 0 && size(b'ü') == 2",
    "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && !'abc'.contains('d')",
    r"'abc123'.matches('[0-9]+$') && matches('abc', '^a.c$') && !'abc'.matches(r'\d')",
    "'abc'.matches('a' + '.' + 'c')",
    "int('-5') == -5 && int(2.9) == 2 && int(-2.9) == -2 && int(5u) == 5 && uint('5') == 5u && uint(2.9) == 2u",
    "double('1.5') == 1.5 && double(2) == 2.0 && string(1.5) == '1.5' && string(1u) == '1' && string(true) == 'true'",
    "string(b'ab') == 'ab' && bytes('ab') == b'ab' && bool('true') && !bool('0') && dyn(1) == 1",
    "type(1) == int && type('') == string && type(null) == null_type && type([]) == list && type(type(1)) == type",
    "type(data) == map && type(data.args.count) == int && type(data.args.ratio) == double && type(1u) == uint",
    "'AbC'.lowerAscii() == 'abc' && 'ü'.upperAscii() == 'ü' && ' a '.trim() == 'a'",
    "'a,b,,c'.split(',') == ['a', 'b', '', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a'.split(',', 0) == []",
    "'abc'.split('') == ['a', 'b', 'c'] && 'abc'.split('', 2) == ['a', 'bc'] && 'a,b'.split(',', -1) == ['a', 'b']",
    "['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab' && [].join(',') == ''",
    "'a-b-c'.replace('-', '') == 'abc' && 'a-b-c'.replace('-', '+', 1) == 'a+b-c' && 'aa'.replace('a', 'b', -1) == 'bb'",
    "'grüße'.indexOf('e') == 4 && 'a.b.c'.lastIndexOf('.') == 3 && 'a'.indexOf('x') == -1",
    "'grüße'.charAt(2) == 'ü' && 'a'.charAt(1) == '' && 'grüße'.substring(2) == 'üße' && 'abc'.substring(1, 2) == 'b'",
    "data.text.size() == 7 && data.text.endsWith('🦀')",
];

#[test]
fn the_language_means_what_cel_says() {
    for text in TRUE {
        assert_eq!(ask(text), Ok(true), "{text}");
        assert_eq!(ask(&format!("!({text}\n)")), Ok(false), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_place_and_way_out() {
    let errors: Vec<String> = [
        "",
        "  // only a comment",
        "data.tool_name = 'shell'",
        "data.tool_name == 'shell",
        "data.tool_name == “shell”",
        "data.a & data.b",
        "data.a and data.b",
        "dta.tool_name == 'shell'",
        "tool == 'shell'",
        "data.name.startWith('a')",
        "data.name.frobnicate()",
        "contains(data.name, 'a')",
        "data.list.size(1)",
        "data.name.int()",
        "data.name.contains()",
        "has(data)",
        "has(data['a'])",
        "[1, 2",
        "{'a' 1}",
        "(true",
        "true true",
        "1 +",
        "data.",
        "data.in",
        "data.list.all(1, true)",
        "data.list.all(x)",
        "data.list.all(if, true)",
        "-!true",
        "9223372036854775808",
        "99999999999999999999",
        "1e999",
        "12abc == 1",
        r"'\d+'",
        r"b'\u0041'",
        r"'\ud800'",
        "timestamp('2024-01-01T00:00:00Z') < 1",
        "duration('1s') == 1",
        "optional.of(1)",
        "Message{a: 1}",
        "data.?a",
        "true &&\n  data.x ==\n  @",
        "f(1,)",
        "size(1,)",
    ]
    .iter()
    .map(|text| format!("{text}\n    {}", Condition::parse(text).unwrap_err()))
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn what_cannot_be_answered_is_a_fault_with_place_and_way_out() {
    let faults: Vec<String> = [
        "data.nope == 1",
        "has(data.nope.deeper)",
        "data.tool_name.length == 5",
        "data.files[3] == ''",
        "data.files[-1] == ''",
        "data.files['0'] == ''",
        "data['nope']",
        "{1: 2}[3] == 2",
        "1 + 'a' == 2",
        "1 + 1.0 == 2.0",
        "1.5 % 1.0 == 0.5",
        "1 < 'a'",
        "null < null",
        "1 in 'a'",
        "-'a' == 'a'",
        "!1",
        "-data.big == 1",
        "--9223372036854775808 == 1",
        "9223372036854775807 + 1 > 0",
        "1u - 2u > 0u",
        "-9223372036854775808 / -1 > 0",
        "1 / 0 == 1",
        "1u % 0u == 1u",
        "int('five') == 5",
        "int(1e30) == 5",
        "uint(-1) == 5u",
        "bool('yes')",
        r"string(b'\xff') == ''",
        "string(null) == ''",
        "'a'.matches('(')",
        "'a'.matches('(' + 'secret')",
        "'a'.contains(1)",
        "size(1) == 1",
        "['a', 1].join() == ''",
        "'a'.charAt(2) == ''",
        "'abc'.substring(2, 1) == ''",
        "{'a': 1, 'a': 2} == {}",
        "{1.5: 1} == {}",
        "'a' ? true : false",
        "'a' || false",
        "[1].all(x, x)",
        "[1].filter(x, x) == []",
        "'abc'.all(x, true)",
        "[1, 'a'].exists_one(x, x < 2)",
        "data.tool_name",
        "data.args",
    ]
    .iter()
    .map(|text| format!("{text}\n    {}", ask(text).unwrap_err()))
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn a_fault_says_where_in_bytes_and_in_lines() {
    let fault = ask("true &&\n  data.nope").unwrap_err();
    assert_eq!((fault.offset, fault.at.line, fault.at.column), (14, 2, 7));
    let error = Condition::parse("'ü' ==\n  ").unwrap_err();
    assert_eq!((error.offset, error.at.line, error.at.column), (10, 2, 3));
}

#[test]
fn a_bad_literal_pattern_is_found_by_a_check() {
    let condition = Condition::parse("data.a.matches('ok') && data.b.matches('(')").unwrap();
    assert_eq!(condition.check().unwrap_err().offset, 31);
    assert_eq!(Condition::parse("data.a.matches('ok')").unwrap().check(), Ok(()));
}

#[test]
fn a_condition_keeps_its_text() {
    let text = " data.a  ==1 // why";
    assert_eq!(Condition::parse(text).unwrap().text(), text);
}

#[test]
fn every_guard_of_the_guide_can_be_asked() {
    let guide = include_str!("../../../../docs/conditions.md");
    let guards = guide.split("```cel\n").nth(1).unwrap().split("```").next().unwrap();
    let guards: Vec<&str> = guards.split("\n\n").collect();
    assert_eq!(guards.len(), 6);
    for guard in &guards {
        assert_eq!(Condition::parse(guard).unwrap().check(), Ok(()), "{guard}");
    }
    assert_eq!(ask(guards[0]), Ok(true));
    assert_eq!(ask(guards[1]), Ok(false));
    assert_eq!(ask(guards[4]), Ok(true));
}
