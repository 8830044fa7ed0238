//! Tables of known programs. A program outside of these tables may run its arguments and write the files they name.

use crate::{field::Field, names::Names};

/// What a program does with its arguments, apart from files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// Prints, compares, searches or stores them: nothing among them runs.
    Data,
    /// Reads code of its own language in them.
    Code,
    /// May run any of them.
    MayRun,
}

/// What a program does with the files that its arguments name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// Only reads them, apart from what [`crate::writes`] says.
    Known,
    /// May write any of them.
    MayWrite,
}

/// Programs that print, compare, search or show: they run nothing and write nothing that is not an output option.
#[rustfmt::skip]
const READERS: &[&str] = &[
    ":", "[", "[[", "ack", "ag", "apropos", "b2sum", "b3sum", "base32", "base64", "basename", "bat", "batcat", "bc",
    "break", "cal", "cat", "cksum", "clear", "cloc", "cmp", "col", "colordiff", "column", "comm", "continue", "cut",
    "date", "declare", "delta", "df", "diff", "diff3", "difft", "dig", "dir", "dircolors", "dirname", "du", "echo",
    "egrep", "exa", "exit", "expand", "export", "expr", "eza", "factor", "false", "fgrep", "file", "fmt", "fold",
    "free", "getconf", "getent", "getfacl", "getopts", "glow", "grep", "groups", "gstat", "head", "help", "hexdump",
    "hexyl", "host", "hostname", "iconv", "id", "jless", "join", "jq", "last", "ldd", "let",
    "local", "locale", "locate", "logname", "look", "ls", "lsattr", "lsblk", "lscpu", "lsof", "md5", "md5sum", "mdcat",
    "mdfind", "namei", "nl", "nm", "nproc", "numfmt", "objdump", "od", "paste", "pathchk", "pgrep", "pidof", "ping",
    "pr", "printenv", "printf", "ps", "pwd", "read", "readelf", "readlink", "readonly", "realpath", "return", "rev",
    "rg", "seq", "set", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "shellcheck", "shift",
    "shopt", "shuf", "size", "sleep", "sort", "stat", "strings", "sum", "tac", "tail", "test", "tldr", "tokei", "tput",
    "tr", "tree", "true", "tsort", "tty", "type", "typeset", "ulimit", "umask", "uname", "unexpand", "uniq", "unset",
    "uptime", "users", "vdir", "vmstat", "w", "wait", "wc", "whatis", "whence", "where", "whereis", "which", "who",
    "whoami", "xmllint", "xxd", "yamllint", "zcat", "zdiff", "zgrep",
];

/// Programs that show text, and that let people run a command meanwhile.
const PAGERS: &[&str] = &["info", "less", "man", "more", "most", "zless"];

/// Clients of databases: their statements run nothing, but they take commands of their own that do.
const CLIENTS: &[&str] = &["duckdb", "mariadb", "mysql", "psql", "sqlite3"];

/// Programs whose arguments are messages or queries. What they do with files is not known.
#[rustfmt::skip]
const SPEAKERS: &[&str] = &[
    "cowsay", "dialog", "espeak", "figlet", "gh", "glab", "gum", "http", "httpie", "hub", "jira", "linear", "logger",
    "lolcat", "mail", "mailx", "notify-send", "redis-cli", "say", "wall", "whiptail", "xh", "yq", "zenity",
];

/// Programs whose files [`crate::writes`] knows one by one, and whose other arguments are data.
#[rustfmt::skip]
const HANDLED: &[&str] = &[
    "apply_patch", "applypatch", "blkdiscard", "btrfs", "cd", "cfdisk", "chattr", "chdir", "chflags", "chgrp", "chmod",
    "chown", "cp", "cryptsetup", "curl", "dc3dd", "dcfldd", "dd", "del", "del-cli", "deluser", "diskutil", "ditto", "ed", "fdisk",
    "gchmod", "gchown", "gcp", "gdd", "gdisk", "gio", "gln", "gmv", "grm", "halt", "init", "install", "kill",
    "killall", "killall5", "ln", "loginctl", "lvremove", "mdadm", "mkdir", "mke2fs", "mkfifo", "mknod", "mkswap",
    "mount", "mv", "nvme", "ollm", "parted", "patch", "pkill", "popd", "poweroff", "pushd", "pvremove", "rd",
    "reboot", "remove-item", "rimraf", "rm", "rmdir", "setfacl", "sfdisk", "sgdisk", "shred", "shutdown", "sponge", "srm", "systemctl",
    "tee", "telinit", "touch", "trash", "trash-put", "truncate", "umount", "unlink", "unzip", "userdel", "vgremove",
    "wget", "wipe", "wipefs", "xattr", "zfs", "zpool",
];

