//! Ratios to a floor measured in the same run: `cargo bench -p ollm --bench ratios`, or with the names of some groups
//! behind `--`.
//!
//! Every round measures each case and its floor side by side, in turn, so that a noisy machine disturbs both alike. The
//! ratio of a case is the median over the rounds of (median of the case / median of its floor). The programs under test
//! are a static no-op hook and a static hello world, compiled with the system's C compiler.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints its table"
)]

mod agent;
mod boxes;
mod extensions;
mod features;
mod guards;
mod hooks;
mod hosts;
mod lab;
mod mcp;
mod measure;
mod planning;
mod traces;
mod tui;

use lab::Lab;

type Measure = fn(&Lab);

/// What can be measured by name.
const GROUPS: &[(&str, Measure)] = &[
    ("hooks", |lab| measure::table(lab.hooks())),
    ("hosts", |lab| measure::table(lab.hosts())),
    ("planning", |_| planning::planning()),
    ("guards", |_| guards::guards()),
    ("features", |lab| measure::table(lab.features())),
    ("trace", traces::traces),
    ("agent", agent::agent),
    ("box", |lab| measure::table(boxes::boxes(lab))),
    ("extensions", extensions::measure),
    ("mcp", mcp::mcp),
    ("tui", tui::tui),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((mcp::CLIENT, words)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return mcp::client(words);
    }
    let asked: Vec<String> = words.into_iter().filter(|word| !word.starts_with("--")).collect();
    let lab = Lab::new();
    for (name, measure) in GROUPS {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            println!("\n== {name}");
            measure(&lab);
        }
    }
}
