//! Takes commands apart that run other commands: removes their own arguments.

use std::{borrow::Cow, path::Path, sync::OnceLock};

use ollm_shell::wrapper::{COMMAND, CarriedCommand, ENV, OptionValue, WATCH, WrapperOption, is_assignment};

use super::{
    Feed, Run, Walker,
    carrier::{CarrierKind, RUNNER, carried, is_cluster},
    streams,
};
use crate::{
    field::{Field, Fields, ShellPlace, Tail},
    path,
    program::{self, Arguments, Files, Program},
    text,
};

/// Options that name the folder in which a command runs.
const FOLDER_OPTIONS: &[&str] = &["-C", "-D", "--chdir", "--directory", "--working-directory", "--cwd", "--workdir"];

/// Variables that tell `git` where it works and what it runs.
const GIT_VARIABLES: &[&str] =
    &["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_TEMPLATE_DIR", "GIT_WORK_TREE"];

/// How many carriers may stand before one another.
const MOST_CARRIERS: usize = 32;

/// How deep commands may run others; the parser has the same bound.
const MOST_LEVELS: usize = 200;

impl Walker {
    /// One expanded command, down to the program that does the work.
    pub(super) fn run(&mut self, fields: Tail, feed: &Feed, depth: usize) {
        let covered = self.covered;
        self.taken_apart(fields, feed, depth);
        self.covered = covered;
    }

    fn taken_apart(&mut self, mut fields: Tail, feed: &Feed, depth: usize) {
        self.input = feed.clone();
        let tails = std::mem::take(&mut self.tails);
        let whole = (!tails.is_empty()).then(|| (fields.len(), self.place.clone()));
        if depth > MOST_LEVELS {
            return self.unclear("too many commands within commands");
        }
        if !self.affords(fields.len()) {
            return;
        }
        for _ in 0..MOST_CARRIERS {
            let Some(first) = fields.first() else { return };
            let is_known = |(length, place): &(usize, ShellPlace)| {
                fields.len() < *length && tails.contains(&fields.len()) && self.place == *place
            };
            if whole.as_ref().is_some_and(is_known) {
                return;
            }
            let Some(name) = program_name(first) else {
                let reason = format!("which program runs is not written out: {}", show(&fields));
                // Prose sets no variables.
                return if self.outer.names.is_empty() { self.unclear(reason) } else { self.unknown(reason) };
            };
            if self.passing.contains(name.as_ref()) {
                self.run(fields.skip(1), feed, depth + 1);
                return self.dispatch(&name, &fields, feed, depth);
            }
            let kind = CarrierKind::of(&name);
            if let Some(carrier) = kind.carrier(&name) {
                let carried = carried(&fields, carrier);
                self.carrier_options(&fields, &carried, feed, depth);
                fields = fields.skip(carried.at);
            } else if name == "command" {
                if looks_up(&fields) {
                    return;
                }
                fields = fields.skip(carried(&fields, &COMMAND).at);
            } else if name == "env" {
                let Some(at) = self.env(&fields, depth) else { return };
                fields = fields.skip(at);
            } else if let Some(at) = kind.verb(&fields) {
                let behind = fields.skip(at);
                fields = behind.skip(carried(&behind, &RUNNER).at);
            } else if name == "eval" && fields.iter().all(|field| field.known().is_some_and(is_plain)) {
                // Plain words are the same words when they are read once more.
                fields = fields.skip(1);
            } else if !self.aliases.is_empty()
                && let Some(alias) = self.aliases.remove(name.as_ref())
            {
                // An alias is not looked up again in what it stands for.
                let rest = fields.iter().skip(1).cloned();
                let words = alias.into_iter().map(Field::literal).chain(rest).collect();
                return self.taken_apart(words, feed, depth + 1);
            } else {
                return self.dispatch(&name, &fields, feed, depth);
            }
        }
        self.unclear("too many commands within commands");
    }

