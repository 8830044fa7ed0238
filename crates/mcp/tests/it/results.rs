//! Results: every kind of content, promises kept and broken, and bounds.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use ollm_mcp::{Spill, bound_result, read_error, read_result, show_result, write_result};
use ollm_protocol::{Content, ToolResult, ToolSchema};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn promise(value: &Value) -> ToolSchema {
    ToolSchema(value.as_object().unwrap().clone())
}

fn sum() -> ToolSchema {
    promise(&json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}))
}

#[test]
fn an_unknown_part_is_shown_as_it_came() {
    let taken = read_result(&json!({"content": [{"type": "smell", "data": 1}, {"type": "image"}, "bare"]}), None);
    let texts = [r#"{"type":"smell","data":1}"#, r#"{"type":"image"}"#, "bare"];
    assert_eq!(taken.result.content, texts.map(|text| Content::Text(text.to_owned())));
    assert_eq!(taken.notes.len(), 3);
}

#[test]
fn an_answer_without_sense_is_an_error_for_the_model() {
    for answer in [json!(null), json!(3), json!([])] {
        assert!(read_result(&answer, None).result.is_error);
    }
    assert_eq!(read_result(&json!({}), None).result, ToolResult::default());
}

#[test]
fn a_broken_promise_is_dropped_and_named() {
    let answer = json!({"content": [{"type": "text", "text": "four"}], "structuredContent": {"sum": "four"}});
    let taken = read_result(&answer, Some(&sum()));
    assert_eq!(taken.result, ToolResult::text("four"));
    assert_eq!(
        taken.notes,
        ["the structured result is dropped, it is not what the tool promised: /sum: it must be number, not text"]
    );
}

#[test]
fn a_missing_structured_result_is_read_from_the_text() {
    let answer = json!({"content": [{"type": "text", "text": "{\"sum\": 4}"}]});
    assert_eq!(read_result(&answer, Some(&sum())).result.structured, Some(json!({"sum": 4})));
    assert_eq!(read_result(&answer, None).result.structured, None);
    let words = json!({"content": [{"type": "text", "text": "four"}]});
    let taken = read_result(&words, Some(&sum()));
    assert_eq!((taken.result.structured, taken.notes.len()), (None, 1));
}

#[test]
fn a_structured_result_alone_is_also_told_in_words() {
    let taken = read_result(&json!({"structuredContent": {"sum": 4}}), Some(&sum()));
    assert_eq!(taken.result.content, [Content::Text(r#"{"sum":4}"#.to_owned())]);
}

#[test]
fn a_failure_needs_no_structure() {
    let answer = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    let taken = read_result(&answer, Some(&sum()));
    assert_eq!((taken.result, taken.notes), (ToolResult::error("no"), Vec::new()));
}

#[test]
fn people_see_control_characters_and_words_for_the_rest() {
    let result = ToolResult {
        content: vec![
            Content::Text("a\u{1b}[31mb".into()),
            Content::Image { data: "AAAA".into(), mime_type: "image/png".into() },
            Content::Link { uri: "file:///x".into(), name: "x".into(), description: None, mime_type: None },
        ],
        ..ToolResult::default()
    };
    assert_eq!(show_result(&result), "a\\u{1b}[31mb\n[image (image/png), 4 bytes in base64]\n[x at file:///x]");
}

#[test]
fn a_result_that_is_too_large_is_kept_whole_in_a_file_of_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill::new(folder.path().join("results"), Arc::default());
    let text = "é".repeat(1000);
    let bounded = bound_result(ToolResult { is_error: true, ..ToolResult::text(text.clone()) }, 101, &spill);
    let [Content::Text(shown)] = bounded.result.content.as_slice() else { panic!("{bounded:?}") };
    let path = shown.rsplit_once("the whole is in ").unwrap().1.trim_end_matches(']');
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(shown.starts_with(&"é".repeat(50)) && bounded.result.is_error && shown.len() < 500);
}

#[test]
fn a_small_result_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let result = ToolResult::text("small");
    assert_eq!(bound_result(result.clone(), 5, &Spill::new(folder.path(), Arc::default())).result, result);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_not_only_text_is_kept_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let picture = Content::Image { data: "A".repeat(500), mime_type: "image/png".into() };
    let result = ToolResult { content: vec![picture, Content::Text("x".repeat(200))], ..ToolResult::default() };
    let bounded = bound_result(result.clone(), 100, &Spill::new(folder.path(), Arc::default()));
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let kept: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(kept, write_result(&result));
    assert!(matches!(bounded.result.content.as_slice(), [Content::Text(text)] if text.contains("[700 bytes")));
}

#[test]
fn a_picture_is_not_counted_as_text_but_has_a_bound_too() {
    let folder = tempfile::tempdir().unwrap();
    let of = |size: usize| ToolResult {
        content: vec![Content::Image { data: "A".repeat(size), mime_type: "image/png".into() }],
        ..ToolResult::default()
    };
    assert_eq!(bound_result(of(1 << 20), 100, &Spill::new(folder.path(), Arc::default())).result, of(1 << 20));
    let bounded = bound_result(of(6 << 20), 100, &Spill::new(folder.path(), Arc::default())).result;
    assert!(matches!(bounded.content.as_slice(), [Content::Text(text)] if text.contains("the whole is in")));
}

#[test]
fn a_structured_result_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let structured = json!({"text": "x".repeat(60)});
    let result = ToolResult { structured: Some(structured.clone()), ..ToolResult::text(structured.to_string()) };
    assert_eq!(bound_result(result.clone(), 100, &Spill::new(folder.path(), Arc::default())).result, result);
}

#[test]
fn no_more_files_are_kept_than_allowed_and_none_larger() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill { most_files: 3, largest: 10, ..Spill::new(folder.path(), Arc::default()) };
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let mut last = None;
    for number in 0..8 {
        last = Some(spill.keep(format!("{number}{}", "x".repeat(20)).as_bytes()).unwrap());
    }
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "three results and what is not ours");
    let (path, whole) = last.unwrap();
    assert_eq!((std::fs::read(path).unwrap().len(), whole), (10, false));
    let small = Spill { most_bytes: 15, ..spill };
    let (path, whole) = small.keep(b"four").unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!((files().count(), whole, files().any(|file| file == path)), (3, true, true), "14 bytes together");
    let shown = bound_result(ToolResult::text("x".repeat(50)), 10, &small).result;
    assert!(matches!(shown.content.as_slice(), [Content::Text(text)] if text.contains("the first 10 bytes are in")));
}

