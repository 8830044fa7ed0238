//! The table of commands whose arguments end in another command, and where that one begins.

use crate::{field::Field, names::Names, text};

/// A command whose arguments end in another command.
pub(super) struct Carrier {
    name: &'static str,
    /// Its one-letter options, as `getopt` takes them: with a colon behind those that have a value, with two behind those
    /// that have it only in the same word.
    letters: &'static str,
    /// Its long options, those that have a value with an equal sign.
    long: &'static [&'static str],
    /// Arguments of its own before the command.
    own: usize,
}

const fn carrier(name: &'static str, letters: &'static str, long: &'static [&'static str], own: usize) -> Carrier {
    Carrier { name, letters, long, own }
}

/// Options that are a value in one version and none in another are left out: what is not known is guessed at.
#[rustfmt::skip]
const CARRIERS: &[Carrier] = &[
    carrier("builtin", "", &[], 0),
    carrier("bunx", "p:", &["bun", "package=", "silent", "verbose"], 0),
    carrier("busybox", "", &[], 0),
    carrier("caffeinate", "dimsut:w:", &[], 0),
    carrier("chronic", "ev", &[], 0),
    carrier("chroot", "", &["groups=", "skip-chdir", "userspec="], 1),
    carrier("chrt", "abfimoprvRD:P:T:", &["batch", "fifo", "idle", "other", "reset-on-fork", "rr", "verbose"], 1),
    carrier("dbus-run-session", "", &["config-file=", "dbus-daemon="], 0),
    carrier("doas", "Lnsa:C:u:", &[], 0),
    carrier("exec", "cla:", &[], 0),
    carrier("fakeroot", "b:i:l:s:uv", &["unknown-is-real"], 0),
    carrier("firejail", "", &["net=", "noprofile", "private", "quiet"], 0),
    carrier("gtimeout", "fpvk:s:", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
    carrier("ionice", "tc:n:p:P:u:", &["class=", "classdata=", "ignore"], 0),
    carrier("ltrace", "cCfirStTa:A:D:e:F:l:n:o:p:s:u:x:", &["output="], 0),
    carrier("nice", "0123456789n:", &["adjustment="], 0),
    carrier("nohup", "", &[], 0),
    carrier("npx", "cqyp:", &["call", "no", "no-install", "package=", "quiet", "yes"], 0),
    carrier("nsenter", "aeFZC::i::m::n::p::r::T::u::U::w::G:S:t:", &["target="], 0),
    carrier("pkexec", "", &["disable-internal-agent", "keep-cwd", "user="], 0),
    carrier("prlimit", "c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::", &[], 0),
    carrier("proot", "0b:k:q:r:R:S:w:", &[], 0),
    carrier("run0", "D:g:u:", &["chdir=", "group=", "nice=", "setenv=", "unit=", "user="], 0),
    carrier("setarch", "", &[], 1),
    carrier("setsid", "cfw", &["ctty", "fork", "wait"], 0),
    carrier("stdbuf", "e:i:o:", &["error=", "input=", "output="], 0),
    carrier("strace", "cCdDfFhiknqrtTvVwxyYzZa:b:e:E:I:o:O:p:P:s:S:u:X:", &["follow-forks", "output=", "trace="], 0),
    carrier("sudo", "ABbEeHiKklNnPSsVvC:D:g:h:p:R:r:t:T:u:U:",
        &["askpass", "background", "chdir=", "chroot=", "close-from=", "command-timeout=", "group=", "host=", "login",
          "non-interactive", "preserve-env", "preserve-groups", "prompt=", "set-home", "shell", "stdin", "user="], 0),
    carrier("systemd-inhibit", "", &["mode=", "what=", "who=", "why="], 0),
    carrier("systemd-run", "dGPqrStE:H:M:p:u:",
        &["collect", "description=", "gid=", "nice=", "no-block", "pipe", "property=", "pty", "quiet", "same-dir",
          "scope", "setenv=", "shell", "slice=", "system", "uid=", "unit=", "user", "wait", "working-directory="], 0),
    carrier("taskset", "ac", &["all-tasks", "cpu-list"], 1),
    carrier("time", "apqvVf:o:", &["append", "format=", "output=", "portability", "quiet", "verbose"], 0),
    carrier("timeout", "fpvk:s:", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
    carrier("toybox", "", &[], 0),
    carrier("unbuffer", "p", &[], 0),
    carrier("unshare", "cfrC::i::m::n::p::T::u::U::G:R:S:w:", &["fork", "kill-child", "map-root-user", "mount-proc"], 0),
    carrier("valgrind", "qv", &[], 0),
    carrier("xvfb-run", "ale:f:n:p:s:w:", &["auto-servernum", "error-file=", "server-args=", "server-num="], 0),
];

/// `command`, which may also only ask where a program is.
pub(super) const COMMAND: Carrier = carrier("command", "p", &[], 0);

/// What stands behind the verb of a runner.
pub(super) const RUNNER: Carrier = carrier("", "", &[], 0);

pub(super) const XARGS: Carrier = carrier(
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

pub(super) const PARALLEL: Carrier = carrier(
    "parallel",
    "0kmqtuXa:C:I:j:L:n:N:P:S:",
    &["bar", "joblog=", "jobs=", "keep-order", "results=", "tmpdir="],
    0,
);

pub(super) const WATCH: Carrier = carrier(
    "watch",
    "bcCd::efgprtwxn:q:s:",
    &["beep", "chgexit", "color", "errexit", "exec", "interval=", "no-title", "precise"],
    0,
);

pub(super) const FLOCK: Carrier = carrier(
    "flock",
    "cenosuxFE:w:",
    &["close", "conflict-exit-code=", "exclusive", "no-fork", "nonblock", "shared", "timeout=", "verbose", "wait="],
    1,
);

pub(super) const RUNUSER: Carrier = carrier("runuser", "lmpg:G:s:u:", &["group=", "login", "shell=", "user="], 0);

pub(super) const SSH: Carrier =
    carrier("ssh", "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:", &[], 1);

/// Containers: the image, or the name of one that runs, stands before the command.
#[rustfmt::skip]
pub(super) const CONTAINER: Carrier = carrier("", "diPqtTa:c:e:f:h:l:m:n:p:u:v:w:",
    &["add-host=", "attach=", "cap-add=", "cap-drop=", "cidfile=", "container=", "context=", "cpu-shares=", "cpus=",
      "cpuset-cpus=", "detach", "device=", "dns=", "entrypoint=", "env-file=", "env=", "expose=", "gpus=", "group-add=",
      "hostname=", "index=", "init", "interactive", "ipc=", "kubeconfig=", "label=", "link=", "log-driver=", "memory=",
      "mount=", "name=", "namespace=", "network=", "net=", "no-TTY", "no-deps", "pid=", "pids-limit=", "platform=",
      "privileged", "publish-all", "publish=", "pull=", "quiet", "quiet-pull", "read-only", "remove-orphans", "restart=",
      "rm", "runtime=", "security-opt=", "service-ports", "shm-size=", "stdin", "stop-timeout=", "sysctl=", "tmpfs=",
      "tty", "ulimit=", "user=", "userns=", "volume=", "volumes-from=", "workdir="], 1);

/// Where the command of a carrier begins.
pub(super) struct Carried {
    /// How many words stand before it.
    pub(super) at: usize,
    /// Whether all options before it are known: then none of the words behind them can be the value of one.
    pub(super) known: bool,
}

/// Where the command begins behind a carrier's name, options and own arguments.
pub(super) fn carried(fields: &[Field], carrier: &Carrier) -> Carried {
    let (mut at, mut known, mut own) = (1, true, carrier.own);
    let mut options = true;
    while let Some(field) = fields.get(at) {
        let text = field.text.as_str();
        if options && text.len() > 1 && text.starts_with('-') {
            options = text != "--";
            let words = if options { option_words(carrier, field) } else { Some(1) };
            known &= words.is_some();
            at += words.unwrap_or(1);
        } else if text::is_assignment(text) && matches!(carrier.name, "sudo" | "doas") {
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            break;
        }
    }
    Carried { at: at.min(fields.len()), known }
}

/// How many words an option takes; nothing if it is not known.
fn option_words(carrier: &Carrier, option: &Field) -> Option<usize> {
    if let Some(long) = option.text.strip_prefix("--") {
        let valued = |known: &&str| known.strip_suffix('=') == Some(long);
        return match long.contains('=') {
            true => Some(1),
            false if option.open() => None,
            false if carrier.long.contains(&long) => Some(1),
            false => carrier.long.iter().any(valued).then_some(2),
        };
    }
    let letters = option.text.get(1..)?;
    for (index, letter) in letters.char_indices() {
        let (_, behind) = carrier.letters.split_once(letter).filter(|_| letter != ':')?;
        if behind.starts_with(':') {
            let attached = index + letter.len_utf8() < letters.len() || option.open();
            return Some(if attached || behind.starts_with("::") { 1 } else { 2 });
        }
    }
    (!option.open()).then_some(1)
}

/// Programs with another command behind them: by which tables, each a bit of what [`Names`] says.
const NAMES: Names<128> = with_carriers(
    Names::of(&[
        // Tools with a verb (`run`, `exec`) before the command.
        &["uv", "poetry", "pipenv", "pdm", "bundle", "mise", "rye", "hatch"],
        // Scripts of others stand where their verb does, and have words of their own.
        &["bun", "pnpm", "yarn"],
    ]),
    CARRIER,
);
const RUNNER_ANYWHERE: u16 = 1;
const RUNNER_FIRST: u16 = 1 << 1;
const CARRIER: u16 = 1 << 2;

/// What is known of a program by its name alone.
#[derive(Clone, Copy)]
pub(super) struct CarrierKind(u16);

impl CarrierKind {
    pub(super) fn of(name: &str) -> CarrierKind {
        CarrierKind(NAMES.tables_with(name))
    }

    /// The carrier of this name: a program that runs the command behind its options.
    pub(super) fn carrier(self, name: &str) -> Option<&'static Carrier> {
        if self.0 & CARRIER == 0 {
            return None;
        }
        CARRIERS.binary_search_by_key(&name, |carrier| carrier.name).ok().and_then(|at| CARRIERS.get(at))
    }

    /// Where the verb of a runner stands.
    pub(super) fn verb(self, fields: &[Field]) -> Option<usize> {
        let is_verb = |field: &Field| matches!(field.known(), Some("run" | "exec" | "x" | "dlx"));
        match self.0 {
            RUNNER_ANYWHERE => fields.iter().position(is_verb),
            RUNNER_FIRST => fields.get(1).filter(|verb| is_verb(verb)).map(|_| 1),
            _ => None,
        }
    }
}

/// Whether this is a bundle of one-letter options with this one among them.
pub(super) fn is_cluster(option: &str, letter: char) -> bool {
    option
        .strip_prefix('-')
        .is_some_and(|letters| letters.chars().all(|next| next.is_ascii_alphabetic()) && letters.contains(letter))
}

/// Adds the names of all carriers.
pub(super) const fn with_carriers<const ROOM: usize>(mut names: Names<ROOM>, bit: u16) -> Names<ROOM> {
    let mut carriers = CARRIERS;
    while let Some((carrier, rest)) = carriers.split_first() {
        names = names.with(carrier.name, bit);
        carriers = rest;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_sorted() {
        assert!(CARRIERS.is_sorted_by_key(|carrier| carrier.name));
    }

    #[test]
    fn options_are_read_as_the_wrapper_reads_them() {
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
            let fields: Vec<Field> = line.split(' ').map(Field::literal).collect();
            let carried = carried(&fields, CarrierKind::of(&fields[0].text).carrier(&fields[0].text).unwrap());
            assert_eq!((fields[carried.at].text.as_str(), carried.known), (command, known), "{line}");
        }
    }
}
