//! What the two built-in guards cost, beside reading the same event, which every host makes us do.

use std::hint::black_box;
use std::path::PathBuf;

use ollm_guard::{Guards, Shelter};
use ollm_protocol::Event;
use serde_json::Value;

use crate::measure::{median, timed};

/// A line as agents write them: known programs, unknown ones, variables, loops, a message.
const LINE: &str = concat!(
    "grep -rn \"fn main\" src | head -20; for f in *.rs; do wc -l \"$f\"; done; out=build/$(date +%F)\n",
    "mkdir -p \"$out\" && cp -r target/x \"$out\" && cargo test -p foo -- --nocapture 2>&1 | tail -5 > log.txt\n",
    "npx tsx scripts/run.ts --input data/a.json --output build/b.json && pytest -k \"foo and bar\" tests/unit\n",
    "git add -A && git commit -m \"Fix the parser of dates and the tests of it\" && git push origin main\n",
);

/// What both guards take for a command of a size, the median of many.
fn guarded(size: usize) -> (f64, f64) {
    let home = PathBuf::from("/home/ada");
    let project = home.join("project");
    let shelter = Shelter {
        ollm_home: home.join(".ollm"),
        projects: vec![project.clone()],
        cwd: project.clone(),
        home: Some(home.clone()),
        ..Shelter::default()
    };
    let text: String = LINE.lines().cycle().map(|line| format!("{line}\n")).take(1 + size / 90).collect();
    let text = text.get(..text.get(..size).and_then(|text| text.rfind('\n')).unwrap()).unwrap();
    let event = Event::before_tool("shell", [("command", text.into())]);
    let json = serde_json::to_string(&event.data).unwrap();
    let (mut guards, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..(4 << 20) / size {
        reads.push(timed(&mut || drop(black_box(serde_json::from_str::<Value>(black_box(&json)).unwrap()))));
        guards.push(timed(&mut || {
            let guards = Guards::new(shelter.clone());
            black_box(guards.destructive(black_box(&event)));
            black_box(guards.tampering(black_box(&event)));
        }));
    }
    (median(&mut guards).as_secs_f64(), median(&mut reads).as_secs_f64())
}

/// One KiB, and how much longer sixty-three take.
pub(crate) fn guards() {
    let (small, read) = guarded(1 << 10);
    let (large, _) = guarded(63 << 10);
    let micros = small * 1e6;
    println!(
        "\nboth guards for a command of 1 KiB: {:.0} x reading it as JSON, {micros:.0} µs (target 200)",
        small / read
    );
    println!("both guards for 63 KiB: {:.2} x as long for each KiB (target 1.50)", large / small / 63.0);
}
