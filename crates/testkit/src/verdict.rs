//! Verdicts.

use ollm_protocol::{Flow, Verdict};
use proptest::prelude::*;

use crate::text::{json_object, json_value, text};

/// Any flow.
pub fn flow() -> impl Strategy<Value = Flow> {
    prop::sample::select(&Flow::ALL[..])
}

/// Any verdict.
pub fn verdict() -> impl Strategy<Value = Verdict> {
    let texts = || prop::collection::vec(text(), 0..3);
    let tools = prop::option::of(prop::collection::vec("[a-d]", 0..4));
    (
        (flow(), texts(), texts(), texts(), texts(), texts()),
        (json_object(), prop::option::of(json_value()), tools, json_object(), json_object()),
    )
        .prop_map(|((flow, reasons, system_messages, messages, context, prompts), rest)| {
            let (patch, result, tools, data, metadata) = rest;
            Verdict { flow, reasons, system_messages, messages, context, patch, result, tools, prompts, data, metadata }
        })
}
