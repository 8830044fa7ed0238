//! Limits how often hooks may run, each by itself and all together. One file holds the counts for all processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::{Hook, RateLimit};
use ollm_store::digest_bytes;
use ollm_store::usage::{self, Quota, UsedQuota};

use crate::report::{Reason, Skip};
use ollm_trust::Clock;

/// The key under which all hooks together are counted.
const ALL: &str = "all";
/// The text that follows the name of a used-up limit.
const USED_UP: &str = " is used up; it may run again in ";

/// Whether this reason of a skip or a failure is a used-up limit.
pub fn is_used_up(why: &str) -> bool {
    why.contains(USED_UP)
}

/// The present state of a limit that was used up earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitNow {
    /// The same.
    Same,
    /// The limit has changed: whether it would be used up is not known.
    Changed,
    /// The hook has no such limit any more.
    Gone,
}

/// The limits, and the file that holds their counts.
#[derive(Clone, Debug)]
pub struct Rates {
    /// How often all hooks together may run in a minute, and the cooldown of hooks that declare none. Required hooks
    /// and gates are exempt: a flood of events must neither open a gate nor close it.
    pub global: RateLimit,
    path: PathBuf,
    clock: Clock,
    /// In a replay: the hooks whose limits were used up in the original run, by id, with the details.
    replayed: Option<BTreeMap<String, String>>,
}

impl Rates {
    /// Limits with their counts in a file. The file is opened only for hooks that have a limit.
    pub fn new(path: PathBuf, clock: Clock) -> Rates {
        Rates { global: RateLimit::default(), path, clock, replayed: None }
    }

    /// From now on counts no runs. Only these hooks may not run, each by id with its reason.
    pub fn replay(&mut self, exhausted: BTreeMap<String, String>) {
        self.replayed = Some(exhausted);
    }

    /// The present state of the limit that was used up for this reason.
    pub fn limit_now(&self, hook: &Hook, why: &str) -> LimitNow {
        let quotas = self.quotas(hook);
        match quotas.iter().find(|quota| why.contains(whose(quota))) {
            Some(quota) if why.contains(&limit(quota)) => LimitNow::Same,
            Some(_) => LimitNow::Changed,
            None => LimitNow::Gone,
        }
    }

    pub(crate) fn limits_all(&self) -> bool {
        self.global != RateLimit::default()
    }

    pub(crate) fn limits(&self, hook: &Hook) -> bool {
        let is_replayed = |exhausted: &BTreeMap<String, String>| exhausted.contains_key(hook.id());
        self.replayed.as_ref().map_or_else(|| self.has_limit(hook), is_replayed)
    }

    fn has_limit(&self, hook: &Hook) -> bool {
        hook.spec.rate_limit != RateLimit::default() || self.is_held_to_global(hook)
    }

    /// The hooks that may not run now, by id with the reason. Takes no run from any limit.
    pub(crate) fn exhausted<'a>(&self, hooks: impl Iterator<Item = &'a Arc<Hook>>) -> BTreeMap<String, String> {
        if let Some(replayed) = &self.replayed {
            let why = |hook: &Arc<Hook>| Some((hook.id().to_owned(), replayed.get(hook.id())?.clone()));
            return hooks.filter_map(why).collect();
        }
        let limited: Vec<(&Arc<Hook>, Vec<Quota>)> =
            hooks.map(|hook| (hook, self.quotas(hook))).filter(|(_, quotas)| !quotas.is_empty()).collect();
        if limited.is_empty() {
            return BTreeMap::new();
        }
        // A fault of the file is reported when a hook runs.
        let used = UsedQuota::read(&self.path).unwrap_or_default();
        let now = (self.clock)();
        let why = |quotas: &[Quota]| {
            let (index, wait) = used.exhausted(quotas, now)?;
            Some(said(quotas.get(index)?, wait))
        };
        limited.iter().filter_map(|(hook, quotas)| Some((hook.id().to_owned(), why(quotas)?))).collect()
    }

    /// Takes one run from a hook's limits. Returns a warning if there is one; the error says why the hook may not run.
    pub(crate) fn take(&self, hook: &Arc<Hook>) -> Result<Option<String>, Skip> {
        if let Some(replayed) = &self.replayed {
            let used_up = replayed.get(hook.id());
            return used_up.map_or(Ok(None), |why| Err(Skip::new(hook, Reason::RateLimited, why)));
        }
        let quotas = self.quotas(hook);
        if quotas.is_empty() {
            return Ok(None);
        }
        // A limit protects people from noise. If it cannot be kept, the hook must still run.
        let usage = match usage::take(&self.path, &quotas, self.clock) {
            Ok(usage) => usage,
            Err(error) => return Ok(Some(format!("its rate limit could not be kept: {error}"))),
        };
        match usage.exhausted.and_then(|(index, wait)| Some(said(quotas.get(index)?, wait))) {
            Some(why) => Err(Skip::new(hook, Reason::RateLimited, why)),
            None => Ok(usage.trouble.map(|trouble| format!("the state of the rate limits: {trouble}"))),
        }
    }

    fn quotas(&self, hook: &Hook) -> Vec<Quota> {
        let quota = |key: &dyn Fn() -> String, limit: RateLimit| {
            let limited = limit != RateLimit::default();
            limited.then(|| Quota { key: key(), per_minute: limit.per_minute, cooldown: limit.cooldown })
        };
        let global = if self.is_held_to_global(hook) { self.global } else { RateLimit::default() };
        let own = RateLimit { cooldown: hook.spec.rate_limit.cooldown.or(global.cooldown), ..hook.spec.rate_limit };
        let all = RateLimit { cooldown: None, ..global };
        // Hashing a name is slow, and most hooks have no limit.
        [quota(&|| key(hook), own), quota(&|| ALL.to_owned(), all)].into_iter().flatten().collect()
    }

    /// Whether the limit for all hooks together applies to a hook.
    pub fn is_held_to_global(&self, hook: &Hook) -> bool {
        self.limits_all() && !hook.spec.source.is_required() && !hook.is_gate()
    }
}

/// The name of the used-up limit, and the time until the hook may run again.
fn said(quota: &Quota, wait: Duration) -> String {
    format!("{}{USED_UP}{:.1} s", limit(quota), wait.as_secs_f64())
}

fn whose(quota: &Quota) -> &'static str {
    if quota.key == ALL { "the limit of all hooks together (`hooks.rateLimit`)" } else { "its rate limit" }
}

fn limit(quota: &Quota) -> String {
    let limits = [
        quota.per_minute.map(|count| format!("{count} per minute")),
        quota.cooldown.filter(|pause| !pause.is_zero()).map(|pause| format!("{pause:?} between runs")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    format!("{} of {}", whose(quota), limits.join(", "))
}

/// Two projects may have hooks of the same id; each has its own count.
fn key(hook: &Hook) -> String {
    let whose = format!("{}\0{}", hook.spec.origin.file.display(), hook.spec.own_id());
    digest_bytes(whose.as_bytes()).to_string().chars().filter(char::is_ascii_alphanumeric).take(38).collect()
}
