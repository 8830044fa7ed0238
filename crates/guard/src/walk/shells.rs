//! Programs that read shell text: from an argument, from their input, later, or on another machine.

use ollm_shell::wrapper::{CarriedCommand, FLOCK, RUNUSER, SSH};

use super::{
    Feed, Walker,
    carrier::{CONTAINER, carried, is_cluster},
    carry::{is_stream, show},
};
use crate::{
    field::{Field, Tail},
    path,
};

impl Walker {
    /// Arguments that together are shell text.
    pub(super) fn text(&mut self, args: &[Field], carrier: &str, depth: usize) {
        let known: Option<Vec<&str>> = args.iter().map(Field::known).collect();
        match known {
            Some(words) => self.script(&words.join(" "), depth + 1),
            None => self.unknown(format!("{carrier} runs text that is not written out: {}", show(args))),
        }
    }

    /// Text kept until a signal comes.
    pub(super) fn trap(&mut self, args: &[Field], depth: usize) {
        let Some(arg) = args.iter().find(|arg| !arg.text.starts_with('-')) else { return };
        match arg.known() {
            Some(text) => self.script(text, depth + 1),
            None => self.unknown(format!("trap keeps text that is not written out: {}", show(args))),
        }
    }

    /// Text that runs later: `at`, `batch`, `crontab`.
    pub(super) fn scheduled(&mut self, args: &[Field], feed: &Feed, depth: usize) {
        match feed {
            Feed::Nothing => {}
            Feed::Text(Some(text)) => {
                // A line of a crontab begins with five fields that say when.
                let commands = text.lines().flat_map(|line| [Some(line), after_fields(line, 5)]).flatten();
                let commands: Vec<String> = commands.map(str::to_owned).collect();
                for command in &commands {
                    self.script(command, depth + 1);
                }
            }
            _ => self.unknown(format!("what runs later is not written out: {}", show(args))),
        }
    }

    /// Whether `crontab` takes its table from a file of which nothing is known.
    pub(super) fn is_unseen_crontab(&self, args: &[Field], feed: &Feed) -> bool {
        let users = args.iter().zip(args.iter().skip(1)).filter(|(option, _)| is_cluster(&option.text, 'u'));
        let users: Vec<&Field> = users.map(|(_, user)| user).collect();
        let is_file = |arg: &&Field| arg.text == "-" || !arg.text.starts_with('-');
        let file = args.iter().filter(|arg| !users.iter().any(|user| std::ptr::eq(*user, *arg))).find(is_file);
        match file {
            Some(file) if file.text == "-" => matches!(feed, Feed::Nothing),
            Some(file) => self.written_text(file).is_none() && !is_stream(file, feed),
            None => false,
        }
    }

    /// A shell: the text behind `-c`, a file, or what it is fed.
    pub(super) fn shell(&mut self, fields: &Tail, feed: &Feed, depth: usize) {
        let mut rest = fields.iter().enumerate().skip(1);
        let (mut streamed, mut command, mut plain) = (false, false, false);
        self.guess_written(fields, depth);
        if only_checks(fields) {
            return;
        }
        while let Some((at, field)) = rest.next() {
            let Some(option) = field.known().or_else(|| self.named_by_wildcard(field)) else {
                return self.unknown(format!("what the shell runs is not written out: {}", show(fields)));
            };
            match option {
                "--rcfile" | "--init-file" => drop(rest.next()),
                "--command" => command = true,
                // What follows is a file, under any name.
                "-" | "--" if !command && !plain && at + 1 < fields.len() => plain = true,
                "-" | "--" if !command => break,
                _ if !plain && option.starts_with(['-', '+']) && option.len() > 1 => {
                    command |= is_cluster(option, 'c');
                    // `-euo pipefail`: each `o` takes the next argument.
                    let letters = option.get(1..).filter(|letters| !letters.starts_with('-')).unwrap_or_default();
                    for _ in letters.matches(['o', 'O']) {
                        rest.next();
                    }
                    if !command && is_cluster(option, 's') {
                        break;
                    }
                }
                _ if command => {
                    self.shell_start(fields, feed, depth);
                    return self.shell_text(fields, at, depth);
                }
                _ if is_stream(field, feed) => {
                    streamed = path::tidy(std::path::Path::new(option)).starts_with("/dev/fd");
                    break;
                }
                // A script file: what it does is not in the command.
                file => {
                    let name = path::base_name(file);
                    let script = fields.skip(at);
                    self.run_written(&script, feed, depth);
                    self.guess_run(&name, &script, feed, depth + 1);
                    return self.work(&name, &script, feed);
                }
            }
        }
        match feed {
            Feed::Text(Some(text)) => self.fed(text, depth),
            Feed::Nothing if !streamed => {}
            _ => self.unknown(format!("a shell runs whatever it is fed: {}", show(fields))),
        }
    }

