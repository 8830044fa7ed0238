//! Reads calls in Python's form: `shell(command="ls")`, alone or in a list.

use serde_json::{Map, Number, Value};

/// How deep values may be nested.
const DEEPEST: usize = 20;
/// Python's words for JSON's constants.
const WORDS: &[(&str, Value)] = &[("True", Value::Bool(true)), ("False", Value::Bool(false)), ("None", Value::Null)];

/// The name and the arguments of the call that begins a text, and the text after the call. All arguments must have
/// names.
pub(super) fn call(text: &str) -> Option<(&str, Map<String, Value>, &str)> {
    let (name, inside) = text.split_once('(').filter(|(name, _)| is_name(name))?;
    let mut arguments = Map::new();
    let mut rest = inside.trim_start();
    while !rest.starts_with(')') {
        let (argument, behind) = rest.split_once('=').filter(|(argument, _)| is_name(argument.trim_end()))?;
        let (value, behind) = value(behind, DEEPEST)?;
        arguments.insert(argument.trim_end().to_owned(), value);
        rest = next(behind, ')')?;
    }
    Some((name, arguments, rest.strip_prefix(')')?))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'))
}

/// The text after a value: the next value after a comma, or the end.
fn next(text: &str, end: char) -> Option<&str> {
    let text = text.trim_start();
    match text.strip_prefix(',') {
        Some(more) => Some(more.trim_start()),
        None => text.starts_with(end).then_some(text),
    }
}

fn value(text: &str, deeper: usize) -> Option<(Value, &str)> {
    let text = text.trim_start();
    let deeper = deeper.checked_sub(1)?;
    if let Some((word, value)) = WORDS.iter().find(|(word, _)| text.starts_with(word)) {
        return Some((value.clone(), text.get(word.len()..)?));
    }
    match text.chars().next()? {
        quote @ ('"' | '\'') => string(text, quote).map(|(text, rest)| (text.into(), rest)),
        '[' => {
            let (mut values, mut rest) = (Vec::new(), text.get(1..)?.trim_start());
            while !rest.starts_with(']') {
                let (value, behind) = value(rest, deeper)?;
                values.push(value);
                rest = next(behind, ']')?;
            }
            Some((values.into(), rest.get(1..)?))
        }
        '{' => {
            let (mut map, mut rest) = (Map::new(), text.get(1..)?.trim_start());
            while !rest.starts_with('}') {
                let quote = rest.chars().next().filter(|char| matches!(char, '"' | '\''))?;
                let (key, behind) = string(rest, quote)?;
                let (value, behind) = value(behind.trim_start().strip_prefix(':')?, deeper)?;
                map.insert(key, value);
                rest = next(behind, '}')?;
            }
            Some((map.into(), rest.get(1..)?))
        }
        _ => {
            let end = text.find(|char: char| !(char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '+')));
            let (number, rest) = text.split_at(end.unwrap_or(text.len()));
            Some((Value::Number(number.parse::<Number>().ok()?), rest))
        }
    }
}

/// A string in single, double or triple quotes.
fn string(text: &str, quote: char) -> Option<(String, &str)> {
    let triple = quote.to_string().repeat(3);
    let end = if text.starts_with(&triple) { triple } else { quote.to_string() };
    let mut rest = text.get(end.len()..)?;
    let mut read = String::new();
    loop {
        if let Some(behind) = rest.strip_prefix(&end) {
            return Some((read, behind));
        }
        let mut chars = rest.chars();
        match chars.next()? {
            '\\' => match chars.next()? {
                'n' => read.push('\n'),
                't' => read.push('\t'),
                'r' => read.push('\r'),
                char @ ('\\' | '\'' | '"') => read.push(char),
                other => read.extend(['\\', other]),
            },
            char => read.push(char),
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_python_means_them() {
        let text = r#"f(a = "x\n'y'", b='it\'s \d', c=[1, -2.5, True,], d={'k': None, "l": []}, e="""two "lines"
of text""",) and more"#;
        let (name, arguments, rest) = call(text).unwrap();
        let expected = json!({
            "a": "x\n'y'", "b": "it's \\d", "c": [1, -2.5, true], "d": {"k": null, "l": []}, "e": "two \"lines\"\nof text",
        });
        assert_eq!((name, Value::from(arguments), rest), ("f", expected, " and more"));
        assert_eq!(call("f()"), Some(("f", Map::new(), "")));
    }

    #[test]
    fn what_is_no_call_with_names_is_none() {
        for text in
            ["f", "f(", "f(1)", "f(a)", "f(a=b)", "f(a=1", "f(a=\"x)", "f(a=1 b=2)", "a f(x=1)", "(x=1)", "f(a=g(1))"]
        {
            assert_eq!(call(text), None, "{text}");
        }
        assert_eq!(call(&format!("f(a={}", "[".repeat(100_000))), None);
    }
}
