//! Code of other languages: its strings are arguments, if it has a call that runs or removes something.

use std::borrow::Cow;

use super::{
    super::{ScriptAction, carry::show, feed::Split},
    Feed, MOST_COMMANDS, Walker, begins_with_harm, is_line, is_name,
    worded::{WordedLanguage, is_encoded},
};
use crate::{
    field::{Field, Fields, is_pattern},
    filter, path, program, text,
    writes::joined_strings,
};

/// Calls in other languages that run a program.
#[rustfmt::skip]
const RUNS: &[&str] = &[
    "system", "exec", "popen", "spawn", "subprocess", "qx", "shell", "`", "run(", "call(", "%x", "| \"", "|\"", "-|", "getline",
    "passthru", "proc_open", "eval", "cmd(", "command(", "command::new(", "\".!", "\"|", "'|", "process(",
];

/// Calls that take a file away, or shut it.
#[rustfmt::skip]
const REMOVES: &[&str] = &[
    "rmtree", "rmdir", "rm_rf", "rm_r", "rmsync", "unlink", "remove", ".rm(", "rename", "rimraf", "delete", "fileutils", "chmod(", "os.replace", "del_dir", "'del'", "\"del\"",
];

/// Calls to which a string is a pattern, a separator or a message; those that only read the file.
#[rustfmt::skip]
const DATA_CALLS: &[&str] = &[
    "contains(", "count(", "decode(", "encode(", "end_with?(", "endswith(", "environ.get(", "environ[", "exists(", "existssync(",
    "exist?(", "exists?(", "explode(", "file?(", "getenv(", "gsub(", "implode(", "includes(", "index(", "indexof(", "isdir(", "isfile(", "lastindexof(", "log(",
    "match(", "partition(", "print(", "puts", "readfile(", "readfilesync(", "removeprefix(", "removesuffix(", "replace(",
    "replaceall(", "split(", "start_with?(", "startswith(", "strip(", "sub(", "test(", "warn(",
];

/// Calls that take away a folder with all that is in it.
const REMOVES_TREES: &[&str] = &[
    "rmtree",
    "remove_tree",
    "removeall",
    "remove_dir_all",
    "rm_rf",
    "rm_r(",
    "rmsync",
    "rmdirsync",
    ".rm(",
    "rimraf",
    "deltree",
    "delete-directory",
    "directory.delete",
    "directory]::delete",
    "deletedir",
    "deleterecursively",
    "'rf'",
    "\"rf\"",
    "remove-item",
    "removedir",
    "removeitem",
    "removesync",
    "recursive",
];

/// Calls that write the file which they are given first.
const WRITE_CALLS: &[&str] = &[
    "appendfile(",
    "appendfilesync(",
    "bun.write(",
    "createwritestream(",
    "file.write(",
    "file_put_contents(",
    "io.write(",
    "truncate(",
    "truncatesync(",
    "writefile(",
    "writefilesync(",
    "writetextfile(",
    "writetextfilesync(",
];

/// Calls that write the file which they are given second.
const COPY_CALLS: &[&str] = &["copy", "copy2", "copyfile", "copyfilesync", "cpsync", "move", "rename", "renamesync"];

/// So much of the code before a string is looked at for the call that it is given to.
const LONGEST_CALL: usize = 64;

/// And so much for the test that it belongs to.
const LONGEST_TEST: usize = 128;

/// The same in statements of databases, where removal takes away no file.
const CLIENT_DOES: &[&str] = &["from program", "to program", "system", "shell"];

/// Loops without end in other languages, without blanks.
#[rustfmt::skip]
const ENDLESS: &[&str] = &[
    "for(;;)", "iter(int,1)", "itertools.count", "loop{", "loopdo", "redo", "setinterval", "until(0)", "until0", "untilfalse",
    "while!0", "while(!0)", "while(1)", "while(fork", "while(true)", "while1", "whilefork", "whiletrue",
];

