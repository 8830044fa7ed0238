//! Commands that run other commands: what is left when their own arguments are taken away.

use crate::{field::Field, field::Fields, path, text};

use super::{Deed, Feed, Run, Walker};

/// A command whose arguments end in another command.
struct Carrier {
    name: &'static str,
    /// Options that take the next argument as their value.
    valued: &'static [&'static str],
    /// Arguments of its own before the command.
    own: usize,
}

const fn carrier(name: &'static str, valued: &'static [&'static str], own: usize) -> Carrier {
    Carrier { name, valued, own }
}

const CARRIERS: &[Carrier] = &[
    carrier(
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group", "--chdir", "--host"],
        0,
    ),
    carrier("doas", &["-u", "-C"], 0),
    carrier("pkexec", &["--user"], 0),
    carrier("run0", &["-u", "--user"], 0),
    carrier("nohup", &[], 0),
    carrier("nice", &["-n", "--adjustment"], 0),
    carrier("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    carrier("time", &["-f", "-o", "--format", "--output"], 0),
    carrier("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    carrier("gtimeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    carrier("exec", &["-a"], 0),
    carrier("builtin", &[], 0),
    carrier("setsid", &[], 0),
    carrier("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    carrier("unbuffer", &[], 0),
    carrier("chrt", &[], 1),
    carrier("taskset", &[], 1),
    carrier("setarch", &[], 1),
    carrier("chroot", &["--userspec", "--groups"], 1),
    carrier("unshare", &["-S", "-G", "-R", "-w"], 0),
    carrier("nsenter", &["-t", "--target", "-S", "-G"], 0),
    carrier("strace", &["-o", "-e", "-s", "-p", "-E", "-P"], 0),
    carrier("ltrace", &["-o", "-e", "-s"], 0),
    carrier("valgrind", &[], 0),
    carrier("fakeroot", &[], 0),
    carrier("proot", &["-r", "-b", "-w"], 0),
    carrier("firejail", &[], 0),
    carrier("systemd-run", &["-u", "-p", "--unit", "--property"], 0),
    carrier("systemd-inhibit", &[], 0),
    carrier("dbus-run-session", &[], 0),
    carrier("xvfb-run", &["-n", "-s", "-f"], 0),
    carrier("caffeinate", &["-t", "-w"], 0),
    carrier("prlimit", &[], 0),
    carrier("busybox", &[], 0),
    carrier("toybox", &[], 0),
    carrier("npx", &["-p", "--package"], 0),
    carrier("bunx", &[], 0),
];

/// Tools with a verb (`run`, `exec`) before the command.
const RUNNERS: &[&str] = &["uv", "poetry", "pipenv", "pdm", "bundle", "mise", "rye", "hatch"];

const XARGS: Carrier = carrier(
    "xargs",
    &[
        "-I",
        "-n",
        "-P",
        "-L",
        "-d",
        "-a",
        "-E",
        "-s",
        "-J",
        "-R",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--arg-file",
    ],
    0,
);
const SSH: Carrier = carrier(
    "ssh",
    &["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-E", "-b", "-c", "-e", "-m", "-S", "-W", "-w", "-B", "-Q"],
    1,
);
const CONTAINER: Carrier = carrier(
    "",
    &[
        "-u",
        "--user",
        "-w",
        "--workdir",
        "-e",
        "--env",
        "-v",
        "--volume",
        "--mount",
        "--name",
        "-p",
        "--publish",
        "--network",
        "--entrypoint",
        "-n",
        "--namespace",
        "-c",
        "--container",
        "--env-file",
        "-h",
        "--hostname",
        "--platform",
        "-l",
        "--label",
        "--cpus",
        "-m",
        "--memory",
        "--add-host",
        "--gpus",
    ],
    1,
);

/// Programs that read a script from their arguments or their input.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh"];

/// How many carriers may stand before one another.
const MOST_CARRIERS: usize = 32;

/// How deep commands may run others; the parser has the same bound.
const MOST_LEVELS: usize = 200;

impl Walker {
    /// One expanded command, down to the program that does the work.
    pub(super) fn run(&mut self, mut fields: Fields, feed: &Feed, depth: usize) {
        self.input = feed.clone();
        if depth > MOST_LEVELS {
            return self.unclear("too many commands within commands");
        }
        for _ in 0..MOST_CARRIERS {
            if !self.affords(fields.len()) {
                return;
            }
            let Some(first) = fields.first() else { return };
            let Some(word) = first.known() else {
                return self.unclear(format!("which program runs is not written out: {}", show(&fields)));
            };
            let name = path::base_name(word);
            if let Some(carrier) = CARRIERS.iter().find(|carrier| carrier.name == name) {
                fields = carried(&fields, carrier);
            } else if name == "command" {
                if looks_up(&fields) {
                    return;
                }
                fields = carried(&fields, &carrier("command", &[], 0));
            } else if name == "env" {
                let Some(rest) = self.env(&fields, depth) else { return };
                fields = rest;
            } else if let Some(at) = verb_of_runner(&name, &fields) {
                fields = carried(fields.get(at..).unwrap_or_default(), &carrier("", &[], 0));
            } else {
                return self.dispatch(name, fields, feed, depth);
            }
        }
        self.unclear("too many commands within commands");
    }

    /// Commands that are neither plain programs nor plain prefixes.
    fn dispatch(&mut self, name: String, fields: Fields, feed: &Feed, depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        match name.as_str() {
            "eval" => self.text(args, "eval", depth),
            "trap" | "alias" => self.stored(&name, args, depth),
            "watch" => self.text(&carried(&fields, &carrier("", &["-n", "--interval"], 0)), "watch", depth),
            "parallel" => self.parallel(&fields, depth),
            "su" | "runuser" | "script" | "sg" | "flock" | "nix-shell" => self.text_option(&name, &fields, feed, depth),
            "xargs" => self.xargs(&fields, depth),
            "find" | "fd" | "fdfind" => {
                self.find(&name, &fields, depth);
                self.work(name, fields, feed);
            }
            "cd" | "chdir" | "pushd" | "popd" => self.change_folder(&name, args),
            "." | "source" if args.first().is_some_and(|file| is_stream(file, feed)) => {
                self.unclear(format!("a script comes from somewhere else: {}", show(&fields)));
            }
            "ssh" => {
                self.ssh(&fields, feed, depth);
                self.work(name, fields, feed);
            }
            "docker" | "podman" | "nerdctl" | "kubectl" | "lxc" | "machinectl" | "distrobox" | "toolbox" => {
                self.container(args, feed, depth);
                self.work(name, fields, feed);
            }
            shell if SHELLS.contains(&shell) => self.shell(&fields, feed, depth),
            _ => self.work(name, fields, feed),
        }
    }

    /// The program that does the work.
    fn work(&mut self, name: String, fields: Fields, feed: &Feed) {
        let input = match feed {
            Feed::Text(text) => text.clone(),
            Feed::Nothing | Feed::Pipe => None,
        };
        let place = self.place.clone();
        self.push(Deed::Run(Run { name, args: fields.into_iter().skip(1).collect(), place, input }));
    }

    /// Arguments that together are shell text.
    fn text(&mut self, args: &[Field], carrier: &str, depth: usize) {
        let known: Option<Vec<&str>> = args.iter().map(Field::known).collect();
        match known {
            Some(words) => self.script(&words.join(" "), depth + 1),
            None => self.unclear(format!("{carrier} runs text that is not written out: {}", show(args))),
        }
    }

    /// Text kept for later: a trap, an alias.
    fn stored(&mut self, name: &str, args: &[Field], depth: usize) {
        for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
            let Some(text) = arg.known() else {
                return self.unclear(format!("{name} keeps text that is not written out: {}", show(args)));
            };
            match (name, text.split_once('=')) {
                ("alias", Some((_, value))) => self.script(value, depth + 1),
                ("alias", None) => {}
                _ => return self.script(text, depth + 1),
            }
        }
    }

    /// `env`: its own options, its assignments, then the command.
    fn env(&mut self, fields: &[Field], depth: usize) -> Option<Fields> {
        let mut rest = fields.iter().skip(1);
        while let Some(field) = rest.next() {
            let text = field.text.as_str();
            let assigns = !text.starts_with('-') && text.contains('=');
            if field.known().is_none() && !assigns {
                self.unclear(format!("which program runs is not written out: {}", show(fields)));
                return None;
            }
            if let Some(inner) = split_string(text) {
                let inner = (!inner.is_empty()).then(|| Field::literal(inner));
                let text: Fields = inner.into_iter().chain(rest.cloned()).collect();
                self.text(&text, "env -S", depth);
                return None;
            }
            match text {
                "-u" | "--unset" => drop(rest.next()),
                "-C" | "--chdir" => rest.next().into_iter().for_each(|folder| self.place.change(folder)),
                _ if text.starts_with('-') || assigns => {}
                _ => return Some(std::iter::once(field).chain(rest).cloned().collect()),
            }
        }
        None
    }

    fn shell(&mut self, fields: &[Field], feed: &Feed, depth: usize) {
        let mut rest = fields.iter().enumerate().skip(1);
        let mut streamed = false;
        while let Some((at, field)) = rest.next() {
            match field.known() {
                None => return self.unclear(format!("what the shell runs is not written out: {}", show(fields))),
                Some("-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") => drop(rest.next()),
                Some("-") => break,
                Some(option) if option == "--command" || is_cluster(option, 'c') => {
                    return self.shell_text(fields, at + 1, depth);
                }
                Some(option) if is_cluster(option, 's') => break,
                Some(option) if option.starts_with(['-', '+']) => {}
                Some(_) if is_stream(field, feed) => {
                    streamed = field.text.starts_with("/dev/fd/");
                    break;
                }
                // A script file: what it does is not in the command.
                Some(file) => {
                    return self.work(path::base_name(file), fields.get(at..).unwrap_or_default().to_vec(), feed);
                }
            }
        }
        match feed {
            Feed::Text(Some(text)) => self.fed(text, depth),
            Feed::Nothing if !streamed => {}
            _ => self.unclear(format!("a shell runs whatever it is fed: {}", show(fields))),
        }
    }

    /// A script that is itself the standard input.
    fn fed(&mut self, text: &str, depth: usize) {
        self.input = Feed::Nothing;
        self.script(text, depth + 1);
    }

    /// The text behind `-c`; more options may stand between the two.
    fn shell_text(&mut self, fields: &[Field], from: usize, depth: usize) {
        let is_option = |field: &&Field| field.known().is_some_and(|text| text.starts_with(['-', '+']));
        let Some(text) = fields.iter().skip(from).find(|field| !is_option(field)) else { return };
        match text.known() {
            Some(text) => self.script(text, depth + 1),
            None => self.unclear(format!("what the shell runs is not written out: {}", show(fields))),
        }
    }

    /// Programs that take shell text behind an option, and sometimes a command instead.
    fn text_option(&mut self, name: &str, fields: &[Field], feed: &Feed, depth: usize) {
        let flags: &[&str] = if name == "nix-shell" { &["--run", "--command"] } else { &["-c", "--command"] };
        let is_flag = |field: &Field| field.known().is_some_and(|text| flags.contains(&text) || is_cluster(text, 'c'));
        if let Some(text) = fields.iter().position(is_flag).and_then(|at| fields.get(at + 1)) {
            return self.text(std::slice::from_ref(text), name, depth);
        }
        if let Some(text) = fields.iter().find_map(|field| field.text.strip_prefix("--command=")) {
            return self.text(&[Field::literal(text)], name, depth);
        }
        if name == "flock" {
            return self.run(carried(fields, &carrier("", &["-w", "-E"], 1)), feed, depth + 1);
        }
        match feed {
            Feed::Nothing => {}
            Feed::Text(Some(text)) => self.fed(text, depth),
            _ => self.unclear(format!("a shell runs whatever it is fed: {}", show(fields))),
        }
        if let Some(at) = fields.iter().position(|field| field.text == "--") {
            self.run(fields.iter().skip(at + 1).cloned().collect(), feed, depth + 1);
        } else if name == "runuser" {
            self.run(carried(fields, &carrier("", &["-u", "-g", "-G"], 0)), feed, depth + 1);
        }
    }

    /// `xargs`: the command gets more arguments, and nobody knows which.
    fn xargs(&mut self, fields: &[Field], depth: usize) {
        let mut command = carried(fields, &XARGS);
        if command.is_empty() {
            return;
        }
        match replaced_mark(fields) {
            Some(mark) => command.iter_mut().for_each(|field| fill(field, &mark)),
            None => command.push(Field::unknown()),
        }
        self.run(command, &Feed::Nothing, depth + 1);
    }

    fn parallel(&mut self, fields: &[Field], depth: usize) {
        let rest = carried(fields, &carrier("", &["-j", "-a", "--jobs", "-I", "-n"], 0));
        let mut command: Fields = rest.into_iter().take_while(|field| !field.text.starts_with(":::")).collect();
        if command.is_empty() {
            return self.unclear(format!("which program runs is not written out: {}", show(fields)));
        }
        for field in &mut command {
            fill(field, "{}");
        }
        command.push(Field::unknown());
        self.run(command, &Feed::Nothing, depth + 1);
    }

    /// `find`: the commands it runs on what it finds below its roots.
    fn find(&mut self, name: &str, fields: &[Field], depth: usize) {
        let args = fields.get(1..).unwrap_or_default();
        let filtered = name != "find" || is_filtered(args);
        let mut rest = args.iter();
        while let Some(field) = rest.next() {
            if !matches!(field.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec") {
                continue;
            }
            let command: Fields =
                rest.by_ref().take_while(|field| !matches!(field.text.as_str(), ";" | "+")).cloned().collect();
            for root in find_roots(args) {
                let mut command = command.clone();
                for field in &mut command {
                    if field.text == "{}" {
                        *field = found_below(&root, filtered);
                    } else {
                        fill(field, "{}");
                    }
                }
                self.run(command, &Feed::Nothing, depth + 1);
            }
        }
    }

    fn change_folder(&mut self, name: &str, args: &[Field]) {
        let target = args.iter().find(|arg| arg.open() || arg.text == "-" || !arg.text.starts_with('-'));
        match (name, target, self.place.home.clone()) {
            ("cd" | "chdir", None, Some(home)) => {
                self.place.folders = vec![home];
                self.place.lost = false;
            }
            ("popd", ..) | (_, None, _) => self.place.lost = true,
            (_, Some(target), _) if target.text == "-" => self.place.lost = true,
            (_, Some(target), _) => self.place.change(target),
        }
    }

    fn ssh(&mut self, fields: &[Field], feed: &Feed, depth: usize) {
        let command = carried(fields, &SSH);
        let place = self.place.clone();
        if !command.is_empty() {
            self.text(&command, "ssh", depth);
        } else if let Feed::Text(Some(text)) = feed {
            self.fed(text, depth);
        }
        self.place = place;
    }

    /// A command in a container, whose folders say nothing about those here.
    fn container(&mut self, args: &[Field], feed: &Feed, depth: usize) {
        let verb = args.iter().position(|arg| matches!(arg.text.as_str(), "exec" | "run" | "shell" | "enter"));
        let Some(after) = verb.and_then(|at| args.get(at..)) else { return };
        let command = match after.iter().position(|arg| arg.text == "--") {
            Some(at) => after.iter().skip(at + 1).cloned().collect(),
            None => carried(after, &CONTAINER),
        };
        let place = self.place.clone();
        self.place.lost = true;
        self.run(command, feed, depth + 1);
        self.place = place;
    }
}

/// The command behind a carrier's name, options and own arguments.
fn carried(fields: &[Field], carrier: &Carrier) -> Fields {
    let mut rest = fields.iter().skip(1).peekable();
    let mut own = carrier.own;
    while let Some(field) = rest.peek() {
        let text = field.text.as_str();
        if text.len() > 1 && text.starts_with('-') {
            let valued = carrier.valued.contains(&text);
            rest.next();
            if valued {
                rest.next();
            }
        } else if is_assignment(text) && matches!(carrier.name, "sudo" | "doas") {
            rest.next();
        } else if own > 0 {
            own -= 1;
            rest.next();
        } else {
            break;
        }
    }
    rest.cloned().collect()
}

fn verb_of_runner(name: &str, fields: &[Field]) -> Option<usize> {
    let is_verb = |field: &Field| matches!(field.known(), Some("run" | "exec" | "x"));
    if RUNNERS.contains(&name) { fields.iter().position(is_verb) } else { None }
}

/// Whether `command` only asks where a program is.
fn looks_up(fields: &[Field]) -> bool {
    let options = fields.iter().skip(1).map(|field| field.text.as_str()).take_while(|text| text.starts_with('-'));
    options.filter(|text| !text.starts_with("--")).any(|text| text.contains(['v', 'V']))
}

/// What `env -S` is given in the same argument; empty if it is the next one.
fn split_string(text: &str) -> Option<&str> {
    if text == "--split-string" {
        return Some("");
    }
    if let Some(inner) = text.strip_prefix("--split-string=") {
        return Some(inner);
    }
    let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (before, inner) = letters.split_once('S')?;
    before.chars().all(|next| matches!(next, 'i' | 'v' | '0')).then_some(inner)
}

/// Whether this is a bundle of one-letter options with this one among them.
fn is_cluster(option: &str, letter: char) -> bool {
    option
        .strip_prefix('-')
        .is_some_and(|letters| letters.chars().all(|next| next.is_ascii_alphabetic()) && letters.contains(letter))
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|next| next == '_' || next.is_ascii_alphanumeric())
    })
}

