//! Declares what tools do, as data: which argument is shell text, which names a file that is written.
//!
//! Guards, consent and file patterns all read calls through [`effects_of`]. For an undeclared tool, the argument names
//! suggest the meaning.

use serde_json::{Map, Value};

use super::guess::{Guess, is_for_people, speaks_of_commands};
use super::table::{FOREIGN, TOOLS};

/// The deepest nesting of arguments that is read.
const DEEPEST: usize = 6;

/// The effect of a tool through one of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Runs it: text is shell text, a list is a program with its arguments.
    RunsShell,
    /// Runs each text of a list as shell text.
    RunsEach,
    /// Passes it to the program that another argument names.
    ProgramArguments,
    /// Runs in this folder.
    RunsIn,
    /// Types it into a running program, which may be a shell.
    TypesIntoShell,
    /// Reads this file or folder.
    ReadsPath,
    /// Writes this file.
    WritesPath,
    /// Removes or replaces this file or folder.
    RemovesPath,
    /// Applies it as a patch to the files that it names.
    AppliesPatch,
    /// Sends it to another machine, or requests it from there.
    Sends,
    /// With one of these words, the call only reads, even if the tool can do more.
    ReadsIf(&'static [&'static str]),
}

impl Effect {
    /// Whether it changes nothing and sends nothing.
    pub fn is_harmless(self) -> bool {
        matches!(self, Effect::ReadsPath | Effect::ReadsIf(_))
    }

    /// Whether it is about one file or folder.
    pub fn names_path(self) -> bool {
        matches!(self, Effect::ReadsPath | Effect::WritesPath | Effect::RemovesPath)
    }
}

/// The declaration of a tool.
///
/// ```
/// use ollm_protocol::tool::{Effect, declared, table::SHELL};
///
/// assert_eq!(declared("exec_command"), Some(SHELL));
/// assert_eq!(SHELL.effect("cmd"), Some(Effect::RunsShell));
/// assert_eq!(declared("mcp__git__push"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The canonical name.
    pub name: &'static str,
    /// The effect of each argument that matters; the others are data.
    pub effects: &'static [(&'static str, Effect)],
    /// Other tools whose work it also does; their matchers fit it.
    pub also: &'static [&'static str],
}

/// A tool of another agent, which does what one of the canonical tools does.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTool {
    /// The other agent's name for it.
    pub name: &'static str,
    /// The canonical tool.
    pub tool: &'static Declaration,
    /// Its arguments with the canonical tool's names, if these differ.
    pub args: &'static [(&'static str, &'static str)],
    /// The same for arguments without an effect.
    pub data: &'static [(&'static str, &'static str)],
    /// The agents whose hooks get this name.
    pub agents: &'static [&'static str],
}

impl ForeignTool {
    /// The same row for hooks of these agents.
    pub(super) const fn of(self, agents: &'static [&'static str]) -> ForeignTool {
        ForeignTool { agents, ..self }
    }

    /// The same row with arguments that are data.
    pub(super) const fn with(self, data: &'static [(&'static str, &'static str)]) -> ForeignTool {
        ForeignTool { data, ..self }
    }

    /// Every argument whose name differs.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.args.iter().chain(self.data).copied()
    }
}

impl Declaration {
    /// A tool that changes nothing.
    pub const fn new(name: &'static str) -> Declaration {
        Declaration { name, effects: &[], also: &[] }
    }

    /// The effect of an argument, by any agent's name for it.
    pub fn effect(&self, arg: &str) -> Option<Effect> {
        let own = |name: &str| self.effects.iter().find(|(known, _)| same_name(known, name)).map(|(_, effect)| *effect);
        own(arg).or_else(|| {
            let rows = FOREIGN.iter().filter(|row| row.tool.name == self.name);
            let known = rows.flat_map(|row| row.args).find(|(theirs, _)| same_name(theirs, arg));
            known.and_then(|(_, ours)| own(ours))
        })
    }

    /// Whether any argument has such an effect.
    pub fn has(&self, wanted: impl Fn(Effect) -> bool) -> bool {
        self.effects.iter().any(|(_, effect)| wanted(*effect))
    }

    /// Whether it only reads.
    pub(super) fn only_reads(&self) -> bool {
        let looks = |effect: Effect| effect.is_harmless() || effect == Effect::Sends;
        !self.effects.is_empty() && !self.has(|effect| !looks(effect))
    }