/// Programs of which the files are known, but which may run other programs.
#[rustfmt::skip]
const CARRYING: &[&str] = &[
    "bsdtar", "fd", "fdfind", "find", "git", "gtar", "nano", "rsync", "scp", "tar",
];

/// Interpreters: their arguments and their input are code, perhaps with a version behind the name.
#[rustfmt::skip]
const LANGUAGES: &[&str] = &[
    "awk", "bun", "cmd", "deno", "ed", "elixir", "emacs", "erl", "ex", "expect", "gawk", "ghc", "groovy", "gsed", "guile",
    "ipython", "irb", "jimsh", "jshell", "julia", "lua", "mawk", "mongosh", "nawk", "node", "nodejs", "nvim", "osascript",
    "perl", "php", "powershell", "pry", "pwsh", "pypy", "python", "r", "rscript", "ruby", "runghc", "scala", "sed", "swift",
    "tclsh", "ts-node", "tsx", "vi", "view", "vim", "wish",
];

/// Languages in which people mostly print and search; the files they name are read, unless they are told otherwise.
#[rustfmt::skip]
const FILTERS: &[&str] = &[
    "awk", "gawk", "gsed", "jq", "mawk", "nawk", "sed", "yq",
];

/// What stands behind the verb of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerbArguments {
    /// Messages and patterns: nothing among them runs.
    Messages,
    /// Names of things, such as packages: none is a program that runs.
    Names,
    /// Commands that it keeps for later.
    Commands,
    /// It is not known.
    Anything,
}

/// Programs with verbs behind which messages and patterns stand.
#[rustfmt::skip]
const MESSAGE_VERBS: &[(&str, &[&str])] = &[
    ("git", &["commit", "tag", "log", "grep", "notes", "stash", "merge", "show", "blame", "shortlog", "diff", "rev-list"]),
    ("hg", &["annotate", "ci", "commit", "grep", "log"]),
    ("jj", &["commit", "desc", "describe", "log"]),
    ("svn", &["ci", "commit", "log"]),
];

/// Programs with verbs behind which names of packages stand.
#[rustfmt::skip]
const NAME_VERBS: &[(&str, &[&str])] = &[
    ("apk", &["add", "del", "info", "search"]),
    ("apt", &["install", "policy", "purge", "remove", "search", "show"]),
    ("apt-get", &["install", "purge", "remove"]),
    ("brew", &["info", "install", "search", "uninstall", "upgrade"]),
    ("dnf", &["info", "install", "remove", "search"]),
    ("yum", &["info", "install", "remove", "search"]),
    ("zypper", &["in", "install", "remove", "search"]),
];

/// Programs that print shell code of their own making, to be read by `eval` or `source`.
#[rustfmt::skip]
const PRINT_THEIR_OWN_CODE: &[&str] = &[
    "argocd", "asdf", "atuin", "brew", "cargo", "chezmoi", "conda", "crictl", "deno", "dircolors", "direnv", "docker",
    "docker-machine", "eksctl", "flux", "fnm", "fzf", "gh", "glab", "goenv", "gpg-agent", "gpgconf", "helm", "hugo",
    "istioctl", "jenv", "just", "k3d", "k9s", "keychain", "kind", "kompose", "kubectl", "kustomize", "lesspipe",
    "luarocks", "mamba", "micromamba", "minikube", "mise", "nerdctl", "nodenv", "npm", "oc", "op", "opam", "pip",
    "pipx", "pnpm", "podman", "poetry", "pyenv", "rbenv", "rclone", "register-python-argcomplete", "resize", "rtx",
    "rustup", "ssh-agent", "starship", "stern", "task", "terraform", "thefuck", "tset", "uv", "vault", "velero",
    "volta", "zoxide",
];

/// Stands for the user, under any name.
pub(crate) const SELF: &str = "$USER";

/// Variables that name a program by convention, and the program that it usually is; and those that name the user.
#[rustfmt::skip]
const PROGRAM_VARIABLES: &[(&str, &str)] = &[
    ("CC", "cc"), ("CXX", "c++"), ("CPP", "cpp"), ("FC", "gfortran"), ("LD", "ld"), ("AR", "ar"), ("AS", "as"),
    ("NM", "nm"), ("RANLIB", "ranlib"), ("STRIP", "strip"), ("OBJCOPY", "objcopy"), ("OBJDUMP", "objdump"),
    ("MAKE", "make"), ("CMAKE", "cmake"), ("NINJA", "ninja"), ("GO", "go"), ("RUSTC", "rustc"), ("CARGO", "cargo"),
    ("PYTHON", "python3"), ("PYTHON3", "python3"), ("PYTHON_BIN", "python3"), ("PIP", "pip"), ("NODE", "node"),
    ("NPM", "npm"), ("PERL", "perl"), ("RUBY", "ruby"), ("JAVA", "java"), ("JAVAC", "javac"), ("EDITOR", "vi"),
    ("VISUAL", "vi"), ("GIT_EDITOR", "vi"), ("PAGER", "less"), ("MANPAGER", "less"), ("BROWSER", "xdg-open"),
    ("RANDOM", "0"), ("SECONDS", "0"), ("BASHPID", "0"), ("EPOCHSECONDS", "0"), ("USER", SELF), ("LOGNAME", SELF), ("UID", SELF), ("EUID", SELF), ("SHELL", "bash"), ("BASH", "bash"), ("DOCKER", "docker"), ("KUBECTL", "kubectl"), ("GIT", "git"),
];

