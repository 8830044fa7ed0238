//! Reads JSON from other programs: objects among log lines, doubled keys, half surrogate pairs. Finds the end of a
//! value without waiting for the end of the stream.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The most bytes that all failed attempts at one text may read, so that hostile text costs bounded time.
const PATIENCE: usize = 8 << 20;

/// The extra cost of one failed attempt, in bytes.
const ATTEMPT: usize = 128;

/// The deepest nesting that is read. Deeper values are left out, so that the values beside them can still be read.
const DEEPEST: usize = 100;

/// One JSON object. For a doubled key, `fields` has the last value, and the earlier ones are kept separately.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub(crate) fields: Map<String, Value>,
    /// Values that a later value of the same key replaced, at any depth, each with its path.
    shadowed: Vec<(Vec<String>, Value)>,
    /// Whether values were left out because they were nested too deeply.
    pub(crate) cut: bool,
    /// Whether invalid escapes were replaced.
    pub(crate) mended: bool,
}

impl Object {
    /// Every value of a key, including the replaced ones.
    pub(crate) fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Value> {
        let shadowed = self.shadowed.iter().filter(move |(path, _)| matches!(path.as_slice(), [only] if only == key));
        self.fields.get(key).into_iter().chain(shadowed.map(|(_, value)| value))
    }

    /// The object under a key. If the key is doubled, the other objects' values count as replaced ones.
    pub(crate) fn inside(&self, key: &str) -> Option<Object> {
        let fields = self.values(key).find_map(Value::as_object)?.clone();
        let mut shadowed = Vec::new();
        for (path, value) in &self.shadowed {
            match path.split_first() {
                Some((first, [])) if first == key => {
                    let entries = value.as_object().into_iter().flatten();
                    shadowed.extend(entries.map(|(name, value)| (vec![name.clone()], value.clone())));
                }
                Some((first, rest)) if first == key => shadowed.push((rest.to_vec(), value.clone())),
                _ => {}
            }
        }
        Some(Object { fields, shadowed, ..Object::default() })
    }
}

/// Reads a text that is one JSON object.
fn read_object(text: &str) -> Result<Object, serde_json::Error> {
    let mut collector = Collector::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = collector.deserialize(&mut deserializer)?;
    deserializer.end()?;
    let Some(Value::Object(fields)) = value else { return Err(serde::de::Error::custom("expected a JSON object")) };
    Ok(Object { fields, shadowed: collector.shadowed, cut: collector.cut, mended: false })
}

