//! Work grows with the length of a script, in every shape.

use testkit::{SHAPES, Shape};

use super::{LEAST_TEXT, LEAST_WORK, Walker};
use crate::field::ShellPlace;

/// How much work a script is: words looked at, text read within it, and deeds found.
fn steps(script: &str) -> usize {
    let mut walker = Walker::new(ShellPlace::default(), script.len());
    let (work, text) = (walker.work, walker.text_left);
    walker.script(script, 0);
    (work - walker.work) + (text - walker.text_left) + walker.deeds.len()
}

#[test]
fn work_grows_with_the_length_of_a_script() {
    let fixed = LEAST_WORK + LEAST_TEXT;
    let steep = |shape: &Shape| {
        let [small, large] = [2 << 10, 32 << 10].map(|bytes| steps(&shape.command(bytes)));
        // A bound that both meet would hide growth.
        let bounded = small >= fixed + 4 * (2 << 10);
        (bounded || large > small * 17).then(|| format!("{}: {small} steps, {large} for 16 times as much", shape.name))
    };
    let steep: Vec<String> = SHAPES.iter().filter_map(steep).collect();
    assert!(steep.is_empty(), "{steep:#?}");
}