/// Calls that make text of other text.
#[rustfmt::skip]
const DECODES: &[&str] = &[
    "atob", "b16decode", "b32decode", "b64decode", "b85decode", "base64_decode", "buffer.from", "decode64",
    "decode_base64", "decompress", "fromcharcode", "fromhex", "gzinflate", "gzuncompress", "hex2bin", "pack", "string.char",
    "unhexlify", "unpack", "unpack1",
];

/// The call that makes one letter.
const CHARACTER: &[&str] = &["chr"];

/// The same, whatever they are given.
const SCRAMBLES: &[&str] = &["\"%c%c", "marshal.loads", "rot13", "rot_13"];

/// Calls that run text of their own language.
const CODE_RUNS: &[&str] = &["loadstring", "load(", "new function("];

/// Calls whose first argument runs.
const RUNS_DIRECTLY: &[&str] =
    &["os.system(", "exec(", "eval(", "execsync(", "popen(", "spawn(", "system(", "shell_exec(", "os.execute("];

/// How code names the program that runs it, without blanks.
const ITSELF: &[&str] =
    &["$0", "__file__", "__filename", "process.argv", "process.execpath", "sys.argv", "sys.executable"];

/// What editors and clients write before a command: `:silent !rm …`, `\! rm …`, `.shell rm …`.
const ESCAPES: &[&str] =
    &["call", "exec", "execute", "r", "read", "shell", "silent", "silent!", "spawn", "system", "tcl"];

impl Walker {
    /// What code of another language may run.
    pub(in crate::walk) fn guess_code(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        self.run_data(name, fields, feed, depth);
        let input = match feed {
            Feed::Text(Some(text)) => Some(&**text),
            _ => None,
        };
        let is_code = |at: usize, text: &str| {
            is_line(text)
                || text.contains(['(', '\'', '"'])
                || fields.get(at).is_some_and(|before| takes_code(&before.text))
        };
        let given =
            fields.iter().skip(1).enumerate().map(|(at, field)| (is_code(at, &field.text), field.text.as_str()));
        let worded = WordedLanguage::of(name);
        if worded == Some(WordedLanguage::PowerShell) && fields.iter().any(|field| is_encoded(&field.text)) {
            self.unclear(format!("{name} runs text that is not written out: {}", show(fields)));
        }
        // Words that stand alone are one command to these.
        let joined = worded.filter(|_| input.is_none()).map(|_| {
            let words = fields.iter().skip(1).skip_while(|field| field.text.starts_with(['-', '/']));
            words.map(Field::shown).collect::<Vec<_>>().join(" ")
        });
        let joined = joined.as_deref().filter(|_| fields.len() > 2).map(|text| (is_line(text), text));
        let given: Vec<(bool, &str)> = given.chain(input.map(|text| (true, text))).chain(joined).collect();
        if !given.iter().any(|(is_code, _)| *is_code) {
            return;
        }
        self.guessed(|walker| {
            let mut does = false;
            for (_, code) in given.iter().filter(|(is_code, _)| *is_code) {
                walker.guess_commands(name, code, depth);
                if multiplies(code) {
                    walker.push(ScriptAction::Bomb { name: name.to_owned() });
                }
                if !walker.affords(1 + code.len() / 16) {
                    continue;
                }
                walker.write_files(code);
                if has_deeds(name, code) {
                    does = true;
                    if runs_what_it_fetches(code) {
                        walker.unknown(format!("{name} runs what it gets from elsewhere"));
                    }
                    if runs_what_it_decodes(code) {
                        walker.unknown(format!("{name} runs text that it puts together: {}", text::excerpt(code)));
                    }
                    walker.guess_strings(code, depth);
                    for joined in joined_strings(code).into_iter().chain(joined_lists(code)) {
                        walker.guess_strings(&joined, depth);
                    }
                }
            }
            if does {
                walker.guess_given(name, fields, feed, depth);
            }
        });
    }