/// Variables that name something precious, though nothing in a script sets them.
#[rustfmt::skip]
const PRECIOUS_VARIABLES: &[&str] = &[
    "BASH_ARGV", "BASH_ARGV0", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_REMATCH", "BASH_SOURCE", "CDPATH",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPROC", "DIRSTACK", "FUNCNAME", "GIT_DIR", "GIT_WORK_TREE", "GNUPGHOME",
    "HOMEDRIVE", "HOMEPATH", "MAPFILE", "OLDPWD", "OLLM_HOME", "OPTARG", "PATH", "PIPESTATUS", "REPLY",
    "SSH_AUTH_SOCK", "SUDO_HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "_",
];

/// Programs that print plain words, without a slash: something that stands for one.
const PRINT_A_WORD: &[(&str, &str)] = &[
    ("date", "0"),
    ("nproc", "0"),
    ("uname", "0"),
    ("hostname", "0"),
    ("arch", "0"),
    ("whoami", SELF),
    ("id", SELF),
    ("logname", SELF),
    ("seq", "0"),
    ("pidof", FIRST_PROCESS),
    ("pgrep", FIRST_PROCESS),
];

/// The number of the process that starts all others.
const FIRST_PROCESS: &str = "1";

/// Names of the program that runs as the first process.
const FIRST_PROGRAMS: &[&str] = &["init", "launchd", "systemd"];

/// The tables of programs, each a bit of what [`Names`] says of one.
const PROGRAMS: Names<1024> =
    Names::of(&[READERS, PAGERS, CLIENTS, SPEAKERS, HANDLED, CARRYING, LANGUAGES, FILTERS, PRINT_THEIR_OWN_CODE]);
const READER: u16 = 1;
const PAGER: u16 = 1 << 1;
const CLIENT: u16 = 1 << 2;
const SPEAKER: u16 = 1 << 3;
const HANDLER: u16 = 1 << 4;
const CARRIES: u16 = 1 << 5;
const LANGUAGE: u16 = 1 << 6;
const FILTER: u16 = 1 << 7;
const PRINTS_ITS_OWN_CODE: u16 = 1 << 8;

/// Whether a sorted table has this name.
pub(crate) fn is_in(table: &[&str], name: &str) -> bool {
    table.binary_search(&name).is_ok()
}

/// What is known of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) arguments: Arguments,
    pub(crate) files: Files,
    /// Whether neither its arguments nor its files become anything else.
    pub(crate) only_reads: bool,
}

impl Program {
    /// What is known of the program with this name.
    pub(crate) fn of(name: &str) -> Program {
        let tables = PROGRAMS.tables_with(name);
        let is = |table: u16| tables & table != 0;
        if is(READER) {
            return Program { arguments: Arguments::Data, files: Files::Known, only_reads: true };
        }
        let arguments = if is(LANGUAGE | CLIENT) || is_numbered_language(name) {
            Arguments::Code
        } else if is(HANDLER | SPEAKER) {
            Arguments::Data
        } else {
            Arguments::MayRun
        };
        let files = if is(PAGER | FILTER | HANDLER | CARRIES) { Files::Known } else { Files::MayWrite };
        Program { arguments, files, only_reads: is(PAGER | FILTER) }
    }
}

impl Program {
    /// What is known of the program with this name at this path: one that no system installed may be another.
    pub(crate) fn at(path: &str, name: &str) -> Program {
        let known = Program::of(name);
        let folder = path.rsplit_once('/').map(|(folder, _)| folder.rsplit('/').next().unwrap_or_default());
        let is_installed = folder.is_none_or(|folder| matches!(folder, "bin" | "sbin" | ".bin"));
        if known.only_reads && !is_installed { Program::of("") } else { known }
    }
}

