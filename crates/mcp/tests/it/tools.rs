//! The list of a server's tools, and what is remembered of it.

use std::path::Path;

use ollm_mcp::{Cache, Offers, ServerMemory, ToolFilter};
use ollm_store::digest_bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn names(offers: &Offers) -> Vec<&str> {
    offers.tools.iter().map(|offer| offer.tool.name.as_str()).collect()
}

#[test]
fn one_bad_tool_never_drops_the_list() {
    let listed = [
        json!({"name": "good", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}),
        json!({"name": "bad", "inputSchema": "none"}),
        json!({"name": 7, "inputSchema": {}}),
        json!("nonsense"),
        json!({"name": "ba\u{1b}d"}),
        json!({"name": "promises", "outputSchema": [1]}),
        json!({"name": "good", "description": "an impostor"}),
    ];
    let offers = Offers::read("s", &listed, &ToolFilter::default());
    assert_eq!(names(&offers), ["mcp__s__good", "mcp__s__promises"]);
    assert_eq!(offers.remarks.len(), 6);
    let good = &offers.tools[0];
    assert_eq!((good.raw.as_str(), good.tool.description.as_str(), good.tool.read_only), ("good", "d", true));
    assert_eq!(offers.tools[1].tool.output, None);
    assert_eq!(offers.raw("mcp__s__promises"), Some("promises"));
}

#[test]
fn a_schema_that_is_too_large_for_a_model_is_told_and_its_tool_offered() {
    let properties: serde_json::Map<String, Value> =
        (0..2000).map(|number| (format!("property{number}"), json!({"type": "string"}))).collect();
    let listed = [
        json!({"name": "big", "inputSchema": {"type": "object", "properties": properties}, "outputSchema": {"type": "object"}}),
    ];
    let offers = Offers::read("s", &listed, &ToolFilter::default());
    assert_eq!(names(&offers), ["mcp__s__big"]);
    assert!(offers.tools[0].tool.output.is_some());
    let [told] = offers.remarks.as_slice() else { panic!("{:?}", offers.remarks) };
    assert!(
        told.tool == "big" && told.why.ends_with("bytes of every question; models see parts of it as open"),
        "{told:?}"
    );
}

#[test]
fn only_admitted_tools_are_offered() {
    let listed = ["a", "b", "c"].map(|name| json!({"name": name}));
    let filter = ToolFilter { allow: Some(vec!["a".into(), "b".into()]), deny: vec!["b".into()] };
    assert_eq!(names(&Offers::read("s", &listed, &filter)), ["mcp__s__a"]);
}

#[test]
fn a_star_stands_for_any_characters_and_an_entry_that_no_tool_fits_is_told() {
    let listed = ["delete_file", "delete_all", "read_file", "*"].map(|name| json!({"name": name}));
    let filter = |allow: Option<&[&str]>, deny: &[&str]| {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        ToolFilter { allow: allow.map(texts), deny: texts(deny) }
    };
    for (filter, offered, told) in [
        (filter(None, &["delete_*"]), &["mcp__s__read_file", "mcp__s___"][..], &[][..]),
        (filter(Some(&["*_file"]), &["delete*"]), &["mcp__s__read_file"], &[]),
        (filter(Some(&["*"]), &["delete_*", "*", "*"]), &[], &[]),
        (filter(Some(&["read_file", "write_*"]), &["Delete_*"]), &["mcp__s__read_file"], &["write_*", "Delete_*"]),
    ] {
        let offers = Offers::read("s", &listed, &filter);
        assert_eq!(names(&offers), offered, "{filter:?}");
        assert_eq!(offers.remarks.iter().map(|remark| remark.tool.as_str()).collect::<Vec<_>>(), told, "{filter:?}");
    }
    assert_eq!(Offers::read("s", &[], &filter(None, &["x"])), Offers::default(), "nothing is known yet");
}

#[test]
fn a_list_without_end_is_cut_and_says_so() {
    let listed: Vec<Value> = (0..12_000).map(|number| json!({"name": format!("t{number}")})).collect();
    let offers = Offers::read("s", &listed, &ToolFilter::default());
    assert_eq!(offers.tools.len(), 10_000);
    assert_eq!(offers.remarks[0].why, "2000 tools beyond the first 10000 are not offered");
}

#[test]
fn the_cache_remembers_a_list_for_one_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("state/mcp-tools.json"));
    let (key, other) = (digest_bytes(b"one"), digest_bytes(b"other"));
    assert_eq!(cache.get(&key), None);
    let (tools, warnings) = (vec![json!({"name": "t"})], vec!["the rest is left out".to_owned()]);
    let (revision, transport) = (Some("2025-11-25".into()), Some("sse".into()));
    let memory = ServerMemory { tools: Some(tools), warnings, revision, transport };
    let file = Path::new("/a/manifest.json");
    cache.put(&key, &memory, file, 7).unwrap();
    assert_eq!((cache.get(&key), cache.get(&other)), (Some(memory.clone()), None));
    assert_eq!(cache.all(), [(key, memory.clone())]);
    cache.forget(&key).unwrap();
    assert_eq!(cache.get(&key), None);
    cache.put(&key, &memory, file, 7).unwrap();
    cache.put(&other, &memory, Path::new("/b/manifest.json"), 7).unwrap();
    cache.forget_file(file).unwrap();
    assert_eq!(cache.all(), [(other, memory)]);
}

#[test]
fn the_cache_keeps_the_newest_two_hundred() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path().join("mcp-tools.json"));
    let key = |number: u64| digest_bytes(&number.to_le_bytes());
    for number in 0..203 {
        let memory = ServerMemory { tools: Some(Vec::new()), ..ServerMemory::default() };
        cache.put(&key(number), &memory, Path::new("/a"), number).unwrap();
    }
    assert_eq!(cache.all().len(), 200);
    assert_eq!(cache.get(&key(2)), None);
    assert!(cache.get(&key(3)).is_some());
}

#[test]
fn a_cache_that_cannot_be_relied_on_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-tools.json");
    for text in ["", "{}", "{\"version\": 99}", "{\"version\": 1, \"servers\": 3}", "not json"] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(Cache::new(&path).get(&digest_bytes(b"x")), None, "{text}");
        assert_eq!(Cache::new(&path).all(), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_22_every_sound_tool_of_a_list_is_offered_with_its_schema_as_written(
        tools in proptest::collection::btree_map("[a-z_]{1,20}", (testkit::text(), testkit::json_object()), 0..10),
        noise in vec(testkit::json_value().prop_filter("names nothing", |value| value.get("name").is_none()), 0..4),
    ) {
        let mut listed: Vec<Value> = noise.clone();
        listed.extend(tools.iter().map(|(name, (about, schema))| json!({"name": name, "description": about, "inputSchema": schema})));
        let offers = Offers::read("s", &listed, &ToolFilter::default());
        prop_assert_eq!(offers.tools.len(), tools.len());
        prop_assert_eq!(offers.remarks.len(), noise.len());
        for offer in &offers.tools {
            let (about, schema) = &tools[&offer.raw];
            prop_assert_eq!(&offer.tool.name, &format!("mcp__s__{}", offer.raw));
            prop_assert_eq!(&offer.tool.description, about);
            prop_assert_eq!(&offer.tool.input.0, schema);
        }
    }
}
