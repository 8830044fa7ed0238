//! How often hooks may run: limits of a hook's own and for all together, kept in one file for all processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::{Hook, RateLimit};
use ollm_store::digest_bytes;
use ollm_store::usage::{self, Quota, Used};

use crate::report::{Reason, Skip};
use ollm_trust::Clock;

/// What all hooks together are counted under.
const ALL: &str = "all";

/// The limits, and where is kept how much of them is used up.
#[derive(Clone, Debug)]
pub struct Rates {
    /// How often all hooks together may run in a minute, and the cooldown of each hook that has none of its own. Built-in
    /// hooks, and hooks whose failure would stand in the way, run all the same: a flood of events must not open a gate.
    pub global: RateLimit,
    path: PathBuf,
    clock: Clock,
}

impl Rates {
    /// Limits whose state is kept in a file, which is opened only for hooks that have a limit.
    pub fn new(path: PathBuf, clock: Clock) -> Rates {
        Rates { global: RateLimit::default(), path, clock }
    }

    pub(crate) fn limits_all(&self) -> bool {
        self.global != RateLimit::default()
    }

    pub(crate) fn limits(&self, hook: &Hook) -> bool {
        hook.spec.rate_limit != RateLimit::default() || self.is_held_to_global(hook)
    }

    /// The hooks that may not run now, by id, and why; nothing is taken.
    pub(crate) fn exhausted<'a>(&self, hooks: impl Iterator<Item = &'a Arc<Hook>>) -> BTreeMap<String, String> {
        let limited: Vec<(&Arc<Hook>, Vec<Quota>)> =
            hooks.map(|hook| (hook, self.quotas(hook))).filter(|(_, quotas)| !quotas.is_empty()).collect();
        if limited.is_empty() {
            return BTreeMap::new();
        }
        // What is wrong with the file is said when a hook runs.
        let used = Used::read(&self.path).unwrap_or_default();
        let now = (self.clock)();
        let why = |quotas: &[Quota]| {
            let (index, wait) = used.exhausted(quotas, now)?;
            Some(said(quotas.get(index)?, wait))
        };
        limited.iter().filter_map(|(hook, quotas)| Some((hook.id().to_owned(), why(quotas)?))).collect()
    }

    /// Takes one run from the limits of a hook; what is odd about that, otherwise why it may not run.
    pub(crate) fn take(&self, hook: &Arc<Hook>) -> Result<Option<String>, Skip> {
        let quotas = self.quotas(hook);
        if quotas.is_empty() {
            return Ok(None);
        }
        // A limit is there to spare people; where it cannot be kept, that must not silence the hook.
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
        // Hashing a name is dear, and most hooks have no limit.
        [quota(&|| key(hook), own), quota(&|| ALL.to_owned(), all)].into_iter().flatten().collect()
    }

    fn is_held_to_global(&self, hook: &Hook) -> bool {
        self.limits_all() && !hook.spec.source.is_required() && !hook.is_gate()
    }
}

/// Which limit is used up, and until when.
fn said(quota: &Quota, wait: Duration) -> String {
    let whose = if quota.key == ALL { "the limit of all hooks together (`hooks.rateLimit`)" } else { "its rate limit" };
    let limits = [
        quota.per_minute.map(|count| format!("{count} per minute")),
        quota.cooldown.filter(|pause| !pause.is_zero()).map(|pause| format!("{pause:?} between runs")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    format!("{whose} of {} is used up; it may run again in {:.1} s", limits.join(", "), wait.as_secs_f64())
}

/// Two projects may have hooks of the same id; each has its own count.
fn key(hook: &Hook) -> String {
    let whose = format!("{}\0{}", hook.spec.origin.file.display(), hook.spec.own_id());
    digest_bytes(whose.as_bytes()).to_string().chars().filter(char::is_ascii_alphanumeric).take(38).collect()
}
