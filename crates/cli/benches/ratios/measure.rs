//! A case and its floor, measured side by side.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

const ROUNDS: usize = 15;
const SAMPLES: usize = 40;

/// One measured thing and the floor it stands on.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) target: f64,
    pub(crate) floor: Box<dyn FnMut()>,
    pub(crate) run: Box<dyn FnMut()>,
}

/// Measures all cases, in turn, and prints their table.
pub(crate) fn table(mut cases: Vec<Case>) {
    println!("{ROUNDS} rounds of {SAMPLES} samples; ratio = median over rounds of p50(case) / p50(floor)\n");
    println!("{:<56} {:>7} {:>7}   spread over rounds", "case", "ratio", "target");
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, ratios) in cases.iter_mut().zip(&mut ratios) {
            ratios.push(round(case));
        }
    }
    for (case, ratios) in cases.iter().zip(&mut ratios) {
        row(case.name, case.target, ratios);
    }
}

/// One row of a table, from the ratios of all rounds.
pub(crate) fn row(name: &str, target: f64, ratios: &mut [f64]) {
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let mark = if median <= target { " " } else { "!" };
    let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
    println!("{name:<56} {median:>7.2} {target:>7.2} {mark} {low:.2} to {high:.2}");
}

/// Case and floor alternate, so that a disturbance hits both.
fn round(case: &mut Case) -> f64 {
    let (mut floor, mut run) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        floor.push(timed(&mut case.floor));
        run.push(timed(&mut case.run));
    }
    median(&mut run).as_secs_f64() / median(&mut floor).as_secs_f64()
}

pub(crate) fn timed(action: &mut dyn FnMut()) -> Duration {
    let started = Instant::now();
    action();
    started.elapsed()
}

pub(crate) fn median(samples: &mut [Duration]) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}

/// What a Python script printed, one round per line. It is given the number of rounds, that of samples, and commands.
pub(crate) fn scripted(home: &Path, script: &str, (rounds, samples): (usize, usize), commands: &[&str]) -> Vec<Value> {
    let output = Command::new("python3")
        .args(["-c", script, &rounds.to_string(), &samples.to_string()])
        .args(commands)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .current_dir(home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|round| serde_json::from_str(round).unwrap()).collect()
}
