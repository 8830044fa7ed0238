//! JSON as people write it, by the syntax tree of `jsonc_parser`: comments pass, and every value knows its place.

use jsonc_parser::ast::{ObjectPropName, StringLit, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, Scanner, ScannerOptions, parse_to_ast};

use super::lines::Lines;
use super::{Mark, ParsedText, SyntaxFault};
use crate::node::Node;

/// Whether a comma may stand before a closing bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingCommas {
    /// It is an error, as in JSON itself.
    Refused,
    /// It is let pass, as programs let it whose settings are copied.
    Allowed,
}

/// Values within values beyond this depth are refused: all code that walks through them needs room for each.
const DEEPEST: usize = 128;

/// Reads JSON as people write it: comments pass. An error says why, and the place in the text.
///
/// ```
/// use ollm_catalog::{TrailingCommas, json_value};
/// let text = "{\"a\": [1, /* two */ 3,]} // end";
/// assert_eq!(json_value(text, TrailingCommas::Allowed).unwrap()["a"][1], 3);
/// assert!(json_value(text, TrailingCommas::Refused).unwrap_err().ends_with("at line 1 column 22"));
/// ```
pub fn json_value(text: &str, commas: TrailingCommas) -> Result<serde_json::Value, String> {
    match read(text, commas) {
        Ok(parsed) => Ok(parsed.node.to_json()),
        Err(wrong) => Err(format!("{} at {}", wrong.reason, Lines::new(text).position(wrong.at))),
    }
}

pub(super) fn parse(text: &str, commas: TrailingCommas) -> Result<ParsedText, SyntaxFault> {
    if text.trim().is_empty() {
        let help = Some("write {\"hooks\": {}} or remove it");
        return Err(SyntaxFault { at: None, message: "it is empty".to_owned(), help });
    }
    read(text, commas).map_err(|wrong| SyntaxFault {
        at: Some(Lines::new(text).position(wrong.at)),
        message: format!("it is not valid JSON: {}", wrong.reason),
        help: wrong.help,
    })
}

/// Why a text is no JSON, and from which byte on.
struct JsonFault {
    at: usize,
    reason: &'static str,
    help: Option<&'static str>,
}

fn read(text: &str, commas: TrailingCommas) -> Result<ParsedText, JsonFault> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: commas == TrailingCommas::Allowed,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let tree = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| refused(text, &error))?;
    let missing = JsonFault { at: text.len(), reason: "it holds no value", help: Some("write {} or remove it") };
    let reader = TreeBuilder { text, lines: Lines::new(text) };
    reader.value(&tree.value.ok_or(missing)?, None, 0)
}

/// Makes a tree of ours.
struct TreeBuilder<'a> {
    text: &'a str,
    lines: Lines<'a>,
}

impl TreeBuilder<'_> {
    fn value(&self, value: &Value<'_>, key: Option<Range>, depth: usize) -> Result<ParsedText, JsonFault> {
        let Range { start, end } = value.range();
        if depth > DEEPEST {
            let help = Some("nest less deeply; a hook file needs no more than six levels");
            return Err(JsonFault { at: start, reason: "values are nested too deeply", help });
        }
        let mut inside = Vec::new();
        let node = match value {
            Value::NullKeyword(_) => Node::Null,
            Value::BooleanLit(literal) => Node::Bool(literal.value),
            Value::NumberLit(literal) => number(literal.value).ok_or(JsonFault {
                at: start,
                reason: "number out of range",
                help: Some("write a smaller number"),
            })?,
            Value::StringLit(literal) => Node::Text(self.string(literal)?),
            Value::Array(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for element in &list.elements {
                    let item = self.value(element, None, depth + 1)?;
                    inside.push(item.mark);
                    items.push(item.node);
                }
                Node::List(items)
            }
            Value::Object(object) => {
                let mut entries = Vec::with_capacity(object.properties.len());
                for property in &object.properties {
                    let name = match &property.name {
                        ObjectPropName::String(literal) => self.string(literal)?,
                        ObjectPropName::Word(word) => word.value.to_owned(),
                    };
                    let item = self.value(&property.value, Some(property.name.range()), depth + 1)?;
                    inside.push(item.mark);
                    entries.push((name, item.node));
                }
                Node::Map(entries)
            }
        };
        let position = |range: Range| self.lines.position(range.start);
        let mark =
            Mark { key: key.map(position), value: self.lines.position(start), letters: Some(start..end), inside };
        Ok(ParsedText { node, mark })
    }

    /// The text of a literal, in which line breaks and the like are written as escapes.
    fn string(&self, literal: &StringLit<'_>) -> Result<String, JsonFault> {
        let raw = self.text.get(literal.range.start..literal.range.end).unwrap_or_default();
        match raw.bytes().position(|byte| byte < b' ') {
            Some(at) => Err(control_character(literal.range.start + at)),
            None => Ok(literal.value.clone().into_owned()),
        }
    }
}

/// A number that is none of ours is out of range: the parser has seen to its form.
fn number(text: &str) -> Option<Node> {
    let whole = || text.parse().ok().map(Node::Whole);
    let fraction = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Node::Fraction);
    // Minus zero is no whole number.
    whole().filter(|_| text != "-0").or_else(fraction)
}

/// What a text has that JSON has not, though it can be read.
#[derive(Default)]
pub(crate) struct LooseSyntax {
    pub(crate) comments: bool,
    /// Commas before a closing bracket.
    pub(crate) commas: bool,
}