    /// The files that calls in code write.
    fn write_files(&mut self, code: &str) {
        let home = self.place.home.clone();
        for file in written_files(code).take(MOST_COMMANDS) {
            let (target, place) = (Field::literal(path::spelled(file, home.as_deref())), self.place.clone());
            self.push(ScriptAction::Write { target, place, appends: false });
        }
    }

    /// What code that runs or removes something may do with its arguments and its input.
    fn guess_given(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let is_given = |field: &&Field| is_line(&field.text) && !has_deeds(name, &field.text);
        for line in fields.iter().skip(1).filter(is_given) {
            self.guess_text(&line.text, depth);
        }
        let is_path = |field: &&Field| !is_line(&field.text) && !field.text.starts_with('-');
        let paths: Fields = fields.iter().skip(1).filter(is_path).chain(feed.fields()).cloned().collect();
        let input = if let Feed::Text(Some(text)) = feed { text } else { "" };
        let mut codes = fields.iter().skip(1).map(|field| field.text.as_str()).chain([input]);
        if !paths.is_empty() && codes.any(removes) {
            let removal = ["rm", "-r", "-f"].map(Field::literal).into_iter().chain(paths);
            self.run(removal.collect(), &Feed::Nothing, depth + 1);
        }
    }

    /// What `sed` and `awk` run of what they read, where their code says so. That text does not stand in the code.
    fn run_data(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        if !program::is_filter(name) {
            return;
        }
        let scripts = filter::scripts(name, args);
        if scripts.iter().any(|script| filter::runs_data(name, &script.text)) {
            let values: Vec<&str> = filter::awk_values(name, args).collect();
            match feed {
                Feed::Text(Some(text)) => self.guessed(|walker| walker.guess_text(text, depth)),
                Feed::Nothing => {}
                _ => self.unclear(format!("{name} runs whatever it is fed: {}", show(fields))),
            }
            for value in values {
                self.guess_value(value, depth);
            }
        }
        // `system("rm " $0)`
        let begins = scripts.iter().flat_map(|script| strings(&script.text));
        let begins: Vec<String> = begins
            .filter(|string| string.ends_with(' ') && begins_with_harm(string))
            .map(Cow::into_owned)
            .take(MOST_COMMANDS)
            .collect();
        for begin in begins {
            let Some(more) = feed.arguments(Split::Words) else { continue };
            let words: Fields = begin.split_whitespace().map(Field::literal).chain(more).collect();
            self.guessed(|walker| walker.run(words.into(), &Feed::Nothing, depth + 1));
        }
    }

    /// Commands that stand in code without quotes.
    fn guess_commands(&mut self, name: &str, code: &str, depth: usize) {
        if filter::is_sed(name) {
            let commands: Vec<&str> = filter::sed_commands(code, begins_with_harm).take(MOST_COMMANDS + 1).collect();
            if commands.len() > MOST_COMMANDS {
                return self.unknown("too many commands within commands");
            }
            for command in commands {
                self.guess_text(command, depth);
            }
        } else if let Some(language) = WordedLanguage::of(name) {
            let found = language.shell_lines(code);
            if found.is_open {
                self.unknown(format!("{name} runs text that is not written out: {}", text::excerpt(code)));
            }
            let sets =
                |line: &str| line.starts_with("cd ") || line.split_once('=').is_some_and(|(name, _)| is_name(name));
            if found.lines.iter().any(|line| begins_with_harm(line)) {
                let kept = found.lines.iter().map(String::as_str).filter(|line| begins_with_harm(line) || sets(line));
                self.guess_text(&kept.collect::<Vec<_>>().join("\n"), depth);
            }
        } else if !program::is_filter(name) {
            let lines = code.split(['\n', ';']).skip(1).map(str::trim_start);
            for command in std::iter::once(code).chain(lines).filter_map(escaped) {
                self.guess_text(command, depth);
            }
        }
    }