    /// What a wildcard names is a file as others are, unless the script has written some.
    fn named_by_wildcard<'f>(&self, field: &'f Field) -> Option<&'f str> {
        let is_file = field.glob && !field.open() && field.text.contains(['.', '/']) && !field.text.starts_with('-');
        (is_file && self.written.is_empty()).then_some(field.text.as_str())
    }

    /// The file that a shell reads before anything else may be its standard input.
    fn shell_start(&mut self, fields: &Tail, feed: &Feed, depth: usize) {
        if !["BASH_ENV", "ENV"].iter().any(|name| self.outer.names.contains_key(*name)) {
            return;
        }
        match feed {
            Feed::Nothing => {}
            Feed::Text(Some(text)) => self.fed(text, depth),
            _ => self.unknown(format!("a shell runs whatever it is fed: {}", show(fields))),
        }
    }

    /// A script that is itself the standard input.
    fn fed(&mut self, text: &str, depth: usize) {
        self.input = Feed::Nothing;
        self.script(text, depth + 1);
    }

    /// The text behind `-c`, and its own arguments behind that.
    fn shell_text(&mut self, fields: &[Field], at: usize, depth: usize) {
        let Some(text) = fields.get(at).and_then(Field::known) else { return };
        let before = self.outer.positional.take();
        self.outer.positional = Some(fields.get(at + 1..).unwrap_or_default().to_vec());
        self.script(text, depth + 1);
        self.outer.positional = before;
    }

    /// Programs that take shell text behind an option, and sometimes a command instead.
    pub(super) fn text_option(&mut self, name: &str, fields: &Tail, feed: &Feed, depth: usize) {
        if name == "flock" {
            // The file comes into being.
            self.work(name, &fields.head(carried(fields, &FLOCK).at), &Feed::Nothing);
        }
        let flags: &[&str] = if name == "nix-shell" { &["--run", "--command"] } else { &["-c", "--command"] };
        let is_flag = |field: &Field| field.known().is_some_and(|text| flags.contains(&text) || is_cluster(text, 'c'));
        if let Some(text) = fields.iter().position(is_flag).and_then(|at| fields.get(at + 1)) {
            return self.text(std::slice::from_ref(text), name, depth);
        }
        if let Some(text) = fields.iter().find_map(|field| field.text.strip_prefix("--command=")) {
            return self.text(&[Field::literal(text)], name, depth);
        }
        if name == "flock" {
            let carried = carried(fields, &FLOCK);
            let guessed = if carried.known { carried.at } else { fields.len() };
            self.guess_run(name, &fields.head(guessed), feed, depth + 1);
            return self.run(fields.skip(carried.at), feed, depth + 1);
        }
        self.guess_run(name, fields, feed, depth + 1);
        match feed {
            Feed::Nothing => {}
            Feed::Text(Some(text)) => self.fed(text, depth),
            _ => self.unknown(format!("a shell runs whatever it is fed: {}", show(fields))),
        }
        if let Some(at) = fields.iter().position(|field| field.text == "--") {
            self.run(fields.skip(at + 1), feed, depth + 1);
        } else if name == "runuser" {
            self.run(fields.skip(carried(fields, &RUNUSER).at), feed, depth + 1);
        }
    }

    pub(super) fn ssh(&mut self, fields: &Tail, feed: &Feed, depth: usize) {
        let at = carried(fields, &SSH).at;
        let command = fields.skip(at);
        self.guess_run("ssh", &fields.head(at), &Feed::Nothing, depth + 1);
        let place = self.place.clone();
        self.place.elsewhere = true;
        if !command.is_empty() {
            self.text(&command, "ssh", depth);
        } else if let Feed::Text(Some(text)) = feed {
            self.fed(text, depth);
        }
        self.place = place;
    }

    /// A command in a container, whose folders say nothing about those here, but for those that it is lent.
    pub(super) fn container(&mut self, fields: &Tail, feed: &Feed, depth: usize) {
        let is_verb = |arg: &Field| matches!(arg.text.as_str(), "exec" | "run" | "shell" | "enter");
        let Some(verb) = fields.iter().skip(1).position(is_verb) else { return };
        let after = fields.skip(verb + 1);
        let dashes = after.iter().position(|arg| arg.text == "--");
        let CarriedCommand { at, known } =
            dashes.map_or_else(|| carried(&after, &CONTAINER), |at| CarriedCommand { at: at + 1, known: true });
        let place = self.place.clone();
        (self.place.lost, self.place.elsewhere) = (true, true);
        let lent = after.iter().enumerate().filter_map(|(at, arg)| mount(&arg.text, after.get(at + 1)));
        let home = place.home.as_deref();
        self.place.mounts.extend(lent.map(|(there, here)| (there, path::spelled(&here, home))));
        self.run(after.skip(at), feed, depth + 1);
        self.place = place;
        // Options that are not known may stand before the image.
        let guessed = if known { verb + 1 + at } else { fields.len() };
        self.guess_run("docker", &fields.head(guessed), feed, depth + 1);
    }
}