    /// What options of a carrier say about the command behind them: its folder, its variables, or another command.
    fn carrier_options(&mut self, fields: &Tail, carried: &CarriedCommand, feed: &Feed, depth: usize) {
        let own = fields.head(carried.at);
        if own.len() < 2 {
            return;
        }
        for (at, field) in own.iter().enumerate() {
            let (option, value) = match field.text.split_once('=') {
                Some((option, value)) => (option, Some(Field { text: value.to_owned(), ..field.clone() })),
                None => (field.text.as_str(), own.get(at + 1).cloned()),
            };
            match value {
                Some(folder) if FOLDER_OPTIONS.contains(&option) => self.place.change(&folder),
                _ => {}
            }
            if is_assignment(&field.text) {
                self.outer.taint(option);
            }
        }
        let name = own.first().map(|first| path::base_name(&first.text)).unwrap_or_default();
        // Its own options may name files; all that `sudo -e` is given are files to edit.
        let edits = name == "sudo" && own.iter().any(|arg| is_cluster(&arg.text, 'e') || arg.text == "--edit");
        self.work(&name, if edits { fields } else { &own }, &Feed::Nothing);
        // The word behind an option that is not known may be its value, and the command begin later.
        self.guess_run(&name, if carried.known { &own } else { fields }, feed, depth + 1);
        self.covered |= !carried.known;
    }

    /// Commands that are neither plain programs nor plain prefixes.
    fn dispatch(&mut self, name: &str, fields: &Tail, feed: &Feed, depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        if streams::runs_stream(name, args) {
            self.unclear(format!("a program may run what another command prints: {}", show(fields)));
        }
        match name {
            "eval" => self.text(args, "eval", depth),
            "trap" => self.trap(args, depth),
            "alias" | "hash" => self.alias(name, args, depth),
            "watch" => self.text(&fields.skip(carried(fields, &WATCH).at), "watch", depth),
            "parallel" => self.parallel(fields, depth),
            "script" => {
                self.text_option(name, fields, feed, depth);
                self.work(name, fields, feed);
            }
            "su" | "runuser" | "sg" | "flock" | "nix-shell" => self.text_option(name, fields, feed, depth),
            "at" | "batch" | "crontab" => {
                self.guess_written(fields, depth);
                if name == "crontab" && self.is_unseen_crontab(args, feed) {
                    self.unclear(format!("what runs later is not written out: {}", show(fields)));
                }
                self.scheduled(args, feed, depth);
                self.work(name, fields, feed);
            }
            "xargs" => self.xargs(fields, feed, depth),
            "find" | "fd" | "fdfind" => {
                self.find(name, fields, depth);
                self.work(name, fields, feed);
            }
            "cd" | "chdir" | "pushd" | "popd" => self.change_folder(name, args),
            "." | "source" if self.run_written(&fields.skip(1), feed, depth) => {}
            "." | "source" if args.first().is_some_and(|file| is_stream(file, feed)) => {
                self.unclear(format!("a script comes from somewhere else: {}", show(fields)));
            }
            "ssh" => {
                self.ssh(fields, feed, depth);
                self.work(name, fields, feed);
            }
            "docker" | "podman" | "nerdctl" | "kubectl" | "lxc" | "machinectl" | "distrobox" | "toolbox" => {
                self.container(fields, feed, depth);
                self.work(name, fields, feed);
            }
            shell if ollm_shell::is_shell(shell) => self.shell(fields, feed, depth),
            // A command line in one word, as `npx -c` takes it.
            _ if fields.len() == 1 && fields.iter().all(|field| field.text.trim().contains(' ')) => {
                self.text(fields, "a wrapper", depth);
            }
            _ => {
                self.run_written(fields, feed, depth);
                let program = fields.first().map_or_else(|| Program::of(name), |first| Program::at(&first.text, name));
                if program::runs_its_input(name) && (is_fed_code(args, feed) || is_given_code(args)) {
                    self.unclear(format!("an interpreter runs whatever it is fed: {}", show(fields)));
                }
                self.run_tasks(name, args, depth);
                if !program.only_reads {
                    self.guess_written(fields, depth);
                }
                if program.arguments == Arguments::Code && args.iter().any(|arg| self.is_made_of_unknown(arg)) {
                    self.unclear(format!(
                        "it runs a file that it has made itself, of which nothing is known: {}",
                        show(fields)
                    ));
                }
                self.guess_by(program, name, fields, feed, depth + 1);
                // Of a guess only what it may change counts.
                if self.guesses == 0 || !is_idle(program, fields) {
                    self.work_of(program, name, fields, feed);
                }
            }
        }
    }