    /// Every name of the tool, and of the tools whose work it also does.
    pub fn names(&'static self) -> impl Iterator<Item = &'static str> {
        TOOLS.iter().filter(|tool| self.does(tool)).flat_map(|tool| tool.own_names())
    }

    /// Every name of the tool itself.
    pub fn own_names(&'static self) -> impl Iterator<Item = &'static str> {
        let foreign = FOREIGN.iter().filter(|row| row.tool.name == self.name);
        std::iter::once(self.name).chain(foreign.map(|row| row.name))
    }

    /// The tools whose names in a matcher also mean a call of this one.
    pub fn wanted_as(&'static self) -> impl Iterator<Item = &'static Declaration> {
        TOOLS.iter().copied().filter(|wanted| self.fits(wanted))
    }

    /// Whether it does the work of this tool.
    pub fn does(&self, tool: &Declaration) -> bool {
        self.name == tool.name || self.also.contains(&tool.name)
    }

    /// Whether some agent has only this one tool for several kinds of work.
    pub fn is_wide(&self) -> bool {
        self.also.len() > 1
    }

    /// Whether a matcher for `wanted` fits this tool. That is so if it does the same work, or if `wanted` is some
    /// agent's only tool for several kinds of work, including this one.
    pub fn fits(&self, wanted: &Declaration) -> bool {
        let does = |work: &&str| self.name == *work || self.also.contains(work);
        self.does(wanted) || (wanted.is_wide() && wanted.also.iter().any(does))
    }
}

/// The declaration of a tool, by its name in any vocabulary. Tools of MCP servers have none.
pub fn declared(name: &str) -> Option<&'static Declaration> {
    // This runs for each matcher of each hook, and nearly all names differ in their first letter.
    let first = letters(name).next()?;
    let is_it = |known: &str| letters(known).next() == Some(first) && same_name(known, name);
    let own = TOOLS.iter().copied().find(|tool| is_it(tool.name));
    own.or_else(|| FOREIGN.iter().find(|row| is_it(row.name)).map(|row| row.tool))
}

/// One effect of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallEffect<'a> {
    /// The effect.
    pub effect: Effect,
    /// The value it affects.
    pub operand: Operand<'a>,
    /// Whether the effect is certain, by a declaration or a clear argument name; otherwise it is only possible.
    pub sure: bool,
}

/// The value that an effect is about.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operand<'a> {
    Text(&'a str),
    List(&'a [Value]),
}

impl<'a> CallEffect<'a> {
    /// The value, if it is one text.
    pub fn text(&self) -> Option<&'a str> {
        match self.operand {
            Operand::Text(text) => Some(text),
            Operand::List(_) => None,
        }
    }
}

/// The effects of a tool call, argument by argument.
///
/// ```
/// use ollm_protocol::tool::{Effect, effects_of};
/// use serde_json::json;
///
/// let args = json!({"file_path": "a.rs", "content": "x"});
/// let effects = effects_of("Write", args.as_object().unwrap());
/// assert_eq!((effects[0].effect, effects[0].text()), (Effect::WritesPath, Some("a.rs")));
/// ```
pub fn effects_of<'a>(name: &str, args: &'a Map<String, Value>) -> Vec<CallEffect<'a>> {
    let mut reader = ArgumentReader::new(name);
    reader.only_reads = reader.only_reads_with(args);
    reader.object(args, 0);
    reader.found
}

/// The values of a call with an unknown effect: any text in them may be a command or a path.
///
/// For an undeclared tool, these are all arguments, unless its name or a word in them says that it only reads. For a
/// declared tool, these are arguments that no table has. If it runs commands, they are all of these except texts for
/// people; otherwise, those with a name about commands.
///
/// ```
/// use ollm_protocol::tool::unknown_values;
/// use serde_json::json;
///
/// assert_eq!(unknown_values("mcp__any__perform", &json!({"line": "ls"})), [&json!({"line": "ls"})]);
/// assert!(unknown_values("mcp__any__search_code", &json!({"query": "ls"})).is_empty());
/// assert!(unknown_values("Write", &json!({"content": "ls"})).is_empty());
/// assert_eq!(unknown_values("Bash", &json!({"command": "a", "before": "b", "description": "c"})), [&json!("b")]);
/// ```
pub fn unknown_values<'a>(name: &str, args: &'a Value) -> Vec<&'a Value> {
    let reader = ArgumentReader::new(name);
    let runs = reader.tool.is_some_and(|tool| tool.has(|effect| effect == Effect::RunsShell));
    if reader.declared {
        return args.as_object().map(|args| reader.unknown(args, runs)).unwrap_or_default();
    }
    let akin = reader.tool.is_some() && !runs;
    let looks = args.as_object().map_or(reader.only_reads, |args| reader.only_reads_with(args));
    if akin || looks { Vec::new() } else { vec![args] }
}

/// The effects of a call whose arguments are one text.
pub(crate) fn effects_of_text<'a>(name: &str, text: &'a str) -> Vec<CallEffect<'a>> {
    let mut reader = ArgumentReader::new(name);
    if reader.tool.is_some_and(|tool| tool.has(|effect| effect == Effect::RunsShell)) {
        reader.add(Effect::RunsShell, Operand::Text(text), true);
    }
    if !reader.only_reads {
        reader.add(Effect::AppliesPatch, Operand::Text(text), true);
    }
    reader.found
}

