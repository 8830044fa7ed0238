//! What is known about programs. Whatever is not in these tables may run its arguments and write the files they name.

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
    "[", "[[", "ack", "ag", "apropos", "b2sum", "b3sum", "base32", "base64", "basename", "bat", "batcat", "bc", "cal",
    "cat", "cksum", "clear", "cmp", "cloc", "col", "colordiff", "column", "comm", "cut", "date", "delta", "df", "diff",
    "diff3", "difft", "dig", "dircolors", "dirname", "du", "echo", "egrep", "eza", "exa", "exit", "expand", "expr",
    "factor", "false", "fgrep", "file", "fmt", "fold", "free", "getconf", "getent", "getfacl", "glow", "grep", "groups",
    "gstat", "head", "help", "hexdump", "hostname", "hexyl", "host", "iconv", "id", "info", "jless", "join", "jobs",
    "jq", "last", "ldd", "less", "let", "locale", "locate", "logname", "look", "ls", "lsattr", "lsblk", "lscpu", "lsof",
    "man", "md5", "md5sum", "mdcat", "mdfind", "more", "most", "namei", "nl", "nm", "nproc", "numfmt", "objdump", "od",
    "paste", "pathchk", "pgrep", "pidof", "ping", "pr", "printenv", "printf", "ps", "pwd", "readelf", "readlink",
    "realpath", "return", "rev", "rg", "seq", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum",
    "shuf", "size", "sleep", "stat", "strings", "sum", "tac", "tail", "test", "tldr", "tokei", "tput", "tr", "tree",
    "true", "tsort", "tty", "type", "uname", "unexpand", "uptime", "users", "vdir", "dir", "vmstat", "w", "wc",
    "whatis", "whence", "where", "whereis", "which", "who", "whoami", "xmllint", "xxd", "zcat", "zdiff", "zgrep",
    "zless", "shellcheck", "sort", "uniq", ":", "unset", "read", "export", "declare", "local", "readonly", "typeset",
    "set", "shopt", "umask", "ulimit", "wait", "getopts", "shift", "break", "continue", "history",
];

/// Programs whose arguments are messages or queries. What they do with files is not known.
#[rustfmt::skip]
const SPEAKERS: &[&str] = &[
    "gh", "glab", "hub", "jira", "linear", "logger", "mail", "mailx", "notify-send", "osascript", "say", "wall",
    "cowsay", "figlet", "lolcat", "psql", "mysql", "mariadb", "mongosh", "redis-cli", "duckdb", "http", "httpie", "xh",
    "espeak", "zenity", "dialog", "whiptail", "gum",
];

/// Programs whose files [`crate::writes`] knows one by one, and whose other arguments are data.
#[rustfmt::skip]
const HANDLED: &[&str] = &[
    "rm", "grm", "unlink", "rmdir", "srm", "shred", "wipe", "trash", "trash-put", "gio", "del", "rd", "mv", "gmv", "cp",
    "gcp", "install", "ln", "gln", "scp", "ditto", "tee", "touch", "truncate", "mkdir", "mkfifo", "mknod", "chmod",
    "gchmod", "chown", "gchown", "chgrp", "chattr", "setfacl", "chflags", "xattr", "dd", "gdd", "dcfldd", "dc3dd",
    "mount", "umount", "patch", "apply_patch", "applypatch", "curl", "wget", "unzip", "kill", "pkill", "killall",
    "killall5", "shutdown", "reboot", "halt", "poweroff", "systemctl", "loginctl", "init", "telinit", "fdisk", "sfdisk",
    "cfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "mkswap", "mke2fs", "cryptsetup", "zpool", "zfs",
    "nvme", "diskutil", "mdadm", "lvremove", "vgremove", "pvremove", "btrfs", "userdel", "deluser", "cd", "chdir",
    "pushd", "popd", "sponge", "nano", "ed", "ollm",
];

/// Programs of which the files are known, but which may run other programs.
const CARRYING: &[&str] = &["git", "tar", "bsdtar", "gtar", "rsync", "find", "fd", "fdfind"];

/// Interpreters: their arguments and their input are code, perhaps with a version behind the name.
#[rustfmt::skip]
const LANGUAGES: &[&str] = &[
    "python", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "osascript", "awk", "gawk", "mawk", "nawk",
    "sed", "gsed", "ed", "ex", "vi", "vim", "nvim", "view", "emacs", "tclsh", "rscript", "julia", "guile", "sqlite3",
    "pwsh", "powershell", "tsx", "ts-node", "groovy", "jshell", "scala", "elixir", "erl", "swift", "ghc", "runghc", "jq",
    "yq", "expect", "pypy", "ipython", "irb", "pry",
];

/// Languages in which people mostly print and search; the files they name are read, unless they are told otherwise.
const FILTERS: &[&str] = &["sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq"];