    /// What the strings in code would do, each alone and as words of one command.
    fn guess_strings(&mut self, code: &str, depth: usize) {
        let strings = strings(code);
        for (at, string) in strings.iter().enumerate() {
            let harm = begins_with_harm(string);
            if harm || is_line(string) {
                self.guess_text(string, depth);
            }
            // `"rm -rf " + home`
            if let Some(next) = strings.get(at + 1).filter(|_| harm && string.ends_with(' ')) {
                self.guess_text(&format!("{string}{next}"), depth);
            }
        }
        // Quotes may stand in comments, or be brackets: `%x(rm -rf ~)`.
        for part in code.split(['"', '\'', '`', '(', ')', '{', '}']).filter(|part| is_line(part)) {
            if begins_with_harm(part) && !strings.iter().any(|string| string == part) {
                self.guess_text(part, depth);
            }
        }
        if removes(code) {
            self.guess_removal(code, depth);
        }
        // `rm -rf` and its target as words of a list: `["rm", "-rf", "/"]`.
        if let Some(at) = strings.iter().position(|string| super::does_harm(&path::base_name(string))) {
            let words = strings.iter().skip(at).map(|word| Field::literal(word.as_ref()));
            self.run(words.collect(), &Feed::Nothing, depth + 1);
        }
    }

    /// The files that code may take away: its strings, but for those that say which.
    fn guess_removal(&mut self, code: &str, depth: usize) {
        let home = self.place.home.clone();
        let lists = code.contains("glob");
        // What it does in the working folder it does to some of what is there.
        let tests = ["if ", "if(", "filter(", "grep"].iter().any(|test| code.contains(test));
        let narrows = |string: &str| is_pattern(string) && string.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let chooses = tests || (lists && quoted(code).any(|(_, string, _)| narrows(string)));
        let named = |string: Cow<'_, str>| {
            let text = path::spelled(&string, home.as_deref());
            Field { glob: lists && is_pattern(&text), ..Field::literal(text) }
        };
        let (mut compared, mut last) = (false, code);
        let paths = quoted(code).filter_map(|(before, string, behind)| {
            let between = last.len().checked_sub(string.len() + behind.len() + 2).and_then(|length| last.get(..length));
            last = behind;
            // `in ('.git', 'x')`: each of them is.
            let goes_on = compared && between.is_some_and(|between| between.trim() == ",");
            compared = goes_on || is_compared(before, behind);
            let is_path = string.contains(['/', '~', '.', '$']) || !is_line(string);
            let is_here = chooses && string == ".";
            (is_path && !compared && !is_here && !is_data(before, string, behind)).then(|| unescaped(string))
        });
        let paths: Vec<Field> = paths.map(named).collect();
        let bare = self.place.home.as_deref().and_then(|home| home.to_str()).filter(|_| {
            let runs_removal = strings(code).iter().any(|string| begins_with_harm(string));
            (runs_removal || removes_trees(code)) && names_home(code)
        });
        let removal = ["rm", "-r", "-f"].map(Field::literal).into_iter().chain(bare.map(Field::literal));
        self.run(removal.chain(paths).collect(), &Feed::Nothing, depth + 1);
    }
}

/// Whether the word behind an option is code: `-c`, `-e`, `-nle`, `--eval`.
pub(super) fn takes_code(option: &str) -> bool {
    let short = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    short.is_some_and(|letters| letters.ends_with(['c', 'e', 'E'])) || matches!(option, "--eval" | "--execute" | "eval")
}

/// Whether code has a call that runs a program or removes a file.
fn has_deeds(name: &str, code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    if program::is_client(name) { has(CLIENT_DOES) } else { has(RUNS) || has(REMOVES) || calls_harm(&folded) }
}

/// Whether code takes files away, or names a program that does.
fn removes(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    REMOVES.iter().any(|word| folded.contains(word)) || calls_harm(&folded) || super::names_harm(&folded)
}

