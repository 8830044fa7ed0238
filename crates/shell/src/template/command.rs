//! Checks a simple command by its words: would some program run a value as code, or let a value choose what runs?

use super::{Argument, HOLE, Position, Refusal};
use crate::shells::{is_shell, program_stem};
use crate::variables::program_variable;
use crate::wrapper::{OptionValue, Wrapper, wrapper_named};

/// The words of a simple command, and what is known about its standard input.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Argument>,
    /// The script redirects standard input to something it names.
    pub(super) input: bool,
    /// The hole that determines the content of standard input.
    pub(super) input_hole: Option<usize>,
}

impl Command {
    /// A builtin that changes the meaning of later text, or that computes with the content of variables.
    pub(super) fn redefines(&self) -> Option<&'static str> {
        let mut words = self.words.iter().map(|word| word.text.as_str());
        match words.find(|word| !["command", "builtin", ""].contains(word))? {
            "alias" => Some("`alias`"),
            "let" => Some("`let`"),
            "declare" | "typeset" => Some("`declare` or `typeset`"),
            "local" if words.any(|word| word.starts_with('-')) => Some("an option of `local`"),
            _ => None,
        }
    }

    /// The arguments of a builtin that assigns variables.
    pub(super) fn declarations(&self) -> impl Iterator<Item = &Argument> {
        self.words.iter().skip_while(|word| !DECLARERS.contains(&word.text.as_str()))
    }
}

/// A program that takes its program text from the command line.
struct Interpreter {
    names: &'static [&'static str],
    /// Short options that carry code, in the same word or the next.
    code: &'static str,
    /// Long options that carry code.
    long: &'static [&'static str],
    /// Short options that take the next word.
    values: &'static str,
    /// Short options that take the rest of their own word.
    glued: &'static str,
    /// Options that only check the script and do not run it.
    checks: &'static [&'static str],
    /// Where the program text comes from if no option carries it.
    program: Program,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    /// A script file; standard input if there is none. Options end there, or after the code.
    File,
    /// A script file; standard input if there is none. Options continue after the code.
    FileThenOptions,
    /// The first operand is the code.
    Operand,
    /// The first operand is the code, and options may come even after it.
    OperandThenOptions,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        code: "cm",
        long: &[],
        values: "WX",
        glued: "",
        checks: &[],
        program: Program::File,
    },
    Interpreter {
        names: &["node", "nodejs", "deno", "bun", "tsx"],
        code: "ep",
        long: &["--eval", "--print", "eval"],
        values: "rC",
        glued: "",
        checks: &["--check", "-c"],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["perl"],
        code: "eEmM",
        long: &[],
        values: "IC",
        glued: "iFxDV",
        checks: &[],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["ruby"],
        code: "er",
        long: &[],
        values: "IEC",
        glued: "iFxWKT",
        checks: &["-c"],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["php"],
        code: "rBRE",
        long: &["--run", "--process-begin", "--process-code", "--process-end"],
        values: "cdzf",
        glued: "",
        checks: &["-l", "--syntax-check"],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["osascript"],
        code: "e",
        long: &[],
        values: "ls",
        glued: "",
        checks: &[],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["lua", "luajit", "Rscript", "julia", "tclsh", "pwsh"],
        code: "eElc",
        long: &["--eval", "--print"],
        values: "",
        glued: "",
        checks: &[],
        program: Program::FileThenOptions,
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        code: "ei",
        long: &["--source", "--include"],
        values: "vFf",
        glued: "",
        checks: &[],
        program: Program::Operand,
    },
    Interpreter {
        names: &["sed", "gsed"],
        code: "e",
        long: &["--expression"],
        values: "fl",
        glued: "i",
        checks: &[],
        program: Program::OperandThenOptions,
    },
];

/// Programs whose first operand is code.
const OPERAND_PROGRAMS: &[&str] = &["awk", "gawk", "mawk", "nawk", "sed", "gsed"];

/// Programs that pass all their arguments to a shell.
const EVALUATORS: &[&str] = &["eval", "trap", "ssh", "su", "watch", "parallel"];

