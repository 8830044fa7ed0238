//! Paths that a box handles besides the protected files: sockets that lead out of it, secrets, caches.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ollm_catalog::Config;
use ollm_guard::{From, Lock, Protected};
use ollm_process::find_program;
use ollm_store::current_uid;
use ollm_trust::DEVICES;

use super::listing::NamePattern;
use crate::app_context::AppContext;

/// A program that runs commands for every client that reaches its sockets.
pub(super) struct SocketOwner {
    /// Its name in the configuration.
    name: &'static str,
    /// `RUN` is the person's folder for such sockets, `TMP` the one for temporary files, `UID` their number, `USER` their name.
    /// A name in `RUN` may end in `*`.
    paths: &'static [&'static str],
    /// Variables that name another socket.
    variables: &'static [&'static str],
}

const fn socket(name: &'static str, paths: &'static [&'static str], variables: &'static [&'static str]) -> SocketOwner {
    SocketOwner { name, paths, variables }
}

#[rustfmt::skip]
pub(super) const SOCKETS: &[SocketOwner] = &[
    socket("docker", &["/run/docker.sock", "/var/run/docker.sock", "RUN/docker.sock", "~/.docker/run", "~/.docker/desktop"], &["DOCKER_HOST"]),
    socket("podman", &["/run/podman", "RUN/podman"], &["CONTAINER_HOST"]),
    socket("containerd", &["/run/containerd", "RUN/containerd"], &["CONTAINERD_ADDRESS"]),
    socket("systemd", &["RUN/systemd", "/run/systemd/private"], &[]),
    socket("bus", &["RUN/bus", "RUN/at-spi", "/run/dbus/system_bus_socket"], &["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS"]),
    socket("tmux", &["TMP/tmux-UID"], &["TMUX"]),
    socket("screen", &["/run/screen", "TMP/screens", "~/.screen"], &["SCREENDIR"]),
    socket("zellij", &["RUN/zellij", "TMP/zellij-UID"], &["ZELLIJ_SOCKET_DIR"]),
    socket("emacs", &["RUN/emacs", "TMP/emacsUID", "~/.emacs.d/server"], &["EMACS_SOCKET_NAME"]),
    socket("nvim", &["RUN/nvim.*", "TMP/nvim.USER"], &["NVIM", "NVIM_LISTEN_ADDRESS"]),
    socket("sway", &["RUN/sway-ipc.*"], &["SWAYSOCK"]),
    socket("i3", &["RUN/i3"], &["I3SOCK"]),
    socket("hyprland", &["RUN/hypr", "TMP/hypr"], &[]),
    socket("kitty", &["RUN/kitty*"], &["KITTY_LISTEN_ON"]),
    socket("wezterm", &["RUN/wezterm"], &["WEZTERM_UNIX_SOCKET"]),
    socket("vscode", &["RUN/vscode-*"], &["VSCODE_IPC_HOOK_CLI", "VSCODE_IPC_HOOK"]),
    socket("libvirt", &["/run/libvirt", "RUN/libvirt"], &[]),
    socket("lxd", &["/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket"], &["LXD_SOCKET", "INCUS_SOCKET"]),
    socket("snapd", &["/run/snapd.socket", "/run/snapd-snap.socket"], &[]),
];

/// The paths of files by which programs log in elsewhere.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".kube",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/rclone",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".gem/credentials",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
];

/// The caches that programs can fetch or make again, each with its program.
const CACHES: &[(&str, &str)] = &[
    (".cache", "sh"),
    (".cargo/registry", "cargo"),
    (".cargo/git", "cargo"),
    (".npm", "npm"),
    (".pnpm-store", "pnpm"),
    (".local/share/pnpm", "pnpm"),
    (".yarn", "yarn"),
    (".bun/install/cache", "bun"),
    (".gradle", "gradle"),
    (".m2", "mvn"),
    (".ivy2", "sbt"),
    (".sbt", "sbt"),
    ("go/pkg", "go"),
    (".nuget", "dotnet"),
    (".conda/pkgs", "conda"),
    (".ccache", "ccache"),
    (".local/share/uv", "uv"),
    (".rustup/tmp", "rustup"),
    (".rustup/downloads", "rustup"),
    (".node-gyp", "node-gyp"),
    (".electron-gyp", "electron"),
    (".deno", "deno"),
];

/// Files among the caches, which only their own program makes.
const CACHE_FILES: &[&str] = &[".cargo/.package-cache"];

/// Terminals, and folders that belong to no single user.
const SHARED: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/dev/pts", "/dev/ptmx", "/proc"];

/// Caches to make before a command that could not make them.
#[derive(Debug)]
pub(super) struct Caches {
    home: PathBuf,
    search_path: OsString,
}

impl Caches {
    pub(super) fn new(context: &AppContext) -> Option<Caches> {
        let home = context.places.user_home.clone().filter(|home| home.is_dir())?;
        Some(Caches { home, search_path: context.search_path().unwrap_or_default().to_owned() })
    }

    /// Makes the cache folders of installed programs; returns whether one was missing.
    pub(super) fn make(&self) -> bool {
        let is_missing = |folder: &PathBuf| folder.symlink_metadata().is_err();
        let of_programs = CACHES.iter().filter(|(folder, program)| {
            is_missing(&self.home.join(folder)) && find_program(program, &self.search_path).is_some()
        });
        let folders = of_programs.map(|(folder, _)| self.home.join(folder));
        folders.filter(|folder| DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok()).count() > 0
    }
}

/// The sockets that the configuration leaves reachable.
pub(super) fn open_sockets(config: &Config) -> Vec<String> {
    let setting = config.get("agent.boxSockets");
    let names = setting.as_ref().and_then(|setting| setting.value.as_array());
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// All other sockets with known paths.
pub(super) fn hidden_sockets(open: &[String], context: &AppContext) -> Vec<PathBuf> {
    let hidden = || SOCKETS.iter().filter(|socket| !open.iter().any(|open| open == socket.name));
    let by_place = hidden().flat_map(|socket| socket.paths).filter(|path| !path.ends_with('*'));
    let by_variable = hidden().flat_map(|socket| socket.variables).filter_map(|name| context.variable(name));
    let by_place = by_place.filter_map(|path| resolved(path, context));
    by_place.chain(by_variable.flat_map(|value| named_sockets(&value))).collect()
}

/// All other sockets with known prefixes of their names.
pub(super) fn socket_patterns(open: &[String], context: &AppContext) -> Vec<NamePattern> {
    let hidden = SOCKETS.iter().filter(|socket| !open.iter().any(|open| open == socket.name));
    let patterns = hidden.flat_map(|socket| socket.paths).filter_map(|path| path.strip_suffix('*'));
    let pattern = |path: &str| {
        let (folder, begin) = path.rsplit_once('/')?;
        let folder = resolved(&format!("{folder}/"), context)?;
        Some(NamePattern { folder: folder.components().collect(), begin: begin.to_owned() })
    };
    patterns.filter_map(pattern).collect()
}

/// The paths in the value of a variable that names a socket: `unix:///run/x.sock`, `unix:path=/run/bus,guid=…`, `/tmp/x,12,0`.
fn named_sockets(value: &str) -> Vec<PathBuf> {
    let paths = value.split(';').filter_map(|address| {
        let path = address.strip_prefix("unix:").unwrap_or(address);
        let path = path.split(',').find_map(|part| part.strip_prefix("path=")).unwrap_or(path);
        let path = path.strip_prefix("//").unwrap_or(path).split(',').next()?;
        // Neither the root nor a folder with much other content.
        let deep = path.starts_with('/') && path.trim_matches('/').contains('/');
        deep.then(|| Path::new(path).components().collect())
    });
    paths.collect()
}

fn resolved(path: &str, context: &AppContext) -> Option<PathBuf> {
    let folder =
        |name: &str, usual: String| context.variable(name).filter(|folder| folder.starts_with('/')).unwrap_or(usual);
    let user = current_uid();
    let run = folder("XDG_RUNTIME_DIR", format!("/run/user/{user}"));
    let temp = if path.contains("tmux") { "TMUX_TMPDIR" } else { "TMPDIR" };
    let name = context.variable("USER").filter(|name| !name.is_empty() && !name.contains('/'));
    let path = path.replace("UID", &user.to_string()).replace("USER", name.as_deref().unwrap_or("root"));
    if let Some(rest) = path.strip_prefix("RUN/") {
        return Some(Path::new(&run).join(rest));
    }
    if let Some(rest) = path.strip_prefix("TMP/") {
        return Some(Path::new(&folder(temp, "/tmp".to_owned())).join(rest));
    }
    match path.strip_prefix("~/") {
        Some(rest) => Some(context.places.user_home.as_ref()?.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

/// Where the kernel is told which programs to run and which to end: all of it is root's, without privileges too, and the groups of
/// processes that a session manages are their user's.
pub(super) fn kernel_settings() -> impl Iterator<Item = PathBuf> {
    let paths: &[&str] =
        if current_uid() == 0 { &["/proc/sys", "/proc/sysrq-trigger", "/sys"] } else { &["/sys/fs/cgroup"] };
    paths.iter().map(PathBuf::from)
}

/// The places where a shell looks for our own program: what stands there runs in its place.
pub(super) fn own_programs(projects: &[PathBuf], context: &AppContext) -> Vec<Protected> {
    let folders = env::split_paths(context.search_path().unwrap_or_default());
    // A shell finds nothing in a folder that it cannot look into.
    let folders = folders.filter(|folder| folder.is_absolute() && folder.try_exists().is_ok());
    // One that is built in a project is built anew all the time.
    let others = folders.filter(|folder| !projects.iter().any(|project| folder.starts_with(project)));
    let programs = others.map(|folder| folder.join("ollm"));
    programs.map(|path| Protected { path, from: From::Everybody, lock: Lock::Locked }).collect()
}

/// The files in our own folder that people write and that other sessions do not change during a command.
pub(super) fn declared(own: &Path) -> impl Iterator<Item = PathBuf> {
    ["config.yaml", "hooks", "mcp.json", "settings"].into_iter().map(|name| own.join(name))
}

/// The paths that the strict policy hides.
pub(super) fn secrets(context: &AppContext) -> Vec<PathBuf> {
    let below = |home: &PathBuf| SECRETS.iter().map(|name| home.join(name)).collect::<Vec<_>>();
    context.places.user_home.iter().flat_map(below).chain([context.places.secrets()]).collect()
}

/// The paths that the strict policy leaves writable.
pub(super) fn writable(projects: &[PathBuf], context: &AppContext) -> Vec<PathBuf> {
    let mut writable = projects.to_vec();
    writable.extend(SHARED.iter().chain(DEVICES).map(PathBuf::from));
    let named = ["TMPDIR", "XDG_CACHE_HOME", "CARGO_TARGET_DIR"];
    writable.extend(named.iter().filter_map(|name| context.variable(name)).map(PathBuf::from));
    let caches = || CACHES.iter().map(|(folder, _)| folder).chain(CACHE_FILES);
    writable.extend(context.places.user_home.iter().flat_map(|home| caches().map(|name| home.join(name))));
    writable.retain(|path| path.is_absolute());
    writable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_that_the_configuration_names_is_known_here() {
        let names: Vec<&str> = SOCKETS.iter().map(|socket| socket.name).collect();
        assert_eq!(names, ollm_catalog::BOX_SOCKETS);
    }

    #[test]
    fn a_variable_names_a_socket_in_several_ways() {
        for (value, path) in [
            ("unix:///run/user/1000/docker.sock", Some("/run/user/1000/docker.sock")),
            ("unix:path=/run/user/1000/bus,guid=1", Some("/run/user/1000/bus")),
            ("/tmp/tmux-1000/default,42,0", Some("/tmp/tmux-1000/default")),
            ("unix:/tmp/my/kitty", Some("/tmp/my/kitty")),
            ("unix:@kitty", None),
            ("tcp://127.0.0.1:2375", None),
            ("ssh://host", None),
            ("/", None),
            ("/tmp", None),
        ] {
            assert_eq!(named_sockets(value), path.map(PathBuf::from).into_iter().collect::<Vec<_>>(), "{value}");
        }
    }
}
