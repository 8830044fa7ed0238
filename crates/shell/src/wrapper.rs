//! Wrappers: programs whose arguments end in another command. This table says where that command begins.
//!
//! Templates, guards and approvals all use this one table.

/// A program whose arguments end in another command.
#[derive(Debug)]
pub struct Wrapper {
    /// Its name.
    pub name: &'static str,
    /// Its one-letter options in the notation of `getopt`: one colon after those with a value, two colons after those
    /// whose value can only be in the same word.
    letters: &'static str,
    /// Its long options; those with a value end in an equal sign.
    long: &'static [&'static str],
    /// How many of its own arguments come before the command.
    pub operands: usize,
}

/// An option of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrapperOption<'a> {
    /// Its letter, or its name without dashes.
    pub name: &'a str,
    /// Its value.
    pub value: OptionValue<'a>,
}

/// The position of the command after a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedCommand {
    /// How many words come before it.
    pub at: usize,
    /// Whether all options before it are known. If not, a word after an unknown option may be that option's value.
    pub known: bool,
}

/// Where the value of an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue<'a> {
    /// It has none.
    None,
    /// In the same word.
    Here(&'a str),
    /// It is the next word.
    Next,
}

impl Wrapper {
    /// A wrapper with these options.
    pub const fn new(
        name: &'static str,
        letters: &'static str,
        long: &'static [&'static str],
        operands: usize,
    ) -> Wrapper {
        Wrapper { name, letters, long, operands }
    }

    /// Reads a word that begins with a dash. Of several letters it returns the last option, because only that one may
    /// have a value. `None` if one of the letters is unknown; `is_open` says that more text may follow in the same
    /// word.
    pub fn option<'a>(&self, word: &'a str, is_open: bool) -> Option<WrapperOption<'a>> {
        if let Some(long) = word.strip_prefix("--") {
            let (written, here) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let known = self.long_option(written);
            let (name, value) = match (known, here) {
                (Some((name, _)), Some(value)) => (name, OptionValue::Here(value)),
                (None, Some(value)) => (written, OptionValue::Here(value)),
                (_, None) if is_open => return None,
                (Some((name, true)), None) => (name, OptionValue::Next),
                (Some((name, false)), None) => (name, OptionValue::None),
                (None, None) => return None,
            };
            return Some(WrapperOption { name, value });
        }
        let letters = word.get(1..)?;
        let mut last = "";
        for (index, letter) in letters.char_indices() {
            let (_, behind) = self.letters.split_once(letter).filter(|_| letter != ':')?;
            let (before, value) = letters.split_at(index + letter.len_utf8());
            last = before.get(index..)?;
            if behind.starts_with(':') {
                let is_here = !value.is_empty() || is_open || behind.starts_with("::");
                let value = if is_here { OptionValue::Here(value) } else { OptionValue::Next };
                return Some(WrapperOption { name: last, value });
            }
        }
        (!is_open).then_some(WrapperOption { name: last, value: OptionValue::None })
    }

    /// The position of the command after the wrapper's name (the first word), its options and its own arguments. `read`
    /// returns the text of a word, and whether more text may follow in it.
    ///
    /// ```
    /// let words = ["timeout", "-k", "5", "10s", "git", "push"];
    /// let timeout = ollm_shell::wrapper::wrapper_named("timeout").ok_or("no wrapper")?;
    /// assert_eq!(timeout.carried(&words, |word| (word, false)).at, 4);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn carried<T>(&self, words: &[T], read: impl Fn(&T) -> (&str, bool)) -> CarriedCommand {
        let (mut at, mut known, mut own, mut options) = (1, true, self.operands, true);
        while let Some((text, is_open)) = words.get(at).map(&read) {
            if options && text.len() > 1 && text.starts_with('-') {
                options = text != "--";
                let option = self.option(text, is_open).filter(|_| options);
                known &= option.is_some() || !options;
                at += if option.is_some_and(|option| option.value == OptionValue::Next) { 2 } else { 1 };
            } else if is_assignment(text) && matches!(self.name, "sudo" | "doas") {
                at += 1;
            } else if own > 0 {
                own -= 1;
                at += 1;
            } else {
                break;
            }
        }
        CarriedCommand { at: at.min(words.len()), known }
    }

    /// The long option with this name, or the only one that begins with it, and whether it has a value.
    fn long_option(&self, written: &str) -> Option<(&'static str, bool)> {
        let named = |known: &&'static str| known.strip_suffix('=').map_or((*known, false), |name| (name, true));
        let mut begun = self.long.iter().map(named).filter(|(name, _)| name.starts_with(written));
        let exact = begun.clone().find(|(name, _)| *name == written);
        exact.or_else(|| begun.next().filter(|_| begun.next().is_none()))
    }
}

