//! Code that starts itself again in a loop without end.

/// Loops without end in other languages, without blanks.
#[rustfmt::skip]
const ENDLESS: &[&str] = &[
    "for(;;)", "iter(int,1)", "itertools.count", "loop{", "loopdo", "redo", "setinterval", "until(0)", "until0", "untilfalse",
    "while!0", "while(!0)", "while(1)", "while(fork", "while(true)", "while1", "whilefork", "whiletrue",
];

/// How code names the program that runs it, without blanks.
const ITSELF: &[&str] =
    &["$0", "__file__", "__filename", "process.argv", "process.execpath", "sys.argv", "sys.executable"];

/// Whether code starts itself again in a loop without end.
pub(super) fn multiplies(code: &str) -> bool {
    if !["fork", "spawn"].iter().any(|call| code.contains(call)) {
        return false;
    }
    let folded: String = code.to_ascii_lowercase().chars().filter(|letter| !letter.is_whitespace()).collect();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    // Alone, or as `pcntl_fork`; not in quotes, and not as a part of another word.
    let calls = |(at, _): (usize, &str)| {
        let before = code
            .get(..at)
            .is_some_and(|before| before.ends_with(|next: char| next.is_alphanumeric() || "\"'".contains(next)));
        let behind = code
            .get(at + 4..)
            .is_some_and(|behind| behind.starts_with(|next: char| next.is_alphanumeric() || next == '_'));
        !before && !behind
    };
    (code.match_indices("fork").any(calls) || folded.contains("spawn") && has(ITSELF)) && has(ENDLESS)
}