    /// The program that does the work.
    pub(super) fn work(&mut self, name: &str, fields: &Tail, feed: &Feed) {
        self.work_of(Program::of(name), name, fields, feed);
    }

    fn work_of(&mut self, program: Program, name: &str, fields: &Tail, feed: &Feed) {
        let input = match feed {
            Feed::Text(text) => text.clone(),
            _ if program.arguments == Arguments::Code => fields.iter().skip(1).find_map(|arg| self.written_text(arg)),
            _ => None,
        };
        if name == "git" && GIT_VARIABLES.iter().any(|name| self.outer.names.contains_key(*name)) {
            self.unclear(format!("variables tell git where to work, or what to run: {}", show(fields)));
        }
        let place = self.place.clone();
        let args = fields.skip(1);
        self.push_run(Run { program, name: name.to_owned(), args, place, input, touches: OnceLock::new() });
    }

    /// Another name for a command.
    fn alias(&mut self, name: &str, args: &[Field], depth: usize) {
        if name == "hash" {
            if let [option, program, names @ ..] = args
                && option.text == "-p"
            {
                self.aliases.extend(names.iter().map(|name| (name.text.clone(), vec![program.text.clone()])));
            }
            return;
        }
        for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
            let Some(text) = arg.known() else {
                return self.unclear(format!("alias keeps text that is not written out: {}", show(args)));
            };
            if let Some((alias, value)) = text.split_once('=') {
                self.script(value, depth + 1);
                self.aliases.insert(alias.to_lowercase(), value.split_whitespace().map(str::to_owned).collect());
            }
        }
    }

    /// `env`: its own options and assignments; where the command begins.
    fn env(&mut self, fields: &[Field], depth: usize) -> Option<usize> {
        let mut rest = fields.iter().enumerate().skip(1);
        while let Some((at, field)) = rest.next() {
            let text = field.text.as_str();
            let assigns = !text.starts_with('-') && text.contains('=');
            if field.known().is_none() && !assigns {
                self.unclear(format!("which program runs is not written out: {}", show(fields)));
                return None;
            }
            if assigns {
                let (name, value) = text.split_once('=').unwrap_or_default();
                self.outer.taint(name);
                self.set_for_program(name, field.known().map(|_| value));
                self.guess_value(value, depth);
                continue;
            }
            if !text.starts_with('-') {
                return Some(at);
            }
            // A dash alone is `-i`.
            let option = ENV.option(text, false).filter(|_| text.len() > 1);
            let value = option.and_then(|option| match option.value {
                OptionValue::Here(value) => Some(Field::literal(value)),
                OptionValue::Next => rest.next().map(|(_, field)| field.clone()),
                OptionValue::None => None,
            });
            match (option, value) {
                (None, _) if text.len() > 1 => {
                    self.unclear(format!("an option of `env` is not known: {}", show(fields)));
                }
                (Some(WrapperOption { name: "S" | "split-string", .. }), inner) => {
                    let text: Fields = inner.into_iter().chain(rest.map(|(_, field)| field.clone())).collect();
                    self.text(&text, "env -S", depth);
                    return None;
                }
                (Some(WrapperOption { name: "C" | "chdir", .. }), Some(folder)) => self.place.change(&folder),
                _ => {}
            }
        }
        None
    }

    fn change_folder(&mut self, name: &str, args: &[Field]) {
        let target = args.iter().find(|arg| arg.open() || arg.text == "-" || !arg.text.starts_with('-'));
        match (name, target, self.place.home.clone()) {
            ("cd" | "chdir", None, Some(home)) => {
                self.place.change_to_home(&home);
            }
            ("popd", ..) | (_, None, _) => self.place.lost = true,
            (_, Some(target), _) if target.text == "-" => self.place.lost = true,
            (_, Some(target), _) => {
                let elsewhere = self.outer.names.contains_key("CDPATH") && !target.text.starts_with(['/', '.']);
                self.place.change(target);
                self.place.lost |= elsewhere;
            }
        }
    }
}

