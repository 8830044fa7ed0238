//! Folders and files of the system that count, by their places.

/// Folders of the system: losing one is a disaster.
#[rustfmt::skip]
pub(super) const SYSTEM: &[&str] = &[
    "/Applications", "/Library", "/System", "/Users", "/Volumes", "/bin", "/boot", "/c", "/cores", "/dev", "/etc",
    "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/mnt/c", "/nix", "/nix/store", "/opt",
    "/private", "/private/etc", "/private/var", "/proc", "/root", "/run", "/sbin", "/snap", "/srv", "/sys", "/tmp",
    "/usr", "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local", "/usr/local/bin",
    "/usr/local/etc", "/usr/local/include", "/usr/local/lib", "/usr/local/sbin", "/usr/local/share", "/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/lib/containers", "/var/lib/docker",
    "/var/lib/dpkg", "/var/lib/mysql", "/var/lib/pacman", "/var/lib/postgresql", "/var/lib/rpm", "/var/lib/systemd",
    "/var/log", "/var/mail", "/var/spool", "/var/www",
];

/// Folders whose contents belong to the system too: what lies below them is doubtful.
pub(super) const BELOW: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/System", "/Library", "/nix",
];

/// Folders whose contents come and go.
pub(super) const PASSING: &[&str] = &["/tmp", "/run", "/media", "/mnt", "/srv", "/opt", "/usr/local", "/var/www"];

/// Files that decide who may log in and what runs for all users.
#[rustfmt::skip]
pub(super) const KEYS: &[&str] = &[
    "/etc/bash.bashrc", "/etc/crontab", "/etc/environment", "/etc/fstab", "/etc/group", "/etc/gshadow", "/etc/ld.so.conf",
    "/etc/ld.so.preload", "/etc/passwd", "/etc/profile", "/etc/rc.local", "/etc/shadow", "/etc/sudoers", "/etc/zsh/zshenv",
];

/// Folders of such files.
#[rustfmt::skip]
pub(super) const KEY_FOLDERS: &[&str] = &[
    "/etc/claude-code", "/etc/codex", "/etc/cron.d", "/etc/cron.daily", "/etc/cron.hourly", "/etc/cron.monthly", "/etc/cron.weekly", "/etc/gemini-cli", "/etc/init.d",
    "/etc/ld.so.conf.d", "/etc/ollm", "/etc/pam.d", "/etc/profile.d", "/etc/security", "/etc/ssh", "/etc/sudoers.d",
];

/// Folders of the home whose contents programs fetch or make again.
#[rustfmt::skip]
pub(super) const REMADE: &[&str] = &[
    ".Trash", ".bundle", ".cache", ".ccache", ".gradle", ".ivy2", ".m2", ".node-gyp", ".npm", ".nuget", ".pnpm-store", ".sbt", ".yarn",
    "build", "dist", "node_modules", "target", "temp", "tmp", "venv",
];
