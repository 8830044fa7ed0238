//! Verdicts form a monoid, flows a lattice.

use ollm_protocol::{Flow, Verdict};
use proptest::prelude::*;
use testkit::{flow, verdict};

use crate::cases;

fn of(flow: Flow) -> Verdict {
    Verdict { flow, ..Verdict::default() }
}

fn keeping(tools: &[&str]) -> Verdict {
    Verdict { tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()), ..Verdict::default() }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn merging_is_associative(a in verdict(), b in verdict(), c in verdict()) {
        let left = a.clone().then(b.clone()).then(c.clone());
        let right = a.then(b.then(c));
        prop_assert_eq!(left, right);
    }

    #[test]
    fn the_default_verdict_changes_nothing(a in verdict()) {
        prop_assert_eq!(Verdict::default().then(a.clone()), a.clone());
        prop_assert_eq!(a.clone().then(Verdict::default()), a);
    }

    #[test]
    fn a_later_verdict_never_softens_an_earlier_one(a in verdict(), b in verdict()) {
        let flow = a.flow;
        let total = a.then(b.clone());
        prop_assert!(total.flow >= flow);
        prop_assert!(total.flow >= b.flow);
    }

    #[test]
    fn a_later_verdict_never_offers_a_tool_again(a in verdict(), b in verdict()) {
        let total = a.clone().then(b.clone());
        for filter in [a.tools, b.tools].into_iter().flatten() {
            prop_assert!(total.tools.iter().flatten().all(|tool| filter.contains(tool)));
            prop_assert!(total.tools.is_some());
        }
    }

    #[test]
    fn texts_stay_in_order_and_none_is_lost(a in verdict(), b in verdict()) {
        let total = a.clone().then(b.clone());
        prop_assert_eq!(total.reasons, [a.reasons, b.reasons].concat());
        prop_assert_eq!(total.system_messages, [a.system_messages, b.system_messages].concat());
        prop_assert_eq!(total.messages, [a.messages, b.messages].concat());
        prop_assert_eq!(total.context, [a.context, b.context].concat());
        prop_assert_eq!(total.prompts, [a.prompts, b.prompts].concat());
    }
}

#[test]
fn flows_form_a_lattice() {
    for a in Flow::ALL {
        assert_eq!(of(a).then(of(a)), of(a));
        for b in Flow::ALL {
            assert_eq!(of(a).then(of(b)), of(b).then(of(a)));
            assert_eq!(of(a).then(of(b)).flow, a.max(b));
        }
    }
    assert!(Flow::ALL.is_sorted());
}

#[test]
fn only_no_opinion_and_allow_continue() {
    let continuing: Vec<Flow> = Flow::ALL.into_iter().filter(|flow| flow.continues()).collect();
    assert_eq!(continuing, [Flow::NoOpinion, Flow::Allow]);
    let refusing: Vec<Flow> = Flow::ALL.into_iter().filter(|flow| flow.refuses()).collect();
    assert_eq!(refusing, [Flow::Block, Flow::Halt]);
}

#[test]
fn a_later_value_of_the_same_key_wins() {
    let verdict = |value: &str| Verdict {
        patch: serde_json::Map::from_iter([("path".to_owned(), value.into())]),
        data: serde_json::Map::from_iter([("seen".to_owned(), value.into())]),
        result: Some(value.into()),
        ..Verdict::default()
    };
    assert_eq!(verdict("one").then(verdict("two")), verdict("two"));
}

#[test]
fn a_tool_stays_on_offer_only_if_every_filter_keeps_it() {
    assert_eq!(keeping(&["a", "b", "c"]).then(keeping(&["c", "a"])), keeping(&["a", "c"]));
    assert_eq!(keeping(&["a"]).then(Verdict::default()), keeping(&["a"]));
    assert_eq!(Verdict::default().then(keeping(&[])), keeping(&[]));
    assert_eq!(keeping(&["a"]).then(keeping(&["b"])), keeping(&[]));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_order_of_hooks_does_not_change_the_flow(mut flows in prop::collection::vec(flow(), 0..6)) {
        let total = |flows: &[Flow]| flows.iter().fold(Verdict::default(), |total, flow| total.then(of(*flow))).flow;
        let before = total(&flows);
        flows.reverse();
        prop_assert_eq!(before, total(&flows));
    }
}