/// Builtins whose arguments are names of variables; some shells run code inside a name.
const NAMERS: &[&str] = &["read", "unset", "getopts", "mapfile", "readarray"];

const DECLARERS: &[&str] = &["export", "readonly", "local"];

/// Checks a command; `earlier` is the last hole of the script before it.
pub(super) fn check(command: &Command, earlier: Option<usize>) -> Result<(), Refusal> {
    let stdin = Stdin { known: command.input, hole: command.input_hole.or(earlier) };
    line(&command.words, stdin)?;
    // An unquoted empty expansion is no word at all, and the next word takes its place.
    let lasting: Vec<Argument> = command.words.iter().filter(|word| !word.vanishes()).cloned().collect();
    line(&lasting, stdin)
}

fn line(words: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    invocation(words, stdin)?;
    // An unknown wrapper may run an interpreter from a later word; there only certain matches count.
    for start in 1..words.len() {
        let words = words.get(start..).unwrap_or_default();
        let runs_operand = words.first().is_some_and(|word| OPERAND_PROGRAMS.contains(&basename(&word.text)));
        match interpreter(words, Stdin { known: true, hole: None }) {
            Err(refusal @ Refusal { position: Position::Code(_), .. }) if !runs_operand => {
                return Err(refusal);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The standard input, from which a program without a script reads its code.
#[derive(Clone, Copy)]
struct Stdin {
    known: bool,
    hole: Option<usize>,
}

impl Stdin {
    /// Refuses a program that would read its code from input that may contain a value.
    fn runs(self, program: &str) -> Result<(), Refusal> {
        match self.hole.filter(|_| !self.known) {
            Some(hole) => Err(Refusal { hole, position: Position::Stdin(program.to_owned()) }),
            None => Ok(()),
        }
    }
}

/// Checks words in the position of a command.
fn invocation(words: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    let Some((first, arguments)) = words.split_first() else {
        return Ok(());
    };
    refuse(first, || Position::Command)?;
    let name = basename(&first.text);
    if name.is_empty() {
        return unknown_program(arguments);
    }
    match name {
        "." | "source" => arguments.iter().take(1).try_for_each(|word| refuse(word, || Position::Script(name.into()))),
        "printf" => format(arguments),
        "test" | "[" => condition(name, arguments),
        "find" => find(arguments, stdin),
        _ if EVALUATORS.contains(&name) => {
            arguments.iter().try_for_each(|word| refuse(word, || Position::Code(name.into())))
        }
        _ if NAMERS.contains(&name) => {
            arguments.iter().try_for_each(|word| refuse(word, || Position::Name(name.into())))
        }
        _ if DECLARERS.contains(&name) => declaration(name, arguments),
        _ => match wrapper_named(name) {
            Some(wrapper) => wrapped(wrapper, arguments, stdin),
            None => interpreter(words, stdin),
        },
    }
}

fn refuse(word: &Argument, position: impl FnOnce() -> Position) -> Result<(), Refusal> {
    word.hole.map_or(Ok(()), |hole| Err(Refusal { hole, position: position() }))
}

fn basename(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or_default()
}

/// An unknown program such as `$PYTHON`: the usual options for code are assumed.
fn unknown_program(arguments: &[Argument]) -> Result<(), Refusal> {
    let options = ["-c", "-e", "-E", "-r", "-p", "-lc", "-ec", "--eval", "--command"];
    arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .filter(|(option, _)| options.contains(&option.text.as_str()))
        .try_for_each(|(_, code)| refuse(code, || Position::Code("an unknown program".to_owned())))
}

/// The command after a wrapper, its options and its operands.
fn wrapped(wrapper: &Wrapper, arguments: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    let name = wrapper.name;
    let looks_up = name == "command" && arguments.iter().take(1).any(|word| ["-v", "-V"].contains(&word.text.as_str()));
    if looks_up {
        return Ok(());
    }
    let splits =
        name == "env" && arguments.iter().any(|word| word.text.starts_with("-S") || word.text.starts_with("--split"));
    if splits {
        return arguments.iter().try_for_each(|word| refuse(word, || Position::Code(name.to_owned())));
    }
    let mut operands = wrapper.operands;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let assigned = word.assigned().filter(|_| ["env", "sudo", "time", "doas"].contains(&name));
        if let Some(variable) = assigned {
            if program_variable(variable).is_some() {
                refuse(word, || Position::Environment(variable.to_owned()))?;
            }
            rest = after;
        } else if word.text.starts_with('-') && word.text != "-" {
            refuse(word, || Position::Command)?;
            rest = after;
            if wrapper.option(&word.text, false).is_some_and(|option| option.value == OptionValue::Next) {
                rest.iter().take(1).try_for_each(|value| refuse(value, || Position::Command))?;
                rest = rest.get(1..).unwrap_or_default();
            }
        } else if operands > 0 {
            refuse(word, || Position::Command)?;
            operands -= 1;
            rest = after;
        } else {
            break;
        }
    }
    if name == "xargs" {
        // It splits its own input into arguments, and with -I inserts it into the code of an inner shell.
        let replaces =
            arguments.iter().any(|word| ["-I", "-i", "-J", "--replace"].iter().any(|flag| word.text.starts_with(flag)));
        let shell = rest.first().is_some_and(|word| is_shell(&word.text));
        if replaces && shell {
            stdin.runs("xargs")?;
        }
    }
    invocation(rest, stdin)
}

/// Whether a cluster of short options ends in one whose value is the next word.
fn takes_next(option: &str, values: &str) -> bool {
    !option.starts_with("--") && option.len() > 1 && option.chars().last().is_some_and(|last| values.contains(last))
}

fn format(arguments: &[Argument]) -> Result<(), Refusal> {
    let Some((first, rest)) = arguments.split_first() else {
        return Ok(());
    };
    match first.text.as_str() {
        "--" => Ok(()),
        text if text.starts_with("-v") => std::iter::once(first)
            .chain(rest.first())
            .try_for_each(|word| refuse(word, || Position::Name("printf".into()))),
        text if text.starts_with(HOLE) => refuse(first, || Position::Format),
        _ => Ok(()),
    }
}

/// `[ -v name ]` runs code inside a name, and two adjacent values could form exactly that.
fn condition(name: &str, arguments: &[Argument]) -> Result<(), Refusal> {
    arguments
        .iter()
        .zip(arguments.iter().skip(1))
        .filter(|(first, _)| ["-v", "-R"].contains(&first.text.as_str()) || first.hole.is_some())
        .try_for_each(|(_, second)| refuse(second, || Position::Name(name.to_owned())))
}

fn find(arguments: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    for (index, word) in arguments.iter().enumerate() {
        if ["-exec", "-execdir", "-ok", "-okdir"].contains(&word.text.as_str()) {
            let command = arguments.get(index + 1..).unwrap_or_default();
            let end = command.iter().position(|word| [";", "+"].contains(&word.text.as_str()));
            invocation(command.get(..end.unwrap_or(command.len())).unwrap_or_default(), stdin)?;
        }
    }
    Ok(())
}

fn declaration(name: &str, arguments: &[Argument]) -> Result<(), Refusal> {
    arguments
        .iter()
        .filter(|word| word.assigned().is_none())
        .try_for_each(|word| refuse(word, || Position::Name(name.to_owned())))
}

fn interpreter(words: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    let Some((first, arguments)) = words.split_first() else {
        return Ok(());
    };
    let name = basename(&first.text);
    if is_shell(name) {
        return shell(name, arguments, stdin);
    }
    let stem = program_stem(name);
    let known = |interpreter: &&Interpreter| interpreter.names.iter().any(|known| *known == name || *known == stem);
    match INTERPRETERS.iter().find(known) {
        Some(known) => other(known, name, arguments, stdin),
        None => Ok(()),
    }
}

/// `sh [options] [-c code name | script] arguments…`: only the arguments are data.
fn shell(name: &str, arguments: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    let mut code = false;
    let mut checks = false;
    let mut reads_stdin = false;
    let mut ended = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if !ended && word.text == "-" {
            ended = true;
            continue;
        }
        let option = !ended && word.text.starts_with(['-', '+']) && word.text.len() > 1;
        if !option {
            let open = !ended && word.text.starts_with(HOLE);
            return match (word.hole.is_some(), code, checks && !open) {
                (true, true, _) => refuse(word, || Position::Code(name.to_owned())),
                _ if reads_stdin => refuse_leading(word, open, name).and_then(|()| stdin.runs(name)),
                (true, false, false) if checks => refuse(word, || Position::Option(name.to_owned())),
                (true, false, false) => refuse(word, || Position::Script(name.to_owned())),
                _ => Ok(()),
            };
        }
        refuse(word, || Position::Code(name.to_owned()))?;
        ended = word.text == "--";
        if word.text.starts_with("--") {
            if ["--rcfile", "--init-file", "--init-command", "--command"].contains(&word.text.as_str()) {
                rest.next().map_or(Ok(()), |value| refuse(value, || Position::Code(name.to_owned())))?;
            }
            continue;
        }
        code |= word.text.starts_with('-') && word.text.contains('c');
        checks |= word.text.starts_with('-') && word.text.contains('n');
        reads_stdin |= word.text.contains('s');
        if word.text.ends_with(['o', 'O']) {
            rest.next().map_or(Ok(()), |value| refuse(value, || Position::Option(name.to_owned())))?;
        }
    }
    stdin.runs(name)
}

fn refuse_leading(word: &Argument, open: bool, name: &str) -> Result<(), Refusal> {
    if open { refuse(word, || Position::Option(name.to_owned())) } else { Ok(()) }
}

fn other(known: &Interpreter, name: &str, arguments: &[Argument], stdin: Stdin) -> Result<(), Refusal> {
    let mut code = false;
    let mut checks = false;
    let mut ended = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if !ended && text == "--" {
            ended = true;
        } else if !ended && known.takes_code(text) {
            refuse(word, || Position::Code(name.to_owned()))?;
            if known.code_is_next(text) {
                let Some(value) = rest.next() else { break };
                refuse(value, || Position::Code(name.to_owned()))?;
            }
            code = true;
            if known.program == Program::File {
                return Ok(());
            }
        } else if !ended && text.starts_with('-') && text.len() > 1 {
            checks |= known.checks.contains(&text);
            let value = takes_next(text, known.values).then(|| rest.next()).flatten();
            std::iter::once(word).chain(value).try_for_each(|word| option(known, name, word))?;
        } else if text.is_empty() && known.program == Program::OperandThenOptions {
            // This is the empty suffix of a BSD `sed -i ''`.
        } else {
            let operand = matches!(known.program, Program::Operand | Program::OperandThenOptions);
            if !code && operand {
                refuse(word, || Position::Code(name.to_owned()))?;
            } else if !code && text == "-" {
                stdin.runs(name)?;
            } else if !code && !checks {
                refuse(word, || Position::Script(name.to_owned()))?;
            }
            refuse_leading(word, !ended && text.starts_with(HOLE), name)?;
            if known.program != Program::OperandThenOptions {
                return Ok(());
            }
            code = true;
        }
    }
    if code || checks { Ok(()) } else { stdin.runs(name) }
}

/// `awk -v name={{x}}` is the proper way to pass a value to awk; values in other options of an interpreter are refused.
fn option(known: &Interpreter, name: &str, word: &Argument) -> Result<(), Refusal> {
    let assigns = word.assigned().is_some() && known.program == Program::Operand;
    if assigns { Ok(()) } else { refuse(word, || Position::Option(name.to_owned())) }
}

impl Interpreter {
    fn takes_code(&self, text: &str) -> bool {
        let long = text.split('=').next().unwrap_or_default();
        self.long.contains(&long)
            || !text.starts_with("--") && !self.checks.contains(&text) && self.code_letter(text).is_some()
    }

    fn code_is_next(&self, text: &str) -> bool {
        self.long.contains(&text) || self.code_letter(text).is_some_and(|at| at + 1 == text.len())
    }

    /// The position of the letter that carries code in a cluster of short options.
    fn code_letter(&self, text: &str) -> Option<usize> {
        let cluster = text.strip_prefix('-')?;
        let at = cluster.find(|c| [self.code, self.values, self.glued].concat().contains(c))?;
        cluster.get(at..)?.starts_with(|c| self.code.contains(c)).then_some(at + 1)
    }
}