/// Whether the string between these parts of code is what something else is compared with.
fn is_compared(before: &str, behind: &str) -> bool {
    let (before, behind) = (end_of(before, LONGEST_TEST).trim_end(), behind.trim_start());
    let line = before.rsplit(['\n', ';']).next().unwrap_or_default();
    // `for x in ("a", "b")` goes through them.
    let tests = line.rfind("for ").is_none_or(|at| line.rfind("if ").is_some_and(|test| test > at));
    let is_in = || [" in (", " in [", " in {", " in"].iter().any(|end| line.ends_with(end));
    before.ends_with("==")
        || before.ends_with("!=")
        || (tests && is_in())
        || ["==", "!=", "in ", "not in "].iter().any(|start| behind.starts_with(start))
}

/// Whether a string is a pattern, a separator or a message to the call that it is given to, or a file that is only read.
fn is_data(before: &str, string: &str, behind: &str) -> bool {
    let called = call_before(before);
    // `parts.join("/")`, `join("/", parts)`, and not `path.join("/", part)`
    let is_separator =
        string.len() == 1 && called.ends_with("join(") && (behind.starts_with(')') || !called.ends_with(".join("));
    let read = called.ends_with("open(") && !is_written(before, behind);
    (DATA_CALLS.iter().any(|call| called.ends_with(call)) && !called.ends_with("os.replace("))
        || is_separator
        || read
        || behind.starts_with(".join(")
        || behind.starts_with(".split(")
}

/// What stands right before a string: the call that it is given to.
fn call_before(before: &str) -> String {
    end_of(before, LONGEST_CALL).trim_end().to_ascii_lowercase()
}

