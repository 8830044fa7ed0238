//! A table of the calls that start programs or execute text, with the names that Python and JavaScript code gives to
//! them.

use super::script::{self, Language};

/// Functions of Python that take a command, as one text or as a list.
const PYTHON_TEXT: &[&str] = &[
    "run(",
    "Popen(",
    "call(",
    "check_call(",
    "check_output(",
    "getoutput(",
    "getstatusoutput(",
    "system(",
    "popen(",
    "create_subprocess_shell(",
];
/// Python functions that take a program, then its arguments with its name first. Some begin with a flag whether to
/// wait.
const PYTHON_NAMED: &[&str] = &[
    "execv(",
    "execve(",
    "execl(",
    "execle(",
    "execlp(",
    "execvp(",
    "execvpe(",
    "posix_spawn(",
    "posix_spawnp(",
    "spawnl(",
    "spawnle(",
    "spawnlp(",
    "spawnlpe(",
    "spawnv(",
    "spawnve(",
    "spawnvp(",
    "spawnvpe(",
];
/// More Python functions whose arguments may name a file to run.
const PYTHON_OTHER: &[&str] = &["create_subprocess_exec(", "run_path(", "CDLL("];
/// Python functions with names that other functions often share.
const COMMON: &[&str] = &["run(", "call("];
/// Modules of Python that start or execute something.
const PYTHON_MODULES: &[&str] = &["os", "subprocess", "importlib", "runpy", "builtins", "__builtins__", "ctypes"];
/// Functions of these modules that run their argument, whatever object calls them.
const PYTHON_PASSED: &[&str] = &[
    "os.system",
    "os.popen",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.getoutput",
    "runpy.run_path",
    "importlib.import_module",
];

/// Functions of Node and Bun that take a text for a shell.
const NODE_TEXT: &[&str] = &["exec(", "execSync("];
/// Functions of Node, Bun and Deno that take a program and its arguments.
const NODE_PROGRAM: &[&str] = &["execFile(", "execFileSync(", "spawn(", "spawnSync(", "fork(", "Deno.Command("];
/// Functions of Node that execute text, or a file that their argument names.
const NODE_CODE: &[&str] =
    &["eval(", "runInThisContext(", "runInNewContext(", "runInContext(", "Worker(", "Worker)(", "dlopen("];
/// Words that start something in Perl, Ruby, PHP and similar languages.
const OTHER: &[&str] = &[
    "system",
    "exec",
    "spawn",
    "popen",
    "qx",
    "`",
    "open",
    "execute",
    "passthru",
    "shell_exec",
    "capture2",
    "capture3",
];
/// Words of a declaration that are not names.
const KEYWORDS: &[&str] = &["const", "let", "var", "import", "require", "from", "node", "as", "await", "child_process"];
/// The most extra names for such functions that are followed.
const MOST_NAMES: usize = 16;

/// The kind of arguments that a starting function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A text for a shell, or a list of a program and its arguments.
    Text,
    /// A program, and its arguments.
    Program,
    /// A program, and its arguments with its own name before them.
    NamedProgram,
    /// Code, or the name of a file of code.
    Code,
}

/// A function that starts something.
pub(super) struct Starter {
    /// The beginning of a call.
    pub(super) start: String,
    /// The kind of its arguments.
    pub(super) takes: Takes,
    /// The names of objects that it may be called on; `None` for any.
    owners: Option<Vec<String>>,
}

impl Starter {
    fn new(start: &str, takes: Takes) -> Starter {
        Starter { start: start.to_owned(), takes, owners: None }
    }

    /// Whether a call means this function, by the text before its name.
    pub(super) fn is_meant(&self, before: &str) -> bool {
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
        let Some(object) = before.strip_suffix('.') else {
            return self.owners.as_ref().is_none_or(|owners| owners.iter().any(String::is_empty));
        };
        let start = object.rfind(|letter| !is_name(letter)).map_or(0, |at| at + 1);
        let owner = object.get(start..).unwrap_or_default();
        match &self.owners {
            Some(owners) => {
                object.ends_with("child_process\")")
                    || object.ends_with("child_process')")
                    || !owner.is_empty() && owners.iter().any(|known| known == owner)
            }
            None => owner != "platform" && self.start != "eval(",
        }
    }
}

/// The beginnings of calls that start a program or execute text, on any object.
pub(super) fn starts(language: Language) -> impl Iterator<Item = &'static str> {
    let lists: &[&[&'static str]] = match language {
        Language::Shell => &[],
        Language::Python => &[PYTHON_TEXT, PYTHON_NAMED, PYTHON_OTHER],
        Language::Node => &[NODE_TEXT, NODE_PROGRAM, NODE_CODE, &["Command("]],
        Language::Other => &[OTHER],
    };
    lists.iter().copied().flatten().copied()
}