/// Reads a text that is one JSON object. An invalid escape does not hide the rest.
fn read_mended(text: &str) -> Result<Object, serde_json::Error> {
    let error = match read_object(text) {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    let mended = mend(text).ok_or(error)?;
    Ok(Object { mended: true, ..read_object(&mended)? })
}

/// The JSON object of a request. Of doubled keys, the last value counts.
pub(crate) fn request(bytes: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match serde_json::from_str(text) {
        Ok(fields) => Ok(fields),
        Err(error) => serde_json::from_str(&mend(text).ok_or(error)?),
    }
}

/// Collects a value, and the values that doubled keys replaced. A value that is nested too deeply becomes null.
#[derive(Default)]
struct Collector {
    path: Vec<String>,
    shadowed: Vec<(Vec<String>, Value)>,
    cut: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Collector {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Collector {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(Some(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<Value>, A::Error> {
        if self.path.len() >= DEEPEST {
            self.cut = true;
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        let mut list = Vec::new();
        self.path.push("[]".to_owned());
        while let Some(element) = elements.next_element_seed(&mut *self)? {
            list.extend(element);
        }
        self.path.pop();
        Ok(Some(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<Value>, A::Error> {
        if self.path.len() >= DEEPEST {
            self.cut = true;
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(None);
        }
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            self.path.push(name.clone());
            let value = entries.next_value_seed(&mut *self)?;
            if let Some(earlier) = value.and_then(|value| fields.insert(name, value)) {
                self.shadowed.push((self.path.clone(), earlier));
            }
            self.path.pop();
        }
        Ok(Some(fields.into()))
    }
}

/// Replaces every escaped half of a surrogate pair that stands alone; `None` if there is none.
///
/// Programs that cut a string within a character write such halves.
fn mend(text: &str) -> Option<String> {
    let mut mended = text.as_bytes().to_vec();
    let mut at = 0;
    let mut changed = false;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        let unit = escaped_unit(text, start);
        let next = escaped_unit(text, start + 6);
        at = match (unit, next) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 12,
            (Some(0xd800..=0xdfff), _) => {
                if let Some(escape) = mended.get_mut(start..start + 6) {
                    escape.copy_from_slice(b"\\ufffd");
                    changed = true;
                }
                start + 6
            }
            _ => start + 2,
        };
    }
    changed.then(|| String::from_utf8_lossy(&mended).into_owned())
}

/// The number of `\uXXXX` at this place in a text.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

/// The result of searching a text that should be one JSON object.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "findings that do not depend on one another")]
pub(crate) struct Scan {
    /// The objects, in order.
    pub(crate) objects: Vec<Object>,
    /// Whether other text stands before the last object.
    pub(crate) before: bool,
    /// Whether other text stands after the last object.
    pub(crate) after: bool,
    /// Whether the text was not valid UTF-8.
    pub(crate) lossy: bool,
    /// Whether an object has no end or is unreadable. The objects found may then be parts of it.
    pub(crate) broken: bool,
    /// Why the text as a whole is not JSON.
    pub(crate) error: Option<String>,
}

impl Scan {
    /// Whether there is only white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.objects.is_empty() && !self.before && !self.after
    }

    /// The object, if the text is exactly one.
    pub(crate) fn sole(&self) -> Option<&Object> {
        match self.objects.as_slice() {
            [object] if !self.before && !self.after && !self.lossy => Some(object),
            _ => None,
        }
    }
}

/// Finds the JSON objects in a text, among other text.
pub(crate) fn scan(bytes: &[u8]) -> Scan {
    let text = String::from_utf8_lossy(bytes);
    let lossy = matches!(text, Cow::Owned(_));
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut scan = Scan { lossy, ..Scan::default() };
    let mut patience = PATIENCE;
    let mut seen = 0;
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| from + at) {
        let Some(rest) = text.get(start..) else { break };
        match end_of_object(rest) {
            Ok(length) => {
                from = start + length;
                match read_mended(rest.get(..length).unwrap_or_default()) {
                    Ok(object) => {
                        scan.before |= !is_blank(text, seen, start);
                        scan.objects.push(object);
                        seen = from;
                    }
                    // Unreadable text counts as other text.
                    Err(error) => {
                        scan.broken = true;
                        scan.error.get_or_insert_with(|| error.to_string());
                    }
                }
            }
            Err(failure) => {
                scan.broken |= failure.unfinished;
                scan.error.get_or_insert(failure.message);
                from = start + 1;
                patience = patience.saturating_sub(failure.read + ATTEMPT);
                if patience == 0 {
                    scan.error = Some("the output is too tangled to look for JSON in".to_owned());
                    break;
                }
            }
        }
    }
    scan.after = !is_blank(text, seen, text.len());
    if scan.objects.is_empty() && scan.after {
        scan.error.get_or_insert_with(|| "there is no JSON object in the output".to_owned());
    }
    scan
}

fn is_blank(text: &str, from: usize, to: usize) -> bool {
    text.get(from..to).is_none_or(|part| part.trim().is_empty())
}

struct Failure {
    read: usize,
    unfinished: bool,
    message: String,
}

fn end_of_object(text: &str) -> Result<usize, Failure> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        Some(Err(error)) => {
            Err(Failure { read: bytes_read(text, &error), unfinished: error.is_eof(), message: error.to_string() })
        }
        None => Err(Failure { read: 0, unfinished: true, message: "the output ends early".to_owned() }),
    }
}

fn bytes_read(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let lines: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    lines + error.column()
}

/// Finds the end of the first JSON object in a stream of chunks, without waiting for the end of the stream.
#[derive(Debug, Default)]
pub struct ObjectEnd {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// The stream does not begin with a JSON object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it begins with `{}`, not with a JSON object", char::from(*.0).escape_default())]
pub struct NotAnObject(pub u8);

impl ObjectEnd {
    /// Reads the next chunk. Returns the offset after the object's last byte, once it has arrived.
    ///
    /// ```
    /// let mut end = ollm_protocol::ObjectEnd::default();
    /// assert_eq!(end.push(b" {\"a\": \"}"), Ok(None));
    /// assert_eq!(end.push(b"\"}\n{"), Ok(Some(2)));
    /// ```
    pub fn push(&mut self, chunk: &[u8]) -> Result<Option<usize>, NotAnObject> {
        for (index, &byte) in chunk.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' | b'[' if self.depth > 0 || byte == b'{' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(Some(index + 1));
                    }
                }
                b'"' if self.depth > 0 => self.in_string = true,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                // A byte order mark before the object.
                0xef | 0xbb | 0xbf if self.depth == 0 => {}
                _ if self.depth == 0 => return Err(NotAnObject(byte)),
                _ => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(text: &str) -> (Vec<Value>, bool, bool) {
        let scan = scan(text.as_bytes());
        (scan.objects.into_iter().map(|object| Value::Object(object.fields)).collect(), scan.before, scan.after)
    }

    #[test]
    fn objects_are_found_among_other_text() {
        assert_eq!(found("{\"a\":1}\n"), (vec![json!({"a":1})], false, false));
        assert_eq!(found("log {x}\n{\"a\":1}"), (vec![json!({"a":1})], true, false));
        assert_eq!(found("{\"a\":1} done"), (vec![json!({"a":1})], false, true));
        assert_eq!(found("{\"a\":1}{\"b\":2}"), (vec![json!({"a":1}), json!({"b":2})], false, false));
        assert_eq!(found("[{\"a\":1}]"), (vec![json!({"a":1})], true, true));
        assert_eq!(found("  \n"), (vec![], false, false));
        assert_eq!(found("hello"), (vec![], false, true));
    }

    #[test]
    fn a_doubled_key_keeps_every_value() {
        let scan = scan(br#"{"continue":false,"continue":true}"#);
        let object = scan.sole().unwrap();
        assert_eq!(object.values("continue").collect::<Vec<_>>(), [&json!(true), &json!(false)]);
    }

    #[test]
    fn bytes_that_are_no_utf8_are_read_with_replacements() {
        let scan = scan(b"{\"a\":\"\xff\"}");
        assert!(scan.lossy);
        assert!(scan.sole().is_none());
        assert_eq!(scan.objects.len(), 1);
    }

    #[test]
    fn hostile_text_costs_bounded_work() {
        for text in [
            "[".repeat(200_000),
            "{".repeat(1 << 20),
            "{\"a\":".repeat(170_000),
            "{\"a\":[".repeat(100) + &"1,".repeat(500_000),
        ] {
            assert!(scan(text.as_bytes()).objects.is_empty());
        }
    }

    #[test]
    fn the_end_of_an_object_is_found_in_any_chunking() {
        let text = b"\n{\"a\\\"}\": [{}, \"}\"], \"b\": {\"c\": \"\\\\\"}} tail";
        for size in 1..text.len() {
            let mut end = ObjectEnd::default();
            let mut offset = 0;
            let at = text.chunks(size).find_map(|chunk| {
                let at = end.push(chunk).unwrap().map(|at| offset + at);
                offset += chunk.len();
                at
            });
            assert_eq!(at, Some(text.len() - 5), "chunks of {size}");
        }
        assert_eq!(ObjectEnd::default().push(b" [1]"), Err(NotAnObject(b'[')));
    }
}