/// Reads the arguments of one call.
struct ArgumentReader<'a> {
    tool: Option<&'static Declaration>,
    /// Whether the tool has its own declaration, rather than that of a tool with a similar name.
    declared: bool,
    guess: Guess,
    /// Whether the files that it names are only read.
    only_reads: bool,
    found: Vec<CallEffect<'a>>,
}

impl<'a> ArgumentReader<'a> {
    fn new(name: &str) -> ArgumentReader<'a> {
        // A server's tool with the name of a known tool may do the same.
        let base = name.rsplit("__").next().unwrap_or(name);
        let (own, akin) = (declared(name), declared(base));
        let guess = Guess::new(base, own.or(akin));
        ArgumentReader {
            tool: own.or(akin),
            declared: own.is_some(),
            only_reads: guess.only_reads,
            guess,
            found: Vec::new(),
        }
    }

    /// Whether a call with these arguments only reads. The arguments count more than the name.
    fn only_reads_with(&self, args: &Map<String, Value>) -> bool {
        let looks = self.only_reads || self.says_it_reads(args);
        looks && (self.tool.is_some() || !Guess::writes_by(args))
    }

    fn says_it_reads(&self, args: &Map<String, Value>) -> bool {
        let declared = |tool: &Declaration| {
            args.iter().any(|(key, value)| match (tool.effect(key), value.as_str()) {
                (Some(Effect::ReadsIf(words)), Some(word)) => words.iter().any(|known| same_name(known, word)),
                _ => false,
            })
        };
        self.tool.filter(|_| self.declared).map_or_else(|| Guess::reads_by(args), declared)
    }

    fn add(&mut self, effect: Effect, operand: Operand<'a>, sure: bool) {
        self.found.push(CallEffect { effect, operand, sure });
    }

    fn object(&mut self, args: &'a Map<String, Value>, depth: usize) {
        for (key, value) in args {
            let known = self.tool.and_then(|tool| tool.effect(key));
            if let Some(effect) = known {
                self.argument(effect, value, true);
            }
            if !(self.declared && known.is_some()) {
                for (effect, sure) in self.guess.argument(key, value) {
                    self.argument(effect, value, sure && (depth == 0 || effect.names_path()));
                }
            }
            if depth < DEEPEST {
                self.inner(value, depth + 1);
            }
        }
    }

    /// The arguments of a declared tool that no table has.
    fn unknown(&self, args: &'a Map<String, Value>, runs: bool) -> Vec<&'a Value> {
        let is_known = |key: &str, value: &Value| {
            self.tool.is_some_and(|tool| tool.effect(key).is_some())
                || !self.guess.argument(key, value).is_empty()
                || is_data(key)
                || !(runs || speaks_of_commands(key))
        };
        args.iter().filter(|(key, value)| !is_known(key, value)).map(|(_, value)| value).collect()
    }

    fn inner(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::Object(inner) => self.object(inner, depth),
            Value::Array(list) => list.iter().filter_map(Value::as_object).for_each(|inner| self.object(inner, depth)),
            _ => {}
        }
    }

    fn argument(&mut self, effect: Effect, value: &'a Value, sure: bool) {
        let effect = match effect {
            Effect::ReadsIf(_) => return,
            Effect::AppliesPatch if self.only_reads => return,
            Effect::WritesPath | Effect::RemovesPath if self.only_reads => Effect::ReadsPath,
            effect => effect,
        };
        match value {
            Value::String(text) => self.add(effect, Operand::Text(text), sure),
            Value::Array(list) if runs_list(effect) => self.add(effect, Operand::List(list), sure),
            Value::Array(list) => {
                list.iter().filter_map(Value::as_str).for_each(|text| self.add(effect, Operand::Text(text), sure));
            }
            // Some tools list their files as the keys of an object.
            Value::Object(files) if effect.names_path() => {
                files.keys().for_each(|file| self.add(effect, Operand::Text(file), sure));
            }
            _ => {}
        }
    }
}

/// Whether an argument of some agent's tool is known to be data.
fn is_data(name: &str) -> bool {
    is_for_people(name) || FOREIGN.iter().flat_map(|row| row.data).any(|(theirs, _)| same_name(theirs, name))
}

/// Whether a list means something as a whole.
fn runs_list(effect: Effect) -> bool {
    matches!(effect, Effect::RunsShell | Effect::RunsEach | Effect::ProgramArguments)
}

/// Whether two names are equal apart from case and the signs between their words.
pub(super) fn same_name(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = u8> {
    let counts = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    name.bytes().filter(counts).map(|byte| byte.to_ascii_lowercase())
}