/// Where the verb of a program stands among its arguments: the first that is neither an option nor the value of one.
pub(crate) fn verb(name: &str, args: &[Field]) -> Option<usize> {
    const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"];
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.text.starts_with('-')) {
        at += if name == "git" && VALUED.contains(&arg.text.as_str()) { 2 } else { 1 };
    }
    (at < args.len()).then_some(at)
}

/// What stands behind a verb of a program.
pub(crate) fn behind_verb(name: &str, verb: &str) -> VerbArguments {
    let has = |table: &[(&str, &[&str])]| table.iter().any(|(known, verbs)| *known == name && verbs.contains(&verb));
    if matches!((name, verb), ("gh" | "glab", "alias")) {
        VerbArguments::Commands
    } else if has(MESSAGE_VERBS) {
        VerbArguments::Messages
    } else if has(NAME_VERBS) {
        VerbArguments::Names
    } else {
        VerbArguments::Anything
    }
}

/// Whether this is an interpreter with a version behind its name.
fn is_numbered_language(name: &str) -> bool {
    let stem = ollm_shell::program_stem(name);
    stem.len() < name.len() && PROGRAMS.tables_with(stem) & LANGUAGE != 0
}

/// Whether this is a client of a database.
pub(crate) fn is_client(name: &str) -> bool {
    PROGRAMS.tables_with(name) & CLIENT != 0
}

/// Whether an interpreter runs what it finds on its standard input, as a shell does.
pub(crate) fn runs_its_input(name: &str) -> bool {
    matches!(
        ollm_shell::program_stem(name),
        "bun"
            | "deno"
            | "jimsh"
            | "julia"
            | "lua"
            | "node"
            | "nodejs"
            | "perl"
            | "php"
            | "python"
            | "pypy"
            | "ruby"
            | "tclsh"
            | "wish"
    )
}

/// Whether an interpreter mostly prints and searches.
pub(crate) fn is_filter(name: &str) -> bool {
    PROGRAMS.tables_with(name) & FILTER != 0
}

/// Whether a program prints shell code that is its own, not what a file or a server says.
pub(crate) fn prints_its_own_code(name: &str) -> bool {
    PROGRAMS.tables_with(name) & PRINTS_ITS_OWN_CODE != 0
}

/// Whether a program prints one plain word, unless it is told to print others.
pub(crate) fn prints_a_word(name: &str) -> bool {
    PRINT_A_WORD.iter().any(|(known, _)| *known == name)
}

/// What stands for the one plain word that a program prints: nothing if these arguments may be part of it.
pub(crate) fn printed_word(name: &str, args: &[&str]) -> Option<&'static str> {
    let is_number = |arg: &&str| arg.bytes().all(|byte| byte.is_ascii_digit() || b"-.w".contains(&byte));
    let plain = match name {
        "seq" => args.iter().all(is_number),
        "date" => args.iter().all(|arg| arg.strip_prefix('+').is_none_or(is_plain_format)),
        "pgrep" | "pidof" => args.iter().any(|name| is_first_program(name)),
        _ => true,
    };
    let word = PRINT_A_WORD.iter().find(|(known, _)| *known == name).map(|(_, word)| *word);
    word.filter(|_| plain && !args.iter().any(|arg| arg.contains('/')))
}

/// Whether this is the program of the first process, perhaps as a pattern.
pub(crate) fn is_first_program(name: &str) -> bool {
    FIRST_PROGRAMS.contains(&name.trim_matches(['^', '$']))
}

/// Whether a format of `date` has no words of its own: `%F`, `%Y-%m-%dT%H:%M:%SZ`.
fn is_plain_format(format: &str) -> bool {
    let mut rest = format.chars();
    while let Some(next) = rest.next() {
        let plain = match next {
            '%' => rest.by_ref().find(|next| next.is_ascii_alphabetic() || *next == '%').is_some(),
            other => matches!(other, 'T' | 'Z') || !(other.is_alphabetic() || other.is_whitespace()),
        };
        if !plain {
            return false;
        }
    }
    true
}

/// What a variable holds by convention.
pub(crate) fn by_convention(variable: &str) -> Option<&'static str> {
    PROGRAM_VARIABLES.iter().find(|(name, _)| *name == variable).map(|(_, program)| *program)
}

/// Whether a variable that nothing sets may still name something precious.
pub(crate) fn is_precious_variable(name: &str) -> bool {
    is_in(PRECIOUS_VARIABLES, name) || name.starts_with("BASH_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        let tables = [READERS, PAGERS, CLIENTS, SPEAKERS, HANDLED, CARRYING, LANGUAGES, FILTERS, PRINT_THEIR_OWN_CODE];
        let all = tables.iter().chain([&PRECIOUS_VARIABLES]);
        let wrong: Vec<_> = all.filter(|table| !table.is_sorted()).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
