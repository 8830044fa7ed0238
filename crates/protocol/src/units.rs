//! Reads durations and sizes as people write them: `"5s"`, `"250ms"`, `"256MiB"`. Writes times for programs.

use std::time::{Duration, SystemTime};

const TIMES: &[(&str, f64)] = &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
const SIZES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// A duration with its unit.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(ollm_protocol::units::duration("250ms"), Some(Duration::from_millis(250)));
/// assert_eq!(ollm_protocol::units::duration("soon"), None);
/// ```
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    // `ms` is tried before `m` and `s`: the first suffix that leaves a number wins.
    TIMES.iter().find_map(|(suffix, seconds)| {
        let number = text.strip_suffix(suffix)?.trim_end();
        let plain = number.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
        Duration::try_from_secs_f64(number.parse::<f64>().ok().filter(|_| plain)? * seconds).ok()
    })
}

/// What [`duration`] reads, as a pattern for a JSON Schema.
pub const DURATION_PATTERN: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|h|d)\s*$";

/// The same, without zero.
pub const POSITIVE_DURATION_PATTERN: &str = r"^\s*(0*[1-9][0-9]*\.?[0-9]*|0*\.0*[1-9][0-9]*)\s*(ms|s|m|h|d)\s*$";

/// What [`size`] reads, as a pattern for a JSON Schema.
pub const SIZE_PATTERN: &str = r"^\s*[0-9]+\s*(KiB|MiB|GiB|kB|KB|MB|GB|B)\s*$";

/// The same, without zero.
pub const POSITIVE_SIZE_PATTERN: &str = r"^\s*0*[1-9][0-9]*\s*(KiB|MiB|GiB|kB|KB|MB|GB|B)\s*$";

/// A number of bytes with its unit.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    SIZES.iter().find_map(|(suffix, factor)| {
        let number = text.strip_suffix(suffix)?.trim_end();
        let plain = number.bytes().all(|letter| letter.is_ascii_digit());
        number.parse::<u64>().ok().filter(|_| plain)?.checked_mul(*factor)
    })
}

/// A time as ISO 8601 with milliseconds, in UTC. A time outside of the calendar becomes the start of 1970.
///
/// ```
/// assert_eq!(ollm_protocol::units::iso(std::time::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
/// ```
pub fn iso(time: SystemTime) -> String {
    format!("{:.3}", jiff::Timestamp::try_from(time).unwrap_or_default())
}

/// An approximate duration for people: `45 s`, `3 min`, `5 h`, `2 days`.
pub fn approximately(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds @ 7200..172_800 => format!("{} h", seconds.div_ceil(3600)),
        seconds => format!("{} days", seconds.div_ceil(86400)),
    }
}

/// A number with its noun.
///
/// ```
/// use ollm_protocol::units::counted;
/// assert_eq!((counted(1, "hook"), counted(0, "hook")), ("1 hook".to_owned(), "0 hooks".to_owned()));
/// ```
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A number of bytes for people, in the largest unit that says it exactly.
///
/// ```
/// use ollm_protocol::units::bytes;
/// assert_eq!((bytes(256 << 20), bytes(1500)), ("256 MiB".to_owned(), "1500 bytes".to_owned()));
/// ```
pub fn bytes(count: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.into_iter().find(|(_, size)| count > 0 && count.is_multiple_of(*size));
    unit.map_or_else(|| format!("{count} bytes"), |(name, size)| format!("{} {name}", count / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_millisecond() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_768_557_930_001_900);
        assert_eq!(iso(time), "2026-01-16T10:05:30.001Z");
    }

    #[test]
    fn the_patterns_know_every_unit() {
        let suffixes = |pattern: &str| {
            let (_, list) = pattern.rsplit_once('(').unwrap();
            let (list, _) = list.split_once(')').unwrap();
            let mut units: Vec<String> = list.split('|').map(str::to_owned).collect();
            units.sort_unstable();
            units
        };
        let sorted = |units: Vec<&str>| {
            let mut units: Vec<String> = units.into_iter().map(str::to_owned).collect();
            units.sort_unstable();
            units
        };
        for pattern in [DURATION_PATTERN, POSITIVE_DURATION_PATTERN] {
            assert_eq!(suffixes(pattern), sorted(TIMES.iter().map(|(unit, _)| *unit).collect()));
        }
        for pattern in [SIZE_PATTERN, POSITIVE_SIZE_PATTERN] {
            assert_eq!(suffixes(pattern), sorted(SIZES.iter().map(|(unit, _)| *unit).collect()));
        }
    }

    #[test]
    fn units_are_read() {
        assert_eq!(duration("5s"), Some(Duration::from_secs(5)));
        assert_eq!(duration("1.5 s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("10m"), Some(Duration::from_mins(10)));
        assert_eq!(duration("0s"), Some(Duration::ZERO));
        for other in ["-1s", "+1s", "1e3s", "infs", ".s", "1.2.3s"] {
            assert_eq!(duration(other), None, "{other}");
        }
        assert_eq!(size("+1kB"), None);
        assert_eq!(duration("1e400s"), None);
        assert_eq!(size("256MiB"), Some(256 << 20));
        assert_eq!(size("1 kB"), Some(1000));
        assert_eq!(size("99999999999999GiB"), None);
    }
}
