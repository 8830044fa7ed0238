//! Counts how often things happened lately, in one small file that all processes share. Rate limits use it.
//!
//! Counting is exact for any number of processes: it happens under a lock, and the clock is read under it too. The file
//! can always be made again, so it is not synced to the disk. Unreadable content is dropped and reported, and does not
//! stop the work.

use std::fmt::Write;
use std::path::Path;
use std::str;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::file::{FileError, Lock, read_bounded, write_unsynced};

/// The length of the sliding window of `per_minute`.
const WINDOW: Duration = Duration::from_mins(1);
/// The first line of the file.
const HEAD: &str = "ollm-usage 1";
/// Enough for a hundred thousand entries; a larger file was not written by us.
const LARGEST: u64 = 16 << 20;

/// A limit on how often something may happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The name of the counter; without white space.
    pub key: String,
    /// The most times in any sixty seconds.
    pub per_minute: Option<u32>,
    /// The shortest time between two uses.
    pub cooldown: Option<Duration>,
}

/// Whether something may happen now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The first exhausted quota, and for how long it stays exhausted.
    pub exhausted: Option<(usize, Duration)>,
    /// What was wrong with the file, if not all of it could be used.
    pub trouble: Option<String>,
}

/// All recorded uses, as read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedQuota(Vec<Entry>);

impl UsedQuota {
    /// Reads the file; unreadable entries count as unused.
    pub fn read(path: &Path) -> Result<UsedQuota, FileError> {
        Ok(UsedQuota(read(path)?.0))
    }

    /// The first exhausted quota, and for how long it stays exhausted; takes nothing.
    pub fn exhausted(&self, quotas: &[Quota], now: SystemTime) -> Option<(usize, Duration)> {
        exhausted(&self.0, quotas, nanos(now))
    }
}

/// Takes one use from every quota, or from none if one is exhausted.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use ollm_store::usage::{Quota, take};
/// let path = folder.path().join("usage");
/// let quota = Quota { key: "lint".into(), per_minute: Some(1), cooldown: None };
/// assert!(take(&path, &[quota.clone()], std::time::SystemTime::now).unwrap().exhausted.is_none());
/// assert!(take(&path, &[quota], std::time::SystemTime::now).unwrap().exhausted.is_some());
/// ```
pub fn take(path: &Path, quotas: &[Quota], clock: impl FnOnce() -> SystemTime) -> Result<Usage, FileError> {
    let _lock = Lock::acquire(path)?;
    let (mut entries, trouble) = read(path)?;
    // The previous holder of the lock may have recorded a use after we asked for the lock.
    let now = nanos(clock());
    let exhausted = exhausted(&entries, quotas, now);
    if exhausted.is_none() {
        entries.retain(|entry| entry.counts(now));
        entries.extend(quotas.iter().map(|quota| Entry {
            at: now,
            until: now.saturating_add(length(WINDOW.max(quota.cooldown.unwrap_or_default()))),
            key: quota.key.clone(),
        }));
        write_unsynced(path, text(&entries).as_bytes())?;
    }
    Ok(Usage { exhausted, trouble })
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    at: u64,
    /// The time from which it no longer counts.
    until: u64,
    key: String,
}

impl Entry {
    /// Whether the entry still counts. An entry further ahead than it could ever count comes from a clock that has been
    /// set back since.
    fn counts(&self, now: u64) -> bool {
        self.until > now && self.at.saturating_sub(now) <= self.until.saturating_sub(self.at)
    }

    fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }
}

fn exhausted(entries: &[Entry], quotas: &[Quota], now: u64) -> Option<(usize, Duration)> {
    quotas.iter().enumerate().find_map(|(index, quota)| {
        let ages =
            entries.iter().filter(|entry| entry.key == quota.key && entry.counts(now)).map(|entry| entry.age(now));
        let mut ages: Vec<u64> = ages.collect();
        ages.sort_unstable();
        let wait = minute(&ages, quota.per_minute).max(cooldown(&ages, quota.cooldown));
        (wait > 0).then_some((index, Duration::from_nanos(wait)))
    })
}

/// How long until one more use fits into the window: until all but the newest `limit - 1` uses have left it.
fn minute(ages: &[u64], limit: Option<u32>) -> u64 {
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return 0 };
    let oldest_in_the_way = limit.checked_sub(1).map_or(Some(&0), |index| ages.get(index));
    oldest_in_the_way.map_or(0, |age| length(WINDOW).saturating_sub(*age))
}

fn cooldown(ages: &[u64], cooldown: Option<Duration>) -> u64 {
    let newest = ages.first();
    newest.zip(cooldown).map_or(0, |(age, cooldown)| length(cooldown).saturating_sub(*age))
}

fn read(path: &Path) -> Result<(Vec<Entry>, Option<String>), FileError> {
    let afresh = |what: &str| (Vec::new(), Some(format!("{} {what} and starts afresh", path.display())));
    let bytes = match read_bounded(path, LARGEST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok((Vec::new(), None)),
        Err(FileError::TooLarge { .. }) => return Ok(afresh("is too large")),
        Err(error) => return Err(error),
    };
    let Ok(text) = str::from_utf8(&bytes) else { return Ok(afresh("cannot be read")) };
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return Ok(afresh("is not in the form this program writes"));
    }
    let lines: Vec<Option<Entry>> = lines.map(entry).collect();
    let broken = lines.iter().filter(|line| line.is_none()).count();
    let trouble =
        (broken > 0).then(|| format!("{} lines of {} cannot be read and are dropped", broken, path.display()));
    Ok((lines.into_iter().flatten().collect(), trouble))
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let entry =
        Entry { at: words.next()?.parse().ok()?, until: words.next()?.parse().ok()?, key: words.next()?.to_owned() };
    (words.next().is_none() && entry.until >= entry.at).then_some(entry)
}

fn text(entries: &[Entry]) -> String {
    entries.iter().fold(format!("{HEAD}\n"), |mut text, Entry { at, until, key }| {
        let _ = writeln!(text, "{at} {until} {key}");
        text
    })
}

fn nanos(time: SystemTime) -> u64 {
    length(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn length(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
