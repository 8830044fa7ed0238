//! Work grows with the length of a script, whatever its shape.

use super::{LEAST_TEXT, LEAST_WORK, Walker};
use crate::field::Place;

/// How much work a script is: words looked at, text read within it, and deeds found.
fn steps(script: &str) -> usize {
    let mut walker = Walker::new(Place::default(), script.len());
    let (work, text) = (walker.work, walker.text_left);
    walker.script(script, 0);
    (work - walker.work) + (text - walker.text_left) + walker.deeds.len()
}

/// A script of so many parts, each put for `N`.
type Shape = fn(usize) -> String;

fn repeated(part: &str, count: usize) -> String {
    (0..count).map(|number| part.replace('N', &format!("{number:04}"))).collect()
}

const SHAPES: &[(&str, Shape)] = &[
    ("a chain", |count| repeated("cargo test -p xN && ", count) + "true"),
    ("arguments", |count| format!("tool {}", repeated("wN ", count))),
    ("quoted arguments", |count| format!("tool {}", repeated("'run N now' ", count))),
    ("options", |count| format!("tool {}", repeated("--oN='a b' ", count))),
    ("marks", |count| format!("tool 'x {}'", repeated("=rm,", count))),
    ("settings of settings", |count| format!("tool '{} x'", repeated("aN=", count))),
    ("a here-document", |count| format!("tool <<'E'\n{}E", repeated("run N\n", count))),
    ("a loop over a here-document", |count| {
        format!("while read x; do {} done <<'E'\n{}E", repeated("tool $x; ", count), repeated("N\n", count))
    }),
    ("assignments", |count| repeated("aN=v; echo $aN; ", count)),
    ("variables of a command", |count| repeated("AN='b c' ", count) + "tool"),
    ("substitutions", |count| repeated("echo $(echo $(echo N)); ", count)),
    ("a pipeline", |count| repeated("grep N | ", count) + "wc"),
    ("pipelines of files", |count| repeated("ls aN | while read x; do rm $x; done; ", count)),
    ("loops", |count| repeated("for f in a b c; do wc $f; done; ", count)),
    ("wrappers", |count| repeated("sudo nice -n 5 timeout 3 tool N; ", count)),
    ("words that name programs", |count| repeated("tool rm git sudo env N; ", count)),
    ("one command of them", |count| format!("tool {}", repeated("rm git ", count))),
    ("code", |count| format!("python3 -c '{}'", repeated("os.system(\"ls N\"); ", count))),
    ("code for sed", |count| format!("sed '{}'", repeated("1e ls;", count))),
    ("shells", |count| repeated("bash -c 'echo N | wc -l'; ", count)),
    ("globs", |count| format!("tool {}", repeated("src/*N*.rs ", count))),
    ("redirections", |count| repeated("echo x > outN; ", count)),
];

#[test]
fn work_grows_with_the_length_of_a_script() {
    let fixed = LEAST_WORK + LEAST_TEXT;
    let steep = |(name, shape): &(&'static str, Shape)| {
        let [small, large] = [40, 640].map(|count| steps(&shape(count)));
        // A bound that both meet would hide growth.
        let bounded = small >= fixed;
        (bounded || large > small * 17).then(|| format!("{name}: {small} steps, {large} for 16 times as much"))
    };
    let steep: Vec<String> = SHAPES.iter().filter_map(steep).collect();
    assert!(steep.is_empty(), "{steep:#?}");
}
