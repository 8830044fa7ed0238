//! Paths that a box handles besides the protected files: sockets that lead out of it, secrets, caches.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
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
/// processes that a session manages are their user's. Whoever writes the files of our own process in `/proc` has the kernel end us
/// first when memory runs out (`oom_score_adj`); for all other users these are root's.
pub(super) fn kernel_settings() -> impl Iterator<Item = PathBuf> {
    let paths: &[&str] = if current_uid() == 0 { &["/proc", "/sys"] } else { &["/sys/fs/cgroup"] };
    paths.iter().map(PathBuf::from)
}

/// The home of our user, where `HOME` names another folder: `ssh` and login shells read it all the same.
pub(crate) fn account_home(context: &AppContext) -> Option<PathBuf> {
    let home = account(&fs::read("/etc/passwd").ok()?, current_uid())?.canonicalize().ok()?;
    let named = context.places.user_home.as_ref().and_then(|home| home.canonicalize().ok());
    (home.parent().is_some() && home.is_dir() && named.as_ref() != Some(&home)).then_some(home)
}

/// The home of a user in the list of users.
fn account(list: &[u8], user: u32) -> Option<PathBuf> {
    list.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':').skip(2);
        let id: u32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        (id == user).then(|| PathBuf::from(OsStr::from_bytes(fields.nth(2).unwrap_or_default())))
    })
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
pub(super) fn secrets(homes: &[PathBuf], context: &AppContext) -> Vec<PathBuf> {
    let below = |home: &PathBuf| SECRETS.iter().map(|name| home.join(name)).collect::<Vec<_>>();
    homes.iter().flat_map(below).chain([context.places.secrets()]).collect()
}

/// The repositories that the `.git` files of projects lead to: of linked working trees, with what these share, and of submodules. Each
/// has to name its working tree in turn, or a project could name any folder.
pub(super) fn linked_repositories(projects: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: PathBuf| path.canonicalize().ok();
    let mut linked = Vec::new();
    for project in projects {
        let lead = project.join(".git");
        let named = short_text(&lead).and_then(|text| Some(project.join(text.strip_prefix("gitdir:")?.trim())));
        let Some(own) = named.and_then(real) else { continue };
        let back = match short_text(&own.join("gitdir")) {
            Some(back) => Some(own.join(back.trim())),
            None => {
                worktree(&short_text(&own.join("config")).unwrap_or_default()).map(|tree| own.join(tree).join(".git"))
            }
        };
        if back.and_then(real) != real(lead) {
            continue;
        }
        let shared = short_text(&own.join("commondir")).and_then(|shared| real(own.join(shared.trim())));
        linked.extend(shared.filter(|shared| own.parent() == Some(&shared.join("worktrees"))));
        linked.push(own);
    }
    linked
}

/// The working tree that settings of a repository name.
pub(super) fn worktree(settings: &str) -> Option<&str> {
    let mut lines = settings.lines();
    let tree = lines.find_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='))?;
    Some(tree.trim().trim_matches('"'))
}

/// The text of a small file. A command could have put a pipe here, or a link to a file without an end.
fn short_text(file: &Path) -> Option<String> {
    const LONGEST: u64 = 64 << 10;
    let is_small = file.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    is_small.then(|| fs::read_to_string(file).ok())?
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
    fn only_a_repository_that_names_its_working_tree_in_turn_is_linked() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        };
        write("tree/.git", "gitdir: ../main/.git/worktrees/tree\n");
        write("main/.git/worktrees/tree/gitdir", "../../../../tree/.git\n");
        write("main/.git/worktrees/tree/commondir", "../..\n");
        write("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        write("main/.git/modules/sub/config", "[core]\n\tworktree = ../../../sub\n");
        write("home/settings", "");
        write("evil/.git", "gitdir: ../home\n");
        write("worse/.git", "gitdir: fake/\n");
        write("worse/fake/gitdir", "../.git");
        write("worse/fake/commondir", "../../home");
        let linked = |project: &str| linked_repositories(&[root.join(project)]);
        assert_eq!(linked("tree"), [root.join("main/.git"), root.join("main/.git/worktrees/tree")]);
        assert_eq!(linked("main/sub"), [root.join("main/.git/modules/sub")]);
        assert_eq!((linked("evil"), linked("worse")), (vec![], vec![root.join("worse/fake")]));
        assert_eq!(linked("main"), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_home_of_a_user_is_the_one_in_the_list_of_users() {
        let list = b"root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ad\xff:\nbroken\nx:x:7\n";
        let home = |user| account(list, user).map(|home| home.as_os_str().as_bytes().to_vec());
        assert_eq!(home(0).as_deref(), Some(&b"/root"[..]));
        assert_eq!(home(1000).as_deref(), Some(&b"/home/ad\xff"[..]));
        assert_eq!((home(7).as_deref(), home(8)), (Some(&b""[..]), None));
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