/// Looks for comments, and for commas that may go.
pub(crate) fn loose(text: &str) -> LooseSyntax {
    let mut found = LooseSyntax::default();
    let mut after_comma = false;
    for (token, _) in tokens(text) {
        match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => found.comments = true,
            Token::CloseBrace | Token::CloseBracket if after_comma => found.commas = true,
            token => after_comma = token == Token::Comma,
        }
    }
    found
}

/// The pieces of a text, up to one that is none, with the bytes where they begin.
fn tokens(text: &str) -> impl Iterator<Item = (Token<'_>, usize)> {
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    std::iter::from_fn(move || {
        let token = scanner.scan().ok().flatten()?;
        Some((token, scanner.token_start()))
    })
}

/// Why the parser refused a text. A quote that is not closed makes what follows unreadable, so that is looked for first.
fn refused(text: &str, error: &ParseError) -> JsonFault {
    let Range { start, end } = error.range();
    let broken_line = tokens(text).take_while(|(_, at)| *at < start.max(end)).find_map(|(token, at)| {
        let Token::String(value) = token else { return None };
        let rest = text.get(at..).unwrap_or_default();
        value.contains('\n').then(|| at + rest.find('\n').unwrap_or_default())
    });
    if let Some(at) = broken_line {
        return control_character(at);
    }
    let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
    let (reason, help) = reason(error.kind(), before, rest);
    JsonFault { at: start, reason, help }
}

fn control_character(at: usize) -> JsonFault {
    let help = "close the quote, or write line breaks and tabs inside text as \\n and \\t";
    JsonFault { at, reason: "a line break or control character inside text", help: Some(help) }
}

/// What is wrong, and the way out; the usual slips are known by what stands at the place.
fn reason(kind: &ParseErrorKind, before: &str, rest: &str) -> (&'static str, Option<&'static str>) {
    use ParseErrorKind as ConfigKind;
    let too_early = Some("the file ends too early; close every bracket and quote");
    match kind {
        _ if rest.starts_with('\0') => ("a NUL character", Some("remove it; save the file as UTF-8")),
        _ if rest.starts_with('#') => ("expected a value", Some("write comments as // or /* */ in JSON")),
        _ if rest.starts_with('/') && !rest.starts_with("/*") => {
            ("expected a value", Some("write comments as // or /* */ in JSON"))
        }
        ConfigKind::UnterminatedCommentBlock => ("a comment that is not closed", Some("close the comment with */")),
        ConfigKind::SingleQuotedStringsNotAllowed => ("text in single quotes", Some("write text in double quotes")),
        ConfigKind::TrailingCommasNotAllowed => ("trailing comma", Some("remove the comma before the closing bracket")),
        ConfigKind::NestingDepthExceeded => ("values are nested too deeply", Some("nest less deeply")),
        ConfigKind::UnterminatedArray => ("a list that is not closed", too_early),
        ConfigKind::UnterminatedObject => ("an object that is not closed", too_early),
        ConfigKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => ("text that is not closed", too_early),
        ConfigKind::String(
            ParseStringErrorKind::InvalidUnicodeEscapeSequence(_) | ParseStringErrorKind::ExpectedFourHexDigits,
        ) => ("an escape that is no character", Some("write the character itself, or both halves of the pair")),
        ConfigKind::String(_) => ("invalid escape", Some("write a backslash as \\\\")),
        ConfigKind::MultipleRootJsonValues => {
            ("trailing characters", Some("one file holds one object; remove what follows it"))
        }
        ConfigKind::ExpectedComma if rest.starts_with(|letter: char| letter.is_ascii_digit()) => {
            ("invalid number", Some("write numbers as 1, -2.5 or 3e8"))
        }
        ConfigKind::ExpectedComma => {
            ("expected a comma", Some("put a comma between the two, or close the bracket before"))
        }
        ConfigKind::ExpectedColonAfterObjectKey if rest.is_empty() => ("expected a colon", too_early),
        ConfigKind::ExpectedColonAfterObjectKey => {
            ("expected a colon", Some("put a colon between the key and its value"))
        }
        ConfigKind::ExpectedObjectValue if rest.is_empty() => ("expected a value", too_early),
        ConfigKind::UnexpectedTokenInObject if rest.starts_with(']') => {
            ("a bracket that closes nothing", Some("close the object before it with }, or remove the bracket"))
        }
        ConfigKind::UnexpectedCloseBrace if !before.trim_end().ends_with(':') => {
            ("a bracket that closes nothing", Some("close the list before it with ], or remove the bracket"))
        }
        ConfigKind::ExpectedStringObjectProperty | ConfigKind::UnexpectedTokenInObject => {
            ("expected a key", Some("write every key in double quotes"))
        }
        ConfigKind::UnexpectedWord => {
            ("a word without quotes", Some("write text in double quotes; the only bare words are true, false and null"))
        }
        ConfigKind::UnexpectedToken if rest.starts_with(|letter: char| letter.is_alphabetic()) => {
            ("a word without quotes", Some("write text in double quotes; the only bare words are true, false and null"))
        }
        ConfigKind::BareDecimalPointNumbersNotAllowed
        | ConfigKind::HexadecimalNumbersNotAllowed
        | ConfigKind::NonFiniteNumbersNotAllowed
        | ConfigKind::UnaryPlusNumbersNotAllowed
        | ConfigKind::ExpectedDigit
        | ConfigKind::ExpectedDigitFollowingNegativeSign
        | ConfigKind::ExpectedPlusMinusOrDigitInNumberLiteral => {
            ("invalid number", Some("write numbers as 1, -2.5 or 3e8"))
        }
        _ => ("expected a value", Some("a value is missing here: text in quotes, a number, true, false, null, [ or {")),
    }
}
