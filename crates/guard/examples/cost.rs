//! What both guards cost for commands of every shape: microseconds at 1 KiB, and how much longer each KiB takes at 63.
//!
//! `cargo run --release -p ollm-guard --example cost`; with the name of a shape and a size in bytes it judges that once,
//! for programs that count instructions.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use ollm_guard::{Guards, ProtectedPlaces};
use ollm_protocol::Event;
use testkit::SHAPES;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = words.first().and_then(|name| SHAPES.iter().find(|shape| shape.name == name));
    if let Some(shape) = asked {
        let bytes = words.get(1).and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 10);
        return judge(&event(&shape.command(bytes)));
    }
    for shape in SHAPES {
        let [small, large] =
            [1_u16, 63].map(|size| micros(&shape.command(usize::from(size) << 10), 256 / size + 3) / f64::from(size));
        println!("{small:7.0} µs  {:5.2} x  {}", large / small, shape.name);
    }
}

fn event(command: &str) -> Event {
    Event::before_tool("shell", [("command", command.into())])
}

/// The shortest of so many times.
fn micros(command: &str, rounds: u16) -> f64 {
    let event = event(command);
    let once = |_| {
        let start = Instant::now();
        judge(black_box(&event));
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

#[inline(never)]
fn judge(event: &Event) {
    let home = PathBuf::from("/home/ada");
    let project = home.join("project");
    let guards = Guards::new(ProtectedPlaces {
        ollm_home: home.join(".ollm"),
        projects: vec![project.clone()],
        cwd: project,
        home: Some(home),
        ..ProtectedPlaces::default()
    });
    black_box(guards.destructive(event));
    black_box(guards.tampering(event));
}