fn is_stream(file: &Field, feed: &Feed) -> bool {
    file.text.starts_with("/dev/fd/") || (file.text == "/dev/stdin" && !matches!(feed, Feed::Nothing))
}

/// The mark for which `xargs -I` puts its input.
fn replaced_mark(fields: &[Field]) -> Option<String> {
    let mut mark = None;
    for (at, field) in fields.iter().enumerate() {
        match field.text.as_str() {
            "-I" | "-J" => mark = fields.get(at + 1).map(|value| value.text.clone()),
            "-i" | "--replace" => mark = Some("{}".to_owned()),
            text => {
                let attached = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace="));
                mark = attached.map(str::to_owned).or(mark);
            }
        }
    }
    mark.filter(|mark| !mark.is_empty())
}

/// Puts something unknown for a mark.
fn fill(field: &mut Field, mark: &str) {
    let text = field.text.clone();
    if let Some((before, behind)) = text.split_once(mark) {
        before.clone_into(&mut field.text);
        field.tail = Some(behind.to_owned());
    }
}

/// Tests of `find` that keep it from touching everything.
const FILTERS: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-mtime",
    "-mmin",
    "-newer",
    "-size",
    "-empty",
    "-user",
    "-perm",
    "-atime",
    "-ctime",
    "-lname",
    "-links",
    "-inum",
];

/// Whether a `find` looks at names, times or sizes before it acts.
pub(crate) fn is_filtered(args: &[Field]) -> bool {
    args.iter().any(|arg| FILTERS.contains(&arg.text.as_str()))
}

/// The folders `find` starts from.
pub(crate) fn find_roots(args: &[Field]) -> Fields {
    let paths = args.iter().skip_while(|field| matches!(field.text.as_str(), "-H" | "-L" | "-P"));
    let paths = paths.take_while(|field| !field.text.starts_with(['-', '(', '!']));
    let roots: Fields = paths.cloned().collect();
    if roots.is_empty() { vec![Field::literal(".")] } else { roots }
}

/// Something below a root: everything, or nobody knows what.
pub(crate) fn found_below(root: &Field, filtered: bool) -> Field {
    let text = root.text.trim_end_matches('/');
    if root.open() || filtered {
        return Field { text: format!("{text}/"), tail: Some(String::new()), glob: root.glob };
    }
    Field { text: format!("{text}/*"), tail: None, glob: true }
}

fn show(fields: &[Field]) -> String {
    let shown: Vec<String> = fields.iter().map(Field::shown).collect();
    text::excerpt(&shown.join(" "))
}
