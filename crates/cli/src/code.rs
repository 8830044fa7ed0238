//! Explains each stable code: why it happens, an example, and the commands that fix it.

use ollm_protocol::{Code, CodeClass};

mod table;

/// The explanation of a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Explanation {
    /// Why it happens.
    pub(crate) why: &'static str,
    /// An example that leads to it: a command, or lines of a file.
    pub(crate) example: &'static str,
    /// The fix, beginning with the command.
    pub(crate) mend: &'static str,
}

/// The explanation of a code, as `ollm help CODE` prints it.
pub(crate) fn page(code: Code) -> String {
    let Explanation { why, example, mend } = table::explanation(code);
    let example = example.lines().fold(String::new(), |text, line| text + "  " + line + "\n");
    format!("{code}: {}\n\n{why}\n\nFor example:\n\n{example}\nWhat to do: {mend}\n\n{}\n", code.title(), exit(code))
}

/// The exit code for the class of a code.
fn exit(code: Code) -> &'static str {
    match code.class() {
        CodeClass::Usage => "A command that fails with it exits with 64.",
        CodeClass::Configuration => {
            "A command that fails with it exits with 3; a command that only reports it exits with 1."
        }
        CodeClass::Trust => "A command that fails with it exits with 4.",
        CodeClass::Environment => "A command that fails with it exits with 5.",
    }
}

/// All codes with their titles.
pub(crate) fn list() -> String {
    let lines = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title()));
    lines.collect::<String>() + "\n`ollm help CODE` says why it happens and what to do.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_why_shows_an_example_and_what_to_do() {
        for code in Code::ALL {
            let Explanation { why, example, mend } = table::explanation(*code);
            assert!(why.ends_with('.') && mend.ends_with('.') && !example.trim().is_empty(), "{code}");
            let (first, _) = mend.split_once(' ').unwrap();
            assert!(first.len() > 1, "{code}: {mend}");
        }
    }
}
