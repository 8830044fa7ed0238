//! Names: what model APIs take, one for each tool, in every order.

use std::collections::{BTreeMap, BTreeSet};

use ollm_mcp::{BadName, Labels, split, tool_names};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn fits(name: &str) -> bool {
    name.len() <= 64 && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

/// Names that are made to collide: few letters, many that have to be replaced, some far too long.
fn awkward() -> impl Strategy<Value = String> {
    prop_oneof!["[ab._ /é-]{1,6}", "[ab_.]{20,90}", "[a-z][a-z0-9_-]{0,20}"]
}

#[test]
fn a_plain_name_stays_as_it_is() {
    assert_eq!(tool_names("git", &["git_log"]), [Ok("mcp__git__git_log".to_owned())]);
    assert_eq!(split("mcp__git__git_log"), Some(("git", "git_log")));
}

#[test]
fn names_that_fall_together_are_told_apart_by_a_hash_and_the_plain_one_keeps_its_name() {
    let names = tool_names("s", &["a.b", "a_b", "a b"]);
    assert_eq!(names[1], Ok("mcp__s__a_b".to_owned()));
    for other in [&names[0], &names[2]] {
        assert!(other.as_ref().unwrap().starts_with("mcp__s__a_b_"), "{other:?}");
    }
    assert_ne!(names[0], names[2]);
}

#[test]
fn a_name_written_like_a_hashed_one_takes_nobodys_place() {
    let long = "x".repeat(80);
    let hashed = tool_names("s", &[&long])[0].clone().unwrap();
    let disguise = hashed.strip_prefix("mcp__s__").unwrap().to_owned();
    let names = tool_names("s", &[&long, &disguise]);
    assert_eq!(names[1], Ok(hashed));
    assert_ne!(names[0], names[1]);
    assert!(fits(names[0].as_ref().unwrap()));
}

#[test]
fn d09_hidden_characters_and_repeated_names_are_refused_one_by_one() {
    let names = tool_names("s", &["ok", "o\u{1b}[2Jk", "o\u{202e}k", "o\nk", "", "ok", "fine"]);
    let hidden = Err(BadName::Hidden);
    assert_eq!(names[1..4], [hidden.clone(), hidden.clone(), hidden]);
    assert_eq!(names[4..6], [Err(BadName::Empty), Err(BadName::Twice)]);
    assert_eq!((&names[0], &names[6]), (&Ok("mcp__s__ok".to_owned()), &Ok("mcp__s__fine".to_owned())));
    assert_eq!(tool_names("s", &[&"x".repeat(2000)]), [Err(BadName::Long(2000))]);
}

#[test]
fn d09_no_tool_can_pass_for_one_of_another_server() {
    let labels = Labels::new(["a", "a__b", "a_"]);
    let all: Vec<String> = [("a", "b__c"), ("a__b", "c"), ("a", "_c"), ("a_", "c")]
        .iter()
        .map(|(server, tool)| tool_names(labels.of(server).unwrap(), &[tool])[0].clone().unwrap())
        .collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4, "{all:?}");
}

#[test]
fn d09_who_comes_later_renames_nobody() {
    for (own, late) in [("brave search", "brave_search"), ("a.b", "a_b"), ("x", "x_")] {
        let alone = Labels::new([own]);
        let both = Labels::ranked([(1, late), (0, own)]);
        assert_eq!(both.of(own), alone.of(own));
        assert_ne!(both.of(late), both.of(own));
        assert_eq!(both.resolve(&format!("mcp__{}__c", alone.of(own).unwrap())), Some((own, "c")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn property_24_no_name_of_a_server_depends_on_servers_of_a_later_rank(
        user in btree_set(awkward(), 1..5),
        project in btree_set(awkward(), 0..5),
        closed in btree_set(awkward(), 0..5),
        tools in btree_set(awkward(), 1..6),
    ) {
        let names = |set: &BTreeSet<String>, rank: u8| -> Vec<(u8, String)> {
            set.iter().map(|name| (rank, name.clone())).collect()
        };
        let labels = |all: &[Vec<(u8, String)>]| {
            Labels::ranked(all.concat().iter().map(|(rank, name)| (*rank, name.as_str())))
        };
        // Labels of earlier ranks in disguise are what an attacker would choose.
        let (first, second) = (names(&user, 0), names(&project, 1));
        let disguises: BTreeSet<String> = user.iter().filter_map(|name| labels(std::slice::from_ref(&first)).of(name).map(str::to_owned)).collect();
        let all = labels(&[names(&closed, 2), names(&disguises, 2), second.clone(), first.clone()]);
        let mut seen = BTreeSet::new();
        for (set, before) in [(&user, labels(std::slice::from_ref(&first))), (&project, labels(&[first.clone(), second.clone()]))] {
            for server in set {
                prop_assert_eq!(all.of(server), before.of(server), "{}", server);
            }
        }
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        for server in user.iter().chain(&project).chain(&closed).chain(&disguises).collect::<BTreeSet<_>>() {
            for name in tool_names(all.of(server).unwrap(), &tools) {
                let name = name.unwrap();
                prop_assert_eq!(all.resolve(&name).unwrap().0, server.as_str());
                prop_assert!(fits(&name) && seen.insert(name));
            }
        }
    }

    #[test]
    fn property_24_tools_of_many_servers_live_side_by_side_under_names_of_their_own(
        servers in btree_set(awkward(), 1..6),
        tools in btree_set(awkward(), 1..12),
    ) {
        let labels = Labels::new(servers.iter().map(String::as_str));
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        for server in &servers {
            let label = labels.of(server).unwrap();
            for (tool, name) in tools.iter().zip(tool_names(label, &tools)) {
                let name = name.unwrap();
                prop_assert!(fits(&name), "{name}");
                let (owner, _) = labels.resolve(&name).unwrap();
                prop_assert_eq!(owner, server.as_str(), "{} of {:?}", name, tool);
                prop_assert!(seen.insert(name));
            }
        }
    }

    #[test]
    fn property_24_no_name_depends_on_the_order_of_servers_or_tools(
        servers in vec(awkward(), 1..6),
        tools in btree_set(awkward(), 1..12).prop_flat_map(|set| {
            let list: Vec<String> = set.into_iter().collect();
            (Just(list.clone()), Just(list).prop_shuffle())
        }),
    ) {
        let reversed: Vec<&str> = servers.iter().rev().map(String::as_str).collect();
        prop_assert_eq!(Labels::new(servers.iter().map(String::as_str)), Labels::new(reversed));
        let named = |list: &[String]| -> BTreeMap<String, String> {
            let tools: Vec<&str> = list.iter().map(String::as_str).collect();
            tools.iter().map(|tool| (*tool).to_owned()).zip(tool_names("s", &tools).into_iter().map(Result::unwrap)).collect()
        };
        prop_assert_eq!(named(&tools.0), named(&tools.1));
    }

    #[test]
    fn any_text_gets_a_name_or_a_reason(tools in vec(any::<String>(), 0..8), label in "[a-z]{1,24}") {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let names = tool_names(&label, &tools);
        prop_assert_eq!(names.len(), tools.len());
        for name in names.iter().flatten() {
            prop_assert!(fits(name));
            prop_assert_eq!(split(name).unwrap().0, label.as_str());
        }
    }
}