/// The end of a text, about so many bytes.
fn end_of(text: &str, bytes: usize) -> &str {
    let from = (text.len().saturating_sub(bytes)..text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

/// Whether a call has the name of a program that removes files: `rm("x")`, `await rm(x)`, Julia's `rm.(x)`.
fn calls_harm(code: &str) -> bool {
    let called = code.match_indices('(').filter_map(|(at, _)| code.get(..at));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    called.map(|before| before.strip_suffix('.').unwrap_or(before)).any(|before| {
        ["rm", "unlink", "shred"].iter().any(|name| {
            before.strip_suffix(name).is_some_and(|before| !before.ends_with(is_name) && !before.ends_with('.'))
        })
    })
}

/// Whether code starts itself again in a loop without end.
fn multiplies(code: &str) -> bool {
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

/// Whether code may run what another machine answers.
fn runs_what_it_fetches(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    has(&["exec(", "eval(", "eval "]) && has(&["http://", "https://"])
}

/// Whether code runs text that it makes of other text which is written in it.
fn runs_what_it_decodes(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    if !has(RUNS) && !has(CODE_RUNS) {
        return false;
    }
    // A newline or a quote is made of its number, too.
    let is_letter = |text: &str| {
        let number =
            text.split(|next: char| !next.is_ascii_digit()).next().and_then(|digits| digits.parse::<u8>().ok());
        number.is_some_and(|number| number.is_ascii_alphabetic())
    };
    let is_written = |given: &str| {
        let text = given.trim_start_matches(['(', '[', ' ', 'b', 'r', 'u']);
        text.starts_with(['"', '\'', '`', '<']) || is_letter(text)
    };
    let is_inside = || {
        let ran = RUNS_DIRECTLY.iter().flat_map(|call| folded.match_indices(call).map(|(at, _)| at + call.len()));
        let mut given = ran.filter_map(|at| folded.get(at..)?.split(['\n', ';']).next());
        given.any(|given| calls_of(given, DECODES).chain(calls_of(given, CHARACTER)).next().is_some())
    };
    let characters = calls_of(&folded, CHARACTER).filter(|given| is_letter(given.trim_start_matches(['(', ' '])));
    has(SCRAMBLES) || calls_of(&folded, DECODES).any(is_written) || is_inside() || characters.count() > 1
}

/// What stands behind each call of one of these names.
fn calls_of<'c>(code: &'c str, names: &'c [&str]) -> impl Iterator<Item = &'c str> {
    let called = names.iter().flat_map(move |name| code.match_indices(name));
    called.filter_map(move |(at, name)| {
        let before = code.get(..at)?;
        let behind = code.get(at + name.len()..)?;
        let is_whole = !before.ends_with(|next: char| next.is_ascii_alphanumeric() || "_'\"".contains(next));
        (is_whole && (behind.starts_with('(') || behind.starts_with(" \""))).then_some(behind)
    })
}

/// Code with strings that stand in a list to be joined written as one: `''.join(['r', 'm'])`.
fn joined_lists(code: &str) -> Option<String> {
    let joined =
        ["', '", "','", "\", \"", "\",\""].iter().fold(code.to_owned(), |code, between| code.replace(between, ""));
    (code.contains("join(") && joined.len() < code.len()).then_some(joined)
}

/// Whether code takes folders away.
fn removes_trees(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    REMOVES_TREES.iter().any(|call| folded.contains(call))
}

/// Whether code names the home, and nothing in it.
fn names_home(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    // However a language asks for it: `Path.home()`, `ENV["HOME"]`, `os.UserHomeDir()`, `$HOME`.
    let is_bare = |(at, name): (usize, &str)| {
        let before = folded.get(..at).and_then(|before| before.rsplit([';', '\n']).next()).unwrap_or_default();
        let behind = folded.get(at + name.len()..).unwrap_or_default();
        let word = behind.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_alphabetic());
        let is_home = matches!(behind.len() - word.len(), 0) || behind.starts_with("dir") || behind.starts_with("_dir");
        let rest = word.trim_start_matches(['"', '\'', '(', ')', ']', '}', ' ']);
        let acts = [".iterdir", ".rglob", ".delete", ".remove"];
        let lists = acts.iter().any(|call| rest.starts_with(call));
        is_home
            && !before.ends_with('/')
            && !before.contains("join")
            && (lists || !rest.starts_with(['/', '+', '.', '&', '\\', '[']))
    };
    folded.match_indices("home").chain(folded.match_indices("userprofile")).any(is_bare)
}

/// The command on a line of an editor or a client that lets people run one.
fn escaped(line: &str) -> Option<&str> {
    let is_mark = |next: char| matches!(next, ':' | '+' | '\\' | '.' | '%' | ',' | '$' | ' ') || next.is_ascii_digit();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(is_mark);
        if rest.starts_with('!') || begins_with_harm(rest) {
            return Some(rest);
        }
        (_, rest) = rest.split_once(' ').filter(|(word, _)| ESCAPES.contains(word))?;
    }
}

/// What stands in quotes, of any kind, with `\"` and the like written out.
fn strings(code: &str) -> Vec<Cow<'_, str>> {
    quoted(code).map(|(_, string, _)| unescaped(string)).collect()
}

/// The same as it is written, with the code before it and behind it.
fn quoted(code: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut rest = code;
    // A quote that ends nowhere is none, and so are those of its kind behind it.
    let mut quotes = vec!['"', '\'', '`'];
    std::iter::from_fn(move || {
        while let Some(start) = rest.find(quotes.as_slice()) {
            let (quote, behind) = rest.split_at(start).1.split_at(1);
            let Some(end) = string_end(behind, quote) else {
                quotes.retain(|kept| !quote.starts_with(*kept));
                rest = behind;
                continue;
            };
            let (string, after) = behind.split_at(end);
            let before = code.get(..code.len() - behind.len() - 1).unwrap_or_default();
            rest = after.get(1..).unwrap_or_default();
            return Some((before, string, rest));
        }
        None
    })
}

