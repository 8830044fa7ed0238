//! What the two built-in guards cost, beside reading the same event, which every host makes us do.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use ollm_guard::{Guards, ProtectedPlaces};
use ollm_protocol::Event;
use serde_json::Value;
use testkit::{SHAPES, Shape};

use crate::measure::{median, timed};

/// The shape of the lines that agents write: known programs, unknown ones, variables, loops, a message.
const USUAL: &str = "lines of agents";

/// What both guards take for a command, and what reading it takes, each the median of so many times.
fn guarded(command: &str, rounds: usize) -> (f64, f64) {
    let home = PathBuf::from("/home/ada");
    let project = home.join("project");
    let shelter = ProtectedPlaces {
        ollm_home: home.join(".ollm"),
        projects: vec![project.clone()],
        cwd: project,
        home: Some(home),
        ..ProtectedPlaces::default()
    };
    let event = Event::before_tool("shell", [("command", command.into())]);
    let json = serde_json::to_string(&event.data).unwrap();
    let (mut guards, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        reads.push(timed(&mut || drop(black_box(serde_json::from_str::<Value>(black_box(&json)).unwrap()))));
        guards.push(timed(&mut || {
            let guards = Guards::new(shelter.clone());
            black_box(guards.destructive(black_box(&event)));
            black_box(guards.tampering(black_box(&event)));
        }));
    }
    let seconds = |times: &mut Vec<Duration>| median(times).as_secs_f64();
    (seconds(&mut guards), seconds(&mut reads))
}

/// Microseconds for one KiB of a shape, and how much longer each of sixty-three takes.
fn shape_cost(shape: &Shape) -> (f64, f64) {
    let [small, large] = [(1, 400), (63, 12)].map(|(size, rounds)| guarded(&shape.command(size << 10), rounds).0);
    (small * 1e6, large / small / 63.0)
}

/// The usual line, and the worst of all shapes.
pub(crate) fn guards() {
    let usual = SHAPES.iter().find(|shape| shape.name == USUAL).unwrap();
    let (small, read) = guarded(&usual.command(1 << 10), 4000);
    let (large, _) = guarded(&usual.command(63 << 10), 64);
    let micros = small * 1e6;
    println!(
        "\nboth guards for a command of 1 KiB: {:.0} x reading it as JSON, {micros:.0} µs (target 200)",
        small / read
    );
    println!("both guards for 63 KiB: {:.2} x as long for each KiB (target 1.50)", large / small / 63.0);
    let costs: Vec<(f64, f64, &str)> = SHAPES
        .iter()
        .map(|shape| {
            let (micros, growth) = shape_cost(shape);
            (micros, growth, shape.name)
        })
        .collect();
    let dearest = costs.iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
    let steepest = costs.iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
    println!("the dearest of {} shapes at 1 KiB: {:.0} µs, {} (target 200)", costs.len(), dearest.0, dearest.2);
    println!("the steepest of them at 63 KiB: {:.2} x for each KiB, {} (target 1.50)", steepest.1, steepest.2);
    let over = costs.iter().filter(|cost| cost.0 > 200.0).map(|cost| format!("{} {:.0} µs", cost.2, cost.0));
    println!("over the target: {}", over.collect::<Vec<_>>().join(", "));
}