/// Programs that print shell code of their own making, to be read by `eval` or `source`.
#[rustfmt::skip]
const PRINT_THEIR_OWN_CODE: &[&str] = &[
    "ssh-agent", "gpg-agent", "gpgconf", "keychain", "dircolors", "lesspipe", "resize", "tset", "brew", "direnv", "pyenv",
    "rbenv", "nodenv", "jenv", "goenv", "asdf", "fnm", "volta", "mise", "rtx", "zoxide", "starship", "atuin", "opam",
    "conda", "mamba", "micromamba", "kubectl", "helm", "minikube", "kind", "k3d", "k9s", "oc", "istioctl", "flux",
    "argocd", "gh", "glab", "npm", "pnpm", "deno", "rustup", "poetry", "uv", "pip", "pipx", "luarocks", "thefuck", "fzf",
    "register-python-argcomplete", "docker-machine", "docker", "eksctl", "terraform", "task", "just", "op", "chezmoi",
    "cargo", "hugo", "rclone", "vault", "stern", "velero", "kustomize", "kompose", "crictl", "nerdctl", "podman",
];

/// Stands for the user, whoever that is.
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
    ("USER", SELF), ("LOGNAME", SELF), ("UID", SELF), ("EUID", SELF), ("SHELL", "bash"), ("BASH", "bash"), ("DOCKER", "docker"), ("KUBECTL", "kubectl"), ("GIT", "git"),
];

/// Variables that name something precious, though nothing in a script sets them.
#[rustfmt::skip]
const PRECIOUS_VARIABLES: &[&str] = &[
    "OLDPWD", "DIRSTACK", "PATH", "CDPATH", "USERPROFILE", "HOMEPATH", "HOMEDRIVE", "OLLM_HOME", "CODEX_HOME",
    "CLAUDE_CONFIG_DIR", "GNUPGHOME", "SSH_AUTH_SOCK", "GIT_DIR", "GIT_WORK_TREE", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "XDG_STATE_HOME", "SUDO_HOME", "REPLY", "OPTARG", "BASH_REMATCH", "PIPESTATUS", "MAPFILE", "COPROC", "_",
    "BASH_SOURCE", "FUNCNAME", "BASH_ARGV", "BASH_ARGV0", "BASH_COMMAND", "BASH_EXECUTION_STRING",
];

/// Programs that print one plain word, without a slash: something that stands for it.
const PRINT_A_WORD: &[(&str, &str)] = &[
    ("date", "0"),
    ("nproc", "0"),
    ("uname", "0"),
    ("hostname", "0"),
    ("arch", "0"),
    ("whoami", SELF),
    ("id", SELF),
    ("logname", SELF),
];

/// What a program does with its arguments.
pub(crate) fn arguments(name: &str) -> Arguments {
    if is_interpreter(name) {
        Arguments::Code
    } else if [READERS, SPEAKERS, HANDLED].iter().any(|table| table.contains(&name)) {
        Arguments::Data
    } else {
        Arguments::MayRun
    }
}

/// What a program does with the files that its arguments name.
pub(crate) fn files(name: &str) -> Files {
    let known = [READERS, HANDLED, CARRYING, FILTERS].iter().any(|table| table.contains(&name));
    if known { Files::Known } else { Files::MayWrite }
}

/// Whether a program only reads: neither its arguments nor its files become anything else.
pub(crate) fn only_reads(name: &str) -> bool {
    READERS.contains(&name) || FILTERS.contains(&name)
}

/// Whether this is an interpreter of some language other than the shell's.
pub(crate) fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|next: char| next.is_ascii_digit() || next == '.');
    LANGUAGES.contains(&stem) || LANGUAGES.contains(&name)
}

/// Whether an interpreter mostly prints and searches.
pub(crate) fn is_filter(name: &str) -> bool {
    FILTERS.contains(&name)
}

/// Whether a program prints shell code that is its own, not what a file or a server says.
pub(crate) fn prints_its_own_code(name: &str) -> bool {
    PRINT_THEIR_OWN_CODE.contains(&name)
}

/// What stands for the one plain word that a program prints.
pub(crate) fn printed_word(name: &str) -> Option<&'static str> {
    PRINT_A_WORD.iter().find(|(known, _)| *known == name).map(|(_, word)| *word)
}

/// What a variable holds by convention.
pub(crate) fn by_convention(variable: &str) -> Option<&'static str> {
    PROGRAM_VARIABLES.iter().find(|(name, _)| *name == variable).map(|(_, program)| *program)
}

/// Whether a variable that nothing sets may still name something precious.
pub(crate) fn is_precious_variable(name: &str) -> bool {
    PRECIOUS_VARIABLES.contains(&name) || name.starts_with("BASH_")
}