/// The files that code names to calls which write them, in the forms that most languages have.
fn written_files(code: &str) -> impl Iterator<Item = &str> {
    let mut redirected = false;
    quoted(code).filter_map(move |(before, string, behind)| {
        // Perl's `open(F, ">", "x")` and `open(F, ">x")`.
        let is_target = std::mem::take(&mut redirected) && before.trim_end().ends_with(',');
        let file = string.trim_start_matches(['+', '<', '>', ' ']);
        let redirects = string.starts_with('>') || string.starts_with("+<") || string.starts_with("+>");
        redirected = redirects && file.is_empty();
        let is_path = file.starts_with(['/', '~', '.']);
        (is_path && (is_target || redirects || is_written(before, behind))).then_some(file)
    })
}

/// Whether the file between these parts of code is written: `open("x", "w")`, `writeFile("x")`, `Path("x").write_text()`.
fn is_written(before: &str, behind: &str) -> bool {
    let called = call_before(before);
    let behind = behind.trim_start();
    let mode = behind
        .strip_prefix(',')
        .map(|mode| mode.trim_start().trim_start_matches("mode=").trim_start_matches(['"', '\'']));
    let mode = mode.and_then(|mode| mode.split(['"', '\'']).next());
    let writes =
        |mode: &str| mode.contains(['w', 'a', 'x', '+']) && mode.bytes().all(|byte| b"abrtwx+".contains(&byte));
    // `copyfile("x", "y")`
    let second = called.strip_suffix(',').and_then(|first| first.rsplit_once('(')).map(|(call, _)| call);
    let flags = || {
        behind
            .split(')')
            .next()
            .is_some_and(|flags| ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| flags.contains(flag)))
    };
    WRITE_CALLS.iter().any(|call| called.ends_with(call))
        || second.is_some_and(|call| COPY_CALLS.iter().any(|known| call.ends_with(known)))
        || (called.ends_with("open(") && flags())
        || (called.ends_with("open(") || called.ends_with("opensync(")) && mode.is_some_and(writes)
        || [").write_", ").truncate", ").open(\"w", ").open('w"].iter().any(|call| behind.starts_with(call))
}

/// Where the quote stands that ends a string.
fn string_end(text: &str, quote: &str) -> Option<usize> {
    let escapes = |at: usize| {
        text.get(..at).is_some_and(|before| {
            let slashes = before.len() - before.trim_end_matches('\\').len();
            slashes % 2 == 1
        })
    };
    text.match_indices(quote).map(|(at, _)| at).find(|at| !escapes(*at))
}

fn unescaped(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    let mut plain = String::with_capacity(string.len());
    let mut rest = string.chars();
    while let Some(next) = rest.next() {
        match (next, next == '\\') {
            (_, true) => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(kind @ ('x' | 'u')) => {
                    let digits = rest.as_str().get(..if kind == 'x' { 2 } else { 4 });
                    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
                    plain.push(code.unwrap_or(kind));
                    if code.is_some() {
                        rest = rest.as_str().get(digits.map_or(0, str::len)..).unwrap_or_default().chars();
                    }
                }
                escaped => plain.extend(escaped),
            },
            (next, false) => plain.push(next),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::{ESCAPES, escaped, strings};

    #[test]
    fn strings_end_at_their_own_quote() {
        assert_eq!(strings(r#"f("a 'b' \"c\"", 'd')"#), [r#"a 'b' "c""#, "d"]);
        assert_eq!(strings("don't; f(\"x\")"), ["x"]);
    }

    #[test]
    fn commands_of_editors_stand_behind_their_marks() {
        assert!(ESCAPES.is_sorted());
        assert_eq!(escaped(":silent !rm x"), Some("!rm x"));
        assert_eq!(escaped("\\! rm x"), Some("! rm x"));
        assert_eq!(escaped(".shell rm x"), Some("rm x"));
        assert_eq!(escaped("print(1)"), None);
    }
}