#[test]
fn a_result_that_cannot_be_kept_is_cut_and_says_so() {
    let bounded = bound_result(ToolResult::text("x".repeat(50)), 10, &Spill::new("/proc/nowhere", Arc::default()));
    assert_eq!(bounded.notes.len(), 1);
    assert!(matches!(bounded.result.content.as_slice(), [Content::Text(text)] if text.contains("the rest is lost")));
}

fn part() -> impl Strategy<Value = Content> {
    let maybe = || proptest::option::of(testkit::text());
    let text = testkit::text;
    prop_oneof![
        text().prop_map(Content::Text),
        (text(), text()).prop_map(|(data, mime_type)| Content::Image { data, mime_type }),
        (text(), text()).prop_map(|(data, mime_type)| Content::Audio { data, mime_type }),
        (text(), maybe(), maybe(), maybe()).prop_map(|(uri, mime_type, text, blob)| Content::Resource {
            uri,
            mime_type,
            text,
            blob
        }),
        (text(), text(), maybe(), maybe()).prop_map(|(uri, name, description, mime_type)| Content::Link {
            uri,
            name,
            description,
            mime_type
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_25_a_result_survives_the_way_there_and_back(
        content in vec(part(), 1..5),
        structured in proptest::option::of(testkit::json_object().prop_map(Value::Object)),
        is_error in any::<bool>(),
    ) {
        let result = ToolResult { content, structured, is_error };
        let back = read_result(&write_result(&result), None);
        prop_assert_eq!(back.result, result);
        prop_assert_eq!(back.notes, Vec::<String>::new());
    }

    #[test]
    fn property_26_any_error_becomes_a_result_that_says_what_happened(
        code in any::<i64>(), message in testkit::hostile_text(), data in proptest::option::of(testkit::json_value()),
    ) {
        let result = read_error(code, &message, data.as_ref());
        prop_assert!(result.is_error);
        let [Content::Text(text)] = result.content.as_slice() else { panic!("{result:?}") };
        let start = format!("error {code}: {message}");
        prop_assert!(text.starts_with(&start));
        prop_assert!(show_result(&result).chars().all(|letter| !letter.is_control() || "\n\t\r".contains(letter)));
    }

    #[test]
    fn property_38_any_answer_becomes_a_result(answer in testkit::json_value(), promised in testkit::json_object()) {
        let answer = json!({"content": answer, "structuredContent": answer, "isError": answer});
        let _ = read_result(&answer, Some(&ToolSchema(promised)));
        let _ = read_result(&answer["content"], None);
    }

    #[test]
    fn property_38_what_a_model_gets_is_bounded(content in vec(part(), 0..6), most in 0usize..200) {
        let folder = tempfile::tempdir().unwrap();
        let result = ToolResult { content, ..ToolResult::default() };
        let bounded = bound_result(result, most, &Spill::new(folder.path(), Arc::default())).result;
        let size = write_result(&bounded)["content"].as_array().unwrap().iter().map(|part| {
            ["text", "uri", "name", "description"].iter().filter_map(|key| part[key].as_str()).map(str::len).sum::<usize>()
        }).sum::<usize>();
        prop_assert!(size <= most + 400, "{size}");
    }
}