/// Whether a word assigns a variable when it follows a wrapper. Wrappers accept more names than a shell does.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|next| next == b'_' || next.is_ascii_alphanumeric())
    })
}

const fn wrapper(name: &'static str, letters: &'static str, long: &'static [&'static str], own: usize) -> Wrapper {
    Wrapper::new(name, letters, long, own)
}

/// Wrappers whose command simply follows their options and operands, sorted by name.
///
/// Options that have a value in one version and none in another are omitted, so they count as unknown.
#[rustfmt::skip]
pub const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", "", &[], 0),
    wrapper("bunx", "p:", &["bun", "package=", "silent", "verbose"], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("caffeinate", "dimsut:w:", &[], 0),
    wrapper("chronic", "ev", &[], 0),
    wrapper("chroot", "", &["groups=", "skip-chdir", "userspec="], 1),
    wrapper("chrt", "abfimoprvRD:P:T:", &["batch", "fifo", "idle", "other", "reset-on-fork", "rr", "verbose"], 1),
    wrapper("dbus-run-session", "", &["config-file=", "dbus-daemon="], 0),
    wrapper("doas", "Lnsa:C:u:", &[], 0),
    wrapper("exec", "cla:", &[], 0),
    wrapper("fakeroot", "b:i:l:s:uv", &["unknown-is-real"], 0),
    wrapper("firejail", "", &["net=", "noprofile", "private", "quiet"], 0),
    wrapper("gtimeout", "fpvk:s:", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
    wrapper("ionice", "tc:n:p:P:u:", &["class=", "classdata=", "ignore"], 0),
    wrapper("ltrace", "cCfirStTa:A:D:e:F:l:n:o:p:s:u:x:", &["output="], 0),
    wrapper("nice", "0123456789n:", &["adjustment="], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("npx", "cqyp:", &["call", "no", "no-install", "package=", "quiet", "yes"], 0),
    wrapper("nsenter", "aeFZC::i::m::n::p::r::T::u::U::w::G:S:t:", &["target="], 0),
    wrapper("pkexec", "", &["disable-internal-agent", "keep-cwd", "user="], 0),
    wrapper("prlimit", "c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::", &[], 0),
    wrapper("proot", "0b:k:q:r:R:S:w:", &[], 0),
    wrapper("run0", "D:g:u:", &["chdir=", "group=", "nice=", "setenv=", "unit=", "user="], 0),
    wrapper("setarch", "", &[], 1),
    wrapper("setsid", "cfw", &["ctty", "fork", "wait"], 0),
    wrapper("stdbuf", "e:i:o:", &["error=", "input=", "output="], 0),
    wrapper("strace", "cCdDfFhiknqrtTvVwxyYzZa:b:e:E:I:o:O:p:P:s:S:u:X:", &["follow-forks", "output=", "trace="], 0),
    wrapper("sudo", "ABbEeHiKklNnPSsVvC:D:g:h:p:R:r:t:T:u:U:",
        &["askpass", "background", "chdir=", "chroot=", "close-from=", "command-timeout=", "group=", "host=", "login",
          "non-interactive", "preserve-env", "preserve-groups", "prompt=", "set-home", "shell", "stdin", "user="], 0),
    wrapper("systemd-inhibit", "", &["mode=", "what=", "who=", "why="], 0),
    wrapper("systemd-run", "dGPqrStE:H:M:p:u:",
        &["collect", "description=", "gid=", "nice=", "no-block", "pipe", "property=", "pty", "quiet", "same-dir",
          "scope", "setenv=", "shell", "slice=", "system", "uid=", "unit=", "user", "wait", "working-directory="], 0),
    wrapper("taskset", "ac", &["all-tasks", "cpu-list"], 1),
    wrapper("time", "apqvVf:o:", &["append", "format=", "output=", "portability", "quiet", "verbose"], 0),
    wrapper("timeout", "fpvk:s:", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
    wrapper("toybox", "", &[], 0),
    wrapper("unbuffer", "p", &[], 0),
    wrapper("unshare", "cfrC::i::m::n::p::T::u::U::G:R:S:w:", &["fork", "kill-child", "map-root-user", "mount-proc"], 0),
    wrapper("uvx", "nqvp:w:", &["from=", "isolated", "offline", "python=", "quiet", "verbose", "with="], 0),
    wrapper("valgrind", "qv", &[], 0),
    wrapper("xvfb-run", "ale:f:n:p:s:w:", &["auto-servernum", "error-file=", "server-args=", "server-num="], 0),
];

/// With other options it only shows where a program is.
pub const COMMAND: Wrapper = wrapper("command", "p", &[], 0);

/// It appends the arguments that it reads to the command.
pub const XARGS: Wrapper = wrapper(
    "xargs",
    "0oprtxe::i::l::a:d:E:I:J:L:n:P:R:s:",
    &[
        "arg-file=",
        "delimiter=",
        "eof",
        "interactive",
        "max-args=",
        "max-chars=",
        "max-lines",
        "max-procs=",
        "no-run-if-empty",
        "null",
        "open-tty",
        "replace",
        "verbose",
    ],
    0,
);

/// As `xargs`, but the command may be shell text.
pub const PARALLEL: Wrapper = wrapper(
    "parallel",
    "0kmqtuXa:C:I:j:L:n:N:P:S:",
    &["bar", "joblog=", "jobs=", "keep-order", "results=", "tmpdir="],
    0,
);

/// The command is shell text.
pub const WATCH: Wrapper = wrapper(
    "watch",
    "bcCd::efgprtwxn:q:s:",
    &["beep", "chgexit", "color", "errexit", "exec", "interval=", "no-title", "precise"],
    0,
);

/// A lock file comes before the command, which may be text after `-c`.
pub const FLOCK: Wrapper = wrapper(
    "flock",
    "cenosuxFE:w:",
    &["close", "conflict-exit-code=", "exclusive", "no-fork", "nonblock", "shared", "timeout=", "verbose", "wait="],
    1,
);

/// The command may be text after `-c`, for the user's shell.
pub const RUNUSER: Wrapper = wrapper("runuser", "lmpg:G:s:u:", &["group=", "login", "shell=", "user="], 0);

/// The words after the host are shell text on the remote machine.
pub const SSH: Wrapper = wrapper("ssh", "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:", &[], 1);

/// Assignments of variables may come before the command.
pub const ENV: Wrapper = wrapper(
    "env",
    "0iva:C:L:P:S:u:U:",
    &[
        "argv0=",
        "block-signal",
        "chdir=",
        "debug",
        "default-signal",
        "ignore-environment",
        "ignore-signal",
        "list-signal-handling",
        "null",
        "split-string=",
        "unset=",
    ],
    0,
);

/// Wrappers that also treat the command in another special way.
const OTHERS: &[Wrapper] = &[COMMAND, ENV, FLOCK, PARALLEL, RUNUSER, SSH, WATCH, XARGS];

/// The wrapper of this name.
pub fn wrapper_named(name: &str) -> Option<&'static Wrapper> {
    let at = WRAPPERS.binary_search_by_key(&name, |wrapper| wrapper.name).ok();
    at.and_then(|at| WRAPPERS.get(at)).or_else(|| OTHERS.iter().find(|wrapper| wrapper.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_is_found_by_its_name() {
        assert!(WRAPPERS.is_sorted_by_key(|wrapper| wrapper.name));
        for wrapper in WRAPPERS.iter().chain(OTHERS) {
            assert_eq!(wrapper_named(wrapper.name).map(|found| found.name), Some(wrapper.name));
        }
        assert!(wrapper_named("ls").is_none());
    }

    #[test]
    fn the_command_begins_behind_options_and_own_arguments() {
        for (line, command, known) in [
            ("sudo -E tool", "tool", true),
            ("sudo -Eu root tool", "tool", true),
            ("sudo -uroot --preserve-env A=b tool", "tool", true),
            ("sudo --user root -- tool", "tool", true),
            ("sudo --odd tool x", "tool", false),
            ("stdbuf -oL -e 0 tool", "tool", true),
            ("ionice -c3 tool", "tool", true),
            ("timeout -k 5 10s tool", "tool", true),
            ("nice -5 tool", "tool", true),
            ("strace -fo log tool", "tool", true),
            ("time -x tool", "tool", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let carried = wrapper_named(words[0]).unwrap().carried(&words, |word| (word, false));
            assert_eq!((words[carried.at], carried.known), (command, known), "{line}");
        }
    }

    #[test]
    fn an_option_says_where_its_value_stands() {
        use OptionValue::{Here, Next, None as Nothing};
        for (name, word, option) in [
            ("sudo", "-E", Some(("E", Nothing))),
            ("sudo", "-Eu", Some(("u", Next))),
            ("sudo", "-uroot", Some(("u", Here("root")))),
            ("sudo", "--user", Some(("user", Next))),
            ("sudo", "--user=root", Some(("user", Here("root")))),
            ("sudo", "--odd", None),
            ("env", "--split=a b", Some(("split-string", Here("a b")))),
            ("env", "--ignore", None),
            ("sudo", "-:", None),
            ("env", "-iC", Some(("C", Next))),
            ("nsenter", "-m", Some(("m", Here("")))),
        ] {
            let read = wrapper_named(name).unwrap().option(word, false);
            assert_eq!(read, option.map(|(name, value)| WrapperOption { name, value }), "{name} {word}");
        }
        assert_eq!(WRAPPERS.first().unwrap().option("-p", true), None, "what follows may be anything");
    }
}