/// Whether a word has nothing in it that means something to a shell, not even as a keyword.
fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b'@' | b'%');
    !word.is_empty() && word.bytes().all(|byte| plain(byte) || byte.is_ascii_alphabetic())
}

/// Whether a program of which nothing is known is given neither options nor anything that may be a file of worth.
fn is_idle(program: Program, fields: &[Field]) -> bool {
    let idle = |arg: &Field| !arg.text.starts_with('-') && !arg.open() && !arg.text.contains(['/', '.', '\\']);
    (program.arguments, program.files) == (Arguments::MayRun, Files::MayWrite) && fields.iter().skip(1).all(idle)
}

/// Whether an interpreter gets code from a stream of unknown content: a pipe, or the output of another command.
fn is_fed_code(args: &[Field], feed: &Feed) -> bool {
    let piped = matches!(feed, Feed::Pipe | Feed::Text(None));
    match args.iter().find(|arg| arg.text == "-" || !arg.text.starts_with('-')) {
        Some(file) if file.text == "-" => piped,
        Some(file) => is_stream(file, feed) && (piped || file.text.starts_with("/dev/fd/")),
        None => piped && args.is_empty(),
    }
}

/// Whether all of the code in the arguments of an interpreter comes from another command.
fn is_given_code(args: &[Field]) -> bool {
    let is_code = |option: &Field| matches!(option.text.as_str(), "-c" | "-e" | "-r" | "--eval");
    let is_unseen = |code: &Field| code.open() && code.text.is_empty() && code.hollow.is_none();
    args.windows(2).any(|pair| matches!(pair, [option, code] if is_code(option) && is_unseen(code)))
}

/// Whether `command` only asks where a program is.
fn looks_up(fields: &[Field]) -> bool {
    let options = fields.iter().skip(1).map(|field| field.text.as_str()).take_while(|text| text.starts_with('-'));
    options.filter(|text| !text.starts_with("--")).any(|text| text.contains(['v', 'V']))
}

/// Whether a file is the standard input or another descriptor, however it is written.
pub(super) fn is_stream(file: &Field, feed: &Feed) -> bool {
    let file = path::tidy(Path::new(&file.text));
    let input = ["/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"].iter().any(|name| file == Path::new(name));
    (file.starts_with("/dev/fd") && file != Path::new("/dev/fd/0"))
        || (file.starts_with("/proc/self/fd") && !input)
        || (input && !matches!(feed, Feed::Nothing))
}

/// The name of the program that a word means, if that much is known of it.
fn program_name(word: &Field) -> Option<Cow<'_, str>> {
    let known = match &word.tail {
        None if !word.glob => word.text.as_str(),
        // Wherever the folder is, this is the program in it.
        Some(tail) if !word.glob => tail.rsplit_once('/').map(|(_, name)| name).filter(|name| !name.is_empty())?,
        _ => return None,
    };
    // In zsh `=rm` is the path of `rm`.
    Some(path::base_name(known.strip_prefix('=').unwrap_or(known)))
}

pub(super) fn show(fields: &[Field]) -> String {
    let shown: Vec<String> = fields.iter().map(Field::shown).collect();
    text::excerpt(&shown.join(" "))
}
