//! Places beside the protected files that a box knows: sockets that lead out of it, secrets, caches.

use std::path::{Path, PathBuf};

use ollm_catalog::Config;
use ollm_guard::PROTECTED;
use ollm_store::current_uid;

use crate::app_context::AppContext;

/// Sockets of programs that run commands for whoever asks, by the name that the configuration has for them. `RUN` is the
/// person's folder for such sockets, `TMP` the one for temporary files, `UID` their number.
pub(super) const SOCKETS: &[(&str, &[&str])] = &[
    ("docker", &["/run/docker.sock", "/var/run/docker.sock", "RUN/docker.sock", "~/.docker/run", "~/.docker/desktop"]),
    ("podman", &["/run/podman", "RUN/podman"]),
    ("containerd", &["/run/containerd", "RUN/containerd"]),
    ("systemd", &["RUN/systemd", "/run/systemd/private"]),
    ("bus", &["RUN/bus", "/run/dbus/system_bus_socket"]),
    ("tmux", &["TMP/tmux-UID"]),
    ("screen", &["/run/screen", "TMP/screens", "~/.screen"]),
    ("zellij", &["RUN/zellij", "TMP/zellij-UID"]),
    ("emacs", &["RUN/emacs", "TMP/emacsUID", "~/.emacs.d/server"]),
    ("libvirt", &["/run/libvirt", "RUN/libvirt"]),
    ("lxd", &["/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket"]),
    ("snapd", &["/run/snapd.socket", "/run/snapd-snap.socket"]),
];

/// Where programs keep what lets them in elsewhere.
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
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// Where programs keep what they can fetch or make again.
const CACHES: &[&str] = &[
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".npm",
    ".pnpm-store",
    ".local/share/pnpm",
    ".yarn",
    ".bun/install/cache",
    ".gradle",
    ".m2",
    ".ivy2",
    ".sbt",
    "go/pkg",
    ".nuget",
    ".conda/pkgs",
    ".ccache",
    ".local/share/uv",
    ".rustup/tmp",
    ".rustup/downloads",
    ".node-gyp",
    ".electron-gyp",
    ".deno",
];

/// The sockets that the configuration leaves open.
pub(super) fn open_sockets(config: &Config) -> Vec<String> {
    let setting = config.get("agent.boxSockets");
    let names = setting.as_ref().and_then(|setting| setting.value.as_array());
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// All other sockets that are known.
pub(super) fn hidden_sockets(open: &[String], context: &AppContext) -> Vec<PathBuf> {
    let hidden = SOCKETS.iter().filter(|(name, _)| !open.iter().any(|open| open == name));
    hidden.flat_map(|(_, paths)| paths.iter().filter_map(|path| resolved(path, context))).collect()
}

fn resolved(path: &str, context: &AppContext) -> Option<PathBuf> {
    let folder =
        |name: &str, usual: String| context.variable(name).filter(|folder| folder.starts_with('/')).unwrap_or(usual);
    let user = current_uid();
    let run = folder("XDG_RUNTIME_DIR", format!("/run/user/{user}"));
    let temp = if path.contains("tmux") { "TMUX_TMPDIR" } else { "TMPDIR" };
    let path = path.replace("UID", &user.to_string());
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

/// Where root tells the kernel which programs to run. Without privileges they still belong to root, so root alone needs this.
pub(super) fn kernel_settings() -> impl Iterator<Item = PathBuf> {
    let paths = ["/proc/sys", "/proc/sysrq-trigger", "/sys"].into_iter();
    paths.filter(|_| current_uid() == 0).map(PathBuf::from)
}

/// What in our own folder people write, and we do not while a command runs: as in a project, but for what we keep there.
pub(super) fn declared(own: &Path) -> impl Iterator<Item = PathBuf> {
    let names = PROTECTED.iter().flat_map(|row| row.project).filter_map(|name| name.strip_prefix(".ollm/"));
    names.filter(|name| !matches!(*name, "state" | "store")).map(|name| own.join(name))
}

/// What the strict policy hides.
pub(super) fn secrets(context: &AppContext) -> Vec<PathBuf> {
    let below = |home: &PathBuf| SECRETS.iter().map(|name| home.join(name)).collect::<Vec<_>>();
    context.places.user_home.iter().flat_map(below).chain([context.places.secrets()]).collect()
}

/// What the strict policy leaves writable.
pub(super) fn writable(projects: &[PathBuf], context: &AppContext) -> Vec<PathBuf> {
    let mut writable = projects.to_vec();
    writable.extend(["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/proc"].map(PathBuf::from));
    let named = ["TMPDIR", "XDG_CACHE_HOME", "CARGO_TARGET_DIR"];
    writable.extend(named.iter().filter_map(|name| context.variable(name)).map(PathBuf::from));
    writable.extend(context.places.user_home.iter().flat_map(|home| CACHES.iter().map(|name| home.join(name))));
    writable.retain(|path| path.is_absolute());
    writable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_that_the_configuration_names_is_known_here() {
        let names: Vec<&str> = SOCKETS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ollm_catalog::BOX_SOCKETS);
    }
}
