//! `ollm trust status`: which key approvals must be signed with, whether they are, and what the machine's policy fixes.

use ollm_app::AppContext;
use ollm_catalog::{Config, Setting};
use ollm_trust::{ApprovalKey, Approvals, review_row};
use serde_json::{Value, json};

use super::{config, floor_line};
use crate::error::{FINDING, Failure, OK};
use crate::output::{Output, shown};

/// What there is to say.
struct Status {
    key: Option<ApprovalKey>,
    /// The serial that the list names.
    serial: u64,
    /// The highest serial that was seen.
    seen: Option<u64>,
    /// How many approvals are in the list.
    listed: usize,
    /// How many of them count.
    counting: usize,
    /// Why none counts.
    trouble: Option<String>,
}

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let config = config(context, output)?;
    let trust = context.trust(&config);
    let (listed, _) = Approvals::load(&context.approvals(), None);
    let status = Status {
        key: trust.key().cloned(),
        serial: listed.serial(),
        seen: trust.seen_serial().ok(),
        listed: listed.list().len(),
        counting: trust.counting().list().len(),
        trouble: trust.trouble(),
    };
    let code = if status.trouble.is_some() { FINDING } else { OK };
    if as_json {
        output.pretty_json(&status.to_json(&config, context))?;
    } else {
        output.text(&status.text(&config, context))?;
    }
    Ok(code)
}

impl Status {
    /// The line for the policy; the serial of an unsigned list means nothing.
    fn floor_line(&self) -> Option<String> {
        (self.key.is_some() && self.trouble.is_none()).then(|| floor_line(self.serial))
    }

    fn to_json(&self, config: &Config, context: &AppContext) -> Value {
        let key = self.key.as_ref();
        let policy = context.places.policy.as_ref().map(|policy| {
            let fixed: Vec<Value> =
                config.policy().iter().map(|one| json!({"key": one.path, "value": one.value})).collect();
            json!({"file": shown(&policy.path), "exists": policy.path.exists(), "fixed": fixed})
        });
        json!({
            "key": key.map(|key| &key.line),
            "from": key.map(|key| &key.origin),
            "byPolicy": key.is_some_and(|key| key.by_policy),
            "serial": self.serial,
            "seenSerial": self.seen,
            "leastSerial": key.map(|key| key.floor),
            "signed": key.map(|_| self.trouble.is_none()),
            "listed": self.listed,
            "counting": self.counting,
            "problem": self.trouble,
            "policyLine": self.floor_line(),
            "policy": policy,
        })
    }

    fn text(&self, config: &Config, context: &AppContext) -> String {
        let mut rows: Vec<(&str, String)> = Vec::new();
        match &self.key {
            None => rows.push(("key", "none: approvals need no signature; `ollm trust init` makes a key".to_owned())),
            Some(key) => {
                let binding =
                    if key.by_policy { "the machine's policy" } else { "who can write it can remove the key" };
                rows.push(("key", key.line.clone()));
                rows.push(("from", format!("{} ({binding})", key.origin)));
                rows.push((
                    "serial",
                    format!("{}, at least {} counts", self.serial, key.floor.max(self.seen.unwrap_or(0))),
                ));
                let signed = self.trouble.clone().unwrap_or_else(|| "the signature holds".to_owned());
                rows.push(("signature", signed));
            }
        }
        rows.push(("approvals", format!("{} of {} count", self.counting, self.listed)));
        if let Some(policy) = &context.places.policy {
            let missing = if policy.path.exists() { "" } else { " (not there)" };
            rows.push(("policy", format!("{}{missing}", policy.path.display())));
            let fixed = |one: &Setting| ("fixed", format!("{} = {}", one.path, one.value));
            rows.extend(config.policy().iter().map(fixed));
        }
        let line = self.floor_line();
        rows.extend(
            line.map(|line| ("for policy", format!("`{line}` below `hooks:` keeps older lists from being put back"))),
        );
        rows.iter().map(|(name, value)| review_row(name, value)).collect()
    }
}
