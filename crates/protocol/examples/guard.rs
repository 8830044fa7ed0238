//! A hook in Rust: refuses `git push --force`, and has no opinion about anything else.
//!
//! Try it: `echo '{"event":"before_tool","data":{"tool_name":"shell","args":{"command":"git push --force"}}}' | guard`

use std::io::{self, Read, Write};

use ollm_protocol::{Verdict, dialect::OLLM};

fn main() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let request = OLLM.read_event(&input).map_err(io::Error::other)?;
    let command = request.event.args().and_then(|args| args.get("command")?.as_str()).unwrap_or_default();
    let forced =
        command.contains("git push") && command.split_whitespace().any(|word| word == "--force" || word == "-f");
    let verdict = if forced { Verdict::block("no force pushes here") } else { Verdict::default() };
    io::stdout().write_all(&OLLM.write_verdict(&request, &verdict).stdout)
}
