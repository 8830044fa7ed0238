//! Shows which programs a script would run, without running it.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_shell::{Body, ParseError, bare, parse};

fn main() -> Result<(), ParseError> {
    let steps = parse("cd /tmp && echo 'rm -rf /' | sort", 0)?;
    let mut programs = Vec::new();
    for command in steps.iter().flat_map(|step| &step.pipeline) {
        if let Body::Simple { words, .. } = &command.body {
            programs.extend(words.first().and_then(|word| bare(word)));
        }
    }
    println!("{programs:?}");
    assert_eq!(programs, ["cd", "echo", "sort"], "the quoted `rm` is data");
    Ok(())
}