/// The starting functions that Python code may call.
pub(super) fn python(text: &str) -> Vec<Starter> {
    let mut owners = vec!["subprocess".to_owned()];
    for (at, sign) in text.match_indices("subprocess as ") {
        owners.push(first_name(text.get(at + sign.len()..).unwrap_or_default()));
    }
    owners.extend(text.contains("from subprocess import").then(String::new));
    let common = |start: &str| COMMON.contains(&start).then(|| owners.clone());
    let texts = PYTHON_TEXT.iter().map(|start| Starter { owners: common(start), ..Starter::new(start, Takes::Text) });
    let named = PYTHON_NAMED.iter().map(|start| Starter::new(start, Takes::NamedProgram));
    texts.chain(named).chain([Starter::new("create_subprocess_exec(", Takes::Program)]).collect()
}

/// The starting functions that Node code may call, including names that the code itself defines.
pub(super) fn node(text: &str) -> Vec<Starter> {
    let mut found: Vec<Starter> = NODE_CODE.iter().map(|start| Starter::new(start, Takes::Code)).collect();
    if !["child_process", "Bun.", "Deno.", "execa"].iter().any(|word| text.contains(word)) {
        return found;
    }
    let mut names: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("child_process").take(MOST_NAMES) {
        let before = text.get(..at).unwrap_or_default();
        let line = before.rsplit(['\n', ';']).next().unwrap_or_default();
        let words = line.split(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '$')));
        names.extend(words.filter(|word| !word.is_empty() && !KEYWORDS.contains(word)).map(str::to_owned));
    }
    for (at, _) in text.match_indices("promisify(exec").take(MOST_NAMES) {
        let before = text.get(..at).unwrap_or_default().trim_end_matches("util.").trim_end();
        names.extend(before.strip_suffix('=').map(last_name));
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(MOST_NAMES);
    let has_exec = names.iter().any(|name| name == "exec");
    let owners: Vec<String> = names.iter().cloned().chain(has_exec.then(String::new)).collect();
    for start in NODE_TEXT {
        // Regular expressions have an `exec` method, too.
        let owners = (*start == "exec(").then(|| owners.clone());
        found.push(Starter { owners, ..Starter::new(start, Takes::Text) });
    }
    found.extend(NODE_PROGRAM.iter().map(|start| Starter::new(start, Takes::Program)));
    let is_new = |name: &&String| !found.iter().any(|known| known.start.strip_suffix('(') == Some(name.as_str()));
    let own: Vec<Starter> = names
        .iter()
        .filter(is_new)
        .map(|name| Starter { owners: Some(vec![String::new()]), ..Starter::new(&format!("{name}("), Takes::Program) })
        .collect();
    found.extend(own);
    found
}

/// Uses of such functions as values: under another name, or passed to other code.
pub(super) fn passed_on(text: &str, language: Language) -> Vec<&str> {
    let mut found = Vec::new();
    if language == Language::Python {
        found.extend(PYTHON_PASSED.iter().filter(|name| is_value(text, name)));
        for line in text.lines().map(str::trim) {
            let module = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "));
            let renames = |names: &str| {
                names
                    .split(',')
                    .filter_map(|name| name.trim().split_once(" as "))
                    .any(|(name, _)| starts_something(name))
            };
            found.extend(module.filter(|(_, names)| renames(names)).map(|_| line));
        }
        for (at, start) in text.match_indices("getattr(") {
            let call = text.get(at + start.len()..).unwrap_or_default();
            let Some((object, name)) = call.split_once(',') else { continue };
            let is_data = script::quoted(name).is_some_and(|name| !starts_something(name));
            if PYTHON_MODULES.contains(&object.trim()) && !is_data {
                let end = call.find([')', '\n']).map_or(call.len(), |end| end + 1);
                found.extend(text.get(at..at + start.len() + end));
            }
        }
    } else {
        found.extend(is_value(text, "require").then_some("require"));
        found.extend(is_value(text, "eval").then_some("eval"));
    }
    found
}

fn starts_something(name: &str) -> bool {
    let lists = [PYTHON_TEXT, PYTHON_NAMED];
    let is_it = |start: &&str| start.strip_suffix('(') == Some(name);
    matches!(name, "exec" | "eval" | "__import__" | "run_path" | "run_module")
        || lists.iter().any(|list| list.iter().any(&is_it))
}

/// Whether a text uses a function as a value, without calling it.
fn is_value(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
        let after = text.get(at + name.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        before.ends_with(['=', '(', ',', '[', ':'])
            && (after.is_empty() || after.starts_with([',', ';', ')', ']', '\n', '}']))
    })
}

/// Whether every entry of a list of folders is a literal.
pub(super) fn is_list_of_literals(call: &str) -> bool {
    let mut rest = call.trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, ',' | ' ' | '['));
    loop {
        let Some(quote) = rest.chars().next().filter(|first| matches!(first, '"' | '\'')) else { return false };
        let Some((_, behind)) = rest.get(1..).and_then(|inner| inner.split_once(quote)) else { return false };
        rest = behind.trim_start_matches([',', ' ', ']', '\n']);
        // The rest is an existing list that the entries are added to.
        if rest.is_empty() || behind.trim_start().starts_with(']') {
            return true;
        }
    }
}

fn first_name(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

fn last_name(text: &str) -> String {
    let text = text.trim_end();
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    text.chars().rev().take_while(|letter| is_part(*letter)).collect::<Vec<_>>().into_iter().rev().collect()
}