/// Whether a shell reads its text and runs nothing: `-n`, with no option that could take this back, as `+n` does.
fn only_checks(fields: &Tail) -> bool {
    let mut checks = false;
    let mut words = fields.iter().skip(1);
    while let Some(field) = words.next() {
        let Some(text) = field.known() else {
            // It may be the name of a file, or an option whose text stands behind it.
            return checks && words.all(|later| !later.text.starts_with(['-', '+']));
        };
        let Some(letters) = text.strip_prefix('-') else { return checks && !text.starts_with('+') };
        if letters.is_empty() || !letters.bytes().all(|letter| b"cenuvx".contains(&letter)) {
            return false;
        }
        checks |= letters.contains('n');
    }
    checks
}

/// A folder that a container is lent: its name in the container, and its name here.
fn mount(option: &str, value: Option<&Field>) -> Option<(String, String)> {
    let value = match option.split_once('=') {
        Some(("--volume" | "--mount", value)) => value,
        None if matches!(option, "-v" | "--volume" | "--mount") => value?.text.as_str(),
        _ => {
            // `-itv /:/x`, `-v=/:/x`
            let letters = option.strip_prefix('-')?.trim_start_matches(['d', 'i', 't', 'P', 'q']);
            match letters.strip_prefix('v')?.trim_start_matches('=') {
                "" => value?.text.as_str(),
                attached => attached,
            }
        }
    };
    if value.contains('=') {
        let named = |wanted: &[&str]| {
            let pairs = value.split(',').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| wanted.contains(name)).map(|(_, value)| value.to_owned())
        };
        return Some((named(&["target", "dst", "destination"])?, named(&["source", "src"])?));
    }
    let mut parts = value.split(':');
    let (here, there) = (parts.next()?, parts.next()?);
    here.starts_with(['/', '.', '~']).then(|| (there.to_owned(), here.to_owned()))
}

/// The rest of a line behind so many fields.
fn after_fields(line: &str, count: usize) -> Option<&str> {
    let mut rest = line.trim_start();
    for _ in 0..count {
        rest = rest.split_once([' ', '\t'])?.1.trim_start();
    }
    (!rest.is_empty()).then_some(rest)
}
