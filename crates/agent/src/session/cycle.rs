//! Detects when a model repeats itself: the same calls with the same results, one after another.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::message::Call;

/// The most calls that make one round.
const LONGEST: usize = 8;
/// The most calls that are remembered; the limit on calls covers longer circles.
const REMEMBERED: usize = 1000;

/// The calls of a turn with their results.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Entry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    call: u64,
    result: u64,
}

/// A repeated round of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// How many calls make a round.
    pub(super) length: usize,
    /// How often the round was made, including the coming call.
    pub(super) times: usize,
}

impl Cycle {
    /// A description of the repetition for people.
    pub(super) fn what(self, call: &Call) -> String {
        match self.length {
            1 => format!("the same call of {}", call.name),
            length => format!("the same {length} calls"),
        }
    }

    /// A description of the repetition for the model.
    pub(super) fn said(self, call: &Call) -> String {
        match self.length {
            1 => format!("this very call of {} was made", call.name),
            length => format!("these very {length} calls were made"),
        }
    }
}

impl History {
    /// The round that the coming call would continue, if there is one.
    pub(super) fn next(&self, call: &Call) -> Option<Cycle> {
        let call = digest(&(&call.name, call.arguments.text()));
        let cycles = (1..=LONGEST).filter_map(|length| {
            let same = self.0.len().checked_sub(length).and_then(|at| self.0.get(at))?;
            if same.call != call {
                return None;
            }
            let earlier = self.0.iter().rev().zip(self.0.iter().rev().skip(length));
            let repeated = earlier.take_while(|(one, other)| one == other).count() + 1;
            Some(Cycle { length, times: repeated / length + 1 })
        });
        // A repeated single call also counts as repeated rounds of two and three.
        cycles.reduce(|best, cycle| if cycle.times > best.times { cycle } else { best })
    }

    /// Records a call with its result.
    pub(super) fn add(&mut self, call: &Call, result: &str) {
        self.push(Entry { call: digest(&(&call.name, call.arguments.text())), result: digest(&result) });
    }

    /// Records a call that was not made because it only continues a round.
    pub(super) fn add_again(&mut self, call: &Call, cycle: Cycle) {
        let same = self.0.len().checked_sub(cycle.length).and_then(|at| self.0.get(at)).copied();
        self.push(same.unwrap_or(Entry { call: digest(&(&call.name, call.arguments.text())), result: 0 }));
    }

    fn push(&mut self, entry: Entry) {
        if self.0.len() < REMEMBERED {
            self.0.push(entry);
        }
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Arguments;

    fn call(name: &str) -> Call {
        Call { id: String::new(), name: name.to_owned(), arguments: Arguments::parse("{}") }
    }

    /// How often the round was made at each call, if every call has this result.
    fn times(calls: &str, result: impl Fn(usize) -> String) -> Vec<usize> {
        let mut history = History::default();
        let mut times = Vec::new();
        for (at, name) in calls.chars().enumerate() {
            let call = call(&name.to_string());
            times.push(history.next(&call).map_or(1, |cycle| cycle.times));
            history.add(&call, &result(at));
        }
        times
    }

    #[test]
    fn rounds_of_any_length_are_counted() {
        assert_eq!(times("aaaa", |_| "r".into()), [1, 2, 3, 4]);
        assert_eq!(times("ababab", |_| "r".into()).last(), Some(&3));
        assert_eq!(times("xyabcabcabc", |_| "r".into()).last(), Some(&3));
        assert_eq!(times("abcdefgh", |_| "r".into()), [1; 8]);
    }

    #[test]
    fn a_call_whose_result_changes_is_no_round() {
        assert_eq!(times("aaaaaa", |at| at.to_string()).last(), Some(&2), "only the last result is like no other");
    }

    #[test]
    fn a_call_that_was_not_made_goes_on_with_its_round() {
        let mut history = History::default();
        history.add(&call("a"), "r");
        for times in 2..9 {
            let cycle = history.next(&call("a")).unwrap();
            assert_eq!(cycle, Cycle { length: 1, times });
            history.add_again(&call("a"), cycle);
        }
    }
}
