//! Finds where the command begins that another program runs.

use ollm_shell::wrapper::{CarriedCommand, WRAPPERS, Wrapper, wrapper_named};

use crate::{field::Field, names::Names};

/// What stands behind the verb of a runner.
pub(super) const RUNNER: Wrapper = Wrapper::new("", "", &[], 0);

/// Containers: the image, or the name of one that runs, stands before the command.
#[rustfmt::skip]
pub(super) const CONTAINER: Wrapper = Wrapper::new("", "diPqtTa:c:e:f:h:l:m:n:p:u:v:w:",
    &["add-host=", "attach=", "cap-add=", "cap-drop=", "cidfile=", "container=", "context=", "cpu-shares=", "cpus=",
      "cpuset-cpus=", "detach", "device=", "dns=", "entrypoint=", "env-file=", "env=", "expose=", "gpus=", "group-add=",
      "hostname=", "index=", "init", "interactive", "ipc=", "kubeconfig=", "label=", "link=", "log-driver=", "memory=",
      "mount=", "name=", "namespace=", "network=", "net=", "no-TTY", "no-deps", "pid=", "pids-limit=", "platform=",
      "privileged", "publish-all", "publish=", "pull=", "quiet", "quiet-pull", "read-only", "remove-orphans", "restart=",
      "rm", "runtime=", "security-opt=", "service-ports", "shm-size=", "stdin", "stop-timeout=", "sysctl=", "tmpfs=",
      "tty", "ulimit=", "user=", "userns=", "volume=", "volumes-from=", "workdir="], 1);

/// Where the command begins behind a carrier's name, options and own arguments.
pub(super) fn carried(fields: &[Field], wrapper: &Wrapper) -> CarriedCommand {
    wrapper.carried(fields, |field| (field.text.as_str(), field.open()))
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
    pub(super) fn carrier(self, name: &str) -> Option<&'static Wrapper> {
        if self.0 & CARRIER == 0 {
            return None;
        }
        wrapper_named(name)
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
    let mut carriers = WRAPPERS;
    while let Some((carrier, rest)) = carriers.split_first() {
        names = names.with(carrier.name, bit);
        carriers = rest;
    }
    names
}
